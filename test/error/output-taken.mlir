// RUN: rm -rf %t && mkdir -p %t/f.json
// RUN: not attnc %s -o %t/f.so --target=native 2>&1 | FileCheck %s
// RUN: ls %t | count 1

// CHECK: attnc: cannot write '{{.*}}f.json': {{.+}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
