// RUN: attn-opt %s -attn-fold-gathers | FileCheck %s

#id = affine_map<(b, k) -> (b, k)>
#row = affine_map<(b, k) -> (b)>
#column = affine_map<(b, k) -> (0, k)>
#count = affine_map<(k) -> (k)>

// Both indices are coordinates of the op, which are in bounds and not negative, so the gather becomes a plain read.
// CHECK-LABEL: @at_the_coordinates(
// CHECK-SAME: %[[T:[a-z0-9]*]]: tensor<2x?xi1>
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[T]] : tensor<2xi64>, tensor<1x?xi64>, tensor<2x?xi1>)
// CHECK-NEXT: ^bb0(%{{.*}}: i64, %{{.*}}: i64, %[[A:.*]]: i1, %{{.*}}: i1):
// CHECK-NOT: tensor.extract
// CHECK: linalg.yield %[[A]]
// CHECK: return %[[R]]
func.func @at_the_coordinates(%t: tensor<2x?xi1>) -> tensor<2x?xi1> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %t, %c1 : tensor<2x?xi1>
  %last = arith.subi %n, %c1 : index
  %re = tensor.empty() : tensor<2xi64>
  %rows = linalg.generic {indexing_maps = [#count], iterator_types = ["parallel"]} outs(%re : tensor<2xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %a = arith.index_cast %i : index to i64
    linalg.yield %a : i64
  } -> tensor<2xi64>
  %ce = tensor.empty(%n) : tensor<?xi64>
  %counted = linalg.generic {indexing_maps = [#count], iterator_types = ["parallel"]} outs(%ce : tensor<?xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %a = arith.index_cast %i : index to i64
    linalg.yield %a : i64
  } -> tensor<?xi64>
  %columns = tensor.expand_shape %counted [[0, 1]] output_shape [1, %n] : tensor<?xi64> into tensor<1x?xi64>
  %e = tensor.empty(%n) : tensor<2x?xi1>
  %r = linalg.generic {indexing_maps = [#row, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%rows, %columns : tensor<2xi64>, tensor<1x?xi64>) outs(%e : tensor<2x?xi1>) {
  ^bb0(%b: i64, %k: i64, %out: i1):
    %i = arith.index_cast %b : i64 to index
    %i0 = arith.minsi %i, %c1 : index
    %i1 = arith.maxsi %i0, %c0 : index
    %j = arith.index_cast %k : i64 to index
    %negative = arith.cmpi slt, %j, %c0 : index
    %wrapped = arith.addi %j, %n : index
    %j0 = arith.select %negative, %wrapped, %j : index
    %j1 = arith.minsi %j0, %last : index
    %j2 = arith.maxsi %j1, %c0 : index
    %a = tensor.extract %t[%i1, %j2] : tensor<2x?xi1>
    linalg.yield %a : i1
  } -> tensor<2x?xi1>
  return %r : tensor<2x?xi1>
}

// Three gathers stay: a clamp changes the last index; the loop is longer than the dimension; the indices are data.
// CHECK-LABEL: @stays(
// CHECK: tensor.extract
// CHECK: tensor.extract
// CHECK: tensor.extract
func.func @stays(%t: tensor<5xf32>, %long: tensor<6xf32>, %at: tensor<5xi64>) -> (tensor<5xf32>, tensor<6xf32>, tensor<5xf32>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<5xf32>
  %clamped = linalg.generic {indexing_maps = [#count], iterator_types = ["parallel"]} outs(%e : tensor<5xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = arith.minsi %i, %c3 : index
    %a = tensor.extract %t[%j] : tensor<5xf32>
    linalg.yield %a : f32
  } -> tensor<5xf32>
  %e6 = tensor.empty() : tensor<6xf32>
  %longer = linalg.generic {indexing_maps = [#count], iterator_types = ["parallel"]} outs(%e6 : tensor<6xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = arith.minsi %i, %c4 : index
    %a = tensor.extract %t[%j] : tensor<5xf32>
    linalg.yield %a : f32
  } -> tensor<6xf32>
  %gathered = linalg.generic {indexing_maps = [#count, #count], iterator_types = ["parallel"]} ins(%at : tensor<5xi64>) outs(%e : tensor<5xf32>) {
  ^bb0(%i: i64, %out: f32):
    %j = arith.index_cast %i : i64 to index
    %j0 = arith.minsi %j, %c4 : index
    %j1 = arith.maxsi %j0, %c0 : index
    %a = tensor.extract %t[%j1] : tensor<5xf32>
    linalg.yield %a : f32
  } -> tensor<5xf32>
  return %clamped, %longer, %gathered : tensor<5xf32>, tensor<6xf32>, tensor<5xf32>
}

// Along a dimension of size 1, every clamped index is 0.
// CHECK-LABEL: @only_place(
// CHECK-SAME: %[[T:.*]]: tensor<1x5xf32>
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[T]] :
// CHECK-NOT: tensor.extract
// CHECK: return
func.func @only_place(%t: tensor<1x5xf32>, %at: tensor<5xi64>) -> tensor<5xf32> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<5xf32>
  %y = linalg.generic {indexing_maps = [#count, #count], iterator_types = ["parallel"]} ins(%at : tensor<5xi64>) outs(%e : tensor<5xf32>) {
  ^bb0(%i: i64, %out: f32):
    %b = arith.index_cast %i : i64 to index
    %b0 = arith.minsi %b, %c0 : index
    %b1 = arith.maxsi %b0, %c0 : index
    %j = linalg.index 0 : index
    %a = tensor.extract %t[%b1, %j] : tensor<1x5xf32>
    linalg.yield %a : f32
  } -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// Two gathers stay: an index may not fit in 8 bits (@narrow), or is that of a loop around the op (@position_of_a_loop).
// CHECK-LABEL: @narrow(
// CHECK: tensor.extract
func.func @narrow(%x: tensor<200xf32>, %e: tensor<200xf32>) -> tensor<200xf32> {
  %c0 = arith.constant 0 : index
  %c200 = arith.constant 200 : index
  %r = linalg.generic {indexing_maps = [#count], iterator_types = ["parallel"]} outs(%e : tensor<200xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %b = arith.index_cast %i : index to i8
    %j = arith.index_cast %b : i8 to index
    %neg = arith.cmpi slt, %j, %c0 : index
    %w = arith.addi %j, %c200 : index
    %k = arith.select %neg, %w, %j : index
    %v = tensor.extract %x[%k] : tensor<200xf32>
    linalg.yield %v : f32
  } -> tensor<200xf32>
  return %r : tensor<200xf32>
}

// CHECK-LABEL: @position_of_a_loop(
// CHECK: tensor.extract
func.func @position_of_a_loop(%x: tensor<5xf32>, %e: tensor<5xf32>) -> tensor<5xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %ie = tensor.empty() : tensor<5xi64>
  %n = linalg.generic {indexing_maps = [#count], iterator_types = ["parallel"]} outs(%ie : tensor<5xi64>) {
  ^bb0(%out: i64):
    %i = linalg.index 0 : index
    %a = arith.index_cast %i : index to i64
    linalg.yield %a : i64
  } -> tensor<5xi64>
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%acc = %e) -> tensor<5xf32> {
    %y = linalg.generic {indexing_maps = [#count, #count], iterator_types = ["parallel"]} ins(%n : tensor<5xi64>) outs(%acc : tensor<5xf32>) {
    ^bb0(%a: i64, %out: f32):
      %v = tensor.extract %x[%i] : tensor<5xf32>
      linalg.yield %v : f32
    } -> tensor<5xf32>
    scf.yield %y : tensor<5xf32>
  }
  return %r : tensor<5xf32>
}
