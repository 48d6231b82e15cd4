// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/f.so --target=native
// RUN: %python %S/npy.py %t/x.npy '<f4' 3 1
// RUN: %python %S/npy.py %t/y.npy '<f4' 4 1
// RUN: not attn-run %t/f.so --input=%t/x.npy 2>&1 | FileCheck %s
// RUN: attn-run %t/f.so --input=%t/y.npy | FileCheck %s --check-prefix=RUNS
// RUN: sed 's/n % 2 == 0 and n != 6/2*m/' %s > %t/name.mlir
// RUN: not attnc %t/name.mlir -o %t/g.so 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: sed 's/"n", 0 to 9/"n + 1", 0 to 9/; s/"n % 2 == 0 and n != 6", 1 to 1/"n", 0 to 9/' %s > %t/order.mlir
// RUN: not attnc %t/order.mlir -o %t/g.so 2>&1 | FileCheck %s --check-prefix=ORDER

// CHECK: attn-run: f: expected sizes with n % 2 == 0 and n != 6, got n = 3
// RUNS: out: f32[4]
// ORDER: expected the sizes of inputs, then formulas of them, among 'attn.symbols', got 'n + 1'
// NAME: expected the sizes of inputs, then formulas of them, among 'attn.symbols', got '2*m'
func.func @f(%x: tensor<?xf32> {attn.dims = ["n"]}) -> tensor<?xf32>
    attributes {attn.symbols = [#attn.symbol<"n", 0 to 9>, #attn.symbol<"n % 2 == 0 and n != 6", 1 to 1>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
