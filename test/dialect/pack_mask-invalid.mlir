// RUN: attn-opt %s -split-input-file -verify-diagnostics

// M1 and M2 are the constraints of attn.pack_mask in docs/dialect.md.

// M1: the mask has at least the dimensions of queries and keys.
func.func @invalid(%m: tensor<70xi1>, %w: tensor<3xi32>) {
  // expected-error @+1 {{expected a mask (batch..., q, k) of integers or floats, got 'tensor<70xi1>'}}
  %r = attn.pack_mask ins(%m : tensor<70xi1>) outs(%w : tensor<3xi32>) -> tensor<3xi32>
  return
}

// -----

// M2: the words are of i32.
func.func @invalid(%m: tensor<6x70xi1>, %w: tensor<3x6xi64>) {
  // expected-error @+1 {{expected words of i32 and of rank 2, got 'tensor<3x6xi64>'}}
  %r = attn.pack_mask ins(%m : tensor<6x70xi1>) outs(%w : tensor<3x6xi64>) -> tensor<3x6xi64>
  return
}

// -----

// M2: there are enough words for the keys.
func.func @invalid(%m: tensor<6x70xi1>, %w: tensor<2x6xi32>) {
  // expected-error @+1 {{expected words of 70 keys in dimension 0 of words, got 2}}
  %r = attn.pack_mask ins(%m : tensor<6x70xi1>) outs(%w : tensor<2x6xi32>) -> tensor<2x6xi32>
  return
}

// -----

// M2: the batch sizes of mask and words agree.
func.func @invalid(%m: tensor<4x6x70xi1>, %w: tensor<5x3x6xi32>) {
  // expected-error @+1 {{expected size 4 of batch dimension 0 in dimension 0 of words, got 5}}
  %r = attn.pack_mask ins(%m : tensor<4x6x70xi1>) outs(%w : tensor<5x3x6xi32>) -> tensor<5x3x6xi32>
  return
}
