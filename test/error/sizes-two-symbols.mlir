// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: sizes-two-symbols.mlir: 8:8: expected one symbol for sizes that agree in every call, got 'n' and 'm'
func.func @f(%x: tensor<?xf32> {attn.dims = ["n"]}, %y: tensor<?xf32> {attn.dims = ["m"]}) -> (tensor<?xf32> {attn.dims = ["m"]})
    attributes {attn.symbols = [#attn.symbol<"n", 0 to 9>, #attn.symbol<"m", 0 to 9>]} {
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
