// A branch that divides does not exclude the sizes for which another branch runs.
// RUN: attn-run %s --dim arg0.0=5 --dim arg1.0=0 | FileCheck %s
// RUN: attn-run %s --dim arg0.0=6 --dim arg1.0=2 | FileCheck %s --check-prefix=QUOTIENT
// CHECK: mean 7, largest 7
// QUOTIENT: mean 3, largest 3

#id = affine_map<(a) -> (a)>
func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xi64> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 7 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xi64>
  %c = arith.cmpi ne, %m, %c0 : index
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<?xi64>) {
  ^bb0(%o: i64):
    %q = scf.if %c -> index {
      %d = arith.divsi %n, %m : index
      scf.yield %d : index
    } else {
      scf.yield %z : index
    }
    %w = arith.index_cast %q : index to i64
    linalg.yield %w : i64
  } -> tensor<?xi64>
  return %r : tensor<?xi64>
}
