// Hidden pairs have the score -1e9, and count only in rows without a greater score: here, in the first rows, which keep
// no pair. Loops skip the tiles that the mask hides, and compute a tile of queries with such a row again, over all keys.
// RUN: attn-run %s --reference --opt-report | FileCheck %s
// RUN: attn-run %s --reference --target=x86-64
// RUN: attn-run %s --reference --target=x86-64-v3
// RUN: attn-run %s --reference --compute=bf16 --tolerance=2e-2
// CHECK: mask #attn.causal<offset = -3> with fill -1e+09, tiles skipped
// CHECK: tiles: {{[0-9]+}} run, {{[1-9][0-9]*}} skipped

// The schedule phased does the same; the others compute all pairs.
// RUN: sed 's/) {fill/) plan(<"phased", q = 16, k = 64>) {fill/' %s > %t.phased.mlir
// RUN: attn-run %t.phased.mlir --reference
// RUN: sed 's/) {fill/) plan(<"decode", q = 4, k = 64, part = 128>) {fill/' %s > %t.decode.mlir
// RUN: attn-run %t.decode.mlir --reference
// RUN: sed 's/) {fill/) plan(<"whole-scores", q = 8, k = 256>) {fill/' %s > %t.whole.mlir
// RUN: attn-run %t.whole.mlir --reference
// RUN: sed 's/) {fill/) plan(<"unfused", q = 8, k = 256>) {fill/' %s > %t.unfused.mlir
// RUN: attn-run %t.unfused.mlir --reference

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>

func.func @causal(%q: tensor<2x256x64xf32>, %k: tensor<2x256x64xf32>, %v: tensor<2x256x64xf32>) -> tensor<2x256x64xf32> {
  %e = tensor.empty() : tensor<2x256x64xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x256x64xf32>, tensor<2x256x64xf32>, tensor<2x256x64xf32>)
      outs(%e : tensor<2x256x64xf32>) mask(#attn.causal<offset = -3>) {fill = -1.0e9 : f32, indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} -> tensor<2x256x64xf32>
  return %o : tensor<2x256x64xf32>
}
