// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: unranked.mlir: 6:1: expected argument 0 to be a ranked tensor, got 'tensor<*xf32>'
func.func @f(%x: tensor<*xf32>) -> tensor<*xf32> {
  return %x : tensor<*xf32>
}
