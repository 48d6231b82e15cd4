// The score of a hidden pair is the sum of a softcap and -2000. Such pairs count only in rows that keep no pair: here,
// the first three. The sums are rounded to f32, so the probabilities of these rows have an error of about 1e-4.
// RUN: attn-run %s --reference --tolerance=1e-3 --opt-report | FileCheck %s
// RUN: attn-run %s --reference --tolerance=1e-3 --target=x86-64
// RUN: attn-run %s --reference --tolerance=1e-3 --target=x86-64-v3
// RUN: attn-run %s --reference --tolerance=2e-2 --compute=bf16
// CHECK: mask #attn.causal<offset = -3> with fill -2000 added, tiles skipped
// CHECK: tiles: {{[0-9]+}} run, {{[1-9][0-9]*}} skipped

// The schedule phased does the same; the others compute all pairs.
// RUN: sed 's/) {added/) plan(<"phased", q = 16, k = 64>) {added/' %s > %t.phased.mlir
// RUN: attn-run %t.phased.mlir --reference --tolerance=1e-3
// RUN: sed 's/) {added/) plan(<"decode", q = 4, k = 64, part = 128>) {added/' %s > %t.decode.mlir
// RUN: attn-run %t.decode.mlir --reference --tolerance=1e-3
// RUN: sed 's/) {added/) plan(<"unfused", q = 8, k = 256>) {added/' %s > %t.unfused.mlir
// RUN: attn-run %t.unfused.mlir --reference --tolerance=1e-3

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>

func.func @causal(%q: tensor<2x250x64xf32>, %k: tensor<2x250x64xf32>, %v: tensor<2x250x64xf32>) -> tensor<2x250x64xf32> {
  %e = tensor.empty() : tensor<2x250x64xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x250x64xf32>, tensor<2x250x64xf32>, tensor<2x250x64xf32>)
      outs(%e : tensor<2x250x64xf32>) mask(#attn.causal<offset = -3>) {added, fill = -2.0e3 : f32, indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} score {
      ^bb0(%b: index, %i: index, %j: index, %s: f32):
        %cap = arith.constant 8.0 : f32
        %t = math.tanh %s : f32
        %u = arith.mulf %t, %cap : f32
        attn.yield %u : f32
      } -> tensor<2x250x64xf32>
  return %o : tensor<2x250x64xf32>
}
