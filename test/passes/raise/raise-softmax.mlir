// RUN: attn-opt %s -attn-raise-softmax -canonicalize | FileCheck %s

#id = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#unit = affine_map<(b, q, k) -> (b, q, 0)>

// The maximum has a dimension of size 1; the difference and the exponential are two ops.
// CHECK-LABEL: @spelled_out(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<2x?x7xf32>
// CHECK-NOT: linalg.generic
// CHECK: %[[P:.*]] = linalg.softmax dimension(2) ins(%[[S]] : tensor<2x?x7xf32>)
// CHECK-NEXT: return %[[P]]
func.func @spelled_out(%s: tensor<2x?x7xf32>) -> tensor<2x?x7xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %s, %c1 : tensor<2x?x7xf32>
  %e = tensor.empty(%n) : tensor<2x?x7xf32>
  %re = tensor.empty(%n) : tensor<2x?xf32>
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %mf = linalg.fill ins(%inf : f32) outs(%re : tensor<2x?xf32>) -> tensor<2x?xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x?x7xf32>) outs(%mf : tensor<2x?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x?xf32>
  %mu = tensor.expand_shape %m [[0], [1, 2]] output_shape [2, %n, 1] : tensor<2x?xf32> into tensor<2x?x1xf32>
  %d = linalg.generic {indexing_maps = [#id, #unit, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %mu : tensor<2x?x7xf32>, tensor<2x?x1xf32>) outs(%e : tensor<2x?x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.subf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x?x7xf32>
  %x = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%d : tensor<2x?x7xf32>) outs(%e : tensor<2x?x7xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = math.exp %a : f32
    linalg.yield %c : f32
  } -> tensor<2x?x7xf32>
  %lf = linalg.fill ins(%zero : f32) outs(%re : tensor<2x?xf32>) -> tensor<2x?xf32>
  %l = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<2x?x7xf32>) outs(%lf : tensor<2x?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.addf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x?xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %l : tensor<2x?x7xf32>, tensor<2x?xf32>) outs(%e : tensor<2x?x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x?x7xf32>
  return %p : tensor<2x?x7xf32>
}

// One op computes the difference and the exponential. The softmax is along the middle dimension.
// CHECK-LABEL: @in_the_middle(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<2x3x7xf32>
// CHECK: linalg.softmax dimension(1) ins(%[[S]] : tensor<2x3x7xf32>)
#column = affine_map<(b, q, k) -> (b, k)>
func.func @in_the_middle(%s: tensor<2x3x7xf32>, %e: tensor<2x3x7xf32>, %re: tensor<2x7xf32>) -> tensor<2x3x7xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %mf = linalg.fill ins(%inf : f32) outs(%re : tensor<2x7xf32>) -> tensor<2x7xf32>
  %m = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%s : tensor<2x3x7xf32>) outs(%mf : tensor<2x7xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %a, %out : f32
    linalg.yield %c : f32
  } -> tensor<2x7xf32>
  %x = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %m : tensor<2x3x7xf32>, tensor<2x7xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.subf %a, %b : f32
    %d = math.exp %c : f32
    linalg.yield %d : f32
  } -> tensor<2x3x7xf32>
  %lf = linalg.fill ins(%zero : f32) outs(%re : tensor<2x7xf32>) -> tensor<2x7xf32>
  %l = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x : tensor<2x3x7xf32>) outs(%lf : tensor<2x7xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.addf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x7xf32>
  %p = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %l : tensor<2x3x7xf32>, tensor<2x7xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x3x7xf32>
  return %p : tensor<2x3x7xf32>
}

// Three graphs that are almost a softmax: the maximum is that of another tensor; the maximum starts from 0; the sum of
// the exponentials is not along the dimension of the maximum.
// CHECK-NOT: linalg.softmax
#first = affine_map<(b, q, k) -> (q, k)>
func.func @other_maximum(%s: tensor<2x2x2xf32>, %t: tensor<2x2x2xf32>, %e: tensor<2x2x2xf32>, %re: tensor<2x2xf32>)
    -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %mf = linalg.fill ins(%inf : f32) outs(%re : tensor<2x2xf32>) -> tensor<2x2xf32>
  %lf = linalg.fill ins(%zero : f32) outs(%re : tensor<2x2xf32>) -> tensor<2x2xf32>
  %ofT = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%t : tensor<2x2x2xf32>) outs(%mf : tensor<2x2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x2xf32>
  %from0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x2x2xf32>) outs(%lf : tensor<2x2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x2xf32>
  %firstMax = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%s : tensor<2x2x2xf32>) outs(%mf : tensor<2x2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x2xf32>
  %x0, %x1, %x2 = linalg.generic {indexing_maps = [#id, #row, #row, #first, #id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %ofT, %from0, %firstMax : tensor<2x2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
      outs(%e, %e, %e : tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32, %out0: f32, %out1: f32, %out2: f32):
    %d0 = arith.subf %a, %b : f32
    %d1 = arith.subf %a, %c : f32
    %d2 = arith.subf %a, %d : f32
    %e0 = math.exp %d0 : f32
    %e1 = math.exp %d1 : f32
    %e2 = math.exp %d2 : f32
    linalg.yield %e0, %e1, %e2 : f32, f32, f32
  } -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>)
  %l0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x0 : tensor<2x2x2xf32>) outs(%lf : tensor<2x2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.addf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x2xf32>
  %l1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x1 : tensor<2x2x2xf32>) outs(%lf : tensor<2x2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.addf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x2xf32>
  %l2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x2 : tensor<2x2x2xf32>) outs(%lf : tensor<2x2xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.addf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x2xf32>
  %p0 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x0, %l0 : tensor<2x2x2xf32>, tensor<2x2xf32>) outs(%e : tensor<2x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x2x2xf32>
  %p1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x1, %l1 : tensor<2x2x2xf32>, tensor<2x2xf32>) outs(%e : tensor<2x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x2x2xf32>
  %p2 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x2, %l2 : tensor<2x2x2xf32>, tensor<2x2xf32>) outs(%e : tensor<2x2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x2x2xf32>
  return %p0, %p1, %p2 : tensor<2x2x2xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>
}

// The softmax of scores minus their maximum is the softmax of the scores.
// CHECK-LABEL: @shifted(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<2x5x7xf32>
// CHECK: linalg.softmax dimension(2) ins(%[[S]] : tensor<2x5x7xf32>)
func.func @shifted(%s: tensor<2x5x7xf32>, %e: tensor<2x5x7xf32>, %re: tensor<2x5xf32>) -> tensor<2x5x7xf32> {
  %inf = arith.constant 0xFF800000 : f32
  %mf = linalg.fill ins(%inf : f32) outs(%re : tensor<2x5xf32>) -> tensor<2x5xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x5x7xf32>) outs(%mf : tensor<2x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x5xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %m : tensor<2x5x7xf32>, tensor<2x5xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.subf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x5x7xf32>
  %p = linalg.softmax dimension(2) ins(%d : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  return %p : tensor<2x5x7xf32>
}

// A graph that divides by the sum of only some exponentials is not a softmax.
// CHECK-LABEL: @part_of_the_sum(
// CHECK-NOT: linalg.softmax
// CHECK: return
#qk = affine_map<(q, k) -> (q, k)>
#q = affine_map<(q, k) -> (q)>
func.func @part_of_the_sum(%x: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x9xf32>
  %re = tensor.empty() : tensor<4xf32>
  %m0 = linalg.fill ins(%ninf : f32) outs(%re : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.generic {indexing_maps = [#qk, #q], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x9xf32>) outs(%m0 : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.maximumf %a, %o : f32
    linalg.yield %b : f32
  } -> tensor<4xf32>
  %exp = linalg.generic {indexing_maps = [#qk, #q, #qk], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<4x9xf32>, tensor<4xf32>) outs(%e : tensor<4x9xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> tensor<4x9xf32>
  %part = tensor.extract_slice %exp[0, 0] [4, 5] [1, 1] : tensor<4x9xf32> to tensor<4x5xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%re : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#qk, #q], iterator_types = ["parallel", "reduction"]} ins(%part : tensor<4x5xf32>) outs(%s0 : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %b = arith.addf %a, %o : f32
    linalg.yield %b : f32
  } -> tensor<4xf32>
  %p = linalg.generic {indexing_maps = [#qk, #q, #qk], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : tensor<4x9xf32>, tensor<4xf32>) outs(%e : tensor<4x9xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %y = arith.divf %a, %b : f32
    linalg.yield %y : f32
  } -> tensor<4x9xf32>
  return %p : tensor<4x9xf32>
}

// exp(log_softmax(s)); the sum computes its exponentials itself.
// CHECK-LABEL: @of_log_softmax(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<2x3x7xf32>
// CHECK-NOT: linalg.generic
// CHECK: %[[P:.*]] = linalg.softmax dimension(2) ins(%[[S]] : tensor<2x3x7xf32>)
// CHECK-NEXT: return %[[P]]
func.func @of_log_softmax(%s: tensor<2x3x7xf32>, %e: tensor<2x3x7xf32>, %re: tensor<2x3xf32>) -> tensor<2x3x7xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %high = arith.constant 0x7F800000 : f32
  %lf = linalg.fill ins(%zero : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %mf = linalg.fill ins(%inf : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x3x7xf32>) outs(%mf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %m : tensor<2x3x7xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.subf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x3x7xf32>
  %l = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d : tensor<2x3x7xf32>) outs(%lf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %x = math.exp %a : f32
    %c = arith.addf %out, %x : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%d, %l : tensor<2x3x7xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %log = math.log %b : f32
    %c = arith.subf %a, %log : f32
    %x = math.exp %c : f32
    linalg.yield %x : f32
  } -> tensor<2x3x7xf32>
  return %p : tensor<2x3x7xf32>
}

// exp(s - logsumexp(s)), where 0 takes the place of an infinite maximum.
// CHECK-LABEL: @of_logsumexp(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<2x3x7xf32>
// CHECK-NOT: linalg.generic
// CHECK: %[[P:.*]] = linalg.softmax dimension(2) ins(%[[S]] : tensor<2x3x7xf32>)
// CHECK-NEXT: return %[[P]]
func.func @of_logsumexp(%s: tensor<2x3x7xf32>, %e: tensor<2x3x7xf32>, %re: tensor<2x3xf32>) -> tensor<2x3x7xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %high = arith.constant 0x7F800000 : f32
  %lf = linalg.fill ins(%zero : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %mf = linalg.fill ins(%inf : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x3x7xf32>) outs(%mf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %l = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s, %m : tensor<2x3x7xf32>, tensor<2x3xf32>) outs(%lf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %abs = math.absf %b : f32
    %isFinite = arith.cmpf une, %abs, %high : f32
    %max = arith.select %isFinite, %b, %zero : f32
    %d = arith.subf %a, %max : f32
    %x = math.exp %d : f32
    %c = arith.addf %out, %x : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %l, %m : tensor<2x3x7xf32>, tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %abs = math.absf %c : f32
    %isInfinite = arith.cmpf oeq, %abs, %high : f32
    %max = arith.select %isInfinite, %zero, %c : f32
    %log = math.log %b : f32
    %lse = arith.addf %max, %log : f32
    %d = arith.subf %a, %lse : f32
    %x = math.exp %d : f32
    linalg.yield %x : f32
  } -> tensor<2x3x7xf32>
  return %p : tensor<2x3x7xf32>
}

// Not if the maximum is added twice.
// CHECK-LABEL: @maximum_twice(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<2x3x7xf32>
// CHECK-NOT: linalg.softmax
// CHECK: return
func.func @maximum_twice(%s: tensor<2x3x7xf32>, %e: tensor<2x3x7xf32>, %re: tensor<2x3xf32>) -> tensor<2x3x7xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %high = arith.constant 0x7F800000 : f32
  %lf = linalg.fill ins(%zero : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %mf = linalg.fill ins(%inf : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x3x7xf32>) outs(%mf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %l = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s, %m : tensor<2x3x7xf32>, tensor<2x3xf32>) outs(%lf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %abs = math.absf %b : f32
    %isFinite = arith.cmpf une, %abs, %high : f32
    %max = arith.select %isFinite, %b, %zero : f32
    %d = arith.subf %a, %max : f32
    %x = math.exp %d : f32
    %c = arith.addf %out, %x : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %l, %m : tensor<2x3x7xf32>, tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %abs = math.absf %c : f32
    %isInfinite = arith.cmpf oeq, %abs, %high : f32
    %max = arith.select %isInfinite, %zero, %c : f32
    %log = math.log %b : f32
    %lse = arith.addf %max, %log : f32
    %more = arith.addf %lse, %max : f32
    %d = arith.subf %a, %more : f32
    %x = math.exp %d : f32
    linalg.yield %x : f32
  } -> tensor<2x3x7xf32>
  return %p : tensor<2x3x7xf32>
}

// Not if the maximum is that of the magnitudes.
// CHECK-LABEL: @maximum_of_magnitudes(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<2x3x7xf32>
// CHECK-NOT: linalg.softmax
// CHECK: return
func.func @maximum_of_magnitudes(%s: tensor<2x3x7xf32>, %e: tensor<2x3x7xf32>, %re: tensor<2x3xf32>) -> tensor<2x3x7xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %high = arith.constant 0x7F800000 : f32
  %lf = linalg.fill ins(%zero : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %mf = linalg.fill ins(%inf : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x3x7xf32>) outs(%mf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %magnitude = math.absf %a : f32
    %c = arith.maximumf %out, %magnitude : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %l = linalg.generic {indexing_maps = [#id, #row, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s, %m : tensor<2x3x7xf32>, tensor<2x3xf32>) outs(%lf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %abs = math.absf %b : f32
    %isFinite = arith.cmpf une, %abs, %high : f32
    %max = arith.select %isFinite, %b, %zero : f32
    %d = arith.subf %a, %max : f32
    %x = math.exp %d : f32
    %c = arith.addf %out, %x : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %l, %m : tensor<2x3x7xf32>, tensor<2x3xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %out: f32):
    %abs = math.absf %c : f32
    %isInfinite = arith.cmpf oeq, %abs, %high : f32
    %max = arith.select %isInfinite, %zero, %c : f32
    %log = math.log %b : f32
    %lse = arith.addf %max, %log : f32
    %d = arith.subf %a, %lse : f32
    %x = math.exp %d : f32
    linalg.yield %x : f32
  } -> tensor<2x3x7xf32>
  return %p : tensor<2x3x7xf32>
}

// exp2(3 * (s - max(s))) is exp(3 ln(2) * (s - max(s))).
// CHECK-LABEL: @exp2(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<2x3x7xf32>
// CHECK: %[[SCALED:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<2x3x7xf32>)
// CHECK: arith.mulf %{{.*}}, %cst
// CHECK: linalg.softmax dimension(2) ins(%[[SCALED]] : tensor<2x3x7xf32>)
func.func @exp2(%s: tensor<2x3x7xf32>, %e: tensor<2x3x7xf32>, %re: tensor<2x3xf32>) -> tensor<2x3x7xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %high = arith.constant 0x7F800000 : f32
  %lf = linalg.fill ins(%zero : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %mf = linalg.fill ins(%inf : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x3x7xf32>) outs(%mf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %three = arith.constant 3.0 : f32
  %x = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %m : tensor<2x3x7xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %y = arith.mulf %d, %three : f32
    %c = math.exp2 %y : f32
    linalg.yield %c : f32
  } -> tensor<2x3x7xf32>
  %l = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<2x3x7xf32>) outs(%lf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.addf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %l : tensor<2x3x7xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x3x7xf32>
  return %p : tensor<2x3x7xf32>
}

// Not with a negative factor: the greatest score would have the least exponential.
// CHECK-LABEL: @negative(
// CHECK-SAME: %[[S:[a-z0-9]*]]: tensor<2x3x7xf32>
// CHECK-NOT: linalg.softmax
// CHECK: return
func.func @negative(%s: tensor<2x3x7xf32>, %e: tensor<2x3x7xf32>, %re: tensor<2x3xf32>) -> tensor<2x3x7xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %high = arith.constant 0x7F800000 : f32
  %lf = linalg.fill ins(%zero : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %mf = linalg.fill ins(%inf : f32) outs(%re : tensor<2x3xf32>) -> tensor<2x3xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x3x7xf32>) outs(%mf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.maximumf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %three = arith.constant -3.0 : f32
  %x = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %m : tensor<2x3x7xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %d = arith.subf %a, %b : f32
    %y = arith.mulf %d, %three : f32
    %c = math.exp2 %y : f32
    linalg.yield %c : f32
  } -> tensor<2x3x7xf32>
  %l = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<2x3x7xf32>) outs(%lf : tensor<2x3xf32>) {
  ^bb0(%a: f32, %out: f32):
    %c = arith.addf %out, %a : f32
    linalg.yield %c : f32
  } -> tensor<2x3xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %l : tensor<2x3x7xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3x7xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.divf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x3x7xf32>
  return %p : tensor<2x3x7xf32>
}
