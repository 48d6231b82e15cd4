// RUN: attn-opt %s -attn-plan-products -split-input-file -verify-diagnostics | FileCheck %s

#x = affine_map<(s, p, j, k) -> (s, k)>
#w = affine_map<(s, p, j, k) -> (p, k, j)>
#o = affine_map<(s, p, j, k) -> (s, p, j)>
#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.target = #v4} {
// A panel of 64 columns, and a long sum in parts; attributes that are there already stay.
// CHECK-LABEL: @panels
// CHECK: linalg.contract {{.*}} {attn.block = #attn.block<rows = 6, vectors = 4, depth = 192>, attn.task = #attn.task<rows = 96>}
// CHECK: linalg.contract {{.*}} {attn.block = #attn.block<rows = 2, vectors = 1>, attn.task = #attn.task<rows = 8>}
func.func @panels(%x: tensor<?x3072xf32>, %w: tensor<12x3072x64xf32>, %i: tensor<?x12x64xf32>) -> (tensor<?x12x64xf32>, tensor<?x12x64xf32>) {
  %c = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<?x3072xf32>, tensor<12x3072x64xf32>)
      outs(%i : tensor<?x12x64xf32>) -> tensor<?x12x64xf32>
  %d = linalg.contract indexing_maps = [#x, #w, #o] {attn.block = #attn.block<rows = 2, vectors = 1>, attn.task = #attn.task<rows = 8>}
      ins(%x, %w : tensor<?x3072xf32>, tensor<12x3072x64xf32>) outs(%i : tensor<?x12x64xf32>) -> tensor<?x12x64xf32>
  return %c, %d : tensor<?x12x64xf32>, tensor<?x12x64xf32>
}
// Two tasks of about 96 rows, in whole blocks of 6, instead of two of 96 and one of 5.
// CHECK-LABEL: @rows
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 102>}
func.func @rows(%x: tensor<197x3072xf32>, %w: tensor<12x3072x64xf32>, %i: tensor<197x12x64xf32>) -> tensor<197x12x64xf32> {
  %c = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<197x3072xf32>, tensor<12x3072x64xf32>)
      outs(%i : tensor<197x12x64xf32>) -> tensor<197x12x64xf32>
  return %c : tensor<197x12x64xf32>
}
}

// -----

#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.target = #v4} {
func.func @depth(%a: tensor<8x100xf32>, %b: tensor<100x64xf32>, %c: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @+1 {{expected a depth that divides the sum of 100 products, got 64}}
  %r = linalg.matmul {attn.block = #attn.block<rows = 6, vectors = 4, depth = 64>}
      ins(%a, %b : tensor<8x100xf32>, tensor<100x64xf32>) outs(%c : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}
}

// -----

func.func @block(%a: tensor<8x100xf32>, %b: tensor<100x64xf32>, %c: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @+1 {{expected 1 to 8 rows, at least one vector and no negative depth, got rows = 9, vectors = 4, depth = 0}}
  %r = linalg.matmul {attn.block = #attn.block<rows = 9, vectors = 4>}
      ins(%a, %b : tensor<8x100xf32>, tensor<100x64xf32>) outs(%c : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}
