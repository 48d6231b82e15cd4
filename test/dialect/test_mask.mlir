// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @tensors
// CHECK: attn.test_mask %{{.*}} keeps nonzero : tensor<2x48xi32>
func.func @tensors(%w: tensor<2x48xi32>) -> (index, index, i1) {
  %r:3 = attn.test_mask %w keeps nonzero : tensor<2x48xi32>
  return %r#0, %r#1, %r#2 : index, index, i1
}

// CHECK-LABEL: @buffers
// CHECK: attn.test_mask %{{.*}} keeps zero : memref<?x?xi32>
func.func @buffers(%w: memref<?x?xi32>) -> (index, index, i1) {
  %r:3 = attn.test_mask %w keeps zero : memref<?x?xi32>
  return %r#0, %r#1, %r#2 : index, index, i1
}
