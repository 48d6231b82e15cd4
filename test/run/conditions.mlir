// What an op requires of sizes, and is not known before a call, is a condition of each call.
// RUN: attn-run %s --entry=slice --dim x.0=5 --dim y.0=4 --reference | FileCheck %s --check-prefix=RIGHT
// RUN: attn-run %s --entry=slice --dim x.0=5 --dim y.0=0 --reference | FileCheck %s --check-prefix=RIGHT
// RUN: not attn-run %s --entry=slice --dim x.0=3 --dim y.0=4 2>&1 | FileCheck %s --check-prefix=SLICE
// RUN: attn-run %s --entry=flat --dim x.0=5 --dim x.1=2 --dim y.0=10 --reference | FileCheck %s --check-prefix=RIGHT
// RUN: not attn-run %s --entry=flat --dim x.0=5 --dim x.1=2 --dim y.0=11 2>&1 | FileCheck %s --check-prefix=FLAT
// RUN: attn-run %s --entry=square --dim n=1 --reference | FileCheck %s --check-prefix=RIGHT
// RUN: not attn-run %s --entry=square --dim n=2 2>&1 | FileCheck %s --check-prefix=SQUARE
// RUN: attn-run %s --entry=halves --dim x.0=3 --dim y.0=6 --reference | FileCheck %s --check-prefix=RIGHT
// RUN: not attn-run %s --entry=halves --dim x.0=3 --dim y.0=5 2>&1 | FileCheck %s --check-prefix=HALVES
// RUN: attn-run %s --entry=quotient --dim x.0=7 --dim y.0=3 --reference | FileCheck %s --check-prefix=QUOTIENT
// RUN: not attn-run %s --entry=quotient --dim x.0=7 --dim y.0=0 2>&1 | FileCheck %s --check-prefix=DIVISOR

// RIGHT: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}
// SLICE: slice: expected sizes with y.0 <= x.0, got y.0 = 4, x.0 = 3
func.func @slice(%x: tensor<?xf32> {attn.name = "x"}, %y: tensor<?xf32> {attn.name = "y"}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %r = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
  return %r : tensor<?xf32>
}

// FLAT: flat: expected sizes with y.0 == x.0*x.1, got y.0 = 11, x.0 = 5, x.1 = 2
func.func @flat(%x: tensor<?x?xf32> {attn.name = "x"}, %y: tensor<?xf32> {attn.name = "y"}) -> tensor<?xf32> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %r = linalg.exp ins(%flat : tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// SQUARE: square: expected sizes with n*n <= n, got n = 2
func.func @square(%x: tensor<?xf32> {attn.dims = ["n"]}) -> tensor<?xf32> attributes {attn.symbols = [#attn.symbol<"n", 0 to 9>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %square = arith.muli %n, %n : index
  %r = tensor.extract_slice %x[0] [%square] [1] : tensor<?xf32> to tensor<?xf32>
  %e = tensor.empty(%square) : tensor<?xf32>
  %y = linalg.exp ins(%r : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// HALVES: halves: expected sizes with y.0 == 2*x.0, got y.0 = 5, x.0 = 3
func.func @halves(%x: tensor<?x8xf32> {attn.name = "x"}, %y: tensor<?x4xf32> {attn.name = "y"}) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %y, %c0 : tensor<?x4xf32>
  %shape = tensor.from_elements %n, %c4 : tensor<2xindex>
  %v = tensor.reshape %x(%shape) : (tensor<?x8xf32>, tensor<2xindex>) -> tensor<?x4xf32>
  %r = linalg.exp ins(%v : tensor<?x4xf32>) outs(%y : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// A division by 0 has no result. The result has 7 // 3 elements.
// QUOTIENT: out: f32[2]
// QUOTIENT: error 0.00e+00
// DIVISOR: expected --dim=y.0 in [1, 2147483647], got 0
func.func @quotient(%x: tensor<?xf32> {attn.name = "x"}, %y: tensor<?xf32> {attn.name = "y"}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %quotient = arith.divsi %m, %n : index
  %e = tensor.empty(%quotient) : tensor<?xf32>
  %r = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
