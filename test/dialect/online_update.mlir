// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @tensors
// CHECK: attn.online_update captures(%{{.*}} : tensor<8x6xf32>)
// CHECK-SAME: outs(%{{.*}} : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) at(%{{.*}}) mask(#attn.causal)
// CHECK: attn.yield
func.func @tensors(%s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  %r:4 = attn.online_update captures(%s : tensor<8x6xf32>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i) mask(#attn.causal) {capture_maps = [affine_map<(k, q) -> (k, q)>], scale = 1.0 : f32}
      score {
      ^bb0(%qi: index, %ki: index, %x: f32, %bias: f32):
        %t = arith.addf %x, %bias : f32
        attn.yield %t : f32
      } -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// CHECK-LABEL: @buffers
// CHECK: attn.online_update outs(%{{.*}} : memref<8x6xf32>, memref<6xf32>, memref<6xf32>, memref<4x6xf32>) at(%{{.*}}) {capture_maps = [], scale = 1.000000e+00 : f32}{{$}}
func.func @buffers(%s: memref<8x6xf32>, %m: memref<6xf32>, %l: memref<6xf32>, %a: memref<4x6xf32>, %i: index) {
  attn.online_update outs(%s, %m, %l, %a : memref<8x6xf32>, memref<6xf32>, memref<6xf32>, memref<4x6xf32>)
      at(%i, %i) {capture_maps = [], scale = 1.0 : f32}
  return
}
