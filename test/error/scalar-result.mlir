// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: scalar-result.mlir: 6:1: expected result 0 to be a ranked tensor, got 'f32'
func.func @f(%x: tensor<4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %r = tensor.extract %x[%c0] : tensor<4xf32>
  return %r : f32
}
