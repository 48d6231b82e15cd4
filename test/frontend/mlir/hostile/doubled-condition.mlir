// A condition that is joined with itself 40 times is looked at once.
// RUN: attn-run %s --reference --dim arg0.0=5 --dim arg1.0=5 | FileCheck %s --check-prefix=RIGHT
// RIGHT: output 0: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}

func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %b0 = arith.cmpi sle, %n, %m : index
  %b1 = arith.andi %b0, %b0 : i1
  %b2 = arith.andi %b1, %b1 : i1
  %b3 = arith.andi %b2, %b2 : i1
  %b4 = arith.andi %b3, %b3 : i1
  %b5 = arith.andi %b4, %b4 : i1
  %b6 = arith.andi %b5, %b5 : i1
  %b7 = arith.andi %b6, %b6 : i1
  %b8 = arith.andi %b7, %b7 : i1
  %b9 = arith.andi %b8, %b8 : i1
  %b10 = arith.andi %b9, %b9 : i1
  %b11 = arith.andi %b10, %b10 : i1
  %b12 = arith.andi %b11, %b11 : i1
  %b13 = arith.andi %b12, %b12 : i1
  %b14 = arith.andi %b13, %b13 : i1
  %b15 = arith.andi %b14, %b14 : i1
  %b16 = arith.andi %b15, %b15 : i1
  %b17 = arith.andi %b16, %b16 : i1
  %b18 = arith.andi %b17, %b17 : i1
  %b19 = arith.andi %b18, %b18 : i1
  %b20 = arith.andi %b19, %b19 : i1
  %b21 = arith.andi %b20, %b20 : i1
  %b22 = arith.andi %b21, %b21 : i1
  %b23 = arith.andi %b22, %b22 : i1
  %b24 = arith.andi %b23, %b23 : i1
  %b25 = arith.andi %b24, %b24 : i1
  %b26 = arith.andi %b25, %b25 : i1
  %b27 = arith.andi %b26, %b26 : i1
  %b28 = arith.andi %b27, %b27 : i1
  %b29 = arith.andi %b28, %b28 : i1
  %b30 = arith.andi %b29, %b29 : i1
  %b31 = arith.andi %b30, %b30 : i1
  %b32 = arith.andi %b31, %b31 : i1
  %b33 = arith.andi %b32, %b32 : i1
  %b34 = arith.andi %b33, %b33 : i1
  %b35 = arith.andi %b34, %b34 : i1
  %b36 = arith.andi %b35, %b35 : i1
  %b37 = arith.andi %b36, %b36 : i1
  %b38 = arith.andi %b37, %b37 : i1
  %b39 = arith.andi %b38, %b38 : i1
  %b40 = arith.andi %b39, %b39 : i1
  cf.assert %b40, "m"
  return %x : tensor<?xf32>
}