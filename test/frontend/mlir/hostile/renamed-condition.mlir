// A condition of the file has the name of the dimension that remains.
// RUN: attn-import %s > %t.mlir && attn-import %t.mlir | FileCheck %s
// CHECK: #attn.symbol<"x + 1 <= 300", 1 to 1>

func.func @f(%x: tensor<?x2xf32> {attn.dims = ["x", ""]}, %y: tensor<?x2xf32> {attn.dims = ["y", ""]}) -> (tensor<?xf32>, tensor<?x2xf32>) attributes {attn.symbols = [#attn.symbol<"x", 0 to 100>, #attn.symbol<"y", 0 to 200>, #attn.symbol<"y + 1 <= 300", 1 to 1>]} {
  %a = tensor.collapse_shape %x [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %b = tensor.collapse_shape %y [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %r = linalg.exp ins(%a : tensor<?xf32>) outs(%b : tensor<?xf32>) -> tensor<?xf32>
  return %r, %y : tensor<?xf32>, tensor<?x2xf32>
}
