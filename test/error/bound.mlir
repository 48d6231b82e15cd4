// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: bound.mlir: 6:1: expected 'attn.bound' on a tensor of i8, i16, i32 or i64, got 'tensor<4xf32>'
func.func @f(%x: tensor<4xf32> {attn.bound = 9 : i64}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
