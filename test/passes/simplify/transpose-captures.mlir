// RUN: attn-opt %s -attn-transpose-captures | FileCheck %s
// RUN: attn-opt %s -attn-transpose-captures -attn-hoist-views -canonicalize | FileCheck %s --check-prefix=HOISTED

#q = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, q, k, d, e) -> (h, k, e)>
#last = affine_map<(h, q, k, d, e) -> (q, k, h)>
#out = affine_map<(h, q, k, d, e) -> (h, q, e)>

// A product has computed a bias with the heads last. The product computes the heads first.
// CHECK-DAG: #[[FIRST:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>
// CHECK-LABEL: @pair_bias
// CHECK: %[[P:.+]] = linalg.contract
// CHECK: %[[T:.+]] = linalg.transpose ins(%[[P]] : tensor<5x7x2xf32>) outs({{.+}} : tensor<2x5x7xf32>) permutation = [2, 0, 1]
// CHECK: attn.attention {{.*}} captures(%[[T]] : tensor<2x5x7xf32>) {{.*}}#[[FIRST]]
// HOISTED-LABEL: @pair_bias
// HOISTED-NOT: linalg.transpose
// HOISTED: linalg.contract {{.*}} -> tensor<2x5x7xf32>
func.func @pair_bias(%q: tensor<2x5x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>, %pair: tensor<5x7x3xf32>, %w: tensor<2x3xf32>, %e: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<5x7x2xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x7x2xf32>) -> tensor<5x7x2xf32>
  %p = linalg.contract indexing_maps = [affine_map<(q, k, h, c) -> (q, k, c)>, affine_map<(q, k, h, c) -> (h, c)>, affine_map<(q, k, h, c) -> (q, k, h)>] ins(%pair, %w : tensor<5x7x3xf32>, tensor<2x3xf32>) outs(%fill : tensor<5x7x2xf32>) -> tensor<5x7x2xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x5x4xf32>, tensor<2x7x4xf32>, tensor<2x7x4xf32>) captures(%p : tensor<5x7x2xf32>) outs(%e : tensor<2x5x4xf32>) {indexing_maps = [#q, #k, #v, #last, #out], scale = 1.0 : f32} score {
  ^bb0(%bh: index, %qi: index, %ki: index, %s: f32, %b: f32):
    %y = arith.addf %s, %b : f32
    attn.yield %y : f32
  } -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}

// Nothing computes this bias, so that a transposition would be a copy.
// CHECK-LABEL: @argument
// CHECK-NOT: linalg.transpose
func.func @argument(%q: tensor<2x5x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>, %p: tensor<5x7x2xf32>, %e: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x5x4xf32>, tensor<2x7x4xf32>, tensor<2x7x4xf32>) captures(%p : tensor<5x7x2xf32>) outs(%e : tensor<2x5x4xf32>) {indexing_maps = [#q, #k, #v, #last, #out], scale = 1.0 : f32} score {
  ^bb0(%bh: index, %qi: index, %ki: index, %s: f32, %b: f32):
    %y = arith.addf %s, %b : f32
    attn.yield %y : f32
  } -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}
