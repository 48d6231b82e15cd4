// RUN: attn-opt %s -split-input-file -verify-diagnostics

// P1 to P5 are the constraints of attn.pack in docs/dialect.md.

// P1: there is one output.
func.func @invalid(%x: tensor<8x4xf32>, %o: tensor<2x4x4xf32>) {
  // expected-error @+1 {{expected one output, got 2}}
  %r:2 = attn.pack ins(%x : tensor<8x4xf32>) outs(%o, %o : tensor<2x4x4xf32>, tensor<2x4x4xf32>)
      -> tensor<2x4x4xf32>, tensor<2x4x4xf32>
  return
}

// -----

// P1: the output has one dimension more than the source.
func.func @invalid(%x: tensor<8x4xf32>, %o: tensor<8x4xf32>) {
  // expected-error @+1 {{expected a source of rank 2 or more and an output of one rank more, got 'tensor<8x4xf32>' and 'tensor<8x4xf32>'}}
  %r = attn.pack ins(%x : tensor<8x4xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// P1: the source has at least two dimensions.
func.func @invalid(%x: tensor<8xf32>, %o: tensor<8x4xf32>) {
  // expected-error @+1 {{expected a source of rank 2 or more and an output of one rank more}}
  %r = attn.pack ins(%x : tensor<8xf32>) outs(%o : tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

// P1: the output has the element type of the source, or a narrower float type, to which elements are rounded.
func.func @invalid(%x: tensor<8x4xf16>, %o: tensor<2x4x4xf32>) {
  // expected-error @+1 {{expected one element type, or floats that are rounded, got 'tensor<8x4xf16>' and 'tensor<2x4x4xf32>'}}
  %r = attn.pack ins(%x : tensor<8x4xf16>) outs(%o : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

// P1: the batch sizes of source and output agree.
func.func @invalid(%x: tensor<3x8x4xf32>, %o: tensor<2x2x4x4xf32>) {
  // expected-error @+1 {{expected batch and k sizes to agree}}
  %r = attn.pack ins(%x : tensor<3x8x4xf32>) outs(%o : tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32>
  return
}

// -----

// P1: the sizes of k in source and output agree.
func.func @invalid(%x: tensor<8x4xf32>, %o: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected batch and k sizes to agree, got 'tensor<8x4xf32>' and 'tensor<2x8x4xf32>'}}
  %r = attn.pack ins(%x : tensor<8x4xf32>) outs(%o : tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return
}

// -----

// P2: the width of a panel is static.
func.func @invalid(%x: tensor<8x4xf32>, %o: tensor<2x4x?xf32>) {
  // expected-error @+1 {{expected a static, positive panel width, got 'tensor<2x4x?xf32>'}}
  %r = attn.pack ins(%x : tensor<8x4xf32>) outs(%o : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
  return
}

// -----

// P2: the width of a panel is positive.
func.func @invalid(%x: tensor<8x4xf32>, %o: tensor<2x4x0xf32>) {
  // expected-error @+1 {{expected a static, positive panel width, got 'tensor<2x4x0xf32>'}}
  %r = attn.pack ins(%x : tensor<8x4xf32>) outs(%o : tensor<2x4x0xf32>) -> tensor<2x4x0xf32>
  return
}

// -----

// P3: there are n / w panels, rounded up.
func.func @invalid(%x: tensor<9x4xf32>, %o: tensor<2x4x4xf32>) {
  // expected-error @+1 {{expected 3 panels of width 4, got 2}}
  %r = attn.pack ins(%x : tensor<9x4xf32>) outs(%o : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

// P3: with from_rows, n is the number of columns of the source.
func.func @invalid(%x: tensor<9x4xf32>, %o: tensor<3x9x4xf32>) {
  // expected-error @+1 {{expected 1 panels of width 4, got 3}}
  %r = attn.pack from_rows ins(%x : tensor<9x4xf32>) outs(%o : tensor<3x9x4xf32>) -> tensor<3x9x4xf32>
  return
}

// -----

// P4: only floats can be scaled.
func.func @scaled_integers(%x: tensor<8x4xi32>, %o: tensor<2x4x4xi32>) -> tensor<2x4x4xi32> {
  // expected-error @below {{expected floats with a scale, got 'tensor<8x4xi32>'}}
  %r = attn.pack scale(2.0) ins(%x : tensor<8x4xi32>) outs(%o : tensor<2x4x4xi32>) -> tensor<2x4x4xi32>
  return %r : tensor<2x4x4xi32>
}

// -----

// P1: with groups, the output has two dimensions more than the source.
func.func @group_rank(%x: tensor<8x4xi8>, %o: tensor<2x4x4xi8>) -> tensor<2x4x4xi8> {
  // expected-error @below {{expected a source of rank 2 or more and an output of two ranks more, got 'tensor<8x4xi8>' and 'tensor<2x4x4xi8>'}}
  %r = attn.pack group(2) ins(%x : tensor<8x4xi8>) outs(%o : tensor<2x4x4xi8>) -> tensor<2x4x4xi8>
  return %r : tensor<2x4x4xi8>
}

// -----

// P1: the number of groups is the size of k divided by the group, rounded up.
func.func @group_count(%x: tensor<8x5xi8>, %o: tensor<2x2x4x2xi8>) -> tensor<2x2x4x2xi8> {
  // expected-error @below {{expected batch and k sizes to agree, got 'tensor<8x5xi8>' and 'tensor<2x2x4x2xi8>'}}
  %r = attn.pack group(2) ins(%x : tensor<8x5xi8>) outs(%o : tensor<2x2x4x2xi8>) -> tensor<2x2x4x2xi8>
  return %r : tensor<2x2x4x2xi8>
}

// -----

// P5: a group is a power of two.
func.func @group_of_three(%x: tensor<8x6xi8>, %o: tensor<2x2x4x3xi8>) -> tensor<2x2x4x3xi8> {
  // expected-error @below {{expected a group that is a power of two and the innermost size, got 3 and 'tensor<2x2x4x3xi8>'}}
  %r = attn.pack group(3) ins(%x : tensor<8x6xi8>) outs(%o : tensor<2x2x4x3xi8>) -> tensor<2x2x4x3xi8>
  return %r : tensor<2x2x4x3xi8>
}

// -----

// P5: a group is the size of the innermost dimension.
func.func @other_group(%x: tensor<8x6xi8>, %o: tensor<2x3x4x4xi8>) -> tensor<2x3x4x4xi8> {
  // expected-error @below {{expected a group that is a power of two and the innermost size, got 2 and 'tensor<2x3x4x4xi8>'}}
  %r = attn.pack group(2) ins(%x : tensor<8x6xi8>) outs(%o : tensor<2x3x4x4xi8>) -> tensor<2x3x4x4xi8>
  return %r : tensor<2x3x4x4xi8>
}
