// For each ISA level, the inner loop has only the multiply-adds of the register block, and no access to the stack.
//
// DEFINE: %{target} =
// DEFINE: %{cpu} =
// DEFINE: %{level} = sed -e 's/LEVEL/%{target}/' %s
// DEFINE: %{lower} = attn-opt --pass-pipeline='builtin.module( \
// DEFINE:   func.func(attn-contract-to-vector), canonicalize, cse, convert-vector-to-scf{full-unroll=true}, \
// DEFINE:   convert-vector-to-llvm, convert-scf-to-cf, expand-strided-metadata, lower-affine, arith-expand, \
// DEFINE:   finalize-memref-to-llvm, convert-func-to-llvm, convert-arith-to-llvm, convert-cf-to-llvm, \
// DEFINE:   convert-vector-to-llvm, convert-ub-to-llvm, reconcile-unrealized-casts, canonicalize, cse)' \
// DEFINE:   | sed -e 's/attributes {attn.target = [^>]*>}//' | mlir-translate --mlir-to-llvmir \
// DEFINE:   | opt -O1 -mtriple=x86_64 -mcpu=%{cpu} | llc -O3 -mtriple=x86_64 -mcpu=%{cpu}

// REDEFINE: %{target} = "x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks
// REDEFINE: %{cpu} = x86-64-v4
// RUN: %{level} | %{lower} | FileCheck %s --check-prefixes=CHECK,V4
// REDEFINE: %{target} = "x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma
// REDEFINE: %{cpu} = x86-64-v3
// RUN: %{level} | %{lower} | FileCheck %s --check-prefixes=CHECK,V3
// REDEFINE: %{target} = "x86-64", vector = 128, registers = 16, l1 = 32768, l2 = 262144
// REDEFINE: %{cpu} = x86-64
// RUN: %{level} | %{lower} | FileCheck %s --check-prefixes=CHECK,V1

module attributes {attn.target = #attn.cpu<LEVEL>} {

// With AVX-512 and AVX2, an iteration does two steps of a block of 8 x 3 or 4 x 3 vectors. With SSE, where products are
// instructions of their own, an iteration does one step of a block of 6 x 2.
// CHECK-LABEL: product:
// CHECK:         Inner Loop Header
// V4-NOT:        (%rsp
// V4-COUNT-48:   vfmadd{{.*}}zmm
// V4-NOT:        {{vfmadd|\(%rsp}}
// V3-NOT:        (%rsp
// V3-COUNT-24:   vfmadd{{.*}}ymm
// V3-NOT:        {{vfmadd|\(%rsp}}
// V1-NOT:        (%rsp
// V1-COUNT-12:   mulps
// V1-NOT:        {{mulps|\(%rsp}}
// CHECK:         {{jb|jne|jae}}
func.func @product(%a: memref<240x64xf32>, %b: memref<64x48xf32>, %c: memref<240x48xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<240x48xf32>)
  linalg.matmul ins(%a, %b : memref<240x64xf32>, memref<64x48xf32>) outs(%c : memref<240x48xf32>)
  return
}

// A block with a single vector per row: the multiply-add broadcasts the element of its memory operand.
// CHECK-LABEL: narrow:
// CHECK:         Inner Loop Header
// V4-COUNT-16:   vfmadd{{.*}}{1to16}
// V4-NOT:        vfmadd
// CHECK:         {{jb|jne|jae}}
func.func @narrow(%a: memref<240x64xf32>, %b: memref<64x16xf32>, %c: memref<240x16xf32>) {
  linalg.matmul ins(%a, %b : memref<240x64xf32>, memref<64x16xf32>) outs(%c : memref<240x16xf32>)
  return
}

// A body that skips zeros needs a comparison. With AVX-512 it needs no select, because the multiply-add has a mask.
// CHECK-LABEL: guarded:
// CHECK:         Inner Loop Header
// V4-NOT:        (%rsp
// V4-COUNT-3:    vcmpneqps
// V4:            vfmadd{{.*}}{%k
// V3:            vblendvps
// CHECK:         {{jb|jne|jae}}
func.func @guarded(%v: memref<128x64xf32>, %p: memref<128x48xf32>, %o: memref<64x48xf32>) {
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (k, m)>,
                                   affine_map<(m, n, k) -> (m, n)>],
                  iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %v : memref<128x48xf32>, memref<128x64xf32>) outs(%o : memref<64x48xf32>)
      attrs = {attn.skips_zeros} {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %zero = arith.constant 0.0 : f32
    %keep = arith.cmpf une, %x, %zero : f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %z, %product : f32
    %result = arith.select %keep, %sum, %z : f32
    linalg.yield %result : f32
  }
  return
}
}
