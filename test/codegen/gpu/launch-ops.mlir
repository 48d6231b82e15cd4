// RUN: attn-opt %s -attn-gpu-launch-ops -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @outside
// CHECK: scf.forall (%{{.+}}) in (1) {
// CHECK-NEXT: linalg.fill
// CHECK: scf.forall (%{{.+}}) in (4) {
// CHECK-NEXT: linalg.fill
// CHECK-NOT: scf.forall
func.func @outside(%x: memref<8xf32>, %y: memref<8xf32>) {
  %one = arith.constant 1.0 : f32
  linalg.fill ins(%one : f32) outs(%x : memref<8xf32>)
  scf.forall (%i) in (4) {
    linalg.fill ins(%one : f32) outs(%y : memref<8xf32>)
  }
  return
}

// -----

// Packing runs on the CPU.
// CHECK-LABEL: func @f.pack
// CHECK-NOT: scf.forall
func.func @f.pack(%w: memref<8xf32>, %p: memref<8xf32>) attributes {attn.kernel = "pack"} {
  linalg.copy ins(%w : memref<8xf32>) outs(%p : memref<8xf32>)
  return
}

// -----

func.func @element(%x: memref<8xindex>) -> index {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{expected an op that runs on a GPU, got 'memref.load'}}
  %n = memref.load %x[%c0] : memref<8xindex>
  return %n : index
}
