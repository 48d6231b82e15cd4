// RUN: attn-opt %s -attn-hoist-views -canonicalize | FileCheck %s
// Views of a projection move to its operands. Access.cpp maps each element of a view to an element of the projection.

#x = affine_map<(s, n, c) -> (s, c)>
#w = affine_map<(s, n, c) -> (n, c)>
#y = affine_map<(s, n, c) -> (s, n)>

// CHECK-DAG: #[[X:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
// CHECK-DAG: #[[W:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>
// CHECK-DAG: #[[Y:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>

// CHECK-LABEL: @packed
// CHECK-SAME: %[[X0:.*]]: tensor<?x16xf32>, %[[W0:.*]]: tensor<24x16xf32>, %[[B0:.*]]: tensor<24xf32>)
// CHECK-DAG: %[[W1:.*]] = tensor.expand_shape %[[W0]] {{\[\[}}0, 1, 2], [3]] output_shape [3, 2, 4, 16]
// CHECK-DAG: %[[B1:.*]] = tensor.expand_shape %[[B0]] {{\[\[}}0, 1, 2]] output_shape [3, 2, 4]
// CHECK: %[[W2:.*]] = tensor.extract_slice %[[W1]][0, 0, 0, 0] [1, 2, 4, 16] {{.*}} to tensor<2x4x16xf32>
// CHECK: %[[B2:.*]] = tensor.extract_slice %[[B1]][0, 0, 0] [1, 2, 4] {{.*}} to tensor<2x4xf32>
// CHECK: %[[I2:.*]] = linalg.broadcast ins(%[[B2]] : tensor<2x4xf32>) outs(%{{.*}} : tensor<2x?x4xf32>) dimensions = [1]
// CHECK: linalg.contract indexing_maps = [#[[X]], #[[W]], #[[Y]]] ins(%[[X0]], %[[W2]] : {{.*}}) outs(%[[I2]] : tensor<2x?x4xf32>)
// CHECK: tensor.extract_slice %[[W1]][2, 0, 0, 0]
// CHECK: linalg.contract indexing_maps = [#[[X]], #[[W]], #[[Y]]]
// CHECK-NOT: tensor.extract_slice
// CHECK-NOT: linalg
// CHECK: return
func.func @packed(%x: tensor<?x16xf32>, %w: tensor<24x16xf32>, %b: tensor<24xf32>) -> (tensor<2x?x4xf32>, tensor<2x?x4xf32>) {
  %c0 = arith.constant 0 : index
  %s = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%s) : tensor<?x24xf32>
  %i = linalg.broadcast ins(%b : tensor<24xf32>) outs(%e : tensor<?x24xf32>) dimensions = [0]
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<?x16xf32>, tensor<24x16xf32>) outs(%i : tensor<?x24xf32>) -> tensor<?x24xf32>
  %v = tensor.expand_shape %y [[0], [1, 2, 3]] output_shape [%s, 3, 2, 4] : tensor<?x24xf32> into tensor<?x3x2x4xf32>
  %te = tensor.empty(%s) : tensor<2x3x?x4xf32>
  %t = linalg.transpose ins(%v : tensor<?x3x2x4xf32>) outs(%te : tensor<2x3x?x4xf32>) permutation = [2, 1, 0, 3]
  %q = tensor.extract_slice %t[0, 0, 0, 0] [2, 1, %s, 4] [1, 1, 1, 1] : tensor<2x3x?x4xf32> to tensor<2x?x4xf32>
  %k = tensor.extract_slice %t[0, 2, 0, 0] [2, 1, %s, 4] [1, 1, 1, 1] : tensor<2x3x?x4xf32> to tensor<2x?x4xf32>
  return %q, %k : tensor<2x?x4xf32>, tensor<2x?x4xf32>
}

// A part of the last dimension is sliced, split into heads and transposed; the weight gets the slice and the split.
// CHECK-LABEL: @split_then_heads
// CHECK-SAME: %[[X0:.*]]: tensor<5x16xf32>, %[[W0:.*]]: tensor<16x16xf32>)
// CHECK: %[[W1:.*]] = tensor.extract_slice %[[W0]][8, 0] [8, 16]
// CHECK: %[[W2:.*]] = tensor.expand_shape %[[W1]] {{\[\[}}0, 1], [2]] output_shape [2, 4, 16]
// CHECK: linalg.fill {{.*}} outs(%{{.*}} : tensor<2x5x4xf32>)
// CHECK: linalg.contract indexing_maps = [#[[X]], #[[W]], #[[Y]]] ins(%[[X0]], %[[W2]]
func.func @split_then_heads(%x: tensor<5x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<5x16xf32>) -> tensor<5x16xf32>
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<5x16xf32>, tensor<16x16xf32>) outs(%i : tensor<5x16xf32>) -> tensor<5x16xf32>
  %k = tensor.extract_slice %y[0, 8] [5, 8] [1, 1] : tensor<5x16xf32> to tensor<5x8xf32>
  %v = tensor.expand_shape %k [[0], [1, 2]] output_shape [5, 2, 4] : tensor<5x8xf32> into tensor<5x2x4xf32>
  %te = tensor.empty() : tensor<2x5x4xf32>
  %t = linalg.transpose ins(%v : tensor<5x2x4xf32>) outs(%te : tensor<2x5x4xf32>) permutation = [1, 0, 2]
  return %t : tensor<2x5x4xf32>
}

// The reshape that flattens batch and tokens for the product, and the reshape that undoes it, are removed.
// CHECK-LABEL: @flattened_tokens
// CHECK-SAME: %[[X0:.*]]: tensor<2x5x16xf32>, %[[W0:.*]]: tensor<8x16xf32>)
// CHECK-NOT: tensor.collapse_shape
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.contract {{.*}} ins(%[[X0]], %[[W0]] : tensor<2x5x16xf32>, tensor<8x16xf32>) {{.*}} -> tensor<2x5x8xf32>
func.func @flattened_tokens(%x: tensor<2x5x16xf32>, %w: tensor<8x16xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x5x16xf32> into tensor<10x16xf32>
  %e = tensor.empty() : tensor<10x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<10x8xf32>) -> tensor<10x8xf32>
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%c, %w : tensor<10x16xf32>, tensor<8x16xf32>) outs(%i : tensor<10x8xf32>) -> tensor<10x8xf32>
  %v = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 5, 8] : tensor<10x8xf32> into tensor<2x5x8xf32>
  return %v : tensor<2x5x8xf32>
}

// A reshape that merges heads moves to the weight. Another reshape drops the dimension of size 1 of a slice.
// CHECK-LABEL: @merged_heads
// CHECK-SAME: %[[X0:.*]]: tensor<5x16xf32>, %[[W0:.*]]: tensor<3x2x4x16xf32>)
// CHECK: %[[W1:.*]] = tensor.extract_slice %[[W0]][1, 0, 0, 0] [1, 2, 4, 16] {{.*}} to tensor<2x4x16xf32>
// CHECK: %[[W2:.*]] = tensor.collapse_shape %[[W1]] {{\[\[}}0, 1], [2]] : tensor<2x4x16xf32> into tensor<8x16xf32>
// CHECK: linalg.contract {{.*}} ins(%[[X0]], %[[W2]] : {{.*}} -> tensor<5x8xf32>
func.func @merged_heads(%x: tensor<5x16xf32>, %w: tensor<3x2x4x16xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3x2x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3x2x4xf32>) -> tensor<5x3x2x4xf32>
  %y = linalg.contract indexing_maps = [affine_map<(s, p, h, d, c) -> (s, c)>, affine_map<(s, p, h, d, c) -> (p, h, d, c)>,
                                        affine_map<(s, p, h, d, c) -> (s, p, h, d)>]
      ins(%x, %w : tensor<5x16xf32>, tensor<3x2x4x16xf32>) outs(%i : tensor<5x3x2x4xf32>) -> tensor<5x3x2x4xf32>
  %k = tensor.extract_slice %y[0, 1, 0, 0] [5, 1, 2, 4] [1, 1, 1, 1] : tensor<5x3x2x4xf32> to tensor<5x1x2x4xf32>
  %u = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<5x1x2x4xf32> into tensor<5x2x4xf32>
  %v = tensor.collapse_shape %u [[0], [1, 2]] : tensor<5x2x4xf32> into tensor<5x8xf32>
  return %v : tensor<5x8xf32>
}

// A transposition moves through an elementwise op to the product.
// CHECK-LABEL: @through_elementwise
// CHECK-NOT: linalg.transpose
// CHECK: %[[Y0:.*]] = linalg.contract {{.*}} -> tensor<8x5xf32>
// CHECK: linalg.generic {{.*}} ins(%[[Y0]] : tensor<8x5xf32>) outs(%{{.*}} : tensor<8x5xbf16>)
func.func @through_elementwise(%x: tensor<5x16xf32>, %w: tensor<8x16xf32>) -> tensor<8x5xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x8xf32>
  %h = tensor.empty() : tensor<5x8xbf16>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<5x16xf32>, tensor<8x16xf32>) outs(%i : tensor<5x8xf32>) -> tensor<5x8xf32>
  %n = linalg.generic {indexing_maps = [affine_map<(s, n) -> (s, n)>, affine_map<(s, n) -> (s, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<5x8xf32>) outs(%h : tensor<5x8xbf16>) {
  ^bb0(%a: f32, %out: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<5x8xbf16>
  %te = tensor.empty() : tensor<8x5xbf16>
  %t = linalg.transpose ins(%n : tensor<5x8xbf16>) outs(%te : tensor<8x5xbf16>) permutation = [1, 0]
  return %t : tensor<8x5xbf16>
}

// The product and a transposition of it are results: a copy is cheaper than computing the product twice.
// CHECK-LABEL: @used_twice
// CHECK: %[[Y0:.*]] = linalg.contract
// CHECK: linalg.transpose ins(%[[Y0]]
func.func @used_twice(%x: tensor<5x16xf32>, %w: tensor<8x16xf32>, %i: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<8x5xf32>) {
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<5x16xf32>, tensor<8x16xf32>) outs(%i : tensor<5x8xf32>) -> tensor<5x8xf32>
  %te = tensor.empty() : tensor<8x5xf32>
  %t = linalg.transpose ins(%y : tensor<5x8xf32>) outs(%te : tensor<8x5xf32>) permutation = [1, 0]
  return %y, %t : tensor<5x8xf32>, tensor<8x5xf32>
}

// Overlapping slices do not move to the weight, because the columns that they share would be computed twice.
// CHECK-LABEL: @overlapping_slices
// CHECK-COUNT-1: linalg.contract
// CHECK-COUNT-2: tensor.extract_slice
func.func @overlapping_slices(%x: tensor<5x16xf32>, %w: tensor<8x16xf32>, %i: tensor<5x8xf32>) -> (tensor<5x6xf32>, tensor<5x6xf32>) {
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<5x16xf32>, tensor<8x16xf32>) outs(%i : tensor<5x8xf32>) -> tensor<5x8xf32>
  %a = tensor.extract_slice %y[0, 0] [5, 6] [1, 1] : tensor<5x8xf32> to tensor<5x6xf32>
  %b = tensor.extract_slice %y[0, 2] [5, 6] [1, 1] : tensor<5x8xf32> to tensor<5x6xf32>
  return %a, %b : tensor<5x6xf32>, tensor<5x6xf32>
}

// A reshape that merges tokens and features stays, because no operand of the product has both.
// CHECK-LABEL: @merged_across_operands
// CHECK: linalg.contract
// CHECK: tensor.collapse_shape
func.func @merged_across_operands(%x: tensor<5x16xf32>, %w: tensor<8x16xf32>, %i: tensor<5x8xf32>) -> tensor<40xf32> {
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<5x16xf32>, tensor<8x16xf32>) outs(%i : tensor<5x8xf32>) -> tensor<5x8xf32>
  %c = tensor.collapse_shape %y [[0, 1]] : tensor<5x8xf32> into tensor<40xf32>
  return %c : tensor<40xf32>
}

// The op that computes a tensor of one element computes it with rank 0 instead, so that no reshape is needed.
// CHECK-LABEL: @scalar
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<f32>
// CHECK-NOT: collapse_shape
// CHECK: linalg.generic {{.*}} iterator_types = []} ins(%[[X]] : tensor<f32>) outs(%{{.*}} : tensor<f32>)
func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<1x1xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<f32>) outs(%e : tensor<1x1xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<1x1xf32>
  %c = tensor.collapse_shape %y [] : tensor<1x1xf32> into tensor<f32>
  return %c : tensor<f32>
}

// A loop takes its rows from a product that is computed once, outside of the loop.
// CHECK-LABEL: @rows_in_a_loop
// CHECK: %[[Y1:.*]] = linalg.contract {{.*}} -> tensor<7x4xf32>
// CHECK: scf.for
// CHECK-NEXT: tensor.extract_slice %[[Y1]]
// CHECK-NOT: linalg.contract
func.func @rows_in_a_loop(%x: tensor<7x16xf32>, %w: tensor<4x16xf32>, %i: tensor<7x4xf32>, %c: tensor<9x4xf32>,
                          %at: index) -> tensor<9x4xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %7 = arith.constant 7 : index
  %y = linalg.contract indexing_maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (n, k)>,
                                        affine_map<(s, n, k) -> (s, n)>]
      ins(%x, %w : tensor<7x16xf32>, tensor<4x16xf32>) outs(%i : tensor<7x4xf32>) -> tensor<7x4xf32>
  %r = scf.for %s = %0 to %7 step %1 iter_args(%t = %c) -> tensor<9x4xf32> {
    %row = tensor.extract_slice %y[%s, 0] [1, 4] [1, 1] : tensor<7x4xf32> to tensor<1x4xf32>
    %to = arith.remui %s, %at : index
    %n = tensor.insert_slice %row into %t[%to, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<9x4xf32>
    scf.yield %n : tensor<9x4xf32>
  }
  return %r : tensor<9x4xf32>
}

// The expansion of a scalar stays.
// CHECK-LABEL: @expanded_scalar
// CHECK: %[[Y2:.*]] = linalg.generic
// CHECK: tensor.expand_shape %[[Y2]] [] output_shape [1] : tensor<f32> into tensor<1xf32>
func.func @expanded_scalar(%x: tensor<4xf32>, %i: tensor<f32>) -> tensor<1xf32> {
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%x : tensor<4xf32>) outs(%i : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %e = tensor.expand_shape %y [] output_shape [1] : tensor<f32> into tensor<1xf32>
  return %e : tensor<1xf32>
}

// If an attention reads a projection in the order (token, head), the projection is computed in the order (head, token).
// An argument keeps its order.
// CHECK-LABEL: @attention_order
// CHECK-SAME: %[[V0:[a-z0-9]*]]: tensor<7x2x4xf32>, %{{[a-z0-9]*}}: tensor<2x7x4xf32>)
// CHECK: %[[Q0:.*]] = linalg.contract {{.*}} -> tensor<2x7x4xf32>
// CHECK: attn.attention ins(%[[Q0]], %{{.*}}, %[[V0]] : tensor<2x7x4xf32>, tensor<2x7x4xf32>, tensor<7x2x4xf32>)
func.func @attention_order(%x: tensor<7x16xf32>, %w: tensor<2x4x16xf32>, %k: tensor<2x7x4xf32>, %i: tensor<7x2x4xf32>,
                           %v: tensor<7x2x4xf32>, %e: tensor<2x7x4xf32>) -> tensor<2x7x4xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%i : tensor<7x2x4xf32>) -> tensor<7x2x4xf32>
  %q = linalg.contract indexing_maps = [affine_map<(s, h, d, c) -> (s, c)>, affine_map<(s, h, d, c) -> (h, d, c)>,
                                        affine_map<(s, h, d, c) -> (s, h, d)>]
      ins(%x, %w : tensor<7x16xf32>, tensor<2x4x16xf32>) outs(%f : tensor<7x2x4xf32>) -> tensor<7x2x4xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<7x2x4xf32>, tensor<2x7x4xf32>, tensor<7x2x4xf32>) outs(%e : tensor<2x7x4xf32>) {
      indexing_maps = [affine_map<(h, q, k, d, e) -> (q, h, d)>, affine_map<(h, q, k, d, e) -> (h, k, d)>,
                       affine_map<(h, q, k, d, e) -> (k, h, e)>, affine_map<(h, q, k, d, e) -> (h, q, e)>],
      scale = 5.000000e-01 : f32} -> tensor<2x7x4xf32>
  return %o : tensor<2x7x4xf32>
}

// Patch merging puts tokens side by side two by two. Register blocks of the product would have two rows, so the
// transposition stays after it. The transposition of the windows of 7 x 7 tokens moves.
// CHECK-LABEL: @merging(
// CHECK: linalg.contract {{.*}} -> tensor<14x2x14x2x48xf32>
// CHECK: linalg.transpose
// CHECK-LABEL: @windows(
// CHECK: linalg.contract {{.*}} -> tensor<4x4x7x7x48xf32>
func.func @merging(%x: tensor<784x96xf32>, %w: tensor<48x96xf32>, %i: tensor<784x48xf32>) -> tensor<14x14x2x2x48xf32> {
  %y = linalg.contract indexing_maps = [affine_map<(s, n, c) -> (s, c)>, affine_map<(s, n, c) -> (n, c)>, affine_map<(s, n, c) -> (s, n)>] ins(%x, %w : tensor<784x96xf32>, tensor<48x96xf32>) outs(%i : tensor<784x48xf32>) -> tensor<784x48xf32>
  %e = tensor.expand_shape %y [[0, 1, 2, 3], [4]] output_shape [14, 2, 14, 2, 48] : tensor<784x48xf32> into tensor<14x2x14x2x48xf32>
  %init = tensor.empty() : tensor<14x14x2x2x48xf32>
  %t = linalg.transpose ins(%e : tensor<14x2x14x2x48xf32>) outs(%init : tensor<14x14x2x2x48xf32>) permutation = [0, 2, 1, 3, 4]
  return %t : tensor<14x14x2x2x48xf32>
}
func.func @windows(%x: tensor<784x96xf32>, %w: tensor<48x96xf32>, %i: tensor<784x48xf32>) -> tensor<4x4x7x7x48xf32> {
  %y = linalg.contract indexing_maps = [affine_map<(s, n, c) -> (s, c)>, affine_map<(s, n, c) -> (n, c)>, affine_map<(s, n, c) -> (s, n)>] ins(%x, %w : tensor<784x96xf32>, tensor<48x96xf32>) outs(%i : tensor<784x48xf32>) -> tensor<784x48xf32>
  %e = tensor.expand_shape %y [[0, 1, 2, 3], [4]] output_shape [4, 7, 4, 7, 48] : tensor<784x48xf32> into tensor<4x7x4x7x48xf32>
  %init = tensor.empty() : tensor<4x4x7x7x48xf32>
  %t = linalg.transpose ins(%e : tensor<4x7x4x7x48xf32>) outs(%init : tensor<4x4x7x7x48xf32>) permutation = [0, 2, 1, 3, 4]
  return %t : tensor<4x4x7x7x48xf32>
}

// -----

// The innermost dimension of a product is computed in vectors, so a transposition that would leave two elements there
// stays. One that leaves four moves to the product.
// CHECK-LABEL: @two_innermost(
// CHECK: %[[C:.*]] = linalg.contract {{.*}} -> tensor<2x64xf32>
// CHECK: linalg.transpose ins(%[[C]] : tensor<2x64xf32>) outs(%{{.*}} : tensor<64x2xf32>)
// CHECK-LABEL: @four_innermost(
// CHECK: %[[C:.*]] = linalg.contract {{.*}} -> tensor<64x4xf32>
// CHECK-NEXT: return %[[C]]
func.func @two_innermost(%x: tensor<2x16xf32>, %w: tensor<64x16xf32>, %i: tensor<2x64xf32>) -> tensor<64x2xf32> {
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<2x16xf32>, tensor<64x16xf32>) outs(%i : tensor<2x64xf32>) -> tensor<2x64xf32>
  %e = tensor.empty() : tensor<64x2xf32>
  %t = linalg.transpose ins(%y : tensor<2x64xf32>) outs(%e : tensor<64x2xf32>) permutation = [1, 0]
  return %t : tensor<64x2xf32>
}
func.func @four_innermost(%x: tensor<4x16xf32>, %w: tensor<64x16xf32>, %i: tensor<4x64xf32>) -> tensor<64x4xf32> {
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<64x16xf32>) outs(%i : tensor<4x64xf32>) -> tensor<4x64xf32>
  %e = tensor.empty() : tensor<64x4xf32>
  %t = linalg.transpose ins(%y : tensor<4x64xf32>) outs(%e : tensor<64x4xf32>) permutation = [1, 0]
  return %t : tensor<64x4xf32>
}

// An elementwise op reads such a product through a map.
// CHECK-LABEL: @read_transposed(
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic
func.func @read_transposed(%x: tensor<2x16xf32>, %w: tensor<64x16xf32>, %i: tensor<2x64xf32>, %z: tensor<64x2xf32>) -> tensor<64x2xf32> {
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<2x16xf32>, tensor<64x16xf32>) outs(%i : tensor<2x64xf32>) -> tensor<2x64xf32>
  %e = tensor.empty() : tensor<64x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%y, %z : tensor<2x64xf32>, tensor<64x2xf32>) outs(%e : tensor<64x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<64x2xf32>
  return %r : tensor<64x2xf32>
}
