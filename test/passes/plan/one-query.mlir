// RUN: attn-opt %s -attn-one-query -split-input-file | FileCheck %s

#q = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, q, k, d, e) -> (h, k, e)>
#c = affine_map<(h, q, k, d, e) -> (q, k)>
#o = affine_map<(h, q, k, d, e) -> (h, q, e)>
module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>} {
// All operands that have queries get a form with one query, and the result fills its part of the same init.
// CHECK-LABEL: @attention(
// CHECK-SAME: %[[Q:[^:]*]]: tensor<8x?x64xf32>
// CHECK-SAME: %[[C:[^:]*]]: tensor<?x?xf32>, %[[E:[^:]*]]: tensor<8x?x32xf32>)
// CHECK: %[[N:.*]] = tensor.dim %[[Q]], %c1
// CHECK: %[[IS_ONE:.*]] = arith.cmpi eq, %[[N]], %c1
// CHECK: %[[R:.*]] = scf.if %[[IS_ONE]] -> (tensor<8x?x32xf32>) {
// CHECK: %[[Q1:.*]] = tensor.cast %[[Q]] : tensor<8x?x64xf32> to tensor<8x1x64xf32>
// CHECK: %[[C1:.*]] = tensor.cast %[[C]] : tensor<?x?xf32> to tensor<1x?xf32>
// CHECK: %[[E1:.*]] = tensor.extract_slice %[[E]][0, 0, 0] [8, 1, 32] [1, 1, 1] : tensor<8x?x32xf32> to tensor<8x1x32xf32>
// CHECK: %[[O1:.*]] = attn.attention ins(%[[Q1]], {{.*}} captures(%[[C1]] : {{.*}} outs(%[[E1]] : {{.*}} mask(#attn.causal) {attn.one_query,
// CHECK: %[[ALL:.*]] = tensor.insert_slice %[[O1]] into %[[E]][0, 0, 0] [8, 1, 32] [1, 1, 1]
// CHECK: scf.yield %[[ALL]]
// CHECK: } else {
// CHECK: %[[O:.*]] = attn.attention ins(%[[Q]], {{.*}} captures(%[[C]] : {{.*}} outs(%[[E]] : {{.*}} mask(#attn.causal) {indexing_maps
// CHECK: scf.yield %[[O]]
// CHECK: return %[[R]]
func.func @attention(%q: tensor<8x?x64xf32> {attn.dims = ["", "n", ""]}, %k: tensor<8x?x64xf32> {attn.dims = ["", "m", ""]}, %v: tensor<8x?x32xf32>, %c: tensor<?x?xf32>, %e: tensor<8x?x32xf32>) -> tensor<8x?x32xf32>
    attributes {attn.symbols = [#attn.symbol<"n", 0 to 64>, #attn.symbol<"m", 0 to 64>]} {
  %o = attn.attention ins(%q, %k, %v : tensor<8x?x64xf32>, tensor<8x?x64xf32>, tensor<8x?x32xf32>) captures(%c : tensor<?x?xf32>)
      outs(%e : tensor<8x?x32xf32>) mask(#attn.causal) {indexing_maps = [#q, #k, #v, #c, #o], scale = 1.0 : f32} score {
      ^bb0(%h: index, %i: index, %j: index, %s: f32, %b: f32):
        %t = arith.addf %s, %b : f32
        attn.yield %t : f32
      } -> tensor<8x?x32xf32>
  return %o : tensor<8x?x32xf32>
}

// Both outputs are slices of their inits. The queries are also the keys.
// CHECK-LABEL: @two_outputs(
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x64xf32>, %[[E:[^:]*]]: tensor<?x64xf32>, %[[P:[^:]*]]: tensor<?x?xf32>)
// CHECK: scf.if
// CHECK: %[[X1:.*]] = tensor.cast %[[X]] : tensor<?x64xf32> to tensor<1x64xf32>
// CHECK: %[[E1:.*]] = tensor.extract_slice %[[E]][0, 0] [1, 64] [1, 1]
// CHECK: %[[N:.*]] = tensor.dim %[[P]], %c1
// CHECK: %[[P1:.*]] = tensor.extract_slice %[[P]][0, 0] [1, %[[N]]] [1, 1]
// CHECK: attn.attention ins(%[[X1]], %[[X]], %[[X]] : {{.*}} outs(%[[E1]], %[[P1]] :
// CHECK: scf.yield
// CHECK: } else {
// CHECK: return
func.func @two_outputs(%x: tensor<?x64xf32>, %e: tensor<?x64xf32>, %p: tensor<?x?xf32>) -> (tensor<?x64xf32>, tensor<?x?xf32>) {
  %o:2 = attn.attention ins(%x, %x, %x : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>)
      outs(%e, %p : tensor<?x64xf32>, tensor<?x?xf32>) {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>, affine_map<(q, k, d, e) -> (q, k)>], scale = 1.0 : f32} -> tensor<?x64xf32>, tensor<?x?xf32>
  return %o#0, %o#1 : tensor<?x64xf32>, tensor<?x?xf32>
}

// No call has one query.
// CHECK-LABEL: @many(
// CHECK-NOT: scf.if
func.func @many(%q: tensor<8x?x64xf32> {attn.dims = ["", "n", ""]}, %k: tensor<8x?x64xf32>, %v: tensor<8x?x32xf32>, %e: tensor<8x?x32xf32>) -> tensor<8x?x32xf32>
    attributes {attn.symbols = [#attn.symbol<"n", 2 to 64>]} {
  %o = attn.attention ins(%q, %k, %v : tensor<8x?x64xf32>, tensor<8x?x64xf32>, tensor<8x?x32xf32>)
      outs(%e : tensor<8x?x32xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<8x?x32xf32>
  return %o : tensor<8x?x32xf32>
}

// CHECK-LABEL: @planned(
// CHECK-NOT: scf.if
func.func @planned(%q: tensor<8x?x64xf32>, %k: tensor<8x?x64xf32>, %v: tensor<8x?x32xf32>, %e: tensor<8x?x32xf32>) -> tensor<8x?x32xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<8x?x64xf32>, tensor<8x?x64xf32>, tensor<8x?x32xf32>)
      outs(%e : tensor<8x?x32xf32>) plan(<"per-head", q = 8, k = 32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<8x?x32xf32>
  return %o : tensor<8x?x32xf32>
}

// One query would have one key.
// CHECK-LABEL: @as_many_keys(
// CHECK-NOT: scf.if
func.func @as_many_keys(%q: tensor<8x?x64xf32> {attn.dims = ["", "n", ""]}, %k: tensor<8x?x64xf32> {attn.dims = ["", "n", ""]}, %v: tensor<8x?x32xf32>, %e: tensor<8x?x32xf32>) -> tensor<8x?x32xf32>
    attributes {attn.symbols = [#attn.symbol<"n", 0 to 64>, #attn.symbol<"m", 0 to 64>]} {
  %o = attn.attention ins(%q, %k, %v : tensor<8x?x64xf32>, tensor<8x?x64xf32>, tensor<8x?x32xf32>)
      outs(%e : tensor<8x?x32xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<8x?x32xf32>
  return %o : tensor<8x?x32xf32>
}

// CHECK-LABEL: @known(
// CHECK-NOT: scf.if
func.func @known(%q: tensor<8x5x64xf32>, %k: tensor<8x?x64xf32>, %v: tensor<8x?x32xf32>, %e: tensor<8x5x32xf32>) -> tensor<8x5x32xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<8x5x64xf32>, tensor<8x?x64xf32>, tensor<8x?x32xf32>)
      outs(%e : tensor<8x5x32xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<8x5x32xf32>
  return %o : tensor<8x5x32xf32>
}

// The projection shares tasks with the attention, so both stay in one block.
// CHECK-LABEL: @projection(
// CHECK-NOT: scf.if
func.func @projection(%x: tensor<?x512xf32>, %w: tensor<8x512x64xf32>, %i: tensor<8x?x64xf32>, %k: tensor<8x?x64xf32>, %v: tensor<8x?x32xf32>, %e: tensor<8x?x32xf32>) -> tensor<8x?x32xf32> {
  %q = linalg.contract indexing_maps = [affine_map<(h, n, j, k) -> (n, k)>, affine_map<(h, n, j, k) -> (h, k, j)>, affine_map<(h, n, j, k) -> (h, n, j)>]
      ins(%x, %w : tensor<?x512xf32>, tensor<8x512x64xf32>) outs(%i : tensor<8x?x64xf32>) -> tensor<8x?x64xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<8x?x64xf32>, tensor<8x?x64xf32>, tensor<8x?x32xf32>)
      outs(%e : tensor<8x?x32xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<8x?x32xf32>
  return %o : tensor<8x?x32xf32>
}
}

// -----

#q = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, q, k, d, e) -> (h, k, e)>
#o = affine_map<(h, q, k, d, e) -> (h, q, e)>
// GPUs use the plan for many queries.
module attributes {attn.target = #attn.gpu<"sm_80", shared = 101376, registers = 65536>} {
// CHECK-LABEL: @gpu(
// CHECK-NOT: scf.if
func.func @gpu(%q: tensor<8x?x64xf16>, %k: tensor<8x?x64xf16>, %v: tensor<8x?x64xf16>, %e: tensor<8x?x64xf16>) -> tensor<8x?x64xf16> {
  %o = attn.attention ins(%q, %k, %v : tensor<8x?x64xf16>, tensor<8x?x64xf16>, tensor<8x?x64xf16>)
      outs(%e : tensor<8x?x64xf16>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<8x?x64xf16>
  return %o : tensor<8x?x64xf16>
}
}
