// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%w: tensor<2x48xi1>) {
  // expected-error @+1 {{expected words (w, q) of i32, got 'tensor<2x48xi1>'}}
  %r:3 = attn.test_mask %w keeps nonzero : tensor<2x48xi1>
  return
}
