// RUN: attn-opt %s -attn-expand-math -split-input-file -verify-diagnostics

func.func @unknown(%x: f32) -> f32 {
  // expected-error@+1 {{'math.atan' op expected a function with an expansion, got a library call}}
  %y = math.atan %x : f32
  return %y : f32
}

// -----

func.func @remainder(%x: f32) -> f32 {
  // expected-error@+1 {{'arith.remf' op expected a function with an expansion}}
  %y = arith.remf %x, %x : f32
  return %y : f32
}

// -----

func.func @double(%x: vector<4xf64>) -> vector<4xf64> {
  // expected-error@+1 {{'math.exp' op expected f32 or a vector of it, got 'vector<4xf64>'}}
  %y = math.exp %x : vector<4xf64>
  return %y : vector<4xf64>
}
