// A dimension has a name that is a product of others. It is not the size of the merged dimensions.
// RUN: not attn-import %s 2>&1 | FileCheck %s
// CHECK: expected result 'out' to have sizes that follow from those of arguments

func.func @f(%x: tensor<?x?xf32> {attn.dims = ["a", "b"]}, %z: tensor<?xf32> {attn.dims = ["a*b"]}) -> tensor<?xf32> attributes {attn.symbols = [#attn.symbol<"a", 0 to 100000>, #attn.symbol<"b", 0 to 100000>, #attn.symbol<"a*b", 0 to 100000>]} {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  return %flat : tensor<?xf32>
}
