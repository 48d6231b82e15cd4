// RUN: attn-opt %s --attn-flatten-levels --split-input-file --verify-diagnostics | FileCheck %s

// The module of an ISA level is flattened: symbols and their uses get the level as a suffix, and functions get its CPU
// features. The declaration of the function is removed. A module that is not a level stays.
// CHECK-NOT: tensor
// CHECK: module @other {
// CHECK-NEXT: func.func private @f()
// CHECK: memref.global "private" constant @"table.x86-64-v3"
// CHECK: func.func @"f.x86-64-v3"(%{{.*}}: memref<4xf32> {attn.name = "x"})
// CHECK-SAME: attn.kernel = "entry"
// CHECK-SAME: ["prefer-vector-width", "256"]
// CHECK-SAME: target_cpu = "x86-64-v3"
// CHECK-SAME: target_features = #llvm.target_features<[{{.*}}"+avx2"
// CHECK: memref.get_global @"table.x86-64-v3"
// CHECK: call @"f.rows.x86-64-v3"
// CHECK: func.func private @"f.rows.x86-64-v3"(%{{.*}}: memref<4xf32>) attributes {{.*}}target_cpu = "x86-64-v3"
// CHECK: func.func @"f.x86-64"()
// CHECK-SAME: ["prefer-vector-width", "128"]
// CHECK-NOT: target_features

func.func private @f(tensor<4xf32> {attn.name = "x"}) -> (tensor<4xf32> {attn.name = "y"})
module @other {
  func.func private @f()
}
module @"x86-64-v3" attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 1, l2 = 1, has = fma>} {
  memref.global "private" constant @table : memref<4xf32> = dense<1.0>
  func.func @f(%x: memref<4xf32> {attn.name = "x"}) attributes {attn.kernel = "entry"} {
    %t = memref.get_global @table : memref<4xf32>
    call @f.rows(%t) : (memref<4xf32>) -> ()
    return
  }
  func.func private @f.rows(%x: memref<4xf32>) { return }
}
module @"x86-64" attributes {attn.target = #attn.cpu<"x86-64", vector = 128, registers = 16, l1 = 1, l2 = 1>} {
  func.func @f() { return }
}

// -----

func.func private @f(tensor<4xf32> {attn.name = "x"})
// expected-error @below {{expected a target level of x86-64-amx, x86-64-v4-bf16, x86-64-v4, x86-64-v3, x86-64, aarch64-fp16-bf16, aarch64, got 'x86-64-v5'}}
module @v5 attributes {attn.target = #attn.cpu<"x86-64-v5", vector = 256, registers = 16, l1 = 1, l2 = 1, has = fma>} {
}
