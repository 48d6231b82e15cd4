// RUN: attn-opt %s -attn-group-rows -split-input-file | FileCheck %s

#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (k, n)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>
#all = affine_map<(b, s, n) -> (b, s, n)>
#rows = affine_map<(b, s, n) -> (b, s)>
#id = affine_map<(b, s) -> (b, s)>
#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.target = #v4} {
// The two products of an MLP, the residual and the sum of a normalisation form one group, whose tasks have 24 rows.
// CHECK-LABEL: @mlp(
// CHECK: linalg.fill {attn.task = #attn.task<rows = 24, group = 0>}
// CHECK: linalg.contract {{.*}} {attn.task = #attn.task<rows = 24, group = 0>}
// CHECK: linalg.tanh {attn.task = #attn.task<rows = 24, group = 0>}
// CHECK: linalg.contract {{.*}} {attn.task = #attn.task<rows = 24, group = 0>}
// CHECK: linalg.add {attn.task = #attn.task<rows = 24, group = 0>}
// CHECK: linalg.generic {{.*}} attrs = {attn.task = #attn.task<rows = 24, group = 0>}
func.func @mlp(%x: tensor<2x?x64xf32>, %w: tensor<64x128xf32>, %u: tensor<128x64xf32>, %e: tensor<2x?x128xf32>, %f: tensor<2x?x64xf32>, %g: tensor<2x?xf32>)
    -> (tensor<2x?x64xf32>, tensor<2x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x?x128xf32>) -> tensor<2x?x128xf32>
  %h = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<2x?x64xf32>, tensor<64x128xf32>) outs(%i : tensor<2x?x128xf32>) -> tensor<2x?x128xf32>
  %a = linalg.tanh ins(%h : tensor<2x?x128xf32>) outs(%e : tensor<2x?x128xf32>) -> tensor<2x?x128xf32>
  %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%a, %u : tensor<2x?x128xf32>, tensor<128x64xf32>) outs(%f : tensor<2x?x64xf32>) -> tensor<2x?x64xf32>
  %r = linalg.add ins(%x, %y : tensor<2x?x64xf32>, tensor<2x?x64xf32>) outs(%f : tensor<2x?x64xf32>) -> tensor<2x?x64xf32>
  %sum = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "parallel", "reduction"]} ins(%r : tensor<2x?x64xf32>) outs(%g : tensor<2x?xf32>) {
    ^bb0(%in: f32, %s: f32):
      %t = arith.addf %s, %in : f32
      linalg.yield %t : f32
  } -> tensor<2x?xf32>
  return %r, %sum : tensor<2x?x64xf32>, tensor<2x?xf32>
}

// Products that read the same rows form a group. The rows are an argument, or an op of the group computes them.
// CHECK-LABEL: @same_argument(
// CHECK-COUNT-2: linalg.contract {{.*}} {attn.task = #attn.task<rows = 64, group = 0>}
func.func @same_argument(%x: tensor<2x?x64xf32>, %v: tensor<64x32xf32>, %w: tensor<64x32xf32>, %f: tensor<2x?x32xf32>)
    -> (tensor<2x?x32xf32>, tensor<2x?x32xf32>) {
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %v : tensor<2x?x64xf32>, tensor<64x32xf32>) outs(%f : tensor<2x?x32xf32>) -> tensor<2x?x32xf32>
  %q = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<2x?x64xf32>, tensor<64x32xf32>) outs(%f : tensor<2x?x32xf32>) -> tensor<2x?x32xf32>
  return %k, %q : tensor<2x?x32xf32>, tensor<2x?x32xf32>
}

// CHECK-LABEL: @two_readers(
// CHECK-COUNT-2: linalg.contract {{.*}} {attn.task = #attn.task<rows = 64, group = 0>}
func.func @two_readers(%x: tensor<2x?x64xf32>, %v: tensor<64x32xf32>, %w: tensor<64x32xf32>, %e: tensor<2x?x64xf32>, %f: tensor<2x?x32xf32>)
    -> (tensor<2x?x32xf32>, tensor<2x?x32xf32>) {
  %a = linalg.tanh ins(%x : tensor<2x?x64xf32>) outs(%e : tensor<2x?x64xf32>) -> tensor<2x?x64xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%a, %v : tensor<2x?x64xf32>, tensor<64x32xf32>) outs(%f : tensor<2x?x32xf32>) -> tensor<2x?x32xf32>
  %q = linalg.contract indexing_maps = [#x, #w, #y] ins(%a, %w : tensor<2x?x64xf32>, tensor<64x32xf32>) outs(%f : tensor<2x?x32xf32>) -> tensor<2x?x32xf32>
  return %k, %q : tensor<2x?x32xf32>, tensor<2x?x32xf32>
}

// No groups: each task of the first two products would read their weights, which take more than half of L2. A single
// product with an activation gains nothing from a group.
// CHECK-LABEL: @large(
// CHECK-NOT: attn.task
func.func @large(%x: tensor<2x?x384xf32>, %w: tensor<384x384xf32>, %v: tensor<384x32xf32>, %f: tensor<2x?x384xf32>, %g: tensor<2x?x32xf32>)
    -> (tensor<2x?x384xf32>, tensor<2x?x32xf32>) {
  %a = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<2x?x384xf32>, tensor<384x384xf32>) outs(%f : tensor<2x?x384xf32>) -> tensor<2x?x384xf32>
  %b = linalg.contract indexing_maps = [#x, #w, #y] ins(%a, %w : tensor<2x?x384xf32>, tensor<384x384xf32>) outs(%f : tensor<2x?x384xf32>) -> tensor<2x?x384xf32>
  %p = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %v : tensor<2x?x384xf32>, tensor<384x32xf32>) outs(%g : tensor<2x?x32xf32>) -> tensor<2x?x32xf32>
  %t = linalg.tanh ins(%p : tensor<2x?x32xf32>) outs(%g : tensor<2x?x32xf32>) -> tensor<2x?x32xf32>
  return %b, %t : tensor<2x?x384xf32>, tensor<2x?x32xf32>
}

// A product needs all rows of its right operand. If another product computes this operand, the two products are
// in different groups.
// CHECK-LABEL: @all_rows(
// CHECK-COUNT-2: linalg.contract {{.*}} group = 0>
// CHECK-COUNT-2: linalg.contract {{.*}} group = 1>
func.func @all_rows(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %f: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = linalg.contract indexing_maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>] ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = linalg.contract indexing_maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>] ins(%a, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = linalg.contract indexing_maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>] ins(%x, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = linalg.contract indexing_maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>] ins(%c, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
}
