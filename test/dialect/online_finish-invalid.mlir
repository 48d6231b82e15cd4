// RUN: attn-opt %s -split-input-file -verify-diagnostics

// F1 is the constraint of attn.online_finish in docs/dialect.md.

// F1: out agrees with sum and acc on the sizes.
func.func @invalid(%l: tensor<6xf32>, %a: tensor<4x6xf32>) {
  // expected-error @+1 {{expected size 6 of q in dimension 0 of out, got 4}}
  %r = attn.online_finish ins(%l, %a : tensor<6xf32>, tensor<4x6xf32>) outs(%a : tensor<4x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

// F1: sum and acc have one float type.
func.func @invalid(%l: tensor<6xf64>, %a: tensor<4x6xf32>, %o: tensor<6x4xf32>) {
  // expected-error @+1 {{expected one float type, got 'tensor<6xf64>' and 'tensor<4x6xf32>'}}
  %r = attn.online_finish ins(%l, %a : tensor<6xf64>, tensor<4x6xf32>) outs(%o : tensor<6x4xf32>) -> tensor<6x4xf32>
  return
}

// -----

// F1: out has a float type.
func.func @invalid(%l: tensor<6xf32>, %a: tensor<4x6xf32>, %o: tensor<6x4xi32>) {
  // expected-error @+1 {{expected an output of floats, got 'tensor<6x4xi32>'}}
  %r = attn.online_finish ins(%l, %a : tensor<6xf32>, tensor<4x6xf32>) outs(%o : tensor<6x4xi32>) -> tensor<6x4xi32>
  return
}
