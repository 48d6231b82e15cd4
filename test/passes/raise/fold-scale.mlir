// RUN: attn-opt %s -attn-fold-scale -canonicalize | FileCheck %s

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#id = affine_map<(b, s, c) -> (b, s, c)>
#maps = [#q, #k, #v, #o]

// CHECK-LABEL: @query_and_key
// CHECK-SAME: %[[X:.*]]: tensor<2x5x8xf32>
// CHECK-NOT: linalg.generic
// CHECK: attn.attention ins(%[[X]], %[[X]], %[[X]] {{.*}} scale = 1.250000e-01 : f32
func.func @query_and_key(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %half = arith.constant 0.5 : f32
  %four = arith.constant 4.0 : f32
  %e = tensor.empty() : tensor<2x5x8xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.mulf %a, %half : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.divf %a, %four : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  %o = attn.attention ins(%h, %g, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>)
      {indexing_maps = #maps, scale = 1.0 : f32} -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// A view between the multiplication and the attention is applied to the tensor before the multiplication.
// CHECK-LABEL: @key_behind_view
// CHECK-SAME: %[[X:.*]]: tensor<2x5x8xf32>, %[[Y:.*]]: tensor<2x40xf32>
// CHECK: %[[VIEW:.*]] = tensor.expand_shape %[[Y]]
// CHECK: attn.attention ins(%[[X]], %[[VIEW]], %[[X]] {{.*}} scale = -2.000000e+00 : f32
func.func @key_behind_view(%x: tensor<2x5x8xf32>, %y: tensor<2x40xf32>) -> tensor<2x5x8xf32> {
  %factor = arith.constant -2.0 : f32
  %e = tensor.empty() : tensor<2x5x8xf32>
  %ye = tensor.empty() : tensor<2x40xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(b, s) -> (b, s)>, affine_map<(b, s) -> (b, s)>], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<2x40xf32>) outs(%ye : tensor<2x40xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.mulf %factor, %a : f32
    linalg.yield %t : f32
  } -> tensor<2x40xf32>
  %view = tensor.expand_shape %h [[0], [1, 2]] output_shape [2, 5, 8] : tensor<2x40xf32> into tensor<2x5x8xf32>
  %o = attn.attention ins(%x, %view, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>)
      {indexing_maps = #maps, scale = 1.0 : f32} -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// The factor of the query is folded into the scale. The factor of the key stays, because the scale would underflow.
// CHECK-LABEL: @product_too_small
// CHECK-SAME: %[[X:.*]]: tensor<2x5x8xf32>
// CHECK: %[[KEY:.*]] = linalg.generic
// CHECK: attn.attention ins(%[[X]], %[[KEY]], %[[X]] {{.*}} scale = 1.000000e-25 : f32
func.func @product_too_small(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %c = arith.constant 1.0e-25 : f32
  %e = tensor.empty() : tensor<2x5x8xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.mulf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.mulf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  %o = attn.attention ins(%h, %g, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>)
      {indexing_maps = #maps, scale = 1.0 : f32} -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// CHECK-LABEL: @product_too_large
// CHECK-SAME: %[[X:.*]]: tensor<2x5x8xf32>
// CHECK: %[[KEY:.*]] = linalg.generic
// CHECK: attn.attention ins(%[[X]], %[[KEY]], %[[X]] {{.*}} scale = 1.000000e+30 : f32
func.func @product_too_large(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %c = arith.constant 1.0e30 : f32
  %e = tensor.empty() : tensor<2x5x8xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.mulf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.mulf %a, %c : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  %o = attn.attention ins(%h, %g, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>)
      {indexing_maps = #maps, scale = 1.0 : f32} -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// A division of a constant by the element, or a division by zero, is not folded into the scale.
// CHECK-LABEL: @not_factors
// CHECK: arith.divf
// CHECK: arith.divf
// CHECK: scale = 1.000000e+00 : f32
func.func @not_factors(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %two = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x8xf32>
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.divf %two, %a : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.divf %a, %zero : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  %o = attn.attention ins(%h, %g, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%e : tensor<2x5x8xf32>)
      {indexing_maps = #maps, scale = 1.0 : f32} -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}
