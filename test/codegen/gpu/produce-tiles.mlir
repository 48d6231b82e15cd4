// RUN: attn-opt %s -pass-pipeline='builtin.module(builtin.module(attn-gpu-produce-tiles,canonicalize))' | FileCheck %s

// CHECK-LABEL: func private @attend
// CHECK-SAME: attn.launch = #attn.launch<threads = 256, producers = 128>
// Shared memory has one tile of queries, three tiles of keys and three of values, with their barriers. All get tensor
// maps.
// CHECK-DAG: memref.alloca() {alignment = 1024 : i64, attn.swizzled} : memref<1x128x64xbf16, #gpu.address_space<workgroup>>
// CHECK-DAG: nvgpu.tma.create.descriptor %{{.+}} box[%c128, %c64]
// CHECK-DAG: memref.alloca() {alignment = 1024 : i64, attn.swizzled} : memref<3x128x64xbf16, #gpu.address_space<workgroup>>
// CHECK-DAG: memref.alloca() : memref<3xi64, #gpu.address_space<workgroup>>
// CHECK-DAG: nvgpu.tma.create.descriptor %{{.+}} box[%c1, %c128, %c64]
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: nvvm.barrier0
// CHECK: scf.if %{{.+}} {
// The consumers, the threads that compute:
// CHECK-NEXT: nvvm.setmaxregister increase 232
// CHECK: nvvm.mbarrier.try_wait
// CHECK: scf.if %{{.+}} {
// CHECK: nvvm.mbarrier.try_wait
// CHECK: attn.after_scores {
// CHECK: nvvm.mbarrier.arrive
// CHECK: attn.online_step {{.+}}attn.overlap = #attn.overlap<begin>
// CHECK: scf.for
// CHECK-COUNT-2: nvvm.mbarrier.try_wait
// CHECK: attn.after_scores {
// CHECK: nvvm.mbarrier.arrive
// CHECK: attn.online_step {{.+}}attn.overlap = #attn.overlap<middle>
// CHECK: nvvm.mbarrier.arrive
// CHECK: nvvm.mbarrier.try_wait
// CHECK: attn.online_step {{.+}}attn.overlap = #attn.overlap<end>
// CHECK: nvvm.mbarrier.arrive
// CHECK: scf.for
// CHECK-COUNT-2: nvvm.mbarrier.try_wait
// CHECK: attn.after_scores {
// CHECK: nvvm.mbarrier.arrive
// CHECK: attn.online_step
// CHECK-NOT: attn.overlap
// CHECK: nvvm.mbarrier.arrive
// The step outside the loops:
// CHECK-COUNT-2: nvvm.mbarrier.try_wait
// CHECK: attn.after_scores {
// CHECK: nvvm.mbarrier.arrive
// CHECK: attn.online_step
// CHECK: nvvm.mbarrier.arrive
// CHECK: } else {
// The producer, the thread that starts copies:
// CHECK-NEXT: nvvm.setmaxregister decrease 40
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: scf.for
// CHECK: nvvm.mbarrier.try_wait
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nvvm.mbarrier.try_wait
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: scf.for
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global

// Rows of 60 elements do not begin at multiples of 16 bytes, so no copies are possible and there is no producer.
// CHECK-LABEL: func private @odd
// CHECK-SAME: attn.launch = #attn.launch<threads = 128>
// CHECK-NOT: nvvm.mbarrier

// A warp of producers tests the mask of each tile as the consumers do, and one thread copies the tiles that are not
// hidden. Each step of a tile releases its keys.
// CHECK-LABEL: func private @masked
// CHECK-SAME: attn.launch = #attn.launch<threads = 256, producers = 128>
// CHECK: %[[PRODUCER:.+]] = arith.cmpi eq, %[[THREAD:.+]], %c256
// CHECK: scf.for
// CHECK-NOT: nvvm.mbarrier
// CHECK: attn.test_mask
// CHECK: scf.if %{{.+}} {
// CHECK-COUNT-2: nvvm.mbarrier.try_wait
// CHECK: scf.if %{{.+}} {
// CHECK: attn.after_scores {
// CHECK: attn.online_step
// CHECK: } else {
// CHECK: attn.after_scores {
// CHECK: attn.online_step
// CHECK: nvvm.mbarrier.arrive
// CHECK: } else {
// CHECK-NEXT: attn.count_tiles
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: %[[FIRST_WARP:.+]] = arith.cmpi slt, %[[THREAD]], %c288
// CHECK: scf.if %[[FIRST_WARP]] {
// CHECK: scf.for
// CHECK-NOT: nvvm.mbarrier
// CHECK: attn.test_mask
// CHECK: %[[ANY:.+]] = arith.cmpi ult
// CHECK: %[[COPIES:.+]] = arith.andi %[[ANY]], %[[PRODUCER]]
// CHECK: scf.if %[[COPIES]] {
// CHECK-NOT: attn.count_tiles
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global

// Without a mask, all tasks take the same time, so a block runs several: block b of n runs the tasks b, b + n, b + 2n and
// so on. While one tile of queries is read, the next one is copied.
// CHECK-LABEL: func private @repeated
// CHECK-SAME: %[[BLOCK:.+]]: index, %{{.+}}: index, %{{.+}}: memref<?x128x64xbf16>, %{{.+}}: memref<128x64xbf16>, %{{.+}}: index, %[[COUNT:.+]]: index)
// CHECK-SAME: attn.launch = #attn.launch<threads = 256, producers = 128, blocks = 1>
// CHECK: memref<2x128x64xbf16, #gpu.address_space<workgroup>>
// CHECK: nvvm.setmaxregister increase 232
// CHECK-DAG: %[[GRID:.+]] = gpu.grid_dim x
// CHECK-DAG: %[[BLOCKS:.+]] = arith.index_cast %[[GRID]] : index to i32
// CHECK-DAG: %[[FIRST:.+]] = arith.index_cast %[[BLOCK]] : index to i32
// CHECK-DAG: %[[END:.+]] = arith.index_cast %[[COUNT]] : index to i32
// CHECK: scf.for unsigned %[[NUMBER:.+]] = %[[FIRST]] to %[[END]] step %[[BLOCKS]] : i32 {
// CHECK: arith.index_castui %[[NUMBER]] : i32 to index
// CHECK: nvvm.mbarrier.try_wait
// CHECK: attn.online_step {{.+}}attn.overlap = #attn.overlap<end>
// CHECK: nvvm.mbarrier.arrive
// CHECK: attn.online_finish
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: scf.for
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: scf.for
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-LABEL: func @run
// CHECK: attn.parallel_for @repeated(%{{.+}}, %{{.+}}, %{{.+}}, %[[N:.+]]) count(%[[N]])

// The producer cannot copy queries that the task writes, so the consumers do. A warp may still read the previous ones.
// CHECK-LABEL: func private @written
// CHECK-SAME: blocks = 1>
// CHECK: scf.for
// CHECK: gpu.barrier
// CHECK: linalg.fill
// CHECK: gpu.barrier
// CHECK: nvgpu.device_async_copy
module {
  module @sm_90a attributes {attn.target = #attn.gpu<"sm_90a", shared = 232448, registers = 65536, has = copies|matrices|warpgroups>} {
    func.func private @attend(%i: index, %worker: index, %q: memref<128x64xbf16>, %k: memref<2x?x64xbf16>, %v: memref<2x?x64xbf16>, %full: index, %hi: index)
        attributes {attn.launch = #attn.launch<threads = 256>} {
      %c0 = arith.constant 0 : index
      %c128 = arith.constant 128 : index
      %m = memref.alloca() : memref<128xf32, #gpu.address_space<private>>
      %a = memref.alloca() : memref<128x64xf32, #gpu.address_space<private>>
      %s = memref.alloca() : memref<128x128xf32, #gpu.address_space<private>>
      scf.for %j = %c0 to %full step %c128 {
        %kt = memref.subview %k[%i, %j, 0] [1, 128, 64] [1, 1, 1] : memref<2x?x64xbf16> to memref<128x64xbf16, strided<[64, 1], offset: ?>>
        %vt = memref.subview %v[%i, %j, 0] [1, 128, 64] [1, 1, 1] : memref<2x?x64xbf16> to memref<128x64xbf16, strided<[64, 1], offset: ?>>
        attn.online_step rows ins(%q, %kt, %vt : memref<128x64xbf16>, memref<128x64xbf16, strided<[64, 1], offset: ?>>, memref<128x64xbf16, strided<[64, 1], offset: ?>>)
          outs(%s, %m, %m, %a : memref<128x128xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128x64xf32, #gpu.address_space<private>>)
          at(%i, %j) {capture_maps = [], scale = 1.0 : f32, attn.stages = 3 : i64}
      }
      scf.for %j = %full to %hi step %c128 {
        %n = affine.min affine_map<(j)[hi] -> (128, hi - j)>(%j)[%hi]
        %sn = memref.subview %s[0, 0] [128, %n] [1, 1] : memref<128x128xf32, #gpu.address_space<private>> to memref<128x?xf32, strided<[128, 1]>, #gpu.address_space<private>>
        %kt = memref.subview %k[%i, %j, 0] [1, %n, 64] [1, 1, 1] : memref<2x?x64xbf16> to memref<?x64xbf16, strided<[64, 1], offset: ?>>
        %vt = memref.subview %v[%i, %j, 0] [1, %n, 64] [1, 1, 1] : memref<2x?x64xbf16> to memref<?x64xbf16, strided<[64, 1], offset: ?>>
        attn.online_step rows ins(%q, %kt, %vt : memref<128x64xbf16>, memref<?x64xbf16, strided<[64, 1], offset: ?>>, memref<?x64xbf16, strided<[64, 1], offset: ?>>)
          outs(%sn, %m, %m, %a : memref<128x?xf32, strided<[128, 1]>, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128x64xf32, #gpu.address_space<private>>)
          at(%i, %j) mask(#attn.causal) {capture_maps = [], scale = 1.0 : f32}
      }
      %s32 = memref.subview %s[0, 0] [128, 32] [1, 1] : memref<128x128xf32, #gpu.address_space<private>> to memref<128x32xf32, strided<[128, 1]>, #gpu.address_space<private>>
      %kt = memref.subview %k[%i, %hi, 0] [1, 32, 64] [1, 1, 1] : memref<2x?x64xbf16> to memref<32x64xbf16, strided<[64, 1], offset: ?>>
      %vt = memref.subview %v[%i, %hi, 0] [1, 32, 64] [1, 1, 1] : memref<2x?x64xbf16> to memref<32x64xbf16, strided<[64, 1], offset: ?>>
      attn.online_step rows ins(%q, %kt, %vt : memref<128x64xbf16>, memref<32x64xbf16, strided<[64, 1], offset: ?>>, memref<32x64xbf16, strided<[64, 1], offset: ?>>)
        outs(%s32, %m, %m, %a : memref<128x32xf32, strided<[128, 1]>, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128x64xf32, #gpu.address_space<private>>)
        at(%i, %hi) {capture_maps = [], scale = 1.0 : f32}
      return
    }

    func.func private @odd(%i: index, %worker: index, %q: memref<64x60xbf16>, %k: memref<64x60xbf16>, %m: memref<64xf32, #gpu.address_space<private>>, %a: memref<64x60xf32, #gpu.address_space<private>>, %s: memref<64x64xf32, #gpu.address_space<private>>)
        attributes {attn.launch = #attn.launch<threads = 128>} {
      attn.online_step rows ins(%q, %k, %k : memref<64x60xbf16>, memref<64x60xbf16>, memref<64x60xbf16>)
        outs(%s, %m, %m, %a : memref<64x64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64x60xf32, #gpu.address_space<private>>)
        at(%i, %i) {capture_maps = [], scale = 1.0 : f32}
      return
    }

    func.func private @masked(%i: index, %worker: index, %q: memref<128x64xbf16>, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %words: memref<?x128xi32>, %hi: index)
        attributes {attn.launch = #attn.launch<threads = 256>} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c128 = arith.constant 128 : index
      %m = memref.alloca() : memref<128xf32, #gpu.address_space<private>>
      %a = memref.alloca() : memref<128x64xf32, #gpu.address_space<private>>
      %s = memref.alloca() : memref<128x128xf32, #gpu.address_space<private>>
      scf.for %j = %c0 to %hi step %c128 {
        %w = affine.apply affine_map<(j) -> (j floordiv 32)>(%j)
        %bits = memref.subview %words[%w, 0] [4, 128] [1, 1] : memref<?x128xi32> to memref<4x128xi32, strided<[128, 1], offset: ?>>
        %begin, %end, %all = attn.test_mask %bits keeps nonzero : memref<4x128xi32, strided<[128, 1], offset: ?>>
        %any = arith.cmpi ult, %begin, %end : index
        scf.if %any {
          attn.count_tiles run(%c1) skipped(%c0)
          %kt = memref.subview %k[%j, 0] [128, 64] [1, 1] : memref<?x64xbf16> to memref<128x64xbf16, strided<[64, 1], offset: ?>>
          %vt = memref.subview %v[%j, 0] [128, 64] [1, 1] : memref<?x64xbf16> to memref<128x64xbf16, strided<[64, 1], offset: ?>>
          scf.if %all {
            attn.online_step rows ins(%q, %kt, %vt : memref<128x64xbf16>, memref<128x64xbf16, strided<[64, 1], offset: ?>>, memref<128x64xbf16, strided<[64, 1], offset: ?>>)
              outs(%s, %m, %m, %a : memref<128x128xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128x64xf32, #gpu.address_space<private>>)
              at(%i, %j) {capture_maps = [], scale = 1.0 : f32}
          } else {
            attn.online_step rows ins(%q, %kt, %vt : memref<128x64xbf16>, memref<128x64xbf16, strided<[64, 1], offset: ?>>, memref<128x64xbf16, strided<[64, 1], offset: ?>>)
              outs(%s, %m, %m, %a : memref<128x128xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128x64xf32, #gpu.address_space<private>>)
              at(%i, %j) mask(#attn.causal) {capture_maps = [], scale = 1.0 : f32}
          }
        } else {
          attn.count_tiles run(%c0) skipped(%c1)
        }
      }
      return
    }

    func.func private @repeated(%i: index, %worker: index, %q: memref<?x128x64xbf16>, %k: memref<128x64xbf16>, %hi: index)
        attributes {attn.launch = #attn.launch<threads = 256>} {
      %c0 = arith.constant 0 : index
      %c64 = arith.constant 64 : index
      %m = memref.alloca() : memref<128xf32, #gpu.address_space<private>>
      %a = memref.alloca() : memref<128x64xf32, #gpu.address_space<private>>
      %s = memref.alloca() : memref<128x64xf32, #gpu.address_space<private>>
      %qt = memref.subview %q[%i, 0, 0] [1, 128, 64] [1, 1, 1] : memref<?x128x64xbf16> to memref<128x64xbf16, strided<[64, 1], offset: ?>>
      scf.for %j = %c0 to %hi step %c64 {
        %kt = memref.subview %k[%j, 0] [64, 64] [1, 1] : memref<128x64xbf16> to memref<64x64xbf16, strided<[64, 1], offset: ?>>
        attn.online_step rows ins(%qt, %kt, %kt : memref<128x64xbf16, strided<[64, 1], offset: ?>>, memref<64x64xbf16, strided<[64, 1], offset: ?>>, memref<64x64xbf16, strided<[64, 1], offset: ?>>)
          outs(%s, %m, %m, %a : memref<128x64xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128x64xf32, #gpu.address_space<private>>)
          at(%i, %j) {capture_maps = [], scale = 1.0 : f32}
      }
      attn.online_finish rows ins(%m, %a : memref<128xf32, #gpu.address_space<private>>, memref<128x64xf32, #gpu.address_space<private>>)
        outs(%a : memref<128x64xf32, #gpu.address_space<private>>)
      return
    }

    func.func @run(%q: memref<?x128x64xbf16>, %k: memref<128x64xbf16>, %hi: index, %n: index) {
      attn.parallel_for @repeated(%q, %k, %hi) count(%n) : memref<?x128x64xbf16>, memref<128x64xbf16>, index
      return
    }

    func.func private @written(%i: index, %worker: index, %q: memref<128x64xbf16>, %k: memref<64x64xbf16>)
        attributes {attn.launch = #attn.launch<threads = 256>} {
      %zero = arith.constant 0.0 : bf16
      %m = memref.alloca() : memref<128xf32, #gpu.address_space<private>>
      %a = memref.alloca() : memref<128x64xf32, #gpu.address_space<private>>
      %s = memref.alloca() : memref<128x64xf32, #gpu.address_space<private>>
      linalg.fill ins(%zero : bf16) outs(%q : memref<128x64xbf16>)
      attn.online_step rows ins(%q, %k, %k : memref<128x64xbf16>, memref<64x64xbf16>, memref<64x64xbf16>)
        outs(%s, %m, %m, %a : memref<128x64xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128xf32, #gpu.address_space<private>>, memref<128x64xf32, #gpu.address_space<private>>)
        at(%i, %i) {capture_maps = [], scale = 1.0 : f32}
      return
    }
  }
}
