// RUN: attn-opt %s -attn-gpu-split-softmax | FileCheck %s

// CHECK-LABEL: func @f
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]}
// CHECK: arith.maxnumf
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]}
// CHECK: arith.subf
// CHECK: math.exp
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]}
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]}
// CHECK: arith.divf
// CHECK-NOT: linalg.softmax
func.func @f(%x: tensor<8x512xf32>) -> tensor<8x512xf32> {
  %init = tensor.empty() : tensor<8x512xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<8x512xf32>) outs(%init : tensor<8x512xf32>) -> tensor<8x512xf32>
  return %y : tensor<8x512xf32>
}
