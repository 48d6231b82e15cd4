// RUN: attn-opt %s -attn-fold-transposes | FileCheck %s

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#c = affine_map<(b, q, k, d, e) -> (b, q, k)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>

// CHECK-DAG: #[[Q:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
// CHECK-DAG: #[[K:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d2)>
// CHECK-DAG: #[[V:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d4)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d0)>
// CHECK-DAG: #[[O:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d4, d0, d1)>
// CHECK-DAG: #[[SAME:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4)>

// CHECK-LABEL: @operands_and_output
// CHECK-SAME: %[[Q0:.*]]: tensor<2x5x4xf32>, %[[K0:.*]]: tensor<2x4x7xf32>, %[[V0:.*]]: tensor<2x7x8xf32>, %[[C0:.*]]: tensor<5x7x2xi1>
// CHECK-NOT: linalg.transpose
// CHECK: %[[E:.*]] = tensor.empty() : tensor<8x2x5xf32>
// CHECK-NOT: linalg.transpose
// CHECK: %[[O1:.*]] = attn.attention ins(%[[Q0]], %[[K0]], %[[V0]] : {{.*}}) captures(%[[C0]] : tensor<5x7x2xi1>) outs(%[[E]]
// CHECK-SAME: indexing_maps = [#[[Q]], #[[K]], #[[V]], #[[C]], #[[O]]]
// CHECK-NOT: linalg.transpose
// CHECK: return %[[O1]]
func.func @operands_and_output(%q: tensor<2x5x4xf32>, %k: tensor<2x4x7xf32>, %v: tensor<2x7x8xf32>, %c: tensor<5x7x2xi1>) -> tensor<8x2x5xf32> {
  %ke = tensor.empty() : tensor<2x7x4xf32>
  %kt = linalg.transpose ins(%k : tensor<2x4x7xf32>) outs(%ke : tensor<2x7x4xf32>) permutation = [0, 2, 1]
  %ce = tensor.empty() : tensor<2x5x7xi1>
  %ct = linalg.transpose ins(%c : tensor<5x7x2xi1>) outs(%ce : tensor<2x5x7xi1>) permutation = [2, 0, 1]
  %e = tensor.empty() : tensor<2x5x8xf32>
  %o = attn.attention ins(%q, %kt, %v : tensor<2x5x4xf32>, tensor<2x7x4xf32>, tensor<2x7x8xf32>)
      captures(%ct : tensor<2x5x7xi1>) outs(%e : tensor<2x5x8xf32>) mask(#attn.dense<0>) {
      indexing_maps = [#q, #k, #v, #c, #o], scale = 5.000000e-01 : f32} -> tensor<2x5x8xf32>
  %oe = tensor.empty() : tensor<8x2x5xf32>
  %ot = linalg.transpose ins(%o : tensor<2x5x8xf32>) outs(%oe : tensor<8x2x5xf32>) permutation = [2, 0, 1]
  return %ot : tensor<8x2x5xf32>
}

// CHECK-LABEL: @output_read_twice
// CHECK: %[[O1:.*]] = attn.attention
// CHECK-SAME: indexing_maps = [#[[Q]], {{.*}}, #[[V]], #[[SAME]]]
// CHECK: linalg.transpose ins(%[[O1]]
func.func @output_read_twice(%q: tensor<2x5x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x8xf32>) -> (tensor<2x5x8xf32>, tensor<5x2x8xf32>) {
  %e = tensor.empty() : tensor<2x5x8xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x5x4xf32>, tensor<2x7x4xf32>, tensor<2x7x8xf32>)
      outs(%e : tensor<2x5x8xf32>) {indexing_maps = [#q, #k, #v, #o], scale = 5.000000e-01 : f32} -> tensor<2x5x8xf32>
  %oe = tensor.empty() : tensor<5x2x8xf32>
  %ot = linalg.transpose ins(%o : tensor<2x5x8xf32>) outs(%oe : tensor<5x2x8xf32>) permutation = [1, 0, 2]
  return %o, %ot : tensor<2x5x8xf32>, tensor<5x2x8xf32>
}
