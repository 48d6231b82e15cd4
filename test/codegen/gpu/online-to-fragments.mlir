// RUN: attn-opt %s -attn-gpu-online-to-fragments -canonicalize -cse -split-input-file -verify-diagnostics | FileCheck %s

// One warp computes 16 queries, 16 keys and 16 elements of a value. Each lane has two maxima, two sums and eight
// accumulators.
// CHECK-LABEL: func private @attend
// CHECK-DAG: %[[MAX:.+]] = memref.alloca() : memref<2xf32>
// CHECK-DAG: memref.alloca() : memref<8xf32>
// The products of queries and keys.
// CHECK: nvgpu.ldmatrix %{{.+}} {numTiles = 4 : i32, transpose = false}
// CHECK-COUNT-2: nvvm.mma.sync
// The bound of each query, which the mask gives, is compared with the keys.
// CHECK: %[[HIDDEN:.+]] = arith.cmpi sle, %{{.+}}, %{{.+}} : i32
// CHECK: arith.select %[[HIDDEN]], %{{.+}}, %{{.+}} : f32
// CHECK: gpu.shuffle xor %{{.+}}, %c1_i32
// CHECK: gpu.shuffle xor %{{.+}}, %c2_i32
// CHECK: memref.store %{{.+}}, %[[MAX]]
// Large maxima are subtracted.
// CHECK: %[[LARGE:.+]] = nvvm.vote.sync any
// CHECK: scf.if %[[LARGE]] -> (f32, f32, f32, f32, f32, f32, f32, f32)
// CHECK: arith.subf
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// If a value is not finite, three products have separate sums: one with the finite values, one with a 1 in place of
// each infinity, and one with a 1 in place of each negative infinity.
// CHECK: %[[ANY:.+]] = nvvm.vote.sync any
// CHECK: scf.if %[[ANY]] {
// CHECK: nvgpu.ldmatrix %{{.+}} {numTiles = 4 : i32, transpose = true}
// CHECK-COUNT-6: nvvm.mma.sync
// CHECK: } else {
// CHECK-COUNT-2: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: scf.if
// CHECK: vector.store %{{.+}}, %{{.+}} {alignment = 4 : i64} : memref<10x16xf16>, vector<2xf16>
func.func private @attend(%i: index, %worker: index, %o: memref<10x16xf16>) attributes {attn.launch = #attn.launch<threads = 32>} {
  %q = memref.alloca() : memref<1x16x24xf16, #gpu.address_space<workgroup>>
  %k = memref.alloca() : memref<1x16x24xf16, #gpu.address_space<workgroup>>
  %qt = memref.subview %q[0, 0, 0] [1, 10, 16] [1, 1, 1] : memref<1x16x24xf16, #gpu.address_space<workgroup>> to memref<10x16xf16, strided<[24, 1]>, #gpu.address_space<workgroup>>
  %kt = memref.subview %k[0, 0, 0] [1, 16, 16] [1, 1, 1] : memref<1x16x24xf16, #gpu.address_space<workgroup>> to memref<16x16xf16, strided<[24, 1]>, #gpu.address_space<workgroup>>
  %m = memref.alloca() : memref<16xf32, #gpu.address_space<private>>
  %l = memref.alloca() : memref<16xf32, #gpu.address_space<private>>
  %a = memref.alloca() : memref<16x16xf32, #gpu.address_space<private>>
  %mq = memref.subview %m[0] [10] [1] : memref<16xf32, #gpu.address_space<private>> to memref<10xf32, strided<[1]>, #gpu.address_space<private>>
  %lq = memref.subview %l[0] [10] [1] : memref<16xf32, #gpu.address_space<private>> to memref<10xf32, strided<[1]>, #gpu.address_space<private>>
  %aq = memref.subview %a[0, 0] [10, 16] [1, 1] : memref<16x16xf32, #gpu.address_space<private>> to memref<10x16xf32, strided<[16, 1]>, #gpu.address_space<private>>
  attn.online_init rows outs(%mq, %lq, %aq : memref<10xf32, strided<[1]>, #gpu.address_space<private>>, memref<10xf32, strided<[1]>, #gpu.address_space<private>>, memref<10x16xf32, strided<[16, 1]>, #gpu.address_space<private>>)
  attn.online_step rows ins(%qt, %kt, %kt : memref<10x16xf16, strided<[24, 1]>, #gpu.address_space<workgroup>>, memref<16x16xf16, strided<[24, 1]>, #gpu.address_space<workgroup>>, memref<16x16xf16, strided<[24, 1]>, #gpu.address_space<workgroup>>)
    outs(%aq, %mq, %lq, %aq : memref<10x16xf32, strided<[16, 1]>, #gpu.address_space<private>>, memref<10xf32, strided<[1]>, #gpu.address_space<private>>, memref<10xf32, strided<[1]>, #gpu.address_space<private>>, memref<10x16xf32, strided<[16, 1]>, #gpu.address_space<private>>)
    at(%i, %i) mask(#attn.causal) {capture_maps = [], scale = 1.0 : f32}
  attn.online_finish rows ins(%lq, %aq : memref<10xf32, strided<[1]>, #gpu.address_space<private>>, memref<10x16xf32, strided<[16, 1]>, #gpu.address_space<private>>) outs(%o : memref<10x16xf16>)
  return
}

// -----

func.func private @warps(%i: index, %worker: index, %o: memref<10x16xf16>) attributes {attn.launch = #attn.launch<threads = 64>} {
  %m = memref.alloca() : memref<16xf32, #gpu.address_space<private>>
  %a = memref.alloca() : memref<16x16xf32, #gpu.address_space<private>>
  // expected-error @+1 {{expected a multiple of 16 queries in registers for each of 2 warps, got 'memref<16x16xf32, #gpu.address_space<private>>'}}
  attn.online_init rows outs(%m, %m, %a : memref<16xf32, #gpu.address_space<private>>, memref<16xf32, #gpu.address_space<private>>, memref<16x16xf32, #gpu.address_space<private>>)
  return
}

// -----

// Four warps multiply swizzled tiles together. In the middle of a loop, the step starts the products of its queries and
// keys, and the products of the probabilities and values of the previous step. The products with values run while this
// step computes its softmax. The keys are released between the wait for the products with keys and the softmax.
// CHECK-LABEL: func private @warpgroup
// CHECK: %[[PENDING:.+]] = memref.alloca() : memref<8xi32>
// CHECK-COUNT-8: memref.load %[[PENDING]]
// CHECK: llvm.inline_asm {{.+}}"wgmma.fence.sync.aligned;
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16
// CHECK-SAME: wgmma.commit_group.sync.aligned;"
// CHECK: llvm.inline_asm {{.+}}"wgmma.fence.sync.aligned;
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK-SAME: wgmma.commit_group.sync.aligned;"
// CHECK: llvm.inline_asm {{.+}}"wgmma.wait_group.sync.aligned 1;"
// CHECK: nvvm.mbarrier.arrive
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: llvm.inline_asm {{.+}}"@$0 exit;"
// CHECK: llvm.inline_asm {{.+}}"wgmma.wait_group.sync.aligned 0;"
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"
// CHECK: memref.store %{{.+}}, %[[PENDING]]
func.func private @warpgroup(%i: index, %worker: index, %empty: !llvm.ptr<3>) attributes {attn.launch = #attn.launch<threads = 128, producers = 128>} {
  %q = memref.alloca() {alignment = 1024 : i64, attn.swizzled} : memref<1x64x64xbf16, #gpu.address_space<workgroup>>
  %k = memref.alloca() {alignment = 1024 : i64, attn.swizzled} : memref<2x32x64xbf16, #gpu.address_space<workgroup>>
  %qt = memref.subview %q[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<1x64x64xbf16, #gpu.address_space<workgroup>> to memref<64x64xbf16, strided<[64, 1]>, #gpu.address_space<workgroup>>
  %kt = memref.subview %k[%i, 0, 0] [1, 32, 64] [1, 1, 1] : memref<2x32x64xbf16, #gpu.address_space<workgroup>> to memref<32x64xbf16, strided<[64, 1], offset: ?>, #gpu.address_space<workgroup>>
  %s = memref.alloca() : memref<64x32xf32, #gpu.address_space<private>>
  %m = memref.alloca() : memref<64xf32, #gpu.address_space<private>>
  %l = memref.alloca() : memref<64xf32, #gpu.address_space<private>>
  %a = memref.alloca() : memref<64x64xf32, #gpu.address_space<private>>
  attn.online_init rows outs(%m, %l, %a : memref<64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64x64xf32, #gpu.address_space<private>>)
  attn.after_scores {
    nvvm.mbarrier.arrive %empty : !llvm.ptr<3> -> i64
  }
  attn.online_step rows ins(%qt, %kt, %kt : memref<64x64xbf16, strided<[64, 1]>, #gpu.address_space<workgroup>>, memref<32x64xbf16, strided<[64, 1], offset: ?>, #gpu.address_space<workgroup>>, memref<32x64xbf16, strided<[64, 1], offset: ?>, #gpu.address_space<workgroup>>)
    outs(%s, %m, %l, %a : memref<64x32xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64x64xf32, #gpu.address_space<private>>)
    at(%i, %i) {attn.overlap = #attn.overlap<middle>, capture_maps = [], scale = 1.0 : f32}
  return
}
