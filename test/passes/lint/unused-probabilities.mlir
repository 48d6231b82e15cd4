// RUN: attn-opt %s -attn-lint-unused-probabilities -verify-diagnostics

#qd = affine_map<(q, k, d) -> (q, d)>
#kd = affine_map<(q, k, d) -> (k, d)>
#qk = affine_map<(q, k, d) -> (q, k)>
#qk_v = affine_map<(q, e, k) -> (q, k)>
#ke = affine_map<(q, e, k) -> (k, e)>
#qe = affine_map<(q, e, k) -> (q, e)>
#id = affine_map<(q, k) -> (q, k)>
#q = affine_map<(q, k) -> (q)>
!s = tensor<?x?xf32>
!x = tensor<?x8xf32>

func.func private @declared(!x) -> !x

func.func @scores_instead(%x: !x, %s0: !s, %o0: !x) -> (!x, !s) {
  %s = linalg.contract indexing_maps = [#qd, #kd, #qk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  // expected-warning @below {{the probabilities multiply no values, so the output is not an attention; multiply the values by the result of softmax}}
  %p = linalg.softmax dimension(1) ins(%s : !s) outs(%s0 : !s) -> !s
  %o = linalg.contract indexing_maps = [#qk_v, #ke, #qe] ins(%s, %x : !s, !x) outs(%o0 : !x) -> !x
  return %o, %p : !x, !s
}

// The function does not return the probabilities either, so the softmax itself is unused.
func.func @dropped_softmax(%x: !x, %s0: !s, %o0: !x) -> !x {
  %s = linalg.contract indexing_maps = [#qd, #kd, #qk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  // expected-warning @below {{the probabilities multiply no values}}
  %p = linalg.softmax dimension(1) ins(%s : !s) outs(%s0 : !s) -> !s
  %o = linalg.contract indexing_maps = [#qk_v, #ke, #qe] ins(%s, %x : !s, !x) outs(%o0 : !x) -> !x
  return %o : !x
}

func.func @dropped_product(%x: !x, %s0: !s, %o0: !x) -> (!x, !s) {
  %s = linalg.contract indexing_maps = [#qd, #kd, #qk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  // expected-warning @below {{the probabilities multiply no values}}
  %p = linalg.softmax dimension(1) ins(%s : !s) outs(%s0 : !s) -> !s
  %o = linalg.contract indexing_maps = [#qk_v, #ke, #qe] ins(%p, %x : !s, !x) outs(%o0 : !x) -> !x
  return %x, %p : !x, !s
}

func.func @dropped_mean(%x: !x, %s0: !s, %o0: !x, %m0: tensor<?xf32>) -> !x {
  %s = linalg.contract indexing_maps = [#qd, #kd, #qk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  %p = linalg.softmax dimension(1) ins(%s : !s) outs(%s0 : !s) -> !s
  %o = linalg.contract indexing_maps = [#qk_v, #ke, #qe] ins(%p, %x : !s, !x) outs(%o0 : !x) -> !x
  // expected-warning @below {{a result computed from the probabilities is dropped, so it only costs time; do not compute it, or call torch.nn.MultiheadAttention with need_weights=False}}
  %m = linalg.generic {indexing_maps = [#id, #q], iterator_types = ["parallel", "reduction"]} ins(%p : !s) outs(%m0 : tensor<?xf32>) {
  ^bb0(%e: f32, %a: f32):
    %f = arith.addf %e, %a : f32
    linalg.yield %f : f32
  } -> tensor<?xf32>
  return %o : !x
}

// No finding: values that the function returns are used, and an unused size or view computes nothing.
func.func @returned(%x: !x, %s0: !s, %o0: !x) -> (!x, !s) {
  %s = linalg.contract indexing_maps = [#qd, #kd, #qk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  %p = linalg.softmax dimension(1) ins(%s : !s) outs(%s0 : !s) -> !s
  %c0 = arith.constant 0 : index
  %d = tensor.dim %p, %c0 : !s
  %t = linalg.transpose ins(%p : !s) outs(%s0 : !s) permutation = [1, 0]
  %o = linalg.contract indexing_maps = [#qk_v, #ke, #qe] ins(%p, %x : !s, !x) outs(%o0 : !x) -> !x
  return %o, %p : !x, !s
}

// No finding: without a product of values, the softmax is the result, as in a classifier or a pointer network.
func.func @pointer(%x: !x, %s0: !s) -> (!x, !s) {
  %s = linalg.contract indexing_maps = [#qd, #kd, #qk] ins(%x, %x : !x, !x) outs(%s0 : !s) -> !s
  %p = linalg.softmax dimension(1) ins(%s : !s) outs(%s0 : !s) -> !s
  return %x, %p : !x, !s
}
