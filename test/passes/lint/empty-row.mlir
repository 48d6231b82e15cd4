// RUN: attn-opt %s -attn-extract-mask -attn-lint-empty-row -verify-diagnostics

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#b = affine_map<(b, q, k, d, e) -> (b)>
#bk = affine_map<(b, q, k, d, e) -> (b, 0, k)>
#qk = affine_map<(b, q, k, d, e) -> (q, k)>
!x = tensor<2x9x8xf32>
!y = tensor<2x?x8xf32>

// The finding is at the line of the fill.
func.func @padding(%x: !x, %hidden: tensor<2x1x9xi1>) -> !x {
  %o = attn.attention ins(%x, %x, %x : !x, !x, !x) captures(%hidden : tensor<2x1x9xi1>) outs(%x : !x)
      {indexing_maps = [#q, #k, #v, #bk, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %h: i1):
        %inf = arith.constant 0xFF800000 : f32
        // expected-warning @below {{the mask can hide every key of a query, and the row of such a query is NaN; keep a key for every query, or call scaled_dot_product_attention, which gives 0}}
        %t = arith.select %h, %inf, %s : f32
        attn.yield %t : f32
      } -> !x
  return %o : !x
}

// With offset -1, the first query has no key. A length may be 0. A causal mask leaves the first query only key 0, which
// the padding may hide.
func.func @some(%x: !x, %length: tensor<2xi64>, %pad: tensor<2x1x9xi64>) -> (!x, !x, !x) {
  // expected-warning @below {{the mask can hide every key}}
  %0 = attn.attention ins(%x, %x, %x : !x, !x, !x) outs(%x : !x) mask(#attn.causal<offset = -1>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> !x
  // expected-warning @below {{the mask can hide every key}}
  %1 = attn.attention ins(%x, %x, %x : !x, !x, !x) captures(%length : tensor<2xi64>) outs(%x : !x) mask(#attn.lengths<0>)
      {indexing_maps = [#q, #k, #v, #b, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> !x
  // expected-warning @below {{the mask can hide every key}}
  %2 = attn.attention ins(%x, %x, %x : !x, !x, !x) captures(%pad : tensor<2x1x9xi64>) outs(%x : !x) mask(#attn.and<[#attn.causal, #attn.dense<0>]>)
      {indexing_maps = [#q, #k, #v, #bk, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> !x
  return %0, %1, %2 : !x, !x, !x
}

// The window of a query may begin after the last key, unless there are as many queries as keys.
func.func @sizes(%x: !y {attn.dims = ["", "S", ""]}, %y: !y {attn.dims = ["", "T", ""]}) -> (!y, !y, !y)
    attributes {attn.symbols = [#attn.symbol<"S", 0 to 99>, #attn.symbol<"T", 0 to 99>]} {
  // expected-warning @below {{the mask can hide every key}}
  %0 = attn.attention ins(%x, %y, %y : !y, !y, !y) outs(%x : !y) mask(#attn.window<left = 3, right = 0, offset = 0>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> !y
  %1 = attn.attention ins(%x, %x, %x : !y, !y, !y) outs(%x : !y) mask(#attn.window<left = 3, right = 0, offset = 0>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> !y
  %2 = attn.attention ins(%x, %y, %y : !y, !y, !y) outs(%x : !y) mask(#attn.causal)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> !y
  return %0, %1, %2 : !y, !y, !y
}

// A rotation of positions concatenates halves of the query, which has as many rows as before.
func.func @rotated(%x: !y {attn.dims = ["", "S", ""]}) -> !y
    attributes {attn.symbols = [#attn.symbol<"S", 0 to 99>]} {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : !y
  %a = tensor.extract_slice %x[0, 0, 0] [2, %n, 4] [1, 1, 1] : !y to tensor<2x?x4xf32>
  %b = tensor.extract_slice %x[0, 0, 4] [2, %n, 4] [1, 1, 1] : !y to tensor<2x?x4xf32>
  %q = tensor.concat dim(2) %b, %a : (tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> !y
  %0 = attn.attention ins(%q, %x, %x : !y, !y, !y) outs(%x : !y) mask(#attn.window<left = 3, right = 0, offset = 0>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> !y
  return %0 : !y
}

// No finding: empty rows that give 0 instead of NaN, a finite fill, and a mask that is stored as a weight.
func.func @never(%x: !x, %hidden: tensor<2x1x9xi1>, %past: tensor<9x9xf32> {attn.weight}) -> (!x, !x, !x) {
  %0 = attn.attention ins(%x, %x, %x : !x, !x, !x) captures(%hidden : tensor<2x1x9xi1>) outs(%x : !x) mask(#attn.dense<0>)
      {indexing_maps = [#q, #k, #v, #bk, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<zero>} -> !x
  %1 = attn.attention ins(%x, %x, %x : !x, !x, !x) captures(%hidden : tensor<2x1x9xi1>) outs(%x : !x)
      {indexing_maps = [#q, #k, #v, #bk, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %h: i1):
        %low = arith.constant -1.0e9 : f32
        %t = arith.select %h, %low, %s : f32
        attn.yield %t : f32
      } -> !x
  %2 = attn.attention ins(%x, %x, %x : !x, !x, !x) captures(%past : tensor<9x9xf32>) outs(%x : !x) mask(#attn.dense<0>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> !x
  return %0, %1, %2 : !x, !x, !x
}
