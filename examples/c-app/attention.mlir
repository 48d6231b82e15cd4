// Causal attention of 4 heads over a sequence of any length up to 1024: query i sees the keys 0 to i.

#q = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, q, k, d, e) -> (h, k, e)>
#o = affine_map<(h, q, k, d, e) -> (h, q, e)>

func.func @attend(%q: tensor<4x?x64xf32> {attn.name = "q", attn.dims = ["", "length", ""]},
                  %k: tensor<4x?x64xf32> {attn.name = "k", attn.dims = ["", "length", ""]},
                  %v: tensor<4x?x64xf32> {attn.name = "v", attn.dims = ["", "length", ""]})
    -> (tensor<4x?x64xf32> {attn.name = "out", attn.dims = ["", "length", ""]})
    attributes {attn.symbols = [#attn.symbol<"length", 0 to 1024>]} {
  %c1 = arith.constant 1 : index
  %length = tensor.dim %q, %c1 : tensor<4x?x64xf32>
  %init = tensor.empty(%length) : tensor<4x?x64xf32>
  %out = attn.attention
      ins(%q, %k, %v : tensor<4x?x64xf32>, tensor<4x?x64xf32>, tensor<4x?x64xf32>)
      outs(%init : tensor<4x?x64xf32>) mask(#attn.causal<offset = 0>)
      {indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} -> tensor<4x?x64xf32>
  return %out : tensor<4x?x64xf32>
}
