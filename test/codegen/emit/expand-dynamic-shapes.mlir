// RUN: attn-opt %s -attn-expand-dynamic-shapes -canonicalize | FileCheck %s

// CHECK-LABEL: @two_unknown
// CHECK-SAME:  %[[X:[^:]*]]: memref<?x8xf32>, %[[B:[^:]*]]: index, %[[S:[^:]*]]: index
// CHECK:       %[[STRIDE:.*]] = affine.apply {{.*}}()[%[[S]]]
// CHECK:       memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%[[B]], %[[S]], 8], strides: [%[[STRIDE]], 8, 1]
func.func @two_unknown(%x: memref<?x8xf32>, %b: index, %s: index) -> memref<?x?x8xf32> {
  %y = memref.expand_shape %x [[0, 1], [2]] output_shape [%b, %s, 8] : memref<?x8xf32> into memref<?x?x8xf32>
  return %y : memref<?x?x8xf32>
}

// CHECK-LABEL: @one_unknown
// CHECK:       memref.expand_shape
func.func @one_unknown(%x: memref<?x8xf32>, %b: index) -> memref<?x4x8xf32> {
  %y = memref.expand_shape %x [[0, 1], [2]] output_shape [%b, 4, 8] : memref<?x8xf32> into memref<?x4x8xf32>
  return %y : memref<?x4x8xf32>
}
