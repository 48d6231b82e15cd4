// RUN: timeout 60 attnc %s -o %t.so --opt-report | FileCheck %s

// The run time of the cost model does not grow with the sizes. Here a window of keys moves over 10^9 keys for 10^9
// queries: about ten million tiles of keys for each of twenty million tiles of queries.
// CHECK-COUNT-3: attention fused
func.func @f(%q: tensor<1000000000x16xf32>, %k: tensor<1000000000x16xf32>, %v: tensor<1000000000x16xf32>) -> tensor<1000000000x16xf32> {
  %e = tensor.empty() : tensor<1000000000x16xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<1000000000x16xf32>, tensor<1000000000x16xf32>, tensor<1000000000x16xf32>)
      outs(%e : tensor<1000000000x16xf32>) mask(#attn.window<left = 400000000, right = 400000000>)
      {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>,
                        affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>], scale = 1.0 : f32} -> tensor<1000000000x16xf32>
  return %o : tensor<1000000000x16xf32>
}
