// A dimension is not split into negative sizes.
// RUN: not attn-run %s --reference --dim arg0.0=3 --dim arg0.1=2 --dim arg1.0=3 --dim arg2.0=2 2>&1 | FileCheck %s
// CHECK: expected --dim=arg1.0 in [5, 2147483647], got 3

func.func @f(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %z: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %k = arith.constant 5 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %m = tensor.dim %z, %c0 : tensor<?xf32>
  %a = arith.subi %n, %k : index
  %b = arith.subi %m, %k : index
  %x1 = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %v = tensor.expand_shape %x1 [[0, 1]] output_shape [%a, %b] : tensor<?xf32> into tensor<?x?xf32>
  %e = tensor.empty(%a, %b) : tensor<?x?xf32>
  %r = linalg.exp ins(%v : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %w = tensor.collapse_shape %r [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  return %w : tensor<?xf32>
}
