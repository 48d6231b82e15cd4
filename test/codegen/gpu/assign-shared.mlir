// RUN: attn-opt %s -attn-gpu-assign-shared -split-input-file -verify-diagnostics | FileCheck %s

// The first and the third buffer are not used at the same time, so they share memory.
// CHECK-LABEL: func private @task
// CHECK-SAME: attn.launch = #attn.launch<threads = 128, shared = 1088>
// CHECK: %[[MEMORY:.+]] = gpu.dynamic_shared_memory
// CHECK: %[[AT:.+]] = arith.constant 0 : index
// CHECK: memref.view %[[MEMORY]][%[[AT]]][] : {{.+}} to memref<16x8xf32
// CHECK: %[[AT:.+]] = arith.constant 512 : index
// CHECK: memref.view %[[MEMORY]][%[[AT]]][] : {{.+}} to memref<9x16xf32
// CHECK: %[[AT:.+]] = arith.constant 0 : index
// CHECK: memref.view %[[MEMORY]][%[[AT]]][] : {{.+}} to memref<5xf32
func.func private @task(%i: index, %worker: index) attributes {attn.launch = #attn.launch<threads = 128>} {
  %one = arith.constant 1.0 : f32
  %a = memref.alloca() : memref<16x8xf32, #gpu.address_space<workgroup>>
  %b = memref.alloca() : memref<9x16xf32, #gpu.address_space<workgroup>>
  %c = memref.alloca() : memref<5xf32, #gpu.address_space<workgroup>>
  linalg.fill ins(%one : f32) outs(%a : memref<16x8xf32, #gpu.address_space<workgroup>>)
  linalg.fill ins(%one : f32) outs(%b : memref<9x16xf32, #gpu.address_space<workgroup>>)
  %part = memref.subview %a[0, 0] [2, 8] [1, 1] : memref<16x8xf32, #gpu.address_space<workgroup>> to memref<2x8xf32, strided<[8, 1]>, #gpu.address_space<workgroup>>
  linalg.fill ins(%one : f32) outs(%part : memref<2x8xf32, strided<[8, 1]>, #gpu.address_space<workgroup>>)
  linalg.fill ins(%one : f32) outs(%c : memref<5xf32, #gpu.address_space<workgroup>>)
  linalg.fill ins(%one : f32) outs(%b : memref<9x16xf32, #gpu.address_space<workgroup>>)
  return
}

// -----

module attributes {attn.target = #attn.gpu<"sm_80", shared = 1024, registers = 65536>} {
  // expected-error @+1 {{expected a task that uses at most 1024 bytes of shared memory, got 1040}}
  func.func private @task(%i: index, %worker: index) attributes {attn.launch = #attn.launch<threads = 128>} {
    %one = arith.constant 1.0 : f32
    %a = memref.alloca() : memref<257xf32, #gpu.address_space<workgroup>>
    linalg.fill ins(%one : f32) outs(%a : memref<257xf32, #gpu.address_space<workgroup>>)
    return
  }
}
