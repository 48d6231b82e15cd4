// RUN: attn-opt %s -attn-per-head -canonicalize -split-input-file | FileCheck %s
// The test covers TileAndFuse.cpp, which makes the loops and decides which producers move into the tasks. If other ops
// read the result of such a producer too, the tasks return it.

#x = affine_map<(b, h, s, d, c) -> (b, s, c)>
#w = affine_map<(b, h, s, d, c) -> (h, c, d)>
#y = affine_map<(b, h, s, d, c) -> (b, h, s, d)>
#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>
// CHECK-LABEL: @layer(
// CHECK-SAME: %[[X:.*]]: tensor<2x96x768xf32>, %[[WQ:.*]]: tensor<12x768x64xf32>, %[[WK:.*]]: tensor<12x768x64xf32>, %[[WV:.*]]: tensor<12x768x64xf32>)
// CHECK-NOT: linalg.contract
// CHECK: scf.forall (%[[B:.*]], %[[H:.*]]) in (2, 12)
// CHECK-DAG: %[[XB:.*]] = tensor.extract_slice %[[X]][%[[B]], 0, 0] [1, 96, 768]
// CHECK-DAG: %[[WKH:.*]] = tensor.extract_slice %[[WK]][%[[H]], 0, 0] [1, 768, 64]
// CHECK: %[[K:.*]] = linalg.contract {{.*}} ins(%[[XB]], %[[WKH]] :
// CHECK: %[[WVH:.*]] = tensor.extract_slice %[[WV]][%[[H]], 0, 0] [1, 768, 64]
// CHECK: %[[V:.*]] = linalg.contract {{.*}} ins(%{{.*}}, %[[WVH]] :
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}}
// CHECK-DAG: %[[XI:.*]] = tensor.extract_slice %[[X]][%[[B]], %[[I]], 0] [1, 48, 768]
// CHECK-DAG: %[[WQH:.*]] = tensor.extract_slice %[[WQ]][%[[H]], 0, 0] [1, 768, 64]
// CHECK: %[[Q:.*]] = linalg.contract {{.*}} ins(%[[XI]], %[[WQH]] :
// CHECK: attn.attention ins(%[[Q]], %[[K]], %[[V]] : {{.*}} at(%[[B]], %[[H]], %[[I]], %{{.*}}) plan(
// CHECK-NOT: linalg.contract
func.func @layer(%x: tensor<2x96x768xf32>, %wq: tensor<12x768x64xf32>, %wk: tensor<12x768x64xf32>, %wv: tensor<12x768x64xf32>) -> tensor<2x12x96x64xf32> {
  %zero = arith.constant 0.0 : f32
  %eq = tensor.empty() : tensor<2x12x96x64xf32>
  %iq = linalg.fill ins(%zero : f32) outs(%eq : tensor<2x12x96x64xf32>) -> tensor<2x12x96x64xf32>
  %q = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wq : tensor<2x96x768xf32>, tensor<12x768x64xf32>) outs(%iq : tensor<2x12x96x64xf32>) -> tensor<2x12x96x64xf32>
  %ek = tensor.empty() : tensor<2x12x96x64xf32>
  %ik = linalg.fill ins(%zero : f32) outs(%ek : tensor<2x12x96x64xf32>) -> tensor<2x12x96x64xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wk : tensor<2x96x768xf32>, tensor<12x768x64xf32>) outs(%ik : tensor<2x12x96x64xf32>) -> tensor<2x12x96x64xf32>
  %ev = tensor.empty() : tensor<2x12x96x64xf32>
  %iv = linalg.fill ins(%zero : f32) outs(%ev : tensor<2x12x96x64xf32>) -> tensor<2x12x96x64xf32>
  %v = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wv : tensor<2x96x768xf32>, tensor<12x768x64xf32>) outs(%iv : tensor<2x12x96x64xf32>) -> tensor<2x12x96x64xf32>
  %e = tensor.empty() : tensor<2x12x96x64xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x12x96x64xf32>, tensor<2x12x96x64xf32>, tensor<2x12x96x64xf32>) outs(%e : tensor<2x12x96x64xf32>)
      plan(<"per-head", q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<2x12x96x64xf32>
  return %o : tensor<2x12x96x64xf32>
}

// -----

#x = affine_map<(b, s, d, c) -> (b, s, c)>
#w = affine_map<(b, s, d, c) -> (c, d)>
#y = affine_map<(b, s, d, c) -> (b, s, d)>
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
// Keys that are a result of the function too are projected once, and the tasks return them.
// CHECK-LABEL: @cache(
// CHECK-NOT: linalg.contract
// CHECK: %[[R:.*]]:2 = scf.forall (%[[B:.*]]) in (2) shared_outs(%[[O:.*]] = %{{.*}}, %[[CACHE:.*]] = %{{.*}})
// CHECK: %[[K:.*]] = linalg.contract
// CHECK: scf.for
// CHECK-NOT: linalg.contract
// CHECK: attn.attention
// CHECK: tensor.parallel_insert_slice %[[K]] into %[[CACHE]]
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @cache(%q: tensor<2x96x64xf32>, %x: tensor<2x?x768xf32>, %w: tensor<768x64xf32>, %v: tensor<2x?x64xf32>) -> (tensor<2x96x64xf32>, tensor<2x?x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %s = tensor.dim %x, %c1 : tensor<2x?x768xf32>
  %ek = tensor.empty(%s) : tensor<2x?x64xf32>
  %ik = linalg.fill ins(%zero : f32) outs(%ek : tensor<2x?x64xf32>) -> tensor<2x?x64xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<2x?x768xf32>, tensor<768x64xf32>) outs(%ik : tensor<2x?x64xf32>) -> tensor<2x?x64xf32>
  %e = tensor.empty() : tensor<2x96x64xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x96x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>) outs(%e : tensor<2x96x64xf32>)
      plan(<"per-head", q = 48, k = 128>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<2x96x64xf32>
  return %o, %k : tensor<2x96x64xf32>, tensor<2x?x64xf32>
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
// Without producers, tiles of queries share no work, so each tile is a task.
// CHECK-LABEL: @no_producers(
// CHECK: scf.forall (%[[B:.*]], %[[I:.*]]) = (0, 0) to (2, 96) step (1, 48)
// CHECK-NOT: scf.for
// CHECK: attn.attention {{.*}} at(%[[B]], %[[I]], %{{.*}}) mask(#attn.causal)
func.func @no_producers(%q: tensor<2x96x64xf32>, %k: tensor<2x?x64xf32>, %v: tensor<2x?x64xf32>, %e: tensor<2x96x64xf32>) -> tensor<2x96x64xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x96x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>) outs(%e : tensor<2x96x64xf32>)
      mask(#attn.causal) plan(<"per-head", q = 48, k = 128>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<2x96x64xf32>
  return %o : tensor<2x96x64xf32>
}

// -----

#x = affine_map<(h, s, d, c) -> (s, c)>
#w = affine_map<(h, s, d, c) -> (h, c, d)>
#y = affine_map<(h, s, d, c) -> (h, s, d)>
#q = affine_map<(h, g, q, k, d, e) -> (h, g, q, d)>
#k = affine_map<(h, g, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, g, q, k, d, e) -> (h, k, e)>
#o = affine_map<(h, g, q, k, d, e) -> (h, g, q, e)>
// All query heads of a group are in one task, because they share the keys of one head.
// CHECK-LABEL: @groups(
// CHECK: scf.forall (%[[H:.*]]) in (2)
// CHECK: %[[K:.*]] = linalg.contract
// CHECK: scf.for %[[G:.*]] = %{{.*}} to %{{.*}} step
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK: attn.attention ins(%{{.*}}, %[[K]], %{{.*}} : {{.*}} at(%[[H]], %[[G]], %[[I]], %{{.*}})
func.func @groups(%q: tensor<2x3x96x64xf32>, %x: tensor<96x768xf32>, %w: tensor<2x768x64xf32>, %v: tensor<2x96x64xf32>) -> tensor<2x3x96x64xf32> {
  %zero = arith.constant 0.0 : f32
  %ek = tensor.empty() : tensor<2x96x64xf32>
  %ik = linalg.fill ins(%zero : f32) outs(%ek : tensor<2x96x64xf32>) -> tensor<2x96x64xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<96x768xf32>, tensor<2x768x64xf32>) outs(%ik : tensor<2x96x64xf32>) -> tensor<2x96x64xf32>
  %e = tensor.empty() : tensor<2x3x96x64xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x3x96x64xf32>, tensor<2x96x64xf32>, tensor<2x96x64xf32>) outs(%e : tensor<2x3x96x64xf32>)
      plan(<"per-head", q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<2x3x96x64xf32>
  return %o : tensor<2x3x96x64xf32>
}

// -----

#x = affine_map<(h, s, d, c) -> (s, c)>
#w = affine_map<(h, s, d, c) -> (h, c, d)>
#y = affine_map<(h, s, d, c) -> (h, s, d)>
#q = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, q, k, d, e) -> (h, k, e)>
#o = affine_map<(h, q, k, d, e) -> (h, q, e)>
// If one projection gives both keys and values, it stays outside, because a task would compute it twice.
// CHECK-LABEL: @keys_are_values(
// CHECK: %[[K:.*]] = linalg.contract
// CHECK: scf.forall (%[[H:.*]], %[[I:.*]]) = (0, 0) to (2, 96) step (1, 48)
// CHECK-NOT: linalg.contract
// CHECK: attn.attention
func.func @keys_are_values(%q: tensor<2x96x64xf32>, %x: tensor<96x768xf32>, %w: tensor<2x768x64xf32>) -> tensor<2x96x64xf32> {
  %zero = arith.constant 0.0 : f32
  %ek = tensor.empty() : tensor<2x96x64xf32>
  %ik = linalg.fill ins(%zero : f32) outs(%ek : tensor<2x96x64xf32>) -> tensor<2x96x64xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<96x768xf32>, tensor<2x768x64xf32>) outs(%ik : tensor<2x96x64xf32>) -> tensor<2x96x64xf32>
  %e = tensor.empty() : tensor<2x96x64xf32>
  %o = attn.attention ins(%q, %k, %k : tensor<2x96x64xf32>, tensor<2x96x64xf32>, tensor<2x96x64xf32>) outs(%e : tensor<2x96x64xf32>)
      plan(<"per-head", q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<2x96x64xf32>
  return %o : tensor<2x96x64xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// CHECK-LABEL: @other_schedule(
// CHECK-NEXT: attn.attention
func.func @other_schedule(%x: tensor<96x64xf32>, %e: tensor<96x64xf32>) -> tensor<96x64xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<96x64xf32>, tensor<96x64xf32>, tensor<96x64xf32>) outs(%e : tensor<96x64xf32>)
      plan(<unfused, q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<96x64xf32>
  return %o : tensor<96x64xf32>
}

// -----

#x = affine_map<(b, s, d, c) -> (b, s, c)>
#w = affine_map<(b, s, d, c) -> (c, d)>
#y = affine_map<(b, s, d, c) -> (b, s, d)>
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
// With one batch item and one head, the keys are projected before the tasks, and each tile of queries is a task.
// CHECK-LABEL: @single(
// CHECK: %[[K:.*]] = linalg.contract
// CHECK: scf.forall (%[[I:.*]]) = (0) to (96) step (48)
// CHECK-NOT: linalg.contract
// CHECK: attn.attention ins(%{{.*}}, %[[K]],
func.func @single(%q: tensor<1x96x64xf32>, %x: tensor<1x96x768xf32>, %w: tensor<768x64xf32>, %v: tensor<1x96x64xf32>) -> tensor<1x96x64xf32> {
  %zero = arith.constant 0.0 : f32
  %ek = tensor.empty() : tensor<1x96x64xf32>
  %ik = linalg.fill ins(%zero : f32) outs(%ek : tensor<1x96x64xf32>) -> tensor<1x96x64xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<1x96x768xf32>, tensor<768x64xf32>) outs(%ik : tensor<1x96x64xf32>) -> tensor<1x96x64xf32>
  %e = tensor.empty() : tensor<1x96x64xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<1x96x64xf32>, tensor<1x96x64xf32>, tensor<1x96x64xf32>) outs(%e : tensor<1x96x64xf32>)
      plan(<"per-head", q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #o], scale = 1.25e-01 : f32} -> tensor<1x96x64xf32>
  return %o : tensor<1x96x64xf32>
}

// -----
// A bias that a Linear computes from features of each pair stays outside: the task of a head would compute one column of
// its product. A second product of queries and keys moves inside. It reads the keys of the attention, whose projection
// stays outside, because it would be computed twice inside.
// CHECK-LABEL: @products(
// CHECK: %[[K:.*]] = linalg.contract {{.*}} -> tensor<4x96x16xf32>
// CHECK: %[[BIAS:.*]] = linalg.contract {{.*}} -> tensor<4x96x96xf32>
// CHECK: scf.forall (%[[H:.*]]) in (4)
// CHECK: linalg.contract {{.*}} -> tensor<1x96x96xf32>
// CHECK: scf.for
// CHECK: tensor.extract_slice %[[BIAS]][%[[H]],
// CHECK-NOT: linalg.contract
// CHECK: attn.attention
#x = affine_map<(h, s, d, c) -> (s, c)>
#w = affine_map<(h, s, d, c) -> (h, c, d)>
#y = affine_map<(h, s, d, c) -> (h, s, d)>
#q = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, q, k, d, e) -> (h, k, e)>
#o = affine_map<(h, q, k, d, e) -> (h, q, e)>
#s = affine_map<(h, q, k, d, e) -> (h, q, k)>
func.func @products(%x: tensor<96x64xf32>, %wk: tensor<4x64x16xf32>, %wv: tensor<4x64x16xf32>, %pair: tensor<96x96x8xf32>, %wb: tensor<4x8xf32>,
                    %q: tensor<4x96x16xf32>, %k: tensor<4x96x16xf32>, %s: tensor<4x96x96xf32>, %o: tensor<4x96x16xf32>) -> tensor<4x96x16xf32> {
  %0 = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wk : tensor<96x64xf32>, tensor<4x64x16xf32>) outs(%k : tensor<4x96x16xf32>) -> tensor<4x96x16xf32>
  %1 = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wv : tensor<96x64xf32>, tensor<4x64x16xf32>) outs(%k : tensor<4x96x16xf32>) -> tensor<4x96x16xf32>
  %bias = linalg.contract indexing_maps = [affine_map<(h, i, j, c) -> (i, j, c)>, affine_map<(h, i, j, c) -> (h, c)>, affine_map<(h, i, j, c) -> (h, i, j)>] ins(%pair, %wb : tensor<96x96x8xf32>, tensor<4x8xf32>) outs(%s : tensor<4x96x96xf32>) -> tensor<4x96x96xf32>
  %second = linalg.contract indexing_maps = [affine_map<(h, i, j, d) -> (h, i, d)>, affine_map<(h, i, j, d) -> (h, j, d)>, affine_map<(h, i, j, d) -> (h, i, j)>] ins(%q, %0 : tensor<4x96x16xf32>, tensor<4x96x16xf32>) outs(%s : tensor<4x96x96xf32>) -> tensor<4x96x96xf32>
  %r = attn.attention ins(%q, %0, %1 : tensor<4x96x16xf32>, tensor<4x96x16xf32>, tensor<4x96x16xf32>) captures(%bias, %second : tensor<4x96x96xf32>, tensor<4x96x96xf32>) outs(%o : tensor<4x96x16xf32>)
      plan(#attn.plan<"per-head", q = 48, k = 32>) {indexing_maps = [#q, #k, #v, #s, #s, #o], scale = 0.25 : f32} score {
  ^bb0(%h: index, %i: index, %j: index, %score: f32, %b: f32, %c: f32):
    %y = arith.addf %score, %b : f32
    %z = arith.addf %y, %c : f32
    attn.yield %z : f32
  } -> tensor<4x96x16xf32>
  return %r : tensor<4x96x16xf32>
}
