// RUN: attn-opt %s --pass-pipeline='builtin.module(func.func(attn-contract-to-vector),canonicalize,cse)' | FileCheck %s
//
// Products in blocks of AMX tiles: 32 rows by 32 columns, 16 pairs of bf16 at a time.

#x = affine_map<(m, n, k, g) -> (m, k, g)>
#w = affine_map<(m, n, k, g) -> (k, n, g)>
#y = affine_map<(m, n, k, g) -> (m, n)>
module attributes {attn.target = #attn.cpu<"x86-64-amx", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|pairs|tiles>} {

// Whole tiles of sums are loaded from the output and stored to it.
// CHECK-LABEL: @whole
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c32
// CHECK:           scf.for %{{.*}} = %c0 to %c96 step %c32
// CHECK-COUNT-4:     amx.tile_load %{{.*}} : memref<6144xf32{{.*}}> into !amx.tile<16x16xf32>
// CHECK:             scf.for %{{.*}} = %c0 to %c48 step %c16 iter_args
// CHECK-COUNT-4:       amx.tile_load {{.*}} into !amx.tile<16x32xbf16>
// CHECK-COUNT-2:       amx.tile_mulf
// CHECK:             amx.tile_store
// CHECK-NOT:         vector
// CHECK:         return
func.func @whole(%x: memref<96x48x2xbf16>, %w: memref<48x64x2xbf16>, %y: memref<96x64xf32>) {
  linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : memref<96x48x2xbf16>, memref<48x64x2xbf16>) outs(%y : memref<96x64xf32>)
  return
}

// 37 pairs are two steps of 16 and 5 more: tiles of sums are stored to a buffer, and vectors add the products of the
// last 5 pairs. Vectors also compute all products of the last 4 rows.
// CHECK-LABEL: @edges
// CHECK:         %[[BUFFER:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK:         amx.tile_mulf
// CHECK:         amx.tile_store %[[BUFFER]]
// CHECK:         scf.for %{{.*}} = %c0 to %c32 step %c8
// CHECK:           vector.load %[[BUFFER]]
// CHECK:           scf.for %{{.*}} = %c0 to %c5
// CHECK:             x86vector.avx512.dot
// CHECK:         scf.for %{{.*}} = %c0 to %c37
// CHECK-NOT:       amx
// CHECK:           x86vector.avx512.dot
func.func @edges(%x: memref<36x37x2xbf16>, %w: memref<37x32x2xbf16>, %y: memref<36x32xf32>) {
  linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : memref<36x37x2xbf16>, memref<37x32x2xbf16>) outs(%y : memref<36x32xf32>)
  return
}

// The pairs of a row are not adjacent, so the products use vectors, in blocks that are as wide as those of tiles.
// CHECK-LABEL: @apart
// CHECK-NOT:     amx
// CHECK:         scf.for %{{.*}} = %c0 to %c96 step %c8
// CHECK:         x86vector.avx512.dot
func.func @apart(%x: memref<96x48x2xbf16, strided<[192, 4, 1]>>, %w: memref<48x64x2xbf16>, %y: memref<96x64xf32>) {
  linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : memref<96x48x2xbf16, strided<[192, 4, 1]>>, memref<48x64x2xbf16>) outs(%y : memref<96x64xf32>)
  return
}

// A block that needs more tiles than there are tile registers uses vectors.
// CHECK-LABEL: @many
// CHECK-NOT:     amx
// CHECK:         x86vector.avx512.dot
func.func @many(%x: memref<96x48x2xbf16>, %w: memref<48x64x2xbf16>, %y: memref<96x64xf32>) {
  linalg.contract indexing_maps = [#x, #w, #y] {attn.block = #attn.block<rows = 48, vectors = 2>}
    ins(%x, %w : memref<96x48x2xbf16>, memref<48x64x2xbf16>) outs(%y : memref<96x64xf32>)
  return
}
}
