// RUN: attn-opt %s -attn-bound-lengths | FileCheck %s

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#n = affine_map<(b, q, k, d, e) -> (b)>
#maps = [#q, #k, #v, #n, #o]

// CHECK-LABEL: @dynamic(
// CHECK-SAME: tensor<2xi32> {attn.bound = "n"}
func.func @dynamic(%x: tensor<2x5x64xf32>, %y: tensor<2x?x64xf32> {attn.dims = ["", "n", ""]}, %n: tensor<2xi32>, %e: tensor<2x5x64xf32>)
    -> tensor<2x5x64xf32> attributes {attn.symbols = [#attn.symbol<"n", 0 to 9>]} {
  %o = attn.attention ins(%x, %y, %y : tensor<2x5x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>) captures(%n : tensor<2xi32>) outs(%e : tensor<2x5x64xf32>)
      mask(#attn.lengths<0>) {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<2x5x64xf32>
  return %o : tensor<2x5x64xf32>
}

// Lengths in a conjunction of masks get a bound too.
// CHECK-LABEL: @static(
// CHECK-SAME: tensor<2xi64> {attn.bound = 9 : i64}
func.func @static(%x: tensor<2x5x64xf32>, %y: tensor<2x9x64xf32>, %n: tensor<2xi64>, %e: tensor<2x5x64xf32>) -> tensor<2x5x64xf32> {
  %o = attn.attention ins(%x, %y, %y : tensor<2x5x64xf32>, tensor<2x9x64xf32>, tensor<2x9x64xf32>) captures(%n : tensor<2xi64>) outs(%e : tensor<2x5x64xf32>)
      mask(#attn.and<[#attn.causal, #attn.lengths<0>]>) {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<2x5x64xf32>
  return %o : tensor<2x5x64xf32>
}

// A bound that the file declares is kept.
// CHECK-LABEL: @bounded(
// CHECK-SAME: tensor<2xi64> {attn.bound = 4 : i64}
func.func @bounded(%x: tensor<2x5x64xf32>, %y: tensor<2x9x64xf32>, %n: tensor<2xi64> {attn.bound = 4 : i64}, %e: tensor<2x5x64xf32>) -> tensor<2x5x64xf32> {
  %o = attn.attention ins(%x, %y, %y : tensor<2x5x64xf32>, tensor<2x9x64xf32>, tensor<2x9x64xf32>) captures(%n : tensor<2xi64>) outs(%e : tensor<2x5x64xf32>)
      mask(#attn.lengths<0>) {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<2x5x64xf32>
  return %o : tensor<2x5x64xf32>
}

// An argument may be an index too. An index may be negative, but a length may not.
// CHECK-LABEL: @indices(
// CHECK-SAME: tensor<2xi64> {attn.bound = 4 : i64}, %{{.*}}: tensor<2x5x64xf32>)
func.func @indices(%x: tensor<2x5x64xf32>, %y: tensor<2x9x64xf32>, %n: tensor<2xi64> {attn.below = 3 : i64, attn.bound = 4 : i64}, %e: tensor<2x5x64xf32>) -> tensor<2x5x64xf32> {
  %o = attn.attention ins(%x, %y, %y : tensor<2x5x64xf32>, tensor<2x9x64xf32>, tensor<2x9x64xf32>) captures(%n : tensor<2xi64>) outs(%e : tensor<2x5x64xf32>)
      mask(#attn.lengths<0>) {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<2x5x64xf32>
  return %o : tensor<2x5x64xf32>
}

// CHECK-LABEL: @computed(
// CHECK-NOT: attn.bound
func.func @computed(%x: tensor<2x5x64xf32>, %y: tensor<2x9x64xf32>, %n: tensor<2xi64>, %e: tensor<2x5x64xf32>) -> tensor<2x5x64xf32> {
  %m = linalg.max ins(%n, %n : tensor<2xi64>, tensor<2xi64>) outs(%n : tensor<2xi64>) -> tensor<2xi64>
  %o = attn.attention ins(%x, %y, %y : tensor<2x5x64xf32>, tensor<2x9x64xf32>, tensor<2x9x64xf32>) captures(%m : tensor<2xi64>) outs(%e : tensor<2x5x64xf32>)
      mask(#attn.lengths<0>) {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<2x5x64xf32>
  return %o : tensor<2x5x64xf32>
}
