// RUN: attn-opt %s -transform-interpreter -verify-diagnostics

// With parts of 48 keys, the second part would begin inside a word of the packed mask, which has the bits of 32 keys.
func.func @words(%words: tensor<3x48xi32>, %s: tensor<96x48xf32>, %m: tensor<48xf32>, %l: tensor<48xf32>, %a: tensor<64x48xf32>,
                 %q: tensor<64x48xf32>, %k: tensor<96x64xf32>, %v: tensor<96x64xf32>, %i: index) {
  // expected-error @+3 {{expected tiles that begin at a multiple of 32 keys, because a captured mask is packed}}
  // expected-error @+2 {{to tile operation}}
  // expected-error @+1 {{failed to generate tiling loops}}
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<64x48xf32>, tensor<96x64xf32>, tensor<96x64xf32>)
      captures(%words : tensor<3x48xi32>)
      outs(%s, %m, %l, %a : tensor<96x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>)
      at(%i, %i) mask(#attn.dense<0>) {capture_maps = [affine_map<(k, q) -> (k floordiv 32, q)>], scale = 0.125 : f32}
      -> tensor<96x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>
  return
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["attn.online_step"]} in %module : (!transform.any_op) -> !transform.any_op
    // expected-error @+1 {{could not tile reduction}}
    %fills:4, %part, %merge, %tasks = transform.structured.tile_reduction_using_forall %step by tile_sizes = [48]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
                                !transform.any_op, !transform.any_op)
    transform.yield
  }
}
