// RUN: attn-opt %s -attn-gpu-stage-tiles -canonicalize -split-input-file -verify-diagnostics | FileCheck %s

// Shared memory has one tile of queries and two tiles each of keys and values, with rows of 64 + 8 elements. The loops
// share these tiles.
// CHECK-LABEL: func private @attend
// CHECK: %[[KEYS:.+]] = memref.alloca() {alignment = 16 : i64} : memref<2x64x72xbf16, #gpu.address_space<workgroup>>
// CHECK: %[[TURN:.+]] = memref.alloca() : memref<index>
// The first tile is copied.
// CHECK: nvgpu.device_async_copy
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.cp.async.wait.group
// CHECK: scf.for %[[J:.+]] = %c0 to %[[FULL:.+]] step %c64 {
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
// CHECK: %[[STAGE:.+]] = memref.load %[[TURN]][]
// CHECK: %[[OTHER:.+]] = arith.subi %c1, %[[STAGE]]
// The copy of the next tile starts; it ends at the last key.
// CHECK: %[[AFTER:.+]] = arith.addi %[[J]], %c64
// CHECK: %[[NEXT:.+]] = arith.minsi %[[AFTER]], %[[FULL]]
// CHECK: %[[ROWS:.+]] = memref.subview %{{.+}}[%[[NEXT]], 0] [64, 64] [1, 1]
// CHECK: nvgpu.device_async_copy %[[ROWS]][{{.+}}], %{{.+}}[%[[OTHER]], {{.+}}], 8, %{{.+}} {bypassL1}
// CHECK: nvvm.cp.async.commit.group
// CHECK: memref.store %[[OTHER]], %[[TURN]][]
// CHECK: %[[TILE:.+]] = memref.subview %[[KEYS]][%[[STAGE]], 0, 0] [1, 64, 64] [1, 1, 1]
// CHECK: attn.online_step rows ins(%{{.+}}, %[[TILE]],
// CHECK: scf.for %{{.+}} = %[[FULL]] to %{{.+}} step %c64 {
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK: %[[TILE:.+]] = memref.subview %[[KEYS]][%{{.+}}, 0, 0] [1, %{{.+}}, 64] [1, 1, 1]
// CHECK: attn.online_step rows ins(%{{.+}}, %[[TILE]],
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: return
func.func private @attend(%i: index, %worker: index, %q: memref<?x64xbf16, strided<[64, 1], offset: ?>>, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %full: index, %hi: index)
    attributes {attn.launch = #attn.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %m = memref.alloca() : memref<64xf32, #gpu.address_space<private>>
  %a = memref.alloca() : memref<64x64xf32, #gpu.address_space<private>>
  scf.for %j = %c0 to %full step %c64 {
    %kt = memref.subview %k[%j, 0] [64, 64] [1, 1] : memref<?x64xbf16> to memref<64x64xbf16, strided<[64, 1], offset: ?>>
    %vt = memref.subview %v[%j, 0] [64, 64] [1, 1] : memref<?x64xbf16> to memref<64x64xbf16, strided<[64, 1], offset: ?>>
    attn.online_step rows ins(%q, %kt, %vt : memref<?x64xbf16, strided<[64, 1], offset: ?>>, memref<64x64xbf16, strided<[64, 1], offset: ?>>, memref<64x64xbf16, strided<[64, 1], offset: ?>>)
      outs(%a, %m, %m, %a : memref<64x64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64x64xf32, #gpu.address_space<private>>)
      at(%i, %j) {capture_maps = [], scale = 1.0 : f32}
  }
  scf.for %j = %full to %hi step %c64 {
    %n = affine.min affine_map<(j)[hi] -> (64, hi - j)>(%j)[%hi]
    %kt = memref.subview %k[%j, 0] [%n, 64] [1, 1] : memref<?x64xbf16> to memref<?x64xbf16, strided<[64, 1], offset: ?>>
    %vt = memref.subview %v[%j, 0] [%n, 64] [1, 1] : memref<?x64xbf16> to memref<?x64xbf16, strided<[64, 1], offset: ?>>
    attn.online_step rows ins(%q, %kt, %vt : memref<?x64xbf16, strided<[64, 1], offset: ?>>, memref<?x64xbf16, strided<[64, 1], offset: ?>>, memref<?x64xbf16, strided<[64, 1], offset: ?>>)
      outs(%a, %m, %m, %a : memref<64x64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64x64xf32, #gpu.address_space<private>>)
      at(%i, %j) mask(#attn.causal) {capture_maps = [], scale = 1.0 : f32}
  }
  return
}

// -----

// Rows of 20 elements do not begin at multiples of 16 bytes, so threads copy element by element, and pad rows to 32
// elements with zeros.
// CHECK-LABEL: func private @odd
// CHECK: memref.alloca() {alignment = 16 : i64} : memref<1x32x40xf16
// CHECK: scf.for
// CHECK: memref.store %cst
// CHECK-NOT: nvgpu.device_async_copy
// CHECK: gpu.barrier
// CHECK-NEXT: %{{.+}} = memref.subview
// CHECK: attn.online_step
// CHECK-NEXT: gpu.barrier
func.func private @odd(%i: index, %worker: index, %x: memref<25x20xf16>) attributes {attn.launch = #attn.launch<threads = 64>} {
  %m = memref.alloca() : memref<32xf32, #gpu.address_space<private>>
  %mq = memref.subview %m[0] [25] [1] : memref<32xf32, #gpu.address_space<private>> to memref<25xf32, strided<[1]>, #gpu.address_space<private>>
  %a = memref.alloca() : memref<25x20xf32, #gpu.address_space<private>>
  %s = memref.alloca() : memref<25x25xf32, #gpu.address_space<private>>
  attn.online_step rows ins(%x, %x, %x : memref<25x20xf16>, memref<25x20xf16>, memref<25x20xf16>)
    outs(%s, %mq, %mq, %a : memref<25x25xf32, #gpu.address_space<private>>, memref<25xf32, strided<[1]>, #gpu.address_space<private>>, memref<25xf32, strided<[1]>, #gpu.address_space<private>>, memref<25x20xf32, #gpu.address_space<private>>)
    at(%i, %i) {capture_maps = [], scale = 1.0 : f32}
  return
}

// -----

func.func private @types(%i: index, %worker: index, %x: memref<32x20xf16>, %y: memref<32x20xf32>) attributes {attn.launch = #attn.launch<threads = 64>} {
  %m = memref.alloca() : memref<32xf32>
  %a = memref.alloca() : memref<32x20xf32>
  %s = memref.alloca() : memref<32x32xf32>
  // expected-error @+1 {{expected queries, keys and values of one type and of known head sizes, got 'memref<32x20xf32>'}}
  attn.online_step rows ins(%x, %x, %y : memref<32x20xf16>, memref<32x20xf16>, memref<32x20xf32>)
    outs(%s, %m, %m, %a : memref<32x32xf32>, memref<32xf32>, memref<32xf32>, memref<32x20xf32>) at(%i, %i) {capture_maps = [], scale = 1.0 : f32}
  return
}

// -----

// A tile that a packed mask hides is not copied: the words of the next tile are tested before its copy.
// CHECK-LABEL: func private @masked
// CHECK: attn.test_mask
// CHECK: %[[FIRST:.+]] = arith.cmpi ult
// CHECK: scf.if %[[FIRST]] {
// CHECK: nvgpu.device_async_copy
// CHECK: }
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for %[[J:.+]] = %c0 to %{{.+}} step %c64 {
// CHECK-NEXT: nvvm.cp.async.wait.group 0
// CHECK: %[[AFTER:.+]] = arith.addi %[[J]], %c64
// CHECK: %[[NEXT:.+]] = arith.minsi %[[AFTER]]
// CHECK: %[[WORDS:.+]] = memref.subview %{{.+}}[%{{.+}}, 0] [2, 64] [1, 1]
// CHECK: attn.test_mask %[[WORDS]]
// CHECK: %[[KEPT:.+]] = arith.cmpi ult
// CHECK: scf.if %[[KEPT]] {
// CHECK: nvgpu.device_async_copy
// CHECK: }
// CHECK: nvvm.cp.async.commit.group
// CHECK: attn.test_mask
// CHECK: scf.if
// CHECK: attn.online_step
func.func private @masked(%i: index, %worker: index, %q: memref<64x64xbf16>, %k: memref<?x64xbf16>, %v: memref<?x64xbf16>, %words: memref<?x64xi32>, %hi: index)
    attributes {attn.launch = #attn.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %m = memref.alloca() : memref<64xf32, #gpu.address_space<private>>
  %a = memref.alloca() : memref<64x64xf32, #gpu.address_space<private>>
  scf.for %j = %c0 to %hi step %c64 {
    %w = affine.apply affine_map<(j) -> (j floordiv 32)>(%j)
    %bits = memref.subview %words[%w, 0] [2, 64] [1, 1] : memref<?x64xi32> to memref<2x64xi32, strided<[64, 1], offset: ?>>
    %begin, %end, %all = attn.test_mask %bits keeps nonzero : memref<2x64xi32, strided<[64, 1], offset: ?>>
    %any = arith.cmpi ult, %begin, %end : index
    scf.if %any {
      %kt = memref.subview %k[%j, 0] [64, 64] [1, 1] : memref<?x64xbf16> to memref<64x64xbf16, strided<[64, 1], offset: ?>>
      %vt = memref.subview %v[%j, 0] [64, 64] [1, 1] : memref<?x64xbf16> to memref<64x64xbf16, strided<[64, 1], offset: ?>>
      attn.online_step rows ins(%q, %kt, %vt : memref<64x64xbf16>, memref<64x64xbf16, strided<[64, 1], offset: ?>>, memref<64x64xbf16, strided<[64, 1], offset: ?>>)
        outs(%a, %m, %m, %a : memref<64x64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64x64xf32, #gpu.address_space<private>>)
        at(%i, %j) {capture_maps = [], scale = 1.0 : f32}
    }
  }
  return
}
