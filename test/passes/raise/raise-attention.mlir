// RUN: attn-opt %s -split-input-file -attn-raise-attention | FileCheck %s

#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>
#qk = affine_map<(b, q, k) -> (q, k)>

// Cross attention with value width 4 and a boolean mask that is read at (q, k).
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d3)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>
// CHECK-DAG: #[[M:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2)>
// CHECK-DAG: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>
// CHECK-LABEL: @hidden_filled(
// CHECK-SAME: %[[QUERY:.*]]: tensor<2x5x8xf32>, %[[KEY:.*]]: tensor<2x7x8xf32>, %[[VALUE:.*]]: tensor<2x7x4xf32>, %[[HIDDEN:.*]]: tensor<5x7xi1>
// CHECK-NOT: linalg
// CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<2x5x4xf32>
// CHECK: %[[OUT:.*]] = attn.attention ins(%[[QUERY]], %[[KEY]], %[[VALUE]]
// CHECK-SAME: captures(%[[HIDDEN]] : tensor<5x7xi1>) outs(%[[EMPTY]]
// CHECK-SAME: empty_row = #attn.empty_row<nan>, indexing_maps = [#[[Q]], #[[K]], #[[V]], #[[M]], #[[O]]], scale = 1.000000e+00 : f32
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32, %[[H:.*]]: i1):
// CHECK: %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[T:.*]] = arith.select %[[H]], %[[INF]], %[[S]] : f32
// CHECK: attn.yield %[[T]]
// CHECK-NOT: linalg
// CHECK: return %[[OUT]]
func.func @hidden_filled(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>,
                         %hidden: tensor<5x7xi1>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%f : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %m = linalg.generic {indexing_maps = [#qk, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%hidden, %s : tensor<5x7xi1>, tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%h: i1, %a: f32, %out: f32):
    %t = arith.select %h, %inf, %a : f32
    linalg.yield %t : f32
  } -> tensor<2x5x7xf32>
  %p = linalg.softmax dimension(2) ins(%m : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %oe = tensor.empty() : tensor<2x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %v : tensor<2x5x7xf32>, tensor<2x7x4xf32>) outs(%of : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %o : tensor<2x5x4xf32>
}

// -----

// The probabilities are returned too. The graph transposes the key; the attention reads it before the transposition.
// CHECK-LABEL: @weights_returned(
// CHECK-SAME: %[[X:.*]]: tensor<2x5x8xf32>
// CHECK: %[[R:.*]]:2 = attn.attention ins(%[[X]], %[[X]], %[[X]] : {{.*}} outs(%{{.*}}, %{{.*}} : tensor<2x5x8xf32>, tensor<2x5x5xf32>)
// CHECK-NOT: score
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @weights_returned(%x: tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>, tensor<2x5x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %te = tensor.empty() : tensor<2x8x5xf32>
  %oe = tensor.empty() : tensor<2x5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %t = linalg.transpose ins(%x : tensor<2x5x8xf32>) outs(%te : tensor<2x8x5xf32>) permutation = [0, 2, 1]
  %s = linalg.batch_matmul ins(%x, %t : tensor<2x5x8xf32>, tensor<2x8x5xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %o = linalg.batch_matmul ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o, %p : tensor<2x5x8xf32>, tensor<2x5x5xf32>
}

// -----

#sq = affine_map<(b, h, g, q, k, d) -> (b, h, g, q, d)>
#sk = affine_map<(b, h, g, q, k, d) -> (b, h, k, d)>
#s = affine_map<(b, h, g, q, k, d) -> (b, h, g, q, k)>
#op = affine_map<(b, h, g, q, e, k) -> (b, h, g, q, k)>
#ov = affine_map<(b, h, g, q, e, k) -> (b, h, k, e)>
#o = affine_map<(b, h, g, q, e, k) -> (b, h, g, q, e)>
#id = affine_map<(b, h, g, q, k) -> (b, h, g, q, k)>
#pad = affine_map<(b, h, g, q, k) -> (b, 0, 0, 0, k)>

// Query groups: of the query dimensions that the key lacks, the innermost becomes q. The attention captures the
// additive mask.
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d5)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d4, d5)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d4, d6)>
// CHECK-DAG: #[[M:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, 0, 0, 0, d4)>
// CHECK-DAG: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3, d6)>
// CHECK-LABEL: @grouped_heads_additive_mask
// CHECK: attn.attention
// CHECK-SAME: captures(%{{.*}} : tensor<?x1x1x1x?xf32>)
// CHECK-SAME: indexing_maps = [#[[Q]], #[[K]], #[[V]], #[[M]], #[[O]]]
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32, %[[A:.*]]: f32):
// CHECK-NEXT: arith.addf %[[S]], %[[A]]
func.func @grouped_heads_additive_mask(%q: tensor<?x2x3x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>,
      %mask: tensor<?x1x1x1x?xf32>, %e: tensor<?x2x3x?x?xf32>, %oe: tensor<?x2x3x?x8xf32>) -> tensor<?x2x3x?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2x3x?x?xf32>) -> tensor<?x2x3x?x?xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<?x2x3x?x8xf32>) -> tensor<?x2x3x?x8xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %k : tensor<?x2x3x?x8xf32>, tensor<?x2x?x8xf32>) outs(%f : tensor<?x2x3x?x?xf32>) -> tensor<?x2x3x?x?xf32>
  %m = linalg.generic {indexing_maps = [#id, #pad, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %mask : tensor<?x2x3x?x?xf32>, tensor<?x1x1x1x?xf32>) outs(%e : tensor<?x2x3x?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x2x3x?x?xf32>
  %p = linalg.softmax dimension(4) ins(%m : tensor<?x2x3x?x?xf32>) outs(%e : tensor<?x2x3x?x?xf32>) -> tensor<?x2x3x?x?xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %v : tensor<?x2x3x?x?xf32>, tensor<?x2x?x8xf32>) outs(%of : tensor<?x2x3x?x8xf32>) -> tensor<?x2x3x?x8xf32>
  return %o : tensor<?x2x3x?x8xf32>
}

// -----

#sq = affine_map<(q, k, d) -> (q, d)>
#sk = affine_map<(q, k, d) -> (k, d)>
#s = affine_map<(q, k, d) -> (q, k)>
#id = affine_map<(q, k) -> (q, k)>

// The graph computes a causal mask with ones, tril and a comparison, and the inverse of a boolean mask. The region
// computes both masks for one pair. The fill is finite. There is one head and no batch.
// CHECK-LABEL: @computed_masks
// CHECK-SAME: %[[PAD:[a-z0-9]*]]: tensor<9xi1>
// CHECK-NOT: linalg
// CHECK: attn.attention
// CHECK-SAME: captures(%[[PAD]] : tensor<9xi1>)
// CHECK: ^bb0(%[[Q:.*]]: index, %[[K:.*]]: index, %[[S:.*]]: f32, %[[P:.*]]: i1):
// CHECK-DAG: arith.cmpi sle, %[[K]], %[[Q]] : index
// CHECK-DAG: arith.cmpf oeq
// CHECK-DAG: arith.xori %[[P]]
// CHECK-DAG: arith.constant -1.000000e+09 : f32
// CHECK: attn.yield
// CHECK-NOT: linalg
func.func @computed_masks(%q: tensor<9x8xf32>, %pad: tensor<9xi1>) -> tensor<9x8xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %true = arith.constant true
  %low = arith.constant -1.0e9 : f32
  %e = tensor.empty() : tensor<9x9xf32>
  %be = tensor.empty() : tensor<9x9xi1>
  %ve = tensor.empty() : tensor<9xi1>
  %ones = linalg.fill ins(%one : f32) outs(%e : tensor<9x9xf32>) -> tensor<9x9xf32>
  %tril = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ones : tensor<9x9xf32>) outs(%e : tensor<9x9xf32>) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sle, %j, %i : index
    %t = arith.select %c, %a, %zero : f32
    linalg.yield %t : f32
  } -> tensor<9x9xf32>
  %upper = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%tril : tensor<9x9xf32>) outs(%be : tensor<9x9xi1>) {
  ^bb0(%a: f32, %out: i1):
    %t = arith.cmpf oeq, %a, %zero : f32
    linalg.yield %t : i1
  } -> tensor<9x9xi1>
  %not = linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>], iterator_types = ["parallel"]}
      ins(%pad : tensor<9xi1>) outs(%ve : tensor<9xi1>) {
  ^bb0(%a: i1, %out: i1):
    %t = arith.xori %a, %true : i1
    linalg.yield %t : i1
  } -> tensor<9xi1>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<9x9xf32>) -> tensor<9x9xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%q, %q : tensor<9x8xf32>, tensor<9x8xf32>) outs(%f : tensor<9x9xf32>) -> tensor<9x9xf32>
  %m = linalg.generic {indexing_maps = [#id, affine_map<(q, k) -> (k)>, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%upper, %not, %s : tensor<9x9xi1>, tensor<9xi1>, tensor<9x9xf32>) outs(%e : tensor<9x9xf32>) {
  ^bb0(%u: i1, %n: i1, %a: f32, %out: f32):
    %h = arith.ori %u, %n : i1
    %t = arith.select %h, %low, %a : f32
    linalg.yield %t : f32
  } -> tensor<9x9xf32>
  %p = linalg.softmax dimension(1) ins(%m : tensor<9x9xf32>) outs(%e : tensor<9x9xf32>) -> tensor<9x9xf32>
  %oe = tensor.empty() : tensor<9x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<9x8xf32>) -> tensor<9x8xf32>
  %o = linalg.matmul ins(%p, %q : tensor<9x9xf32>, tensor<9x8xf32>) outs(%of : tensor<9x8xf32>) -> tensor<9x8xf32>
  return %o : tensor<9x8xf32>
}

// -----

#op = affine_map<(b, q, e, k) -> (q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(q, k) -> (q, k)>

// For scores without a product, query and key get head size 0. Only the values have the batch dimension.
// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d2, d3)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>
// CHECK-DAG: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>
// CHECK-LABEL: @uniform_causal
// CHECK-DAG: %[[SIZE:.*]] = tensor.dim
// CHECK-DAG: %[[Q0:.*]] = tensor.empty(%[[SIZE]]) : tensor<?x0xf32>
// CHECK-DAG: %[[K0:.*]] = tensor.empty(%[[SIZE]]) : tensor<?x0xf32>
// CHECK: attn.attention ins(%[[Q0]], %[[K0]], %{{.*}} : tensor<?x0xf32>, tensor<?x0xf32>, tensor<4x?x16xf32>)
// CHECK-SAME: indexing_maps = [#[[Q]], #[[K]], #[[V]], #[[O]]]
func.func @uniform_causal(%x: tensor<4x?x16xf32>, %oe: tensor<4x?x16xf32>) -> tensor<4x?x16xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<4x?x16xf32>
  %e = tensor.empty(%n, %n) : tensor<?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%f : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c = arith.cmpi sgt, %j, %i : index
    %t = arith.select %c, %inf, %a : f32
    linalg.yield %t : f32
  } -> tensor<?x?xf32>
  %p = linalg.softmax dimension(1) ins(%m : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x?x16xf32>) -> tensor<4x?x16xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<?x?xf32>, tensor<4x?x16xf32>) outs(%of : tensor<4x?x16xf32>) -> tensor<4x?x16xf32>
  return %o : tensor<4x?x16xf32>
}

// -----

// The scores are multiplied by an operand, as in cosine attention with a temperature for each head.
#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>
#each = affine_map<(b, q, k) -> (b, 0, 0)>
// CHECK-LABEL: @temperature
// CHECK: attn.attention {{.*}} captures(%{{.*}} : tensor<2x1x1xf32>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[S:.*]]: f32, %[[T:.*]]: f32):
// CHECK: %[[M:.*]] = arith.mulf %[[S]], %[[T]] : f32
// CHECK: attn.yield %[[M]]
func.func @temperature(%x: tensor<2x5x8xf32>, %t: tensor<2x1x1xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %m = linalg.generic {indexing_maps = [#id, #each, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %t : tensor<2x5x5xf32>, tensor<2x1x1xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.mulf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x5x5xf32>
  %p = linalg.softmax dimension(2) ins(%m : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %oe = tensor.empty() : tensor<2x5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// -----

// The probabilities of rows whose scores are all -inf are set to 0, as in the decomposition of PyTorch's attention:
// not any(not (s == -inf)).
#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#unit = affine_map<(b, q, k) -> (b, q, 0)>
// CHECK-LABEL: @zero_in_empty_rows
// CHECK-NOT: linalg
// CHECK: attn.attention
// CHECK-NOT: empty_row
// CHECK-NOT: linalg
// CHECK: return
func.func @zero_in_empty_rows(%x: tensor<2x5x8xf32>, %bias: tensor<2x5x5xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %true = arith.constant true
  %false = arith.constant false
  %e = tensor.empty() : tensor<2x5x5xf32>
  %be = tensor.empty() : tensor<2x5x5xi1>
  %re = tensor.empty() : tensor<2x5xi1>
  %ue = tensor.empty() : tensor<2x5x1xi1>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %m = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %bias : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<2x5x5xf32>
  %p = linalg.softmax dimension(2) ins(%m : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %is = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%m : tensor<2x5x5xf32>) outs(%be : tensor<2x5x5xi1>) {
  ^bb0(%a: f32, %out: i1):
    %c = arith.cmpf oeq, %a, %inf : f32
    linalg.yield %c : i1
  } -> tensor<2x5x5xi1>
  %isnt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%is : tensor<2x5x5xi1>) outs(%be : tensor<2x5x5xi1>) {
  ^bb0(%a: i1, %out: i1):
    %c = arith.xori %a, %true : i1
    linalg.yield %c : i1
  } -> tensor<2x5x5xi1>
  %rf = linalg.fill ins(%false : i1) outs(%re : tensor<2x5xi1>) -> tensor<2x5xi1>
  %r = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%isnt : tensor<2x5x5xi1>) outs(%rf : tensor<2x5xi1>) {
  ^bb0(%a: i1, %out: i1):
    %c = arith.ori %out, %a : i1
    linalg.yield %c : i1
  } -> tensor<2x5xi1>
  %u = tensor.expand_shape %r [[0], [1, 2]] output_shape [2, 5, 1] : tensor<2x5xi1> into tensor<2x5x1xi1>
  %none = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%u : tensor<2x5x1xi1>) outs(%ue : tensor<2x5x1xi1>) {
  ^bb0(%a: i1, %out: i1):
    %c = arith.xori %a, %true : i1
    linalg.yield %c : i1
  } -> tensor<2x5x1xi1>
  %w = linalg.generic {indexing_maps = [#unit, #id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%none, %f, %p : tensor<2x5x1xi1>, tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: i1, %b: f32, %c: f32, %out: f32):
    %d = arith.select %a, %b, %c : f32
    linalg.yield %d : f32
  } -> tensor<2x5x5xf32>
  %oe = tensor.empty() : tensor<2x5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%w, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// -----

// The scores are the sum of two products. The second product is computed in memory, and is captured as a bias.
#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>
// CHECK-LABEL: @two_products(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<2x5x8xf32>, %[[Y:[a-z0-9]*]]: tensor<2x5x8xf32>
// CHECK: %[[R:.*]] = linalg.contract {{.*}} ins(%[[Y]], %[[X]] :
// CHECK: attn.attention ins(%[[X]], %[[X]], %[[X]] : {{.*}} captures(%[[R]] :
func.func @two_products(%x: tensor<2x5x8xf32>, %y: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %r = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%y, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %m = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %r : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x5x5xf32>
  %p = linalg.softmax dimension(2) ins(%m : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %oe = tensor.empty() : tensor<2x5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// -----

// A bias for each pair is a projection of features of pairs. This product is not that of query and key, because one of
// its operands depends on both positions.
#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>
#pairs = affine_map<(b, q, k, d) -> (q, k, d)>
#heads = affine_map<(b, q, k, d) -> (b, d)>
// CHECK-LABEL: @projected_pairs(
// CHECK-SAME: %[[Z:[a-z0-9]*]]: tensor<5x5x3xf32>, %[[W:[a-z0-9]*]]: tensor<2x3xf32>, %[[X:[a-z0-9]*]]: tensor<2x5x8xf32>
// CHECK: %[[R:.*]] = linalg.contract {{.*}} ins(%[[Z]], %[[W]] :
// CHECK: attn.attention ins(%[[X]], %[[X]], %[[X]] : {{.*}} captures(%[[R]] :
func.func @projected_pairs(%z: tensor<5x5x3xf32>, %w: tensor<2x3xf32>, %x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %r = linalg.contract indexing_maps = [#pairs, #heads, #s] ins(%z, %w : tensor<5x5x3xf32>, tensor<2x3xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %m = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r, %s : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x5x5xf32>
  %p = linalg.softmax dimension(2) ins(%m : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %oe = tensor.empty() : tensor<2x5x8xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// -----

// The values are the left operand of the product, and the probabilities are transposed: V P^T.
#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>
#vk = affine_map<(b, e, q, k) -> (b, e, k)>
#pk = affine_map<(b, e, q, k) -> (b, k, q)>
#oe = affine_map<(b, e, q, k) -> (b, e, q)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d2)>
// CHECK-DAG: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, d1)>
// CHECK-LABEL: @transposed_weights(
// CHECK-NOT: linalg.transpose
// CHECK: attn.attention {{.*}} indexing_maps = [{{.*}}, {{.*}}, #[[V]], #[[O]]]
func.func @transposed_weights(%x: tensor<2x5x8xf32>, %v: tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %t = linalg.transpose ins(%p : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) permutation = [0, 2, 1]
  %empty = tensor.empty() : tensor<2x4x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %o = linalg.contract indexing_maps = [#vk, #pk, #oe] ins(%v, %t : tensor<2x4x5xf32>, tensor<2x5x5xf32>) outs(%of : tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  return %o : tensor<2x4x5xf32>
}

// -----

#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>

// A column that is concatenated with the scores is a sink if its probabilities are dropped. It may be last or first.
// CHECK-LABEL: @sink(
// CHECK-SAME: %[[SINK:arg1]]: tensor<2xf32>
// CHECK-NOT: tensor.concat
// CHECK: %[[OUT:.*]] = attn.attention ins(
// CHECK-SAME: sink(%[[SINK]] : tensor<2xf32>)
// CHECK: %[[FIRST:.*]] = attn.attention ins(
// CHECK-SAME: sink(%[[SINK]] : tensor<2xf32>)
// CHECK: return %[[OUT]], %[[FIRST]]
func.func @sink(%x: tensor<2x?x8xf32>, %sink: tensor<2xf32>) -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<2x?x8xf32>
  %m = arith.addi %n, %c1 : index
  %e = tensor.empty(%n, %n) : tensor<2x?x?xf32>
  %ce = tensor.empty(%n) : tensor<2x?x1xf32>
  %pe = tensor.empty(%n, %m) : tensor<2x?x?xf32>
  %oe = tensor.empty(%n) : tensor<2x?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x?x8xf32>, tensor<2x?x8xf32>) outs(%f : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %s1 = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x?x8xf32>, tensor<2x?x8xf32>) outs(%f : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %column = linalg.generic {indexing_maps = [affine_map<(b, q, k) -> (b)>, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sink : tensor<2xf32>) outs(%ce : tensor<2x?x1xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<2x?x1xf32>
  %last = tensor.concat dim(2) %s, %column : (tensor<2x?x?xf32>, tensor<2x?x1xf32>) -> tensor<2x?x?xf32>
  %first = tensor.concat dim(2) %column, %s1 : (tensor<2x?x1xf32>, tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %p0 = linalg.softmax dimension(2) ins(%last : tensor<2x?x?xf32>) outs(%pe : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %p1 = linalg.softmax dimension(2) ins(%first : tensor<2x?x?xf32>) outs(%pe : tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %w0 = tensor.extract_slice %p0[0, 0, 0] [2, %n, %n] [1, 1, 1] : tensor<2x?x?xf32> to tensor<2x?x?xf32>
  %w1 = tensor.extract_slice %p1[0, 0, 1] [2, %n, %n] [1, 1, 1] : tensor<2x?x?xf32> to tensor<2x?x?xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x?x8xf32>) -> tensor<2x?x8xf32>
  %o0 = linalg.contract indexing_maps = [#op, #ov, #o] ins(%w0, %x : tensor<2x?x?xf32>, tensor<2x?x8xf32>) outs(%of : tensor<2x?x8xf32>) -> tensor<2x?x8xf32>
  %o1 = linalg.contract indexing_maps = [#op, #ov, #o] ins(%w1, %x : tensor<2x?x?xf32>, tensor<2x?x8xf32>) outs(%of : tensor<2x?x8xf32>) -> tensor<2x?x8xf32>
  return %o0, %o1 : tensor<2x?x8xf32>, tensor<2x?x8xf32>
}

// Rows whose scores and sink are all -inf are set to zero before the slice that drops the column of the sink.
// CHECK-LABEL: @sink_and_empty_rows(
// CHECK-SAME: %{{.*}}: tensor<2x5x8xf32>, %[[SINK:.*]]: tensor<2x5x1xf32>
// CHECK-NOT: tensor.concat
// CHECK: attn.attention ins(
// CHECK-SAME: sink(%[[SINK]] : tensor<2x5x1xf32>)
// CHECK-NOT: empty_row = nan
// CHECK: return
func.func @sink_and_empty_rows(%x: tensor<2x5x8xf32>, %sink: tensor<2x5x1xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %true = arith.constant true
  %e = tensor.empty() : tensor<2x5x5xf32>
  %pe = tensor.empty() : tensor<2x5x6xf32>
  %be = tensor.empty() : tensor<2x5x6xi1>
  %re = tensor.empty() : tensor<2x5xi1>
  %oe = tensor.empty() : tensor<2x5x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %c = tensor.concat dim(2) %s, %sink : (tensor<2x5x5xf32>, tensor<2x5x1xf32>) -> tensor<2x5x6xf32>
  %p = linalg.softmax dimension(2) ins(%c : tensor<2x5x6xf32>) outs(%pe : tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %empty = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%c : tensor<2x5x6xf32>) outs(%be : tensor<2x5x6xi1>) {
  ^bb0(%a: f32, %out: i1):
    %is = arith.cmpf oeq, %a, %lowest : f32
    linalg.yield %is : i1
  } -> tensor<2x5x6xi1>
  %rf = linalg.fill ins(%true : i1) outs(%re : tensor<2x5xi1>) -> tensor<2x5xi1>
  %all = linalg.generic {indexing_maps = [#id, affine_map<(b, q, k) -> (b, q)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%empty : tensor<2x5x6xi1>) outs(%rf : tensor<2x5xi1>) {
  ^bb0(%a: i1, %out: i1):
    %both = arith.andi %a, %out : i1
    linalg.yield %both : i1
  } -> tensor<2x5xi1>
  %w = linalg.generic {indexing_maps = [affine_map<(b, q, k) -> (b, q)>, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%all, %p : tensor<2x5xi1>, tensor<2x5x6xf32>) outs(%pe : tensor<2x5x6xf32>) {
  ^bb0(%a: i1, %b: f32, %out: f32):
    %t = arith.select %a, %zero, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x5x6xf32>
  %w0 = tensor.extract_slice %w[0, 0, 0] [2, 5, 5] [1, 1, 1] : tensor<2x5x6xf32> to tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%w0, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// -----

#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>
#row = affine_map<(b, q, k) -> (b, q)>
#both = {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel"]}

// Scores that are returned too are in memory, so the attention captures them. The query and the key of the attention
// have head size 0, because only their numbers of rows still matter.
// CHECK-LABEL: @masked_scores_returned(
// CHECK: %[[SCORES:.*]] = linalg.generic
// CHECK-NOT: linalg.softmax
// CHECK: %[[OUT:.*]] = attn.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<5x0xf32>, tensor<5x0xf32>, tensor<2x5x8xf32>)
// CHECK-SAME: captures(%[[SCORES]] : tensor<2x5x5xf32>)
// CHECK: ^bb0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: f32, %[[S:.*]]: f32):
// CHECK: attn.yield %[[S]]
// CHECK: return %[[OUT]], %[[SCORES]]
func.func @masked_scores_returned(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>, %mask: tensor<2x5x5xf32>) -> (tensor<2x5x8xf32>, tensor<2x5x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %m = linalg.generic #both ins(%s, %mask : tensor<2x5x5xf32>, tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x5x5xf32>
  %p = linalg.softmax dimension(2) ins(%m : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o, %m : tensor<2x5x8xf32>, tensor<2x5x5xf32>
}

// A reduction reads the scores before the softmax, so the scores are in memory and captured.
// CHECK-LABEL: @reduction_between(
// CHECK: %[[SCORES:.*]] = linalg.contract
// CHECK: %[[MAX:.*]] = linalg.generic
// CHECK-NOT: linalg.softmax
// CHECK: attn.attention
// CHECK-SAME: captures(%[[SCORES]], %[[MAX]] : tensor<2x5x5xf32>, tensor<2x5xf32>)
func.func @reduction_between(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>, %re: tensor<2x5xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<2x5x5xf32>) outs(%re : tensor<2x5xf32>) {
  ^bb0(%a: f32, %max: f32):
    %t = arith.maximumf %a, %max : f32
    linalg.yield %t : f32
  } -> tensor<2x5xf32>
  %c = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %m : tensor<2x5x5xf32>, tensor<2x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x5x5xf32>
  %p = linalg.softmax dimension(2) ins(%c : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// -----

#sq = affine_map<(b, q, k, d) -> (b, q, d)>
#sk = affine_map<(b, q, k, d) -> (b, k, d)>
#s = affine_map<(b, q, k, d) -> (b, q, k)>
#op = affine_map<(b, q, e, k) -> (b, q, k)>
#ov = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>
#each = {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}

// Uses of the probabilities, or of their transposition, that precede the product move after the attention. A use after
// the product stays there.
// CHECK-LABEL: @weights_used_before(
// CHECK:       %[[O:.*]]:2 = attn.attention
// CHECK-NEXT:  %[[W:.*]] = linalg.generic {{.*}} ins(%[[O]]#1
// CHECK:       tensor.extract %[[O]]#1
// CHECK:       %[[T:.*]] = linalg.transpose ins(%[[O]]#1
// CHECK:       %[[WT:.*]] = linalg.exp ins(%[[T]]
// CHECK:       %[[LATER:.*]] = linalg.transpose ins(%[[O]]#1
// CHECK:       return %[[O]]#0, %[[W]], %[[WT]], %{{.*}}, %[[LATER]]
func.func @weights_used_before(%x: tensor<2x5x8xf32>, %oe: tensor<2x5x8xf32>) -> (tensor<2x5x8xf32>, tensor<2x5x5xf32>, tensor<2x5x5xf32>, tensor<2x5xf32>, tensor<2x5x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %s = linalg.contract indexing_maps = [#sq, #sk, #s] ins(%x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>) outs(%f : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %w = linalg.generic #each ins(%p : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.sqrt %a : f32
    linalg.yield %t : f32
  } -> tensor<2x5x5xf32>
  %row = tensor.empty() : tensor<2x5xf32>
  %first = linalg.generic {indexing_maps = [affine_map<(b, q) -> (b, q)>], iterator_types = ["parallel", "parallel"]} outs(%row : tensor<2x5xf32>) {
  ^bb0(%out: f32):
    %b = linalg.index 0 : index
    %q = linalg.index 1 : index
    %a = tensor.extract %p[%b, %q, %b] : tensor<2x5x5xf32>
    linalg.yield %a : f32
  } -> tensor<2x5xf32>
  %t = linalg.transpose ins(%p : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) permutation = [0, 2, 1]
  %wt = linalg.exp ins(%t : tensor<2x5x5xf32>) outs(%e : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %o = linalg.contract indexing_maps = [#op, #ov, #o] ins(%p, %x : tensor<2x5x5xf32>, tensor<2x5x8xf32>) outs(%of : tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
  %te = tensor.empty() : tensor<2x5x5xf32>
  %tb = linalg.transpose ins(%p : tensor<2x5x5xf32>) outs(%te : tensor<2x5x5xf32>) permutation = [0, 2, 1]
  return %o, %w, %wt, %first, %tb : tensor<2x5x8xf32>, tensor<2x5x5xf32>, tensor<2x5x5xf32>, tensor<2x5xf32>, tensor<2x5x5xf32>
}
