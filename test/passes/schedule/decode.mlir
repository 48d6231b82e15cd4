// RUN: attn-opt %s -attn-decode -canonicalize | FileCheck %s

#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#s = affine_map<(b, h, q, k, d, e) -> (h)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>
// A task computes the attention state of 4 of the 6 queries, or of the last 2, over a part of at most 1024 keys. A
// second loop merges the states of all parts, starting from the state of the sink.
// CHECK-DAG: #[[PARTS:.*]] = affine_map<()[s0] -> (s0 ceildiv 1024)>
// CHECK-DAG: #[[QUERIES:.*]] = affine_map<(d0) -> (-d0 + 6, 4)>
// CHECK-DAG: #[[KEYS:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 1024)>
// CHECK-DAG: #[[PART:.*]] = affine_map<(d0) -> (d0 floordiv 1024)>
// CHECK-LABEL: @split(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x8x6x64xf32>, %[[K:[^:]*]]: tensor<2x8x?x64xf32>, %[[SINK:[^:]*]]: tensor<8xf32>, %[[E:[^:]*]]: tensor<2x8x6x64xf32>
// CHECK: %[[N:.*]] = tensor.dim %[[K]]
// CHECK: %[[COUNT:.*]] = affine.apply #[[PARTS]]()[%[[N]]]
// CHECK: %[[ACCS:.*]] = tensor.empty(%[[COUNT]]) : tensor<?x2x8x6x64xf32>
// CHECK: %[[STATES:.*]]:3 = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]], %[[J:.*]]) = (0, 0, 0, 0) to (2, 8, 6, %[[N]]) step (1, 1, 4, 1024) shared_outs(%[[ACC:[^ ]*]] = %[[ACCS]],
// CHECK-DAG: affine.min #[[QUERIES]](%[[I]])
// CHECK-DAG: %[[TK:.*]] = affine.min #[[KEYS]](%[[J]])[%[[N]]]
// CHECK: tensor.extract_slice %[[K]][%[[B]], %[[H]], %[[J]], 0] [1, 1, %[[TK]], 64]
// CHECK: %[[P:.*]] = affine.apply #[[PART]](%[[J]])
// CHECK: tensor.extract_slice %[[ACC]][%[[P]], %[[B]], %[[H]], %[[I]], 0] [1, 1, 1, %{{.*}}, 64] {{.*}} to tensor<1x1x?x64xf32>
// CHECK: %[[STATE:.*]]:3 = attn.attention {{.*}} state outs(
// CHECK-SAME: at(%[[B]], %[[H]], %[[I]], %[[J]]) mask(#attn.causal<offset = 7>)
// CHECK: tensor.parallel_insert_slice %[[STATE]]#0 into %[[ACC]][%[[P]], %[[B]], %[[H]], %[[I]], 0] [1, 1, 1, %{{.*}}, 64]
// CHECK: scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 8, 6) step (1, 1, 4) shared_outs(%[[OUT:.*]] = %[[E]])
// CHECK: %[[AS:.*]] = tensor.extract_slice %[[STATES]]#0[0, %[[B]], %[[H]], %[[I]], 0] [%[[COUNT]], 1, 1, %{{.*}}, 64]
// CHECK: %[[MS:.*]] = tensor.extract_slice %[[STATES]]#1
// CHECK: %[[LS:.*]] = tensor.extract_slice %[[STATES]]#2
// CHECK: %[[ONE:.*]] = tensor.extract_slice %[[SINK]][%[[H]]] [1] [1] : tensor<8xf32> to tensor<f32>
// CHECK: %[[INIT:.*]]:3 = attn.online_init rows
// CHECK: %[[START:.*]]:2 = linalg.generic {{.*}} ins(%[[ONE]] : tensor<f32>) outs(%[[INIT]]#0, %[[INIT]]#1
// CHECK: %[[MERGED:.*]]:3 = attn.online_merge rows ins(%[[MS]], %[[LS]], %[[AS]] : {{.*}}) outs(%[[START]]#0, %[[START]]#1, %[[INIT]]#2 : {{.*}}) {scale = 1.000000e+00 : f32}
// CHECK: %[[TILE:.*]] = tensor.extract_slice %[[OUT]]
// CHECK: %[[DONE:.*]] = attn.online_finish rows ins(%[[MERGED]]#1, %[[MERGED]]#2 : {{.*}}) outs(%[[TILE]]
// CHECK: tensor.parallel_insert_slice %[[DONE]] into %[[OUT]]
func.func @split(%q: tensor<2x8x6x64xf32>, %k: tensor<2x8x?x64xf32>, %sink: tensor<8xf32>, %e: tensor<2x8x6x64xf32>) -> tensor<2x8x6x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<2x8x6x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      sink(%sink : tensor<8xf32>) outs(%e : tensor<2x8x6x64xf32>) mask(#attn.causal<offset = 7>)
      plan(<"decode", q = 4, k = 512, part = 1024>) {indexing_maps = [#q, #k, #v, #s, #o], scale = 1.5e-01 : f32} -> tensor<2x8x6x64xf32>
  return %o : tensor<2x8x6x64xf32>
}

// All keys fit in one part, so a single loop computes the attention.
// CHECK-LABEL: @whole(
// CHECK: scf.forall (%{{.*}}, %{{.*}}) in (2, 8)
// CHECK-NOT: state
// CHECK: attn.attention {{.*}} plan(<decode, q = 4, k = 512, part = 1024>)
// CHECK-NOT: scf.forall (
// CHECK: return
func.func @whole(%q: tensor<2x8x4x64xf32>, %k: tensor<2x8x1024x64xf32>, %e: tensor<2x8x4x64xf32>) -> tensor<2x8x4x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<2x8x4x64xf32>, tensor<2x8x1024x64xf32>, tensor<2x8x1024x64xf32>)
      outs(%e : tensor<2x8x4x64xf32>)
      plan(<"decode", q = 4, k = 512, part = 1024>) {indexing_maps = [#q, #k, #v, #o], scale = 1.5e-01 : f32} -> tensor<2x8x4x64xf32>
  return %o : tensor<2x8x4x64xf32>
}

// An attention with another schedule stays.
// CHECK-LABEL: @per_head(
// CHECK-NOT: scf.forall
func.func @per_head(%q: tensor<2x12x480x64xf32>, %e: tensor<2x12x480x64xf32>) -> tensor<2x12x480x64xf32> {
  %o = attn.attention ins(%q, %q, %q : tensor<2x12x480x64xf32>, tensor<2x12x480x64xf32>, tensor<2x12x480x64xf32>) outs(%e : tensor<2x12x480x64xf32>)
      plan(<"per-head", q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<2x12x480x64xf32>
  return %o : tensor<2x12x480x64xf32>
}

// An op that returns a state computes it over all its keys; the keys are not divided into parts.
// CHECK-LABEL: @state(
// CHECK: scf.forall (%{{.*}}) in (2)
// CHECK: attn.attention {{.*}} state outs(
// CHECK-NOT: attn.online_merge
// CHECK: return
#qs = affine_map<(b, q, k, d, e) -> (b, q, d)>
#ks = affine_map<(b, q, k, d, e) -> (b, k, d)>
#vs = affine_map<(b, q, k, d, e) -> (b, k, e)>
#os = affine_map<(b, q, k, d, e) -> (b, q, e)>
#ms = affine_map<(b, q, k, d, e) -> (b, q)>
func.func @state(%q: tensor<2x4x16xf32>, %k: tensor<2x64x16xf32>, %e: tensor<2x4x16xf32>, %m: tensor<2x4xf32>) -> (tensor<2x4x16xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %o:3 = attn.attention ins(%q, %k, %k : tensor<2x4x16xf32>, tensor<2x64x16xf32>, tensor<2x64x16xf32>)
      state outs(%e, %m, %m : tensor<2x4x16xf32>, tensor<2x4xf32>, tensor<2x4xf32>) plan(<"decode", q = 4, k = 16, part = 32>)
      {indexing_maps = [#qs, #ks, #vs, #os, #ms, #ms], scale = 1.0 : f32} -> tensor<2x4x16xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  return %o#0, %o#1, %o#2 : tensor<2x4x16xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
