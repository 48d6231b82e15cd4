// RUN: attn-opt %s | attn-opt | FileCheck %s

// Default values are not printed.
// CHECK-LABEL: @masks
// CHECK-SAME: m0 = #attn.causal, m1 = #attn.causal<offset = -3>, m2 = #attn.causal,
// CHECK-SAME: m3 = #attn.window<left = 255, right = 0>, m4 = #attn.window<left = -1, right = 3, offset = 7>,
// CHECK-SAME: m5 = #attn.lengths<2>, m6 = #attn.dense<0>, m7 = #attn.dense<1, keeps = zero>,
// CHECK-SAME: m8 = #attn.and<[]>, m9 = #attn.and<[#attn.causal, #attn.and<[#attn.lengths<0>]>]>
func.func private @masks() attributes {
  m0 = #attn.causal, m1 = #attn.causal<offset = -3>, m2 = #attn.causal<offset = 0>,
  m3 = #attn.window<left = 255, right = 0>, m4 = #attn.window<left = -1, right = 3, offset = 7>,
  m5 = #attn.lengths<2>, m6 = #attn.dense<0>, m7 = #attn.dense<1, keeps = zero>,
  m8 = #attn.and<[]>, m9 = #attn.and<[#attn.causal, #attn.and<[#attn.lengths<0>]>]>}
