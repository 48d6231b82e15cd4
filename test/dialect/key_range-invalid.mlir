// RUN: attn-opt %s -split-input-file -verify-diagnostics

// R1 and R2 are the constraints of attn.key_range in docs/dialect.md.

// R1: each symbol of the mask has two operands, a least and a greatest value.
func.func @invalid(%i: index) {
  // expected-error @+1 {{expected the least and greatest value of 1 symbols, got 1 operands}}
  %r:4 = attn.key_range rows(%i, %i) keys(%i) step 8 symbols(%i) mask(#attn.lengths<0>)
  return
}

// -----

// R1: without a mask there are no symbol operands.
func.func @invalid(%i: index) {
  // expected-error @+1 {{expected the least and greatest value of 0 symbols, got 2 operands}}
  %r:4 = attn.key_range rows(%i, %i) keys(%i) step 8 symbols(%i, %i)
  return
}

// -----

// R2: the step is positive.
func.func @invalid(%i: index) {
  // expected-error @+1 {{expected a positive step, got 0}}
  %r:4 = attn.key_range rows(%i, %i) keys(%i) step 0
  return
}
