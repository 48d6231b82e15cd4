// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @tensors
func.func @tensors(%x: tensor<2x?x8xf32>, %o: tensor<2x?x8x4xf32>, %p: tensor<2x2x?x4xf32>) {
  // CHECK: attn.pack ins(%{{.*}} : tensor<2x?x8xf32>) outs(%{{.*}} : tensor<2x?x8x4xf32>) -> tensor<2x?x8x4xf32>
  %0 = attn.pack ins(%x : tensor<2x?x8xf32>) outs(%o : tensor<2x?x8x4xf32>) -> tensor<2x?x8x4xf32>
  // CHECK: attn.pack from_rows scale(1.250000e-01) ins(%{{.*}} : tensor<2x?x8xf32>) outs(%{{.*}} : tensor<2x2x?x4xf32>) -> tensor<2x2x?x4xf32>
  %1 = attn.pack from_rows scale(0.125) ins(%x : tensor<2x?x8xf32>) outs(%p : tensor<2x2x?x4xf32>) -> tensor<2x2x?x4xf32>
  return
}

// CHECK-LABEL: @groups
func.func @groups(%x: tensor<9x7xbf16>, %o: tensor<3x4x4x2xbf16>) {
  // CHECK: attn.pack group(2) scale(5.000000e-01) ins(%{{.*}} : tensor<9x7xbf16>) outs(%{{.*}} : tensor<3x4x4x2xbf16>) -> tensor<3x4x4x2xbf16>
  %0 = attn.pack group(2) scale(0.5) ins(%x : tensor<9x7xbf16>) outs(%o : tensor<3x4x4x2xbf16>) -> tensor<3x4x4x2xbf16>
  return
}

// CHECK-LABEL: @buffers
// CHECK: attn.pack ins(%{{.*}} : memref<9x8xi8>) outs(%{{.*}} : memref<3x8x4xi8>){{$}}
func.func @buffers(%x: memref<9x8xi8>, %o: memref<3x8x4xi8>) {
  attn.pack ins(%x : memref<9x8xi8>) outs(%o : memref<3x8x4xi8>)
  return
}
