// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: attention-of-doubles.mlir: 8:8: expected an attention of f32, f16 or bf16, got 'f64'
func.func @f(%x: tensor<4x8xf64>) -> tensor<4x8xf64> {
  %e = tensor.empty() : tensor<4x8xf64>
  %r = attn.attention ins(%x, %x, %x : tensor<4x8xf64>, tensor<4x8xf64>, tensor<4x8xf64>) outs(%e : tensor<4x8xf64>)
    {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>,
                      affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>], scale = 1.0 : f32, acc_type = f64} -> tensor<4x8xf64>
  return %r : tensor<4x8xf64>
}
