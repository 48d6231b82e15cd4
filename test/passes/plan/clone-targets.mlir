// RUN: attn-opt %s -attn-clone-targets -split-input-file | FileCheck %s

// The function is cloned for each ISA level, in the order of the list. A declaration keeps the signature that callers
// use.
// CHECK-LABEL: module attributes {attn.version = 1 : i64} {
// CHECK-NEXT: func.func private @forward(tensor<?x4xf32> {attn.dims = ["x.0", ""], attn.name = "x"}) -> (tensor<?x4xf32> {attn.name = "out"}) attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 8>]}
// CHECK-NEXT: module @"x86-64-v4" attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>} {
// CHECK-NEXT: func.func @forward(%[[X:.*]]: tensor<?x4xf32> {attn.dims = ["x.0", ""], attn.name = "x"}) -> (tensor<?x4xf32> {attn.name = "out"}) attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 8>]}
// CHECK-NEXT: return %[[X]]
// CHECK: module @"x86-64" attributes {attn.target = #attn.cpu<"x86-64", vector = 128, registers = 16, l1 = 32768, l2 = 262144>} {
// CHECK-NEXT: func.func @forward(%[[X:.*]]: tensor<?x4xf32>
// CHECK-NEXT: return %[[X]]
module attributes {attn.version = 1 : i64, attn.targets = [
    #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>,
    #attn.cpu<"x86-64", vector = 128, registers = 16, l1 = 32768, l2 = 262144>]} {
  func.func @forward(%x: tensor<?x4xf32> {attn.dims = ["x.0", ""], attn.name = "x"}) -> (tensor<?x4xf32> {attn.name = "out"})
      attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 8>]} {
    return %x : tensor<?x4xf32>
  }
}

// -----

// Without targets, nothing is cloned.
// CHECK-LABEL: @no_targets(
// CHECK-NEXT: return
// CHECK-NOT: module
func.func @no_targets(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// The levels differ only in products of bf16. The graph has no such product, so the function is
// cloned only for the second level.
// CHECK-LABEL: module {
// CHECK: func.func private @f32
// CHECK-NEXT: module @"x86-64-v4" attributes
#bf16 = #attn.cpu<"x86-64-v4-bf16", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|pairs>
#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.targets = [#bf16, #v4]} {
  func.func @f32(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    return %x : tensor<?x4xf32>
  }
}

// -----

// CHECK-LABEL: module {
// CHECK: func.func private @bf16
// CHECK-NEXT: module @"x86-64-v4-bf16" attributes
// CHECK: module @"x86-64-v4" attributes
#bf16 = #attn.cpu<"x86-64-v4-bf16", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|pairs>
#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.targets = [#bf16, #v4]} {
  func.func @bf16(%x: tensor<?x4xbf16>) -> tensor<?x4xbf16> {
    return %x : tensor<?x4xbf16>
  }
}
