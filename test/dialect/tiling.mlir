// RUN: attn-opt %s -transform-interpreter -canonicalize -cse -split-input-file | FileCheck %s

// Loops over keys and queries carry the state of the online softmax from tile to tile. The origin moves with the tile,
// captured operands are sliced as their maps say, and the operands to prefetch for the next step are dropped.
// CHECK-DAG:   #[[SIZE:.*]] = affine_map<(d0) -> (-d0 + 100, 32)>
// CHECK-DAG:   #[[MOVE:.*]] = affine_map<(d0)[s0] -> (d0 + s0)>
// CHECK-LABEL: @loops
// CHECK-SAME:    %[[BIAS:[^:]*]]: tensor<48x100xf32>, %[[SLOPE:[^:]*]]: tensor<48xf32>, %[[I:[^:]*]]: index, %[[J:[^:]*]]: index
// CHECK:       scf.for %[[K:.*]] = %c0 to %c100 step %c32 iter_args(%[[S0:.*]] = %{{.*}}, %[[M0:.*]] = %{{.*}}, %[[L0:.*]] = %{{.*}}, %[[A0:.*]] = %{{.*}})
// CHECK:         scf.for %[[Q:.*]] = %c0 to %c48 step %c16 iter_args(%[[S:.*]] = %[[S0]], %[[M:.*]] = %[[M0]], %[[L:.*]] = %[[L0]], %[[A:.*]] = %[[A0]])
// CHECK:           %[[KS:.*]] = affine.min #[[SIZE]](%[[K]])
// CHECK-DAG:       %[[QT:.*]] = tensor.extract_slice %{{.*}}[0, %[[Q]]] [64, 16] [1, 1] : tensor<64x48xf32>
// CHECK-DAG:       %[[KT:.*]] = tensor.extract_slice %{{.*}}[%[[K]], 0] [%[[KS]], 64] [1, 1] : tensor<100x64xf32>
// CHECK-DAG:       %[[VT:.*]] = tensor.extract_slice %{{.*}}[%[[K]], 0] [%[[KS]], 8] [1, 1] : tensor<100x8xf32>
// CHECK-DAG:       %[[BT:.*]] = tensor.extract_slice %[[BIAS]][%[[Q]], %[[K]]] [16, %[[KS]]] [1, 1]
// CHECK-DAG:       %[[ST:.*]] = tensor.extract_slice %[[SLOPE]][%[[Q]]] [16] [1]
// CHECK-DAG:       %[[SCORES:.*]] = tensor.extract_slice %[[S]][%[[K]], %[[Q]]] [%[[KS]], 16] [1, 1]
// CHECK-DAG:       %[[MT:.*]] = tensor.extract_slice %[[M]][%[[Q]]] [16] [1]
// CHECK-DAG:       %[[LT:.*]] = tensor.extract_slice %[[L]][%[[Q]]] [16] [1]
// CHECK-DAG:       %[[AT:.*]] = tensor.extract_slice %[[A]][0, %[[Q]]] [8, 16] [1, 1]
// CHECK-DAG:       %[[Q0:.*]] = affine.apply #[[MOVE]](%[[Q]])[%[[I]]]
// CHECK-DAG:       %[[K0:.*]] = affine.apply #[[MOVE]](%[[K]])[%[[J]]]
// CHECK:           %[[R:.*]]:4 = attn.online_step ins(%[[QT]], %[[KT]], %[[VT]] : {{[^)]*}}) captures(%[[BT]], %[[ST]] : {{[^)]*}})
// CHECK-SAME:        outs(%[[SCORES]], %[[MT]], %[[LT]], %[[AT]] : {{[^)]*}}) at(%[[Q0]], %[[K0]]) mask(#attn.causal) {capture_maps
// CHECK:             attn.yield
// CHECK:           tensor.insert_slice %[[R]]#1 into %[[M]][%[[Q]]] [16] [1]
// CHECK:           tensor.insert_slice %[[R]]#3 into %[[A]][0, %[[Q]]] [8, 16] [1, 1]
func.func @loops(%bias: tensor<48x100xf32>, %slope: tensor<48xf32>, %i: index, %j: index,
                 %q: tensor<64x48xf32>, %k: tensor<100x64xf32>, %v: tensor<100x8xf32>, %s: tensor<100x48xf32>,
                 %m: tensor<48xf32>, %l: tensor<48xf32>, %a: tensor<8x48xf32>) -> (tensor<48xf32>, tensor<48xf32>, tensor<8x48xf32>) {
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<64x48xf32>, tensor<100x64xf32>, tensor<100x8xf32>)
      captures(%bias, %slope : tensor<48x100xf32>, tensor<48xf32>)
      outs(%s, %m, %l, %a : tensor<100x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<8x48xf32>)
      at(%i, %j) prefetch(%v : tensor<100x8xf32>) mask(#attn.causal)
      {capture_maps = [affine_map<(k, q) -> (q, k)>, affine_map<(k, q) -> (q)>], scale = 0.125 : f32} score {
      ^bb0(%qi: index, %ki: index, %x: f32, %b: f32, %t: f32):
        %y = arith.mulf %x, %t : f32
        %z = arith.addf %y, %b : f32
        attn.yield %z : f32
      } -> tensor<100x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<8x48xf32>
  return %r#1, %r#2, %r#3 : tensor<48xf32>, tensor<48xf32>, tensor<8x48xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["attn.online_step"]} in %module : (!transform.any_op) -> !transform.any_op
    %tile, %loops:2 = transform.structured.tile_using_for %step tile_sizes [32, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// Each task computes the state of a part of the keys. The merge adds these states to the initial state, with the scale
// of the step. The last part has fewer keys. The scores of a part are written to the rows of its own keys.
// CHECK-DAG:   #[[KEYS:.*]] = affine_map<(d0) -> (-d0 + 512, 150)>
// CHECK-DAG:   #[[PART:.*]] = affine_map<()[s0] -> (s0 floordiv 150)>
// CHECK-LABEL: @parts
// CHECK-SAME:    %[[S:[^:]*]]: tensor<512x48xf32>, %[[M:[^:]*]]: tensor<48xf32>, %[[L:[^:]*]]: tensor<48xf32>, %[[A:[^:]*]]: tensor<64x48xf32>
// CHECK-DAG:   %[[LOWEST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG:   %[[MS0:.*]] = linalg.fill ins(%[[LOWEST]] : f32) outs(%{{.*}} : tensor<4x48xf32>)
// CHECK-DAG:   %[[LS0:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<4x48xf32>)
// CHECK-DAG:   %[[AS0:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%{{.*}} : tensor<4x64x48xf32>)
// CHECK:       %[[R:.*]]:3 = scf.forall (%[[K:.*]]) = (0) to (512) step (150)
// CHECK-SAME:    shared_outs(%[[MS:.*]] = %[[MS0]], %[[LS:.*]] = %[[LS0]], %[[AS:.*]] = %[[AS0]])
// CHECK-DAG:     %[[KS:.*]] = affine.min #[[KEYS]](%[[K]])
// CHECK-DAG:     %[[N:.*]] = affine.apply #[[PART]]()[%[[K]]]
// CHECK-DAG:     %[[ST:.*]] = tensor.extract_slice %[[S]][%[[K]], 0] [%[[KS]], 48] [1, 1] : tensor<512x48xf32> to tensor<?x48xf32>
// CHECK-DAG:     %[[MT:.*]] = tensor.extract_slice %[[MS]][%[[N]], 0] [1, 48] [1, 1] : tensor<4x48xf32> to tensor<48xf32>
// CHECK-DAG:     %[[LT:.*]] = tensor.extract_slice %[[LS]][%[[N]], 0] [1, 48] [1, 1] : tensor<4x48xf32> to tensor<48xf32>
// CHECK-DAG:     %[[AT:.*]] = tensor.extract_slice %[[AS]][%[[N]], 0, 0] [1, 64, 48] [1, 1, 1] : tensor<4x64x48xf32> to tensor<64x48xf32>
// CHECK:         %[[T:.*]]:4 = attn.online_step {{.*}} outs(%[[ST]], %[[MT]], %[[LT]], %[[AT]] :
// CHECK:         scf.forall.in_parallel
// CHECK:           tensor.parallel_insert_slice %[[T]]#1 into %[[MS]][%[[N]], 0] [1, 48] [1, 1] : tensor<48xf32> into tensor<4x48xf32>
// CHECK:           tensor.parallel_insert_slice %[[T]]#3 into %[[AS]][%[[N]], 0, 0] [1, 64, 48] [1, 1, 1] : tensor<64x48xf32> into tensor<4x64x48xf32>
// CHECK:       attn.online_merge ins(%[[R]]#0, %[[R]]#1, %[[R]]#2 : {{[^)]*}}) outs(%[[M]], %[[L]], %[[A]] : {{[^)]*}}) {scale = 1.250000e-01 : f32}
func.func @parts(%s: tensor<512x48xf32>, %m: tensor<48xf32>, %l: tensor<48xf32>, %a: tensor<64x48xf32>,
                 %q: tensor<64x48xf32>, %k: tensor<512x64xf32>, %v: tensor<512x64xf32>, %i: index)
    -> (tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>) {
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<64x48xf32>, tensor<512x64xf32>, tensor<512x64xf32>)
      outs(%s, %m, %l, %a : tensor<512x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>)
      at(%i, %i) mask(#attn.causal) {capture_maps = [], scale = 0.125 : f32}
      -> tensor<512x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>
  return %r#1, %r#2, %r#3 : tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["attn.online_step"]} in %module : (!transform.any_op) -> !transform.any_op
    %fills:4, %part, %merge, %tasks = transform.structured.tile_reduction_using_forall %step by tile_sizes = [150]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
                                !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A sequential loop adds every tile of keys to part 0. With a score region, the scale of the merge is 1.
// CHECK-LABEL: @sequential
// CHECK:       %[[R:.*]]:4 = scf.for %[[K:.*]] = %c0 to %c512 step %c128 iter_args(%{{[^,]*}}, %[[MS:[^ ]*]] = %{{.*}},
// CHECK:         tensor.extract_slice %[[MS]][0, 0] [1, 48] [1, 1] : tensor<128x48xf32> to tensor<48xf32>
// CHECK:         %[[T:.*]]:4 = attn.online_step
// CHECK:         tensor.insert_slice %[[T]]#1 into %[[MS]][0, 0] [1, 48] [1, 1] : tensor<48xf32> into tensor<128x48xf32>
// CHECK:       attn.online_merge ins(%[[R]]#1, {{.*}} {scale = 1.000000e+00 : f32}
func.func @sequential(%s: tensor<512x48xf32>, %m: tensor<48xf32>, %l: tensor<48xf32>, %a: tensor<64x48xf32>,
                      %q: tensor<64x48xf32>, %k: tensor<512x64xf32>, %v: tensor<512x64xf32>, %i: index)
    -> (tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>) {
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<64x48xf32>, tensor<512x64xf32>, tensor<512x64xf32>)
      outs(%s, %m, %l, %a : tensor<512x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>)
      at(%i, %i) {capture_maps = [], scale = 0.125 : f32} score {
      ^bb0(%qi: index, %ki: index, %x: f32):
        %y = math.tanh %x : f32
        attn.yield %y : f32
      } -> tensor<512x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>
  return %r#1, %r#2, %r#3 : tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["attn.online_step"]} in %module : (!transform.any_op) -> !transform.any_op
    %fills:4, %part, %merge, %loop = transform.structured.tile_reduction_using_for %step by tile_sizes = [128]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
                                !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// A part of 128 keys begins at a whole word of the packed mask and has four words.
// CHECK-DAG:   #[[KEY:.*]] = affine_map<(d0) -> (d0 * 128)>
// CHECK-DAG:   #[[WORD:.*]] = affine_map<(d0) -> (d0 * 4)>
// CHECK-LABEL: @words
// CHECK-SAME:    %[[WORDS:[^:]*]]: tensor<16x48xi32>
// CHECK:       scf.forall (%[[N:.*]]) in (4)
// CHECK-DAG:     %[[W:.*]] = affine.apply #[[WORD]](%[[N]])
// CHECK:         %[[T:.*]] = tensor.extract_slice %[[WORDS]][%[[W]], 0] [4, 48] [1, 1]
// CHECK:         attn.online_step {{.*}} captures(%[[T]] : tensor<4x48xi32>)
func.func @words(%words: tensor<16x48xi32>, %s: tensor<512x48xf32>, %m: tensor<48xf32>, %l: tensor<48xf32>, %a: tensor<64x48xf32>,
                 %q: tensor<64x48xf32>, %k: tensor<512x64xf32>, %v: tensor<512x64xf32>, %i: index)
    -> (tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>) {
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<64x48xf32>, tensor<512x64xf32>, tensor<512x64xf32>)
      captures(%words : tensor<16x48xi32>)
      outs(%s, %m, %l, %a : tensor<512x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>)
      at(%i, %i) mask(#attn.dense<0>) {capture_maps = [affine_map<(k, q) -> (k floordiv 32, q)>], scale = 0.125 : f32}
      -> tensor<512x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>
  return %r#1, %r#2, %r#3 : tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %step = transform.structured.match ops{["attn.online_step"]} in %module : (!transform.any_op) -> !transform.any_op
    %fills:4, %part, %merge, %tasks = transform.structured.tile_reduction_using_forall %step by num_threads = [4]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
                                !transform.any_op, !transform.any_op)
    transform.yield
  }
}

// -----

// CHECK-DAG:   #[[KEY:.*]] = affine_map<(d0) -> (d0 * 64)>
// CHECK-DAG:   #[[QUERY:.*]] = affine_map<(d0) -> (d0 * 16)>
// CHECK-DAG:   #[[WORD:.*]] = affine_map<(d0) -> (d0 * 2)>
// CHECK-LABEL: @probabilities
// CHECK-SAME:    %[[WORDS:[^:]*]]: tensor<16x48xi32>, %[[M:[^:]*]]: tensor<48xf32>
// CHECK:       scf.forall (%[[I:.*]], %[[J:.*]]) in (8, 3) shared_outs(%[[P:.*]] = %{{.*}})
// CHECK-DAG:     %[[K:.*]] = affine.apply #[[KEY]](%[[I]])
// CHECK-DAG:     %[[Q:.*]] = affine.apply #[[QUERY]](%[[J]])
// CHECK-DAG:     %[[W:.*]] = affine.apply #[[WORD]](%[[I]])
// CHECK-DAG:     %[[MT:.*]] = tensor.extract_slice %[[M]][%[[Q]]] [16] [1]
// CHECK-DAG:     %[[T:.*]] = tensor.extract_slice %[[WORDS]][%[[W]], %[[Q]]] [2, 16] [1, 1]
// CHECK:         attn.online_probabilities ins(%{{.*}}, %{{.*}}, %[[MT]], {{.*}} captures(%[[T]] : tensor<2x16xi32>)
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[P]][%[[K]], %[[Q]]] [64, 16] [1, 1]
func.func @probabilities(%words: tensor<16x48xi32>, %m: tensor<48xf32>, %l: tensor<48xf32>, %q: tensor<64x48xf32>, %k: tensor<512x64xf32>,
                         %e: tensor<512x48xf32>, %i: index) -> tensor<512x48xf32> {
  %p = attn.online_probabilities ins(%q, %k, %m, %l : tensor<64x48xf32>, tensor<512x64xf32>, tensor<48xf32>, tensor<48xf32>)
      captures(%words : tensor<16x48xi32>) outs(%e : tensor<512x48xf32>)
      at(%i, %i) mask(#attn.dense<0>) {capture_maps = [affine_map<(k, q) -> (k floordiv 32, q)>], scale = 0.125 : f32}
      -> tensor<512x48xf32>
  return %p : tensor<512x48xf32>
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
    %op = transform.structured.match ops{["attn.online_probabilities"]} in %module : (!transform.any_op) -> !transform.any_op
    %tile, %loop = transform.structured.tile_using_forall %op tile_sizes [64, 16]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.yield
  }
}
