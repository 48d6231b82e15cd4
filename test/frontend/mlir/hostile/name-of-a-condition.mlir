// A dimension has the name of the condition that the slice needs.
// RUN: not attn-import %s 2>&1 | FileCheck %s
// CHECK: expected a slice inside its tensor in every call

func.func @f(%x: tensor<?xf32> {attn.dims = ["a"]}, %y: tensor<?xf32> {attn.dims = ["b"]}, %z: tensor<?xf32> {attn.dims = ["b <= a"]}) -> tensor<?xf32> attributes {attn.symbols = [#attn.symbol<"a", 0 to 100000000>, #attn.symbol<"b", 0 to 100000000>, #attn.symbol<"b <= a", 0 to 100000>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %r = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
  return %r : tensor<?xf32>
}
