// RUN: attn-import %s | FileCheck %s

// Arguments and results that have no name in the file get a name; named arguments and results keep their names.
// CHECK-LABEL: func.func @nameless(
// CHECK-SAME: tensor<?x4xf32> {attn.dims = ["arg0.0", ""], attn.name = "arg0"}
// CHECK-SAME: tensor<?x4xf32> {attn.dims = ["key.0", ""], attn.name = "key"}
// CHECK-SAME: -> (tensor<?x4xf32> {attn.dims = ["arg0.0", ""], attn.name = "out.0"}, tensor<?x4xf32> {attn.dims = ["key.0", ""], attn.name = "out.1"})
// CHECK-SAME: attn.symbols = [#attn.symbol<"arg0.0", 0 to 2147483647>, #attn.symbol<"key.0", 0 to 2147483647>]
func.func @nameless(%q: tensor<?x4xf32>, %k: tensor<?x4xf32> {attn.name = "key"}) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  return %q, %k : tensor<?x4xf32>, tensor<?x4xf32>
}

// CHECK-LABEL: func.func @named(
// CHECK-SAME: {attn.dims = ["S", ""], attn.name = "arg0"}
// CHECK-SAME: -> (tensor<?x4xf32> {attn.dims = ["S", ""], attn.name = "out"}) attributes {attn.symbols = [#attn.symbol<"S", 1 to 9>]}
func.func @named(%x: tensor<?x4xf32> {attn.dims = ["S", ""]}) -> tensor<?x4xf32>
    attributes {attn.symbols = [#attn.symbol<"S", 1 to 9>]} {
  return %x : tensor<?x4xf32>
}

// The dynamic size of a result gets the symbol of the size from which it is computed.
// CHECK-LABEL: func.func @grown(
// CHECK-SAME: -> (tensor<2x?x4xf32> {attn.dims = ["", "arg1.0", ""], attn.name = "out"})
func.func @grown(%x: tensor<?x4xf32>, %k: tensor<?x4xf32>) -> tensor<2x?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %k, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<2x?x4xf32>
  %o = linalg.broadcast ins(%k : tensor<?x4xf32>) outs(%e : tensor<2x?x4xf32>) dimensions = [0]
  return %o : tensor<2x?x4xf32>
}
