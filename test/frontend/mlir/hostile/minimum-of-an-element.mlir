// The minimum of an element and a number is not a size, and the element may be negative.
// RUN: attn-import %s | FileCheck %s
// CHECK: arith.minsi

#id = affine_map<(a) -> (a)>
func.func @f(%x: tensor<?xi64>) -> tensor<?xi64> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i64
  %n = tensor.dim %x, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?xi64>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xi64>) outs(%e : tensor<?xi64>) {
  ^bb0(%a: i64, %o: i64):
    %m = arith.minsi %a, %z : i64
    linalg.yield %m : i64
  } -> tensor<?xi64>
  return %r : tensor<?xi64>
}
