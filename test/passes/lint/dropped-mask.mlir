// RUN: attn-opt %s -attn-lint-dropped-mask -verify-diagnostics -split-input-file

#bqd = affine_map<(b, q, k, d) -> (b, q, d)>
#bkd = affine_map<(b, q, k, d) -> (b, k, d)>
#bqk = affine_map<(b, q, k, d) -> (b, q, k)>
#id = affine_map<(b, q, k) -> (b, q, k)>
#key = affine_map<(b, q, k) -> (b, 0, k)>

func.func @fill_of_products(%x: tensor<?x?x8xf32>, %hidden: tensor<?x1x?xi1>, %zero: tensor<?x?x?xf32>, %empty: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  %inf = arith.constant 0xFF800000 : f32
  %c = arith.constant 0.5 : f32
  %s = linalg.contract indexing_maps = [#bqd, #bkd, #bqk] ins(%x, %x : tensor<?x?x8xf32>, tensor<?x?x8xf32>) outs(%zero : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  // expected-warning @below {{masked scores are dropped, so the mask changes nothing; assign them, as in scores = scores.masked_fill(...)}}
  %masked = linalg.generic {indexing_maps = [#id, #key, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %hidden : tensor<?x?x?xf32>, tensor<?x1x?xi1>) outs(%empty : tensor<?x?x?xf32>) {
  ^bb0(%e: f32, %h: i1, %o: f32):
    %f = arith.select %h, %inf, %e : f32
    linalg.yield %f : f32
  } -> tensor<?x?x?xf32>
  // An op that masks the dropped value again gives no second finding.
  %again = linalg.generic {indexing_maps = [#id, #key, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%masked, %hidden : tensor<?x?x?xf32>, tensor<?x1x?xi1>) outs(%empty : tensor<?x?x?xf32>) {
  ^bb0(%e: f32, %h: i1, %o: f32):
    %f = arith.select %h, %inf, %e : f32
    linalg.yield %f : f32
  } -> tensor<?x?x?xf32>
  %scaled = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<?x?x?xf32>) outs(%empty : tensor<?x?x?xf32>) {
  ^bb0(%e: f32, %o: f32):
    %f = arith.mulf %e, %c : f32
    linalg.yield %f : f32
  } -> tensor<?x?x?xf32>
  %p = linalg.softmax dimension(2) ins(%scaled : tensor<?x?x?xf32>) outs(%empty : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  return %p : tensor<?x?x?xf32>
}

// -----

#qd = affine_map<(q, k, d) -> (q, d)>
#kd = affine_map<(q, k, d) -> (k, d)>
#qk = affine_map<(q, k, d) -> (q, k)>
#id = affine_map<(q, k) -> (q, k)>

func.func @sum_with_bias(%x: tensor<9x8xf32>, %bias: tensor<9x9xf32>, %zero: tensor<9x9xf32>, %empty: tensor<9x9xf32>) -> tensor<9x9xf32> {
  %s = linalg.contract indexing_maps = [#qd, #kd, #qk] ins(%x, %x : tensor<9x8xf32>, tensor<9x8xf32>) outs(%zero : tensor<9x9xf32>) -> tensor<9x9xf32>
  // expected-warning @below {{masked scores are dropped}}
  %masked = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%bias, %s : tensor<9x9xf32>, tensor<9x9xf32>) outs(%empty : tensor<9x9xf32>) {
  ^bb0(%h: f32, %e: f32, %o: f32):
    %f = arith.addf %h, %e : f32
    linalg.yield %f : f32
  } -> tensor<9x9xf32>
  %p = linalg.softmax dimension(1) ins(%s : tensor<9x9xf32>) outs(%empty : tensor<9x9xf32>) -> tensor<9x9xf32>
  return %p : tensor<9x9xf32>
}

// -----

#qd = affine_map<(q, k, d) -> (q, d)>
#kd = affine_map<(q, k, d) -> (k, d)>
#qk = affine_map<(q, k, d) -> (q, k)>
#id = affine_map<(q, k) -> (q, k)>

// No finding: a mask that is used, an op that masks nothing, and fills of values that are not scores.
func.func @used(%x: tensor<9x8xf32>, %hidden: tensor<9x9xi1>, %other: tensor<9x9xf32>, %zero: tensor<9x9xf32>, %empty: tensor<9x9xf32>) -> (tensor<9x9xf32>, tensor<9x9xf32>) {
  %inf = arith.constant 0xFF800000 : f32
  %s = linalg.contract indexing_maps = [#qd, #kd, #qk] ins(%x, %x : tensor<9x8xf32>, tensor<9x8xf32>) outs(%zero : tensor<9x9xf32>) -> tensor<9x9xf32>
  %masked = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %hidden : tensor<9x9xf32>, tensor<9x9xi1>) outs(%empty : tensor<9x9xf32>) {
  ^bb0(%e: f32, %h: i1, %o: f32):
    %f = arith.select %h, %inf, %e : f32
    linalg.yield %f : f32
  } -> tensor<9x9xf32>
  %exp = linalg.exp ins(%s : tensor<9x9xf32>) outs(%empty : tensor<9x9xf32>) -> tensor<9x9xf32>
  %filled = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%other, %hidden : tensor<9x9xf32>, tensor<9x9xi1>) outs(%empty : tensor<9x9xf32>) {
  ^bb0(%e: f32, %h: i1, %o: f32):
    %f = arith.select %h, %inf, %e : f32
    linalg.yield %f : f32
  } -> tensor<9x9xf32>
  %p = linalg.softmax dimension(1) ins(%masked : tensor<9x9xf32>) outs(%empty : tensor<9x9xf32>) -> tensor<9x9xf32>
  %n = linalg.softmax dimension(1) ins(%other : tensor<9x9xf32>) outs(%empty : tensor<9x9xf32>) -> tensor<9x9xf32>
  return %p, %n : tensor<9x9xf32>, tensor<9x9xf32>
}
