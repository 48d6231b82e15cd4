// RUN: attn-opt %s -attn-row-groups -canonicalize -split-input-file -verify-diagnostics | FileCheck %s

#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (k, n)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>
#all = affine_map<(b, s, n) -> (b, s, n)>
#t = #attn.task<rows = 24, group = 0>
// Both products and the activation are in one task, and only the last result is a tensor outside the tasks.
// CHECK-LABEL: @mlp(
// CHECK-SAME: %[[X:.*]]: tensor<2x?x64xf32>, %[[W:.*]]: tensor<64x128xf32>, %[[U:.*]]: tensor<128x64xf32>
// CHECK-NOT: linalg
// CHECK: scf.forall (%[[B:.*]], %[[I:.*]]) = (0, 0) to (2, %[[S:.*]]) step (1, 24) shared_outs(%[[OUT:.*]] = %{{.*}}) -> (tensor<2x?x64xf32>)
// CHECK: %[[ROWS:.*]] = affine.min
// CHECK-DAG: %[[XT:.*]] = tensor.extract_slice %[[X]][%[[B]], %[[I]], 0] [1, %[[ROWS]], 64]
// CHECK-DAG: %[[E:.*]] = tensor.empty(%[[ROWS]]) : tensor<1x?x128xf32>
// CHECK: %[[H:.*]] = linalg.contract {{.*}} ins(%[[XT]], %[[W]] : tensor<1x?x64xf32>, tensor<64x128xf32>)
// CHECK-NOT: attn.task
// CHECK: %[[A:.*]] = linalg.tanh ins(%[[H]] : tensor<1x?x128xf32>)
// CHECK: %[[PLACE:.*]] = tensor.extract_slice %[[OUT]][%[[B]], %[[I]], 0] [1, %[[ROWS]], 64]
// CHECK: %[[INIT:.*]] = linalg.fill {{.*}} outs(%[[PLACE]] :
// CHECK: %[[Y:.*]] = linalg.contract {{.*}} ins(%[[A]], %[[U]] : {{.*}}) outs(%[[INIT]] :
// CHECK: tensor.parallel_insert_slice %[[Y]] into %[[OUT]][%[[B]], %[[I]], 0] [1, %[[ROWS]], 64]
func.func @mlp(%x: tensor<2x?x64xf32>, %w: tensor<64x128xf32>, %u: tensor<128x64xf32>) -> tensor<2x?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %s = tensor.dim %x, %c1 : tensor<2x?x64xf32>
  %e = tensor.empty(%s) : tensor<2x?x128xf32>
  %i = linalg.fill {attn.task = #t} ins(%zero : f32) outs(%e : tensor<2x?x128xf32>) -> tensor<2x?x128xf32>
  %h = linalg.contract indexing_maps = [#x, #w, #y] {attn.task = #t} ins(%x, %w : tensor<2x?x64xf32>, tensor<64x128xf32>) outs(%i : tensor<2x?x128xf32>) -> tensor<2x?x128xf32>
  %a = linalg.tanh {attn.task = #t} ins(%h : tensor<2x?x128xf32>) outs(%e : tensor<2x?x128xf32>) -> tensor<2x?x128xf32>
  %f = tensor.empty(%s) : tensor<2x?x64xf32>
  %j = linalg.fill {attn.task = #t} ins(%zero : f32) outs(%f : tensor<2x?x64xf32>) -> tensor<2x?x64xf32>
  %y = linalg.contract indexing_maps = [#x, #w, #y] {attn.task = #t} ins(%a, %u : tensor<2x?x128xf32>, tensor<128x64xf32>) outs(%j : tensor<2x?x64xf32>) -> tensor<2x?x64xf32>
  return %y : tensor<2x?x64xf32>
}

// -----

#x = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (k, n)>
#y = affine_map<(s, n, k) -> (s, n)>
#px = affine_map<(s, p, j, k) -> (s, k)>
#pw = affine_map<(s, p, j, k) -> (p, k, j)>
#py = affine_map<(s, p, j, k) -> (s, p, j)>
#t = #attn.task<rows = 32, group = 3>
// The task computes all panels of a product. A reshape between two ops of the group moves into the task; ops outside
// the group read the result of a second reshape. An op that precedes the second product and reads a result of the group
// moves behind the group.
// CHECK-LABEL: @panels(
// CHECK: %[[R:.*]]:2 = scf.forall (%{{.*}}) = (0) to (64) step (32)
// CHECK: %[[H:.*]] = linalg.contract {{.*}} -> tensor<32x4x16xf32>
// CHECK: %[[C:.*]] = tensor.collapse_shape %[[H]] {{\[}}[0], [1, 2]] : tensor<32x4x16xf32> into tensor<32x64xf32>
// CHECK: linalg.contract {{.*}} ins(%[[C]], %{{.*}} : tensor<32x64xf32>, tensor<64x64xf32>)
// CHECK: %[[V:.*]] = tensor.collapse_shape %[[R]]#0
// CHECK: linalg.exp ins(%[[V]] :
func.func @panels(%x: tensor<64x64xf32>, %w: tensor<4x64x16xf32>, %u: tensor<64x64xf32>, %i: tensor<64x4x16xf32>, %j: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %h = linalg.contract indexing_maps = [#px, #pw, #py] {attn.task = #t} ins(%x, %w : tensor<64x64xf32>, tensor<4x64x16xf32>) outs(%i : tensor<64x4x16xf32>) -> tensor<64x4x16xf32>
  %c = tensor.collapse_shape %h [[0], [1, 2]] : tensor<64x4x16xf32> into tensor<64x64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %r = linalg.exp ins(%c : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %o = linalg.contract indexing_maps = [#x, #w, #y] {attn.task = #t} ins(%c, %u : tensor<64x64xf32>, tensor<64x64xf32>) outs(%j : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %o, %r : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

#x = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (k, n)>
#y = affine_map<(s, n, k) -> (s, n)>
func.func @rows_differ(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %h = linalg.contract indexing_maps = [#x, #w, #y] {attn.task = #attn.task<rows = 16, group = 0>} ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%x : tensor<64x64xf32>) -> tensor<64x64xf32>
  // expected-error @+1 {{expected the same number of rows on all ops of a group, got #attn.task<rows = 32, group = 0>}}
  %o = linalg.contract indexing_maps = [#x, #w, #y] {attn.task = #attn.task<rows = 32, group = 0>} ins(%h, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%x : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %o : tensor<64x64xf32>
}

// -----

#x = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (k, n)>
#y = affine_map<(s, n, k) -> (s, n)>
#t = #attn.task<rows = 16, group = 0>
func.func @other_rows(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %h = linalg.contract indexing_maps = [#x, #w, #y] {attn.task = #t} ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%x : tensor<64x64xf32>) -> tensor<64x64xf32>
  // expected-error @+1 {{expected an op of a group to read only the rows of its own task, got an op that reads others}}
  %o = linalg.contract indexing_maps = [#x, #w, #y] {attn.task = #t} ins(%x, %h : tensor<64x64xf32>, tensor<64x64xf32>) outs(%x : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %o : tensor<64x64xf32>
}

// -----

#x = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (k, n)>
#y = affine_map<(s, n, k) -> (s, n)>
#t = #attn.task<rows = 16, group = 0>
func.func @gap(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %h = linalg.contract indexing_maps = [#x, #w, #y] {attn.task = #t} ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%x : tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %a = linalg.tanh ins(%h : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  // expected-error @+1 {{expected an op of a group to depend on no op outside the group that reads a result of the group, got an op that does}}
  %o = linalg.contract indexing_maps = [#x, #w, #y] {attn.task = #t} ins(%a, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%h : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %o : tensor<64x64xf32>
}

// -----

func.func @not_rowwise(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @+1 {{expected an op of a group to have one result and to read tensors at its loop variables only}}
  %p = linalg.softmax {attn.task = #attn.task<rows = 16, group = 0>} dimension(1) ins(%x : tensor<64x64xf32>) outs(%x : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}
