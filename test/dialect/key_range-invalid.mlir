// RUN: attn-opt %s -split-input-file -verify-diagnostics

// R1: a least and a greatest value for each symbol.
func.func @invalid(%i: index) {
  // expected-error @+1 {{expected the least and greatest value of 1 symbols, got 1 operands}}
  %r:4 = attn.key_range rows(%i, %i) keys(%i) step 8 symbols(%i) mask(#attn.lengths<0>)
  return
}

// -----

// R1: none without a mask.
func.func @invalid(%i: index) {
  // expected-error @+1 {{expected the least and greatest value of 0 symbols, got 2 operands}}
  %r:4 = attn.key_range rows(%i, %i) keys(%i) step 8 symbols(%i, %i)
  return
}

// -----

// R2: step is positive.
func.func @invalid(%i: index) {
  // expected-error @+1 {{expected a positive step, got 0}}
  %r:4 = attn.key_range rows(%i, %i) keys(%i) step 0
  return
}
