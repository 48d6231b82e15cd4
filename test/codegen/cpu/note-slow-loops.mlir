// RUN: attn-opt %s -attn-note-slow-loops -verify-diagnostics

#id = affine_map<(i) -> (i)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
func.func @f(%x: tensor<8xf32>, %index: tensor<8xindex>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%index : tensor<8xindex>) outs(%y : tensor<8xf32>) {
  ^bb0(%i: index, %out: f32):
    // expected-remark @+1 {{loop over scalars: reads memory at indices that are data}}
    %e = tensor.extract %x[%i] : tensor<8xf32>
    linalg.yield %e : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    // expected-remark @+1 {{loop in f64: computes math.log}}
    %e = math.log %a : f32
    linalg.yield %e : f32
  } -> tensor<8xf32>
  // The exponential is computed in f32, so this loop gets no remark.
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%1 : tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  } -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// The positions of a batch whose size is unknown are compared too.
func.func @batch(%x: tensor<?x32xi32>, %y: tensor<?x32xi32>) -> tensor<?x32xi32> {
  // expected-remark @+1 {{loop over positions: takes 32 steps for each element}}
  %0 = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, j)>, affine_map<(b, i, j) -> (b, i)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<?x32xi32>) outs(%y : tensor<?x32xi32>) {
  ^bb0(%a: i32, %out: i32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %before = arith.cmpi sle, %j, %i : index
    %e = arith.select %before, %a, %out : i32
    linalg.yield %e : i32
  } -> tensor<?x32xi32>
  return %0 : tensor<?x32xi32>
}

// A cumulative sum reads each element for each position.
func.func @cumulative(%x: tensor<32xf32>, %y: tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>) {
  %zero = arith.constant 0.0 : f32
  // expected-remark @+1 {{loop over positions: takes 32 steps for each element}}
  %0 = linalg.generic {indexing_maps = [#column, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<32xf32>) outs(%y : tensor<32xf32>) {
  ^bb0(%a: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %before = arith.cmpi sle, %j, %i : index
    %e = arith.select %before, %a, %zero : f32
    %sum = arith.addf %out, %e : f32
    linalg.yield %sum : f32
  } -> tensor<32xf32>
  // The sum over differences of all pairs does not read positions.
  %1 = linalg.generic {indexing_maps = [#row, #column, #row], iterator_types = ["parallel", "reduction"]} ins(%x, %x : tensor<32xf32>, tensor<32xf32>) outs(%y : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %e = arith.subf %a, %b : f32
    %sum = arith.addf %out, %e : f32
    linalg.yield %sum : f32
  } -> tensor<32xf32>
  return %0, %1 : tensor<32xf32>, tensor<32xf32>
}
