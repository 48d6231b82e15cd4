// RUN: attn-opt %s -attn-mask-to-vector -canonicalize -cse | FileCheck %s

module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>} {

// Booleans are bytes. The bytes of 32 keys become a word; eight queries are packed at a time. The last word has 6 keys.
// CHECK-LABEL: @booleans
// CHECK:       %[[BYTES:.*]] = builtin.unrealized_conversion_cast %{{.*}} : memref<{{.*}}xi1, strided<[1]>> to memref<{{.*}}xi8, strided<[1]>>
// CHECK:       scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK:         scf.for %{{.*}} = %c0 to %c48 step %c8
// CHECK:           scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK:             vector.load %[[BYTES]]{{.*}} : {{.*}}, vector<32xi8>
// CHECK-NEXT:        arith.cmpi ne
// CHECK-NEXT:        vector.bitcast %{{.*}} : vector<32xi1> to vector<1xi32>
// CHECK-COUNT-7:     vector.bitcast
// CHECK:           scf.for %{{.*}} = %c0 to %c6 step %c1
// CHECK:             memref.load %{{.*}} : memref<{{.*}}xi1
// CHECK:             arith.ori
func.func @booleans(%m: memref<2x48x70xi1>, %w: memref<2x3x48xi32>) {
  attn.pack_mask ins(%m : memref<2x48x70xi1>) outs(%w : memref<2x3x48xi32>)
  return
}

// An element that is NaN keeps its pair (@floats). Keys that are not adjacent are packed bit by bit (@columns).
// CHECK-LABEL: @floats
// CHECK:       arith.cmpf une, %{{.*}} : vector<32xf32>
// CHECK-LABEL: @columns
// CHECK-NOT:   vector.load
// CHECK:       arith.cmpi ne
func.func @floats(%m: memref<?x?xf32>, %w: memref<?x?xi32>) {
  attn.pack_mask ins(%m : memref<?x?xf32>) outs(%w : memref<?x?xi32>)
  return
}
func.func @columns(%m: memref<48x64xi32, strided<[1, 48]>>, %w: memref<2x48xi32>) {
  attn.pack_mask ins(%m : memref<48x64xi32, strided<[1, 48]>>) outs(%w : memref<2x48xi32>)
  return
}

// Lanes beyond the last query have no influence on the result.
// CHECK-LABEL: @test
// CHECK:       %[[RESULTS:.*]]:3 = scf.for %{{.*}} = %c0 to %c2 step %c1 iter_args(%[[BEGIN:.*]] = %c2, %[[END:.*]] = %c0, %{{.*}} =
// CHECK:         %[[MASK:.*]] = vector.constant_mask [4] : vector<16xi1>
// CHECK-COUNT-2: arith.select %[[MASK]]
// CHECK:         vector.reduction <or>
// CHECK:         arith.minui %[[BEGIN]],
// CHECK:         arith.select %{{.*}}, %{{.*}}, %[[END]]
// CHECK:       vector.reduction <or>
// CHECK:       return %[[RESULTS]]#0, %[[RESULTS]]#1
func.func @test(%w: memref<2x20xi32>) -> (index, index, i1) {
  %r:3 = attn.test_mask %w keeps nonzero : memref<2x20xi32>
  return %r#0, %r#1, %r#2 : index, index, i1
}

// The words of a single query need not be adjacent.
// CHECK-LABEL: @one_query
// CHECK:       memref.load
// CHECK:       vector.broadcast
func.func @one_query(%w: memref<?x1xi32, strided<[2, 2]>>) -> (index, index, i1) {
  %r:3 = attn.test_mask %w keeps nonzero : memref<?x1xi32, strided<[2, 2]>>
  return %r#0, %r#1, %r#2 : index, index, i1
}
}
