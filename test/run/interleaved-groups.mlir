// The ops of two groups alternate, so the scheduling of the first group moves an op of the second group.
// RUN: attn-run %s --reference --level=x86-64
// RUN: attnc %s -o %t.so --target=x86-64-v4 --opt-report | FileCheck %s
// CHECK-COUNT-2: 2 products and the ops between share tasks of
#x = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (k, n)>
#y = affine_map<(s, n, k) -> (s, n)>
func.func @forward(%x: tensor<64x64xf32>, %z: tensor<64x64xf32>, %v: tensor<64x64xf32>, %w0: tensor<64x64xf32>, %w1: tensor<64x64xf32>, %w2: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c0 = linalg.contract indexing_maps = [#x, #w, #y] ins(%v, %w1 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  %a = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  %b1 = linalg.contract indexing_maps = [#x, #w, #y] ins(%z, %a : tensor<64x64xf32>, tensor<64x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  %b2 = linalg.contract indexing_maps = [#x, #w, #y] ins(%z, %c0 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w2 : tensor<64x64xf32>, tensor<64x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %b1, %b2, %c : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}
