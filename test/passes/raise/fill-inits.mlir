// RUN: attn-opt %s --attn-fill-inits --split-input-file | FileCheck %s
// RUN: attn-opt %s --attn-fill-inits --split-input-file --attn-to-raise | FileCheck %s --check-prefix=RAISED

// An attention whose sums start from a constant and from a linalg.generic is raised as if they started from a linalg.fill.
// CHECK-LABEL: @attention
// CHECK-DAG: %[[KZERO:.+]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[KFILL:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%{{.+}} : tensor<4x16x16xf32>)
// CHECK: linalg.contract {{.*}} outs(%[[KFILL]] : tensor<4x16x16xf32>)
// CHECK: %[[FILL:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%{{.+}} : tensor<4x16x32xf32>)
// CHECK: linalg.contract {{.*}} outs(%[[FILL]] : tensor<4x16x32xf32>)
// RAISED: attn.attention
#q = affine_map<(h, q, k, d) -> (h, q, d)>
#k = affine_map<(h, q, k, d) -> (h, k, d)>
#s = affine_map<(h, q, k, d) -> (h, q, k)>
#none = affine_map<(h, q, e) -> ()>
#o = affine_map<(h, q, e) -> (h, q, e)>
func.func @attention(%q: tensor<4x16x32xf32>, %k: tensor<4x16x32xf32>, %v: tensor<4x16x32xf32>) -> tensor<4x16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %z = arith.constant dense<0.0> : tensor<4x16x16xf32>
  %s = linalg.contract indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x16x32xf32>, tensor<4x16x32xf32>)
    outs(%z : tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  %e = tensor.empty() : tensor<4x16x16xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x16x16xf32>) outs(%e : tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  %out = tensor.empty() : tensor<4x16x32xf32>
  %zeros = linalg.generic {indexing_maps = [#none, #o], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%zero : f32) outs(%out : tensor<4x16x32xf32>) {
  ^bb0(%x: f32, %old: f32):
    linalg.yield %x : f32
  } -> tensor<4x16x32xf32>
  %o = linalg.contract indexing_maps = [affine_map<(h, q, e, k) -> (h, q, k)>, affine_map<(h, q, e, k) -> (h, k, e)>,
                                        affine_map<(h, q, e, k) -> (h, q, e)>]
    ins(%p, %v : tensor<4x16x16xf32>, tensor<4x16x32xf32>) outs(%zeros : tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
  return %o : tensor<4x16x32xf32>
}

// -----

// A tensor whose elements differ, and the init of an op without a sum, do not become a linalg.fill.
// CHECK-LABEL: @others
// CHECK-NOT: linalg.fill
func.func @others(%x: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2x3xf32>) {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %s = linalg.reduce ins(%x : tensor<2x3xf32>) outs(%a : tensor<2xf32>) dimensions = [1]
    (%in: f32, %sum: f32) { %y = arith.addf %in, %sum : f32 linalg.yield %y : f32 }
  %b = arith.constant dense<0.0> : tensor<2x3xf32>
  %n = linalg.abs ins(%x : tensor<2x3xf32>) outs(%b : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %s, %n : tensor<2xf32>, tensor<2x3xf32>
}
