// RUN: attn-opt %s -attn-expand-math | FileCheck %s

// CHECK-LABEL: @rsqrt
// CHECK:       %[[ROOT:.*]] = math.sqrt %{{.*}} : vector<16xf32>
// CHECK:       arith.divf %{{.*}}, %[[ROOT]] : vector<16xf32>
func.func @rsqrt(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.rsqrt %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: @exp
// CHECK-NOT:   math.
// CHECK-COUNT-8: vector.fma
// CHECK-NOT:   vector.fma
// CHECK:       return
func.func @exp(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp %x : vector<8xf32>
  return %y : vector<8xf32>
}

// The scalar code has no multiply-add, which would be a library call on levels without the instruction.
// CHECK-LABEL: @exp2_scalar
// CHECK-NOT:   fma
// CHECK:       arith.shli %{{.*}} : i32
// CHECK-NOT:   fma
// CHECK:       return
func.func @exp2_scalar(%x: f32) -> f32 {
  %y = math.exp2 %x : f32
  return %y : f32
}

// CHECK-LABEL: @tanh
// CHECK:       math.absf
// CHECK:       math.copysign
// CHECK-NOT:   math.
// CHECK:       return
func.func @tanh(%x: vector<4xf32>) -> vector<4xf32> {
  %y = math.tanh %x : vector<4xf32>
  return %y : vector<4xf32>
}

// In f64, a sum with 2^52 has no bits for a fraction, so adding and subtracting 2^52 rounds to an integer.
// CHECK-LABEL: @floor_of_double
// CHECK-DAG:   arith.constant dense<0x4330000000000000> : vector<2xf64>
// CHECK-NOT:   math.floor
// CHECK:       return
func.func @floor_of_double(%x: vector<2xf64>) -> vector<2xf64> {
  %y = math.floor %x : vector<2xf64>
  return %y : vector<2xf64>
}

// CHECK-LABEL: @rsqrt_of_double
// CHECK:       math.sqrt %{{.*}} : f64
// CHECK:       arith.divf
func.func @rsqrt_of_double(%x: f64) -> f64 {
  %y = math.rsqrt %x : f64
  return %y : f64
}

// These functions are instructions on every level.
// CHECK-LABEL: @kept
// CHECK:       math.absf
// CHECK:       math.sqrt
func.func @kept(%x: f64) -> f64 {
  %a = math.absf %x : f64
  %y = math.sqrt %a : f64
  return %y : f64
}
