// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-gpu-math-to-intrinsics))' | FileCheck %s

// CHECK-LABEL: gpu.module @kernels
// CHECK: llvm.call_intrinsic "llvm.sqrt.f32"(%{{.+}}) : (f32) -> f32
// CHECK: llvm.call_intrinsic "llvm.fabs.f64"
// CHECK: llvm.call_intrinsic "llvm.copysign.f32"
// CHECK: llvm.call_intrinsic "llvm.fma.f32"
// CHECK: llvm.call_intrinsic "llvm.maxnum.f32"
// CHECK: arith.addf
gpu.module @kernels {
  func.func @f(%x: f32, %d: f64) -> (f32, f64) {
    %a = math.sqrt %x : f32
    %b = math.absf %d : f64
    %c = math.copysign %a, %x : f32
    %e = math.fma %a, %c, %x : f32
    %f = arith.maxnumf %e, %x : f32
    %g = arith.addf %f, %x : f32
    return %g, %b : f32, f64
  }
}
