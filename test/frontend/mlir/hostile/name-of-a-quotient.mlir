// A dimension has the name of a quotient of another one.
// RUN: not attn-import %s 2>&1 | FileCheck %s
// CHECK: expected sizes that agree in every call, got '(b // 4)' and (b // 4)

func.func @f(%x: tensor<?xf32> {attn.dims = ["(b // 4)"]}, %y: tensor<?xf32> {attn.dims = ["b"]}) -> tensor<?xf32> attributes {attn.symbols = [#attn.symbol<"b", 0 to 100000000>, #attn.symbol<"(b // 4)", 0 to 100000000>]} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %q = arith.divsi %n, %c4 : index
  %e = tensor.empty(%q) : tensor<?xf32>
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
