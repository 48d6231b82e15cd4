// RUN: attn-opt %s -attn-gpu-order-keys | FileCheck %s

// Keys that are columns of their tensor are transposed; values that are rows stay.
// CHECK: #[[KEYS:.+]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d3)>
// CHECK-LABEL: func @f
// CHECK-SAME: %[[Q:.+]]: tensor<2x40x64xf16>, %[[K:.+]]: tensor<2x64x?xf16>, %[[V:.+]]: tensor<2x?x64xf16>
// CHECK: %[[T:.+]] = linalg.transpose ins(%[[K]] : tensor<2x64x?xf16>) outs(%{{.+}} : tensor<2x?x64xf16>) permutation = [0, 2, 1]
// CHECK: attn.attention ins(%[[Q]], %[[T]], %[[V]]
// CHECK-SAME: indexing_maps = [#{{.+}}, #[[KEYS]], #{{.+}}, #{{.+}}]
#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, d, k)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @f(%q: tensor<2x40x64xf16>, %k: tensor<2x64x?xf16>, %v: tensor<2x?x64xf16>) -> tensor<2x40x64xf16> {
  %init = tensor.empty() : tensor<2x40x64xf16>
  %o = attn.attention ins(%q, %k, %v : tensor<2x40x64xf16>, tensor<2x64x?xf16>, tensor<2x?x64xf16>) outs(%init : tensor<2x40x64xf16>)
    {indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} -> tensor<2x40x64xf16>
  return %o : tensor<2x40x64xf16>
}
