// RUN: attn-opt %s -split-input-file -attn-pad-rows | FileCheck %s

// Rows of 12288 bytes, a multiple of 4096, get padding, so that they do not map to the same cache sets. They are
// written in panels of 32 columns and read as whole rows.
// CHECK-LABEL: func.func @panels
// CHECK: %[[ALLOC:.*]] = memref.alloc() {alignment = 64 : i64} : memref<128x97x32xf32>
// CHECK: %[[VIEW:.*]] = memref.subview %[[ALLOC]][0, 0, 0] [128, 96, 32] [1, 1, 1] : memref<128x97x32xf32> to memref<128x96x32xf32, strided<[3104, 32, 1]>>
// CHECK: linalg.fill ins(%{{.*}} : f32) outs(%[[VIEW]] :
// CHECK: memref.collapse_shape %[[VIEW]] {{.*}} into memref<128x3072xf32, strided<[3104, 1]>>
// CHECK: memref.subview %{{.*}}[6, 0] [6, 3072] [1, 1] : memref<128x3072xf32, strided<[3104, 1]>> to memref<6x3072xf32, strided<[3104, 1], offset: 18624>>
func.func @panels(%weights: memref<3072x8xf32>, %out: memref<6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %m = memref.alloc() {alignment = 64 : i64} : memref<128x96x32xf32>
  linalg.fill ins(%zero : f32) outs(%m : memref<128x96x32xf32>)
  %rows = memref.collapse_shape %m [[0], [1, 2]] : memref<128x96x32xf32> into memref<128x3072xf32>
  %part = memref.subview %rows[6, 0] [6, 3072] [1, 1] : memref<128x3072xf32> to memref<6x3072xf32, strided<[3072, 1], offset: 18432>>
  linalg.matmul ins(%part, %weights : memref<6x3072xf32, strided<[3072, 1], offset: 18432>>, memref<3072x8xf32>) outs(%out : memref<6x8xf32>)
  return
}

// -----

// The number of rows may be dynamic, and the elements f16.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: %[[N:.*]]: index
// CHECK: %[[ALLOC:.*]] = memref.alloc(%[[N]]) : memref<?x2080xf16>
// CHECK: memref.subview %[[ALLOC]][0, 0] [%[[N]], 2048] [1, 1] : memref<?x2080xf16> to memref<?x2048xf16, strided<[2080, 1]>>
func.func @dynamic(%n: index, %x: f16) {
  %m = memref.alloc(%n) : memref<?x2048xf16>
  linalg.fill ins(%x : f16) outs(%m : memref<?x2048xf16>)
  return
}

// -----

// Four buffers get no padding: rows that map to different cache sets, a single row, the operand of a call, which may
// need adjacent rows, and rows that a view merges.
// CHECK-LABEL: func.func @others
// CHECK-DAG: memref.alloc() : memref<16x1000xf32>
// CHECK-DAG: memref.alloc() : memref<1x1024xf32>
// CHECK-DAG: memref.alloc() : memref<16x1024xf32>
// CHECK-DAG: memref.alloc() : memref<8x2048xf32>
// CHECK-NOT: memref.alloc
func.func private @callee(memref<16x1024xf32>)
func.func @others(%x: f32) {
  %a = memref.alloc() : memref<16x1000xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<16x1000xf32>)
  %b = memref.alloc() : memref<1x1024xf32>
  linalg.fill ins(%x : f32) outs(%b : memref<1x1024xf32>)
  %c = memref.alloc() : memref<16x1024xf32>
  func.call @callee(%c) : (memref<16x1024xf32>) -> ()
  %d = memref.alloc() : memref<8x2048xf32>
  %flat = memref.collapse_shape %d [[0, 1]] : memref<8x2048xf32> into memref<16384xf32>
  linalg.fill ins(%x : f32) outs(%flat : memref<16384xf32>)
  return
}
