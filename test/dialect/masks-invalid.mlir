// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected a window of at least one key, got left = 3, right = -4}}
#m = #attn.window<left = 3, right = -4>

// -----

// expected-error @+1 {{expected a distance of at most 2^40, got 1099511627777}}
#m = #attn.causal<offset = 1099511627777>

// -----

// expected-error @+1 {{expected a distance of at most 2^40, got 9223372036854775807}}
#m = #attn.window<left = 9223372036854775807, right = 1>

// -----

// expected-error @+1 {{expected a distance of at most 2^40, got -9223372036854775808}}
#m = #attn.window<left = 3, right = 1, offset = -9223372036854775808>

// -----

// expected-error @+1 {{expected masks, got 3 : i64}}
#m = #attn.and<[#attn.causal, 3]>
