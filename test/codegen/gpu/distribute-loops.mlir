// RUN: attn-opt %s -attn-gpu-distribute-loops -canonicalize | FileCheck %s

// CHECK-LABEL: func private @map
// CHECK: %[[COUNT:.+]] = arith.muli %{{.+}}, %c768
// CHECK: %[[THREAD:.+]] = gpu.thread_id x
// CHECK: scf.for %[[I:.+]] = %[[THREAD]] to %[[COUNT]] step %c256 {
// CHECK: %[[AT:.+]]:2 = affine.delinearize_index %[[I]] into (%{{.+}}, 768)
// CHECK: memref.load %{{.+}}[%[[AT]]#0, %[[AT]]#1]
// CHECK: memref.store
// CHECK: gpu.barrier
// One thread computes the sum of a row.
// CHECK: scf.for
// CHECK: scf.for %{{.+}} = %c0 to %c768
// CHECK: gpu.barrier
// One thread computes a single sum.
// CHECK: scf.if
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK-NOT: linalg.
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func private @map(%i: index, %worker: index, %x: memref<?x768xf32>, %y: memref<?x768xf32>, %r: memref<?xf32>, %s: memref<f32>)
    attributes {attn.launch = #attn.launch<threads = 256>} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<?x768xf32>) outs(%y : memref<?x768xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  }
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<?x768xf32>) outs(%r : memref<?xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%r : memref<?xf32>) outs(%s : memref<f32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }
  return
}

// A function that runs on the CPU stays unchanged.
// CHECK-LABEL: func @entry
// CHECK: linalg.fill
func.func @entry(%r: memref<?xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%r : memref<?xf32>)
  return
}
