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

// The memref.get_global of a constant array moves into the task.
// CHECK-LABEL: func @constant
// CHECK: scf.forall
// CHECK: %[[TABLE:.+]] = memref.get_global @table
// CHECK: linalg.copy ins(%[[TABLE]]
memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
func.func @constant(%x: memref<4xf32>) {
  %table = memref.get_global @table : memref<4xf32>
  linalg.copy ins(%table : memref<4xf32>) outs(%x : memref<4xf32>)
  return
}

// -----

// A pack function runs on the CPU, so it stays.
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
