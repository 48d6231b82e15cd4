// A length n keeps the first n keys. The results must equal those with a boolean mask, also for the length 0.
// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/per-head.so --target=native
// RUN: attnc %s -o %t/unfused.so --target=native --schedule=unfused
// RUN: %python %S/../error/npy.py %t/x.npy '<f4' 3x5x8 1 -0.5 2 0.25 3 -1 0.125
// RUN: %python %S/../error/npy.py %t/lengths.npy '<i4' 3 5 0 2
// RUN: %python %S/../error/npy.py %t/mask.npy '|b1' 3x1x5 1 1 1 1 1 0 0 0 0 0 1 1 0 0 0
// RUN: attn-run %t/unfused.so --entry=dense --input=%t/x.npy --input=%t/mask.npy --output-dir=%t
// RUN: attn-run %t/unfused.so --entry=lengths --input=%t/x.npy --input=%t/lengths.npy --expect=%t/0.npy
// RUN: attn-run %t/per-head.so --entry=lengths --input=%t/x.npy --input=%t/lengths.npy --expect=%t/0.npy
// RUN: attn-run %t/per-head.so --entry=dense --input=%t/x.npy --input=%t/mask.npy --expect=%t/0.npy

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @lengths(%x: tensor<3x?x8xf32>, %lengths: tensor<3xi32>) -> tensor<3x?x8xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<3x?x8xf32>
  %e = tensor.empty(%n) : tensor<3x?x8xf32>
  %r = attn.attention ins(%x, %x, %x : tensor<3x?x8xf32>, tensor<3x?x8xf32>, tensor<3x?x8xf32>) captures(%lengths : tensor<3xi32>) outs(%e : tensor<3x?x8xf32>) mask(#attn.lengths<0>)
    {indexing_maps = [#q, #k, #v, affine_map<(b, q, k, d, e) -> (b)>, #o], scale = 0.5 : f32} -> tensor<3x?x8xf32>
  return %r : tensor<3x?x8xf32>
}
func.func @dense(%x: tensor<3x?x8xf32>, %mask: tensor<3x1x?xi1>) -> tensor<3x?x8xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<3x?x8xf32>
  %e = tensor.empty(%n) : tensor<3x?x8xf32>
  %row = tensor.collapse_shape %mask [[0], [1, 2]] : tensor<3x1x?xi1> into tensor<3x?xi1>
  %r = attn.attention ins(%x, %x, %x : tensor<3x?x8xf32>, tensor<3x?x8xf32>, tensor<3x?x8xf32>) captures(%row : tensor<3x?xi1>) outs(%e : tensor<3x?x8xf32>) mask(#attn.dense<0>)
    {indexing_maps = [#q, #k, #v, affine_map<(b, q, k, d, e) -> (b, k)>, #o], scale = 0.5 : f32} -> tensor<3x?x8xf32>
  return %r : tensor<3x?x8xf32>
}
