// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/f.so --target=native
// RUN: not attn-run %t/f.so --dim=n=-5 2>&1 | FileCheck %s
// RUN: not attn-run %t/f.so --dim=n=9223372036854775807 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not attn-run %t/f.so --dim=n=3 --dim=m=3 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: attn-run: expected --dim=n in [0, 64], got -5
// HUGE: attn-run: expected --dim=n in [0, 64], got 9223372036854775807
// UNKNOWN: attn-run: expected --dim of a dynamic dimension, got 'm'
func.func @f(%x: tensor<?xf32> {attn.dims = ["n"]}) -> tensor<?xf32> attributes {attn.symbols = [#attn.symbol<"n", 0 to 64>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
