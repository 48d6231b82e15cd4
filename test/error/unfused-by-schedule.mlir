// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so --target=x86-64 --schedule=unfused --require-fused 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: attnc: unfused-by-schedule.mlir:8: attention left unfused, schedule unfused, tiles of
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %r = attn.attention ins(%x, %x, %x : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>)
    {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>,
                      affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>], scale = 1.0 : f32} -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
