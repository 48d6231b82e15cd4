// RUN: attn-opt %s -attn-gpu-mask-to-threads -canonicalize | FileCheck %s

// CHECK-LABEL: func @pack
// CHECK: scf.parallel (%[[W:.+]], %[[Q:.+]]) = (%c0, %c0) to (%c16, %c300) step (%c1, %c1) {
// CHECK: %[[FIRST:.+]] = arith.muli %[[W]], %c32
// CHECK: %[[WORD:.+]] = scf.for %[[I:.+]] = %c0 to %{{.+}} step %c1 iter_args
// CHECK: %[[KEY:.+]] = arith.addi %[[FIRST]], %[[I]]
// CHECK: memref.load %{{.+}}[%[[Q]], %[[KEY]]]
// CHECK: arith.shli
// CHECK: memref.store %[[WORD]], %{{.+}}[%[[W]], %[[Q]]]
func.func @pack(%mask: memref<300x500xi1>, %words: memref<16x300xi32>) {
  attn.pack_mask ins(%mask : memref<300x500xi1>) outs(%words : memref<16x300xi32>)
  return
}

// CHECK-LABEL: func @test
// CHECK: %[[R:.+]]:3 = scf.for %[[W:.+]] = %c0 to %c2 step %c1 iter_args
// CHECK: %[[SOME:.+]]:2 = scf.for %{{.+}} = %{{.+}} to %c48 step %c32
// CHECK: nvvm.vote.sync any %{{.+}}, %[[SOME]]#0
// CHECK: nvvm.vote.sync all %{{.+}}, %[[SOME]]#1
// CHECK-NOT: gpu.barrier
// CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @test(%words: memref<2x48xi32>) -> (index, index, i1) {
  %begin, %end, %all = attn.test_mask %words keeps nonzero : memref<2x48xi32>
  return %begin, %end, %all : index, index, i1
}

// The next op overwrites the words, so it waits for all threads.
// CHECK-LABEL: func @overwrite
// CHECK: nvvm.vote.sync
// CHECK: gpu.barrier
// CHECK: scf.parallel
func.func @overwrite(%mask: memref<48x64xi1>, %words: memref<2x48xi32>) -> i1 {
  %begin, %end, %all = attn.test_mask %words keeps nonzero : memref<2x48xi32>
  attn.pack_mask ins(%mask : memref<48x64xi1>) outs(%words : memref<2x48xi32>)
  return %all : i1
}
