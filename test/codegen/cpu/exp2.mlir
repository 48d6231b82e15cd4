// RUN: attn-opt %s --pass-pipeline='builtin.module(builtin.module(func.func(attn-online-to-vector,attn-softmax-to-vector),canonicalize,cse))' \
// RUN:   | FileCheck %s

// Exponentials of an ISA level that has vreduceps and vscalefps. No power is a denormal number.

module {
module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|scale>} {

// If the maximum is large, the exponent is (x - maximum) * log2(e), otherwise x * log2(e) - maximum * log2(e). In a
// softmax, where exp(-inf) must be 0, powers less than 2^-100 are 0 as well.
// CHECK-LABEL: @softmax
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant dense<-1.000000e+02> : vector<16xf32>
// CHECK-DAG:     %[[LOG2E:.*]] = arith.constant dense<1.44269502> : vector<16xf32>
// CHECK:         %[[OFFSET:.*]] = arith.mulf %[[MAX:.*]], %{{.*}}
// CHECK:         %[[SUBTRACTED:.*]] = arith.select %[[LARGE:.*]], %[[MAX]], %[[ZERO]]
// CHECK:         %[[ADDED:.*]] = arith.select %[[LARGE]], %[[ZERO]], %[[OFFSET]]
// CHECK:         %[[DIFFERENCE:.*]] = arith.subf %{{.*}}, %[[SUBTRACTED]]
// CHECK:         %[[X:.*]] = llvm.intr.fma(%[[DIFFERENCE]], %[[LOG2E]], %[[ADDED]])
// CHECK:         %[[SMALL:.*]] = arith.cmpf olt, %[[X]], %[[LEAST]]
// CHECK:         %[[R:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"(%[[X]],
// CHECK-COUNT-5: vector.fma
// CHECK:         %[[P:.*]] = x86vector.avx512.mask.scalef %{{.*}}, %[[X]]
// CHECK:         arith.select %[[SMALL]], %[[ZERO]], %[[P]]
func.func @softmax(%s: memref<4x32xf32>, %p: memref<4x32xf32>) {
  linalg.softmax dimension(1) ins(%s : memref<4x32xf32>) outs(%p : memref<4x32xf32>)
  return
}

// In attn.online_step, exponents less than -100 become -100, because only hidden pairs may have a probability of 0.
// CHECK-LABEL: @update
// CHECK-DAG:     %[[LIVE:.*]] = arith.constant dense<-1.000000e+02> : vector<16xf32>
// CHECK:         %[[CLAMPED:.*]] = arith.maximumf %{{.*}}, %[[LIVE]]
// CHECK:         %[[R:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"(%[[CLAMPED]],
// CHECK:         vector.fma %{{.*}}, %[[R]],
// CHECK:         x86vector.avx512.mask.scalef %{{.*}}, %[[CLAMPED]]
func.func @update(%query: memref<64x48xf32>, %key: memref<128x64xf32>, %s: memref<128x48xf32>, %m: memref<48xf32>, %l: memref<48xf32>, %a: memref<64x48xf32>,
                  %q0: index, %k0: index) {
  attn.online_step ins(%query, %key, %key : memref<64x48xf32>, memref<128x64xf32>, memref<128x64xf32>)
    outs(%s, %m, %l, %a : memref<128x48xf32>, memref<48xf32>, memref<48xf32>, memref<64x48xf32>)
    at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  return
}
}

// Without these instructions, exponents less than -100 become -127, whose power of two has the bits of 0.
module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>} {
// CHECK-LABEL: @softmax_by_rounding
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant dense<-1.000000e+02> : vector<8xf32>
// CHECK-DAG:     %[[GONE:.*]] = arith.constant dense<-1.270000e+02> : vector<8xf32>
// CHECK:         %[[SMALL:.*]] = arith.cmpf olt, %[[X:.*]], %[[LEAST]]
// CHECK:         %[[CLAMPED:.*]] = arith.select %[[SMALL]], %[[GONE]], %[[X]]
// CHECK:         arith.addf %[[CLAMPED]],
// CHECK:         arith.shli
// CHECK-NOT:     arith.select
// CHECK:         return
func.func @softmax_by_rounding(%s: memref<4x32xf32>, %p: memref<4x32xf32>) {
  linalg.softmax dimension(1) ins(%s : memref<4x32xf32>) outs(%p : memref<4x32xf32>)
  return
}
}

// Without multiply-adds, the maximum is subtracted before the multiplication by log2(e). A product with the maximum
// would have a rounding error in proportion to the maximum.
module attributes {attn.target = #attn.cpu<"x86-64", vector = 128, registers = 16, l1 = 32768, l2 = 262144>} {
// CHECK-LABEL: @softmax_without_fma
// CHECK-DAG:     %[[LOG2E:.*]] = arith.constant dense<1.44269502> : vector<4xf32>
// CHECK:         %[[LESS:.*]] = arith.subf
// CHECK:         arith.mulf %[[LESS]], %[[LOG2E]]
func.func @softmax_without_fma(%s: memref<4x32xf32>, %p: memref<4x32xf32>) {
  linalg.softmax dimension(1) ins(%s : memref<4x32xf32>) outs(%p : memref<4x32xf32>)
  return
}
}
}
