// RUN: attn-opt %s -attn-outline-tasks -canonicalize -split-input-file | FileCheck %s

// The last argument, the scratch memory of a worker, becomes an argument of the tasks; attn.parallel_for supplies it.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:.*]]: memref<?x12x64xf32>, %[[OUT:.*]]: memref<?x12x64xf32> {attn.output}, %{{.*}}: memref<?xi8>) attributes {attn.kernel = "entry"}
// CHECK: %[[N:.*]] = memref.dim %[[X]]
// CHECK: %[[COUNT:.*]] = arith.muli %[[N]], %{{.*}}
// CHECK: attn.parallel_for @forward.map(%[[X]], %[[OUT]], %[[N]]) count(%[[COUNT]])
// CHECK-NEXT: return
// CHECK: func.func private @forward.map(%[[INDEX:.*]]: index, %[[WORKER:.*]]: index, %[[TX:.*]]: memref<?x12x64xf32>, %[[TOUT:.*]]: memref<?x12x64xf32>, %[[TN:.*]]: index, %[[SCRATCH:.*]]: memref<?xi8> {attn.scratch}) {
// CHECK: %[[AT:.*]]:2 = affine.delinearize_index %[[INDEX]] into (%[[TN]], 12)
// CHECK: memref.view %[[SCRATCH]]
// CHECK: memref.subview %[[TX]][%[[AT]]#0, %[[AT]]#1, 0]
// CHECK: memref.subview %[[TOUT]][%[[AT]]#0, %[[AT]]#1, 0]
// CHECK: return
func.func @forward(%x: memref<?x12x64xf32>, %out: memref<?x12x64xf32> {attn.output}, %workspace: memref<?xi8>, %scratch: memref<?xi8> {attn.scratch})
    attributes {attn.kernel = "entry"} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x12x64xf32>
  scf.forall (%b, %h) in (%n, 12) {
    %k = memref.view %scratch[%c0][] : memref<?xi8> to memref<64xf32>
    %xbh = memref.subview %x[%b, %h, 0] [1, 1, 64] [1, 1, 1] : memref<?x12x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    linalg.exp ins(%xbh : memref<64xf32, strided<[1], offset: ?>>) outs(%k : memref<64xf32>)
    %obh = memref.subview %out[%b, %h, 0] [1, 1, 64] [1, 1, 1] : memref<?x12x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    linalg.exp ins(%k : memref<64xf32>) outs(%obh : memref<64xf32, strided<[1], offset: ?>>)
  }
  return
}

// -----

// The names of tasks describe their work. A loop has a task for each of its steps. A task that does not use scratch
// memory has no argument for it.
// CHECK-LABEL: func.func @layer(
// CHECK: %[[N:.*]] = memref.dim
// CHECK: %[[COUNT:.*]] = affine.apply #{{.*}}()[%[[N]]]
// CHECK: attn.parallel_for @layer.project({{.*}}) count(%[[COUNT]])
// CHECK: attn.parallel_for @layer.softmax(
// CHECK: attn.parallel_for @layer.attend({{.*}}) count(%[[N]])
// CHECK: attn.parallel_for @layer.map(
// CHECK: func.func private @layer.map(
// CHECK-NOT: attn.scratch
// CHECK: func.func private @layer.attend({{.*}} {attn.scratch})
// CHECK: func.func private @layer.softmax(
// CHECK: func.func private @layer.project(%[[INDEX:[^ ]*]]: index, %{{[^ ]*}}: index
// CHECK-DAG: %[[STEP:.*]] = arith.constant 96 : index
// CHECK: %[[I:.*]] = arith.muli %[[INDEX]], %[[STEP]]
// CHECK: memref.subview %{{.*}}[%[[I]], 0]
#maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>]
func.func @layer(%x: memref<?x64xf32>, %w: memref<64x64xf32>, %out: memref<?x64xf32> {attn.output}, %workspace: memref<?xi8>, %scratch: memref<?xi8> {attn.scratch})
    attributes {attn.kernel = "entry"} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  scf.forall (%i) = (0) to (%n) step (96) {
    %rows = affine.min affine_map<(i)[n] -> (96, n - i)>(%i)[%n]
    %xi = memref.subview %x[%i, 0] [%rows, 64] [1, 1] : memref<?x64xf32> to memref<?x64xf32, strided<[64, 1], offset: ?>>
    %oi = memref.subview %out[%i, 0] [%rows, 64] [1, 1] : memref<?x64xf32> to memref<?x64xf32, strided<[64, 1], offset: ?>>
    linalg.contract indexing_maps = #maps ins(%xi, %w : memref<?x64xf32, strided<[64, 1], offset: ?>>, memref<64x64xf32>) outs(%oi : memref<?x64xf32, strided<[64, 1], offset: ?>>)
  }
  scf.forall (%i) = (0) to (%n) step (96) {
    %rows = affine.min affine_map<(i)[n] -> (96, n - i)>(%i)[%n]
    %oi = memref.subview %out[%i, 0] [%rows, 64] [1, 1] : memref<?x64xf32> to memref<?x64xf32, strided<[64, 1], offset: ?>>
    linalg.softmax dimension(1) ins(%oi : memref<?x64xf32, strided<[64, 1], offset: ?>>) outs(%oi : memref<?x64xf32, strided<[64, 1], offset: ?>>)
  }
  scf.forall (%i) in (%n) {
    %s = memref.view %scratch[%c0][] : memref<?xi8> to memref<4x4xf32>
    %m = memref.view %scratch[%c0][] : memref<?xi8> to memref<4xf32>
    attn.online_step ins(%s, %s, %s : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) outs(%s, %m, %m, %s : memref<4x4xf32>, memref<4xf32>, memref<4xf32>, memref<4x4xf32>) at(%i, %i) {capture_maps = [], scale = 1.0 : f32}
  }
  scf.forall (%i) in (%n) {
    %oi = memref.subview %out[%i, 0] [1, 64] [1, 1] : memref<?x64xf32> to memref<64xf32, strided<[1], offset: ?>>
    linalg.exp ins(%oi : memref<64xf32, strided<[1], offset: ?>>) outs(%oi : memref<64xf32, strided<[1], offset: ?>>)
  }
  return
}

// -----

// Only loops of entry functions become tasks.
// CHECK-LABEL: func.func @forward.pack(
// CHECK-SAME: %{{.*}}: memref<4xf32>, %{{.*}}: memref<4xf32>) attributes
// CHECK: scf.forall
func.func @forward.pack(%w: memref<4xf32>, %p: memref<4xf32>) attributes {attn.kernel = "pack"} {
  scf.forall (%i) in (4) {
    %e = memref.load %w[%i] : memref<4xf32>
    memref.store %e, %p[%i] : memref<4xf32>
  }
  return
}
