// RUN: attn-opt %s -attn-fold-bias-into-init | FileCheck %s

#x = affine_map<(s, n, c) -> (s, c)>
#w = affine_map<(s, n, c) -> (n, c)>
#y = affine_map<(s, n, c) -> (s, n)>
#id = affine_map<(s, n) -> (s, n)>
#n = affine_map<(s, n) -> (n)>

// CHECK-LABEL: @bias
// CHECK-SAME: %[[X:.*]]: tensor<?x16xf32>, %[[W:.*]]: tensor<8x16xf32>, %[[BIAS:.*]]: tensor<8xf32>, %[[E:.*]]: tensor<?x8xf32>)
// CHECK: %[[INIT:.*]] = linalg.broadcast ins(%[[BIAS]] : tensor<8xf32>) outs(%[[E]] : tensor<?x8xf32>) dimensions = [0]
// CHECK: %[[Y:.*]] = linalg.contract {{.*}} ins(%[[X]], %[[W]] : {{.*}}) outs(%[[INIT]]
// CHECK-NOT: linalg.generic
// CHECK: return %[[Y]]
func.func @bias(%x: tensor<?x16xf32>, %w: tensor<8x16xf32>, %bias: tensor<8xf32>, %e: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<?x16xf32>, tensor<8x16xf32>) outs(%0 : tensor<?x8xf32>) -> tensor<?x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #n, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1, %bias : tensor<?x8xf32>, tensor<8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// A separate op broadcasts the bias, and the bias is the left operand of the sum.
// CHECK-LABEL: @bias_broadcast_before
// CHECK-SAME: %[[BIAS:[a-z0-9]*]]: tensor<8xf32>, %[[E:.*]]: tensor<4x8xf32>)
// CHECK: %[[INIT:.*]] = linalg.broadcast ins(%[[BIAS]]
// CHECK: linalg.contract {{.*}} outs(%[[INIT]]
// CHECK-NOT: linalg.generic
func.func @bias_broadcast_before(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>, %bias: tensor<8xf32>, %e: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %wide = linalg.generic {indexing_maps = [#n, #id], iterator_types = ["parallel", "parallel"]}
      ins(%bias : tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%b: f32, %out: f32):
    linalg.yield %b : f32
  } -> tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%wide, %1 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%b: f32, %a: f32, %out: f32):
    %s = arith.addf %b, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// The body widens the bias and narrows the sum.
// CHECK-LABEL: @bias_widened
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<8xbf16>) outs(%{{.*}} : tensor<8xf32>)
// CHECK: arith.extf
// CHECK: %[[INIT:.*]] = linalg.broadcast ins(%[[WIDE]] : tensor<8xf32>)
// CHECK: %[[Y:.*]] = linalg.contract {{.*}} outs(%[[INIT]]
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : tensor<4x8xf32>) outs(%{{.*}} : tensor<4x8xbf16>)
// CHECK-NOT: addf
// CHECK: arith.truncf
func.func @bias_widened(%x: tensor<4x16xbf16>, %w: tensor<8x16xbf16>, %bias: tensor<8xbf16>, %e: tensor<4x8xf32>, %o: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xbf16>, tensor<8x16xbf16>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #n, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1, %bias : tensor<4x8xf32>, tensor<8xbf16>) outs(%o : tensor<4x8xbf16>) {
  ^bb0(%a: f32, %b: bf16, %out: bf16):
    %f = arith.extf %b : bf16 to f32
    %s = arith.addf %a, %f : f32
    %t = arith.truncf %s : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<4x8xbf16>
  return %2 : tensor<4x8xbf16>
}

// A residual does not become the init, because it is as large as the product.
// CHECK-LABEL: @residual
// CHECK: linalg.contract
// CHECK: arith.addf
func.func @residual(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>, %r: tensor<4x8xf32>, %e: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1, %r : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// The bias does not become the init, because the function also returns the product without the bias.
// CHECK-LABEL: @product_used_twice
// CHECK-NOT: linalg.broadcast
// CHECK: arith.addf
func.func @product_used_twice(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>, %bias: tensor<8xf32>, %e: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = linalg.generic {indexing_maps = [#id, #n, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1, %bias : tensor<4x8xf32>, tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}
