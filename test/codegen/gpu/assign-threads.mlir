// RUN: attn-opt %s -attn-gpu-assign-threads -split-input-file -verify-diagnostics | FileCheck %s

// A step of 64 queries gets 4 warps, one per 16 queries. A product gets two by two warps, and other ops get 256
// threads.
// CHECK-LABEL: func private @attend
// CHECK-SAME: attn.launch = #attn.launch<threads = 128>
// CHECK-LABEL: func private @project
// CHECK-SAME: attn.launch = #attn.launch<threads = 128>
// CHECK-LABEL: func private @map
// CHECK-SAME: attn.launch = #attn.launch<threads = 256>
// CHECK-LABEL: func private @other
// CHECK-NOT: attn.launch
func.func @entry(%q: memref<64x16xf32>, %x: memref<8x8xf32>) {
  %c4 = arith.constant 4 : index
  attn.parallel_for @attend(%q) count(%c4) : memref<64x16xf32>
  attn.parallel_for @project(%x) count(%c4) : memref<8x8xf32>
  attn.parallel_for @map(%x) count(%c4) : memref<8x8xf32>
  return
}
func.func private @attend(%i: index, %worker: index, %q: memref<64x16xf32>) {
  %m = memref.alloca() : memref<64xf32, #gpu.address_space<private>>
  %a = memref.alloca() : memref<64x16xf32, #gpu.address_space<private>>
  %k = memref.subview %q[0, 0] [16, 16] [1, 1] : memref<64x16xf32> to memref<16x16xf32, strided<[16, 1]>>
  attn.online_step rows ins(%q, %k, %k : memref<64x16xf32>, memref<16x16xf32, strided<[16, 1]>>, memref<16x16xf32, strided<[16, 1]>>)
    outs(%a, %m, %m, %a : memref<64x16xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64xf32, #gpu.address_space<private>>, memref<64x16xf32, #gpu.address_space<private>>)
    at(%i, %i) {attn.blocks = {scores = #attn.block<rows = 16, vectors = 8>}, capture_maps = [], scale = 1.0 : f32}
  return
}
func.func private @project(%i: index, %worker: index, %x: memref<8x8xf32>) {
  linalg.matmul ins(%x, %x : memref<8x8xf32>, memref<8x8xf32>) outs(%x : memref<8x8xf32>)
  return
}
func.func private @map(%i: index, %worker: index, %x: memref<8x8xf32>) {
  return
}
func.func private @other(%x: memref<8x8xf32>) {
  return
}

// -----

func.func @entry(%q: memref<64x16xf32>) {
  %c4 = arith.constant 4 : index
  attn.parallel_for @attend(%q) count(%c4) : memref<64x16xf32>
  return
}
func.func private @attend(%i: index, %worker: index, %q: memref<64x16xf32>) {
  %m = memref.alloca() : memref<64xf32>
  %a = memref.alloca() : memref<64x16xf32>
  %k = memref.subview %q[0, 0] [16, 16] [1, 1] : memref<64x16xf32> to memref<16x16xf32, strided<[16, 1]>>
  // expected-error @+1 {{expected a block whose rows divide the 64 queries of a tile, got #attn.block<rows = 48, vectors = 8>}}
  attn.online_step rows ins(%q, %k, %k : memref<64x16xf32>, memref<16x16xf32, strided<[16, 1]>>, memref<16x16xf32, strided<[16, 1]>>)
    outs(%a, %m, %m, %a : memref<64x16xf32>, memref<64xf32>, memref<64xf32>, memref<64x16xf32>)
    at(%i, %i) {attn.blocks = {scores = #attn.block<rows = 48, vectors = 8>}, capture_maps = [], scale = 1.0 : f32}
  return
}
