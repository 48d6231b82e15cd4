// RUN: attn-opt %s -split-input-file -verify-diagnostics

// P1: one output.
func.func @invalid(%x: tensor<8x4xf32>, %o: tensor<2x4x4xf32>) {
  // expected-error @+1 {{expected one output, got 2}}
  %r:2 = attn.pack ins(%x : tensor<8x4xf32>) outs(%o, %o : tensor<2x4x4xf32>, tensor<2x4x4xf32>)
      -> tensor<2x4x4xf32>, tensor<2x4x4xf32>
  return
}

// -----

// P1: of one dimension more.
func.func @invalid(%x: tensor<8x4xf32>, %o: tensor<8x4xf32>) {
  // expected-error @+1 {{expected a source of rank 2 or more and an output of one rank more, got 'tensor<8x4xf32>' and 'tensor<8x4xf32>'}}
  %r = attn.pack ins(%x : tensor<8x4xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// P1: of a source with rows.
func.func @invalid(%x: tensor<8xf32>, %o: tensor<8x4xf32>) {
  // expected-error @+1 {{expected a source of rank 2 or more and an output of one rank more}}
  %r = attn.pack ins(%x : tensor<8xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// P1: of the same element type, or rounded.
func.func @invalid(%x: tensor<8x4xf16>, %o: tensor<2x4x4xf32>) {
  // expected-error @+1 {{expected one element type, or floats that are rounded, got 'tensor<8x4xf16>' and 'tensor<2x4x4xf32>'}}
  %r = attn.pack ins(%x : tensor<8x4xf16>) outs(%o : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

// P1: of agreeing batch sizes.
func.func @invalid(%x: tensor<3x8x4xf32>, %o: tensor<2x2x4x4xf32>) {
  // expected-error @+1 {{expected batch and k sizes to agree}}
  %r = attn.pack ins(%x : tensor<3x8x4xf32>) outs(%o : tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  return
}

// -----

// P1: of agreeing k sizes.
func.func @invalid(%x: tensor<8x4xf32>, %o: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected batch and k sizes to agree, got 'tensor<8x4xf32>' and 'tensor<2x8x4xf32>'}}
  %r = attn.pack ins(%x : tensor<8x4xf32>) outs(%o : tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return
}

// -----

// P2: the width is static.
func.func @invalid(%x: tensor<8x4xf32>, %o: tensor<2x4x?xf32>) {
  // expected-error @+1 {{expected a static, positive panel width, got 'tensor<2x4x?xf32>'}}
  %r = attn.pack ins(%x : tensor<8x4xf32>) outs(%o : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
  return
}

// -----

// P2: and positive.
func.func @invalid(%x: tensor<8x4xf32>, %o: tensor<2x4x0xf32>) {
  // expected-error @+1 {{expected a static, positive panel width, got 'tensor<2x4x0xf32>'}}
  %r = attn.pack ins(%x : tensor<8x4xf32>) outs(%o : tensor<2x4x0xf32>) -> tensor<2x4x0xf32>
  return
}

// -----

// P3: n / w panels, rounded up.
func.func @invalid(%x: tensor<9x4xf32>, %o: tensor<2x4x4xf32>) {
  // expected-error @+1 {{expected 3 panels of width 4, got 2}}
  %r = attn.pack ins(%x : tensor<9x4xf32>) outs(%o : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

// P3: of columns, from rows.
func.func @invalid(%x: tensor<9x4xf32>, %o: tensor<3x9x4xf32>) {
  // expected-error @+1 {{expected 1 panels of width 4, got 3}}
  %r = attn.pack from_rows ins(%x : tensor<9x4xf32>) outs(%o : tensor<3x9x4xf32>) -> tensor<3x9x4xf32>
  return
}

// -----

// P4: numbers alone are scaled.
func.func @scaled_integers(%x: tensor<8x4xi32>, %o: tensor<2x4x4xi32>) -> tensor<2x4x4xi32> {
  // expected-error @below {{expected floats with a scale, got 'tensor<8x4xi32>'}}
  %r = attn.pack scale(2.0) ins(%x : tensor<8x4xi32>) outs(%o : tensor<2x4x4xi32>) -> tensor<2x4x4xi32>
  return %r : tensor<2x4x4xi32>
}

// -----

// P1: a group is a dimension of its own.
func.func @group_rank(%x: tensor<8x4xi8>, %o: tensor<2x4x4xi8>) -> tensor<2x4x4xi8> {
  // expected-error @below {{expected a source of rank 2 or more and an output of two ranks more, got 'tensor<8x4xi8>' and 'tensor<2x4x4xi8>'}}
  %r = attn.pack group(2) ins(%x : tensor<8x4xi8>) outs(%o : tensor<2x4x4xi8>) -> tensor<2x4x4xi8>
  return %r : tensor<2x4x4xi8>
}

// -----

// P1: groups along k, rounded up.
func.func @group_count(%x: tensor<8x5xi8>, %o: tensor<2x2x4x2xi8>) -> tensor<2x2x4x2xi8> {
  // expected-error @below {{expected batch and k sizes to agree, got 'tensor<8x5xi8>' and 'tensor<2x2x4x2xi8>'}}
  %r = attn.pack group(2) ins(%x : tensor<8x5xi8>) outs(%o : tensor<2x2x4x2xi8>) -> tensor<2x2x4x2xi8>
  return %r : tensor<2x2x4x2xi8>
}

// -----

// P5
func.func @group_of_three(%x: tensor<8x6xi8>, %o: tensor<2x2x4x3xi8>) -> tensor<2x2x4x3xi8> {
  // expected-error @below {{expected a group that is a power of two and the innermost size, got 3 and 'tensor<2x2x4x3xi8>'}}
  %r = attn.pack group(3) ins(%x : tensor<8x6xi8>) outs(%o : tensor<2x2x4x3xi8>) -> tensor<2x2x4x3xi8>
  return %r : tensor<2x2x4x3xi8>
}

// -----

// P5
func.func @other_group(%x: tensor<8x6xi8>, %o: tensor<2x3x4x4xi8>) -> tensor<2x3x4x4xi8> {
  // expected-error @below {{expected a group that is a power of two and the innermost size, got 2 and 'tensor<2x3x4x4xi8>'}}
  %r = attn.pack group(2) ins(%x : tensor<8x6xi8>) outs(%o : tensor<2x3x4x4xi8>) -> tensor<2x3x4x4xi8>
  return %r : tensor<2x3x4x4xi8>
}
