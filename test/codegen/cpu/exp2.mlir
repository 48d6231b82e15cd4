// RUN: attn-opt %s --pass-pipeline='builtin.module(builtin.module(func.func(attn-online-to-vector,attn-softmax-to-vector),canonicalize,cse))' \
// RUN:   | FileCheck %s

// Exponentials of a level with instructions that take an exponent apart and scale by it. No power is a denormal number.

module {
module attributes {attn.target = #attn.target<"x86-64-v4", lanes = 16, registers = 32, fma = true, l1 = 32768, l2 = 1048576, scalef = true>} {

// Differences of scores still need log2 e: a product that is rounded once, and of which the float nearest to log2 e is not
// all. Where 0 says hidden, as of -inf, what is too small is 0 as well.
// CHECK-LABEL: @softmax
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant dense<-69.3147202> : vector<16xf32>
// CHECK-DAG:     %[[LOG2E:.*]] = arith.constant dense<1.44269502> : vector<16xf32>
// CHECK-DAG:     %[[REST:.*]] = arith.constant dense<1.925963{{.*}}E-8> : vector<16xf32>
// CHECK-DAG:     %[[ROUND:.*]] = arith.constant dense<0x4B400000> : vector<16xf32>
// CHECK:         %[[X:.*]] = arith.subf
// CHECK:         %[[SMALL:.*]] = arith.cmpf olt, %[[X]], %[[LEAST]]
// CHECK:         %[[SUM:.*]] = vector.fma %[[X]], %[[LOG2E]], %[[ROUND]]
// CHECK:         %[[LESS:.*]] = arith.subf %[[ROUND]], %[[SUM]]
// CHECK:         %[[R:.*]] = vector.fma %[[X]], %[[LOG2E]], %[[LESS]]
// CHECK:         vector.fma %[[X]], %[[REST]], %[[R]]
// CHECK-COUNT-6: vector.fma
// CHECK:         %[[N:.*]] = arith.subf %[[SUM]], %[[ROUND]]
// CHECK:         %[[P:.*]] = x86vector.avx512.mask.scalef %{{.*}}, %[[N]]
// CHECK:         arith.select %[[SMALL]], %[[ZERO]], %[[P]]
func.func @softmax(%s: memref<4x32xf32>, %p: memref<4x32xf32>) {
  linalg.softmax dimension(1) ins(%s : memref<4x32xf32>) outs(%p : memref<4x32xf32>)
  return
}

// Products of queries that hold log2 e are exponents as they are. No weight is 0 that is not hidden.
// CHECK-LABEL: @update
// CHECK-DAG:     %[[LIVE:.*]] = arith.constant dense<-1.000000e+02> : vector<16xf32>
// CHECK:         %[[SMALL:.*]] = arith.cmpf olt, %[[X:.*]], %[[LIVE]]
// CHECK:         %[[CLAMPED:.*]] = arith.select %[[SMALL]], %[[LIVE]], %[[X]]
// CHECK:         %[[R:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"(%[[CLAMPED]],
// CHECK:         vector.fma %{{.*}}, %[[R]],
// CHECK:         x86vector.avx512.mask.scalef %{{.*}}, %[[CLAMPED]]
func.func @update(%s: memref<128x48xf32>, %m: memref<48xf32>, %l: memref<48xf32>, %a: memref<64x48xf32>,
                  %q0: index, %k0: index) {
  attn.online_update outs(%s, %m, %l, %a : memref<128x48xf32>, memref<48xf32>, memref<48xf32>, memref<64x48xf32>)
    at(%q0, %k0) {capture_maps = [], scale = 6.93147182e-01 : f32}
  return
}
}

// Without such instructions: below the bound stands an exponent whose bits are 0.
module attributes {attn.target = #attn.target<"x86-64-v3", lanes = 8, registers = 16, fma = true, l1 = 32768, l2 = 262144>} {
// CHECK-LABEL: @softmax_by_rounding
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant dense<-69.3147202> : vector<8xf32>
// CHECK-DAG:     %[[GONE:.*]] = arith.constant dense<-88.0296936> : vector<8xf32>
// CHECK:         %[[SMALL:.*]] = arith.cmpf olt, %[[X:.*]], %[[LEAST]]
// CHECK:         %[[CLAMPED:.*]] = arith.select %[[SMALL]], %[[GONE]], %[[X]]
// CHECK:         vector.fma %[[CLAMPED]],
// CHECK:         arith.shli
// CHECK-NOT:     arith.select
// CHECK:         return
func.func @softmax_by_rounding(%s: memref<4x32xf32>, %p: memref<4x32xf32>) {
  linalg.softmax dimension(1) ins(%s : memref<4x32xf32>) outs(%p : memref<4x32xf32>)
  return
}
}
}
