// The size of a dimension that a tensor does not have is an error.
// RUN: not attnc %s -o %t.so 2>&1 | FileCheck %s
// CHECK: dim-of-rank.mlir: 6:8: expected a dimension of 'tensor<?xf32>', got 5
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c5 = arith.constant 5 : index
  %n = tensor.dim %x, %c5 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
