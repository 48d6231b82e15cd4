// A product of i32 that wraps around is another number: calls with such sizes are refused.
// RUN: attn-run %s --reference --dim arg0.0=40000 | FileCheck %s --check-prefix=RIGHT
// RUN: not attn-run %s --reference --dim arg0.0=50000 2>&1 | FileCheck %s
// RIGHT: output 0: error {{(0.00e\+00|[0-9.]+e-0[6-9])}}
// CHECK: expected sizes with arg0.0*arg0.0 <= 2147483647, got arg0.0 = 50000

func.func @f(%x: tensor<?x0xf32>) -> tensor<3xi64> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0 : i32
  %a = arith.constant 10 : i64
  %b = arith.constant 20 : i64
  %n = tensor.dim %x, %c0 : tensor<?x0xf32>
  %i = arith.index_cast %n : index to i32
  %s = arith.muli %i, %i : i32
  %c = arith.cmpi slt, %s, %z : i32
  %r0 = arith.select %c, %a, %b : i64
  %w = arith.extsi %s : i32 to i64
  %nn = arith.muli %n, %n : index
  %t = arith.index_cast %nn : index to i32
  %w2 = arith.extsi %t : i32 to i64
  %r = tensor.from_elements %r0, %w, %w2 : tensor<3xi64>
  return %r : tensor<3xi64>
}
