// RUN: attn-opt %s -split-input-file -verify-diagnostics

// W1 to W6 are the constraints of attn.online_probabilities in docs/dialect.md.

// W1: max, sum and probabilities have agreeing sizes.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %l: tensor<5xf32>, %s: tensor<8x6xf32>, %i: index) {
  // expected-error @+1 {{expected size 6 of q in dimension 0 of sum, got 5}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<5xf32>) outs(%s : tensor<8x6xf32>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>
  return
}

// -----

// W1: max, sum and probabilities have one float type.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %s: tensor<8x6xf16>, %i: index) {
  // expected-error @+1 {{expected one float type, got 'tensor<6xf32>' and 'tensor<8x6xf16>'}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) outs(%s : tensor<8x6xf16>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf16>
  return
}

// -----

// W2: query and key agree on the size of d.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x4xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %s: tensor<8x6xf32>, %i: index) {
  // expected-error @+1 {{expected size 3 of d in dimension 1 of key, got 4}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x4xf32>, tensor<6xf32>, tensor<6xf32>) outs(%s : tensor<8x6xf32>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>
  return
}

// -----

// W3: there is one capture map for each captured tile.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %s: tensor<8x6xf32>, %i: index, %c: tensor<8xi32>) {
  // expected-error @+1 {{expected 1 capture maps, got 0}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) captures(%c : tensor<8xi32>) outs(%s : tensor<8x6xf32>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>
  return
}

// -----

// W3: a capture map has the dimensions (k, q).
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %s: tensor<8x6xf32>, %i: index, %c: tensor<8xi32>) {
  // expected-error @+1 {{expected capture maps over (k, q), got affine_map<(d0) -> (d0)>}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) captures(%c : tensor<8xi32>) outs(%s : tensor<8x6xf32>)
      at(%i, %i, %i) {capture_maps = [affine_map<(k) -> (k)>], scale = 1.0 : f32} -> tensor<8x6xf32>
  return
}

// -----

// W3: a capture map has as many results as its tile has dimensions.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %s: tensor<8x6xf32>, %i: index, %c: tensor<8xi32>) {
  // expected-error @+1 {{expected captured tile 0 of rank 2, got 'tensor<8xi32>'}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) captures(%c : tensor<8xi32>) outs(%s : tensor<8x6xf32>)
      at(%i, %i, %i) {capture_maps = [affine_map<(k, q) -> (k, q)>], scale = 1.0 : f32} -> tensor<8x6xf32>
  return
}

// -----

// W3: the captured tile has the sizes that its map gives.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %s: tensor<8x6xf32>, %i: index, %c: tensor<8xi32>) {
  // expected-error @+1 {{expected size 6 of q in dimension 0 of captured tile 0, got 8}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) captures(%c : tensor<8xi32>) outs(%s : tensor<8x6xf32>)
      at(%i, %i, %i) {capture_maps = [affine_map<(k, q) -> (q)>], scale = 1.0 : f32} -> tensor<8x6xf32>
  return
}

// -----

// W4: the region has index arguments and the score.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %s: tensor<8x6xf32>, %i: index) {
  // expected-error @+1 {{expected score region arguments ('index', 'index', 'index', 'f32'), got ('f32')}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) outs(%s : tensor<8x6xf32>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} score {
      ^bb0(%x: f32):
        attn.yield %x : f32
      } -> tensor<8x6xf32>
  return
}

// -----

// W5: the origin has at least the indices q and k.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %s: tensor<8x6xf32>, %i: index) {
  // expected-error @+1 {{expected an origin (batch..., q, k), got 1 indices}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) outs(%s : tensor<8x6xf32>)
      at(%i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>
  return
}

// -----

// W6: the mask names captured tiles that exist.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %s: tensor<8x6xf32>, %i: index) {
  // expected-error @+1 {{expected the mask to name one of 0 captured operands, got 0}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) outs(%s : tensor<8x6xf32>)
      at(%i, %i, %i) mask(#attn.dense<0>) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>
  return
}

// -----

// W6: lengths do not vary with k.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %s: tensor<8x6xf32>, %i: index, %c: tensor<8xi32>) {
  // expected-error @+1 {{expected captured operand 0, a symbol of the mask, without k, got affine_map<(d0, d1) -> (d0)>}}
  %r = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x6xf32>, tensor<8x3xf32>, tensor<6xf32>, tensor<6xf32>) captures(%c : tensor<8xi32>) outs(%s : tensor<8x6xf32>)
      at(%i, %i, %i) mask(#attn.lengths<0>) {capture_maps = [affine_map<(k, q) -> (k)>], scale = 1.0 : f32} -> tensor<8x6xf32>
  return
}
