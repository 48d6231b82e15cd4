// RUN: attn-opt %s -attn-lower-copies | FileCheck %s

// CHECK-LABEL: @copies
// CHECK-SAME:  %[[X:.*]]: memref<?x4xf32>, %[[Y:.*]]: memref<?x4xf32>)
// CHECK-NEXT:  linalg.copy ins(%[[X]] : memref<?x4xf32>) outs(%[[Y]] : memref<?x4xf32>)
// CHECK:       scf.forall
// CHECK:       %[[FROM:.*]] = memref.subview %[[X]]
// CHECK:       %[[TO:.*]] = memref.subview %[[Y]]
// CHECK:       linalg.copy ins(%[[FROM]] : memref<4xf32, strided<[1], offset: ?>>) outs(%[[TO]] : memref<4xf32, strided<[1], offset: ?>>)
// CHECK-NOT:   memref.copy
func.func @copies(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {
  memref.copy %x, %y : memref<?x4xf32> to memref<?x4xf32>
  scf.forall (%i) in (2) {
    %from = memref.subview %x[%i, 0] [1, 4] [1, 1] : memref<?x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    %to = memref.subview %y[%i, 0] [1, 4] [1, 1] : memref<?x4xf32> to memref<4xf32, strided<[1], offset: ?>>
    memref.copy %from, %to : memref<4xf32, strided<[1], offset: ?>> to memref<4xf32, strided<[1], offset: ?>>
  }
  return
}
