// RUN: attn-opt %s -attn-gpu-place-temporaries -split-input-file -verify-diagnostics | FileCheck %s

// The state and the scores of a step are in registers; a temporary that another op reads is in shared memory.
// CHECK-LABEL: func @attend
// CHECK: scf.forall
// CHECK-COUNT-4: memref.alloca() : memref<{{.*}}xf32, #gpu.address_space<private>>
// CHECK: %[[BYTES:.+]] = memref.alloca() : memref<2048xi8, #gpu.address_space<workgroup>>
// CHECK: %[[T:.+]] = memref.view %[[BYTES]][%{{.+}}][] : {{.+}} to memref<32x16xf32, #gpu.address_space<workgroup>>
// CHECK: linalg.transpose ins({{.+}}) outs(%[[T]]
// CHECK: attn.online_step rows ins(%{{.+}}, %[[T]]
func.func @attend(%q: memref<64x16xf32>, %k: memref<16x32xf32>, %v: memref<32x16xf32>) {
  %c0 = arith.constant 0 : index
  scf.forall (%i) in (4) {
    %m = memref.alloc() : memref<64xf32>
    %l = memref.alloc() : memref<64xf32>
    %a = memref.alloc() : memref<64x16xf32>
    %s = memref.alloc() : memref<64x32xf32>
    %t = memref.alloc() : memref<32x16xf32>
    attn.online_init rows outs(%m, %l, %a : memref<64xf32>, memref<64xf32>, memref<64x16xf32>)
    linalg.transpose ins(%k : memref<16x32xf32>) outs(%t : memref<32x16xf32>) permutation = [1, 0]
    attn.online_step rows ins(%q, %t, %v : memref<64x16xf32>, memref<32x16xf32>, memref<32x16xf32>)
      outs(%s, %m, %l, %a : memref<64x32xf32>, memref<64xf32>, memref<64xf32>, memref<64x16xf32>) at(%i, %c0) {capture_maps = [], scale = 1.0 : f32}
  }
  return
}

// -----

// A temporary outside tasks stays. A temporary of a task may have a dynamic size that is bounded.
// CHECK-LABEL: func @sizes
// CHECK: memref.alloc(%{{.+}}) : memref<?xf32>
// CHECK: memref.alloca() : memref<512xi8, #gpu.address_space<workgroup>>
// CHECK: memref.view %{{.+}}[%{{.+}}][%{{.+}}] : {{.+}} to memref<?x8xf32, #gpu.address_space<workgroup>>
func.func @sizes(%x: memref<?x8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %whole = memref.alloc(%n) : memref<?xf32>
  linalg.fill ins(%one : f32) outs(%whole : memref<?xf32>)
  scf.forall (%i) = (0) to (%n) step (16) {
    %rows = affine.min affine_map<(i)[n] -> (16, n - i)>(%i)[%n]
    %t = memref.alloc(%rows) : memref<?x8xf32>
    linalg.fill ins(%one : f32) outs(%t : memref<?x8xf32>)
    %y = memref.subview %x[%i, 0] [%rows, 8] [1, 1] : memref<?x8xf32> to memref<?x8xf32, strided<[8, 1], offset: ?>>
    linalg.copy ins(%t : memref<?x8xf32>) outs(%y : memref<?x8xf32, strided<[8, 1], offset: ?>>)
  }
  return
}

// -----

func.func @unbounded(%n: index) {
  %one = arith.constant 1.0 : f32
  scf.forall (%i) in (4) {
    // expected-error @+1 {{expected a temporary of bounded size in a task, got 'memref<?xf32>'}}
    %t = memref.alloc(%n) : memref<?xf32>
    linalg.fill ins(%one : f32) outs(%t : memref<?xf32>)
  }
  return
}
