// RUN: attn-opt %s --pass-pipeline='builtin.module(func.func(attn-pack-to-vector),canonicalize,cse)' | FileCheck %s

module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>} {

// A block of 16 x 16 takes 16 loads, 64 shuffles and 16 stores. All blocks are whole, so there is no other code.
// CHECK-LABEL: @pack
// CHECK:         scf.for %{{.*}} step %c16 {
// CHECK:           scf.for %{{.*}} step %c16 {
// CHECK-COUNT-16:    vector.load
// CHECK-NOT:         vector.load
// CHECK-COUNT-64:    vector.shuffle
// CHECK-NOT:         vector.shuffle
// CHECK-COUNT-16:    vector.store
// CHECK-NOT:       memref.store
// CHECK:         return
func.func @pack(%w: memref<64x768xf32>, %p: memref<1x768x64xf32>) {
  attn.pack ins(%w : memref<64x768xf32>) outs(%p : memref<1x768x64xf32>)
  return
}

// 40 columns are two panels of 32: the second panel has 8 columns, which are masked, and zeros.
// CHECK-LABEL: @ragged
// CHECK-COUNT-64: vector.shuffle
// CHECK:         scf.for %{{.*}} to %c64 step %c16
// CHECK:           %[[MASK:.*]] = vector.constant_mask [8]
// CHECK-COUNT-8:   vector.load
// CHECK-NOT:       vector.load
// CHECK-COUNT-16:  vector.maskedstore %{{.*}}, %[[MASK]]
// CHECK:         scf.for %{{.*}} = %c8 to %c32 step
// CHECK:           memref.store %cst
func.func @ragged(%w: memref<40x64xf32>, %p: memref<2x64x32xf32>) {
  attn.pack ins(%w : memref<40x64xf32>) outs(%p : memref<2x64x32xf32>)
  return
}

// At an edge of unknown size, loads of rows beyond the end read the last row again; these rows are not stored.
// CHECK-LABEL: @dynamic
// CHECK:         %[[REST:.*]] = arith.subi %{{.*}} : index
// CHECK:         %[[MASK:.*]] = vector.create_mask %[[REST]]
// CHECK:         %[[LAST:.*]] = arith.subi %[[REST]], %c1
// CHECK:         arith.minui %[[LAST]], %c15
// CHECK:         vector.maskedstore %{{.*}}, %[[MASK]]
func.func @dynamic(%q: memref<?x64xf32>, %p: memref<1x64x48xf32>) {
  attn.pack ins(%q : memref<?x64xf32>) outs(%p : memref<1x64x48xf32>)
  return
}

// With from_rows, rows are copied as vectors, the last vector with a mask.
// CHECK-LABEL: @from_rows
// CHECK-NOT:     vector.shuffle
// CHECK:         %[[V:.*]] = vector.load
// CHECK:         vector.store %[[V]]
// CHECK:         %[[M:.*]] = vector.maskedload
// CHECK:         vector.maskedstore %{{.*}}, %{{.*}}, %[[M]]
func.func @from_rows(%w: memref<2x64x24xf32>, %p: memref<2x1x64x24xf32>) {
  attn.pack from_rows ins(%w : memref<2x64x24xf32>) outs(%p : memref<2x1x64x24xf32>)
  return
}

// Two rows of 16-bit elements are transposed as one row of 32-bit elements. The last of an odd number of rows is copied
// element by element.
// CHECK-LABEL: @half
// CHECK:         %[[EVEN:.*]] = vector.load %{{.*}}, vector<16xf16>
// CHECK:         %[[ODD:.*]] = vector.load %{{.*}}, vector<16xf16>
// CHECK:         vector.interleave %[[EVEN]], %[[ODD]] : vector<16xf16> -> vector<32xf16>
// CHECK-COUNT-64: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// CHECK:         vector.bitcast %{{.*}} : vector<16xi32> to vector<32xf16>
// CHECK:         vector.store
// CHECK:         memref.load %{{.*}} : memref<2112xf16
// CHECK:         return
func.func @half(%w: memref<33x64xf16>, %p: memref<1x64x33xf16>) {
  attn.pack ins(%w : memref<33x64xf16>) outs(%p : memref<1x64x33xf16>)
  return
}

// Other types are copied element by element.
// CHECK-LABEL: @byte
// CHECK-NOT:     vector
// CHECK:         memref.load %{{.*}} : memref<4096xi8
// CHECK:         return
func.func @byte(%w: memref<64x64xi8>, %p: memref<1x64x64xi8>) {
  attn.pack ins(%w : memref<64x64xi8>) outs(%p : memref<1x64x64xi8>)
  return
}

// The batch has a loop; the dimension of size 1 has none.
// CHECK-LABEL: @transpose
// CHECK-DAG:     %[[C12:.*]] = arith.constant 12 : index
// CHECK:         scf.for %{{.*}} to %[[C12]] step
// CHECK-COUNT-64:  vector.shuffle
// CHECK-NOT:     linalg
// CHECK:         return
func.func @transpose(%x: memref<12x32x1x64xf32>, %y: memref<12x64x32x1xf32>) {
  linalg.transpose ins(%x : memref<12x32x1x64xf32>) outs(%y : memref<12x64x32x1xf32>) permutation = [0, 3, 1, 2]
  return
}

// Elements are multiplied by the scale before the shuffles.
// CHECK-LABEL: @scaled
// CHECK:         %[[SCALE:.*]] = arith.constant dense<1.250000e-01> : vector<16xf32>
// CHECK:         %[[ROW:.*]] = vector.load
// CHECK-NEXT:    arith.mulf %[[ROW]], %[[SCALE]]
func.func @scaled(%q: memref<48x64xf32>, %p: memref<1x64x48xf32>) {
  attn.pack scale(0.125) ins(%q : memref<48x64xf32>) outs(%p : memref<1x64x48xf32>)
  return
}

// Pairs of bf16 are transposed as 32-bit integers.
// CHECK-LABEL: @pairs
// CHECK:         vector.load %{{.*}}, vector<32xbf16>
// CHECK-NEXT:    vector.bitcast %{{.*}} : vector<32xbf16> to vector<16xi32>
// CHECK-COUNT-64: vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// CHECK-NOT:     vector.shuffle
// CHECK:         vector.bitcast %{{.*}} : vector<16xi32> to vector<32xbf16>
// CHECK-NOT:     memref.store
// CHECK:         return
func.func @pairs(%w: memref<64x768xbf16>, %p: memref<1x384x64x2xbf16>) {
  attn.pack group(2) ins(%w : memref<64x768xbf16>) outs(%p : memref<1x384x64x2xbf16>)
  return
}

// Two rows are interleaved. The last row has no second row, so it is interleaved with zeros.
// CHECK-LABEL: @pairs_of_rows
// CHECK:         scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK:           %[[R:.*]] = vector.load %{{.*}}, vector<16xbf16>
// CHECK:           %[[S:.*]] = vector.load %{{.*}}, vector<16xbf16>
// CHECK:           vector.interleave %[[R]], %[[S]] : vector<16xbf16> -> vector<32xbf16>
// CHECK:         memref.load
// CHECK:         memref.store
// CHECK:         memref.store %cst
// CHECK:         return
func.func @pairs_of_rows(%w: memref<9x32xbf16>, %p: memref<1x5x32x2xbf16>) {
  attn.pack from_rows group(2) ins(%w : memref<9x32xbf16>) outs(%p : memref<1x5x32x2xbf16>)
  return
}

// The transposition stays, because it keeps the rows of the last dimension.
// CHECK-LABEL: @not_ours
// CHECK:         linalg.transpose
func.func @not_ours(%x: memref<12x32x64xf32>, %y: memref<32x12x64xf32>) {
  linalg.transpose ins(%x : memref<12x32x64xf32>) outs(%y : memref<32x12x64xf32>) permutation = [1, 0, 2]
  return
}
}
