// RUN: attn-opt %s -split-input-file -verify-diagnostics

// S1 to S8 are the constraints of attn.online_step in docs/dialect.md.

// S1: scores, max, sum and acc have agreeing sizes.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x5xf32>, %i: index) {
  // expected-error @+1 {{expected size 6 of q in dimension 1 of acc, got 5}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x5xf32>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x5xf32>
  return
}

// -----

// S1: scores, max, sum and acc have one float type.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf16>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  // expected-error @+1 {{expected one float type, got 'tensor<8x6xf16>' and 'tensor<6xf32>'}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      outs(%s, %m, %l, %a : tensor<8x6xf16>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf16>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S2: query and key agree on the size of d.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x5xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  // expected-error @+1 {{expected size 5 of d in dimension 0 of query, got 3}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x5xf32>, tensor<8x4xf32>)
      outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S2: the value has rank 2.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  // expected-error @+1 {{expected value of rank 2, got 'tensor<8xf32>'}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8xf32>)
      outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S3: there is one capture map for each captured tile.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index, %c: tensor<8xi32>) {
  // expected-error @+1 {{expected 1 capture maps, got 0}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      captures(%c : tensor<8xi32>) outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S3: a capture map has the dimensions (k, q).
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index, %c: tensor<8xi32>) {
  // expected-error @+1 {{expected capture maps over (k, q), got affine_map<(d0) -> (d0)>}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      captures(%c : tensor<8xi32>) outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) {capture_maps = [affine_map<(k) -> (k)>], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S3: a capture map has as many results as its tile has dimensions.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index, %c: tensor<8xi32>) {
  // expected-error @+1 {{expected captured tile 0 of rank 2, got 'tensor<8xi32>'}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      captures(%c : tensor<8xi32>) outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) {capture_maps = [affine_map<(k, q) -> (k, q)>], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S3: the captured tile has the sizes that its map gives.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index, %c: tensor<8xi32>) {
  // expected-error @+1 {{expected size 6 of q in dimension 0 of captured tile 0, got 8}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      captures(%c : tensor<8xi32>) outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) {capture_maps = [affine_map<(k, q) -> (q)>], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S4: the region has index arguments and the score.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  // expected-error @+1 {{expected score region arguments ('index', 'index', 'index', 'f32'), got ('f32')}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) {capture_maps = [], scale = 1.0 : f32} score {
      ^bb0(%x: f32):
        attn.yield %x : f32
      } -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S5: the origin has at least the indices q and k.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  // expected-error @+1 {{expected an origin (batch..., q, k), got 1 indices}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S6: the mask names captured tiles that exist.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  // expected-error @+1 {{expected the mask to name one of 0 captured operands, got 0}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) mask(#attn.dense<0>) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S6: lengths do not vary with k.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index, %c: tensor<8xi32>) {
  // expected-error @+1 {{expected captured operand 0, a symbol of the mask, without k, got affine_map<(d0, d1) -> (d0)>}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      captures(%c : tensor<8xi32>) outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) mask(#attn.lengths<0>) {capture_maps = [affine_map<(k, q) -> (k)>], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

// S7: operands of prefetch have two dimensions.
func.func @invalid(%q: tensor<3x6xf32>, %k: tensor<8x3xf32>, %v: tensor<8x4xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %l: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  // expected-error @+1 {{expected rows of two dimensions to prefetch, got 'tensor<6xf32>'}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6xf32>, tensor<8x3xf32>, tensor<8x4xf32>)
      outs(%s, %m, %l, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>)
      at(%i, %i, %i) prefetch(%m : tensor<6xf32>) {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

func.func @s8_no_probabilities(%q: tensor<3x6x2xbf16>, %k: tensor<8x6xbf16>, %v: tensor<4x4x2xbf16>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  // expected-error @+1 {{expected probabilities, and groups of a power of two, beside a query in groups, got 'tensor<3x6x2xbf16>'}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x6x2xbf16>, tensor<8x6xbf16>, tensor<4x4x2xbf16>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

func.func @s8_size(%q: tensor<2x6x3xbf16>, %k: tensor<8x6xbf16>, %v: tensor<8x4x1xbf16>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>, %p: tensor<4x6x2xbf16>, %i: index) {
  // expected-error @+1 {{expected probabilities, and groups of a power of two, beside a query in groups, got 'tensor<2x6x3xbf16>'}}
  %r:5 = attn.online_step ins(%q, %k, %v : tensor<2x6x3xbf16>, tensor<8x6xbf16>, tensor<8x4x1xbf16>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) probabilities(%p : tensor<4x6x2xbf16>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<4x6x2xbf16>
  return
}

// -----

func.func @s8_size(%q: tensor<6x6x0xbf16>, %k: tensor<8x6xbf16>, %v: tensor<8x4x1xbf16>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>, %p: tensor<4x6x2xbf16>, %i: index) {
  // expected-error @+1 {{expected probabilities, and groups of a power of two, beside a query in groups, got 'tensor<6x6x0xbf16>'}}
  %r:5 = attn.online_step ins(%q, %k, %v : tensor<6x6x0xbf16>, tensor<8x6xbf16>, tensor<8x4x1xbf16>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) probabilities(%p : tensor<4x6x2xbf16>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<4x6x2xbf16>
  return
}

// -----

func.func @s8_size(%q: tensor<3x6x?xbf16>, %k: tensor<8x6xbf16>, %v: tensor<8x4x1xbf16>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>, %p: tensor<4x6x2xbf16>, %i: index) {
  // expected-error @+1 {{expected probabilities, and groups of a power of two, beside a query in groups, got 'tensor<3x6x?xbf16>'}}
  %r:5 = attn.online_step ins(%q, %k, %v : tensor<3x6x?xbf16>, tensor<8x6xbf16>, tensor<8x4x1xbf16>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) probabilities(%p : tensor<4x6x2xbf16>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<4x6x2xbf16>
  return
}

// -----

func.func @s8_transposed(%q: tensor<6x6xbf16>, %k: tensor<8x6xbf16>, %v: tensor<4x8xbf16>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>, %i: index) {
  // expected-error @+1 {{expected a query in groups beside a transposed value, got 'tensor<6x6xbf16>'}}
  %r:4 = attn.online_step transposed ins(%q, %k, %v : tensor<6x6xbf16>, tensor<8x6xbf16>, tensor<4x8xbf16>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>
  return
}

// -----

func.func @s8_type(%q: tensor<6x6xbf16>, %k: tensor<8x6xbf16>, %v: tensor<8x4xbf16>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>, %p: tensor<8x6xf16>, %i: index) {
  // expected-error @+1 {{expected probabilities of the type of the value, got 'tensor<8x6xf16>' and 'tensor<8x4xbf16>'}}
  %r:5 = attn.online_step ins(%q, %k, %v : tensor<6x6xbf16>, tensor<8x6xbf16>, tensor<8x4xbf16>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) probabilities(%p : tensor<8x6xf16>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<8x6xf16>
  return
}

// -----

func.func @s8_groups(%q: tensor<3x6x2xbf16>, %k: tensor<8x6xbf16>, %v: tensor<8x4xbf16>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>, %p: tensor<4x6x2xbf16>, %i: index) {
  // expected-error @+1 {{expected value in groups of 2, got 'tensor<8x4xbf16>'}}
  %r:5 = attn.online_step ins(%q, %k, %v : tensor<3x6x2xbf16>, tensor<8x6xbf16>, tensor<8x4xbf16>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) probabilities(%p : tensor<4x6x2xbf16>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<4x6x2xbf16>
  return
}

// -----

func.func @s8_number(%q: tensor<4x6x2xbf16>, %k: tensor<8x6xbf16>, %v: tensor<4x4x2xbf16>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<4x6xf32>, %p: tensor<4x6x2xbf16>, %i: index) {
  // expected-error @+1 {{expected groups of 6 elements of d in dimension 0 of query, got 4}}
  %r:5 = attn.online_step ins(%q, %k, %v : tensor<4x6x2xbf16>, tensor<8x6xbf16>, tensor<4x4x2xbf16>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>) probabilities(%p : tensor<4x6x2xbf16>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<4x6xf32>, tensor<4x6x2xbf16>
  return
}

// -----

func.func @s8_rows(%q: tensor<6x2x2xbf16>, %k: tensor<8x4xbf16>, %v: tensor<4x4x2xbf16>, %s: tensor<6x8xf32>, %m: tensor<6xf32>, %a: tensor<6x4xf32>, %p: tensor<6x4x2xbf16>, %i: index) {
  // expected-error @+1 {{expected no groups beside queries in rows, got 'tensor<6x2x2xbf16>'}}
  %r:5 = attn.online_step rows ins(%q, %k, %v : tensor<6x2x2xbf16>, tensor<8x4xbf16>, tensor<4x4x2xbf16>)
      outs(%s, %m, %m, %a : tensor<6x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>) probabilities(%p : tensor<6x4x2xbf16>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<6x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6x4xf32>, tensor<6x4x2xbf16>
  return
}

// -----

func.func @s1_rows(%q: tensor<6x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x5xf32>, %s: tensor<8x6xf32>, %m: tensor<6xf32>, %a: tensor<6x5xf32>, %i: index) {
  // expected-error @+1 {{expected size 8 of q in dimension 0 of max, got 6}}
  %r:4 = attn.online_step rows ins(%q, %k, %v : tensor<6x4xf32>, tensor<8x4xf32>, tensor<8x5xf32>)
      outs(%s, %m, %m, %a : tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6x5xf32>) at(%i, %i)
      {capture_maps = [], scale = 1.0 : f32} -> tensor<8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6x5xf32>
  return
}
