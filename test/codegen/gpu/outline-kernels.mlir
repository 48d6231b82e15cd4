// RUN: attn-opt %s -pass-pipeline='builtin.module(builtin.module(attn-gpu-outline-kernels))' | FileCheck %s

// CHECK-LABEL: func private @f.attend(index, index, index, memref<?x64xf16>)
// CHECK-SAME: attn.launch = #attn.launch<threads = 128, shared = 2048, arguments = 64>
// CHECK: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">]
// CHECK: llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.func @f_attend_0(%[[CONTEXT:.+]]: !llvm.ptr {llvm.byval = [[TYPE:!llvm.struct<\(i64, struct<\(ptr, ptr, i64, array<2 x i64>, array<2 x i64>\)>\)>]], nvvm.grid_constant})
// CHECK-SAME: nvvm.kernel
// CHECK-SAME: nvvm.maxntid = array<i32: 128, 1, 1>
// CHECK: %[[INDEX:.+]] = gpu.block_id x
// CHECK: %[[N:.+]] = llvm.getelementptr %[[CONTEXT]][0, 0] : (!llvm.ptr) -> !llvm.ptr, [[TYPE]]
// CHECK: llvm.load %[[N]] : !llvm.ptr -> i64
// CHECK: llvm.mlir.addressof @shared : !llvm.ptr<3>
// CHECK-NOT: attn.count_tiles
// CHECK: llvm.return
module {
  module @sm_80 attributes {attn.target = #attn.gpu<"sm_80", shared = 101376, registers = 65536>} {
    func.func private @f.attend(%index: index, %worker: index, %n: index, %x: memref<?x64xf16>)
        attributes {attn.launch = #attn.launch<threads = 128, shared = 2048>} {
      %zero = arith.constant 0.0 : f16
      %c0 = arith.constant 0 : index
      %shared = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %t = memref.view %shared[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<1024xf16, #gpu.address_space<workgroup>>
      memref.store %zero, %t[%n] : memref<1024xf16, #gpu.address_space<workgroup>>
      memref.store %zero, %x[%index, %n] : memref<?x64xf16>
      attn.count_tiles run(%n) skipped(%n)
      return
    }
  }
}
