// RUN: attn-opt %s | attn-opt | FileCheck %s

// CHECK-LABEL: @key_range
// CHECK-SAME: %[[B:.*]]: index, %[[Q:.*]]: index, %[[ROWS:.*]]: index, %[[N:.*]]: index, %[[L:.*]]: index)
func.func @key_range(%b: index, %q: index, %rows: index, %n: index, %l: index) {
  // CHECK: attn.key_range rows(%[[Q]], %[[ROWS]]) keys(%[[N]]) step 128
  %0:4 = attn.key_range rows(%q, %rows) keys(%n) step 128
  // CHECK: attn.key_range batch(%[[B]], %[[B]]) rows(%[[Q]], %[[ROWS]]) keys(%[[N]]) step 64
  // CHECK-SAME: symbols(%[[L]], %[[L]]) mask(#attn.and<[#attn.causal, #attn.lengths<0>]>)
  %1:4 = attn.key_range batch(%b, %b) rows(%q, %rows) keys(%n) step 64 symbols(%l, %l)
      mask(#attn.and<[#attn.causal, #attn.lengths<0>]>)
  return
}
