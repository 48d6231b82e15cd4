// A concatenation of static size has no more elements than its operands.
// RUN: attn-run %s --reference --dim arg0.0=3 --dim arg1.0=7 | FileCheck %s --check-prefix=RIGHT
// RUN: not attn-run %s --reference --dim arg0.0=3 --dim arg1.0=8 2>&1 | FileCheck %s
// RIGHT: output 0: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}
// CHECK: expected sizes with 10 == arg0.0 + arg1.0

func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<10xf32> {
  %r = tensor.concat dim(0) %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<10xf32>
  return %r : tensor<10xf32>
}
