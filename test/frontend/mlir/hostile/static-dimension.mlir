// A computed index into a static dimension.
// RUN: attn-run %s --reference --dim arg0.0=5 --dim arg1.0=4 | FileCheck %s --check-prefix=RIGHT
// RUN: not attn-run %s --reference --dim arg0.0=5 --dim arg1.0=5 2>&1 | FileCheck %s
// RIGHT: output 0: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}
// CHECK: expected sizes with arg0.0 + arg1.0 <= 9, got arg0.0 = 5, arg1.0 = 5

func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>, %t: tensor<8xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %e = tensor.empty(%n, %m) : tensor<?x?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a + b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<8xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
