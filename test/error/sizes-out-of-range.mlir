// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: sizes-out-of-range.mlir: 8:8: expected a size of 'n' in [0, 9], got 12
func.func @f(%x: tensor<?xf32> {attn.dims = ["n"]}, %y: tensor<12xf32>) -> tensor<12xf32>
    attributes {attn.symbols = [#attn.symbol<"n", 0 to 9>]} {
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%y : tensor<12xf32>) -> tensor<12xf32>
  return %r : tensor<12xf32>
}
