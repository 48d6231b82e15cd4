// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @tensors
// CHECK: attn.online_finish ins(%{{.*}} : tensor<6xf32>, tensor<4x6xf32>) outs(%{{.*}} : tensor<6x4xbf16>) {empty_row = #attn.empty_row<nan>} -> tensor<6x4xbf16>
func.func @tensors(%l: tensor<6xf32>, %a: tensor<4x6xf32>, %o: tensor<6x4xbf16>) -> tensor<6x4xbf16> {
  %r = attn.online_finish ins(%l, %a : tensor<6xf32>, tensor<4x6xf32>) outs(%o : tensor<6x4xbf16>)
      {empty_row = #attn.empty_row<nan>} -> tensor<6x4xbf16>
  return %r : tensor<6x4xbf16>
}

// CHECK-LABEL: @buffers
// CHECK: attn.online_finish ins(%{{.*}} : memref<6xf32>, memref<4x6xf32>) outs(%{{.*}} : memref<6x4xf32>){{$}}
func.func @buffers(%l: memref<6xf32>, %a: memref<4x6xf32>, %o: memref<6x4xf32>) {
  attn.online_finish ins(%l, %a : memref<6xf32>, memref<4x6xf32>) outs(%o : memref<6x4xf32>)
  return
}
