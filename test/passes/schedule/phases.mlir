// RUN: attn-opt %s -attn-phases -canonicalize -split-input-file | FileCheck %s

#o = affine_map<(b, s, p, j, c) -> (b, s, c)>
#w = affine_map<(b, s, p, j, c) -> (p, c, j)>
#y = affine_map<(b, s, p, j, c) -> (b, s, p, j)>
// A task has 96 rows of one batch item and one panel. It computes the init of its product.
// CHECK-LABEL: @projection(
// CHECK-SAME: %[[O:.*]]: tensor<2x?x768xf32>, %[[W:.*]]: tensor<12x768x64xf32>, %[[BIAS:.*]]: tensor<12x64xf32>)
// CHECK-NOT: linalg
// CHECK: scf.forall (%[[B:.*]], %[[I:.*]], %[[P:.*]]) = (0, 0, 0) to (2, %[[S:.*]], 12) step (1, 96, 1)
// CHECK: %[[ROWS:.*]] = affine.min {{.*}}(%[[I]])[%[[S]]]
// CHECK-DAG: %[[OB:.*]] = tensor.extract_slice %[[O]][%[[B]], %[[I]], 0] [1, %[[ROWS]], 768]
// CHECK-DAG: %[[WP:.*]] = tensor.extract_slice %[[W]][%[[P]], 0, 0] [1, 768, 64]
// CHECK: %[[INIT:.*]] = linalg.broadcast
// CHECK: linalg.contract {{.*}} ins(%[[OB]], %[[WP]] : {{.*}}) outs(%[[INIT]] :
func.func @projection(%o: tensor<2x?x768xf32>, %w: tensor<12x768x64xf32>, %b: tensor<12x64xf32>) -> tensor<2x?x12x64xf32> {
  %c1 = arith.constant 1 : index
  %s = tensor.dim %o, %c1 : tensor<2x?x768xf32>
  %e = tensor.empty(%s) : tensor<2x?x12x64xf32>
  %i = linalg.broadcast ins(%b : tensor<12x64xf32>) outs(%e : tensor<2x?x12x64xf32>) dimensions = [0, 1]
  %c = linalg.contract indexing_maps = [#o, #w, #y] ins(%o, %w : tensor<2x?x768xf32>, tensor<12x768x64xf32>) outs(%i : tensor<2x?x12x64xf32>) -> tensor<2x?x12x64xf32>
  return %c : tensor<2x?x12x64xf32>
}

// -----

#x = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (k, n)>
#y = affine_map<(s, n, k) -> (s, n)>
#id = affine_map<(s, n) -> (s, n)>
// A phase is a loop of tasks. Each product has a phase, which also contains the elementwise op after it. Values that
// both the sum and the second product read are computed once, in the first phase.
// CHECK-LABEL: @two_layers(
// CHECK: %[[FIRST:.*]] = scf.forall (%{{.*}}) = (0) to (480) step (96)
// CHECK: %[[C0:.*]] = linalg.contract
// CHECK: linalg.tanh ins(%[[C0]] :
// CHECK: scf.forall (%{{.*}}) = (0) to (480) step (96)
// CHECK-NOT: linalg.tanh
// CHECK-DAG: tensor.extract_slice %[[FIRST]]
// CHECK-DAG: tensor.extract_slice %[[FIRST]]
// CHECK: %[[C2:.*]] = linalg.contract
// CHECK: linalg.add ins(%{{.*}}, %[[C2]] :
func.func @two_layers(%x: tensor<480x64xf32>, %w: tensor<64x64xf32>, %u: tensor<64x64xf32>) -> tensor<480x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<480x64xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<480x64xf32>) -> tensor<480x64xf32>
  %c0 = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<480x64xf32>, tensor<64x64xf32>) outs(%i0 : tensor<480x64xf32>) -> tensor<480x64xf32>
  %e1 = tensor.empty() : tensor<480x64xf32>
  %t = linalg.tanh ins(%c0 : tensor<480x64xf32>) outs(%e1 : tensor<480x64xf32>) -> tensor<480x64xf32>
  %e2 = tensor.empty() : tensor<480x64xf32>
  %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<480x64xf32>) -> tensor<480x64xf32>
  %c2 = linalg.contract indexing_maps = [#x, #w, #y] ins(%t, %u : tensor<480x64xf32>, tensor<64x64xf32>) outs(%i2 : tensor<480x64xf32>) -> tensor<480x64xf32>
  %e3 = tensor.empty() : tensor<480x64xf32>
  %r = linalg.add ins(%t, %c2 : tensor<480x64xf32>, tensor<480x64xf32>) outs(%e3 : tensor<480x64xf32>) -> tensor<480x64xf32>
  return %r : tensor<480x64xf32>
}

// -----

// Dimensions that an op reduces are not divided among tasks.
// CHECK-LABEL: @softmax(
// CHECK: scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (2, 480) step (1, 96)
// CHECK: linalg.softmax dimension(2) ins(%{{.*}} : tensor<1x96x480xf32>)
func.func @softmax(%x: tensor<2x480x480xf32>, %e: tensor<2x480x480xf32>) -> tensor<2x480x480xf32> {
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x480x480xf32>) outs(%e : tensor<2x480x480xf32>) -> tensor<2x480x480xf32>
  return %p : tensor<2x480x480xf32>
}

// -----

// CHECK-LABEL: @vector(
// CHECK-NOT: scf.forall
// CHECK: linalg.tanh
func.func @vector(%x: tensor<480xf32>, %e: tensor<480xf32>) -> tensor<480xf32> {
  %p = linalg.tanh ins(%x : tensor<480xf32>) outs(%e : tensor<480xf32>) -> tensor<480xf32>
  return %p : tensor<480xf32>
}

// -----

#x = affine_map<(s, p, j, c) -> (s, c)>
#w = affine_map<(s, p, j, c) -> (p, c, j)>
#y = affine_map<(s, p, j, c) -> (s, p, j)>
// An op after a product in panels is in the tasks of the product, which have 96 rows of one panel each.
// CHECK-LABEL: @activation(
// CHECK: scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (480, 12) step (96, 1)
// CHECK: linalg.contract {{.*}} outs(%{{.*}} : tensor<96x1x64xf32>)
// CHECK: linalg.tanh
func.func @activation(%x: tensor<480x768xf32>, %w: tensor<12x768x64xf32>) -> tensor<480x12x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<480x12x64xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<480x12x64xf32>) -> tensor<480x12x64xf32>
  %c0 = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<480x768xf32>, tensor<12x768x64xf32>) outs(%i0 : tensor<480x12x64xf32>) -> tensor<480x12x64xf32>
  %e1 = tensor.empty() : tensor<480x12x64xf32>
  %t = linalg.tanh ins(%c0 : tensor<480x12x64xf32>) outs(%e1 : tensor<480x12x64xf32>) -> tensor<480x12x64xf32>
  return %t : tensor<480x12x64xf32>
}

// -----

#x = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (k, n)>
#y = affine_map<(s, n, k) -> (s, n)>
// If an op between a product and its sum reads the product, the product is not fused into the tasks of the sum.
// CHECK-LABEL: @read_between(
// CHECK: %[[C:.*]] = scf.forall
// CHECK: linalg.contract
// CHECK: tensor.expand_shape %[[C]]
// CHECK: scf.forall
// CHECK-NOT: linalg.contract
// CHECK: linalg.add
func.func @read_between(%x: tensor<480x64xf32>, %w: tensor<64x64xf32>) -> (tensor<5x96x64xf32>, tensor<480x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<480x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<480x64xf32>) -> tensor<480x64xf32>
  %c = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<480x64xf32>, tensor<64x64xf32>) outs(%i : tensor<480x64xf32>) -> tensor<480x64xf32>
  %v = tensor.expand_shape %c [[0, 1], [2]] output_shape [5, 96, 64] : tensor<480x64xf32> into tensor<5x96x64xf32>
  %s = linalg.add ins(%x, %c : tensor<480x64xf32>, tensor<480x64xf32>) outs(%e : tensor<480x64xf32>) -> tensor<480x64xf32>
  return %v, %s : tensor<5x96x64xf32>, tensor<480x64xf32>
}

// -----

// A task has one element of the first dimension, and the slice selects one element of the last dimension. The slice of
// the task keeps the first dimension and drops the last. The attribute #attn.causal loads the dialect attn, which
// defines the pattern.
// CHECK-LABEL: @last_selected(
// CHECK: %[[PART:.*]] = tensor.extract_slice %{{.*}} [1, 5, 6, 1] [1, 1, 1, 1] : tensor<4x5x6x2xf32> to tensor<1x5x6xf32>
// CHECK: linalg.exp ins(%[[PART]] : tensor<1x5x6xf32>)
func.func @last_selected(%x: tensor<4x5x6x2xf32>) -> tensor<4x5x6xf32> attributes {mask = #attn.causal} {
  %s = tensor.extract_slice %x[0, 0, 0, 1] [4, 5, 6, 1] [1, 1, 1, 1] : tensor<4x5x6x2xf32> to tensor<4x5x6xf32>
  %e = tensor.empty() : tensor<4x5x6xf32>
  %y = linalg.exp ins(%s : tensor<4x5x6xf32>) outs(%e : tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  return %y : tensor<4x5x6xf32>
}

// -----

#rows = affine_map<(s, n) -> (s)>
#all = affine_map<(s, n) -> (s, n)>

// A task computes the sums of its rows and the ops that read the sums. The product, which several ops read, is computed
// by earlier tasks.
// CHECK-LABEL: @normalise(
// CHECK: %[[C:.*]] = scf.forall (%{{.*}}) = (0) to (480) step (96)
// CHECK: linalg.contract
// CHECK: scf.forall (%[[I:.*]]) = (0) to (480) step (16)
// CHECK: %[[X:.*]] = tensor.extract_slice %[[C]][%[[I]], 0] [16, 64]
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[X]] : tensor<16x64xf32>)
// CHECK: %[[MEAN:.*]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<16xf32>)
// CHECK: %[[SQUARES:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[X]], %[[MEAN]] : tensor<16x64xf32>, tensor<16xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[MEAN]], %[[SQUARES]] :
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @normalise(%x: tensor<480x64xf32>, %w: tensor<64x64xf32>) -> tensor<480x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<480x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<480x64xf32>) -> tensor<480x64xf32>
  %c = linalg.contract indexing_maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>]
      ins(%x, %w : tensor<480x64xf32>, tensor<64x64xf32>) outs(%i : tensor<480x64xf32>) -> tensor<480x64xf32>
  %r = tensor.empty() : tensor<480xf32>
  %z = linalg.fill ins(%zero : f32) outs(%r : tensor<480xf32>) -> tensor<480xf32>
  %sum = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]} ins(%c : tensor<480x64xf32>) outs(%z : tensor<480xf32>) {
    ^bb0(%a: f32, %s: f32):
      %t = arith.addf %s, %a : f32
      linalg.yield %t : f32
  } -> tensor<480xf32>
  %n = arith.constant 64.0 : f32
  %mean = linalg.generic {indexing_maps = [affine_map<(s) -> (s)>, affine_map<(s) -> (s)>], iterator_types = ["parallel"]} ins(%sum : tensor<480xf32>) outs(%r : tensor<480xf32>) {
    ^bb0(%a: f32, %s: f32):
      %t = arith.divf %a, %n : f32
      linalg.yield %t : f32
  } -> tensor<480xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%r : tensor<480xf32>) -> tensor<480xf32>
  %squares = linalg.generic {indexing_maps = [#all, #rows, #rows], iterator_types = ["parallel", "reduction"]} ins(%c, %mean : tensor<480x64xf32>, tensor<480xf32>) outs(%z2 : tensor<480xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32):
      %d = arith.subf %a, %m : f32
      %d2 = arith.mulf %d, %d : f32
      %t = arith.addf %s, %d2 : f32
      linalg.yield %t : f32
  } -> tensor<480xf32>
  %y = linalg.generic {indexing_maps = [#all, #rows, #rows, #all], iterator_types = ["parallel", "parallel"]} ins(%c, %mean, %squares : tensor<480x64xf32>, tensor<480xf32>, tensor<480xf32>) outs(%e : tensor<480x64xf32>) {
    ^bb0(%a: f32, %m: f32, %v: f32, %o: f32):
      %d = arith.subf %a, %m : f32
      %t = arith.divf %d, %v : f32
      linalg.yield %t : f32
  } -> tensor<480x64xf32>
  return %y : tensor<480x64xf32>
}

// -----

// The tasks of all panels read the same rows, and each task would have to return them, so the op that computes the rows
// is not fused into the tasks.
// CHECK-LABEL: @read_by_all(
// CHECK: scf.forall
// CHECK: linalg.generic
// CHECK: scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (480, 12) step (96, 1)
// CHECK-NOT: linalg.tanh
func.func @read_by_all(%x: tensor<480x64xf32>, %w: tensor<12x64x64xf32>, %b: tensor<64xf32>) -> (tensor<480x12x64xf32>, tensor<480x64xf32>) {
  %e = tensor.empty() : tensor<480x64xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(s, n) -> (n)>, affine_map<(s, n) -> (s, n)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<64xf32>) outs(%e : tensor<480x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = math.tanh %a : f32
      linalg.yield %t : f32
  } -> tensor<480x64xf32>
  %f = tensor.empty() : tensor<480x12x64xf32>
  %i = linalg.generic {indexing_maps = [affine_map<(s, p, n) -> (s, n)>, affine_map<(s, p, n) -> (s, p, n)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<480x64xf32>) outs(%f : tensor<480x12x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
  } -> tensor<480x12x64xf32>
  %c = linalg.contract indexing_maps = [affine_map<(s, p, n, k) -> (s, k)>, affine_map<(s, p, n, k) -> (p, k, n)>, affine_map<(s, p, n, k) -> (s, p, n)>]
      ins(%x, %w : tensor<480x64xf32>, tensor<12x64x64xf32>) outs(%i : tensor<480x12x64xf32>) -> tensor<480x12x64xf32>
  return %c, %s : tensor<480x12x64xf32>, tensor<480x64xf32>
}

// -----

// The tasks of a slice would have to return rows that they do not compute, so the sum, which other ops read too, is not
// fused into the tasks.
// CHECK-LABEL: @rows_of_a_part(
// CHECK: scf.forall {{.*}} -> (tensor<480xf32>)
// CHECK: scf.forall (%{{.*}}) = (0) to (320) step (16) shared_outs(%{{[^,]*}}) -> (tensor<320x64xf32>)
#all = affine_map<(s, n) -> (s, n)>
#rows = affine_map<(s, n) -> (s)>
func.func @rows_of_a_part(%x: tensor<480x64xf32>) -> (tensor<320x64xf32>, tensor<480xf32>) {
  %zero = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<480xf32>
  %z = linalg.fill ins(%zero : f32) outs(%r : tensor<480xf32>) -> tensor<480xf32>
  %sum = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<480x64xf32>) outs(%z : tensor<480xf32>) {
    ^bb0(%a: f32, %s: f32):
      %t = arith.addf %s, %a : f32
      linalg.yield %t : f32
  } -> tensor<480xf32>
  %part = tensor.extract_slice %x[160, 0] [320, 64] [1, 1] : tensor<480x64xf32> to tensor<320x64xf32>
  %sums = tensor.extract_slice %sum[160] [320] [1] : tensor<480xf32> to tensor<320xf32>
  %e = tensor.empty() : tensor<320x64xf32>
  %r2 = tensor.empty() : tensor<320xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%r2 : tensor<320xf32>) -> tensor<320xf32>
  %squares = linalg.generic {indexing_maps = [#all, #rows, #rows], iterator_types = ["parallel", "reduction"]} ins(%part, %sums : tensor<320x64xf32>, tensor<320xf32>) outs(%z2 : tensor<320xf32>) {
    ^bb0(%a: f32, %m: f32, %s: f32):
      %d = arith.subf %a, %m : f32
      %t = arith.addf %s, %d : f32
      linalg.yield %t : f32
  } -> tensor<320xf32>
  %y = linalg.generic {indexing_maps = [#all, #rows, #rows, #all], iterator_types = ["parallel", "parallel"]} ins(%part, %sums, %squares : tensor<320x64xf32>, tensor<320xf32>, tensor<320xf32>) outs(%e : tensor<320x64xf32>) {
    ^bb0(%a: f32, %s: f32, %q: f32, %o: f32):
      %d = arith.subf %a, %s : f32
      %t = arith.mulf %d, %q : f32
      linalg.yield %t : f32
  } -> tensor<320x64xf32>
  return %y, %sum : tensor<320x64xf32>, tensor<480xf32>
}

// -----

// A task of a convolution computes 8 output channels, and 1500 elements of the image: all 32 columns of at most 46 rows,
// of which each task gets equally many. It reads two more rows and columns of its input.
// CHECK-LABEL: @convolution(
// CHECK: scf.forall (%{{.*}}, %[[O:.*]], %[[Y:.*]]) = (0, 0, 0) to (2, 64, 60) step (1, 8, 30)
// CHECK-DAG: tensor.extract_slice %{{.*}}[%{{.*}}, 0, %[[Y]], 0] [1, 40, 32, 34]
// CHECK-DAG: tensor.extract_slice %{{.*}}[%[[O]], 0, 0, 0] [8, 40, 3, 3]
// CHECK: linalg.broadcast
// CHECK: linalg.generic
// CHECK: linalg.tanh
func.func @convolution(%x: tensor<2x40x62x34xf32>, %w: tensor<64x40x3x3xf32>, %b: tensor<64xf32>) -> tensor<2x64x60x32xf32> {
  %e = tensor.empty() : tensor<2x64x60x32xf32>
  %i = linalg.broadcast ins(%b : tensor<64xf32>) outs(%e : tensor<2x64x60x32xf32>) dimensions = [0, 2, 3]
  %c = linalg.generic {indexing_maps = [affine_map<(n, o, y, x, c, j, i) -> (n, c, y + j, x + i)>, affine_map<(n, o, y, x, c, j, i) -> (o, c, j, i)>, affine_map<(n, o, y, x, c, j, i) -> (n, o, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x40x62x34xf32>, tensor<64x40x3x3xf32>) outs(%i : tensor<2x64x60x32xf32>) attrs = {attn.task = #attn.task<rows = 8, columns = 1500>} {
  ^bb0(%a: f32, %b0: f32, %s: f32):
    %p = arith.mulf %a, %b0 : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x64x60x32xf32>
  %t = linalg.tanh ins(%c : tensor<2x64x60x32xf32>) outs(%e : tensor<2x64x60x32xf32>) -> tensor<2x64x60x32xf32>
  return %t : tensor<2x64x60x32xf32>
}

// -----

// Tasks of a transposed normalisation do not repeat the sum of a group, which all of them read.
// CHECK-LABEL: @transposed_norm(
// CHECK: linalg.generic {{.*}}"reduction"
// CHECK: scf.forall (%{{.*}}) in (32)
// CHECK-NOT: "reduction"
// CHECK: linalg.transpose
func.func @transposed_norm(%x: tensor<4x8x32xf32>) -> tensor<32x4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(g, c, s) -> (g, c, s)>, affine_map<(g, c, s) -> (g)>], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%x : tensor<4x8x32xf32>) outs(%i : tensor<4xf32>) {
  ^bb0(%a: f32, %s: f32):
    %q = arith.mulf %a, %a : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  %inverse = linalg.generic {indexing_maps = [affine_map<(g) -> (g)>, affine_map<(g) -> (g)>], iterator_types = ["parallel"]}
      ins(%sum : tensor<4xf32>) outs(%e0 : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.rsqrt %a : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %e1 = tensor.empty() : tensor<4x8x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(g, c, s) -> (g, c, s)>, affine_map<(g, c, s) -> (g)>, affine_map<(g, c, s) -> (g, c, s)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %inverse : tensor<4x8x32xf32>, tensor<4xf32>) outs(%e1 : tensor<4x8x32xf32>) {
  ^bb0(%a: f32, %r: f32, %o: f32):
    %p = arith.mulf %a, %r : f32
    linalg.yield %p : f32
  } -> tensor<4x8x32xf32>
  %e2 = tensor.empty() : tensor<32x4x8xf32>
  %t = linalg.transpose ins(%y : tensor<4x8x32xf32>) outs(%e2 : tensor<32x4x8xf32>) permutation = [2, 0, 1]
  return %t : tensor<32x4x8xf32>
}

// -----

#x = affine_map<(b, y, x, n, j, c) -> (b, y, x, c)>
#w = affine_map<(b, y, x, n, j, c) -> (n, c, j)>
#o = affine_map<(b, y, x, n, j, c) -> (b, y, x, n, j)>
#v3 = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>
module attributes {attn.target = #v3} {
// The innermost loop over rows has 28 of the 96 rows, so that a task has three iterations of the next loop.
// CHECK-LABEL: @short_rows(
// CHECK: scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0) to (2, 28, 3) step (1, 3, 1)
// CHECK: linalg.contract {{.*}} ins(%{{.*}}, %{{.*}} : tensor<1x?x28x64xf32>,
func.func @short_rows(%x: tensor<2x28x28x64xf32>, %w: tensor<3x64x24xf32>, %e: tensor<2x28x28x3x24xf32>) -> tensor<2x28x28x3x24xf32> {
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 96>} ins(%x, %w : tensor<2x28x28x64xf32>, tensor<3x64x24xf32>) outs(%e : tensor<2x28x28x3x24xf32>) -> tensor<2x28x28x3x24xf32>
  return %c : tensor<2x28x28x3x24xf32>
}
// The number of sequences is known only at the call.
// CHECK-LABEL: @batch(
// CHECK: scf.forall (%{{.*}}, %{{.*}}) = (0, 0) to (%{{.*}}, 3) step (32, 1)
func.func @batch(%x: tensor<?x3x64xf32>, %w: tensor<3x64x24xf32>, %e: tensor<?x3x3x24xf32>) -> tensor<?x3x3x24xf32> {
  %c = linalg.contract indexing_maps = [affine_map<(b, y, n, j, c) -> (b, y, c)>, affine_map<(b, y, n, j, c) -> (n, c, j)>, affine_map<(b, y, n, j, c) -> (b, y, n, j)>] {attn.task = #attn.task<rows = 96>} ins(%x, %w : tensor<?x3x64xf32>, tensor<3x64x24xf32>) outs(%e : tensor<?x3x3x24xf32>) -> tensor<?x3x3x24xf32>
  return %c : tensor<?x3x3x24xf32>
}
// A loop without rows has step 1.
// CHECK-LABEL: @no_rows(
func.func @no_rows(%x: tensor<2x0x5x64xf32>, %w: tensor<64x48xf32>, %e: tensor<2x0x5x48xf32>) -> tensor<2x0x5x48xf32> {
  %c = linalg.contract indexing_maps = [affine_map<(b, y, x, n, c) -> (b, y, x, c)>, affine_map<(b, y, x, n, c) -> (c, n)>, affine_map<(b, y, x, n, c) -> (b, y, x, n)>] {attn.task = #attn.task<rows = 96>} ins(%x, %w : tensor<2x0x5x64xf32>, tensor<64x48xf32>) outs(%e : tensor<2x0x5x48xf32>) -> tensor<2x0x5x48xf32>
  return %c : tensor<2x0x5x48xf32>
}
}
