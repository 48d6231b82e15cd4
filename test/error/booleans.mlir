// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/f.so --target=native
// RUN: %python %S/npy.py %t/x.npy '<f4' 6x8 1
// RUN: %python %S/npy.py %t/mask.npy '|b1' 6x6 1 0 1 2
// RUN: not attn-run %t/f.so --input=%t/x.npy --input=%t/mask.npy --output-dir=%t/out 2>&1 | FileCheck %s
// RUN: not ls %t/out

// CHECK: attn-run: f: argument 'mask' expected bytes of 0 or 1, got 2 at element 3
func.func @f(%x: tensor<6x8xf32>, %mask: tensor<6x6xi1> {attn.name = "mask"}) -> tensor<6x8xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %r = attn.attention ins(%x, %x, %x : tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) captures(%mask : tensor<6x6xi1>) outs(%e : tensor<6x8xf32>) mask(#attn.dense<0>)
    {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>,
                      affine_map<(q, k, d, e) -> (q, k)>, affine_map<(q, k, d, e) -> (q, e)>], scale = 1.0 : f32} -> tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}
