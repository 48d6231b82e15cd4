// RUN: attn-opt %s -attn-split-merged-batch -canonicalize | FileCheck %s

#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, h, q, k) -> (b, h, q, k)>
#id3 = affine_map<(b, q, k) -> (b, q, k)>
#bias = affine_map<(b, q, k) -> (b, 0, k)>

// Batch and heads are merged for each product, and separate for the bias and the softmax. The batch size is dynamic.
// CHECK-LABEL: @products_of_three_dimensions(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: tensor<?x4x5x8xf32>, %[[K:[a-z0-9]*]]: tensor<?x4x7x8xf32>, %[[V:[a-z0-9]*]]: tensor<?x4x7x8xf32>
// CHECK-NOT: _shape
// CHECK: ins(%[[Q]], %[[K]] : tensor<?x4x5x8xf32>, tensor<?x4x7x8xf32>) {{.*}}tensor<?x4x5x7xf32>
// CHECK-NOT: _shape
// CHECK: %[[P:.*]] = linalg.softmax dimension(3) ins(%{{.*}} : tensor<?x4x5x7xf32>)
// CHECK-NOT: _shape
// CHECK: %[[O:.*]] = linalg.generic {{.*}}ins(%[[P]], %[[V]] : tensor<?x4x5x7xf32>, tensor<?x4x7x8xf32>)
// CHECK-NOT: _shape
// CHECK: return %[[O]] : tensor<?x4x5x8xf32>
func.func @products_of_three_dimensions(%q: tensor<?x4x5x8xf32>, %k: tensor<?x4x7x8xf32>, %v: tensor<?x4x7x8xf32>,
                                        %bias: tensor<?x4x5x7xf32>) -> tensor<?x4x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %b = tensor.dim %q, %c0 : tensor<?x4x5x8xf32>
  %bh = arith.muli %b, %c4 : index
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<?x4x5x8xf32> into tensor<?x5x8xf32>
  %k3 = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<?x4x7x8xf32> into tensor<?x7x8xf32>
  %v3 = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<?x4x7x8xf32> into tensor<?x7x8xf32>
  %e3 = tensor.empty(%bh) : tensor<?x5x7xf32>
  %e = tensor.empty(%b) : tensor<?x4x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e3 : tensor<?x5x7xf32>) -> tensor<?x5x7xf32>
  %s3 = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q3, %k3 : tensor<?x5x8xf32>, tensor<?x7x8xf32>) outs(%f : tensor<?x5x7xf32>) -> tensor<?x5x7xf32>
  %s = tensor.expand_shape %s3 [[0, 1], [2], [3]] output_shape [%b, 4, 5, 7] : tensor<?x5x7xf32> into tensor<?x4x5x7xf32>
  %m = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %bias : tensor<?x4x5x7xf32>, tensor<?x4x5x7xf32>) outs(%e : tensor<?x4x5x7xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<?x4x5x7xf32>
  %p = linalg.softmax dimension(3) ins(%m : tensor<?x4x5x7xf32>) outs(%e : tensor<?x4x5x7xf32>) -> tensor<?x4x5x7xf32>
  %p3 = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<?x4x5x7xf32> into tensor<?x5x7xf32>
  %oe = tensor.empty(%bh) : tensor<?x5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
  %o3 = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p3, %v3 : tensor<?x5x7xf32>, tensor<?x7x8xf32>) outs(%of : tensor<?x5x8xf32>) -> tensor<?x5x8xf32>
  %o = tensor.expand_shape %o3 [[0, 1], [2], [3]] output_shape [%b, 4, 5, 8] : tensor<?x5x8xf32> into tensor<?x4x5x8xf32>
  return %o : tensor<?x4x5x8xf32>
}

// The softmax has the merged dimension; the mask before it has batch and heads. A bias is read at 0 along the queries.
// CHECK-LABEL: @softmax_of_three_dimensions(
// CHECK-NOT: tensor.collapse_shape %{{.*}} into tensor<8x5x7xf32>
// CHECK: linalg.softmax dimension(3) ins(%{{.*}} : tensor<2x4x5x7xf32>)
// CHECK-NOT: tensor.collapse_shape
// CHECK: return
func.func @softmax_of_three_dimensions(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %v: tensor<2x4x7x8xf32>,
                                       %bias: tensor<8x1x7xf32>, %mask: tensor<2x4x5x7xf32>) -> tensor<2x4x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x5x8xf32> into tensor<8x5x8xf32>
  %k3 = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x4x7x8xf32> into tensor<8x7x8xf32>
  %v3 = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x4x7x8xf32> into tensor<8x7x8xf32>
  %e3 = tensor.empty() : tensor<8x5x7xf32>
  %e = tensor.empty() : tensor<2x4x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %s3 = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q3, %k3 : tensor<8x5x8xf32>, tensor<8x7x8xf32>) outs(%f : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %t3 = linalg.generic {indexing_maps = [#bias, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%bias, %s3 : tensor<8x1x7xf32>, tensor<8x5x7xf32>) outs(%e3 : tensor<8x5x7xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<8x5x7xf32>
  %s = tensor.expand_shape %t3 [[0, 1], [2], [3]] output_shape [2, 4, 5, 7] : tensor<8x5x7xf32> into tensor<2x4x5x7xf32>
  %m = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %mask : tensor<2x4x5x7xf32>, tensor<2x4x5x7xf32>) outs(%e : tensor<2x4x5x7xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<2x4x5x7xf32>
  %m3 = tensor.collapse_shape %m [[0, 1], [2], [3]] : tensor<2x4x5x7xf32> into tensor<8x5x7xf32>
  %p3 = linalg.softmax dimension(2) ins(%m3 : tensor<8x5x7xf32>) outs(%e3 : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %oe = tensor.empty() : tensor<8x5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x5x8xf32>) -> tensor<8x5x8xf32>
  %o3 = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p3, %v3 : tensor<8x5x7xf32>, tensor<8x7x8xf32>) outs(%of : tensor<8x5x8xf32>) -> tensor<8x5x8xf32>
  %o = tensor.expand_shape %o3 [[0, 1], [2], [3]] output_shape [2, 4, 5, 8] : tensor<8x5x8xf32> into tensor<2x4x5x8xf32>
  return %o : tensor<2x4x5x8xf32>
}

// A batch dimension of 1, which decompositions add, is removed from both products.
// CHECK-LABEL: @products_without_batch_of_one(
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<1x4x5x8xf32>, tensor<1x4x7x8xf32>) outs(%{{.*}} : tensor<1x4x5x7xf32>)
// CHECK: %[[P1:.*]] = linalg.softmax dimension(3) ins(%{{.*}} : tensor<1x4x5x7xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[P1]], %{{.*}} : tensor<1x4x5x7xf32>, tensor<1x4x7x8xf32>)
func.func @products_without_batch_of_one(%q: tensor<4x5x8xf32>, %k: tensor<4x7x8xf32>) -> tensor<4x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %se = tensor.empty() : tensor<4x5x7xf32>
  %sf = linalg.fill ins(%zero : f32) outs(%se : tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %s3 = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<4x5x8xf32>, tensor<4x7x8xf32>) outs(%sf : tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %s = tensor.expand_shape %s3 [[0, 1], [2], [3]] output_shape [1, 4, 5, 7] : tensor<4x5x7xf32> into tensor<1x4x5x7xf32>
  %e = tensor.empty() : tensor<1x4x5x7xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<1x4x5x7xf32>) outs(%e : tensor<1x4x5x7xf32>) -> tensor<1x4x5x7xf32>
  %p3 = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<1x4x5x7xf32> into tensor<4x5x7xf32>
  %oe = tensor.empty() : tensor<4x5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p3, %k : tensor<4x5x7xf32>, tensor<4x7x8xf32>) outs(%of : tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
  return %o : tensor<4x5x8xf32>
}

// A reshape that merges a batch of 1 with the heads is removed, and the product reads the result of the softmax
// directly.
// CHECK-LABEL: @batch_of_one(
// CHECK: %[[S:.*]] = tensor.collapse_shape %{{.*}} into tensor<4x5x7xf32>
// CHECK: %[[P:.*]] = linalg.softmax dimension(2) ins(%[[S]] : tensor<4x5x7xf32>)
// CHECK: linalg.contract {{.*}} ins(%[[P]],
func.func @batch_of_one(%s: tensor<1x4x5x7xf32>, %v: tensor<4x7x8xf32>) -> tensor<4x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %s3 = tensor.collapse_shape %s [[0, 1], [2], [3]] : tensor<1x4x5x7xf32> into tensor<4x5x7xf32>
  %e = tensor.empty() : tensor<4x5x7xf32>
  %p = linalg.softmax dimension(2) ins(%s3 : tensor<4x5x7xf32>) outs(%e : tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %oe = tensor.empty() : tensor<4x5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %v : tensor<4x5x7xf32>, tensor<4x7x8xf32>) outs(%of : tensor<4x5x8xf32>) -> tensor<4x5x8xf32>
  return %o : tensor<4x5x8xf32>
}

// The reshape of an einsum that splits the batch also adds a dimension of size 1.
// CHECK-LABEL: @unit_dimensions(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: tensor<2x4x5x8xf32>, %[[K:[a-z0-9]*]]: tensor<2x4x7x8xf32>
// CHECK-NOT: _shape
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[Q]], %[[K]] :
// CHECK-NOT: _shape
// CHECK: linalg.softmax dimension(3) ins(%[[S]] : tensor<2x4x5x7xf32>)
func.func @unit_dimensions(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>) -> tensor<2x4x5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x5x8xf32> into tensor<8x5x8xf32>
  %k3 = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x4x7x8xf32> into tensor<8x7x8xf32>
  %e3 = tensor.empty() : tensor<8x5x7xf32>
  %e4 = tensor.empty() : tensor<2x4x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %s3 = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q3, %k3 : tensor<8x5x8xf32>, tensor<8x7x8xf32>) outs(%f : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %s5 = tensor.expand_shape %s3 [[0, 1], [2, 3], [4]] output_shape [2, 4, 5, 1, 7] : tensor<8x5x7xf32> into tensor<2x4x5x1x7xf32>
  %s = tensor.collapse_shape %s5 [[0], [1], [2, 3], [4]] : tensor<2x4x5x1x7xf32> into tensor<2x4x5x7xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x4x5x7xf32>) outs(%e4 : tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  return %p : tensor<2x4x5x7xf32>
}

// If only keys and values are merged, as for groups of query heads that share them, both products keep their
// dimensions. Products that belong to no softmax keep their dimensions too.
// CHECK-LABEL: @stays(
// CHECK: linalg.contract {{.*}} tensor<8x5x7xf32>
// CHECK: linalg.softmax dimension(2) ins(%{{.*}} : tensor<8x5x7xf32>)
// CHECK: linalg.contract {{.*}} tensor<8x5x8xf32>
// CHECK: linalg.contract {{.*}} tensor<8x5x7xf32>
func.func @stays(%q: tensor<8x5x8xf32>, %k: tensor<4x2x7x8xf32>, %v: tensor<4x2x7x8xf32>) -> (tensor<8x5x8xf32>, tensor<4x2x5x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %k3 = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<4x2x7x8xf32> into tensor<8x7x8xf32>
  %v3 = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<4x2x7x8xf32> into tensor<8x7x8xf32>
  %e3 = tensor.empty() : tensor<8x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %s3 = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k3 : tensor<8x5x8xf32>, tensor<8x7x8xf32>) outs(%f : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %p3 = linalg.softmax dimension(2) ins(%s3 : tensor<8x5x7xf32>) outs(%e3 : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %oe = tensor.empty() : tensor<8x5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<8x5x8xf32>) -> tensor<8x5x8xf32>
  %o3 = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p3, %v3 : tensor<8x5x7xf32>, tensor<8x7x8xf32>) outs(%of : tensor<8x5x8xf32>) -> tensor<8x5x8xf32>
  %r3 = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %v3 : tensor<8x5x8xf32>, tensor<8x7x8xf32>) outs(%f : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %r = tensor.expand_shape %r3 [[0, 1], [2], [3]] output_shape [4, 2, 5, 7] : tensor<8x5x7xf32> into tensor<4x2x5x7xf32>
  return %o3, %r : tensor<8x5x8xf32>, tensor<4x2x5x7xf32>
}

// A dimension of dynamic size is not removed, although only its row 0 is read: it may have other rows.
// CHECK-LABEL: @row_of_several(
// CHECK-NOT: tensor.collapse_shape
func.func @row_of_several(%x: tensor<?x7xf32>, %s: tensor<5x7xf32>) -> tensor<5x7xf32> {
  %e = tensor.empty() : tensor<5x7xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(q, k) -> (0, k)>, affine_map<(q, k) -> (q, k)>, affine_map<(q, k) -> (q, k)>],
                       iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<?x7xf32>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %sum = arith.addf %l, %r : f32
    linalg.yield %sum : f32
  } -> tensor<5x7xf32>
  %p = linalg.softmax dimension(1) ins(%a : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  return %p : tensor<5x7xf32>
}

// torch.baddbmm adds a tensor of one element to all scores while batch and heads are merged.
// CHECK-LABEL: @one_number_for_all(
// CHECK-NOT: _shape %{{.*}} : tensor<8x5x7xf32>
// CHECK: linalg.softmax dimension(3) ins(%{{.*}} : tensor<2x4x5x7xf32>)
func.func @one_number_for_all(%q: tensor<2x4x5x8xf32>, %k: tensor<2x4x7x8xf32>, %number: tensor<1x1x1xf32>) -> tensor<2x4x5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x5x8xf32> into tensor<8x5x8xf32>
  %k3 = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x4x7x8xf32> into tensor<8x7x8xf32>
  %e3 = tensor.empty() : tensor<8x5x7xf32>
  %e4 = tensor.empty() : tensor<2x4x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e3 : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %s3 = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q3, %k3 : tensor<8x5x8xf32>, tensor<8x7x8xf32>) outs(%f : tensor<8x5x7xf32>) -> tensor<8x5x7xf32>
  %a3 = linalg.generic {indexing_maps = [#id3, affine_map<(b, q, k) -> (0, 0, 0)>, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s3, %number : tensor<8x5x7xf32>, tensor<1x1x1xf32>) outs(%e3 : tensor<8x5x7xf32>) {
  ^bb0(%a: f32, %c: f32, %out: f32):
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<8x5x7xf32>
  %s = tensor.expand_shape %a3 [[0, 1], [2], [3]] output_shape [2, 4, 5, 7] : tensor<8x5x7xf32> into tensor<2x4x5x7xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x4x5x7xf32>) outs(%e4 : tensor<2x4x5x7xf32>) -> tensor<2x4x5x7xf32>
  return %p : tensor<2x4x5x7xf32>
}

// Merged dimensions of keys stay merged, because the softmax is over one dimension.
// CHECK-LABEL: @merged_keys(
// CHECK-SAME: %[[B:[a-z0-9]*]]: tensor<5x7x7xf32>
// CHECK: %[[BIAS:.*]] = tensor.collapse_shape %[[B]] {{\[\[}}0], [1, 2]] : tensor<5x7x7xf32> into tensor<5x49xf32>
// CHECK: linalg.generic {{.*}} ins(%[[BIAS]],
// CHECK: linalg.softmax dimension(1) ins(%{{.*}} : tensor<5x49xf32>)
func.func @merged_keys(%bias: tensor<5x7x7xf32>, %s: tensor<5x49xf32>) -> tensor<5x49xf32> {
  %e = tensor.empty() : tensor<5x49xf32>
  %b = tensor.collapse_shape %bias [[0], [1, 2]] : tensor<5x7x7xf32> into tensor<5x49xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(q, k) -> (q, k)>, affine_map<(q, k) -> (q, k)>, affine_map<(q, k) -> (q, k)>],
                       iterator_types = ["parallel", "parallel"]} ins(%b, %s : tensor<5x49xf32>, tensor<5x49xf32>) outs(%e : tensor<5x49xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %sum = arith.addf %l, %r : f32
    linalg.yield %sum : f32
  } -> tensor<5x49xf32>
  %p = linalg.softmax dimension(1) ins(%a : tensor<5x49xf32>) outs(%e : tensor<5x49xf32>) -> tensor<5x49xf32>
  return %p : tensor<5x49xf32>
}

// A reshape does not move over a padding.
// CHECK-LABEL: @pad(
// CHECK: tensor.collapse_shape
// CHECK: tensor.pad
func.func @pad(%q: tensor<2x3x8xf32>) -> tensor<6x10xf32> {
  %c = tensor.collapse_shape %q [[0, 1], [2]] : tensor<2x3x8xf32> into tensor<6x8xf32>
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %c low[0, 1] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<6x8xf32> to tensor<6x10xf32>
  return %p : tensor<6x10xf32>
}

// A transposition that moves only dimensions of size 1 is a reshape, which cancels out with the reshapes around it.
// CHECK-LABEL: @transposed_unit(
// CHECK: %[[P:.*]] = linalg.softmax
// CHECK-NEXT: return %[[P]]
func.func @transposed_unit(%s: tensor<1x4x5x7xf32>) -> tensor<1x4x5x7xf32> {
  %e = tensor.empty() : tensor<1x4x5x7xf32>
  %t = tensor.empty() : tensor<4x5x1x7x1xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<1x4x5x7xf32>) outs(%e : tensor<1x4x5x7xf32>) -> tensor<1x4x5x7xf32>
  %p5 = tensor.expand_shape %p [[0], [1], [2], [3, 4]] output_shape [1, 4, 5, 7, 1] : tensor<1x4x5x7xf32> into tensor<1x4x5x7x1xf32>
  %moved = linalg.transpose ins(%p5 : tensor<1x4x5x7x1xf32>) outs(%t : tensor<4x5x1x7x1xf32>) permutation = [1, 2, 0, 3, 4]
  %p3 = tensor.collapse_shape %moved [[0], [1, 2], [3, 4]] : tensor<4x5x1x7x1xf32> into tensor<4x5x7xf32>
  %out = tensor.expand_shape %p3 [[0, 1], [2], [3]] output_shape [1, 4, 5, 7] : tensor<4x5x7xf32> into tensor<1x4x5x7xf32>
  return %out : tensor<1x4x5x7xf32>
}

// A head dimension of size 1 that a reshape drops becomes a batch dimension of the product with the values.
// CHECK-LABEL: @one_head(
// CHECK: %[[P:.*]] = linalg.softmax
// CHECK-NOT: tensor.collapse_shape %[[P]]
// CHECK: linalg.generic {{.*}} ins(%[[P]], %{{.*}} : tensor<2x1x5x7xf32>, tensor<2x1x7x8xf32>)
func.func @one_head(%s: tensor<2x1x5x7xf32>, %v: tensor<2x1x7x8xf32>) -> (tensor<2x5x8xf32>, tensor<2x1x5x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x1x5x7xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x1x5x7xf32>) outs(%e : tensor<2x1x5x7xf32>) -> tensor<2x1x5x7xf32>
  %p3 = tensor.collapse_shape %p [[0], [1, 2], [3]] : tensor<2x1x5x7xf32> into tensor<2x5x7xf32>
  %v3 = tensor.collapse_shape %v [[0], [1, 2], [3]] : tensor<2x1x7x8xf32> into tensor<2x7x8xf32>
  %e3 = tensor.empty() : tensor<2x5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e3 : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [affine_map<(b, q, e, k) -> (b, q, k)>, affine_map<(b, q, e, k) -> (b, k, e)>, affine_map<(b, q, e, k) -> (b, q, e)>]
      ins(%p3, %v3 : tensor<2x5x7xf32>, tensor<2x7x8xf32>) outs(%f : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o, %p : tensor<2x5x8xf32>, tensor<2x1x5x7xf32>
}

// The sizes are dynamic. A reshape adds a head dimension of size 1 before the softmax; the product gets this
// dimension.
// CHECK-LABEL: @one_head_of_any_size(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<?x1x?x?xf32>)
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.softmax dimension(3)
func.func @one_head_of_any_size(%q: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>, %b: index, %s: index, %t: index) -> tensor<?x1x?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %e3 = tensor.empty(%b, %s, %t) : tensor<?x?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e3 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %s3 = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<?x?x8xf32>, tensor<?x?x8xf32>) outs(%f : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %s4 = tensor.expand_shape %s3 [[0], [1, 2], [3]] output_shape [%b, 1, %s, %t] : tensor<?x?x?xf32> into tensor<?x1x?x?xf32>
  %e4 = tensor.empty(%b, %s, %t) : tensor<?x1x?x?xf32>
  %p = linalg.softmax dimension(3) ins(%s4 : tensor<?x1x?x?xf32>) outs(%e4 : tensor<?x1x?x?xf32>) -> tensor<?x1x?x?xf32>
  return %p : tensor<?x1x?x?xf32>
}

// A transposition that exchanges two dimensions larger than 1 stays.
// CHECK-LABEL: @transposed_others(
// CHECK: linalg.transpose
func.func @transposed_others(%s: tensor<1x4x5xf32>) -> tensor<5x4x1xf32> {
  %t = tensor.empty() : tensor<5x4x1xf32>
  %moved = linalg.transpose ins(%s : tensor<1x4x5xf32>) outs(%t : tensor<5x4x1xf32>) permutation = [2, 1, 0]
  return %moved : tensor<5x4x1xf32>
}
