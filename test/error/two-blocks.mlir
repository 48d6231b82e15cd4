// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: two-blocks.mlir: 6:1: expected a body of one block, got 2
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^end(%x : tensor<4xf32>)
^end(%r: tensor<4xf32>):
  return %r : tensor<4xf32>
}
