// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: same-name.mlir: 6:1: expected one argument named "arg1", got two
func.func @f(%x: tensor<4xf32> {attn.name = "arg1"}, %y: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
