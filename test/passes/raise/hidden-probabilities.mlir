// RUN: attn-opt %s -attn-raise-attention -split-input-file -verify-diagnostics | FileCheck %s
// The graphs hide pairs in the scores, and also set the probabilities of these pairs to 0 after the softmax. The test
// covers passes/raise/HiddenPairs.cpp.

#sq = affine_map<(q, k, d) -> (q, d)>
#sk = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#k = affine_map<(q, k) -> (k)>
#id = affine_map<(q, k) -> (q, k)>

// CHECK-LABEL: @zeroed
// CHECK-NOT: empty_row
// CHECK: attn.attention
// CHECK-NOT: empty_row
// CHECK: arith.constant 0xFF800000 : f32
// CHECK-NOT: linalg.softmax
func.func @zeroed(%q: tensor<5x8xf32>, %hidden: tensor<7xi1>, %k: tensor<7x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %fill = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<5x8xf32>, tensor<7x8xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  %m = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %s : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %fill, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %p = linalg.softmax dimension(1) ins(%m : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %p : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %zero, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %oe = tensor.empty() : tensor<5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = linalg.matmul ins(%z, %k : tensor<5x7xf32>, tensor<7x8xf32>) outs(%of : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %o : tensor<5x8xf32>
}

// -----

#sq = affine_map<(q, k, d) -> (q, d)>
#sk = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#k = affine_map<(q, k) -> (k)>
#id = affine_map<(q, k) -> (q, k)>

// Without the zeros, a row whose scores all are the least float would average the values; with the zeros, it is 0.
// CHECK-LABEL: @zeroed_least
// CHECK-NOT: empty_row
// CHECK: attn.attention
// CHECK-NOT: empty_row
// CHECK: %[[HIDDEN:.*]] = arith.constant 0xFF800000 : f32
// CHECK: arith.select %{{.*}}, %[[HIDDEN]], %{{.*}} : f32
func.func @zeroed_least(%q: tensor<5x8xf32>, %hidden: tensor<7xi1>, %k: tensor<7x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %fill = arith.constant -3.40282347E+38 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<5x8xf32>, tensor<7x8xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  %m = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %s : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %fill, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %p = linalg.softmax dimension(1) ins(%m : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %p : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %n = arith.xori %h, %true : i1
    %t = arith.select %n, %a, %zero : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %oe = tensor.empty() : tensor<5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = linalg.matmul ins(%z, %k : tensor<5x7xf32>, tensor<7x8xf32>) outs(%of : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %o : tensor<5x8xf32>
}

// -----

#sq = affine_map<(q, k, d) -> (q, d)>
#sk = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#k = affine_map<(q, k) -> (k)>
#id = affine_map<(q, k) -> (q, k)>

// If every pair of a row is hidden, the probabilities of the row are NaN, and a multiplication by 0 leaves them NaN.
// CHECK-LABEL: @multiplied
// CHECK: attn.attention {{.*}}empty_row = #attn.empty_row<nan>
// CHECK-NOT: linalg.softmax
func.func @multiplied(%q: tensor<5x8xf32>, %hidden: tensor<7xi1>, %k: tensor<7x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %fill = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<5x8xf32>, tensor<7x8xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  %m = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %s : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %fill, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %p = linalg.softmax dimension(1) ins(%m : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %p : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %n = arith.xori %h, %true : i1
    %g = arith.uitofp %n : i1 to f32
    %t = arith.mulf %a, %g : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %oe = tensor.empty() : tensor<5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = linalg.matmul ins(%z, %k : tensor<5x7xf32>, tensor<7x8xf32>) outs(%of : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %o : tensor<5x8xf32>
}

// -----

#sq = affine_map<(q, k, d) -> (q, d)>
#sk = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#k = affine_map<(q, k) -> (k)>
#id = affine_map<(q, k) -> (q, k)>

// Other pairs may have scores as low as the fill, -1e4. The sink has the logarithm of the number of hidden pairs.
// CHECK-LABEL: @low
// CHECK-SAME: %{{.*}}: tensor<5x8xf32>, %[[HIDDEN:.*]]: tensor<7xi1>
// CHECK: %[[COUNT:.*]] = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[HIDDEN]] : tensor<7xi1>) outs(%{{.*}} : tensor<f32>)
// CHECK: %[[ONE:.*]] = arith.constant 1.0
// CHECK: arith.select %{{.*}}, %[[ONE]], %{{.*}} : f32
// CHECK: %[[SINK:.*]] = linalg.generic {{.*}} ins(%[[COUNT]] : tensor<f32>)
// CHECK: math.log
// CHECK: attn.attention {{.*}} sink(%[[SINK]] : tensor<f32>)
func.func @low(%q: tensor<5x8xf32>, %hidden: tensor<7xi1>, %k: tensor<7x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %fill = arith.constant -1.0E+4 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<5x8xf32>, tensor<7x8xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  %m = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %s : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %fill, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %p = linalg.softmax dimension(1) ins(%m : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %p : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %zero, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %oe = tensor.empty() : tensor<5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = linalg.matmul ins(%z, %k : tensor<5x7xf32>, tensor<7x8xf32>) outs(%of : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %o : tensor<5x8xf32>
}

// -----

#sq = affine_map<(q, k, d) -> (q, d)>
#sk = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#k = affine_map<(q, k) -> (k)>
#id = affine_map<(q, k) -> (q, k)>

// Not fused: the pairs whose probabilities are set to 0 are not those that the scores hide.
// CHECK-LABEL: @others
// CHECK: linalg.softmax
func.func @others(%q: tensor<5x8xf32>, %hidden: tensor<7xi1>, %k: tensor<7x8xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %fill = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<5x8xf32>, tensor<7x8xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  %m = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %s : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %fill, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  // expected-remark @below {{attention left unfused: expected the probabilities to be multiplied with values, got a use by the op at hidden-probabilities.mlir:}}
  %p = linalg.softmax dimension(1) ins(%m : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %p : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %a, %zero : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %oe = tensor.empty() : tensor<5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = linalg.matmul ins(%z, %k : tensor<5x7xf32>, tensor<7x8xf32>) outs(%of : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %o : tensor<5x8xf32>
}

// -----

#sq = affine_map<(q, k, d) -> (q, d)>
#sk = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#k = affine_map<(q, k) -> (k)>
#id = affine_map<(q, k) -> (q, k)>

// Not fused: a second fill hides other pairs. In a row that the two fills hide entirely, all pairs have the same
// probability; an attention that hid the zeroed pairs would give the other pairs a greater probability.
// CHECK-LABEL: @nested
// CHECK: linalg.softmax
func.func @nested(%q: tensor<5x8xf32>, %hidden: tensor<7xi1>, %k: tensor<7x8xf32>, %other: tensor<7xi1>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -3.40282347E+38 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<5x8xf32>, tensor<7x8xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  %m = linalg.generic {indexing_maps = [#k, #k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %other, %s : tensor<7xi1>, tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %p: i1, %a: f32, %out: f32):
    %n = arith.select %p, %low, %a : f32
    %t = arith.select %h, %low, %n : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  // expected-remark @below {{attention left unfused: expected the probabilities to be multiplied with values, got a use by the op at hidden-probabilities.mlir:}}
  %p = linalg.softmax dimension(1) ins(%m : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %p : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %zero, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %oe = tensor.empty() : tensor<5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = linalg.matmul ins(%z, %k : tensor<5x7xf32>, tensor<7x8xf32>) outs(%of : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %o : tensor<5x8xf32>
}

// -----

#sq = affine_map<(q, k, d) -> (q, d)>
#sk = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#k = affine_map<(q, k) -> (k)>
#id = affine_map<(q, k) -> (q, k)>

// Not fused: if the two fills hide a whole row, the pairs that only the inner fill hides have the probability NaN.
// CHECK-LABEL: @nested_infinite
// CHECK: linalg.softmax
func.func @nested_infinite(%q: tensor<5x8xf32>, %hidden: tensor<7xi1>, %k: tensor<7x8xf32>, %other: tensor<7xi1>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -3.40282347E+38 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<5x8xf32>, tensor<7x8xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  %m = linalg.generic {indexing_maps = [#k, #k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %other, %s : tensor<7xi1>, tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %p: i1, %a: f32, %out: f32):
    %n = arith.select %p, %inf, %a : f32
    %t = arith.select %h, %inf, %n : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  // expected-remark @below {{attention left unfused: expected the probabilities to be multiplied with values, got a use by the op at hidden-probabilities.mlir:}}
  %p = linalg.softmax dimension(1) ins(%m : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %p : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %zero, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %oe = tensor.empty() : tensor<5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = linalg.matmul ins(%z, %k : tensor<5x7xf32>, tensor<7x8xf32>) outs(%of : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %o : tensor<5x8xf32>
}

// -----

#sq = affine_map<(q, k, d) -> (q, d)>
#sk = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#k = affine_map<(q, k) -> (k)>
#id = affine_map<(q, k) -> (q, k)>

// Not fused: an addend of the scores may be as low as the fill.
// CHECK-LABEL: @penalty
// CHECK: linalg.softmax
func.func @penalty(%q: tensor<5x8xf32>, %hidden: tensor<7xi1>, %k: tensor<7x8xf32>, %other: tensor<7xi1>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -3.40282347E+38 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<5x8xf32>, tensor<7x8xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  %m = linalg.generic {indexing_maps = [#k, #k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %other, %s : tensor<7xi1>, tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %p: i1, %a: f32, %out: f32):
    %g = arith.uitofp %p : i1 to f32
    %n = arith.mulf %g, %low : f32
    %b = arith.addf %a, %n : f32
    %t = arith.select %h, %low, %b : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  // expected-remark @below {{attention left unfused: expected the probabilities to be multiplied with values, got a use by the op at hidden-probabilities.mlir:}}
  %p = linalg.softmax dimension(1) ins(%m : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %p : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %zero, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %oe = tensor.empty() : tensor<5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = linalg.matmul ins(%z, %k : tensor<5x7xf32>, tensor<7x8xf32>) outs(%of : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %o : tensor<5x8xf32>
}

// -----

#sq = affine_map<(q, k, d) -> (q, d)>
#sk = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#k = affine_map<(q, k) -> (k)>
#id = affine_map<(q, k) -> (q, k)>

// Not fused: a number that is subtracted from the scores makes them as low as the fill, and f32 cannot count the hidden
// pairs beside it.
// CHECK-LABEL: @subtracted
// CHECK: linalg.softmax
func.func @subtracted(%q: tensor<5x8xf32>, %hidden: tensor<7xi1>, %k: tensor<7x8xf32>, %other: tensor<7xi1>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -1.0E+9 : f32
  %much = arith.constant 1.0E+9 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<5x8xf32>, tensor<7x8xf32>) outs(%f : tensor<5x7xf32>) -> tensor<5x7xf32>
  %m = linalg.generic {indexing_maps = [#k, #k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %other, %s : tensor<7xi1>, tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %p: i1, %a: f32, %out: f32):
    %g = arith.uitofp %p : i1 to f32
    %n = arith.mulf %g, %much : f32
    %b = arith.subf %a, %n : f32
    %t = arith.select %h, %low, %b : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  // expected-remark @below {{attention left unfused: expected the probabilities to be multiplied with values, got a use by the op at hidden-probabilities.mlir:}}
  %p = linalg.softmax dimension(1) ins(%m : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %z = linalg.generic {indexing_maps = [#k, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%hidden, %p : tensor<7xi1>, tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %zero, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x7xf32>
  %oe = tensor.empty() : tensor<5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<5x8xf32>) -> tensor<5x8xf32>
  %o = linalg.matmul ins(%z, %k : tensor<5x7xf32>, tensor<7x8xf32>) outs(%of : tensor<5x8xf32>) -> tensor<5x8xf32>
  return %o : tensor<5x8xf32>
}
