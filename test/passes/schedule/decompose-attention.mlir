// RUN: attn-opt %s -attn-decompose-attention -split-input-file | FileCheck %s

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#p = affine_map<(b, q, k, d, e) -> (b, q, k)>
#row = affine_map<(b, q, k, d, e) -> (q, k)>

func.func @causal(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x4xf32>, %e: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x4xf32>) outs(%e : tensor<2x?x4xf32>)
      mask(#attn.causal) plan(<unfused, q = 48, k = 128>) {indexing_maps = [#q, #k, #v, #o], scale = 5.0e-01 : f32} -> tensor<2x?x4xf32>
  return %o : tensor<2x?x4xf32>
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#p = affine_map<(b, q, k, d, e) -> (b, q, k)>
#bias = affine_map<(b, q, k, d, e) -> (q, k)>
func.func @weights(%q: tensor<2x6x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>, %c: tensor<6x7xf32>, %e: tensor<2x6x4xf32>, %f: tensor<2x6x7xf32>)
    -> (tensor<2x6x4xf32>, tensor<2x6x7xf32>) {
  %o:2 = attn.attention ins(%q, %k, %v : tensor<2x6x8xf32>, tensor<2x7x8xf32>, tensor<2x7x4xf32>) captures(%c : tensor<6x7xf32>)
      outs(%e, %f : tensor<2x6x4xf32>, tensor<2x6x7xf32>) plan(<unfused, q = 16, k = 7>)
      {indexing_maps = [#q, #k, #v, #bias, #o, #p], scale = 5.0e-01 : f32, empty_row = #attn.empty_row<nan>} score {
      ^bb0(%b: index, %i: index, %j: index, %s: f32, %bias: f32):
        %t = arith.addf %s, %bias : f32
        attn.yield %t : f32
      } -> tensor<2x6x4xf32>, tensor<2x6x7xf32>
  return %o#0, %o#1 : tensor<2x6x4xf32>, tensor<2x6x7xf32>
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @other_schedule(%q: tensor<2x6x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>, %e: tensor<2x6x4xf32>) -> tensor<2x6x4xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x6x8xf32>, tensor<2x7x8xf32>, tensor<2x7x4xf32>) outs(%e : tensor<2x6x4xf32>)
      plan(<"per-head", q = 16, k = 7>) {indexing_maps = [#q, #k, #v, #o], scale = 5.0e-01 : f32} -> tensor<2x6x4xf32>
  return %o : tensor<2x6x4xf32>
}
