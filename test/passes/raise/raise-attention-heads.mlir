// RUN: attn-opt %s -attn-raise-attention -attn-extract-mask -attn-fold-scale -canonicalize | FileCheck %s

// Models split heads in different ways. The passes of the stage recognise an attention in each of these graphs.

#x = affine_map<(b, s, n, c) -> (b, s, c)>
#w = affine_map<(b, s, n, c) -> (n, c)>
#y = affine_map<(b, s, n, c) -> (b, s, n)>
#sq = affine_map<(b, h, q, k, d) -> (b, h, q, d)>
#sk = affine_map<(b, h, q, k, d) -> (b, h, d, k)>
#s = affine_map<(b, h, q, k, d) -> (b, h, q, k)>
#op = affine_map<(b, h, q, e, k) -> (b, h, q, k)>
#ov = affine_map<(b, h, q, e, k) -> (b, h, k, e)>
#o = affine_map<(b, h, q, e, k) -> (b, h, q, e)>
#id = affine_map<(b, h, q, k) -> (b, h, q, k)>
#unit = affine_map<(b, h, q, k) -> (0, h, q, k)>
#pad = affine_map<(b, h, q, k) -> (0, 0, 0, k)>
#each = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}

// One projection to [B,S,3,h,d] is transposed to [B,h,3,S,d] and sliced; the query is scaled before its product.
// CHECK-LABEL: @packed_query_scaled
// CHECK: %[[T:.*]] = linalg.transpose
// CHECK: %[[Q:.*]] = tensor.extract_slice %[[T]][0, 0, 0, 0, 0]
// CHECK: %[[K:.*]] = tensor.extract_slice %[[T]][0, 0, 1, 0, 0]
// CHECK: %[[V:.*]] = tensor.extract_slice %[[T]][0, 0, 2, 0, 0]
// CHECK-NOT: linalg
// CHECK: attn.attention ins(%[[Q]], %[[K]], %[[V]]
// CHECK-SAME: scale = 2.500000e-01 : f32} -> tensor<2x8x14x16xf32>
func.func @packed_query_scaled(%x: tensor<2x14x128xf32>, %w: tensor<384x128xf32>) -> tensor<2x8x14x16xf32> {
  %zero = arith.constant 0.0 : f32
  %quarter = arith.constant 0.25 : f32
  %ye = tensor.empty() : tensor<2x14x384xf32>
  %te = tensor.empty() : tensor<2x8x3x14x16xf32>
  %qe = tensor.empty() : tensor<2x8x14x16xf32>
  %ke = tensor.empty() : tensor<2x8x16x14xf32>
  %se = tensor.empty() : tensor<2x8x14x14xf32>
  %yf = linalg.fill ins(%zero : f32) outs(%ye : tensor<2x14x384xf32>) -> tensor<2x14x384xf32>
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<2x14x128xf32>, tensor<384x128xf32>) outs(%yf : tensor<2x14x384xf32>) -> tensor<2x14x384xf32>
  %heads = tensor.expand_shape %y [[0], [1], [2, 3, 4]] output_shape [2, 14, 3, 8, 16] : tensor<2x14x384xf32> into tensor<2x14x3x8x16xf32>
  %t = linalg.transpose ins(%heads : tensor<2x14x3x8x16xf32>) outs(%te : tensor<2x8x3x14x16xf32>) permutation = [0, 3, 2, 1, 4]
  %q = tensor.extract_slice %t[0, 0, 0, 0, 0] [2, 8, 1, 14, 16] [1, 1, 1, 1, 1] : tensor<2x8x3x14x16xf32> to tensor<2x8x14x16xf32>
  %k = tensor.extract_slice %t[0, 0, 1, 0, 0] [2, 8, 1, 14, 16] [1, 1, 1, 1, 1] : tensor<2x8x3x14x16xf32> to tensor<2x8x14x16xf32>
  %v = tensor.extract_slice %t[0, 0, 2, 0, 0] [2, 8, 1, 14, 16] [1, 1, 1, 1, 1] : tensor<2x8x3x14x16xf32> to tensor<2x8x14x16xf32>
  %qs = linalg.generic #each ins(%q : tensor<2x8x14x16xf32>) outs(%qe : tensor<2x8x14x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.mulf %a, %quarter : f32
    linalg.yield %m : f32
  } -> tensor<2x8x14x16xf32>
  %kt = linalg.transpose ins(%k : tensor<2x8x14x16xf32>) outs(%ke : tensor<2x8x16x14xf32>) permutation = [0, 1, 3, 2]
  %sf = linalg.fill ins(%zero : f32) outs(%se : tensor<2x8x14x14xf32>) -> tensor<2x8x14x14xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%qs, %kt : tensor<2x8x14x16xf32>, tensor<2x8x16x14xf32>) outs(%sf : tensor<2x8x14x14xf32>) -> tensor<2x8x14x14xf32>
  %p = linalg.softmax dimension(3) ins(%s : tensor<2x8x14x14xf32>) outs(%se : tensor<2x8x14x14xf32>) -> tensor<2x8x14x14xf32>
  %of = linalg.fill ins(%zero : f32) outs(%qe : tensor<2x8x14x16xf32>) -> tensor<2x8x14x16xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %v : tensor<2x8x14x14xf32>, tensor<2x8x14x16xf32>) outs(%of : tensor<2x8x14x16xf32>) -> tensor<2x8x14x16xf32>
  return %o : tensor<2x8x14x16xf32>
}

// The batch size is 1, and two ops read this dimension at 0. The padding mask [1,1,1,S] has integers.
// CHECK-LABEL: @batch_of_one
// CHECK: %[[T:.*]] = linalg.transpose
// CHECK-NOT: linalg
// CHECK: attn.attention ins(%[[T]], %[[T]], %[[T]]
// CHECK-SAME: captures(%{{.*}} : tensor<1x1x1x?xi64>)
// CHECK-SAME: mask(#attn.dense<0>)
// CHECK-SAME: scale = 5.000000e-01 : f32} -> tensor<1x3x?x4xf32>
func.func @batch_of_one(%y: tensor<1x?x3x4xf32>, %mask: tensor<1x1x1x?xi64>, %te: tensor<1x3x?x4xf32>, %se: tensor<1x3x?x?xf32>,
                        %be: tensor<1x1x1x?xi1>, %ke: tensor<1x3x4x?xf32>) -> tensor<1x3x?x4xf32> {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %t = linalg.transpose ins(%y : tensor<1x?x3x4xf32>) outs(%te : tensor<1x3x?x4xf32>) permutation = [0, 2, 1, 3]
  %kt = linalg.transpose ins(%t : tensor<1x3x?x4xf32>) outs(%ke : tensor<1x3x4x?xf32>) permutation = [0, 1, 3, 2]
  %sf = linalg.fill ins(%zero : f32) outs(%se : tensor<1x3x?x?xf32>) -> tensor<1x3x?x?xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%t, %kt : tensor<1x3x?x4xf32>, tensor<1x3x4x?xf32>) outs(%sf : tensor<1x3x?x?xf32>) -> tensor<1x3x?x?xf32>
  %sc = linalg.generic {indexing_maps = [#unit, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s : tensor<1x3x?x?xf32>) outs(%se : tensor<1x3x?x?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %m = arith.divf %a, %two : f32
    linalg.yield %m : f32
  } -> tensor<1x3x?x?xf32>
  %h = linalg.generic #each ins(%mask : tensor<1x1x1x?xi64>) outs(%be : tensor<1x1x1x?xi1>) {
  ^bb0(%a: i64, %out: i1):
    %m = arith.cmpi eq, %a, %none : i64
    linalg.yield %m : i1
  } -> tensor<1x1x1x?xi1>
  %f = linalg.generic {indexing_maps = [#pad, #unit, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%h, %sc : tensor<1x1x1x?xi1>, tensor<1x3x?x?xf32>) outs(%se : tensor<1x3x?x?xf32>) {
  ^bb0(%b: i1, %a: f32, %out: f32):
    %m = arith.select %b, %inf, %a : f32
    linalg.yield %m : f32
  } -> tensor<1x3x?x?xf32>
  %p = linalg.softmax dimension(3) ins(%f : tensor<1x3x?x?xf32>) outs(%se : tensor<1x3x?x?xf32>) -> tensor<1x3x?x?xf32>
  %of = linalg.fill ins(%zero : f32) outs(%te : tensor<1x3x?x4xf32>) -> tensor<1x3x?x4xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %t : tensor<1x3x?x?xf32>, tensor<1x3x?x4xf32>) outs(%of : tensor<1x3x?x4xf32>) -> tensor<1x3x?x4xf32>
  return %o : tensor<1x3x?x4xf32>
}
