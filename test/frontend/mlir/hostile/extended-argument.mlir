// The difference of a bounded index and a number may be negative before it is extended.
// RUN: attn-run %s --reference --dim arg0.0=50 | FileCheck %s --check-prefix=RIGHT
// RIGHT: output 0: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}

#id = affine_map<(a) -> (a)>
func.func @f(%x: tensor<?xi32> {attn.bound = 7 : i64}, %t: tensor<8xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %k = arith.constant 5 : i32
  %k2 = arith.constant 5 : i64
  %n = tensor.dim %x, %c0 : tensor<?xi32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xi32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: i32, %o: f32):
    %s = arith.subi %a, %k : i32
    %u = arith.extui %s : i32 to i64
    %w = arith.addi %u, %k2 : i64
    %i = arith.index_cast %w : i64 to index
    %v = tensor.extract %t[%i] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
