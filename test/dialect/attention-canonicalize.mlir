// RUN: attn-opt %s -canonicalize -split-input-file | FileCheck %s

#d = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>

// CHECK-LABEL: @identity_score
// CHECK-NOT: score
// CHECK: return
func.func @identity_score(%q: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  %o = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) {indexing_maps = [#d, #k, #v, #o], scale = 1.0 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32):
        attn.yield %s : f32
      } -> tensor<2x8x4xf32>
  return %o : tensor<2x8x4xf32>
}

// With head size 0, every score is an empty sum, 0, so a region that yields the constant 0 is removed.
// CHECK-LABEL: @zero_score
// CHECK-NOT: score
// CHECK: return
func.func @zero_score(%q: tensor<2x8x0xf32>, %v: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  %zero = arith.constant 0.0 : f32
  %o = attn.attention ins(%q, %q, %v : tensor<2x8x0xf32>, tensor<2x8x0xf32>, tensor<2x8x4xf32>)
      outs(%v : tensor<2x8x4xf32>) {indexing_maps = [#d, #k, #v, #o], scale = 1.0 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32):
        attn.yield %zero : f32
      } -> tensor<2x8x4xf32>
  return %o : tensor<2x8x4xf32>
}

// -----

#d = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>

// If the region only multiplies the score by a constant, the scale is multiplied by it and the region is removed.
// CHECK-LABEL: @factor
// CHECK: scale = 1.250000e-01 : f32} -> tensor
func.func @factor(%q: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  %o = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) {indexing_maps = [#d, #k, #v, #o], scale = 0.5 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32):
        %c = arith.constant 0.25 : f32
        %x = arith.mulf %c, %s : f32
        attn.yield %x : f32
      } -> tensor<2x8x4xf32>
  return %o : tensor<2x8x4xf32>
}

// CHECK-LABEL: @factor_of_softcap
// CHECK: scale = 1.250000e-01 : f32}
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32):
// CHECK: math.tanh %[[S]]
func.func @factor_of_softcap(%q: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  %o = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) {indexing_maps = [#d, #k, #v, #o], scale = 0.5 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32):
        %c = arith.constant 0.25 : f32
        %x = arith.mulf %s, %c : f32
        %y = math.tanh %x : f32
        attn.yield %y : f32
      } -> tensor<2x8x4xf32>
  return %o : tensor<2x8x4xf32>
}

// CHECK-LABEL: @divisor_of_softcap
// CHECK: scale = 1.250000e-01 : f32}
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32):
// CHECK: math.tanh %[[S]]
func.func @divisor_of_softcap(%q: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  %o = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) {indexing_maps = [#d, #k, #v, #o], scale = 0.5 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32):
        %c = arith.constant 4.0 : f32
        %x = arith.divf %s, %c : f32
        %y = math.tanh %x : f32
        attn.yield %y : f32
      } -> tensor<2x8x4xf32>
  return %o : tensor<2x8x4xf32>
}

// A division of a constant by the score, or of the score by zero, is not folded into the scale.
// CHECK-LABEL: @divisor_kept
// CHECK: scale = 5.000000e-01 : f32}
// CHECK: arith.divf
// CHECK: scale = 5.000000e-01 : f32}
// CHECK: arith.divf
func.func @divisor_kept(%q: tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
  %o = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) {indexing_maps = [#d, #k, #v, #o], scale = 0.5 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32):
        %c = arith.constant 2.0 : f32
        %x = arith.divf %c, %s : f32
        attn.yield %x : f32
      } -> tensor<2x8x4xf32>
  %p = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) {indexing_maps = [#d, #k, #v, #o], scale = 0.5 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32):
        %c = arith.constant 0.0 : f32
        %x = arith.divf %s, %c : f32
        attn.yield %x : f32
      } -> tensor<2x8x4xf32>
  return %o, %p : tensor<2x8x4xf32>, tensor<2x8x4xf32>
}

// A factor is not folded into the scale if the score has another use, or if the new scale is not a normal f32.
// CHECK-LABEL: @factor_kept
// CHECK: scale = 5.000000e-01 : f32}
// CHECK: arith.mulf
// CHECK: scale = 5.000000e-01 : f32}
// CHECK: arith.mulf
func.func @factor_kept(%q: tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
  %o = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) {indexing_maps = [#d, #k, #v, #o], scale = 0.5 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32):
        %c = arith.constant 0.25 : f32
        %x = arith.mulf %s, %c : f32
        %y = arith.addf %x, %s : f32
        attn.yield %y : f32
      } -> tensor<2x8x4xf32>
  %p = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) {indexing_maps = [#d, #k, #v, #o], scale = 0.5 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32):
        %c = arith.constant 1.0e-40 : f32
        %x = arith.mulf %s, %c : f32
        attn.yield %x : f32
      } -> tensor<2x8x4xf32>
  return %o, %p : tensor<2x8x4xf32>, tensor<2x8x4xf32>
}

// -----

#d = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#n = affine_map<(b, q, k, d, e) -> (b)>

// CHECK-LABEL: @masks
func.func @masks(%q: tensor<2x8x4xf32>, %n: tensor<2xi32>, %b: index) -> tensor<2x8x4xf32> {
  // An empty mask is removed, and so is a causal mask that lets all 8 queries attend to all 8 keys.
  // CHECK: attn.attention
  // CHECK-NOT: mask
  // CHECK: attn.attention
  %0 = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) mask(#attn.and<[]>)
      {indexing_maps = [#d, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  %1 = attn.attention ins(%0, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) mask(#attn.causal<offset = 7>)
      {indexing_maps = [#d, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  // CHECK: mask(#attn.causal<offset = 6>)
  %2 = attn.attention ins(%1, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) mask(#attn.and<[#attn.causal<offset = 6>]>)
      {indexing_maps = [#d, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  // CHECK: mask(#attn.and<[#attn.causal, #attn.lengths<0>]>)
  %3 = attn.attention ins(%2, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      captures(%n : tensor<2xi32>) outs(%q : tensor<2x8x4xf32>)
      mask(#attn.and<[#attn.and<[#attn.causal, #attn.lengths<0>]>, #attn.causal, #attn.window<left = 9, right = 7>]>)
      {indexing_maps = [#d, #k, #v, #n, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  // The mask stays, because the origin of the tile is unknown.
  // CHECK: mask(#attn.causal<offset = 7>)
  %4 = attn.attention ins(%3, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x8x4xf32>) at(%b, %b, %b) mask(#attn.causal<offset = 7>)
      {indexing_maps = [#d, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return %4 : tensor<2x8x4xf32>
}

// -----

#d = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#w = affine_map<(b, q, k, d, e) -> (b, q, k)>

// CHECK-LABEL: @unused_weights
// CHECK-SAME: %[[Q:.*]]: tensor<2x8x4xf32>
// CHECK: %[[O:.*]] = attn.attention ins({{.*}}) outs(%[[Q]] : tensor<2x8x4xf32>) mask(#attn.causal)
// CHECK-SAME: indexing_maps = [{{[^,]*}}, {{[^,]*}}, {{[^,]*}}, {{[^,]*}}]
// CHECK: math.tanh
// CHECK: } -> tensor<2x8x4xf32>
// CHECK: return %[[O]]
func.func @unused_weights(%q: tensor<2x8x4xf32>, %w: tensor<2x8x8xf32>) -> tensor<2x8x4xf32> {
  %o:2 = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q, %w : tensor<2x8x4xf32>, tensor<2x8x8xf32>) mask(#attn.causal)
      {indexing_maps = [#d, #k, #v, #o, #w], scale = 1.0 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32):
        %y = math.tanh %s : f32
        attn.yield %y : f32
      } -> tensor<2x8x4xf32>, tensor<2x8x8xf32>
  return %o#0 : tensor<2x8x4xf32>
}

// CHECK-LABEL: @used_weights
// CHECK: -> tensor<2x8x4xf32>, tensor<2x8x8xf32>
func.func @used_weights(%q: tensor<2x8x4xf32>, %w: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  %o:2 = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q, %w : tensor<2x8x4xf32>, tensor<2x8x8xf32>)
      {indexing_maps = [#d, #k, #v, #o, #w], scale = 1.0 : f32} -> tensor<2x8x4xf32>, tensor<2x8x8xf32>
  return %o#1 : tensor<2x8x8xf32>
}

// -----

#d = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#n = affine_map<(b, q, k, d, e) -> (b)>
#w = affine_map<(b, q, k, d, e) -> (q, k)>
#t = affine_map<(b, q, k, d, e) -> (k, q)>

// The operand %x is removed, because nothing reads it. Of the two operands %w with the same map, one is removed.
// CHECK-LABEL: @captures
// CHECK-SAME: %[[X:.*]]: tensor<2xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[N:.*]]: tensor<2xi32>)
// CHECK: captures(%[[W]], %[[W]], %[[N]] : tensor<8x8xf32>, tensor<8x8xf32>, tensor<2xi32>)
// CHECK-SAME: mask(#attn.and<[#attn.dense<0>, #attn.lengths<2>]>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32, %[[E:.*]]: f32, %[[T:.*]]: f32, %{{.*}}: i32):
// CHECK: %[[A:.*]] = arith.addf %[[S]], %[[E]]
// CHECK: %[[B:.*]] = arith.addf %[[A]], %[[T]]
// CHECK: arith.addf %[[B]], %[[E]]
func.func @captures(%q: tensor<2x8x4xf32>, %x: tensor<2xf32>, %w: tensor<8x8xf32>, %n: tensor<2xi32>)
    -> tensor<2x8x4xf32> {
  %o = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      captures(%x, %w, %w, %w, %n : tensor<2xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<2xi32>)
      outs(%q : tensor<2x8x4xf32>) mask(#attn.and<[#attn.dense<3>, #attn.lengths<4>]>)
      {indexing_maps = [#d, #k, #v, #n, #w, #t, #w, #n, #o], scale = 1.0 : f32}
      score {
      ^bb0(%b: index, %qi: index, %ki: index, %s: f32, %x0: f32, %w0: f32, %w1: f32, %w2: f32, %n0: i32):
        %1 = arith.addf %s, %w0 : f32
        %2 = arith.addf %1, %w1 : f32
        %3 = arith.addf %2, %w2 : f32
        attn.yield %3 : f32
      } -> tensor<2x8x4xf32>
  return %o : tensor<2x8x4xf32>
}

// CHECK-LABEL: @captures_of_nothing
// CHECK-NOT: captures
// CHECK: return
func.func @captures_of_nothing(%q: tensor<2x8x4xf32>, %x: tensor<2xf32>) -> tensor<2x8x4xf32> {
  %o = attn.attention ins(%q, %q, %q : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      captures(%x : tensor<2xf32>) outs(%q : tensor<2x8x4xf32>)
      {indexing_maps = [#d, #k, #v, #n, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return %o : tensor<2x8x4xf32>
}

// Without keys, out is an empty sum, 0, even if empty rows are NaN.
// CHECK-LABEL: @no_keys(
// CHECK-SAME: %[[Q:[^ ]*]]: tensor<2x8x4xf32>, %{{[^ ]*}}: tensor<2x0x4xf32>, %[[W:[^ ]*]]: tensor<2x8x0xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: %[[FILL:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[Q]] :
// CHECK: return %[[FILL]], %[[W]]
func.func @no_keys(%q: tensor<2x8x4xf32>, %k: tensor<2x0x4xf32>, %w: tensor<2x8x0xf32>)
    -> (tensor<2x8x4xf32>, tensor<2x8x0xf32>) {
  %o:2 = attn.attention ins(%q, %k, %k : tensor<2x8x4xf32>, tensor<2x0x4xf32>, tensor<2x0x4xf32>)
      outs(%q, %w : tensor<2x8x4xf32>, tensor<2x8x0xf32>)
      {indexing_maps = [#d, #k, #v, #o, affine_map<(b, q, k, d, e) -> (b, q, k)>], scale = 1.0 : f32,
       empty_row = #attn.empty_row<nan>} -> tensor<2x8x4xf32>, tensor<2x8x0xf32>
  return %o#0, %o#1 : tensor<2x8x4xf32>, tensor<2x8x0xf32>
}

// The result has no elements, so nothing is computed.
// CHECK-LABEL: @no_queries(
// CHECK-SAME: %{{[^ ]*}}: tensor<2x8x4xf32>, %[[E:[^ ]*]]: tensor<2x0x4xf32>
// CHECK-NEXT: return %[[E]]
func.func @no_queries(%k: tensor<2x8x4xf32>, %q: tensor<2x0x4xf32>) -> tensor<2x0x4xf32> {
  %o = attn.attention ins(%q, %k, %k : tensor<2x0x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%q : tensor<2x0x4xf32>) {indexing_maps = [#d, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x0x4xf32>
  return %o : tensor<2x0x4xf32>
}

// CHECK-LABEL: @no_columns(
// CHECK-SAME: %{{[^ ]*}}: tensor<2x4xf32>, %[[E:[^ ]*]]: tensor<2x0xf32>
// CHECK-NEXT: return %[[E]]
func.func @no_columns(%x: tensor<2x4xf32>, %e: tensor<2x0xf32>, %w: tensor<0x4xf32>) -> tensor<2x0xf32> {
  %y = linalg.contract indexing_maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (n, k)>, affine_map<(s, n, k) -> (s, n)>]
      ins(%x, %w : tensor<2x4xf32>, tensor<0x4xf32>) outs(%e : tensor<2x0xf32>) -> tensor<2x0xf32>
  return %y : tensor<2x0xf32>
}

// CHECK-LABEL: @no_depth(
// CHECK-SAME: %[[E:[^ ]*]]: tensor<2x3xf32>
// CHECK-NEXT: return %[[E]]
func.func @no_depth(%x: tensor<2x0xf32>, %e: tensor<2x3xf32>, %w: tensor<3x0xf32>) -> tensor<2x3xf32> {
  %y = linalg.contract indexing_maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (n, k)>, affine_map<(s, n, k) -> (s, n)>]
      ins(%x, %w : tensor<2x0xf32>, tensor<3x0xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// Without keys, the maximum of a state is -inf and its sums are 0.
// CHECK-LABEL: @state_without_keys(
// CHECK-SAME: %{{[^:]*}}: tensor<8x4xf32>, %{{[^:]*}}: tensor<0x4xf32>, %[[E:[^:]*]]: tensor<8x4xf32>, %[[M:[^:]*]]: tensor<8xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-DAG: %[[NONE:.*]] = arith.constant 0xFF800000
// CHECK-DAG: linalg.fill ins(%[[ZERO]] : f32) outs(%[[E]]
// CHECK-DAG: linalg.fill ins(%[[NONE]] : f32) outs(%[[M]]
// CHECK-DAG: linalg.fill ins(%[[ZERO]] : f32) outs(%[[M]]
func.func @state_without_keys(%q: tensor<8x4xf32>, %k: tensor<0x4xf32>, %e: tensor<8x4xf32>, %m: tensor<8xf32>) -> (tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>) {
  %r:3 = attn.attention ins(%q, %k, %k : tensor<8x4xf32>, tensor<0x4xf32>, tensor<0x4xf32>) state outs(%e, %m, %m : tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>)
      {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>,
                        affine_map<(q, k, d, e) -> (q, e)>, affine_map<(q, k, d, e) -> (q)>, affine_map<(q, k, d, e) -> (q)>], scale = 1.0 : f32}
      -> tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>
  return %r#0, %r#1, %r#2 : tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>
}

// The pattern that drops unused probabilities does not drop the unused maximum of a state.
// CHECK-LABEL: @state_of_sums(
// CHECK: %{{.*}}:3 = attn.attention {{.*}} state outs(
func.func @state_of_sums(%q: tensor<8x4xf32>, %k: tensor<9x4xf32>, %e: tensor<8x4xf32>, %m: tensor<8xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  %r:3 = attn.attention ins(%q, %k, %k : tensor<8x4xf32>, tensor<9x4xf32>, tensor<9x4xf32>) state outs(%e, %m, %m : tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>)
      {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>,
                        affine_map<(q, k, d, e) -> (q, e)>, affine_map<(q, k, d, e) -> (q)>, affine_map<(q, k, d, e) -> (q)>], scale = 1.0 : f32}
      -> tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>
  return %r#0, %r#2 : tensor<8x4xf32>, tensor<8xf32>
}

