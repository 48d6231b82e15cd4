// RUN: attn-opt %s -attn-gpu-product-to-fragments -canonicalize | FileCheck %s

// Each warp computes 32 rows and 16 columns, as two by two matrices. A lane holds four numbers of each matrix.
// CHECK-LABEL: func private @project
// CHECK-DAG: %[[LEFT:.+]] = memref.alloca() {alignment = 16 : i64} : memref<2x64x72xf16, #gpu.address_space<workgroup>>
// CHECK-DAG: %[[RIGHT:.+]] = memref.alloca() {alignment = 16 : i64} : memref<2x32x72xf16, #gpu.address_space<workgroup>>
// CHECK-DAG: %[[SUMS:.+]] = memref.alloca() : memref<16xf32>
// CHECK: scf.for %{{.+}} = %c0 to %{{.+}} step %c64
// CHECK: nvgpu.device_async_copy
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for %{{.+}} = %c0 to %c96 step %c64
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvgpu.device_async_copy
// CHECK: nvgpu.ldmatrix %{{.+}} {numTiles = 4 : i32, transpose = false}
// CHECK-COUNT-16: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
// CHECK: memref.load %[[SUMS]]
// CHECK: memref.load %{{.+}}[%c0, %{{.+}}, %{{.+}}] : memref<1x?x30xf32>
// CHECK: memref.store
// CHECK: gpu.barrier
#x = affine_map<(b, m, n, k) -> (b, m, k)>
#w = affine_map<(b, m, n, k) -> (n, k)>
#y = affine_map<(b, m, n, k) -> (b, m, n)>
func.func private @project(%i: index, %worker: index, %x: memref<1x?x96xf16>, %w: memref<30x96xf16>, %y: memref<1x?x30xf32>)
    attributes {attn.launch = #attn.launch<threads = 128>} {
  linalg.contract indexing_maps = [#x, #w, #y] {attn.block = #attn.block<rows = 32, vectors = 2>}
      ins(%x, %w : memref<1x?x96xf16>, memref<30x96xf16>) outs(%y : memref<1x?x30xf32>)
  return
}

// A weight whose elements are adjacent along n is transposed when it is loaded. Products of f32 take three
// instructions.
// CHECK-LABEL: func private @columns
// CHECK: memref.load %{{.+}} : memref<32x{{.+}}xf32, {{.+}}, #gpu.address_space<workgroup>>
// CHECK-COUNT-3: nvvm.mma.sync {{.+}} multiplicandAPtxType = #nvvm.mma_type<tf32>
func.func private @columns(%i: index, %worker: index, %x: memref<50x96xf32>, %w: memref<96x30xf32>, %y: memref<50x30xf32>)
    attributes {attn.launch = #attn.launch<threads = 128>} {
  linalg.matmul {attn.block = #attn.block<rows = 16, vectors = 2>} ins(%x, %w : memref<50x96xf32>, memref<96x30xf32>) outs(%y : memref<50x30xf32>)
  return
}

// A sum over two dimensions stays.
// CHECK-LABEL: func private @two_sums
// CHECK: linalg.contract
func.func private @two_sums(%i: index, %worker: index, %x: memref<8x4x6xf32>, %w: memref<5x4x6xf32>, %y: memref<8x5xf32>)
    attributes {attn.launch = #attn.launch<threads = 128>} {
  linalg.contract indexing_maps = [affine_map<(m, n, k, l) -> (m, k, l)>, affine_map<(m, n, k, l) -> (n, k, l)>, affine_map<(m, n, k, l) -> (m, n)>]
      ins(%x, %w : memref<8x4x6xf32>, memref<5x4x6xf32>) outs(%y : memref<8x5xf32>)
  return
}
