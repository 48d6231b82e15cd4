// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: name-not-utf8.mlir: 6:1: expected the name of each argument in UTF-8, got "x\ED\A0\80"
func.func @f(%x: tensor<4xf32> {attn.name = "x\ED\A0\80"}, %y: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
