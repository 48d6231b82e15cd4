// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(attn-contract-to-vector),canonicalize,cse)' \
// RUN:   -verify-diagnostics | FileCheck %s

// The test covers the table of instructions in codegen/cpu/MultiplyAdd.cpp, except tiles (tiles.mlir), instructions of
// AArch64 (test/aarch64) and integers (test/run/element_types.py).

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#mki = affine_map<(m, n, k, i) -> (m, k, i)>
#kni = affine_map<(m, n, k, i) -> (k, n, i)>
#mn4 = affine_map<(m, n, k, i) -> (m, n)>

module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|pairs>} {

// A vector has 8 lanes of f64, so 32 columns are four vectors.
// CHECK-LABEL: @f64
// CHECK:         scf.for %{{.*}} = %c0 to %c48 step %c6
// CHECK:           scf.for %{{.*}} = %c0 to %c64 step %c2
// CHECK-COUNT-4:     vector.load %{{.*}} : memref<2048xf64{{.*}}>, vector<8xf64>
// CHECK-COUNT-48:    vector.fma %{{.*}} : vector<8xf64>
// CHECK-NOT:         vector.fma
// CHECK:         return
func.func @f64(%a: memref<48x64xf64>, %b: memref<64x32xf64>, %c: memref<48x32xf64>) {
  linalg.contract indexing_maps = [#mk, #kn, #mn]
    ins(%a, %b : memref<48x64xf64>, memref<64x32xf64>) outs(%c : memref<48x32xf64>)
  return
}

// Factors of bf16 are converted to f32 after their loads; sums are f32.
// CHECK-LABEL: @bf16
// CHECK:         vector.load %{{.*}}, vector<16xbf16>
// CHECK:         arith.extf %{{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK:         memref.load %{{.*}} : memref<3072xbf16
// CHECK-NEXT:    arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT:    vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK:         vector.fma %{{.*}} : vector<16xf32>
func.func @bf16(%a: memref<48x64xbf16>, %b: memref<64x48xbf16>, %c: memref<48x48xf32>) {
  linalg.contract indexing_maps = [#mk, #kn, #mn]
    ins(%a, %b : memref<48x64xbf16>, memref<64x48xbf16>) outs(%c : memref<48x48xf32>)
  return
}

// CHECK-LABEL: @f16
// CHECK:         arith.extf %{{.*}} : vector<16xf16> to vector<16xf32>
// CHECK:         vector.fma %{{.*}} : vector<16xf32>
func.func @f16(%a: memref<48x64xf16>, %b: memref<64x48xf16>, %c: memref<48x48xf32>) {
  linalg.contract indexing_maps = [#mk, #kn, #mn]
    ins(%a, %b : memref<48x64xf16>, memref<64x48xf16>) outs(%c : memref<48x48xf32>)
  return
}

// If the factors have two types, a factor that is not f32 is converted after its load.
// CHECK-LABEL: @mixed
// CHECK:         arith.extf %{{.*}} : vector<16xbf16> to vector<16xf32>
// CHECK-NOT:     arith.extf
// CHECK:         vector.fma %{{.*}} : vector<16xf32>
func.func @mixed(%a: memref<48x64xf32>, %b: memref<64x16xbf16>, %c: memref<48x16xf32>) {
  linalg.contract indexing_maps = [#mk, #kn, #mn]
    ins(%a, %b : memref<48x64xf32>, memref<64x16xbf16>) outs(%c : memref<48x16xf32>)
  return
}

// One instruction, which adds the products of a pair, replaces the loop over the pair. A pair of the scalar operand is
// broadcast as one 32-bit integer.
// CHECK-LABEL: @pairs
// CHECK:         scf.for %{{.*}} = %c0 to %c48 step %c8
// CHECK:           scf.for %{{.*}} = %c0 to %c32 step %c2
// CHECK-COUNT-3:     vector.load %{{.*}} : memref<3072xbf16{{.*}}>, vector<32xbf16>
// CHECK:             %[[PAIR:.*]] = vector.load %{{.*}} : memref<3072xbf16{{.*}}>, vector<2xbf16>
// CHECK:             %[[CAST:.*]] = vector.bitcast %[[PAIR]] : vector<2xbf16> to vector<1xi32>
// CHECK:             %[[BITS:.*]] = vector.extract %[[CAST]][0]
// CHECK:             %[[ALL:.*]] = vector.broadcast %[[BITS]] : i32 to vector<16xi32>
// CHECK:             %[[A:.*]] = vector.bitcast %[[ALL]] : vector<16xi32> to vector<32xbf16>
// CHECK-COUNT-48:    x86vector.avx512.dot %{{.*}} : vector<32xbf16> -> vector<16xf32>
// CHECK-NOT:         x86vector
// CHECK:         return
func.func @pairs(%a: memref<48x32x2xbf16>, %b: memref<32x48x2xbf16>, %c: memref<48x48xf32>) {
  linalg.contract indexing_maps = [#mki, #kni, #mn4]
    ins(%a, %b : memref<48x32x2xbf16>, memref<32x48x2xbf16>) outs(%c : memref<48x48xf32>)
  return
}

// Where an element of the vector operand is 0, the factor for it is replaced by 0, so that 0 * NaN is not added.
// CHECK-LABEL: @guarded_pairs
// CHECK:         %[[ROW:.*]] = vector.load %{{.*}}, vector<32xbf16>
// CHECK-NEXT:    %[[BITS:.*]] = vector.bitcast %[[ROW]] : vector<32xbf16> to vector<32xi16>
// CHECK-NEXT:    %[[SIZE:.*]] = arith.andi %[[BITS]], %{{.*}} : vector<32xi16>
// CHECK-NEXT:    %[[LIVE:.*]] = arith.cmpi ne, %[[SIZE]], %{{.*}} : vector<32xi16>
// CHECK:         %[[A:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<32xbf16>
// CHECK:         %[[KEPT:.*]] = arith.select %[[LIVE]], %[[A]], %{{.*}} : vector<32xi1>, vector<32xbf16>
// CHECK:         x86vector.avx512.dot %{{.*}}, %[[KEPT]], %[[ROW]]
func.func @guarded_pairs(%p: memref<32x48x2xbf16>, %v: memref<32x64x2xbf16>, %c: memref<64x48xf32>) {
  linalg.generic {attn.skips_zeros, indexing_maps = [affine_map<(m, n, k, i) -> (k, n, i)>, affine_map<(m, n, k, i) -> (k, m, i)>, #mn4],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%p, %v : memref<32x48x2xbf16>, memref<32x64x2xbf16>) outs(%c : memref<64x48xf32>) {
    ^bb0(%a: bf16, %b: bf16, %s: f32):
      %zero = arith.constant 0.0 : bf16
      %live = arith.cmpf une, %a, %zero : bf16
      %x = arith.extf %a : bf16 to f32
      %y = arith.extf %b : bf16 to f32
      %t = arith.mulf %x, %y : f32
      %u = arith.addf %s, %t : f32
      %w = arith.select %live, %u, %s : f32
      linalg.yield %w : f32
  }
  return
}

// 20 columns are a vector and 4 lanes. The mask of the loads has the bit of a column for both elements of its pair.
// CHECK-LABEL: @ragged_pairs
// CHECK:         %[[MASK:.*]] = vector.constant_mask [4] : vector<16xi1>
// CHECK:         %[[BOTH:.*]] = vector.interleave %[[MASK]], %[[MASK]] : vector<16xi1> -> vector<32xi1>
// CHECK:         vector.maskedload %{{.*}}, %[[BOTH]], %{{.*}} into vector<32xbf16>
// CHECK:         vector.maskedstore %{{.*}}, %[[MASK]], %{{.*}} vector<16xf32>
func.func @ragged_pairs(%a: memref<48x32x2xbf16>, %b: memref<32x20x2xbf16>, %c: memref<48x20xf32>) {
  linalg.contract indexing_maps = [#mki, #kni, #mn4]
    ins(%a, %b : memref<48x32x2xbf16>, memref<32x20x2xbf16>) outs(%c : memref<48x20xf32>)
  return
}

// No row of the table has these types.
// CHECK-LABEL: @no_row
// CHECK-NOT:     vector
// CHECK:         linalg.contract
func.func @no_row(%a: memref<48x64xf16>, %b: memref<64x48xf16>, %c: memref<48x48xf16>) {
  // expected-remark @below {{contraction becomes scalar loops: expected strided buffers of types that an instruction of x86-64-v4 multiplies and adds, got 'memref<48x64xf16>', 'memref<64x48xf16>', 'memref<48x48xf16>'}}
  linalg.contract indexing_maps = [#mk, #kn, #mn]
    ins(%a, %b : memref<48x64xf16>, memref<64x48xf16>) outs(%c : memref<48x48xf16>)
  return
}
}

// -----

// Without the instruction for pairs, a product of operands that hold pairs becomes scalar loops, because no input is
// contiguous along a loop that could be in the lanes.
#mki = affine_map<(m, n, k, i) -> (m, k, i)>
#kni = affine_map<(m, n, k, i) -> (k, n, i)>
#mn4 = affine_map<(m, n, k, i) -> (m, n)>

module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma|halves>} {
// CHECK-LABEL: @no_pairs
// CHECK-NOT:     vector
// CHECK:         arith.mulf %{{.*}} : f32
func.func @no_pairs(%a: memref<48x32x2xbf16>, %b: memref<32x48x2xbf16>, %c: memref<48x48xf32>) {
  // expected-remark @below {{contraction becomes scalar loops: expected a dimension}}
  linalg.contract indexing_maps = [#mki, #kni, #mn4]
    ins(%a, %b : memref<48x32x2xbf16>, memref<32x48x2xbf16>) outs(%c : memref<48x48xf32>)
  return
}
}
