// A boolean is 0 or -1 after a signed extension.
// RUN: attn-run %s --reference | FileCheck %s --check-prefix=RIGHT
// RIGHT: output 0: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}

#id = affine_map<(a) -> (a)>
func.func @f(%x: tensor<8xi1>, %t: tensor<2xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xi1>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: i1, %o: f32):
    %w = arith.extsi %a : i1 to i64
    %i = arith.index_cast %w : i64 to index
    %v = tensor.extract %t[%i] : tensor<2xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
