// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @tensors
// CHECK: attn.pack_mask ins(%{{.*}} : tensor<2x6x70xi1>) outs(%{{.*}} : tensor<2x3x6xi32>) -> tensor<2x3x6xi32>
func.func @tensors(%m: tensor<2x6x70xi1>, %w: tensor<2x3x6xi32>) -> tensor<2x3x6xi32> {
  %r = attn.pack_mask ins(%m : tensor<2x6x70xi1>) outs(%w : tensor<2x3x6xi32>) -> tensor<2x3x6xi32>
  return %r : tensor<2x3x6xi32>
}

// CHECK-LABEL: @buffers
// CHECK: attn.pack_mask ins(%{{.*}} : memref<?x?xf32>) outs(%{{.*}} : memref<?x?xi32>){{$}}
func.func @buffers(%m: memref<?x?xf32>, %w: memref<?x?xi32>) {
  attn.pack_mask ins(%m : memref<?x?xf32>) outs(%w : memref<?x?xi32>)
  return
}
