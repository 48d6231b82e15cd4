// RUN: attn-import %s | FileCheck %s
// RUN: attn-opt %s --attn-to-raise 2>&1 | FileCheck %s --check-prefix=OPT

// Upstream's passes convert TOSA to linalg when a file is imported.
// CHECK-NOT: tosa.
// CHECK-LABEL: func.func @attention
// CHECK: linalg.batch_matmul
// CHECK: linalg.reduce
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: linalg.reduce
// CHECK: arith.addf
// CHECK: linalg.batch_matmul
// CHECK-NOT: tosa.
// OPT: attn.attention
func.func @attention(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x8xf32>) -> tensor<2x5x8xf32> {
  %zero = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>
  %shift = "tosa.const"() {values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
  %scale = "tosa.const"() {values = dense<0.5> : tensor<1x1x1xf32>} : () -> tensor<1x1x1xf32>
  %t = tosa.transpose %k {perms = array<i32: 0, 2, 1>} : (tensor<2x7x8xf32>) -> tensor<2x8x7xf32>
  %s = tosa.matmul %q, %t, %zero, %zero : (tensor<2x5x8xf32>, tensor<2x8x7xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x5x7xf32>
  %a = tosa.mul %s, %scale, %shift : (tensor<2x5x7xf32>, tensor<1x1x1xf32>, tensor<1xi8>) -> tensor<2x5x7xf32>
  %m = tosa.reduce_max %a {axis = 2 : i32} : (tensor<2x5x7xf32>) -> tensor<2x5x1xf32>
  %d = tosa.sub %a, %m : (tensor<2x5x7xf32>, tensor<2x5x1xf32>) -> tensor<2x5x7xf32>
  %e = tosa.exp %d : (tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %l = tosa.reduce_sum %e {axis = 2 : i32} : (tensor<2x5x7xf32>) -> tensor<2x5x1xf32>
  %r = tosa.reciprocal %l : (tensor<2x5x1xf32>) -> tensor<2x5x1xf32>
  %p = tosa.mul %e, %r, %shift : (tensor<2x5x7xf32>, tensor<2x5x1xf32>, tensor<1xi8>) -> tensor<2x5x7xf32>
  %o = tosa.matmul %p, %v, %zero, %zero : (tensor<2x5x7xf32>, tensor<2x7x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}
