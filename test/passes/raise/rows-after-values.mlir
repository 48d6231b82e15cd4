// RUN: attn-opt %s -attn-rows-after-values | FileCheck %s

#bq = affine_map<(b, q, k) -> (b, q)>
#k = affine_map<(b, q, k) -> (k)>
#b0 = affine_map<(b, q, k) -> (b, q, 0)>
#bqk = affine_map<(b, q, k) -> (b, q, k)>
#p = affine_map<(b, q, e, k) -> (b, q, k)>
#v = affine_map<(b, q, e, k) -> (b, k, e)>
#o = affine_map<(b, q, e, k) -> (b, q, e)>
#t = affine_map<(b, q, e, k) -> (b, e, q)>

// Two ops on rows: a select, and a divisor that is computed in the op. The sums have another order of dimensions.
// CHECK-DAG: #[[BQ:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-LABEL: @two(
// CHECK: %[[P:.*]] = linalg.softmax
// CHECK: %[[PRODUCT:.*]] = linalg.contract {{.*}} ins(%[[P]], %{{.*}} : tensor<2x?x9xf32>, tensor<2x9x4xf32>)
// CHECK: %[[FIRST:.*]] = linalg.generic {indexing_maps = [#[[BQ]], #[[ID]], #[[ID]]]{{.*}} ins(%{{.*}}, %[[PRODUCT]] : tensor<2x?xi1>, tensor<2x4x?xf32>)
// CHECK: arith.select
// CHECK: %[[SECOND:.*]] = linalg.generic {indexing_maps = [#[[ID]], #{{.*}}, #[[ID]]]{{.*}} ins(%[[FIRST]], %{{.*}} : tensor<2x4x?xf32>, tensor<2x?x1xf32>)
// CHECK: linalg.index 2
// CHECK: arith.divf
// CHECK: return %[[SECOND]]
func.func @two(%s: tensor<2x?x9xf32>, %keep: tensor<2x?xi1>, %r: tensor<2x?x1xf32>, %v: tensor<2x9x4xf32>, %e: tensor<2x?x9xf32>, %z: tensor<2x4x?xf32>) -> tensor<2x4x?xf32> {
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x?x9xf32>) outs(%e : tensor<2x?x9xf32>) -> tensor<2x?x9xf32>
  %a = linalg.generic {indexing_maps = [#bq, #bqk, #bqk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%keep, %p : tensor<2x?xi1>, tensor<2x?x9xf32>) outs(%e : tensor<2x?x9xf32>) {
    ^bb0(%c: i1, %x: f32, %out: f32):
      %zero = arith.constant 0.0 : f32
      %y = arith.select %c, %x, %zero : f32
      linalg.yield %y : f32
  } -> tensor<2x?x9xf32>
  %d = linalg.generic {indexing_maps = [#bqk, #b0, #bqk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %r : tensor<2x?x9xf32>, tensor<2x?x1xf32>) outs(%e : tensor<2x?x9xf32>) {
    ^bb0(%x: f32, %by: f32, %out: f32):
      %i = linalg.index 1 : index
      %j = arith.index_cast %i : index to i32
      %f = arith.sitofp %j : i32 to f32
      %g = arith.addf %f, %by : f32
      %y = arith.divf %x, %g : f32
      linalg.yield %y : f32
  } -> tensor<2x?x9xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
  %o = linalg.contract indexing_maps = [#p, #v, #t] ins(%d, %v : tensor<2x?x9xf32>, tensor<2x9x4xf32>) outs(%f : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
  return %o : tensor<2x4x?xf32>
}

// Not these: the factor varies with the key, it is computed from the probabilities, the result has another use, or the
// product adds to other numbers than 0.
// CHECK-LABEL: @not(
// CHECK-COUNT-4: linalg.generic
// CHECK: linalg.contract
// CHECK-NEXT: return
func.func @not(%s: tensor<2x5x9xf32>, %r: tensor<9xf32>, %v: tensor<2x9x4xf32>, %e: tensor<2x5x9xf32>, %sums: tensor<2x5xf32>, %out: tensor<2x5x4xf32>) -> (tensor<2x5x4xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>, tensor<2x5x9xf32>, tensor<2x5x4xf32>) {
  %zero = arith.constant 0.0 : f32
  %z = linalg.fill ins(%zero : f32) outs(%out : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x5x9xf32>) outs(%e : tensor<2x5x9xf32>) -> tensor<2x5x9xf32>
  %a = linalg.generic {indexing_maps = [#k, #bqk, #bqk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%r, %p : tensor<9xf32>, tensor<2x5x9xf32>) outs(%e : tensor<2x5x9xf32>) {
    ^bb0(%c: f32, %x: f32, %unused: f32):
      %y = arith.mulf %c, %x : f32
      linalg.yield %y : f32
  } -> tensor<2x5x9xf32>
  %o = linalg.contract indexing_maps = [#p, #v, #o] ins(%a, %v : tensor<2x5x9xf32>, tensor<2x9x4xf32>) outs(%z : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %sum = linalg.reduce ins(%p : tensor<2x5x9xf32>) outs(%sums : tensor<2x5xf32>) dimensions = [2]
    (%x: f32, %total: f32) {
      %y = arith.addf %x, %total : f32
      linalg.yield %y : f32
    }
  %d = linalg.generic {indexing_maps = [#bq, #bqk, #bqk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sum, %p : tensor<2x5xf32>, tensor<2x5x9xf32>) outs(%e : tensor<2x5x9xf32>) {
    ^bb0(%c: f32, %x: f32, %unused: f32):
      %y = arith.divf %x, %c : f32
      linalg.yield %y : f32
  } -> tensor<2x5x9xf32>
  %o1 = linalg.contract indexing_maps = [#p, #v, #o] ins(%d, %v : tensor<2x5x9xf32>, tensor<2x9x4xf32>) outs(%z : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %u = linalg.generic {indexing_maps = [#bq, #bqk, #bqk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sums, %p : tensor<2x5xf32>, tensor<2x5x9xf32>) outs(%e : tensor<2x5x9xf32>) {
    ^bb0(%c: f32, %x: f32, %unused: f32):
      %y = arith.mulf %x, %c : f32
      linalg.yield %y : f32
  } -> tensor<2x5x9xf32>
  %o2 = linalg.contract indexing_maps = [#p, #v, #o] ins(%u, %v : tensor<2x5x9xf32>, tensor<2x9x4xf32>) outs(%z : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %w = linalg.generic {indexing_maps = [#bq, #bqk, #bqk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%sums, %p : tensor<2x5xf32>, tensor<2x5x9xf32>) outs(%e : tensor<2x5x9xf32>) {
    ^bb0(%c: f32, %x: f32, %unused: f32):
      %y = arith.mulf %x, %c : f32
      linalg.yield %y : f32
  } -> tensor<2x5x9xf32>
  %o3 = linalg.contract indexing_maps = [#p, #v, #o] ins(%w, %v : tensor<2x5x9xf32>, tensor<2x9x4xf32>) outs(%out : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %o, %o1, %o2, %u, %o3 : tensor<2x5x4xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32>, tensor<2x5x9xf32>, tensor<2x5x4xf32>
}
