// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @tensors
// CHECK: attn.online_probabilities ins(%{{.*}} : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) outs(%{{.*}} : tensor<8x6xf32>) at(%{{.*}})
// CHECK-SAME: empty_row = #attn.empty_row<nan>
// CHECK-SAME: -> tensor<8x6xf32>
func.func @tensors(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %s: tensor<8x6xf32>, %i: index) -> tensor<8x6xf32> {
  %p = attn.online_probabilities ins(%q, %k, %m, %m : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) outs(%s : tensor<8x6xf32>)
      at(%i, %i) {capture_maps = [], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> tensor<8x6xf32>
  return %p : tensor<8x6xf32>
}

// CHECK-LABEL: @buffers
// CHECK: attn.online_probabilities ins(%{{.*}} : memref<3x6xf32>, memref<8x3xf32>, memref<6xf32>, memref<6xf32>) outs(%{{.*}} : memref<8x6xf32>) at(%{{.*}}) mask(#attn.causal) {{[^>]*}}{{$}}
func.func @buffers(%q: memref<3x6xf32>, %k: memref<8x3xf32>, %m: memref<6xf32>, %s: memref<8x6xf32>, %i: index) {
  attn.online_probabilities ins(%q, %k, %m, %m : memref<3x6xf32>, memref<8x3xf32>, memref<6xf32>, memref<6xf32>) outs(%s : memref<8x6xf32>)
      at(%i, %i) mask(#attn.causal) {capture_maps = [], scale = 1.0 : f32}
  return
}
