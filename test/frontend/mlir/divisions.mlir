// RUN: attn-import %s | FileCheck %s
// RUN: attn-run %s --entry=elements --reference | FileCheck %s --check-prefix=RIGHT

// RIGHT: output 0: error 0.00e+00

// A divisor that an element gives may be 0 or -1.
// CHECK-LABEL: func.func @elements(
// CHECK: ^bb0(%[[A:[a-z_]*]]: i32, %[[B:[a-z_0-9]*]]: i32
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[B]], %c0_i32
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[B]], %c-1_i32
// CHECK: %[[UNSAFE:.*]] = arith.ori %[[ZERO]], %[[LAST]]
// CHECK: %[[SAFE:.*]] = arith.select %[[UNSAFE]], %c1_i32, %[[B]]
// CHECK: %[[Q:.*]] = arith.divsi %[[A]], %[[SAFE]]
// CHECK: %[[NEGATIVE:.*]] = arith.subi %{{.*}}, %[[Q]]
// CHECK: %[[RESULT:.*]] = arith.select %[[LAST]], %[[NEGATIVE]], %[[Q]]
// CHECK: linalg.yield %[[RESULT]]
func.func @elements(%x: tensor<64xi32>, %y: tensor<64xi32>) -> tensor<64xi32> {
  %e = tensor.empty() : tensor<64xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<64xi32>, tensor<64xi32>) outs(%e : tensor<64xi32>) {
  ^bb0(%a: i32, %b: i32, %o: i32):
    %q = arith.divsi %a, %b : i32
    linalg.yield %q : i32
  } -> tensor<64xi32>
  return %r : tensor<64xi32>
}

// A constant, and a size whose minimum is 1, divide without a test.
// CHECK-LABEL: func.func @sizes(
// CHECK-NOT: arith.select
// CHECK: return
func.func @sizes(%x: tensor<?xi64>, %y: tensor<?xf32>) -> (tensor<?xi64>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %seven = arith.constant 7 : i64
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xi64>
  %m = tensor.dim %y, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xi64>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<?xi64>) outs(%e : tensor<?xi64>) {
  ^bb0(%a: i64, %o: i64):
    %q = arith.remsi %a, %seven : i64
    linalg.yield %q : i64
  } -> tensor<?xi64>
  %quotient = arith.divsi %n, %m : index
  %f = tensor.empty(%quotient) : tensor<?xf32>
  %s = linalg.fill ins(%zero : f32) outs(%f : tensor<?xf32>) -> tensor<?xf32>
  return %r, %s : tensor<?xi64>, tensor<?xf32>
}
