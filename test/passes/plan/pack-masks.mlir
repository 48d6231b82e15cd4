// RUN: attn-opt %s -attn-pack-masks -split-input-file | FileCheck %s

#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#m = affine_map<(b, h, q, k, d, e) -> (b, 0, q, k)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>
// Two attentions share the words of their packed mask. The last word of a row has fewer than 32 keys.
// CHECK: #[[$WORDS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, 0, d3 floordiv 32, d2)>
// CHECK-LABEL: @shared(
// CHECK-SAME: %[[M:[^ ]*]]: tensor<2x1x512x500xi1>
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x1x16x512xi32>
// CHECK: %[[W:.*]] = attn.pack_mask ins(%[[M]] : tensor<2x1x512x500xi1>) outs(%[[E]] : tensor<2x1x16x512xi32>)
// CHECK-NOT: attn.pack_mask
// CHECK: attn.attention {{.*}} captures(%[[W]] : tensor<2x1x16x512xi32>) {{.*}} mask(#attn.dense<0>) {{.*}} #[[$WORDS]]
// CHECK: attn.attention {{.*}} captures(%[[W]] : tensor<2x1x16x512xi32>) {{.*}} mask(#attn.dense<0, keeps = zero>)
func.func @shared(%m: tensor<2x1x512x500xi1>, %x: tensor<2x4x512x64xf32>, %y: tensor<2x4x500x64xf32>, %e: tensor<2x4x512x64xf32>)
    -> (tensor<2x4x512x64xf32>, tensor<2x4x512x64xf32>) {
  %a = attn.attention ins(%x, %y, %y : tensor<2x4x512x64xf32>, tensor<2x4x500x64xf32>, tensor<2x4x500x64xf32>)
      captures(%m : tensor<2x1x512x500xi1>) outs(%e : tensor<2x4x512x64xf32>) mask(#attn.dense<0>)
      plan(<"per-head", q = 48, k = 64>) {indexing_maps = [#q, #k, #v, #m, #o], scale = 1.0 : f32} -> tensor<2x4x512x64xf32>
  %b = attn.attention ins(%x, %y, %y : tensor<2x4x512x64xf32>, tensor<2x4x500x64xf32>, tensor<2x4x500x64xf32>)
      captures(%m : tensor<2x1x512x500xi1>) outs(%e : tensor<2x4x512x64xf32>) mask(#attn.dense<0, keeps = zero>)
      plan(<"phased", q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #m, #o], scale = 1.0 : f32} -> tensor<2x4x512x64xf32>
  return %a, %b : tensor<2x4x512x64xf32>, tensor<2x4x512x64xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#m = affine_map<(q, k, d, e) -> (q, k)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// A tensor of numbers that only the mask reads is packed into bits. A boolean tensor and a bias that only the region
// reads stay unpacked.
// CHECK-LABEL: @region(
// CHECK-SAME: %[[C:[^ ]*]]: tensor<?x?xi1>, %[[N:[^ ]*]]: tensor<?x?xf32>, %[[BIAS:[^ ]*]]: tensor<?x?xf32>
// CHECK: %[[W:.*]] = attn.pack_mask ins(%[[N]]
// CHECK-NOT: attn.pack_mask
// CHECK: captures(%[[C]], %[[W]], %[[BIAS]] : tensor<?x?xi1>, tensor<?x?xi32>, tensor<?x?xf32>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: f32, %{{.*}}: i1, %{{.*}}: i1, %{{.*}}: f32):
func.func @region(%c: tensor<?x?xi1>, %n: tensor<?x?xf32>, %bias: tensor<?x?xf32>, %x: tensor<?x64xf32>, %e: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %a = attn.attention ins(%x, %x, %x : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>)
      captures(%c, %n, %bias : tensor<?x?xi1>, tensor<?x?xf32>, tensor<?x?xf32>) outs(%e : tensor<?x64xf32>) mask(#attn.dense<1>)
      plan(<"per-head", q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #m, #m, #m, #o], scale = 1.0 : f32} score {
      ^bb0(%i: index, %j: index, %s: f32, %keep: i1, %number: f32, %b: f32):
        %t = arith.addf %s, %b : f32
        %low = arith.constant -1.0e+04 : f32
        %u = arith.select %keep, %t, %low : f32
        attn.yield %u : f32
      } -> tensor<?x64xf32>
  return %a : tensor<?x64xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#m = affine_map<(q, k, d, e) -> (q, k)>
#t = affine_map<(q, k, d, e) -> (k, q)>
#p = affine_map<(q, k, d, e) -> (k)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// These masks are not packed: %a has one element for each key, %b has keys before queries, tiles of %c begin within a
// word, and %d has the schedule whole-scores.
// CHECK-LABEL: @left_alone(
// CHECK-NOT: attn.pack_mask
func.func @left_alone(%m: tensor<80x80xi1>, %p: tensor<80xi1>, %x: tensor<80x64xf32>, %e: tensor<80x64xf32>)
    -> (tensor<80x64xf32>, tensor<80x64xf32>, tensor<80x64xf32>, tensor<80x64xf32>) {
  %a = attn.attention ins(%x, %x, %x : tensor<80x64xf32>, tensor<80x64xf32>, tensor<80x64xf32>)
      captures(%p : tensor<80xi1>) outs(%e : tensor<80x64xf32>) mask(#attn.dense<0>)
      plan(<"per-head", q = 48, k = 64>) {indexing_maps = [#q, #k, #v, #p, #o], scale = 1.0 : f32} -> tensor<80x64xf32>
  %b = attn.attention ins(%x, %x, %x : tensor<80x64xf32>, tensor<80x64xf32>, tensor<80x64xf32>)
      captures(%m : tensor<80x80xi1>) outs(%e : tensor<80x64xf32>) mask(#attn.dense<0>)
      plan(<"per-head", q = 48, k = 64>) {indexing_maps = [#q, #k, #v, #t, #o], scale = 1.0 : f32} -> tensor<80x64xf32>
  %c = attn.attention ins(%x, %x, %x : tensor<80x64xf32>, tensor<80x64xf32>, tensor<80x64xf32>)
      captures(%m : tensor<80x80xi1>) outs(%e : tensor<80x64xf32>) mask(#attn.dense<0>)
      plan(<"per-head", q = 48, k = 40>) {indexing_maps = [#q, #k, #v, #m, #o], scale = 1.0 : f32} -> tensor<80x64xf32>
  %d = attn.attention ins(%x, %x, %x : tensor<80x64xf32>, tensor<80x64xf32>, tensor<80x64xf32>)
      captures(%m : tensor<80x80xi1>) outs(%e : tensor<80x64xf32>) mask(#attn.dense<0>)
      plan(<"whole-scores", q = 8, k = 64>) {indexing_maps = [#q, #k, #v, #m, #o], scale = 1.0 : f32} -> tensor<80x64xf32>
  return %a, %b, %c, %d : tensor<80x64xf32>, tensor<80x64xf32>, tensor<80x64xf32>, tensor<80x64xf32>
}
