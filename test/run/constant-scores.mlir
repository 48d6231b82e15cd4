// All scores are the same large constant, so LLVM folds parts of the exponentials; all probabilities must be equal.
// RUN: attn-run %s --reference --level=x86-64 | FileCheck %s
// RUN: attn-run %s --reference | FileCheck %s
// CHECK: output 0: error {{[0-9.]+}}e-{{0[6-9]|1}}
// CHECK: output 1: error {{[0-9.]+}}e-{{0[6-9]|1}}{{.*}}largest value 3.33e-01
func.func @forward(%q: tensor<5x7xf32> {attn.name = "q"}, %k: tensor<3x7xf32> {attn.name = "k"}, %v: tensor<3x7xf32> {attn.name = "v"})
    -> (tensor<5x7xf32> {attn.name = "out"}, tensor<5x3xf32> {attn.name = "weights"}) {
  %e = tensor.empty() : tensor<5x7xf32>
  %w = tensor.empty() : tensor<5x3xf32>
  %o:2 = attn.attention ins(%q, %k, %v : tensor<5x7xf32>, tensor<3x7xf32>, tensor<3x7xf32>) outs(%e, %w : tensor<5x7xf32>, tensor<5x3xf32>)
    {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>,
                      affine_map<(q, k, d, e) -> (q, e)>, affine_map<(q, k, d, e) -> (q, k)>], scale = 1.0 : f32}
    score {
    ^bb0(%qi: index, %ki: index, %s: f32):
      %fill = arith.constant -1.0e+09 : f32
      attn.yield %fill : f32
    } -> tensor<5x7xf32>, tensor<5x3xf32>
  return %o#0, %o#1 : tensor<5x7xf32>, tensor<5x3xf32>
}
