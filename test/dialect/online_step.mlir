// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @tensors
// CHECK: attn.online_step ins(%{{.*}} : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
// CHECK-SAME: captures(%{{.*}} : tensor<6xi32>) outs(%{{.*}} : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
// CHECK-SAME: at(%{{.*}}) mask(#attn.lengths<0>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: f32, %{{.*}}: i32):
// CHECK: attn.yield
func.func @tensors(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %n: tensor<6xi32>,
                   %s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      captures(%n : tensor<6xi32>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) mask(#attn.lengths<0>) {capture_maps = [affine_map<(k, q) -> (q)>], scale = 1.0 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %x: f32, %len: i32):
        %t = math.tanh %x : f32
        attn.yield %t : f32
      } -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// CHECK-LABEL: @buffers
// CHECK: attn.online_step ins(%{{.*}} : memref<3x6xf32>, memref<8x3xf32>, memref<8x4xf32>)
// CHECK-SAME: {capture_maps = [], scale = 1.000000e+00 : f32}{{$}}
func.func @buffers(%q: memref<3x6xf32>, %k: memref<8x3xf32>, %v: memref<8x4xf32>, %s: memref<8x6xf32>,
                   %m: memref<6xf32>, %l: memref<6xf32>, %a: memref<4x6xf32>, %i: index) {
  attn.online_step ins(%q, %k, %v : memref<3x6xf32>, memref<8x3xf32>, memref<8x4xf32>)
      outs(%s, %m, %l, %a : memref<8x6xf32>, memref<6xf32>, memref<6xf32>, memref<4x6xf32>)
      at(%i, %i) {capture_maps = [], scale = 1.0 : f32}
  return
}

// CHECK-LABEL: @rows
// CHECK: attn.online_step rows ins(%{{.*}} : tensor<6x3xf32>, tensor<8x3xf32>, tensor<8x4xf32>) outs(%{{.*}} : tensor<6x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>)
func.func @rows(%q: tensor<6x3xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<6x8xf32>, %m: tensor<6xf32>, %a: tensor<6x4xf32>, %i: index) {
  %r:4 = attn.online_step rows ins(%q, %k, %v : tensor<6x3xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      outs(%s, %m, %m, %a : tensor<6x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<6x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>
  return
}
