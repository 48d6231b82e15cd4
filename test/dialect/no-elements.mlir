// RUN: attn-opt %s -canonicalize | FileCheck %s

// The attribute #attn.causal loads the dialect attn, which defines the patterns that are tested here.

// A slice without elements reads nothing, and its source is not computed.
// CHECK-LABEL: @part(
// CHECK-NEXT: %[[E:.*]] = tensor.empty() : tensor<0x5xf32>
// CHECK-NEXT: return %[[E]]
func.func @part(%x: tensor<3x4x5xf32>) -> tensor<0x5xf32> attributes {mask = #attn.causal} {
  %e = tensor.empty() : tensor<3x4x5xf32>
  %y = linalg.exp ins(%x : tensor<3x4x5xf32>) outs(%e : tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
  %p = tensor.extract_slice %y[1, 0, 0] [1, 0, 5] [1, 1, 1] : tensor<3x4x5xf32> to tensor<0x5xf32>
  return %p : tensor<0x5xf32>
}

// An op whose loops have no iterations is not computed either.
// CHECK-LABEL: @op(
// CHECK-NEXT: %[[E:.*]] = tensor.empty() : tensor<0x5xf32>
// CHECK-NEXT: return %[[E]]
func.func @op(%x: tensor<0x5xf32>) -> tensor<0x5xf32> {
  %e = tensor.empty() : tensor<0x5xf32>
  %y = linalg.exp ins(%x : tensor<0x5xf32>) outs(%e : tensor<0x5xf32>) -> tensor<0x5xf32>
  return %y : tensor<0x5xf32>
}
