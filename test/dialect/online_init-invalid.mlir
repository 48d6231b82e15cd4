// RUN: attn-opt %s -split-input-file -verify-diagnostics

// I1 is the constraint of attn.online_init in docs/dialect.md.

// I1: acc has rank 2.
func.func @invalid(%m: tensor<6xf32>) {
  // expected-error @+1 {{expected acc of rank 2, got 'tensor<6xf32>'}}
  %r:3 = attn.online_init outs(%m, %m, %m : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  return
}

// -----

// I1: max, sum and acc have agreeing sizes.
func.func @invalid(%m: tensor<6xf32>, %l: tensor<5xf32>, %a: tensor<4x6xf32>) {
  // expected-error @+1 {{expected size 6 of q in dimension 0 of sum, got 5}}
  %r:3 = attn.online_init outs(%m, %l, %a : tensor<6xf32>, tensor<5xf32>, tensor<4x6xf32>) -> tensor<6xf32>, tensor<5xf32>, tensor<4x6xf32>
  return
}

// -----

// I1: max, sum and acc have one type.
func.func @invalid(%m: tensor<6xf32>, %l: tensor<6xf64>, %a: tensor<4x6xf32>) {
  // expected-error @+1 {{expected one float type, got 'tensor<6xf32>' and 'tensor<6xf64>'}}
  %r:3 = attn.online_init outs(%m, %l, %a : tensor<6xf32>, tensor<6xf64>, tensor<4x6xf32>) -> tensor<6xf32>, tensor<6xf64>, tensor<4x6xf32>
  return
}

// -----

// I1: max, sum and acc have a float type.
func.func @invalid(%m: tensor<6xi32>, %a: tensor<4x6xi32>) {
  // expected-error @+1 {{expected one float type, got 'tensor<6xi32>' and 'tensor<6xi32>'}}
  %r:3 = attn.online_init outs(%m, %m, %a : tensor<6xi32>, tensor<6xi32>, tensor<4x6xi32>) -> tensor<6xi32>, tensor<6xi32>, tensor<4x6xi32>
  return
}
