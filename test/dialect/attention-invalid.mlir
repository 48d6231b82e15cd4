// RUN: attn-opt %s -split-input-file -verify-diagnostics

// A1 to A13 are the constraints of attn.attention in docs/dialect.md.

// A1: there is one indexing map for each operand.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected 4 indexing maps, got 3}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A1: the maps have at least the dimensions q, k, d and e.
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(q, k, d) -> (q, k, d)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected indexing maps over (batch..., q, k, d, e), got affine_map<(d0, d1, d2) -> (d0, d1, d2)>}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#s, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A1: all maps have the same dimensions.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, k, d, e) -> (b, k, d)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected indexing maps over the same 5 dimensions, got affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)> for key}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #s, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A1: the map of an operand has as many results as the operand has dimensions.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (k, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected value of rank 2, got 'tensor<2x8x4xf32>'}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #s, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A2: a map has no constant other than 0.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (1, k, d)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a projected permutation with no constant but 0, got affine_map<(d0, d1, d2, d3, d4) -> (1, d2, d3)> for key}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #s, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A2: a map has no dimension twice.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (k, k, d)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a projected permutation with no constant but 0}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #s, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A3: the map of the query has q and d.
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected query to have d, got}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#s, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A3: the map of the key has neither q nor e.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (q, k, d)>
func.func @invalid(%x: tensor<2x8x4xf32>, %y: tensor<8x8x4xf32>) {
  // expected-error @+1 {{expected key without q, got}}
  %r = attn.attention ins(%x, %y, %x : tensor<2x8x4xf32>, tensor<8x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #s, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A3: the map of the value has k and e.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b, k, d)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected value to have e, got}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #s, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A4: the map of out has every batch dimension, q and e.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#s = affine_map<(b, q, k, d, e) -> (0, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>, %y: tensor<1x8x4xf32>) {
  // expected-error @+1 {{expected out to have batch dimension 0, got}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%y : tensor<1x8x4xf32>) {indexing_maps = [#q, #k, #v, #s], scale = 1.0 : f32} -> tensor<1x8x4xf32>
  return
}

// -----

// A4: the map of the probabilities has every batch dimension, q and k.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b, q, 0)>
func.func @invalid(%x: tensor<2x8x4xf32>, %y: tensor<2x8x1xf32>) {
  // expected-error @+1 {{expected probabilities to have k, got}}
  %r:2 = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x, %y : tensor<2x8x4xf32>, tensor<2x8x1xf32>) {indexing_maps = [#q, #k, #v, #o, #s], scale = 1.0 : f32} -> tensor<2x8x4xf32>, tensor<2x8x1xf32>
  return
}

// -----

// A5: maps of captured operands have neither d nor e.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (d)>
func.func @invalid(%x: tensor<2x8x4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{expected captured operand 0 without d, got}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) captures(%y : tensor<4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #s, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A6: operands that share a dimension agree on its size.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>, %y: tensor<2x7x4xf32>) {
  // expected-error @+1 {{expected size 8 of k in dimension 1 of value, got 7}}
  %r = attn.attention ins(%x, %x, %y : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x7x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A6: a dimension that is read at 0 has size 1.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (0, k, d)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected size 1 in dimension 0 of key, which is read at 0, got 2}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #s, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A7: operands are floats.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>, %y: tensor<2x8x4xi32>) {
  // expected-error @+1 {{expected value to hold floats no wider than the accumulator 'f32', got 'tensor<2x8x4xi32>'}}
  %r = attn.attention ins(%x, %x, %y : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xi32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A7: the accumulator is at least as wide as the operands.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected query to hold floats no wider than the accumulator 'f16'}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32, acc_type = f16} -> tensor<2x8x4xf32>
  return
}

// -----

// A8: the region has an index argument for each of (batch..., q, k).
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected score region arguments ('index', 'index', 'index', 'f32'), got ('index', 'index', 'f32')}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %i: index, %s: f32):
        attn.yield %s : f32
      } -> tensor<2x8x4xf32>
  return
}

// -----

// A8: the region has an argument for each captured element, of the element's type.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (k)>
func.func @invalid(%x: tensor<2x8x4xf32>, %y: tensor<8xf16>) {
  // expected-error @+1 {{expected score region arguments ('index', 'index', 'index', 'f32', 'f16'), got ('index', 'index', 'index', 'f32', 'f32')}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) captures(%y : tensor<8xf16>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #s, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %i: index, %j: index, %s: f32, %c: f32):
        attn.yield %s : f32
      } -> tensor<2x8x4xf32>
  return
}

// -----

// A8: the region yields a score.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected the score region to yield 'f32', got 'f64'}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %i: index, %j: index, %s: f32):
        %t = arith.extf %s : f32 to f64
        attn.yield %t : f64
      } -> tensor<2x8x4xf32>
  return
}

// -----

// A8: the region has one block, which ends in a yield.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected the score region to end in attn.yield}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %i: index, %j: index, %s: f32):
        llvm.unreachable
      } -> tensor<2x8x4xf32>
  return
}

// -----

// A9: ops of the region neither read nor write memory.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>, %m: memref<8xf32>) {
  // expected-error @+1 {{expected pure scalar operations in the score region, got 'memref.load'}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %i: index, %j: index, %s: f32):
        %t = memref.load %m[%i] : memref<8xf32>
        attn.yield %t : f32
      } -> tensor<2x8x4xf32>
  return
}

// -----

// A10: the mask names captured operands that exist.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected the mask to name one of 0 captured operands, got 0}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) mask(#attn.lengths<0>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A10: a dense mask inside #attn.and names a captured operand that exists.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b)>
func.func @invalid(%x: tensor<2x8x4xf32>, %y: tensor<2xi32>) {
  // expected-error @+1 {{expected the mask to name one of 1 captured operands, got 1}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) captures(%y : tensor<2xi32>)
      outs(%x : tensor<2x8x4xf32>) mask(#attn.and<[#attn.lengths<0>, #attn.dense<1>]>) {indexing_maps = [#q, #k, #v, #s, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A10: lengths are integers.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b)>
func.func @invalid(%x: tensor<2x8x4xf32>, %y: tensor<2xf32>) {
  // expected-error @+1 {{expected captured operand 0 to hold integers, got 'f32'}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) captures(%y : tensor<2xf32>)
      outs(%x : tensor<2x8x4xf32>) mask(#attn.lengths<0>) {indexing_maps = [#q, #k, #v, #s, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A10: lengths do not vary with k.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (k)>
func.func @invalid(%x: tensor<2x8x4xf32>, %y: tensor<8xi32>) {
  // expected-error @+1 {{expected captured operand 0, a symbol of the mask, without k, got}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) captures(%y : tensor<8xi32>)
      outs(%x : tensor<2x8x4xf32>) mask(#attn.lengths<0>) {indexing_maps = [#q, #k, #v, #s, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A11: the origin has one index for each of (batch..., q, k).
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>, %i: index) {
  // expected-error @+1 {{expected an origin of 3 indices, got 2}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) at(%i, %i) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A12: there are one or two outputs.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected one or two outputs, got 3}}
  %r:3 = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #o, #o, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>
  return
}

// -----

// A5: the sink does not vary with k.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>, %sink: tensor<8xf32>) {
  // expected-error @+1 {{expected sink without k, got affine_map<(d0, d1, d2, d3, d4) -> (d2)>}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) sink(%sink : tensor<8xf32>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, affine_map<(b, q, k, d, e) -> (k)>, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A7: the sink holds floats no wider than the accumulator.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>, %sink: tensor<8xf64>) {
  // expected-error @+1 {{expected sink to hold floats no wider than the accumulator 'f32', got 'tensor<8xf64>'}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) sink(%sink : tensor<8xf64>)
      outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, affine_map<(b, q, k, d, e) -> (q)>, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A2: the words of a packed mask are of i32.
func.func @invalid(%w: tensor<16x48xi1>, %q: tensor<48x64xf32>, %k: tensor<500x64xf32>, %e: tensor<48x64xf32>) {
  // expected-error @+1 {{expected words of i32 that are read at k floordiv 32, got 'tensor<16x48xi1>' at affine_map<(d0, d1, d2, d3) -> (d1 floordiv 32, d0)>}}
  %o = attn.attention ins(%q, %k, %k : tensor<48x64xf32>, tensor<500x64xf32>, tensor<500x64xf32>)
      captures(%w : tensor<16x48xi1>) outs(%e : tensor<48x64xf32>) mask(#attn.dense<0>)
      {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>,
                        affine_map<(q, k, d, e) -> (k floordiv 32, q)>, affine_map<(q, k, d, e) -> (q, e)>], scale = 1.0 : f32} -> tensor<48x64xf32>
  return
}

// -----

// A6: a packed mask has as many words as the keys need.
func.func @invalid(%w: tensor<15x48xi32>, %q: tensor<48x64xf32>, %k: tensor<500x64xf32>, %e: tensor<48x64xf32>) {
  // expected-error @+1 {{expected words of 500 keys in dimension 0 of captured operand 0, got 15}}
  %o = attn.attention ins(%q, %k, %k : tensor<48x64xf32>, tensor<500x64xf32>, tensor<500x64xf32>)
      captures(%w : tensor<15x48xi32>) outs(%e : tensor<48x64xf32>) mask(#attn.dense<0>)
      {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>,
                        affine_map<(q, k, d, e) -> (k floordiv 32, q)>, affine_map<(q, k, d, e) -> (q, e)>], scale = 1.0 : f32} -> tensor<48x64xf32>
  return
}

// -----

// A2: in a packed mask, the dimension of words precedes that of queries.
func.func @invalid(%w: tensor<48x16xi32>, %q: tensor<48x64xf32>, %k: tensor<500x64xf32>, %e: tensor<48x64xf32>) {
  // expected-error @+1 {{expected words with dimensions (batch..., k floordiv 32, q), got affine_map<(d0, d1, d2, d3) -> (d0, d1 floordiv 32)>}}
  %o = attn.attention ins(%q, %k, %k : tensor<48x64xf32>, tensor<500x64xf32>, tensor<500x64xf32>)
      captures(%w : tensor<48x16xi32>) outs(%e : tensor<48x64xf32>) mask(#attn.dense<0>)
      {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>,
                        affine_map<(q, k, d, e) -> (q, k floordiv 32)>, affine_map<(q, k, d, e) -> (q, e)>], scale = 1.0 : f32} -> tensor<48x64xf32>
  return
}

// -----

// A12: a state has three outputs.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected the outputs acc, max and sum, got 1}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      state outs(%x : tensor<2x8x4xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b, q)>
func.func @invalid(%x: tensor<2x8x4xf32>, %m: tensor<2x8xf32>) {
  // expected-error @+1 {{expected no sink of a state, got 'tensor<2x8xf32>'}}
  %r:3 = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) sink(%m : tensor<2x8xf32>)
      state outs(%x, %m, %m : tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {indexing_maps = [#q, #k, #v, #s, #o, #s, #s], scale = 1.0 : f32} -> tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>
  return
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b, q)>
func.func @invalid(%x: tensor<2x8x4xf32>, %m: tensor<2x8xf16>) {
  // expected-error @+1 {{expected a state of 'f32', got 'tensor<2x8xf16>'}}
  %r:3 = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      state outs(%x, %m, %m : tensor<2x8x4xf32>, tensor<2x8xf16>, tensor<2x8xf16>) {indexing_maps = [#q, #k, #v, #o, #s, #s], scale = 1.0 : f32} -> tensor<2x8x4xf32>, tensor<2x8xf16>, tensor<2x8xf16>
  return
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b, q)>
#b = affine_map<(b, q, k, d, e) -> (b, e)>
func.func @invalid(%x: tensor<2x8x4xf32>, %m: tensor<2x8xf32>, %l: tensor<2x4xf32>) {
  // expected-error @+1 {{expected sum to have q}}
  %r:3 = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      state outs(%x, %m, %l : tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x4xf32>) {indexing_maps = [#q, #k, #v, #o, #s, #b], scale = 1.0 : f32} -> tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x4xf32>
  return
}

// -----

// A12: the plan of an attention with a state has the schedule decode.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b, q)>
func.func @invalid(%x: tensor<2x8x4xf32>, %m: tensor<2x8xf32>) {
  // expected-error @+1 {{expected acc (batch..., q, e) and the schedule decode for a state, got affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)> and #attn.plan<"per-head", q = 8, k = 8>}}
  %r:3 = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      state outs(%x, %m, %m : tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>) plan(<"per-head", q = 8, k = 8>) {indexing_maps = [#q, #k, #v, #o, #s, #s], scale = 1.0 : f32} -> tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>
  return
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#s = affine_map<(b, q, k, d, e) -> (b, q)>
func.func @invalid(%x: tensor<2x8x4xf32>, %m: tensor<2x8xf32>) {
  // expected-error @+1 {{expected no empty_row of a state, got #attn.empty_row<nan>}}
  %r:3 = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      state outs(%x, %m, %m : tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {indexing_maps = [#q, #k, #v, #o, #s, #s], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>
  return
}

// -----

// A14: a fill needs a mask.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a fill that is finite, with a mask and without a state, got -1.000000e+09 : f32}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) {fill = -1.0e9 : f32, indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A14: a fill is finite.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a fill that is finite, with a mask and without a state, got 0xFF800000 : f32}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) mask(#attn.causal) {fill = 0xFF800000 : f32, indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A14: a bound is a captured operand.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected an added fill, and as its bound a last captured operand of floats that do not vary with the key}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) mask(#attn.causal) {added, bounded, fill = -1.0e4 : f32, indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}

// -----

// A14: only a fill is added.
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @invalid(%x: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expected a fill that is added, got none}}
  %r = attn.attention ins(%x, %x, %x : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
      outs(%x : tensor<2x8x4xf32>) mask(#attn.causal) {added, indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<2x8x4xf32>
  return
}
