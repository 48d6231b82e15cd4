// RUN: attn-opt %s | attn-opt | FileCheck %s

// The default of `pipelines` is not printed.
// CHECK: module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>, attn.version = 1 : i64}
module attributes {attn.version = 1 : i64, attn.target = #attn.cpu<
    "x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>} {
  // CHECK: func.func private @symbols
  // CHECK-SAME: tensor<?x4xf32> {attn.dims = ["x.0", ""], attn.name = "x"}
  // CHECK-SAME: tensor<4xf32> {attn.weight}
  // CHECK-SAME: -> (tensor<?xf32> {attn.dims = ["x.0"]})
  // CHECK-SAME: attn.symbols = [#attn.symbol<"x.0", 0 to 4096>]
  func.func private @symbols(tensor<?x4xf32> {attn.name = "x", attn.dims = ["x.0", ""]}, tensor<4xf32> {attn.weight})
      -> (tensor<?xf32> {attn.dims = ["x.0"]}) attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 4096>]}
  // CHECK: func.func private @formulas
  // CHECK-SAME: -> (tensor<?xf32> {attn.dims = ["2*x.0 + 1"]})
  // CHECK-SAME: [#attn.symbol<"x.0", 0 to 4096>, #attn.symbol<"2*x.0 + 1", 0 to 8193>, #attn.symbol<"x.0 != 64", 1 to 1>]
  func.func private @formulas(tensor<?xf32> {attn.name = "x", attn.dims = ["x.0"]})
      -> (tensor<?xf32> {attn.dims = ["2*x.0 + 1"]}) attributes {attn.symbols = [
          #attn.symbol<"x.0", 0 to 4096>, #attn.symbol<"2*x.0 + 1", 0 to 8193>, #attn.symbol<"x.0 != 64", 1 to 1>]}
}

// CHECK: module attributes {attn.target = #attn.cpu<"aarch64", vector = 128, registers = 32, l1 = 32768, l2 = 262144, pipelines = <multiplies = 4, loads = 3, stores = 2, latency = 2, exponential = 22>>}
module attributes {attn.target = #attn.cpu<"aarch64", vector = 128, registers = 32, l1 = 32768, l2 = 262144,
    pipelines = <multiplies = 4, loads = 3, stores = 2, latency = 2, exponential = 22>>} {}
// CHECK: module attributes {attn.target = #attn.cpu<"x86-64", vector = 128, registers = 16, l1 = 32768, l2 = 262144>}
module attributes {attn.target = #attn.cpu<"x86-64", vector = 128, registers = 16, l1 = 32768, l2 = 262144,
    pipelines = <multiplies = 1, loads = 2, stores = 1, latency = 4, exponential = 8>>} {}
