// RUN: attn-opt %s -attn-tile-keys -canonicalize -split-input-file -verify-diagnostics | FileCheck %s

#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>
// Three loops run over partial tiles of keys, full tiles, and partial tiles again. The scores of a partial tile are a
// slice of an allocation that has the size of a full tile.
// CHECK-LABEL: @causal(
// CHECK-SAME: %[[Q:.*]]: tensor<1x1x48x64xf32>, %[[K:.*]]: tensor<1x1x?x64xf32>, %[[V:.*]]: tensor<1x1x?x64xf32>, %[[E:.*]]: tensor<1x1x48x64xf32>, %[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index)
// CHECK: %[[N:.*]] = tensor.dim %[[K]]
// CHECK: %[[OUT:.*]] = tensor.extract_slice %[[E]]{{.*}} to tensor<48x64xf32>
// CHECK: %[[Q2:.*]] = tensor.extract_slice %[[Q]]{{.*}} to tensor<48x64xf32>
// The pack multiplies the queries by the scale, which is a power of two.
// CHECK: attn.pack scale(1.250000e-01) ins(%[[Q2]] : tensor<48x64xf32>) outs(%{{.*}} : tensor<1x64x48xf32>)
// CHECK: %[[QP:.*]] = tensor.extract_slice {{.*}} to tensor<64x48xf32>
// CHECK: %[[INIT:.*]]:3 = attn.online_init
// CHECK: %[[LO:.*]], %[[FULL_LO:.*]], %[[FULL_HI:.*]], %[[HI:.*]] = attn.key_range batch(%[[B]], %[[H]]) rows(%[[I]], %{{.*}}) keys(%[[N]]) step 128 mask(#attn.causal)
// CHECK: %[[DONE:.*]] = affine.apply #{{.*}}()[%[[LO]], %[[HI]]]
// CHECK: %[[SKIPPED:.*]] = affine.apply #{{.*}}()[%[[LO]], %[[HI]], %[[N]]]
// CHECK: attn.count_tiles run(%[[DONE]]) skipped(%[[SKIPPED]])
// CHECK: %[[BEFORE:.*]]:3 = scf.for %[[J:.*]] = %[[LO]] to %[[FULL_LO]] step %{{.*}} iter_args(%{{.*}} = %[[INIT]]#0, %{{.*}} = %[[INIT]]#1, %{{.*}} = %[[INIT]]#2)
// CHECK: attn.online_step {{.*}} mask(#attn.causal)
// CHECK: %[[FULL:.*]]:3 = scf.for %[[J:.*]] = %[[FULL_LO]] to %[[FULL_HI]] step %{{.*}} iter_args(%{{.*}} = %[[BEFORE]]#0, %{{.*}} = %[[BEFORE]]#1, %{{.*}} = %[[BEFORE]]#2)
// CHECK: %[[KJ:.*]] = tensor.extract_slice %[[K]][0, 0, %[[J]], 0] [1, 1, 128, 64]
// CHECK: %[[VJ:.*]] = tensor.extract_slice %[[V]][0, 0, %[[J]], 0] [1, 1, 128, 64]
// CHECK: %[[S:.*]] = tensor.empty() : tensor<128x48xf32>
// CHECK-NOT: mask
// CHECK: attn.online_step ins(%[[QP]], %[[KJ]], %[[VJ]] : {{.*}}) outs(%[[S]], {{.*}} at(%[[B]], %[[H]], %[[I]], %[[J]]) {capture_maps = [], scale
// CHECK: %[[AFTER:.*]]:3 = scf.for %[[J:.*]] = %[[FULL_HI]] to %[[HI]] step %{{.*}} iter_args(%{{.*}} = %[[FULL]]#0, %{{.*}} = %[[FULL]]#1, %{{.*}} = %[[FULL]]#2)
// CHECK: %[[REST:.*]] = affine.min #{{.*}}(%[[J]])[%[[HI]]]
// CHECK: %[[KJ:.*]] = tensor.extract_slice %[[K]][0, 0, %[[J]], 0] [1, 1, %[[REST]], 64]
// CHECK: %[[TILE:.*]] = tensor.empty() : tensor<128x48xf32>
// CHECK: %[[S:.*]] = tensor.extract_slice %[[TILE]][0, 0] [%[[REST]], 48]
// CHECK: attn.online_step ins(%[[QP]], %[[KJ]], {{.*}}) outs(%[[S]], {{.*}} mask(#attn.causal)
// CHECK: %[[O:.*]] = attn.online_finish ins(%[[AFTER]]#1, %[[AFTER]]#2 : {{.*}}) outs(%[[OUT]] :
// CHECK: tensor.insert_slice %[[O]] into %[[E]]
func.func @causal(%q: tensor<1x1x48x64xf32>, %k: tensor<1x1x?x64xf32>, %v: tensor<1x1x?x64xf32>, %e: tensor<1x1x48x64xf32>, %b: index, %h: index, %i: index) -> tensor<1x1x48x64xf32> {
  %c0 = arith.constant 0 : index
  %o = attn.attention ins(%q, %k, %v : tensor<1x1x48x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>) outs(%e : tensor<1x1x48x64xf32>) at(%b, %h, %i, %c0)
      mask(#attn.causal) plan(<"per-head", q = 48, k = 128>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<1x1x48x64xf32>
  return %o : tensor<1x1x48x64xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// Without a mask, no partial tiles precede the full tiles, and the last keys are not masked. Rows of temporaries keep a
// static stride.
// CHECK-LABEL: @no_mask(
// CHECK: %[[STATE:.*]] = tensor.empty() : tensor<32x48xf32>
// CHECK: tensor.extract_slice %[[STATE]][0, 0] [32, %{{.*}}]
// CHECK: %{{.*}}, %[[FULL_LO:.*]], %[[FULL_HI:.*]], %[[HI:.*]] = attn.key_range
// CHECK-NOT: mask
// CHECK: scf.for %{{.*}} = %[[FULL_LO]] to %[[FULL_HI]]
// CHECK: scf.for %{{.*}} = %[[FULL_HI]] to %[[HI]]
// CHECK-NOT: scf.for
// CHECK: attn.online_finish {{.*}} {empty_row = #attn.empty_row<nan>}
func.func @no_mask(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x32xf32>, %e: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x32xf32>) outs(%e : tensor<?x32xf32>)
      plan(<"per-head", q = 48, k = 128>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32, empty_row = #attn.empty_row<nan>} -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#c = affine_map<(q, k, d, e) -> (q, k)>
#o = affine_map<(q, k, d, e) -> (q, e)>
module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>} {
// Steps compute whole vectors of 8 queries. The bounds of the keys are those of the queries that exist, and only these
// are written.
// CHECK-DAG: #[[WHOLE:.*]] = affine_map<()[s0] -> ((s0 ceildiv 8) * 8)>
// CHECK-LABEL: @whole_vectors(
// CHECK: %[[N:.*]] = tensor.dim %{{.*}}, %c0
// CHECK: %[[VECTORS:.*]] = affine.apply #[[WHOLE]]()[%[[N]]]
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0] [1, 64, %[[VECTORS]]]
// CHECK: attn.key_range rows(%{{.*}}, %[[N]]) keys
// CHECK: %[[SUM:.*]] = tensor.extract_slice %{{.*}}[0] [%[[N]]] [1]
// CHECK: %[[ACC:.*]] = tensor.extract_slice %{{.*}}[0, 0] [32, %[[N]]] [1, 1]
// CHECK: attn.online_finish ins(%[[SUM]], %[[ACC]] :
func.func @whole_vectors(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x32xf32>, %e: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x32xf32>) outs(%e : tensor<?x32xf32>)
      mask(#attn.causal) plan(<"per-head", q = 24, k = 128>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}

// A bias has no elements for queries that do not exist.
// CHECK-LABEL: @bias(
// CHECK: %[[N:.*]] = tensor.dim %{{.*}}, %c0
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0] [1, 64, %[[N]]]
func.func @bias(%q: tensor<?x64xf32>, %k: tensor<?x64xf32>, %v: tensor<?x32xf32>, %c: tensor<?x?xf32>, %e: tensor<?x32xf32>) -> tensor<?x32xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x32xf32>) captures(%c : tensor<?x?xf32>) outs(%e : tensor<?x32xf32>)
      plan(<"per-head", q = 24, k = 128>) {indexing_maps = [#q, #k, #v, #c, #o], scale = 1.25e-01 : f32} score {
      ^bb0(%i: index, %j: index, %s: f32, %b: f32):
        %t = arith.addf %s, %b : f32
        attn.yield %t : f32
      } -> tensor<?x32xf32>
  return %o : tensor<?x32xf32>
}
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, d, k)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#n = affine_map<(b, q, k, d, e) -> (b)>
#c = affine_map<(b, q, k, d, e) -> (q, k)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#p = affine_map<(b, q, k, d, e) -> (b, q, k)>
// Keys in the order (d, k) are transposed tile by tile, and captured tiles are packed as (k, q). Steps of full tiles
// drop captured values that only the mask reads. A second set of loops computes the probabilities from the final state.
// CHECK-LABEL: @captures(
// CHECK-SAME: %[[N:[^ ]*]]: tensor<1xi64>, %[[C:[^ ]*]]: tensor<48x256xf32>
// CHECK: %[[ELEMENT:.*]] = tensor.extract %[[N]]
// CHECK: %[[LENGTH:.*]] = arith.index_cast %[[ELEMENT]]
// CHECK: %[[LO:.*]], %[[FULL_LO:.*]], %[[FULL_HI:.*]], %[[HI:.*]] = attn.key_range {{.*}} symbols(%[[LENGTH]], %[[LENGTH]]) mask(#attn.lengths<0>)
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[FULL_LO]]
// CHECK: attn.online_step {{.*}} captures(%{{.*}}, %{{.*}} : tensor<i64>, tensor<?x48xf32>) {{.*}} mask(#attn.lengths<0>)
// CHECK: scf.for %[[J:.*]] = %[[FULL_LO]] to %[[FULL_HI]]
// CHECK: %[[KT:.*]] = linalg.transpose ins(%{{.*}} : tensor<64x128xf32>) outs(%{{.*}} : tensor<128x64xf32>)
// CHECK: %[[CJ:.*]] = tensor.extract_slice %[[C]][0, %[[J]]] [48, 128]
// CHECK: attn.pack ins(%[[CJ]] : tensor<48x128xf32>) outs(%{{.*}} : tensor<1x128x48xf32>)
// CHECK: attn.online_step ins(%{{.*}}, %[[KT]], %{{.*}} : {{.*}}) captures(%{{.*}} : tensor<128x48xf32>)
// CHECK-NEXT: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: f32, %{{.*}}: f32):
// CHECK: %[[STATE:.*]]:3 = scf.for %{{.*}} = %[[FULL_HI]] to %[[HI]]
// CHECK: attn.online_finish ins(%[[STATE]]#1, %[[STATE]]#2 :
// CHECK: scf.for
// CHECK: %[[P:.*]] = attn.online_probabilities ins(%{{.*}}, %{{.*}}, %[[STATE]]#0, %[[STATE]]#1 : {{.*}} mask(#attn.lengths<0>)
// CHECK: linalg.transpose ins(%[[P]] :
func.func @captures(%q: tensor<1x48x64xf32>, %k: tensor<1x64x256xf32>, %v: tensor<1x256x32xf32>, %n: tensor<1xi64>, %c: tensor<48x256xf32>,
                    %e: tensor<1x48x32xf32>, %w: tensor<1x48x256xf32>) -> (tensor<1x48x32xf32>, tensor<1x48x256xf32>) {
  %o:2 = attn.attention ins(%q, %k, %v : tensor<1x48x64xf32>, tensor<1x64x256xf32>, tensor<1x256x32xf32>)
      captures(%n, %c : tensor<1xi64>, tensor<48x256xf32>) outs(%e, %w : tensor<1x48x32xf32>, tensor<1x48x256xf32>)
      mask(#attn.lengths<0>) plan(<"per-head", q = 48, k = 128>) {indexing_maps = [#q, #k, #v, #n, #c, #o, #p], scale = 1.25e-01 : f32} score {
      ^bb0(%b: index, %i: index, %j: index, %s: f32, %length: i64, %bias: f32):
        %t = arith.addf %s, %bias : f32
        attn.yield %t : f32
      } -> tensor<1x48x32xf32>, tensor<1x48x256xf32>
  return %o#0, %o#1 : tensor<1x48x32xf32>, tensor<1x48x256xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (e, q)>
// The rows of the result are transposed for an output whose columns are the queries.
// CHECK-LABEL: @transposed_out(
// CHECK: %[[ROWS:.*]] = attn.online_finish {{.*}} -> tensor<8x8xf32>
// CHECK: %[[COLUMNS:.*]] = linalg.transpose ins(%[[ROWS]] : tensor<8x8xf32>) {{.*}} permutation = [1, 0]
// CHECK: return %[[COLUMNS]]
func.func @transposed_out(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(%x : tensor<8x8xf32>)
      plan(<"per-head", q = 16, k = 8>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<8x8xf32>
  return %o : tensor<8x8xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// CHECK-LABEL: @no_plan(
// CHECK-NEXT: attn.attention
func.func @no_plan(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(%x : tensor<8x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<8x8xf32>
  return %o : tensor<8x8xf32>
}

// -----

#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>
// The state starts from the sink. Steps get a region that yields the score unchanged, because without a region the
// maximum in the state would be that of the scores before scaling.
// CHECK-LABEL: @sink(
// CHECK: %[[INIT:.*]]:3 = attn.online_init
// CHECK: %[[START:.*]]:2 = linalg.generic {{.*}} ins(%{{.*}} : tensor<f32>) outs(%[[INIT]]#0, %[[INIT]]#1 :
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[START]]#0, %{{.*}} = %[[START]]#1, %{{.*}} = %[[INIT]]#2)
// CHECK: attn.online_step
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32):
// CHECK-NEXT: attn.yield %[[S]]
func.func @sink(%q: tensor<1x1x48x64xf32>, %k: tensor<1x1x?x64xf32>, %v: tensor<1x1x?x64xf32>, %sink: tensor<1xf32>, %e: tensor<1x1x48x64xf32>, %b: index, %h: index, %i: index) -> tensor<1x1x48x64xf32> {
  %c0 = arith.constant 0 : index
  %o = attn.attention ins(%q, %k, %v : tensor<1x1x48x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>) sink(%sink : tensor<1xf32>) outs(%e : tensor<1x1x48x64xf32>) at(%b, %h, %i, %c0)
      plan(<"per-head", q = 48, k = 128>) {indexing_maps = [#q, #k, #v, affine_map<(b, h, q, k, d, e) -> (h)>, #o], scale = 1.25e-01 : f32} -> tensor<1x1x48x64xf32>
  return %o : tensor<1x1x48x64xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#w = affine_map<(q, k, d, e) -> (k floordiv 32, q)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// A test of the packed mask precedes each tile. A tile without a kept pair is skipped. If all pairs are kept, the step
// does not read the packed mask. Otherwise the step covers the words that have kept pairs. The first tile begins at a
// whole word.
// CHECK: #[[$WHOLE:.*]] = affine_map<()[s0] -> ((s0 floordiv 32) * 32)>
// CHECK-LABEL: @packed(
// CHECK-SAME: %[[W:[^ ]*]]: tensor<16x48xi32>
// CHECK: %[[LO:.*]], %{{.*}}, %{{.*}}, %[[HI:.*]] = attn.key_range
// CHECK: attn.count_tiles run(%c0) skipped(
// CHECK: %[[FROM:.*]] = affine.apply #[[$WHOLE]]()[%[[LO]]]
// CHECK: scf.for %[[J:.*]] = %[[FROM]] to %[[HI]] step %c64
// CHECK: %[[BEGIN:.*]], %[[END:.*]], %[[ALL:.*]] = attn.test_mask %{{.*}} keeps zero : tensor<?x48xi32>
// CHECK: %[[ANY:.*]] = arith.cmpi ult, %[[BEGIN]], %[[END]]
// CHECK: scf.if %[[ANY]]
// CHECK: attn.count_tiles run(%c1) skipped(%c0)
// CHECK: scf.if %[[ALL]]
// CHECK: attn.online_step {{.*}} mask(#attn.window<left = 99, right = 0>)
// CHECK: } else {
// CHECK: %[[FIRST:.*]] = affine.apply #{{.*}}(%[[J]], %[[BEGIN]])
// CHECK: affine.min #{{.*}}(%{{.*}}, %[[BEGIN]], %[[END]])
// CHECK: attn.online_step {{.*}} captures(%{{.*}} : tensor<?x48xi32>) {{.*}} mask(#attn.and<[#attn.window<left = 99, right = 0>, #attn.dense<0, keeps = zero>]>) {capture_maps = [#{{.*}}]
// CHECK: } else {
// CHECK: attn.count_tiles run(%c0) skipped(%c1)
func.func @packed(%w: tensor<16x48xi32>, %q: tensor<48x64xf32>, %k: tensor<500x64xf32>, %e: tensor<48x64xf32>, %i: index) -> tensor<48x64xf32> {
  %c0 = arith.constant 0 : index
  %o = attn.attention ins(%q, %k, %k : tensor<48x64xf32>, tensor<500x64xf32>, tensor<500x64xf32>)
      captures(%w : tensor<16x48xi32>) outs(%e : tensor<48x64xf32>) at(%i, %c0)
      mask(#attn.and<[#attn.window<left = 99, right = 0>, #attn.dense<0, keeps = zero>]>) plan(<"per-head", q = 48, k = 64>)
      {indexing_maps = [#q, #k, #v, #w, #o], scale = 1.0 : f32} -> tensor<48x64xf32>
  return %o : tensor<48x64xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#w = affine_map<(q, k, d, e) -> (k floordiv 32, q)>
#s = affine_map<(q, k, d, e) -> ()>
#o = affine_map<(q, k, d, e) -> (q, e)>
// With a sink, steps get a region, in which the argument for the bit of a pair is an i1.
// CHECK-LABEL: @packed_sink(
// CHECK: attn.online_step
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: f32, %{{.*}}: i1):
func.func @packed_sink(%w: tensor<16x48xi32>, %q: tensor<48x64xf32>, %k: tensor<500x64xf32>, %sink: tensor<f32>, %e: tensor<48x64xf32>) -> tensor<48x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<48x64xf32>, tensor<500x64xf32>, tensor<500x64xf32>)
      captures(%w : tensor<16x48xi32>) sink(%sink : tensor<f32>) outs(%e : tensor<48x64xf32>)
      mask(#attn.dense<0>) plan(<"per-head", q = 48, k = 64>)
      {indexing_maps = [#q, #k, #v, #w, #s, #o], scale = 1.0 : f32} -> tensor<48x64xf32>
  return %o : tensor<48x64xf32>
}

// -----

// A packed mask needs tiles that begin at whole words.
#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#w = affine_map<(q, k, d, e) -> (k floordiv 32, q)>
#o = affine_map<(q, k, d, e) -> (q, e)>
func.func @tile_inside_word(%w: tensor<16x48xi32>, %q: tensor<48x64xf32>, %k: tensor<500x64xf32>, %e: tensor<48x64xf32>) -> tensor<48x64xf32> {
  // expected-error @+1 {{expected key tiles of whole words of 32 keys for a packed mask, got k = 40}}
  %o = attn.attention ins(%q, %k, %k : tensor<48x64xf32>, tensor<500x64xf32>, tensor<500x64xf32>)
      captures(%w : tensor<16x48xi32>) outs(%e : tensor<48x64xf32>) mask(#attn.dense<0>) plan(<"per-head", q = 48, k = 40>)
      {indexing_maps = [#q, #k, #v, #w, #o], scale = 1.0 : f32} -> tensor<48x64xf32>
  return %o : tensor<48x64xf32>
}

// -----

// The op has a packed operand that its mask does not test, so loops could begin within a word.
#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#w = affine_map<(q, k, d, e) -> (k floordiv 32, q)>
#o = affine_map<(q, k, d, e) -> (q, e)>
func.func @untested_words(%w: tensor<16x48xi32>, %q: tensor<48x64xf32>, %k: tensor<500x64xf32>, %e: tensor<48x64xf32>) -> tensor<48x64xf32> {
  // expected-error @+1 {{expected the mask to test packed operand 0}}
  %o = attn.attention ins(%q, %k, %k : tensor<48x64xf32>, tensor<500x64xf32>, tensor<500x64xf32>)
      captures(%w : tensor<16x48xi32>) outs(%e : tensor<48x64xf32>) mask(#attn.causal) plan(<"per-head", q = 48, k = 64>)
      {indexing_maps = [#q, #k, #v, #w, #o], scale = 1.0 : f32} score {
      ^bb0(%i: index, %j: index, %s: f32, %bit: i1):
        %t = arith.uitofp %bit : i1 to f32
        %u = arith.addf %s, %t : f32
        attn.yield %u : f32
      } -> tensor<48x64xf32>
  return %o : tensor<48x64xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
#p = affine_map<(q, k, d, e) -> (q, k)>
// Every step gets the register blocks of its products. Steps with hidden pairs get the block named `masked` for values.
// CHECK-LABEL: @blocks(
// CHECK: attn.online_step {{.*}} {attn.blocks = {scores = #attn.block<rows = 4, vectors = 3>, values = #attn.block<rows = 8, vectors = 3>}
// CHECK: attn.online_step {{.*}} mask(#attn.causal) {attn.blocks = {scores = #attn.block<rows = 4, vectors = 3>, values = #attn.block<rows = 6, vectors = 3>}
// CHECK: attn.online_probabilities {{.*}} {attn.blocks = {scores = #attn.block<rows = 4, vectors = 3>}
#blocks = {masked = #attn.block<rows = 6, vectors = 3>, scores = #attn.block<rows = 4, vectors = 3>, values = #attn.block<rows = 8, vectors = 3>}
func.func @blocks(%q: tensor<48x64xf32>, %x: tensor<256x64xf32>, %e: tensor<48x64xf32>, %w: tensor<48x256xf32>)
    -> (tensor<48x64xf32>, tensor<48x64xf32>, tensor<48x256xf32>) {
  %a = attn.attention ins(%q, %x, %x : tensor<48x64xf32>, tensor<256x64xf32>, tensor<256x64xf32>) outs(%e : tensor<48x64xf32>)
      plan(<"per-head", q = 48, k = 128>) {attn.blocks = #blocks, indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<48x64xf32>
  %b:2 = attn.attention ins(%q, %x, %x : tensor<48x64xf32>, tensor<256x64xf32>, tensor<256x64xf32>) outs(%e, %w : tensor<48x64xf32>, tensor<48x256xf32>)
      mask(#attn.causal) plan(<"per-head", q = 48, k = 128>)
      {attn.blocks = #blocks, indexing_maps = [#q, #k, #v, #o, #p], scale = 1.0 : f32} -> tensor<48x64xf32>, tensor<48x256xf32>
  return %a, %b#0, %b#1 : tensor<48x64xf32>, tensor<48x64xf32>, tensor<48x256xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// Queries, values and probabilities are packed in groups of two.
// CHECK-LABEL: @groups(
// CHECK: attn.pack group(2) scale({{.*}}) ins(%{{.*}} : tensor<48x64xbf16>) outs(%{{.*}} : tensor<1x32x48x2xbf16>)
// CHECK: attn.pack from_rows group(2) ins(%{{.*}} : tensor<128x64xbf16>) outs(%{{.*}} : tensor<1x64x64x2xbf16>)
// CHECK: attn.online_step ins(%{{.*}} : tensor<32x48x2xbf16>, tensor<128x64xbf16>, tensor<64x64x2xbf16>) {{.*}} probabilities(%{{.*}} : tensor<64x48x2xbf16>)
// CHECK: attn.online_step ins(%{{.*}} : tensor<32x48x2xbf16>, tensor<120x64xbf16>, tensor<60x64x2xbf16>) {{.*}} probabilities(%{{.*}} : tensor<60x48x2xbf16>) {{.*}} mask(#attn.causal<offset = 200>)
func.func @groups(%q: tensor<48x64xbf16>, %x: tensor<256x64xbf16>, %e: tensor<48x64xbf16>) -> tensor<48x64xbf16> {
  %a = attn.attention ins(%q, %x, %x : tensor<48x64xbf16>, tensor<256x64xbf16>, tensor<256x64xbf16>) outs(%e : tensor<48x64xbf16>)
      mask(#attn.causal<offset = 200>) plan(<"per-head", q = 48, k = 128, group = 2>) {indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} -> tensor<48x64xbf16>
  return %a : tensor<48x64xbf16>
}

// Values are transposed, and zeros pad them beyond the last key.
// CHECK-LABEL: @transposed_values(
// CHECK: %[[VALUES:.*]] = attn.pack ins(%{{.*}} : tensor<96x64xbf16>) outs(%{{.*}} : tensor<1x64x96xbf16>)
// CHECK: tensor.expand_shape %[[VALUES]] {{\[}}[0], [1], [2, 3]] output_shape [1, 64, 48, 2]
// CHECK: attn.online_step transposed ins(%{{.*}} : tensor<32x48x2xbf16>, tensor<96x64xbf16>, tensor<64x48x2xbf16>) {{.*}} probabilities(%{{.*}} : tensor<48x48x2xbf16>)
// CHECK: attn.pack ins(%{{.*}} : tensor<8x64xbf16>) outs(%{{.*}} : tensor<1x64x96xbf16>)
// CHECK: attn.online_step transposed ins(%{{.*}} : tensor<32x48x2xbf16>, tensor<8x64xbf16>, tensor<64x4x2xbf16>) {{.*}} probabilities(%{{.*}} : tensor<4x48x2xbf16>)
func.func @transposed_values(%q: tensor<48x64xbf16>, %x: tensor<200x64xbf16>, %e: tensor<48x64xbf16>) -> tensor<48x64xbf16> {
  %a = attn.attention ins(%q, %x, %x : tensor<48x64xbf16>, tensor<200x64xbf16>, tensor<200x64xbf16>) outs(%e : tensor<48x64xbf16>)
      plan(<"per-head", q = 48, k = 96, group = 2, transposes = true>) {indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} -> tensor<48x64xbf16>
  return %a : tensor<48x64xbf16>
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#i = affine_map<(b, q, k, d, e) -> (q, k)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b, q)>
// The op computes the state of a part of the keys, from key %j on. Queries are rows, scaled in f32; keys stay bf16.
// The range of keys is relative to all keys, so the first key of the part is subtracted from it.
// CHECK-DAG: #[[END:.*]] = affine_map<()[s0] -> (s0 + 1024)>
// CHECK-DAG: #[[FROM:.*]] = affine_map<()[s0, s1] -> (-s0 + s1, 0)>
// CHECK-LABEL: @part(
// CHECK-SAME: %[[K:[^:]*]]: tensor<1x1024x64xbf16>, %[[I:[^:]*]]: tensor<4x1024xf32>, %[[E:[^:]*]]: tensor<1x4x64xf32>, %[[M:[^:]*]]: tensor<1x4xf32>, %[[B:[^:]*]]: index, %[[J:[^:]*]]: index
// CHECK: %[[OUT:.*]] = tensor.extract_slice %[[E]]
// CHECK: %[[QUERIES:.*]] = linalg.generic
// CHECK: arith.extf
// CHECK: arith.mulf
// CHECK: %[[MAX:.*]] = tensor.extract_slice %[[M]]{{.*}} to tensor<4xf32>
// CHECK: attn.online_init rows outs(%[[MAX]], %{{.*}}, %[[OUT]] : tensor<4xf32>, tensor<4xf32>, tensor<4x64xf32>)
// CHECK: %[[KEYS:.*]] = affine.apply #[[END]]()[%[[J]]]
// CHECK: %[[LO:.*]], %[[FULL_LO:.*]], %{{.*}}, %[[HI:.*]] = attn.key_range batch(%[[B]]) rows(%{{.*}}, %c4) keys(%[[KEYS]]) step 512 mask(#attn.window<left = 99, right = 0>)
// CHECK-DAG: %[[FIRST_FULL:.*]] = affine.max #[[FROM]]()[%[[J]], %[[FULL_LO]]]
// CHECK-DAG: %[[FIRST:.*]] = affine.max #[[FROM]]()[%[[J]], %[[LO]]]
// CHECK: scf.for %[[AT:.*]] = %[[FIRST]] to %[[FIRST_FULL]] step %c512
// CHECK: tensor.extract_slice %[[I]][0, %[[AT]]] [4, %{{.*}}]
// CHECK: attn.online_step rows ins(%[[QUERIES]], %{{.*}}, %{{.*}} : tensor<4x64xf32>, tensor<?x64xbf16>, tensor<?x64xbf16>) captures(%{{.*}} : tensor<4x?xf32>) outs(%{{.*}} : tensor<4x?xf32>,
// CHECK-SAME: {capture_maps = [#{{.*}}]
// CHECK-NOT: attn.online_finish
// CHECK: %[[ACC:.*]] = tensor.insert_slice
// CHECK: return %[[ACC]]
func.func @part(%k: tensor<1x1024x64xbf16>, %i: tensor<4x1024xf32>, %e: tensor<1x4x64xf32>, %m: tensor<1x4xf32>, %b: index, %j: index, %q: tensor<1x4x64xbf16>) -> (tensor<1x4x64xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
  %c100 = arith.constant 100 : index
  %o:3 = attn.attention ins(%q, %k, %k : tensor<1x4x64xbf16>, tensor<1x1024x64xbf16>, tensor<1x1024x64xbf16>) captures(%i : tensor<4x1024xf32>)
      state outs(%e, %m, %m : tensor<1x4x64xf32>, tensor<1x4xf32>, tensor<1x4xf32>) at(%b, %c100, %j) mask(#attn.window<left = 99, right = 0>)
      plan(<"decode", q = 4, k = 512, part = 1024>) {indexing_maps = [#q, #k, #v, #i, #o, #s, #s], scale = 1.5e-01 : f32}
      score {
      ^bb0(%bi: index, %qi: index, %ki: index, %x: f32, %bias: f32):
        %y = arith.addf %x, %bias : f32
        attn.yield %y : f32
      } -> tensor<1x4x64xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  return %o#0, %o#1, %o#2 : tensor<1x4x64xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (d, k)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#w = affine_map<(q, k, d, e) -> (k floordiv 32, q)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// The words of the mask decide how many keys a step transposes. The allocation for the transposed keys has the static
// size of a full tile.
// CHECK-LABEL: @packed_transposed(
// CHECK: attn.test_mask
// CHECK: %[[COPY:.*]] = tensor.empty() : tensor<64x64xf32>
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[COPY]][0, 0] [%{{.*}}, 64] [1, 1]
// CHECK: linalg.transpose ins(%{{.*}} : tensor<64x?xf32>) outs(%[[PART]] : tensor<?x64xf32>)
func.func @packed_transposed(%w: tensor<16x48xi32>, %q: tensor<48x64xf32>, %k: tensor<64x500xf32>, %v: tensor<500x64xf32>, %e: tensor<48x64xf32>) -> tensor<48x64xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<48x64xf32>, tensor<64x500xf32>, tensor<500x64xf32>)
      captures(%w : tensor<16x48xi32>) outs(%e : tensor<48x64xf32>) mask(#attn.dense<0>) plan(<"per-head", q = 48, k = 64>)
      {indexing_maps = [#q, #k, #v, #w, #o], scale = 1.0 : f32} -> tensor<48x64xf32>
  return %o : tensor<48x64xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// If the maximum of a query is not far above the fill, all its keys are computed, with the fill as the score of hidden
// pairs. The maximum is a product without the scale, and so is the bound: (-1e4 + 56 + 1e4 * 2^-22) / 1.25 = -7955.2.
// CHECK-LABEL: @fill(
// CHECK: %[[BOUND:.*]] = arith.constant -7955.{{.*}} : f32
// CHECK: attn.online_step {{.*}} mask(#attn.causal)
// CHECK: %[[ANY:.*]] = scf.for
// CHECK: %[[MAX:.*]] = tensor.extract
// CHECK: arith.cmpf ogt, %[[MAX]], %[[BOUND]]
// CHECK: %[[CHOSEN:.*]]:2 = scf.if %[[ANY]]
// CHECK: attn.online_init
// CHECK: %[[ALL:.*]]:3 = scf.for %{{.*}} = %c0{{.*}} to %c500{{.*}} step %c64
// CHECK: attn.online_step
// CHECK-NOT: mask(
// CHECK: ^bb0(%[[Q:.*]]: index, %[[K:.*]]: index, %[[S:.*]]: f32):
// CHECK: %[[FILLED:.*]] = arith.select %{{.*}}, %[[S]], %{{.*}}
// CHECK: attn.yield %[[FILLED]]
// CHECK: attn.count_tiles run(%c8{{.*}}) skipped(%c0
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[ALL]]#1 : tensor<48xf32>, tensor<48xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[ALL]]#2 : tensor<48xf32>, tensor<64x48xf32>)
// CHECK: attn.online_finish ins(%[[CHOSEN]]#0, %[[CHOSEN]]#1
func.func @fill(%q: tensor<48x64xf32>, %k: tensor<500x64xf32>, %v: tensor<500x64xf32>, %e: tensor<48x64xf32>) -> tensor<48x64xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<48x64xf32>, tensor<500x64xf32>, tensor<500x64xf32>) outs(%e : tensor<48x64xf32>)
      mask(#attn.causal) plan(<"per-head", q = 48, k = 64>) {fill = -1.0e4 : f32, indexing_maps = [#q, #k, #v, #o], scale = 1.25 : f32} -> tensor<48x64xf32>
  return %o : tensor<48x64xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#b = affine_map<(q, k, d, e) -> (q)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// If the fill is added, hidden pairs have the sum as their score, and the maximum is compared with the captured bound of
// the query plus -1e4 + 56 + 1e4 * 2^-22. Steps do not read the bound.
// CHECK-LABEL: @added(
// CHECK-SAME: %[[BOUND:[a-z0-9]*]]: tensor<48xf32>
// CHECK: attn.online_step
// CHECK-NOT: captures
// CHECK-SAME: mask(#attn.causal)
// CHECK: scf.for
// CHECK: %[[MAX:.*]] = tensor.extract
// CHECK: %[[ROW:.*]] = tensor.extract %[[BOUND]]
// CHECK: %[[LEAST:.*]] = arith.addf %[[ROW]], %cst
// CHECK: arith.cmpf ogt, %[[MAX]], %[[LEAST]]
// CHECK: attn.online_step
// CHECK-NOT: captures
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32):
// CHECK: %[[SUM:.*]] = arith.addf %[[S]], %cst
// CHECK: arith.select %{{.*}}, %[[S]], %[[SUM]]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[BOUND]], %{{.*}} : tensor<48xf32>, tensor<48xf32>, tensor<48xf32>)
func.func @added(%q: tensor<48x64xf32>, %k: tensor<500x64xf32>, %v: tensor<500x64xf32>, %bound: tensor<48xf32>, %e: tensor<48x64xf32>) -> tensor<48x64xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<48x64xf32>, tensor<500x64xf32>, tensor<500x64xf32>) captures(%bound : tensor<48xf32>) outs(%e : tensor<48x64xf32>)
      mask(#attn.causal) plan(<"per-head", q = 48, k = 64>) {added, bounded, fill = -1.0e4 : f32, indexing_maps = [#q, #k, #v, #b, #o], scale = 0.125 : f32} -> tensor<48x64xf32>
  return %o : tensor<48x64xf32>
}
