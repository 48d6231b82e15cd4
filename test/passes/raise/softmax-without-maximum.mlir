// RUN: attn-opt %s -attn-raise-softmax -verify-diagnostics

#id = affine_map<(q, k) -> (q, k)>
#row = affine_map<(q, k) -> (q)>
#p = affine_map<(q, e, k) -> (q, k)>
#v = affine_map<(q, e, k) -> (k, e)>
#o = affine_map<(q, e, k) -> (q, e)>

// The quotient is multiplied by values, as the probabilities of an attention are.
func.func @attention(%s: tensor<5x7xf32>, %values: tensor<7x4xf32>, %e: tensor<5x7xf32>, %re: tensor<5xf32>, %oe: tensor<5x4xf32>) -> tensor<5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%re : tensor<5xf32>) -> tensor<5xf32>
  %x = linalg.exp ins(%s : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %l = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<5x7xf32>) outs(%f : tensor<5xf32>) {
    ^bb0(%a: f32, %out: f32):
      %c = arith.addf %out, %a : f32
      linalg.yield %c : f32
  } -> tensor<5xf32>
  // expected-remark @below {{attention left unfused: expected a softmax, got exponentials divided by their sum; use softmax, or subtract the maximum from the scores first}}
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %l : tensor<5x7xf32>, tensor<5xf32>) outs(%e : tensor<5x7xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %c = arith.divf %a, %b : f32
      linalg.yield %c : f32
  } -> tensor<5x7xf32>
  %o = linalg.contract indexing_maps = [#p, #v, #o] ins(%p, %values : tensor<5x7xf32>, tensor<7x4xf32>) outs(%oe : tensor<5x4xf32>) -> tensor<5x4xf32>
  return %o : tensor<5x4xf32>
}

// Not an attention: nothing multiplies the quotient by values.
func.func @shares(%s: tensor<5x7xf32>, %e: tensor<5x7xf32>, %re: tensor<5xf32>) -> tensor<5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%re : tensor<5xf32>) -> tensor<5xf32>
  %x = linalg.exp ins(%s : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %l = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<5x7xf32>) outs(%f : tensor<5xf32>) {
    ^bb0(%a: f32, %out: f32):
      %c = arith.addf %out, %a : f32
      linalg.yield %c : f32
  } -> tensor<5xf32>
  %p = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %l : tensor<5x7xf32>, tensor<5xf32>) outs(%e : tensor<5x7xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %c = arith.divf %a, %b : f32
      linalg.yield %c : f32
  } -> tensor<5x7xf32>
  return %p : tensor<5x7xf32>
}
