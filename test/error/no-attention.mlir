// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so --require-fused 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: attnc: expected an attention, got none
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
