// RUN: attn-opt %s -attn-decompose-attention -verify-diagnostics

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#w = affine_map<(q, k, d, e) -> (k floordiv 32, q)>
#o = affine_map<(q, k, d, e) -> (q, e)>
func.func @packed(%w: tensor<16x48xi32>, %q: tensor<48x64xf32>, %k: tensor<500x64xf32>, %e: tensor<48x64xf32>) -> tensor<48x64xf32> {
  // expected-error @+1 {{expected schedule per-head or phased for a packed mask, got unfused}}
  %o = attn.attention ins(%q, %k, %k : tensor<48x64xf32>, tensor<500x64xf32>, tensor<500x64xf32>)
      captures(%w : tensor<16x48xi32>) outs(%e : tensor<48x64xf32>) mask(#attn.dense<0>) plan(<unfused, q = 48, k = 64>)
      {indexing_maps = [#q, #k, #v, #w, #o], scale = 1.0 : f32} -> tensor<48x64xf32>
  return %o : tensor<48x64xf32>
}
