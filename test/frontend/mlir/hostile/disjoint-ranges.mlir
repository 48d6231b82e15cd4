// No call has sizes that are equal and in both ranges.
// RUN: not attn-import %s 2>&1 | FileCheck %s
// CHECK: expected sizes that agree in every call, got 2*x and 2*y

func.func @f(%x: tensor<?x2xf32> {attn.dims = ["x", ""]}, %y: tensor<?x2xf32> {attn.dims = ["y", ""]}) -> (tensor<?xf32>, tensor<?x2xf32>) attributes {attn.symbols = [#attn.symbol<"x", 0 to 10>, #attn.symbol<"y", 20 to 30>, #attn.symbol<"y + 1 <= 300", 1 to 1>]} {
  %a = tensor.collapse_shape %x [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %b = tensor.collapse_shape %y [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %r = linalg.exp ins(%a : tensor<?xf32>) outs(%b : tensor<?xf32>) -> tensor<?xf32>
  return %r, %y : tensor<?xf32>, tensor<?x2xf32>
}
