// For each ISA level, once the exponent is computed, an exponential takes twelve instructions per vector, or eight with
// vreduceps and vscalefps. The loop has no access to the stack and no call.
//
// DEFINE: %{target} =
// DEFINE: %{cpu} =
// DEFINE: %{level} = sed -e 's/LEVEL/%{target}/' %s
// DEFINE: %{lower} = attn-opt --pass-pipeline='builtin.module( \
// DEFINE:   func.func(attn-online-to-vector), canonicalize, cse, convert-vector-to-llvm{enable-x86vector}, convert-scf-to-cf, \
// DEFINE:   expand-strided-metadata, lower-affine, finalize-memref-to-llvm, convert-func-to-llvm, \
// DEFINE:   convert-arith-to-llvm, convert-math-to-llvm, convert-cf-to-llvm, convert-vector-to-llvm, convert-ub-to-llvm, \
// DEFINE:   reconcile-unrealized-casts, canonicalize, cse)' \
// DEFINE:   | sed -e 's/attributes {attn.target = [^>]*>}//' | mlir-translate --mlir-to-llvmir \
// DEFINE:   | opt -O1 -mtriple=x86_64 -mcpu=%{cpu} | llc -O3 -mtriple=x86_64 -mcpu=%{cpu}

// REDEFINE: %{target} = "x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|scale
// REDEFINE: %{cpu} = x86-64-v4
// RUN: %{level} | %{lower} | FileCheck %s --check-prefixes=CHECK,V4
// REDEFINE: %{target} = "x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma
// REDEFINE: %{cpu} = x86-64-v3
// RUN: %{level} | %{lower} | FileCheck %s --check-prefixes=CHECK,V3
// REDEFINE: %{target} = "x86-64", vector = 128, registers = 16, l1 = 32768, l2 = 262144
// REDEFINE: %{cpu} = x86-64
// RUN: %{level} | %{lower} | FileCheck %s --check-prefixes=CHECK,V1

module attributes {attn.target = #attn.cpu<LEVEL>} {

// The first loop computes maxima, with one instruction each. The second loop computes 4 or 2 exponentials: for each, a
// difference and a multiply-add for the exponent, and 5 multiply-adds for the power of two.
// CHECK-LABEL: update:
// CHECK-NOT:     call
// CHECK:         Inner Loop Header
// V4-COUNT-4:    vmaxps {{.*}}zmm
// V3-COUNT-2:    vmaxps {{.*}}ymm
// V1-COUNT-2:    maxps
// CHECK:         {{jb|jne|jae}}
// CHECK:         Inner Loop Header
// V4-NOT:        (%rsp
// V4-COUNT-4:    vfmadd{{.*}}zmm
// V4-COUNT-4:    vreduceps
// V4-COUNT-20:   vfmadd{{.*}}zmm
// V4-NOT:        {{vfm|vmulps|\(%rsp}}
// V4-COUNT-4:    vscalefps
// V3-NOT:        (%rsp
// V3-COUNT-12:   vfmadd{{.*}}ymm
// V3-NOT:        {{vfmadd|\(%rsp}}
// V1-NOT:        (%rsp
// V1-COUNT-2:    pslld
// V1-NOT:        (%rsp
// CHECK:         {{jb|jne|jae}}
func.func @update(%query: memref<64x48xf32>, %key: memref<128x64xf32>, %s: memref<128x48xf32>, %m: memref<48xf32>, %l: memref<48xf32>, %a: memref<64x48xf32>,
                  %q0: index, %k0: index) {
  attn.online_step ins(%query, %key, %key : memref<64x48xf32>, memref<128x64xf32>, memref<128x64xf32>)
    outs(%s, %m, %l, %a : memref<128x48xf32>, memref<48xf32>, memref<48xf32>, memref<64x48xf32>)
    at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  return
}

// The exponentials are fused with the product of query and key: the loop of a block of 8 x 3 or 4 x 3 vectors is
// unchanged, and its accumulators become probabilities. After the first four are stored, the others are not spilled to
// the stack. With vectors of 16 lanes, the code of the exponentials precedes that of the loop.
// CHECK-LABEL: fused:
// CHECK-NOT:     call
// V4-COUNT-4:    vscalefps
// V4-COUNT-20:   vscalefps {{%zmm[0-9]+, %zmm[0-9]+, %zmm}}
// V4-NOT:        vscalefps
// V4:            Inner Loop Header: Depth=3
// V4-NOT:        (%rsp
// V4-COUNT-48:   vfmadd{{.*}}zmm
// V4-NOT:        {{vfmadd|\(%rsp}}
// V4:            {{jb|jne|jae}}
// V3:            Inner Loop Header: Depth=4
// V3-NOT:        (%rsp
// V3-COUNT-24:   vfmadd{{.*}}ymm
// V3-NOT:        {{vfmadd|\(%rsp}}
// V3:            {{jb|jne|jae}}
// CHECK-NOT:     call
// CHECK:         retq
func.func @fused(%keys: memref<96x64xf32>, %queries: memref<64x48xf32>, %s: memref<96x48xf32>, %m: memref<48xf32>,
                 %l: memref<48xf32>, %a: memref<64x48xf32>, %q0: index, %k0: index) {
  attn.online_step ins(%queries, %keys, %keys : memref<64x48xf32>, memref<96x64xf32>, memref<96x64xf32>)
    outs(%s, %m, %l, %a : memref<96x48xf32>, memref<48xf32>, memref<48xf32>, memref<64x48xf32>)
    at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  return
}

// Every shuffle of a block is one instruction.
// CHECK-LABEL: finish:
// CHECK-NOT:     call
// V4-COUNT-64:   {{vunpck|vshuff}}
// V3-COUNT-24:   {{vunpck|vperm2f128|vinsertf128}}
// V1-COUNT-8:    {{unpck|movlhps|movhlps}}
// CHECK:         retq
func.func @finish(%l: memref<48xf32>, %a: memref<64x48xf32>, %o: memref<48x64xf32, strided<[768, 1], offset: ?>>) {
  attn.online_finish ins(%l, %a : memref<48xf32>, memref<64x48xf32>)
    outs(%o : memref<48x64xf32, strided<[768, 1], offset: ?>>)
  return
}
}
