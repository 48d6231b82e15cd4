// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: sizes-slice-product.mlir: 10:8: expected a slice inside its tensor in every call, got ('n' * 'n'), which may be negative
func.func @f(%x: tensor<?xf32> {attn.dims = ["n"]}) -> tensor<?xf32> attributes {attn.symbols = [#attn.symbol<"n", 0 to 9>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %square = arith.muli %n, %n : index
  %r = tensor.extract_slice %x[0] [%square] [1] : tensor<?xf32> to tensor<?xf32>
  %e = tensor.empty(%square) : tensor<?xf32>
  %y = linalg.exp ins(%r : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
