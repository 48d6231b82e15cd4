// RUN: attn-opt %s -attn-gpu-merge-to-threads -canonicalize | FileCheck %s

// CHECK-LABEL: func private @merge
// CHECK-SAME: (%{{.+}}: index, %{{.+}}: index, %[[MS:.+]]: memref<?x4xf32>, %[[LS:.+]]: memref<?x4xf32>, %[[AS:.+]]: memref<?x4x8xf32>
// The initial state is written.
// CHECK: scf.parallel (%{{.+}}) = (%c0) to (%c4) step (%c1) {
// CHECK: memref.store %cst{{.*}}, %[[M:.+]][%{{.+}}]
// CHECK: scf.parallel
// CHECK: scf.parallel (%{{.+}}, %{{.+}}) = (%c0, %c0) to (%c4, %c8) step (%c1, %c1) {
// The accumulators are scaled to the greatest maximum, and added.
// CHECK: scf.parallel (%[[Q:.+]], %[[E:.+]]) = (%c0, %c0) to (%c4, %c8) step (%c1, %c1) {
// CHECK: %[[GREATEST:.+]] = scf.for %[[N:.+]] = %c0 to %{{.+}} step %c1 iter_args
// CHECK: memref.load %[[MS]][%[[N]], %[[Q]]]
// CHECK: arith.maxnumf
// CHECK: scf.for %[[N:.+]] = %c0
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK: %[[PART:.+]] = memref.load %[[AS]][%[[N]], %[[Q]], %[[E]]]
// CHECK: math.fma %{{.+}}, %[[PART]], %{{.+}} : f32
// CHECK: scf.parallel (%[[Q:.+]]) = (%c0) to (%c4) step (%c1) {
// CHECK: memref.load %[[LS]]
// CHECK: memref.store %{{.+}}, %{{.+}}[%[[Q]]]
// CHECK: memref.store %{{.+}}, %{{.+}}[%[[Q]]]
// CHECK: scf.parallel
// CHECK: arith.divf
// CHECK: arith.truncf %{{.+}} : f32 to bf16
func.func private @merge(%i: index, %worker: index, %ms: memref<?x4xf32>, %ls: memref<?x4xf32>, %as: memref<?x4x8xf32>, %o: memref<4x8xbf16>)
    attributes {attn.launch = #attn.launch<threads = 256>} {
  %m = memref.alloca() : memref<4xf32, #gpu.address_space<workgroup>>
  %l = memref.alloca() : memref<4xf32, #gpu.address_space<workgroup>>
  %a = memref.alloca() : memref<4x8xf32, #gpu.address_space<workgroup>>
  attn.online_init rows outs(%m, %l, %a : memref<4xf32, #gpu.address_space<workgroup>>, memref<4xf32, #gpu.address_space<workgroup>>, memref<4x8xf32, #gpu.address_space<workgroup>>)
  attn.online_merge rows ins(%ms, %ls, %as : memref<?x4xf32>, memref<?x4xf32>, memref<?x4x8xf32>)
    outs(%m, %l, %a : memref<4xf32, #gpu.address_space<workgroup>>, memref<4xf32, #gpu.address_space<workgroup>>, memref<4x8xf32, #gpu.address_space<workgroup>>) {scale = 1.0 : f32}
  attn.online_finish rows ins(%l, %a : memref<4xf32, #gpu.address_space<workgroup>>, memref<4x8xf32, #gpu.address_space<workgroup>>) outs(%o : memref<4x8xbf16>)
  return
}
