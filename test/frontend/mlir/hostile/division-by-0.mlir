// A remainder of a division by 0 does not trap.
// RUN: attn-run %s --reference --dim arg1.0=0 | FileCheck %s --check-prefix=RIGHT
// RUN: attn-run %s --reference --dim arg1.0=3 | FileCheck %s --check-prefix=RIGHT
// RIGHT: output 0: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}

#id = affine_map<(a) -> (a)>
func.func @f(%x: tensor<3xi64>, %y: tensor<?xf32>) -> tensor<3xi64> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %m = arith.index_cast %n : index to i64
  %e = tensor.empty() : tensor<3xi64>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<3xi64>) outs(%e : tensor<3xi64>) {
  ^bb0(%a: i64, %o: i64):
    %v = arith.remsi %a, %m : i64
    linalg.yield %v : i64
  } -> tensor<3xi64>
  return %r : tensor<3xi64>
}
