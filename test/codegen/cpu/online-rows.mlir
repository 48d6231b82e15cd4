// RUN: attn-opt %s -attn-online-to-vector -canonicalize -cse | FileCheck %s

#cpu = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|scale>
module attributes {attn.target = #cpu} {
// The scores of 40 keys are two vectors and a half. First come the dot products of each key with both queries. Then,
// for each row of scores, come its maximum, with -inf for hidden pairs, its probabilities and their sum. The lanes
// beyond the last key count neither in the maximum nor in the sum.
// CHECK-LABEL: @step(
// CHECK-SAME: %{{[^:]*}}: memref<2x32xf32>, %[[K:[^:]*]]: memref<40x32xf32>, %[[V:[^:]*]]: memref<40x16xf32>, %[[S:[^:]*]]: memref<2x40xf32>, %[[M:[^:]*]]: memref<2xf32>, %[[L:[^:]*]]: memref<2xf32>, %[[A:[^:]*]]: memref<2x16xf32>
// CHECK-DAG: %[[LOWEST:.*]] = arith.constant dense<0xFF800000> : vector<16xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c16
// CHECK-COUNT-2: vector.store %{{.*}}, %{{.*}} : memref<80xf32, strided<[1]>>, vector<16xf32>
// CHECK: %[[TAIL:.*]] = vector.constant_mask [8] : vector<16xi1>
// CHECK: scf.for %[[Q:.*]] = %c0 to %c2 step %c1
// CHECK: memref.load %[[M]][%[[Q]]]
// CHECK: %[[OLD:.*]] = vector.broadcast
// CHECK: %[[ROW:.*]] = scf.for %[[I:.*]] = %c0 to %c32 step %c16 iter_args(%{{.*}} = %[[OLD]])
// CHECK: vector.load %[[S]][%[[Q]], %[[I]]]
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[LOWEST]]
// CHECK: vector.store %{{.*}}, %[[S]][%[[Q]], %[[I]]]
// CHECK: vector.maskedload %[[S]][%[[Q]], %c32], %[[TAIL]], %[[LOWEST]]
// CHECK: vector.maskedstore %[[S]][%[[Q]], %c32], %[[TAIL]]
// CHECK: arith.select %[[TAIL]], %{{.*}}, %[[LOWEST]]
// CHECK: vector.reduction <maxnumf>
// CHECK: %[[SUMS:.*]] = scf.for %[[I:.*]] = %c0 to %c32 step %c16
// CHECK: vector.load %[[S]][%[[Q]], %[[I]]]
// CHECK: vector.store %{{.*}}, %[[S]][%[[Q]], %[[I]]]
// CHECK: vector.maskedstore %[[S]][%[[Q]], %c32], %[[TAIL]]
// CHECK: arith.select %[[TAIL]], %{{.*}}, %{{.*}} : vector<16xi1>, vector<16xf32>
// CHECK: vector.reduction <add>
// CHECK: memref.store %{{.*}}, %[[M]][%[[Q]]]
// CHECK: memref.store %{{.*}}, %[[L]][%[[Q]]]
// CHECK: vector.load %[[A]][%[[Q]], %c0]
// CHECK: vector.store %{{.*}}, %[[A]][%[[Q]], %c0]
// In the register block of the second product, vectors hold elements of the values, and rows are queries.
// CHECK: scf.for
// CHECK: vector.fma
func.func @step(%q: memref<2x32xf32>, %k: memref<40x32xf32>, %v: memref<40x16xf32>, %s: memref<2x40xf32>, %m: memref<2xf32>, %l: memref<2xf32>, %a: memref<2x16xf32>, %i: index) {
  attn.online_step rows ins(%q, %k, %v : memref<2x32xf32>, memref<40x32xf32>, memref<40x16xf32>)
    outs(%s, %m, %l, %a : memref<2x40xf32>, memref<2xf32>, memref<2xf32>, memref<2x16xf32>) at(%i, %i)
    mask(#attn.causal) {capture_maps = [], scale = 1.0 : f32}
  return
}

// The maxima of a part, and its sums, need not be adjacent in memory.
// CHECK-LABEL: @merge(
// CHECK-SAME: %[[MS:[^:]*]]: memref<3x2xf32, strided<[8, 4]>>
// CHECK: scf.for %[[Q:.*]] = %c0 to %c2 step %c1
// CHECK: scf.for %[[N:.*]] = %c0 to %c3 step %c1
// CHECK: memref.load %[[MS]][%[[N]], %[[Q]]]
func.func @merge(%ms: memref<3x2xf32, strided<[8, 4]>>, %as: memref<3x2x16xf32>, %m: memref<2xf32>, %l: memref<2xf32>, %a: memref<2x16xf32>) {
  attn.online_merge rows ins(%ms, %ms, %as : memref<3x2xf32, strided<[8, 4]>>, memref<3x2xf32, strided<[8, 4]>>, memref<3x2x16xf32>)
    outs(%m, %l, %a : memref<2xf32>, memref<2xf32>, memref<2x16xf32>) {scale = 1.0 : f32}
  return
}

// CHECK-LABEL: @finish(
// CHECK: scf.for %[[Q:.*]] = %c0 to %c2 step %c1
// CHECK: arith.truncf {{.*}} vector<16xf32> to vector<16xbf16>
// CHECK: vector.store %{{.*}}, %{{.*}}[%[[Q]], %c0]
func.func @finish(%l: memref<2xf32>, %a: memref<2x16xf32>, %o: memref<2x16xbf16>) {
  attn.online_finish rows ins(%l, %a : memref<2xf32>, memref<2x16xf32>) outs(%o : memref<2x16xbf16>)
  return
}
}
