// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: call.mlir: 7:8: expected no call, because each function is compiled by itself
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
