// There is one key, probabilities are returned, and a bias has the heads as its last dimension, so two dimensions of a
// tile of the bias have size 1.
// RUN: attn-run %s --reference --schedule=phased | FileCheck %s
// RUN: attn-run %s --reference --schedule=per-head | FileCheck %s
// CHECK: output 0: error
// CHECK: output 1: error

func.func @attend(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x1x4xf32>, %v: tensor<2x2x1x4xf32>, %bias: tensor<3x1x2xf32>) -> (tensor<2x2x3x4xf32>, tensor<2x2x3x1xf32>) {
  %e = tensor.empty() : tensor<2x2x3x4xf32>
  %p = tensor.empty() : tensor<2x2x3x1xf32>
  %o:2 = attn.attention ins(%q, %k, %v : tensor<2x2x3x4xf32>, tensor<2x2x1x4xf32>, tensor<2x2x1x4xf32>)
      captures(%bias : tensor<3x1x2xf32>) outs(%e, %p : tensor<2x2x3x4xf32>, tensor<2x2x3x1xf32>) {
      indexing_maps = [affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>, affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>,
                       affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>, affine_map<(b, h, q, k, d, e) -> (q, k, h)>,
                       affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>, affine_map<(b, h, q, k, d, e) -> (b, h, q, k)>],
      scale = 0.5 : f32} score {
  ^bb0(%b: index, %h: index, %i: index, %j: index, %s: f32, %a: f32):
    %t = arith.addf %s, %a : f32
    attn.yield %t : f32
  } -> tensor<2x2x3x4xf32>, tensor<2x2x3x1xf32>
  return %o#0, %o#1 : tensor<2x2x3x4xf32>, tensor<2x2x3x1xf32>
}
