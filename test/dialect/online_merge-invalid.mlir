// RUN: attn-opt %s -split-input-file -verify-diagnostics

// G1 and G2 are the constraints of attn.online_merge in docs/dialect.md.

// G1: the parts have agreeing sizes.
func.func @invalid(%ms: tensor<2x6xf32>, %as: tensor<3x4x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>) {
  // expected-error @+1 {{expected size 2 of n in dimension 0 of part_acc, got 3}}
  %r:3 = attn.online_merge ins(%ms, %ms, %as : tensor<2x6xf32>, tensor<2x6xf32>, tensor<3x4x6xf32>)
      outs(%m, %m, %a : tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) {scale = 1.0 : f32} -> tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// G1: the parts have one dimension more than the merged state.
func.func @invalid(%as: tensor<2x4x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>) {
  // expected-error @+1 {{expected part_max of rank 2, got 'tensor<6xf32>'}}
  %r:3 = attn.online_merge ins(%m, %m, %as : tensor<6xf32>, tensor<6xf32>, tensor<2x4x6xf32>)
      outs(%m, %m, %a : tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) {scale = 1.0 : f32} -> tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// G1: the states have one float type.
func.func @invalid(%ms: tensor<2x6xf64>, %as: tensor<2x4x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>) {
  // expected-error @+1 {{expected one float type, got 'tensor<2x6xf64>' and 'tensor<2x4x6xf32>'}}
  %r:3 = attn.online_merge ins(%ms, %ms, %as : tensor<2x6xf64>, tensor<2x6xf64>, tensor<2x4x6xf32>)
      outs(%m, %m, %a : tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) {scale = 1.0 : f32} -> tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// G2: the scale is positive.
func.func @invalid(%ms: tensor<2x6xf32>, %as: tensor<2x4x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>) {
  // expected-error @+1 {{expected a scale of 2^-126 to 2^126, got -1.000000e+00 : f32}}
  %r:3 = attn.online_merge ins(%ms, %ms, %as : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x4x6xf32>)
      outs(%m, %m, %a : tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) {scale = -1.0 : f32} -> tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// G2: the product of the scale and log2(e) is finite.
func.func @invalid(%ms: tensor<2x6xf32>, %as: tensor<2x4x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>) {
  // expected-error @+1 {{expected a scale of 2^-126 to 2^126, got 3.000000e+38 : f32}}
  %r:3 = attn.online_merge ins(%ms, %ms, %as : tensor<2x6xf32>, tensor<2x6xf32>, tensor<2x4x6xf32>)
      outs(%m, %m, %a : tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) {scale = 3.0e+38 : f32} -> tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}
