// RUN: attn-opt %s -attn-phased -attn-gpu-order-tasks | FileCheck %s

#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>
#n = affine_map<(b, h, q, k, d, e) -> (b)>

// With a causal mask, later queries have more keys. The last tile of queries of all heads of a batch item starts first.
// CHECK: #[[TILES:.+]] = affine_map<()[s0] -> (s0 ceildiv 128)>
// CHECK: #[[FIRST:.+]] = affine_map<(d0)[s0] -> (d0 * -128 + (s0 ceildiv 128) * 128 - 128)>
// CHECK-LABEL: @causal
// CHECK: %[[S:.+]] = tensor.dim %{{.+}}, %c2
// CHECK: %[[TILES_OF_S:.+]] = affine.apply #[[TILES]]()[%[[S]]]
// CHECK: scf.forall (%[[B:.+]], %[[T:.+]], %[[H:.+]]) in (2, %[[TILES_OF_S]], 12)
// CHECK: %[[I:.+]] = affine.apply #[[FIRST]](%[[T]])[%[[S]]]
// CHECK: attn.attention {{.*}} at(%[[B]], %[[H]], %[[I]], %c0{{.*}}) mask(#attn.causal)
// CHECK: tensor.parallel_insert_slice {{.*}}[%[[B]], %[[H]], %[[I]], 0]
func.func @causal(%q: tensor<2x12x?x64xf16>, %k: tensor<2x12x?x64xf16>, %v: tensor<2x12x?x64xf16>, %o: tensor<2x12x?x64xf16>) -> tensor<2x12x?x64xf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<2x12x?x64xf16>, tensor<2x12x?x64xf16>, tensor<2x12x?x64xf16>) outs(%o : tensor<2x12x?x64xf16>)
    mask(#attn.causal) plan(<phased, q = 128, k = 64, stages = 2>) {indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} -> tensor<2x12x?x64xf16>
  return %r : tensor<2x12x?x64xf16>
}

// In a window, all queries but the first and the last have equally many keys, and so do all queries of a sequence of
// which only the length is known: the order stays.
// CHECK-LABEL: @window
// CHECK: scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) = (0, 0, 0) to (2, 12, %{{.+}}) step (1, 1, 128)
func.func @window(%q: tensor<2x12x?x64xf16>, %k: tensor<2x12x?x64xf16>, %v: tensor<2x12x?x64xf16>, %o: tensor<2x12x?x64xf16>) -> tensor<2x12x?x64xf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<2x12x?x64xf16>, tensor<2x12x?x64xf16>, tensor<2x12x?x64xf16>) outs(%o : tensor<2x12x?x64xf16>)
    mask(#attn.window<left = 9, right = 9>) plan(<phased, q = 128, k = 64, stages = 2>) {indexing_maps = [#q, #k, #v, #o], scale = 0.125 : f32} -> tensor<2x12x?x64xf16>
  return %r : tensor<2x12x?x64xf16>
}

// CHECK-LABEL: @lengths
// CHECK: scf.forall (%{{.+}}, %{{.+}}, %{{.+}}) = (0, 0, 0) to (2, 12, %{{.+}}) step (1, 1, 128)
func.func @lengths(%q: tensor<2x12x?x64xf16>, %k: tensor<2x12x?x64xf16>, %v: tensor<2x12x?x64xf16>, %n: tensor<2xi32>, %o: tensor<2x12x?x64xf16>) -> tensor<2x12x?x64xf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<2x12x?x64xf16>, tensor<2x12x?x64xf16>, tensor<2x12x?x64xf16>) captures(%n : tensor<2xi32>) outs(%o : tensor<2x12x?x64xf16>)
    mask(#attn.lengths<0>) plan(<phased, q = 128, k = 64, stages = 2>) {indexing_maps = [#q, #k, #v, #n, #o], scale = 0.125 : f32} -> tensor<2x12x?x64xf16>
  return %r : tensor<2x12x?x64xf16>
}

// Lengths do not change the order, but a causal mask beside them does. With one batch dimension, its items are heads.
#q1 = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k1 = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v1 = affine_map<(h, q, k, d, e) -> (h, k, e)>
#n1 = affine_map<(h, q, k, d, e) -> (h)>
#o1 = affine_map<(h, q, k, d, e) -> (h, q, e)>
// CHECK-LABEL: @both
// CHECK: scf.forall (%{{.+}}, %[[H:.+]]) in (5, 12)
// CHECK: attn.attention {{.*}} at(%[[H]], %{{.+}}, %c0{{.*}})
func.func @both(%q: tensor<12x640x64xf16>, %k: tensor<12x640x64xf16>, %v: tensor<12x640x64xf16>, %n: tensor<12xi32>, %o: tensor<12x640x64xf16>) -> tensor<12x640x64xf16> {
  %r = attn.attention ins(%q, %k, %v : tensor<12x640x64xf16>, tensor<12x640x64xf16>, tensor<12x640x64xf16>) captures(%n : tensor<12xi32>) outs(%o : tensor<12x640x64xf16>)
    mask(#attn.and<[#attn.causal, #attn.lengths<0>]>) plan(<phased, q = 128, k = 64, stages = 2>) {indexing_maps = [#q1, #k1, #v1, #n1, #o1], scale = 0.125 : f32} -> tensor<12x640x64xf16>
  return %r : tensor<12x640x64xf16>
}
