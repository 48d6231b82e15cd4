// The index is the sum of earlier iterations, not the number with which the sum begins.
// RUN: attn-run %s --reference | FileCheck %s --check-prefix=RIGHT
// RIGHT: output 0: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}

func.func @f(%x: tensor<100xf32>, %t: tensor<4xi64>) -> (tensor<i64>) {
  %z = arith.constant 0 : i64
  %k = arith.constant 1000000000 : i64
  %e0 = tensor.empty() : tensor<i64>
  %f = linalg.fill ins(%z : i64) outs(%e0 : tensor<i64>) -> tensor<i64>
  %s = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<100xf32>) outs(%f : tensor<i64>) {
  ^bb0(%a: f32, %o: i64):
    %i = arith.index_cast %o : i64 to index
    %v = tensor.extract %t[%i] : tensor<4xi64>
    %w = arith.addi %o, %k : i64
    %m = arith.maxsi %w, %v : i64
    linalg.yield %m : i64
  } -> tensor<i64>
  return %s : tensor<i64>
}
