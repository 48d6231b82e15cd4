// An attention of a single query whose scores are an einsum. PyTorch decomposes the einsum into a product of matrices,
// reshapes, and transpositions of dimensions of size 1. When the batch is split, the query must stay a dimension.
// RUN: attn-opt %s --attn-to-raise | FileCheck %s

// CHECK-LABEL: @one_query(
// CHECK: attn.attention
// CHECK-NOT: linalg.softmax
// PyTorch decomposes the scores, einsum("bhqd,bhkd->bhqk"), into bmm, view [B,H,q,1,k], permute and squeeze.
#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, h, q, e, k) -> (b, h, q, k)>
#ov = affine_map<(b, h, q, e, k) -> (b, h, k, e)>
#o = affine_map<(b, h, q, e, k) -> (b, h, q, e)>
func.func @one_query(%q3: tensor<6x1x8xf32>, %k3: tensor<6x7x8xf32>, %v: tensor<2x3x7x9xf32>) -> tensor<2x3x1x9xf32> {
  %zero = arith.constant 0.0 : f32
  %e3 = tensor.empty() : tensor<6x1x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e3 : tensor<6x1x7xf32>) -> tensor<6x1x7xf32>
  %s3 = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q3, %k3 : tensor<6x1x8xf32>, tensor<6x7x8xf32>) outs(%f : tensor<6x1x7xf32>) -> tensor<6x1x7xf32>
  %s5 = tensor.expand_shape %s3 [[0, 1], [2], [3, 4]] output_shape [2, 3, 1, 1, 7] : tensor<6x1x7xf32> into tensor<2x3x1x1x7xf32>
  %e5 = tensor.empty() : tensor<2x3x1x7x1xf32>
  %t = linalg.transpose ins(%s5 : tensor<2x3x1x1x7xf32>) outs(%e5 : tensor<2x3x1x7x1xf32>) permutation = [0, 1, 2, 4, 3]
  %s4 = tensor.collapse_shape %t [[0], [1], [2], [3, 4]] : tensor<2x3x1x7x1xf32> into tensor<2x3x1x7xf32>
  %e = tensor.empty() : tensor<2x3x1x7xf32>
  %p = linalg.softmax dimension(3) ins(%s4 : tensor<2x3x1x7xf32>) outs(%e : tensor<2x3x1x7xf32>) -> tensor<2x3x1x7xf32>
  %oe = tensor.empty() : tensor<2x3x1x9xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x3x1x9xf32>) -> tensor<2x3x1x9xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %v : tensor<2x3x1x7xf32>, tensor<2x3x7x9xf32>) outs(%of : tensor<2x3x1x9xf32>) -> tensor<2x3x1x9xf32>
  return %o : tensor<2x3x1x9xf32>
}
