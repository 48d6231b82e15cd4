// attn-reduce removes everything that the script does not require: here, all but one attention.
// RUN: attn-reduce %s --reduction-tree='traversal-mode=0 test=%S/Inputs/is-attention.sh' | FileCheck %s

// CHECK-NOT: @other
// CHECK: func.func @attend
// CHECK-NOT: linalg.exp
// CHECK: attn.attention
// CHECK-NOT: @another
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

func.func @attend(%q: tensor<5x8xf32>, %k: tensor<9x8xf32>, %v: tensor<9x8xf32>) -> tensor<5x8xf32> {
  %e = tensor.empty() : tensor<5x8xf32>
  %x = linalg.exp ins(%q : tensor<5x8xf32>) outs(%e : tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<5x8xf32>, tensor<9x8xf32>, tensor<9x8xf32>)
      outs(%e : tensor<5x8xf32>) {
      indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>,
                       affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>],
      scale = 0.35 : f32} -> tensor<5x8xf32>
  return %o : tensor<5x8xf32>
}

func.func @another(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
