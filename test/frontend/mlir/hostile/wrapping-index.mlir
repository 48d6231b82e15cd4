// The product of indices wraps around.
// RUN: attn-run %s --reference --dim arg0.0=5000 | FileCheck %s --check-prefix=RIGHT
// RIGHT: output 0: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}

#id = affine_map<(a) -> (a)>
func.func @f(%t: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %k = arith.constant 2305843009213693952 : index
  %n = tensor.dim %t, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
  ^bb0(%o: f32):
    %l = linalg.index 0 : index
    %p = arith.muli %l, %k : index
    %q = arith.floordivsi %p, %k : index
    %v = tensor.extract %t[%q] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
