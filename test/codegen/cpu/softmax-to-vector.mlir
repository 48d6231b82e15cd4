// RUN: attn-opt %s -attn-softmax-to-vector -canonicalize -cse | FileCheck %s

#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>

module attributes {attn.target = #v4} {
// Three loops over each row compute the maximum, the exponentials with their sum, and the probabilities. Reductions
// across lanes follow the first two loops.
// CHECK-LABEL: @rows
// CHECK:       scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK:         scf.for %{{.*}} = %c0 to %c48 step %c16 iter_args
// CHECK:           arith.cmpf ogt
// CHECK:         vector.reduction <maxnumf>
// CHECK:         scf.for %{{.*}} = %c0 to %c48 step %c16 iter_args
// CHECK:           vector.fma
// CHECK:           vector.store
// CHECK:         vector.reduction <add>
// CHECK:         arith.divf {{.*}} : f32
// CHECK:         scf.for %{{.*}} = %c0 to %c48 step %c16
// CHECK:           arith.mulf
func.func @rows(%x: memref<4x48xf32>, %y: memref<4x48xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<4x48xf32>) outs(%y : memref<4x48xf32>)
  return
}

// Lanes beyond the end hold -inf, whose exponential is 0.
// CHECK-LABEL: @remainder
// CHECK-DAG:   %[[LOWEST:.*]] = arith.constant dense<0xFF800000> : vector<16xf32>
// CHECK:       scf.for
// CHECK:         vector.maskedload %{{.*}}, %{{.*}}, %[[LOWEST]]
// CHECK:         vector.reduction <maxnumf>
// CHECK:         vector.maskedstore
// CHECK:         vector.reduction <add>
// CHECK:         vector.maskedstore
func.func @remainder(%x: memref<4x7xf32>, %y: memref<4x7xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<4x7xf32>) outs(%y : memref<4x7xf32>)
  return
}

// The softmax is not along the last dimension, so every lane computes a softmax of its own.
// CHECK-LABEL: @columns
// CHECK:       scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK:         scf.for %{{.*}} = %c0 to %c32 step %c16
// CHECK:           scf.for %{{.*}} = %c0 to %c8 step %c4 iter_args
// CHECK:           scf.for %{{.*}} = %c0 to %c8 step %c4 iter_args
// CHECK-COUNT-4:     vector.store
// CHECK-NOT:   vector.reduction
func.func @columns(%x: memref<2x8x32xf32>, %y: memref<2x8x32xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<2x8x32xf32>) outs(%y : memref<2x8x32xf32>)
  return
}

// Elements that are not adjacent are computed one by one.
// CHECK-LABEL: @apart
// CHECK:       scf.for %{{.*}} = %c0 to %c48 step %c1 iter_args
// CHECK:         vector.load {{.*}} : memref<4x48xf32, strided<[144, 3]>>, vector<1xf32>
func.func @apart(%x: memref<4x48xf32, strided<[144, 3]>>, %y: memref<4x48xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<4x48xf32, strided<[144, 3]>>) outs(%y : memref<4x48xf32>)
  return
}
}
