// RUN: attn-opt %s -attn-keep-unit-dims -canonicalize | FileCheck %s

// The subview keeps the first and the second of four dimensions; because the strides are unknown, its type does not
// show which dimensions of size 1 it drops.
// CHECK-LABEL: @unknown_strides
// CHECK:       %[[PART:.*]] = memref.subview %{{.*}}[0, 0, 1, 0] [1, 2, 1, 1] [1, 1, 1, 1] : memref<1x2x6x?xf32> to memref<1x2x1x1xf32, strided<[?, ?, ?, 1], offset: ?>>
// CHECK:       %{{.*}}, %[[OFFSET:.*]], %{{.*}}:4, %[[STRIDES:.*]]:4 = memref.extract_strided_metadata %[[PART]]
// CHECK:       memref.reinterpret_cast %[[PART]] to offset: [%[[OFFSET]]], sizes: [1, 2], strides: [%[[STRIDES]]#0, %[[STRIDES]]#1]
func.func @unknown_strides(%m: memref<1x2x6x?xf32>) -> memref<1x2xf32, strided<[?, ?], offset: ?>> {
  %0 = memref.subview %m[0, 0, 1, 0] [1, 2, 1, 1] [1, 1, 1, 1] : memref<1x2x6x?xf32> to memref<1x2xf32, strided<[?, ?], offset: ?>>
  return %0 : memref<1x2xf32, strided<[?, ?], offset: ?>>
}

// CHECK-LABEL: @step
// CHECK-NOT:   subview
// CHECK:       memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [1, 4], strides: [12, 1]
func.func @step(%m: memref<2x1x4xf32>) -> memref<1x4xf32, strided<[12, 1]>> {
  %0 = memref.subview %m[0, 0, 0] [1, 1, 4] [3, 1, 1] : memref<2x1x4xf32> to memref<1x4xf32, strided<[12, 1]>>
  return %0 : memref<1x4xf32, strided<[12, 1]>>
}

// If all or none of the dimensions of size 1 are dropped, the type is not ambiguous, and the subview stays.
// CHECK-LABEL: @clear
// CHECK-NOT:   reinterpret_cast
func.func @clear(%m: memref<1x2x6x?xf32>) -> (memref<2xf32, strided<[?], offset: ?>>, memref<1x2x1x1xf32, strided<[?, ?, ?, 1], offset: ?>>) {
  %0 = memref.subview %m[0, 0, 1, 0] [1, 2, 1, 1] [1, 1, 1, 1] : memref<1x2x6x?xf32> to memref<2xf32, strided<[?], offset: ?>>
  %1 = memref.subview %m[0, 0, 1, 0] [1, 2, 1, 1] [1, 1, 1, 1] : memref<1x2x6x?xf32> to memref<1x2x1x1xf32, strided<[?, ?, ?, 1], offset: ?>>
  return %0, %1 : memref<2xf32, strided<[?], offset: ?>>, memref<1x2x1x1xf32, strided<[?, ?, ?, 1], offset: ?>>
}
