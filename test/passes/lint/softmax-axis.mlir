// RUN: attn-opt %s -attn-lint-softmax-axis -verify-diagnostics

#bqd = affine_map<(b, q, k, d) -> (b, q, d)>
#bkd = affine_map<(b, q, k, d) -> (b, k, d)>
#bqk = affine_map<(b, q, k, d) -> (b, q, k)>
#bqk_v = affine_map<(b, q, e, k) -> (b, q, k)>
#bkq_v = affine_map<(b, q, e, k) -> (b, k, q)>
#bke = affine_map<(b, q, e, k) -> (b, k, e)>
#bqe = affine_map<(b, q, e, k) -> (b, q, e)>
!s = tensor<2x9x9xf32>
!x = tensor<2x9x8xf32>

func.func @over_queries(%x: !x, %s0: !s, %o0: !x) -> !x {
  %s = linalg.contract indexing_maps = [#bqd, #bkd, #bqk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  // expected-warning @below {{softmax is over dimension -2 and the sum of the values over dimension -1, so the probabilities in a sum do not add up to 1; use softmax(scores, dim=-1)}}
  %p = linalg.softmax dimension(1) ins(%s : !s) outs(%s0 : !s) -> !s
  %o = linalg.contract indexing_maps = [#bqk_v, #bke, #bqe] ins(%p, %x : !s, !x) outs(%o0 : !x) -> !x
  return %o : !x
}

// The softmax is over the batch. A transposition between softmax and product does not prevent the finding.
func.func @over_batch(%x: !x, %s0: !s, %o0: !x) -> !x {
  %s = linalg.contract indexing_maps = [#bqd, #bkd, #bqk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  // expected-warning @below {{softmax is over dimension -3 and the sum of the values over dimension -2}}
  %p = linalg.softmax dimension(0) ins(%s : !s) outs(%s0 : !s) -> !s
  %t = linalg.transpose ins(%p : !s) outs(%s0 : !s) permutation = [0, 2, 1]
  %o = linalg.contract indexing_maps = [#bqk_v, #bke, #bqe] ins(%t, %x : !s, !x) outs(%o0 : !x) -> !x
  return %o : !x
}

// No finding: the scores are transposed, and the sum of the values is over the dimension of the softmax.
func.func @transposed(%x: !x, %s0: !s, %o0: !x) -> !x {
  %s = linalg.contract indexing_maps = [#bqd, #bkd, #bqk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  %p = linalg.softmax dimension(1) ins(%s : !s) outs(%s0 : !s) -> !s
  %o = linalg.contract indexing_maps = [#bkq_v, #bke, #bqe] ins(%p, %x : !s, !x) outs(%o0 : !x) -> !x
  return %o : !x
}

// No finding: one product with the probabilities is the attention; the other product computes a gradient.
func.func @gradient(%x: !x, %s0: !s, %o0: !x) -> (!x, !x) {
  %s = linalg.contract indexing_maps = [#bqd, #bkd, #bqk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  %p = linalg.softmax dimension(2) ins(%s : !s) outs(%s0 : !s) -> !s
  %g = linalg.contract indexing_maps = [#bkq_v, #bke, #bqe] ins(%p, %x : !s, !x) outs(%o0 : !x) -> !x
  %o = linalg.contract indexing_maps = [#bqk_v, #bke, #bqe] ins(%p, %x : !s, !x) outs(%o0 : !x) -> !x
  return %g, %o : !x, !x
}

// No finding: attention in both directions, in which the second softmax takes the place of the values.
func.func @two_softmaxes(%x: !x, %s0: !s) -> !s {
  %s = linalg.contract indexing_maps = [#bqd, #bkd, #bqk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  %p = linalg.softmax dimension(2) ins(%s : !s) outs(%s0 : !s) -> !s
  %r = linalg.softmax dimension(1) ins(%s : !s) outs(%s0 : !s) -> !s
  %o = linalg.contract indexing_maps = [#bqd, #bkd, #bqk] ins(%p, %r : !s, !s) outs(%s0 : !s) -> !s
  return %o : !s
}

// No finding: the input of the softmax is not a product, so the softmax does not belong to an attention.
func.func @no_product(%s: !s, %x: !x, %s0: !s, %o0: !x) -> !x {
  %p = linalg.softmax dimension(1) ins(%s : !s) outs(%s0 : !s) -> !s
  %o = linalg.contract indexing_maps = [#bqk_v, #bke, #bqe] ins(%p, %x : !s, !x) outs(%o0 : !x) -> !x
  return %o : !x
}
