// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so --target=x86-64 --require-fused --dump-stages=%t/stages 2>&1 | FileCheck %s
// RUN: not attnc --from=plan %t/stages/4-plan.mlir -o %t/f.so --require-fused 2>&1 | FileCheck %s
// RUN: ls %t | count 1

// This softmax is not an attention, because its input is not the result of a product.
// CHECK: attnc: unfused.mlir:10: attention left unfused: expected
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %r = linalg.softmax dimension(1) ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
