// RUN: attn-opt %s -attn-bound-fills -canonicalize | FileCheck %s

#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>

// The keys are shared by all heads. The region multiplies scores by 3, and the scale is 1/8, so the bound of a score is
// 2 * 3 * (1 + 1/8 * the sum of |q| * max |k|). The maximum reads four parts of 3 of the 10 keys.
// CHECK-DAG: #[[KDB:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[BD:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-DAG: #[[G:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d3)>
// CHECK-DAG: #[[B:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: @shared_keys(
// CHECK: %[[FIRST:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [2, 3, 8] [1, 1, 1]
// CHECK: %[[LAST:.*]] = tensor.extract_slice %{{.*}}[0, 7, 0] [2, 3, 8] [1, 1, 1]
// CHECK: %[[GREATEST:.*]] = linalg.generic {indexing_maps = [#[[KDB]], #[[KDB]], #[[KDB]], #[[KDB]], #[[BD]]]{{.*}} ins(%[[FIRST]], %{{.*}}, %{{.*}}, %[[LAST]] :
// CHECK: arith.maxui
// CHECK: %[[START:.*]] = linalg.fill ins(%cst{{.*}} : f32)
// CHECK: %[[BOUND:.*]] = linalg.generic {indexing_maps = [#[[Q]], #[[G]], #[[B]]]{{.*}} ins(%{{.*}}, %[[GREATEST]] : tensor<2x4x?x8xf32>, tensor<2x8xi32>) outs(%[[START]] : tensor<2x4x?xf32>)
// CHECK: %[[FACTOR:.*]] = arith.mulf %{{.*}}, %cst
// CHECK: arith.addf %{{.*}}, %[[FACTOR]]
// CHECK: attn.attention {{.*}} captures(%[[BOUND]] : tensor<2x4x?xf32>) {{.*}} {added, bounded, fill = -1.000000e+04 : f32
func.func @shared_keys(%q: tensor<2x4x?x8xf32>, %k: tensor<2x10x8xf32>, %v: tensor<2x10x8xf32>, %out: tensor<2x4x?x8xf32>) -> tensor<2x4x?x8xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x4x?x8xf32>, tensor<2x10x8xf32>, tensor<2x10x8xf32>) outs(%out : tensor<2x4x?x8xf32>)
      mask(#attn.causal) plan(<"phased", q = 8, k = 16>) {added, fill = -1.0e4 : f32, indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} score {
      ^bb0(%b: index, %h: index, %i: index, %j: index, %s: f32):
        %three = arith.constant 3.0 : f32
        %t = arith.mulf %s, %three : f32
        attn.yield %t : f32
      } -> tensor<2x4x?x8xf32>
  return %o : tensor<2x4x?x8xf32>
}

// The task computes the keys for all of its tiles of queries, so the maximum is computed before the loop.
// CHECK-LABEL: @in_loop(
// CHECK: %[[GREATEST:.*]] = linalg.generic
// CHECK: scf.for
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[GREATEST]] :
// CHECK: attn.attention
func.func @in_loop(%q: tensor<1x1x64x8xf32>, %k: tensor<1x10x8xf32>, %v: tensor<1x10x8xf32>, %out: tensor<1x1x64x8xf32>) -> tensor<1x1x64x8xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %i = %c0 to %c64 step %c8 iter_args(%acc = %out) -> tensor<1x1x64x8xf32> {
    %tile = tensor.extract_slice %q[0, 0, %i, 0] [1, 1, 8, 8] [1, 1, 1, 1] : tensor<1x1x64x8xf32> to tensor<1x1x8x8xf32>
    %into = tensor.extract_slice %acc[0, 0, %i, 0] [1, 1, 8, 8] [1, 1, 1, 1] : tensor<1x1x64x8xf32> to tensor<1x1x8x8xf32>
    %o = attn.attention ins(%tile, %k, %v : tensor<1x1x8x8xf32>, tensor<1x10x8xf32>, tensor<1x10x8xf32>) outs(%into : tensor<1x1x8x8xf32>) at(%c0, %c0, %i, %c0)
        mask(#attn.causal) plan(<"per-head", q = 8, k = 16>) {added, fill = -1.0e4 : f32, indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} -> tensor<1x1x8x8xf32>
    %next = tensor.insert_slice %o into %acc[0, 0, %i, 0] [1, 1, 8, 8] [1, 1, 1, 1] : tensor<1x1x8x8xf32> into tensor<1x1x64x8xf32>
    scf.yield %next : tensor<1x1x64x8xf32>
  }
  return %r : tensor<1x1x64x8xf32>
}

// The keys are computed by an op that will move into the tasks of the schedule per-head.
// CHECK-LABEL: @computed_keys(
// CHECK-NOT: bounded
// CHECK: return
func.func @computed_keys(%q: tensor<2x4x16x8xf32>, %x: tensor<2x10x8xf32>, %v: tensor<2x10x8xf32>, %out: tensor<2x4x16x8xf32>, %e: tensor<2x10x8xf32>) -> tensor<2x4x16x8xf32> {
  %k = linalg.exp ins(%x : tensor<2x10x8xf32>) outs(%e : tensor<2x10x8xf32>) -> tensor<2x10x8xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x4x16x8xf32>, tensor<2x10x8xf32>, tensor<2x10x8xf32>) outs(%out : tensor<2x4x16x8xf32>)
      mask(#attn.causal) plan(<"per-head", q = 8, k = 16>) {added, fill = -1.0e4 : f32, indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} -> tensor<2x4x16x8xf32>
  return %o : tensor<2x4x16x8xf32>
}
