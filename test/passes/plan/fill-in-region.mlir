// RUN: attn-opt %s -attn-fill-in-region | FileCheck %s

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#m = affine_map<(q, k, d, e) -> (k)>
#o = affine_map<(q, k, d, e) -> (q, e)>

// A schedule that computes all pairs gives hidden pairs the fill in the region.
// CHECK-LABEL: @whole_scores(
// CHECK: attn.attention
// CHECK-NOT: mask(
// CHECK-NOT: fill =
// CHECK: ^bb0(%[[Q:.*]]: index, %[[K:.*]]: index, %[[S:.*]]: f32, %[[C:.*]]: i1):
// CHECK: %[[BEFORE:.*]] = arith.cmpi sge
// CHECK: %[[NONZERO:.*]] = arith.cmpi ne, %[[C]], %false
// CHECK: %[[KEPT:.*]] = arith.andi %[[BEFORE]], %[[NONZERO]]
// CHECK: %[[FILLED:.*]] = arith.select %[[KEPT]], %[[S]], %{{.*}} : f32
// CHECK: attn.yield %[[FILLED]]
func.func @whole_scores(%x: tensor<9x8xf32>, %keep: tensor<9xi1>, %out: tensor<9x8xf32>) -> tensor<9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<9x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>) captures(%keep : tensor<9xi1>) outs(%out : tensor<9x8xf32>)
      mask(#attn.and<[#attn.causal, #attn.dense<0>]>) plan(<"whole-scores", q = 8, k = 9>)
      {fill = -1.0e9 : f32, indexing_maps = [#q, #k, #v, #m, #o], scale = 1.0 : f32} -> tensor<9x8xf32>
  return %o : tensor<9x8xf32>
}

// Tiles of this schedule test their rows, so the fill stays beside the mask.
// CHECK-LABEL: @per_head(
// CHECK: mask(#attn.causal) plan(<"per-head", q = 8, k = 32>) {fill = -1.000000e+09 : f32
// CHECK-NOT: score
func.func @per_head(%x: tensor<99x8xf32>, %out: tensor<99x8xf32>) -> tensor<99x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<99x8xf32>, tensor<99x8xf32>, tensor<99x8xf32>) outs(%out : tensor<99x8xf32>)
      mask(#attn.causal) plan(<"per-head", q = 8, k = 32>)
      {fill = -1.0e9 : f32, indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<99x8xf32>
  return %o : tensor<99x8xf32>
}

// A fill that is added becomes a sum. The schedule per-head tests rows if the scores have a bound, unlike those with a
// captured bias.
// CHECK-LABEL: @added(
// CHECK-NOT: mask(
// CHECK: ^bb0(%[[Q:.*]]: index, %[[K:.*]]: index, %[[S:.*]]: f32, %[[BIAS:.*]]: f32):
// CHECK: %[[T:.*]] = arith.addf %[[S]], %[[BIAS]]
// CHECK: %[[KEPT:.*]] = arith.cmpi sge
// CHECK: %[[SUM:.*]] = arith.addf %[[T]], %cst
// CHECK: %[[FILLED:.*]] = arith.select %[[KEPT]], %[[T]], %[[SUM]]
// CHECK: attn.yield %[[FILLED]]
// CHECK: attn.attention
// CHECK-SAME: mask(#attn.causal)
func.func @added(%x: tensor<99x8xf32>, %bias: tensor<99xf32>, %out: tensor<99x8xf32>) -> (tensor<99x8xf32>, tensor<99x8xf32>) {
  %o = attn.attention ins(%x, %x, %x : tensor<99x8xf32>, tensor<99x8xf32>, tensor<99x8xf32>) captures(%bias : tensor<99xf32>) outs(%out : tensor<99x8xf32>)
      mask(#attn.causal) plan(<"per-head", q = 8, k = 32>)
      {added, fill = -1.0e4 : f32, indexing_maps = [#q, #k, #v, #m, #o], scale = 1.0 : f32} score {
      ^bb0(%q: index, %k: index, %s: f32, %b: f32):
        %t = arith.addf %s, %b : f32
        attn.yield %t : f32
      } -> tensor<99x8xf32>
  %p = attn.attention ins(%x, %x, %x : tensor<99x8xf32>, tensor<99x8xf32>, tensor<99x8xf32>) outs(%out : tensor<99x8xf32>)
      mask(#attn.causal) plan(<"per-head", q = 8, k = 32>)
      {added, fill = -1.0e4 : f32, indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<99x8xf32>
  return %o, %p : tensor<99x8xf32>, tensor<99x8xf32>
}
