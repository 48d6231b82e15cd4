// RUN: attnc %s -o %t.so --target=native --schedule=per-head
// RUN: %python %S/count_tiles.py %t.so --threads=1
// RUN: %python %S/count_tiles.py %t.so --threads=3

// The statistics of a call count the tiles above the diagonal that a causal mask skips.
#q = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, q, k, d, e) -> (h, k, e)>
#o = affine_map<(h, q, k, d, e) -> (h, q, e)>
func.func @forward(%q: tensor<8x512x64xf32>, %k: tensor<8x512x64xf32>, %v: tensor<8x512x64xf32>) -> tensor<8x512x64xf32> {
  %e = tensor.empty() : tensor<8x512x64xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<8x512x64xf32>, tensor<8x512x64xf32>, tensor<8x512x64xf32>) outs(%e : tensor<8x512x64xf32>)
      mask(#attn.causal) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<8x512x64xf32>
  return %o : tensor<8x512x64xf32>
}
