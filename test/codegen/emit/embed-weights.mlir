// RUN: rm -rf %t && mkdir %t
// RUN: attnc %S/../../../examples/models/mha.pt2 -o %t/file.so --target=native
// RUN: attnc %S/../../../examples/models/mha.pt2 -o %t/embedded.so --target=native --embed-weights
// RUN: not ls %t/embedded.safetensors
// RUN: attn-run %t/file.so --output-dir=%t/file
// RUN: attn-run %t/embedded.so --output-dir=%t/embedded
// RUN: cmp %t/file/0.npy %t/embedded/0.npy
// A file of weights replaces the embedded weights.
// RUN: attn-run %t/embedded.so --weights=%t/file.safetensors --output-dir=%t/other
// RUN: cmp %t/file/0.npy %t/other/0.npy

// RUN: not attnc %s -o %t/none.so --embed-weights 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: attnc: expected a model with weights for --embed-weights, got '{{.*}}embed-weights.mlir'
// RUN: not attnc %s -o %t/none.mlir --embed-weights 2>&1 | FileCheck %s --check-prefix=MLIR
// MLIR: attnc: expected no --embed-weights with an output of .mlir, got '{{.*}}none.mlir'
// RUN: not attnc %s -o %t/none.ll --sanitize=address 2>&1 | FileCheck %s --check-prefix=SANITIZE
// SANITIZE: attnc: expected no --sanitize with an output of .ll or .mlir, got '{{.*}}none.ll'
// RUN: not attnc %s -o %t/none.so --from=emit --embed-weights 2>&1 | FileCheck %s --check-prefix=EMIT
// EMIT: attnc: expected --embed-weights before stage emit, got --from=emit
func.func @f(%x: tensor<4xf32>, %w: tensor<4xf32> {attn.weight}) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.add ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
