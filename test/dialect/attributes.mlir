// RUN: attn-opt %s | attn-opt | FileCheck %s

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
