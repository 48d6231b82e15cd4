// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @tensors
// CHECK: attn.online_merge ins(%{{.*}} : tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x4x6xf32>)
// CHECK-SAME: outs(%{{.*}} : tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) {scale = 5.000000e-01 : f32}
// CHECK-SAME: -> tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
func.func @tensors(%ms: tensor<?x6xf32>, %as: tensor<?x4x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r:3 = attn.online_merge ins(%ms, %ms, %as : tensor<?x6xf32>, tensor<?x6xf32>, tensor<?x4x6xf32>)
      outs(%m, %m, %a : tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) {scale = 0.5 : f32}
      -> tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return %r#2 : tensor<4x6xf32>
}

// CHECK-LABEL: @buffers
// CHECK: attn.online_merge ins(%{{.*}} : memref<2x6xf32>, memref<2x6xf32>, memref<2x4x6xf32>)
// CHECK-SAME: outs(%{{.*}} : memref<6xf32>, memref<6xf32>, memref<4x6xf32>) {scale = 1.000000e+00 : f32}{{$}}
func.func @buffers(%ms: memref<2x6xf32>, %ls: memref<2x6xf32>, %as: memref<2x4x6xf32>,
                   %m: memref<6xf32>, %l: memref<6xf32>, %a: memref<4x6xf32>) {
  attn.online_merge ins(%ms, %ls, %as : memref<2x6xf32>, memref<2x6xf32>, memref<2x4x6xf32>)
      outs(%m, %l, %a : memref<6xf32>, memref<6xf32>, memref<4x6xf32>) {scale = 1.0 : f32}
  return
}

// CHECK-LABEL: @rows
// CHECK: attn.online_merge rows ins(%{{.*}} : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6x4xf32>)
func.func @rows(%ms: tensor<2x6xf32>, %as: tensor<2x6x4xf32>, %m: tensor<6xf32>, %a: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %r:3 = attn.online_merge rows ins(%ms, %ms, %as : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x6x4xf32>)
      outs(%m, %m, %a : tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>) {scale = 0.5 : f32}
      -> tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>
  return %r#2 : tensor<6x4xf32>
}
