// RUN: attn-opt %s -attn-merge-rows -cse -split-input-file | FileCheck %s

#x = affine_map<(b, y, x, n, c) -> (b, y, x, c)>
#w = affine_map<(b, y, x, n, c) -> (c, n)>
#o = affine_map<(b, y, x, n, c) -> (b, y, x, n)>
// The rows of the image lie at equal distances in a part of a wider buffer too. The op that starts the sums changes with
// the product, and the product keeps its attributes.
// CHECK-LABEL: @image(
// CHECK-SAME: %[[X:.*]]: memref<1x7x7x768xf32, strided<[38416, 5488, 784, 1]>>, %[[W:.*]]: memref<768x64xf32>, %[[BIAS:.*]]: memref<64xf32>, %[[Y:.*]]: memref<1x7x7x64xf32>)
// CHECK: %[[C:.*]] = memref.collapse_shape %[[Y]] {{\[\[}}0, 1, 2], [3]] : memref<1x7x7x64xf32> into memref<49x64xf32>
// CHECK: linalg.generic {{.*}}ins(%[[BIAS]] : memref<64xf32>) outs(%[[C]] : memref<49x64xf32>)
// CHECK: %[[R:.*]] = memref.collapse_shape %[[X]] {{\[\[}}0, 1, 2], [3]] : {{.*}} into memref<49x768xf32, strided<[784, 1]>>
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[R]], %[[W]] : {{.*}}) outs(%[[C]] : memref<49x64xf32>) attrs = {attn.task = #attn.task<rows = 49>}
func.func @image(%x: memref<1x7x7x768xf32, strided<[38416, 5488, 784, 1]>>, %w: memref<768x64xf32>, %b: memref<64xf32>, %y: memref<1x7x7x64xf32>) {
  linalg.broadcast ins(%b : memref<64xf32>) outs(%y : memref<1x7x7x64xf32>) dimensions = [0, 1, 2]
  linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 49>} ins(%x, %w : memref<1x7x7x768xf32, strided<[38416, 5488, 784, 1]>>, memref<768x64xf32>) outs(%y : memref<1x7x7x64xf32>)
  return
}

// -----

#x = affine_map<(b, y, x, n, c) -> (b, y, x, c)>
#w = affine_map<(b, y, x, n, c) -> (c, n)>
#o = affine_map<(b, y, x, n, c) -> (b, y, x, n)>
// The rows of a window have a gap after each 7 tokens, so that two loops run over them.
// CHECK-LABEL: @window(
// CHECK-NOT: collapse_shape
func.func @window(%x: memref<1x7x7x768xf32, strided<[602112, 43008, 768, 1]>>, %w: memref<768x64xf32>, %y: memref<1x7x7x64xf32>) {
  linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : memref<1x7x7x768xf32, strided<[602112, 43008, 768, 1]>>, memref<768x64xf32>) outs(%y : memref<1x7x7x64xf32>)
  return
}

// -----

#x = affine_map<(y, x, n, c) -> (y, x, c)>
#w = affine_map<(y, x, n, c) -> (c, n)>
#t = affine_map<(y, x, n, c) -> (x, y, n)>
// The result has the rows in another order.
// CHECK-LABEL: @transposed(
// CHECK-NOT: collapse_shape
func.func @transposed(%x: memref<7x5x768xf32>, %w: memref<768x64xf32>, %y: memref<5x7x64xf32>) {
  linalg.contract indexing_maps = [#x, #w, #t] ins(%x, %w : memref<7x5x768xf32>, memref<768x64xf32>) outs(%y : memref<5x7x64xf32>)
  return
}
