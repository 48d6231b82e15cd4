// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.obj --dump-stages=%t/stages 2>&1 | FileCheck %s
// RUN: not attnc %s --from=emit -o %t/f.mlir 2>&1 | FileCheck %s --check-prefix=EMIT
// RUN: ls %t | count 0

// CHECK: attnc: expected an output ending in .so, .a, .o, .s, .ll or .mlir, got '{{.*}}f.obj'
// EMIT: attnc: expected an output made from LLVM IR, got '{{.*}}f.mlir'
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
