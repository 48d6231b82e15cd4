// A GPU has more multiprocessors than this attention has tiles of queries, so the keys are divided into parts. The tiles
// of queries have no rest: the state of a part must still lie in registers, not in the output that it is copied to.
// RUN: attnc %s --target=sm_80,sm_90a -o %t.so --opt-report | FileCheck %s
// CHECK: [sm_90a] parts.mlir:{{.*}} schedule decode
// CHECK: [sm_80] parts.mlir:{{.*}} schedule decode
// RUN: env ATTN_FAKE_CAPABILITY=80 %gpu attn-run %s --device=cuda --reference --tolerance=1e-4
// RUN: env ATTN_FAKE_CAPABILITY=90 %gpu attn-run %s --device=cuda --reference --tolerance=1e-4

func.func @attention(%q: tensor<1x64x64xf32>, %k: tensor<1x256x64xf32>, %v: tensor<1x256x64xf32>) -> tensor<1x64x64xf32> {
  %empty = tensor.empty() : tensor<1x64x64xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<1x64x64xf32>, tensor<1x256x64xf32>, tensor<1x256x64xf32>) outs(%empty : tensor<1x64x64xf32>)
      {indexing_maps = [affine_map<(b, q, k, d, e) -> (b, q, d)>, affine_map<(b, q, k, d, e) -> (b, k, d)>,
                        affine_map<(b, q, k, d, e) -> (b, k, e)>, affine_map<(b, q, k, d, e) -> (b, q, e)>], scale = 0.125 : f32} -> tensor<1x64x64xf32>
  return %o : tensor<1x64x64xf32>
}
