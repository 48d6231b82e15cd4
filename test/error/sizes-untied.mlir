// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: sizes-untied.mlir: 8:8: expected sizes that agree in every call, got ('x.0' * 'x.1') and 'y.0'
func.func @f(%x: tensor<?x?xf32> {attn.name = "x"}, %y: tensor<?xf32> {attn.name = "y"}) -> tensor<?xf32> {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %r = linalg.exp ins(%flat : tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
