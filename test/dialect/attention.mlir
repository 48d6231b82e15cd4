// RUN: attn-opt %s | attn-opt | FileCheck %s

#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#n = affine_map<(b, h, q, k, d, e) -> (b)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>

// CHECK-LABEL: @sink
// CHECK: attn.attention ins({{.*}}) sink(%{{.*}} : tensor<8xf32>) outs(
func.func @sink(%q: tensor<2x8x?x64xf32>, %sink: tensor<8xf32>) -> tensor<2x8x?x64xf32> {
  %o = attn.attention ins(%q, %q, %q : tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      sink(%sink : tensor<8xf32>) outs(%q : tensor<2x8x?x64xf32>)
      {indexing_maps = [#q, #k, #v, affine_map<(b, h, q, k, d, e) -> (h)>, #o], scale = 0.125 : f32}
      -> tensor<2x8x?x64xf32>
  return %o : tensor<2x8x?x64xf32>
}

// CHECK-LABEL: @masked
// CHECK: attn.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
// CHECK-SAME: captures(%{{.*}} : tensor<2xi32>) outs(%{{.*}} : tensor<2x8x?x64xf32>)
// CHECK-SAME: mask(#attn.and<[#attn.causal<offset = 3>, #attn.lengths<0>, #attn.dense<0, keeps = zero>]>)
// CHECK-SAME: plan(<"per-head", q = 48, k = 128>)
// CHECK-SAME: empty_row = #attn.empty_row<nan>
// CHECK: attn.yield %{{.*}} : f32
func.func @masked(%q: tensor<2x8x?x64xf32>, %n: tensor<2xi32>) -> tensor<2x8x?x64xf32> {
  %o = attn.attention ins(%q, %q, %q : tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      captures(%n : tensor<2xi32>) outs(%q : tensor<2x8x?x64xf32>)
      mask(#attn.and<[#attn.causal<offset = 3>, #attn.lengths<0>, #attn.dense<0, keeps = zero>]>)
      plan(#attn.plan<"per-head", q = 48, k = 128>)
      {indexing_maps = [#q, #k, #v, #n, #o], scale = 0.125 : f32, empty_row = #attn.empty_row<nan>}
      score {
      ^bb0(%b: index, %h: index, %qi: index, %ki: index, %s: f32, %len: i32):
        attn.yield %s : f32
      } -> tensor<2x8x?x64xf32>
  return %o : tensor<2x8x?x64xf32>
}

// CHECK-LABEL: @state
// CHECK: attn.attention {{.*}} state outs(%{{.*}} : tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>) plan(<decode, q = 4, k = 16, part = 64>)
func.func @state(%x: tensor<2x8x4xf32>, %m: tensor<2x8xf32>) {
  %r:3 = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      state outs(%x, %m, %m : tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>) plan(<"decode", q = 4, k = 16, part = 64>)
      {indexing_maps = [affine_map<(b, q, k, d, e) -> (b, q, d)>, affine_map<(b, q, k, d, e) -> (b, k, d)>,
                        affine_map<(b, q, k, d, e) -> (b, k, e)>, affine_map<(b, q, k, d, e) -> (b, q, e)>,
                        affine_map<(b, q, k, d, e) -> (b, q)>, affine_map<(b, q, k, d, e) -> (b, q)>], scale = 1.0 : f32}
      -> tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>
  return
}
