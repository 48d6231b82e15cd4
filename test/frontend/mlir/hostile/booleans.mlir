// Arithmetic of booleans has one bit, and true is -1 in signed comparisons.
// RUN: attn-run %s --reference | FileCheck %s --check-prefix=RIGHT
// RIGHT: mean 17.5, largest 20

#id = affine_map<(a) -> (a)>
func.func @f(%x: tensor<4xi64>) -> tensor<4xi64> {
  %t = arith.constant true
  %f = arith.constant false
  %two = arith.constant 2 : index
  %a = arith.constant 10 : i64
  %b = arith.constant 20 : i64
  %s = arith.addi %t, %t : i1
  %m = arith.maxsi %t, %f : i1
  %c = arith.cmpi slt, %t, %f : i1
  %d = arith.index_cast %two : index to i1
  %r0 = arith.select %s, %a, %b : i64
  %r1 = arith.select %m, %a, %b : i64
  %r2 = arith.select %c, %a, %b : i64
  %r3 = arith.select %d, %a, %b : i64
  %r = tensor.from_elements %r0, %r1, %r2, %r3 : tensor<4xi64>
  return %r : tensor<4xi64>
}
