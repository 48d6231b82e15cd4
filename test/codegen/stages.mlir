// LLVM vectorises the ops that no pass of attn lowers to vectors, so LLVM may reorder their sums.
// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/sums.o --target=x86-64-v4 --dump-stages=%t
// RUN: FileCheck %s < %t/8-vectorize.mlir

// CHECK: scf.for
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc> : f32
func.func @sums(%x: tensor<4x96xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %sums = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                          iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x96xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  } -> tensor<4xf32>
  return %sums : tensor<4xf32>
}
