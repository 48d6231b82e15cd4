// A tensor has no negative size.
// RUN: not attn-run %s --reference --dim arg0.0=3 --dim arg1.0=300 2>&1 | FileCheck %s
// CHECK: expected --dim=arg0.0 in [1000000, 2147483647], got 3

#id = affine_map<(a) -> (a)>
func.func @f(%x: tensor<?xf32>, %y: tensor<?x64xf32>) -> (tensor<f32>, tensor<?x64xf32>) {
  %c0 = arith.constant 0 : index
  %k = arith.constant 1000000 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?x64xf32>
  %a = arith.subi %n, %k : index
  %e1 = tensor.empty(%a) : tensor<?xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %e2 = tensor.empty(%m) : tensor<?x64xf32>
  %s1 = linalg.softmax dimension(1) ins(%y : tensor<?x64xf32>) outs(%e2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %s2 = linalg.softmax dimension(0) ins(%s1 : tensor<?x64xf32>) outs(%e2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %s3 = linalg.softmax dimension(1) ins(%s2 : tensor<?x64xf32>) outs(%e2 : tensor<?x64xf32>) -> tensor<?x64xf32>
  %e3 = tensor.empty(%a) : tensor<?xf32>
  %w = linalg.softmax dimension(0) ins(%f1 : tensor<?xf32>) outs(%e3 : tensor<?xf32>) -> tensor<?xf32>
  %w2 = linalg.softmax dimension(0) ins(%w : tensor<?xf32>) outs(%e3 : tensor<?xf32>) -> tensor<?xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce ins(%w2 : tensor<?xf32>) outs(%f : tensor<f32>) dimensions = [0] (%p: f32, %o: f32) { %t = arith.addf %p, %o : f32 linalg.yield %t : f32 }
  return %r, %s3 : tensor<f32>, tensor<?x64xf32>
}
