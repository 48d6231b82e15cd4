// RUN: attn-opt %s -attn-fold-uniform -canonicalize | FileCheck %s

#i = affine_map<(i) -> (i)>
#q = affine_map<(q, k) -> (q)>
#k = affine_map<(q, k) -> (k)>
#qk = affine_map<(q, k) -> (q, k)>

// A new sequence starts where a position is not one more than the previous position. The function counts the starts,
// and tests whether two elements are in the same sequence. With positions 0 to 8, no sequence starts, so both
// results are constants.
// CHECK-LABEL: func.func @same_sequence()
// CHECK-NEXT: %[[SAME:.*]] = arith.constant dense<true> : tensor<9x9xi1>
// CHECK-NEXT: %[[STARTS:.*]] = arith.constant dense<0> : tensor<9xi64>
// CHECK-NEXT: return %[[SAME]], %[[STARTS]]
func.func @same_sequence() -> (tensor<9x9xi1>, tensor<9xi64>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %e = tensor.empty() : tensor<9xi64>
  %eb = tensor.empty() : tensor<9xi1>
  %e1 = tensor.empty() : tensor<1xi64>
  %positions = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%e : tensor<9xi64>) {
    ^bb0(%o: i64):
      %p = linalg.index 0 : index
      %c = arith.index_cast %p : index to i64
      linalg.yield %c : i64
  } -> tensor<9xi64>
  %first = tensor.extract_slice %positions[0] [1] [1] : tensor<9xi64> to tensor<1xi64>
  %before = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%first : tensor<1xi64>) outs(%e1 : tensor<1xi64>) {
    ^bb0(%a: i64, %o: i64):
      %d = arith.subi %a, %one : i64
      linalg.yield %d : i64
  } -> tensor<1xi64>
  %all = tensor.concat dim(0) %before, %positions : (tensor<1xi64>, tensor<9xi64>) -> tensor<10xi64>
  %last = tensor.extract_slice %all[0] [9] [1] : tensor<10xi64> to tensor<9xi64>
  %starts = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]} ins(%positions, %last : tensor<9xi64>, tensor<9xi64>) outs(%eb : tensor<9xi1>) {
    ^bb0(%a: i64, %b: i64, %o: i1):
      %d = arith.subi %a, %b : i64
      %s = arith.cmpi ne, %d, %one : i64
      linalg.yield %s : i1
  } -> tensor<9xi1>
  %none = linalg.fill ins(%zero : i64) outs(%e : tensor<9xi64>) -> tensor<9xi64>
  %count = linalg.generic {indexing_maps = [#k, #q], iterator_types = ["parallel", "reduction"]} ins(%starts : tensor<9xi1>) outs(%none : tensor<9xi64>) {
    ^bb0(%a: i1, %sum: i64):
      %q = linalg.index 0 : index
      %k = linalg.index 1 : index
      %upto = arith.cmpi sle, %k, %q : index
      %n = arith.extui %a : i1 to i64
      %m = arith.select %upto, %n, %zero : i64
      %s = arith.addi %sum, %m : i64
      linalg.yield %s : i64
  } -> tensor<9xi64>
  %em = tensor.empty() : tensor<9x9xi1>
  %same = linalg.generic {indexing_maps = [#qk], iterator_types = ["parallel", "parallel"]} outs(%em : tensor<9x9xi1>) {
    ^bb0(%o: i1):
      %q = linalg.index 0 : index
      %k = linalg.index 1 : index
      %a = tensor.extract %count[%q] : tensor<9xi64>
      %b = tensor.extract %count[%k] : tensor<9xi64>
      %s = arith.cmpi eq, %a, %b : i64
      linalg.yield %s : i1
  } -> tensor<9x9xi1>
  return %same, %count : tensor<9x9xi1>, tensor<9xi64>
}

// Tensors that are not folded: elements differ, depend on an argument, or are read out of bounds.
// CHECK-LABEL: func.func @others(
// CHECK: linalg.index 0
// CHECK: arith.muli
// CHECK: tensor.extract
// CHECK: arith.addi
func.func @others(%x: tensor<3xi64>) -> (tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) {
  %e = tensor.empty() : tensor<3xi64>
  %one = arith.constant 1 : i64
  %five = arith.constant 5 : index
  %table = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %position = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%e : tensor<3xi64>) {
    ^bb0(%o: i64):
      %p = linalg.index 0 : index
      %c = arith.index_cast %p : index to i64
      linalg.yield %c : i64
  } -> tensor<3xi64>
  %square = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : tensor<3xi64>) outs(%e : tensor<3xi64>) {
    ^bb0(%a: i64, %o: i64):
      %c = arith.muli %a, %a : i64
      linalg.yield %c : i64
  } -> tensor<3xi64>
  %outside = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%e : tensor<3xi64>) {
    ^bb0(%o: i64):
      %a = tensor.extract %table[%five] : tensor<4xi64>
      linalg.yield %a : i64
  } -> tensor<3xi64>
  %accumulated = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%x : tensor<3xi64>) {
    ^bb0(%o: i64):
      %c = arith.addi %o, %one : i64
      linalg.yield %c : i64
  } -> tensor<3xi64>
  return %position, %square, %outside, %accumulated : tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>
}

// The fold examines the operands of an element without changing them.
// CHECK-LABEL: func.func @least_of_position_and_data(
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: affine.min {{.*}}%[[I]]
func.func @least_of_position_and_data(%x: tensor<5xi64>) -> tensor<5xi64> {
  %e = tensor.empty() : tensor<5xi64>
  %r = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : tensor<5xi64>) outs(%e : tensor<5xi64>) {
  ^bb0(%a: i64, %o: i64):
    %i = linalg.index 0 : index
    %n = arith.index_cast %a : i64 to index
    %m = affine.min affine_map<(d0, d1) -> (d0, d1)>(%i, %n)
    %b = arith.index_cast %m : index to i64
    linalg.yield %b : i64
  } -> tensor<5xi64>
  return %r : tensor<5xi64>
}
