// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/f.so --target=native
// RUN: %python %S/npy.py %t/x.npy '<f4' 2x6x8 1
// RUN: %python %S/npy.py %t/lengths.npy '<i4' 2 6 7
// RUN: not attn-run %t/f.so --input=%t/x.npy --input=%t/lengths.npy --output-dir=%t/out 2>&1 | FileCheck %s
// RUN: not ls %t/out

// CHECK: attn-run: f: argument 'lengths' expected values in [0, 6], got 7 at element 1
func.func @f(%x: tensor<2x6x8xf32>, %lengths: tensor<2xi32> {attn.name = "lengths"}) -> tensor<2x6x8xf32> {
  %e = tensor.empty() : tensor<2x6x8xf32>
  %r = attn.attention ins(%x, %x, %x : tensor<2x6x8xf32>, tensor<2x6x8xf32>, tensor<2x6x8xf32>) captures(%lengths : tensor<2xi32>) outs(%e : tensor<2x6x8xf32>) mask(#attn.lengths<0>)
    {indexing_maps = [affine_map<(b, q, k, d, e) -> (b, q, d)>, affine_map<(b, q, k, d, e) -> (b, k, d)>, affine_map<(b, q, k, d, e) -> (b, k, e)>,
                      affine_map<(b, q, k, d, e) -> (b)>, affine_map<(b, q, k, d, e) -> (b, q, e)>], scale = 1.0 : f32} -> tensor<2x6x8xf32>
  return %r : tensor<2x6x8xf32>
}
