// RUN: attn-opt %s -attn-raise-attention -verify-diagnostics | FileCheck %s

// These graphs are almost an attention. They stay unfused, and a remark says why.
// CHECK-NOT: attn.attention

#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#each = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
#both = {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}

// The softmax runs over the queries.
func.func @softmax_over_queries(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected the values to be summed over dimension 1 of the probabilities, where the softmax is, got dimension 2}}
  %p = linalg.softmax dimension(1) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// The values are multiplied by the transposed probabilities.
func.func @transposed_probabilities(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected the values to be summed over dimension 2 of the probabilities, where the softmax is, got dimension 1}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, affine_map<(b, q, e, k) -> (b, q, e)>, affine_map<(b, q, e, k) -> (b, k, e)>] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// A mask multiplies the probabilities.
func.func @probabilities_masked_again(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>, %mask: tensor<2x5x5xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected the probabilities to be multiplied with values, got a use by the op at raise-attention-unfused.mlir:}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %m = linalg.generic #both ins(%p, %mask : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%m, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// A softmax of probabilities: neither softmax belongs to an attention.
func.func @two_softmaxes(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected the probabilities to be multiplied with values, got a use by the op at raise-attention-unfused.mlir:}}
  %p0 = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected a product of query and key in the scores, got the op at raise-attention-unfused.mlir:}}
  %p = linalg.softmax dimension(2) ins(%p0 : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// A gate: the result of the softmax multiplies values elementwise, and a later product reads their sum. This is not an
// attention, so there is no remark.
func.func @gate(%g: tensor<2x5xf32>, %x: tensor<2x5x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5xf32>
  %xe = tensor.empty() : tensor<2x5x8xf32>
  %oe = tensor.empty() : tensor<2x8xf32>
  %p = linalg.softmax dimension(1) ins(%g : tensor<2x5xf32>) outs(%e : tensor<2x5xf32>) -> tensor<2x5xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(b, k, e) -> (b, k)>, affine_map<(b, k, e) -> (b, k, e)>, affine_map<(b, k, e) -> (b, k, e)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%p, %x : tensor<2x5xf32>, tensor<2x5x8xf32>) outs(%xe : tensor<2x5x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x8xf32>) -> tensor<2x8xf32>
  %sum = linalg.reduce ins(%m : tensor<2x5x8xf32>) outs(%f : tensor<2x8xf32>) dimensions = [1]
    (%a: f32, %out: f32) {
      %t = arith.addf %a, %out : f32
      linalg.yield %t : f32
    }
  %o = linalg.matmul ins(%sum, %w : tensor<2x8xf32>, tensor<8x8xf32>) outs(%f : tensor<2x8xf32>) -> tensor<2x8xf32>
  return %o : tensor<2x8xf32>
}

// Each query has its own values.
func.func @values_vary_with_query(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>, %v: tensor<2x5x5x8xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected values shared by all queries, got values that vary with dimension 1 of the probabilities}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, affine_map<(b, q, e, k) -> (b, q, k, e)>, #o] ins(%p, %v : tensor<2x5x5xf32>, tensor<2x5x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// The values have a batch dimension that the probabilities lack.
func.func @values_bring_batch(%x: tensor<2x5x8xf32>, %v: tensor<3x2x5x8xf32>, %oe: tensor<3x2x5x8xf32>) -> tensor<3x2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected values whose batch dimensions are those of the probabilities, got 1 more}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<3x2x5x8xf32>) -> tensor<3x2x5x8xf32>
  %o = linalg.contract indexing_maps = [affine_map<(c, b, q, e, k) -> (b, q, k)>, affine_map<(c, b, q, e, k) -> (c, b, k, e)>,
                                        affine_map<(c, b, q, e, k) -> (c, b, q, e)>] ins(%p, %v : tensor<2x5x5xf32>, tensor<3x2x5x8xf32>) outs(%of : tensor<3x2x5x8xf32>) -> tensor<3x2x5x8xf32>
  return %o : tensor<3x2x5x8xf32>
}

// The scores are an argument.
func.func @scores_not_a_product(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>, %s: tensor<2x5x5xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected a product of query and key in the scores, got argument 2}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// The init of the product is a bias, not zeros.
func.func @product_on_top(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>, %bias: tensor<2x5x5xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%bias : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected a product of query and key in the scores, got the op at raise-attention-unfused.mlir:}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// The probabilities multiply two tensors of values.
func.func @values_twice(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>, %y: tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>, tensor<2x5x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected one product of the probabilities with values, got 2}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o2 = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %y : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o, %o2 : tensor<2x5x8xf32>, tensor<2x5x8xf32>
}

// The probabilities multiply no values.
func.func @probabilities_alone(%x: tensor<2x5x8xf32>) -> tensor<2x5x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected the probabilities to be multiplied with values, got a use by the op at raise-attention-unfused.mlir:}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  return %p : tensor<2x5x5xf32>
}

// The scores are the sum of a product and its transposition.
func.func @scores_and_their_transpose(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %m = linalg.generic {indexing_maps = [#id, affine_map<(b, q, k) -> (b, k, q)>, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %s : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected scores read at their own coordinates, got scores read at others too}}
  %p = linalg.softmax dimension(2) ins(%m : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// The scores read a mask on its diagonal.
func.func @diagonal_of_a_mask(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>, %mask: tensor<5x5xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %m = linalg.generic {indexing_maps = [#id, affine_map<(b, q, k) -> (k, k)>, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<2x5x5xf32>, tensor<5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected operands of the scores to be read at a coordinate in each dimension, got other coordinates for argument 2}}
  %p = linalg.softmax dimension(2) ins(%m : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// The values depend on another use of the probabilities.
func.func @values_from_probabilities(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected values that can be computed ahead of other uses of the probabilities, got such a use by the op at raise-attention-unfused.mlir:}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %w = linalg.generic #each ins(%p : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.sqrt %a : f32
    linalg.yield %t : f32
  } -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %v = linalg.contract indexing_maps = [#op, #ov, #o] ins(%w, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %v : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// The scores are of f16.
func.func @half(%x: tensor<2x5x8xf16>, %oe: tensor<2x5x8xf16>) -> tensor<2x5x8xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<2x5x5xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<2x5x5xf16>) -> tensor<2x5x5xf16>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf16>, tensor<2x5x8xf16>) outs(%f : tensor<2x5x5xf16>) -> tensor<2x5x5xf16>
  // expected-remark@+1 {{attention left unfused: expected scores of type f32, got 'f16'}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf16>) outs(%e : tensor<2x5x5xf16>) -> tensor<2x5x5xf16>
  %of = linalg.fill ins(%zero : f16) outs(%oe : tensor<2x5x8xf16>) -> tensor<2x5x8xf16>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf16>, tensor<2x5x8xf16>) outs(%of : tensor<2x5x8xf16>) -> tensor<2x5x8xf16>
  return %o : tensor<2x5x8xf16>
}

// The graph sets rows whose scores are all 0 to zero. These rows are not empty rows, whose scores are all -inf.
func.func @zero_in_other_rows(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %e = tensor.empty() : tensor<2x5x5xf32>
  %be = tensor.empty() : tensor<2x5x5xi1>
  %re = tensor.empty() : tensor<2x5xi1>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  // expected-remark@+1 {{attention left unfused: expected the probabilities to be multiplied with values, got a use by the op at raise-attention-unfused.mlir:}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<2x5x5xf32>) outs(%be : tensor<2x5x5xi1>) {
  ^bb0(%a: f32, %out: i1):
    %c = arith.cmpf oeq, %a, %zero : f32
    linalg.yield %c : i1
  } -> tensor<2x5x5xi1>
  %rf = linalg.fill ins(%true : i1) outs(%re : tensor<2x5xi1>) -> tensor<2x5xi1>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%t : tensor<2x5x5xi1>) outs(%rf : tensor<2x5xi1>) {
  ^bb0(%a: i1, %out: i1):
    %c = arith.andi %out, %a : i1
    linalg.yield %c : i1
  } -> tensor<2x5xi1>
  %w = linalg.generic {indexing_maps = [#row, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r, %p : tensor<2x5xi1>, tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: i1, %b: f32, %out: f32):
    %c = arith.select %a, %zero, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%w, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// Another tensor, not a copy of the probabilities, is written over the probabilities.
func.func @probabilities_overwritten(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>, %y: tensor<2x5x7xf32>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%f : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  // expected-remark@+1 {{attention left unfused: expected the probabilities to be multiplied with values, got a use by the op at raise-attention-unfused.mlir:}}
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %c = linalg.transpose ins(%y : tensor<2x5x7xf32>) outs(%p : tensor<2x5x7xf32>) permutation = [0, 1, 2]
  %oe = tensor.empty() : tensor<2x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%c, %v : tensor<2x5x7xf32>, tensor<2x7x4xf32>) outs(%of : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}
