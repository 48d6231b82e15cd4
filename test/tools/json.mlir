// --json is all that is printed.
// RUN: attnc %s -o %t.so --target=native
// RUN: attn-run %t.so --threads=2 --benchmark=0 --json | %python -c "import json, sys; print(sorted(json.load(sys.stdin)))" | FileCheck %s

// CHECK: 'median_ms'
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
