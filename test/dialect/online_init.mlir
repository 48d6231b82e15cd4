// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @tensors
// CHECK: attn.online_init outs(%{{.*}} : tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) -> tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
func.func @tensors(%m: tensor<6xf32>, %a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r:3 = attn.online_init outs(%m, %m, %a : tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      -> tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return %r#2 : tensor<4x6xf32>
}

// CHECK-LABEL: @buffers
// CHECK: attn.online_init outs(%{{.*}} : memref<6xf32>, memref<6xf32>, memref<4x6xf32>){{$}}
func.func @buffers(%m: memref<6xf32>, %l: memref<6xf32>, %a: memref<4x6xf32>) {
  attn.online_init outs(%m, %l, %a : memref<6xf32>, memref<6xf32>, memref<4x6xf32>)
  return
}
