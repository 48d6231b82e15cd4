// RUN: attn-opt %s -attn-fold-scale -canonicalize -attn-lint-scale -verify-diagnostics

#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>
#id = affine_map<(b, h, q, d) -> (b, h, q, d)>
#q3 = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k3 = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v3 = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o3 = affine_map<(b, q, k, d, e) -> (b, q, e)>
#x3 = affine_map<(b, q, d, c) -> (b, q, c)>
#w3 = affine_map<(b, q, d, c) -> (d, c)>
#p3 = affine_map<(b, q, d, c) -> (b, q, d)>
#row = affine_map<(b, q, d) -> (b, q)>
#id3 = affine_map<(b, q, d) -> (b, q, d)>
!h = tensor<?x3x?x32xf32>
!x3 = tensor<2x9x16xf32>

func.func @multiplied(%q: !h, %out: !h) -> !h {
  // expected-warning @below {{scores are multiplied by sqrt(32), so the softmax gives almost all probability to one key; divide them by sqrt(32), the root of the head size}}
  %o = attn.attention ins(%q, %q, %q : !h, !h, !h) outs(%out : !h) {indexing_maps = [#q, #k, #v, #o], scale = 5.656854249 : f32} -> !h
  return %o : !h
}

// The finding is at the line of the factor, not at that of the attention.
func.func @factor_of_score(%x: !x3, %out: !x3) -> !x3 {
  %o = attn.attention ins(%x, %x, %x : !x3, !x3, !x3) outs(%out : !x3) {indexing_maps = [#q3, #k3, #v3, #o3], scale = 1.0 : f32} score {
    ^bb0(%b: index, %q: index, %k: index, %s: f32):
      %c = arith.constant 4.0 : f32
      // expected-warning @below {{scores are multiplied by sqrt(16)}}
      %t = arith.mulf %s, %c : f32
      attn.yield %t : f32
    } -> !x3
  return %o : !x3
}

func.func @factor_of_query(%q: !h, %out: !h, %empty: !h) -> !h {
  %c = arith.constant 5.656854249 : f32
  // expected-warning @below {{scores are multiplied by sqrt(32)}}
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q : !h) outs(%empty : !h) {
  ^bb0(%e: f32, %r: f32):
    %f = arith.mulf %e, %c : f32
    linalg.yield %f : f32
  } -> !h
  %o = attn.attention ins(%t, %q, %q : !h, !h, !h) outs(%out : !h) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> !h
  return %o : !h
}

// The width of the model is 96: 3 heads of size 32.
func.func @all_heads(%q: !h, %out: !h) -> !h {
  // expected-warning @below {{scores are divided by sqrt(96), the root of the model's width, so the softmax is too flat; divide them by sqrt(32), the root of the head size}}
  %o = attn.attention ins(%q, %q, %q : !h, !h, !h) outs(%out : !h) {indexing_maps = [#q, #k, #v, #o], scale = 0.102062072 : f32} -> !h
  return %o : !h
}

// The attention is one of several heads, each with its own op. The width of the model, 64, is that of the input of the
// projection. A bias is added to the projection.
func.func @projected(%x: tensor<2x9x64xf32>, %w: tensor<16x64xf32>, %bias: !x3, %zero: !x3, %out: !x3) -> !x3 {
  %p = linalg.contract indexing_maps = [#x3, #w3, #p3] ins(%x, %w : tensor<2x9x64xf32>, tensor<16x64xf32>) outs(%zero : !x3) -> !x3
  %q = linalg.add ins(%p, %bias : !x3, !x3) outs(%zero : !x3) -> !x3
  // expected-warning @below {{scores are divided by sqrt(64)}}
  %o = attn.attention ins(%q, %bias, %bias : !x3, !x3, !x3) outs(%out : !x3) {indexing_maps = [#q3, #k3, #v3, #o3], scale = 0.125 : f32} -> !x3
  return %o : !x3
}

// No finding: 1 / sqrt(head size), no scale, and unrelated scales.
func.func @meant(%q: !h, %out: !h) -> (!h, !h, !h, !h) {
  %0 = attn.attention ins(%q, %q, %q : !h, !h, !h) outs(%out : !h) {indexing_maps = [#q, #k, #v, #o], scale = 0.176776695 : f32} -> !h
  %1 = attn.attention ins(%q, %q, %q : !h, !h, !h) outs(%out : !h) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> !h
  %2 = attn.attention ins(%q, %q, %q : !h, !h, !h) outs(%out : !h) {indexing_maps = [#q, #k, #v, #o], scale = 10.0 : f32} -> !h
  %3 = attn.attention ins(%q, %q, %q : !h, !h, !h) outs(%out : !h) {indexing_maps = [#q, #k, #v, #o], scale = 0.03125 : f32} -> !h
  return %0, %1, %2, %3 : !h, !h, !h, !h
}

// The scale 1/4 is right for the head size 16, although the width of the projection's input is 16 too. In %y, 9 is the
// batch size, not the number of heads, so the scale 1/6 is not 1 / sqrt(the model's width).
func.func @coincidence(%x: !x3, %w: tensor<16x16xf32>, %zero: !x3, %out: !x3, %y: tensor<9x5x4xf32>) -> (!x3, tensor<9x5x4xf32>) {
  %q = linalg.contract indexing_maps = [#x3, #w3, #p3] ins(%x, %w : !x3, tensor<16x16xf32>) outs(%zero : !x3) -> !x3
  %0 = attn.attention ins(%q, %q, %q : !x3, !x3, !x3) outs(%out : !x3) {indexing_maps = [#q3, #k3, #v3, #o3], scale = 0.25 : f32} -> !x3
  %1 = attn.attention ins(%y, %y, %y : tensor<9x5x4xf32>, tensor<9x5x4xf32>, tensor<9x5x4xf32>) outs(%y : tensor<9x5x4xf32>) {indexing_maps = [#q3, #k3, #v3, #o3], scale = 0.166666667 : f32} -> tensor<9x5x4xf32>
  return %0, %1 : !x3, tensor<9x5x4xf32>
}

// Queries and keys that are normalised to length 1 need a factor such as sqrt(head size).
func.func @normalised(%x: !x3, %out: !x3, %norm0: tensor<2x9xf32>) -> !x3 {
  %norm = linalg.generic {indexing_maps = [#id3, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : !x3) outs(%norm0 : tensor<2x9xf32>) {
  ^bb0(%e: f32, %a: f32):
    %s = arith.mulf %e, %e : f32
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  } -> tensor<2x9xf32>
  %q = linalg.generic {indexing_maps = [#id3, #row, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %norm : !x3, tensor<2x9xf32>) outs(%out : !x3) {
  ^bb0(%e: f32, %n: f32, %r: f32):
    %s = math.rsqrt %n : f32
    %t = arith.mulf %e, %s : f32
    linalg.yield %t : f32
  } -> !x3
  %o = attn.attention ins(%q, %q, %x : !x3, !x3, !x3) outs(%out : !x3) {indexing_maps = [#q3, #k3, #v3, #o3], scale = 4.0 : f32} -> !x3
  return %o : !x3
}
