// RUN: attn-opt %s -attn-merge-grids -cse -canonicalize | FileCheck %s

#g = affine_map<(b, y, x, j, i) -> (b, y, x, j, i)>
#down = affine_map<(b, y, x, j, i) -> (b, y, x, j)>
#across = affine_map<(b, y, x, j, i) -> (0, i, y, x)>
#queries = affine_map<(b, y, x, j, i) -> (y, x)>

// Two sums in turn. The bias of the queries has all dimensions that are merged and needs no copy; the other biases lack
// some of these dimensions, or have them in another order.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[QK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2) -> (d1)>
// CHECK-LABEL: @sums(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<?x12x12xf32>
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<?x3x4x3xf32>) outs(%{{.*}} : tensor<?x3x4x3x4xf32>)
// CHECK: %[[DOWN:.*]] = tensor.collapse_shape %[[WIDE]] {{\[}}[0], [1, 2], [3, 4]] : tensor<?x3x4x3x4xf32> into tensor<?x12x12xf32>
// CHECK: %[[FIRST:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[ID]], #[[ID]]]{{.*}} ins(%[[S]], %[[DOWN]] :
// CHECK: %[[TURNED:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<1x4x3x4xf32>) outs(%{{.*}} : tensor<3x4x3x4xf32>)
// CHECK: %[[ACROSS:.*]] = tensor.collapse_shape %[[TURNED]] {{\[}}[0, 1], [2, 3]] : tensor<3x4x3x4xf32> into tensor<12x12xf32>
// CHECK: %[[QUERIES:.*]] = tensor.collapse_shape %{{.*}} {{\[}}[0, 1]] : tensor<3x4xf32> into tensor<12xf32>
// CHECK: %[[SECOND:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[QK]], #[[Q]], #[[ID]]]{{.*}} ins(%[[FIRST]], %[[ACROSS]], %[[QUERIES]] :
// CHECK: return %[[SECOND]]
func.func @sums(%s: tensor<?x12x12xf32>, %a: tensor<?x3x4x3xf32>, %c: tensor<1x4x3x4xf32>, %d: tensor<3x4xf32>) -> tensor<?x12x12xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %s, %c0 : tensor<?x12x12xf32>
  %e = tensor.empty(%n) : tensor<?x3x4x3x4xf32>
  %g = tensor.expand_shape %s [[0], [1, 2], [3, 4]] output_shape [%n, 3, 4, 3, 4] : tensor<?x12x12xf32> into tensor<?x3x4x3x4xf32>
  %t = linalg.generic {indexing_maps = [#g, #down, #g], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%g, %a : tensor<?x3x4x3x4xf32>, tensor<?x3x4x3xf32>) outs(%e : tensor<?x3x4x3x4xf32>) {
    ^bb0(%x: f32, %y: f32, %out: f32):
      %z = arith.addf %x, %y : f32
      linalg.yield %z : f32
  } -> tensor<?x3x4x3x4xf32>
  %u = linalg.generic {indexing_maps = [#g, #across, #queries, #g], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%t, %c, %d : tensor<?x3x4x3x4xf32>, tensor<1x4x3x4xf32>, tensor<3x4xf32>) outs(%e : tensor<?x3x4x3x4xf32>) {
    ^bb0(%x: f32, %y: f32, %w: f32, %out: f32):
      %z = arith.addf %x, %y : f32
      %r = arith.addf %z, %w : f32
      linalg.yield %r : f32
  } -> tensor<?x3x4x3x4xf32>
  %r = tensor.collapse_shape %u [[0], [1, 2], [3, 4]] : tensor<?x3x4x3x4xf32> into tensor<?x12x12xf32>
  return %r : tensor<?x12x12xf32>
}

// Not if other dimensions are merged than were split.
// CHECK-LABEL: @others(
// CHECK: tensor.expand_shape
// CHECK: tensor.collapse_shape
func.func @others(%s: tensor<12x12xf32>, %a: tensor<3x4x12xf32>, %e: tensor<3x4x12xf32>) -> tensor<3x48xf32> {
  %g = tensor.expand_shape %s [[0, 1], [2]] output_shape [3, 4, 12] : tensor<12x12xf32> into tensor<3x4x12xf32>
  %t = linalg.add ins(%g, %a : tensor<3x4x12xf32>, tensor<3x4x12xf32>) outs(%e : tensor<3x4x12xf32>) -> tensor<3x4x12xf32>
  %r = tensor.collapse_shape %t [[0], [1, 2]] : tensor<3x4x12xf32> into tensor<3x48xf32>
  return %r : tensor<3x48xf32>
}
