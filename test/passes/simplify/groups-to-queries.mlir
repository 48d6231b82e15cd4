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
// CHECK-DAG: #[[OLD_Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d5)>

// CHECK-LABEL: @one_query
// CHECK: indexing_maps = [#[[Q]], #[[K]], #[[V]], #[[O]]]
func.func @one_query(%q: tensor<2x8x4x1x64xf32>, %k: tensor<2x8x?x64xf32>, %e: tensor<2x8x4x1x64xf32>) -> tensor<2x8x4x1x64xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<2x8x4x1x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
      outs(%e : tensor<2x8x4x1x64xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4x1x64xf32>
  return %o : tensor<2x8x4x1x64xf32>
}

// What a mask and a region capture keeps its shape; the region's coordinates follow.
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

// What a causal mask keeps of a query depends on which one it is.
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
