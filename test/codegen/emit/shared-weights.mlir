// RUN: attnc %s -o %t.so --target=native
// RUN: grep packed_hash %t.json | sort -u | count 1

// Two functions that pack the same weights in the same way share the packed weights.
func.func @f(%x: tensor<2x4xf32>, %w: tensor<8x4xf32> {attn.weight, attn.name="w"}) -> tensor<2x8xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8xf32>
  %f = linalg.fill ins(%z: f32) outs(%e: tensor<2x8xf32>) -> tensor<2x8xf32>
  %r = linalg.contract indexing_maps=[affine_map<(s,n,k)->(s,k)>, affine_map<(s,n,k)->(n,k)>, affine_map<(s,n,k)->(s,n)>] ins(%x,%w: tensor<2x4xf32>, tensor<8x4xf32>) outs(%f: tensor<2x8xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}
func.func @g(%x: tensor<2x4xf32>, %w: tensor<8x4xf32> {attn.weight, attn.name="w"}) -> tensor<2x8xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8xf32>
  %f = linalg.fill ins(%z: f32) outs(%e: tensor<2x8xf32>) -> tensor<2x8xf32>
  %r = linalg.contract indexing_maps=[affine_map<(s,n,k)->(s,k)>, affine_map<(s,n,k)->(n,k)>, affine_map<(s,n,k)->(s,n)>] ins(%x,%w: tensor<2x4xf32>, tensor<8x4xf32>) outs(%f: tensor<2x8xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}
