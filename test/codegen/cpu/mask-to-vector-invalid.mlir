// RUN: attn-opt %s -attn-mask-to-vector -verify-diagnostics

func.func @no_target(%w: memref<2x20xi32>) -> (index, index, i1) {
  // expected-error@+1 {{expected 'attn.target' on an enclosing module}}
  %r:3 = attn.test_mask %w keeps nonzero : memref<2x20xi32>
  return %r#0, %r#1, %r#2 : index, index, i1
}
