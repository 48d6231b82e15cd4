// RUN: attn-opt %s -attn-groups-to-queries | FileCheck %s

#q = affine_map<(b, h, g, q, k, d, e) -> (b, h, g, q, d)>
#k = affine_map<(b, h, g, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, g, q, k, d, e) -> (b, h, k, e)>
#o = affine_map<(b, h, g, q, k, d, e) -> (b, h, g, q, e)>
#mask = affine_map<(b, h, g, q, k, d, e) -> (b, q, k)>

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d3, d2, d5)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d4, d5)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d4, d6)>
// CHECK-DAG: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d3, d2, d6)>
// CHECK-DAG: #[[MASK:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d2, d4)>
// CHECK-DAG: #[[TWO_Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d2, d0, d1, d3, d5)>
// CHECK-DAG: #[[LENGTHS:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3)>
// CHECK-DAG: #[[SHARED:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d2, d4)>
// CHECK-DAG: #[[OUTER:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[OLD_Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d5)>

// CHECK-LABEL: @one_query
// CHECK: indexing_maps = [#[[Q]], #[[K]], #[[V]], #[[O]]]
func.func @one_query(%q: tensor<2x8x4x1x64xf32>, %k: tensor<2x8x?x64xf32>, %e: tensor<2x8x4x1x64xf32>) -> tensor<2x8x4x1x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<2x8x4x1x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      outs(%e : tensor<2x8x4x1x64xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4x1x64xf32>
  return %o : tensor<2x8x4x1x64xf32>
}

// Captured operands keep their shapes, and their maps change. In the region, the index of the group and that of the
// query exchange their roles.
// CHECK-LABEL: @mask_and_region
// CHECK: mask(#attn.dense<0>) {indexing_maps = [#[[Q]], #[[K]], #[[V]], #[[MASK]], #[[O]]]
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[G:.*]]: index, %[[QUERY:.*]]: index, %{{.*}}: index, %{{.*}}: f32, %{{.*}}: i1):
// CHECK: arith.index_cast %[[QUERY]] : index to i32
// CHECK: arith.index_cast %[[G]] : index to i64
func.func @mask_and_region(%q: tensor<2x8x4x1x64xf32>, %k: tensor<2x8x?x64xf32>, %mask: tensor<2x1x?xi1>, %e: tensor<2x8x4x1x64xf32>) -> tensor<2x8x4x1x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<2x8x4x1x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      captures(%mask : tensor<2x1x?xi1>) outs(%e : tensor<2x8x4x1x64xf32>) mask(#attn.dense<0>)
      {indexing_maps = [#q, #k, #v, #mask, #o], scale = 1.0 : f32} score {
  ^bb0(%b: index, %h: index, %g: index, %i: index, %j: index, %s: f32, %kept: i1):
    %head = arith.index_cast %g : index to i32
    %query = arith.index_cast %i : index to i64
    %slope = arith.sitofp %head : i32 to f32
    %row = arith.sitofp %query : i64 to f32
    %0 = arith.addf %s, %slope : f32
    %1 = arith.addf %0, %row : f32
    attn.yield %1 : f32
  } -> tensor<2x8x4x1x64xf32>
  return %o : tensor<2x8x4x1x64xf32>
}

// CHECK-LABEL: @two_queries
// CHECK: indexing_maps = [#[[OLD_Q]],
func.func @two_queries(%q: tensor<2x8x4x2x64xf32>, %k: tensor<2x8x?x64xf32>, %e: tensor<2x8x4x2x64xf32>) -> tensor<2x8x4x2x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<2x8x4x2x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      outs(%e : tensor<2x8x4x2x64xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4x2x64xf32>
  return %o : tensor<2x8x4x2x64xf32>
}

// The keys that a causal mask keeps depend on the query, so groups do not become queries.
// CHECK-LABEL: @causal
// CHECK: indexing_maps = [#[[OLD_Q]],
func.func @causal(%q: tensor<2x8x4x1x64xf32>, %k: tensor<2x8x?x64xf32>, %e: tensor<2x8x4x1x64xf32>) -> tensor<2x8x4x1x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<2x8x4x1x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      outs(%e : tensor<2x8x4x1x64xf32>) mask(#attn.causal<offset = 7>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4x1x64xf32>
  return %o : tensor<2x8x4x1x64xf32>
}

// CHECK-LABEL: @one_head_of_each
// CHECK: indexing_maps = [#[[OLD_Q]],
func.func @one_head_of_each(%q: tensor<2x8x1x1x64xf32>, %k: tensor<2x8x?x64xf32>, %e: tensor<2x8x1x1x64xf32>) -> tensor<2x8x1x1x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<2x8x1x1x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      outs(%e : tensor<2x8x1x1x64xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x1x1x64xf32>
  return %o : tensor<2x8x1x1x64xf32>
}

// Of two group dimensions, the larger one becomes the queries. The query tensor has its dimension of queries, of size
// 1, in front. A length for each member of the group becomes a length for each query.
// CHECK-LABEL: @two_groups
// CHECK: mask(#attn.lengths<0>) {indexing_maps = [#[[TWO_Q]], #{{[^,]*}}, #{{[^,]*}}, #[[LENGTHS]], #[[O]]]
func.func @two_groups(%q: tensor<1x8x2x4x64xf32>, %k: tensor<8x?x64xf32>, %n: tensor<4xi32>, %e: tensor<8x2x4x1x64xf32>) -> tensor<8x2x4x1x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<1x8x2x4x64xf32>, tensor<8x?x64xf32>, tensor<8x?x64xf32>)
      captures(%n : tensor<4xi32>) outs(%e : tensor<8x2x4x1x64xf32>) mask(#attn.lengths<0>) {indexing_maps = [
        affine_map<(h, f, g, q, k, d, e) -> (q, h, f, g, d)>, affine_map<(h, f, g, q, k, d, e) -> (h, k, d)>,
        affine_map<(h, f, g, q, k, d, e) -> (h, k, e)>, affine_map<(h, f, g, q, k, d, e) -> (g)>,
        affine_map<(h, f, g, q, k, d, e) -> (h, f, g, q, e)>], scale = 1.0 : f32} -> tensor<8x2x4x1x64xf32>
  return %o : tensor<8x2x4x1x64xf32>
}

// With a single head of keys, as in multi-query attention, a few query heads become one tile of queries. Many query
// heads (@many_groups) stay a batch dimension, which is divided among tasks.
// CHECK-LABEL: @one_head_of_keys
// CHECK: indexing_maps = [#[[Q]],
func.func @one_head_of_keys(%q: tensor<1x1x4x1x64xf32>, %k: tensor<1x1x?x64xf32>, %e: tensor<1x1x4x1x64xf32>) -> tensor<1x1x4x1x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<1x1x4x1x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>)
      outs(%e : tensor<1x1x4x1x64xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<1x1x4x1x64xf32>
  return %o : tensor<1x1x4x1x64xf32>
}

// The whole group shares one query, so the query has no group dimension that could become queries.
// CHECK-LABEL: @shared_query
// CHECK: indexing_maps = [#[[SHARED]],
func.func @shared_query(%q: tensor<8x1x64xf32>, %k: tensor<8x?x64xf32>, %bias: tensor<4x?xf32>, %e: tensor<8x4x1x64xf32>) -> tensor<8x4x1x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<8x1x64xf32>, tensor<8x?x64xf32>, tensor<8x?x64xf32>)
      captures(%bias : tensor<4x?xf32>) outs(%e : tensor<8x4x1x64xf32>) {indexing_maps = [
        affine_map<(h, g, q, k, d, e) -> (h, q, d)>, affine_map<(h, g, q, k, d, e) -> (h, k, d)>,
        affine_map<(h, g, q, k, d, e) -> (h, k, e)>, affine_map<(h, g, q, k, d, e) -> (g, k)>,
        affine_map<(h, g, q, k, d, e) -> (h, g, q, e)>], scale = 1.0 : f32} score {
  ^bb0(%h: index, %g: index, %i: index, %j: index, %s: f32, %b: f32):
    %0 = arith.addf %s, %b : f32
    attn.yield %0 : f32
  } -> tensor<8x4x1x64xf32>
  return %o : tensor<8x4x1x64xf32>
}

// The groups do not become queries, because the output has the group dimension behind the elements e, and a tile of an
// output needs queries before e.
// CHECK-LABEL: @groups_within_elements
// CHECK: indexing_maps = [#[[OUTER]],
func.func @groups_within_elements(%q: tensor<8x4x1x64xf32>, %k: tensor<8x?x64xf32>, %e: tensor<8x1x64x4xf32>) -> tensor<8x1x64x4xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<8x4x1x64xf32>, tensor<8x?x64xf32>, tensor<8x?x64xf32>)
      outs(%e : tensor<8x1x64x4xf32>) {indexing_maps = [
        affine_map<(h, g, q, k, d, e) -> (h, g, q, d)>, affine_map<(h, g, q, k, d, e) -> (h, k, d)>,
        affine_map<(h, g, q, k, d, e) -> (h, k, e)>,
        affine_map<(h, g, q, k, d, e) -> (h, q, e, g)>], scale = 1.0 : f32} -> tensor<8x1x64x4xf32>
  return %o : tensor<8x1x64x4xf32>
}

// CHECK-LABEL: @many_groups
// CHECK: indexing_maps = [#[[OLD_Q]],
func.func @many_groups(%q: tensor<1x1x32x1x64xf32>, %k: tensor<1x1x?x64xf32>, %e: tensor<1x1x32x1x64xf32>) -> tensor<1x1x32x1x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<1x1x32x1x64xf32>, tensor<1x1x?x64xf32>, tensor<1x1x?x64xf32>)
      outs(%e : tensor<1x1x32x1x64xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<1x1x32x1x64xf32>
  return %o : tensor<1x1x32x1x64xf32>
}
