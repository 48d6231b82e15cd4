// RUN: attn-opt %s -split-input-file -pass-pipeline='builtin.module(builtin.module(attn-gpu-outline-kernels))' | FileCheck %s

// CHECK-LABEL: func private @f.attend(index, index, index, memref<?x64xf16>)
// CHECK-SAME: attn.launch = #attn.launch<threads = 128, shared = 2048, arguments = 72>
// CHECK: gpu.module @kernels [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">]
// CHECK: llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.func @f_attend_0(%[[CONTEXT:.+]]: !llvm.ptr {llvm.byval = [[TYPE:!llvm.struct<\(ptr, i64, struct<\(ptr, ptr, i64, array<2 x i64>, array<2 x i64>\)>\)>]], nvvm.grid_constant})
// CHECK-SAME: nvvm.kernel
// CHECK-SAME: nvvm.maxntid = array<i32: 128, 1, 1>
// CHECK: %[[INDEX:.+]] = gpu.block_id x
// CHECK: %[[N:.+]] = llvm.getelementptr %[[CONTEXT]][0, 1] : (!llvm.ptr) -> !llvm.ptr, [[TYPE]]
// CHECK: llvm.load %[[N]] : !llvm.ptr -> i64
// The first thread of a block adds the tiles of its task to the counts of the call, if the call counts. A count that is
// always 0 is not added.
// CHECK: %[[TILES:.+]] = llvm.load %{{.+}} : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.mlir.addressof @shared : !llvm.ptr<3>
// CHECK: %[[COUNTS:.+]] = llvm.icmp "ne" %[[TILES]], %{{.+}} : !llvm.ptr
// CHECK: %[[FIRST:.+]] = arith.cmpi eq, %{{.+}}, %{{.+}} : index
// CHECK: %[[BOTH:.+]] = arith.andi %[[FIRST]], %[[COUNTS]] : i1
// CHECK: %[[DONE:.+]] = llvm.getelementptr %[[TILES]][0] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "@$0 red.global.add.u64 [$1], $2;", "b,l,l" %[[BOTH]], %[[DONE]], %{{.+}} : (i1, !llvm.ptr, i64) -> ()
// CHECK: %[[SKIPPED:.+]] = llvm.getelementptr %[[TILES]][1]
// CHECK: llvm.inline_asm {{.+}}red.global.add.u64{{.+}} %[[BOTH]], %[[SKIPPED]],
// CHECK: llvm.inline_asm {{.+}}red.global.add.u64
// CHECK-NOT: llvm.inline_asm
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
      attn.count_tiles run(%n) skipped(%c0)
      return
    }
  }
}

// -----

// A tensor map becomes a parameter of the kernel. Only the 256 threads that compute wait at a barrier of the function,
// not the producers, which only copy.
// CHECK-LABEL: func private @g.attend
// CHECK-SAME: attn.launch = #attn.launch<threads = 256, producers = 128, arguments = 88, maps = [#attn.tensor_map<offset = 16, rank = 3, dim = 1, rows = 32, bytes = 2>]>
// CHECK: llvm.func @g_attend_0(%{{.+}}: !llvm.ptr {llvm.byval = !llvm.struct<{{.+}}>, nvvm.grid_constant}, %[[MAP:.+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
// CHECK-SAME: nvvm.maxntid = array<i32: 384, 1, 1>
// CHECK: %[[TENSOR:.+]] = builtin.unrealized_conversion_cast %[[MAP]] : !llvm.ptr to !nvgpu.tensormap.descriptor
// CHECK: nvgpu.tma.prefetch.descriptor %[[TENSOR]]
// CHECK: nvvm.barrier id = %{{.+}} number_of_threads = %{{.+}}
module {
  module @sm_90a attributes {attn.target = #attn.gpu<"sm_90a", shared = 101376, registers = 65536>} {
    func.func private @g.attend(%index: index, %worker: index, %n: index, %x: memref<2x?x64xf16>)
        attributes {attn.launch = #attn.launch<threads = 256, producers = 128>} {
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %c64 = arith.constant 64 : index
      %t = memref.cast %x : memref<2x?x64xf16> to memref<*xf16>
      %map = nvgpu.tma.create.descriptor %t box[%c1, %c32, %c64] : memref<*xf16>
        -> !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
      nvgpu.tma.prefetch.descriptor %map : !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = l2promo_256b, oob = zero, interleave = none>
      gpu.barrier
      return
    }
  }
}
