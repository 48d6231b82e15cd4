// A causal mask and lengths, which the call passes as an argument.
func.func @f(%q: tensor<2x?x8xf32> {attn.name = "q"}, %lengths: tensor<2xi32> {attn.name = "lengths"})
    -> tensor<2x?x8xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x8xf32>
  %e = tensor.empty(%n) : tensor<2x?x8xf32>
  %o = attn.attention ins(%q, %q, %q : tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>) captures(%lengths : tensor<2xi32>)
      outs(%e : tensor<2x?x8xf32>) mask(#attn.and<[#attn.causal, #attn.lengths<0>]>) plan(<"per-head", q = 16, k = 32>) {
      indexing_maps = [affine_map<(h, q, k, d, e) -> (h, q, d)>, affine_map<(h, q, k, d, e) -> (h, k, d)>,
                       affine_map<(h, q, k, d, e) -> (h, k, e)>, affine_map<(h, q, k, d, e) -> (h)>,
                       affine_map<(h, q, k, d, e) -> (h, q, e)>],
      scale = 0.353553385 : f32} -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}
