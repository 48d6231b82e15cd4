// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected a window of at least one key, got left = 3, right = -4}}
#m = #attn.window<left = 3, right = -4>

// -----

// expected-error @+1 {{expected masks, got 3 : i64}}
#m = #attn.and<[#attn.causal, 3]>
