// Attentions of bf16 in which rows remain after blocks of whole tiles, at a level that adds two products of bf16. The
// probabilities of two keys are stored together, so a block of rows must not end between them.
// REQUIRES: aarch64-emulation
// DEFINE: %{check} = attn-run %s --target=aarch64-fp16-bf16 --runner="qemu-aarch64 %attn_bin/../test/aarch64/build/attn-call" \
// DEFINE:   --reference --tolerance=0.015 --entry
// RUN: %{check}=few
// RUN: %{check}=phased --schedule=phased
// RUN: %{check}=long

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>

// Four queries are one tile wide.
func.func @few(%q: tensor<4x4x64xbf16>, %k: tensor<4x256x64xbf16>, %v: tensor<4x256x64xbf16>) -> tensor<4x4x64xbf16> {
  %e = tensor.empty() : tensor<4x4x64xbf16>
  %o = attn.attention ins(%q, %k, %v : tensor<4x4x64xbf16>, tensor<4x256x64xbf16>, tensor<4x256x64xbf16>)
    outs(%e : tensor<4x4x64xbf16>) {indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} -> tensor<4x4x64xbf16>
  return %o : tensor<4x4x64xbf16>
}

func.func @phased(%q: tensor<4x4x6xbf16>, %k: tensor<4x200x6xbf16>, %v: tensor<4x200x6xbf16>) -> tensor<4x4x6xbf16> {
  %e = tensor.empty() : tensor<4x4x6xbf16>
  %o = attn.attention ins(%q, %k, %v : tensor<4x4x6xbf16>, tensor<4x200x6xbf16>, tensor<4x200x6xbf16>)
    outs(%e : tensor<4x4x6xbf16>) {indexing_maps = [#q, #k, #v, #o], scale = 0.4 : f32} -> tensor<4x4x6xbf16>
  return %o : tensor<4x4x6xbf16>
}

// A head size above 1024 splits the sums, so that blocks have fewer rows.
func.func @long(%q: tensor<1x12x1152xbf16>, %k: tensor<1x256x1152xbf16>, %v: tensor<1x256x64xbf16>) -> tensor<1x12x64xbf16> {
  %e = tensor.empty() : tensor<1x12x64xbf16>
  %o = attn.attention ins(%q, %k, %v : tensor<1x12x1152xbf16>, tensor<1x256x1152xbf16>, tensor<1x256x64xbf16>)
    outs(%e : tensor<1x12x64xbf16>) {indexing_maps = [#q, #k, #v, #o], scale = 0.03 : f32} -> tensor<1x12x64xbf16>
  return %o : tensor<1x12x64xbf16>
}
