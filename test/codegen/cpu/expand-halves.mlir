// RUN: attn-opt %s -attn-expand-halves -split-input-file | FileCheck %s

// If the target has instructions for the conversions, the conversions stay, and the arithmetic between them is f32.
module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma|halves>} {
  // CHECK-LABEL: @converts
  // CHECK-DAG:     %[[A:.*]] = arith.extf %arg0 {{.*}}: f16 to f32
  // CHECK-DAG:     %[[B:.*]] = arith.extf %arg1 {{.*}}: f16 to f32
  // CHECK:         %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : f32
  // CHECK:         %[[R:.*]] = arith.truncf %[[SUM]] {{.*}}: f32 to f16
  // CHECK:         return %[[R]]
  func.func @converts(%x: f16, %y: f16) -> f16 {
    %z = arith.addf %x, %y : f16
    return %z : f16
  }

  // A function of f16 is computed in f32.
  // CHECK-LABEL: @exp
  // CHECK:         %[[X:.*]] = arith.extf %arg0 {{.*}}: f16 to f32
  // CHECK:         %[[Y:.*]] = math.exp %[[X]] : f32
  // CHECK:         arith.truncf %[[Y]] {{.*}}: f32 to f16
  func.func @exp(%x: f16) -> f16 {
    %y = math.exp %x : f16
    return %y : f16
  }

  // LLVM would merge two conversions into one from f64 to f16, for which this level has no instruction.
  // CHECK-LABEL: @double
  // CHECK:         %[[F:.*]] = arith.truncf %arg0 : f64 to f32
  // CHECK-NOT:     arith.truncf
  // CHECK:         arith.bitcast %{{.*}} : i16 to f16
  func.func @double(%x: f64) -> f16 {
    %y = arith.truncf %x : f64 to f16
    return %y : f16
  }
}

// -----

// Without such instructions, the conversions become integer arithmetic, for vectors too.
module attributes {attn.target = #attn.cpu<"x86-64", vector = 128, registers = 16, l1 = 32768, l2 = 262144>} {
  // CHECK-LABEL: @widen
  // CHECK-NOT:     arith.extf
  // CHECK:         arith.bitcast %arg0 : f16 to i16
  // CHECK:         arith.bitcast %{{.*}} : i32 to f32
  func.func @widen(%x: f16) -> f32 {
    %y = arith.extf %x : f16 to f32
    return %y : f32
  }

  // CHECK-LABEL: @widen_vector
  // CHECK-NOT:     arith.extf
  // CHECK:         arith.bitcast %arg0 : vector<4xf16> to vector<4xi16>
  // CHECK:         arith.bitcast %{{.*}} : vector<4xi32> to vector<4xf32>
  func.func @widen_vector(%x: vector<4xf16>) -> vector<4xf32> {
    %y = arith.extf %x : vector<4xf16> to vector<4xf32>
    return %y : vector<4xf32>
  }

  // CHECK-LABEL: @narrow
  // CHECK-NOT:     arith.truncf
  // CHECK:         arith.bitcast %{{.*}} : i16 to f16
  func.func @narrow(%x: f32) -> f16 {
    %y = arith.truncf %x : f32 to f16
    return %y : f16
  }
}

// -----

// Conversions of bf16 become integer arithmetic at every ISA level.
module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma|halves>} {
  // CHECK-LABEL: @bf16
  // CHECK-NOT:     arith.extf
  // CHECK:         arith.shli {{.*}} : i32
  // CHECK:         arith.addf {{.*}} : f32
  // CHECK-NOT:     arith.truncf
  // CHECK:         arith.bitcast %{{.*}} : i16 to bf16
  func.func @bf16(%x: bf16) -> bf16 {
    %z = arith.addf %x, %x : bf16
    return %z : bf16
  }

  // CHECK-LABEL: @fma
  // CHECK:         math.fma {{.*}} : f32
  func.func @fma(%x: bf16) -> bf16 {
    %z = math.fma %x, %x, %x : bf16
    return %z : bf16
  }

  // CHECK-LABEL: @double_bf16
  // CHECK:         arith.truncf %arg0 : f64 to f32
  // CHECK-NOT:     arith.truncf
  // CHECK:         arith.bitcast %{{.*}} : i16 to bf16
  func.func @double_bf16(%x: f64) -> bf16 {
    %y = arith.truncf %x : f64 to bf16
    return %y : bf16
  }
}
