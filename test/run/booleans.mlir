// A boolean is true if its byte is not 0, with two schedules and at two ISA levels.
// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/per-head.so
// RUN: attnc %s -o %t/unfused.so --schedule=unfused
// RUN: %python %S/../error/npy.py %t/x.npy '<f4' 20x8 1 -0.5 2 0.25 3
// RUN: %python %S/../error/npy.py %t/ones.npy '|b1' 20x20 1 0 0 1 0 1 0
// RUN: %python %S/../error/npy.py %t/bytes.npy '|b1' 20x20 2 0 0 255 0 128 0
// RUN: attn-run %t/unfused.so --input=%t/x.npy --input=%t/ones.npy --output-dir=%t
// RUN: attn-run %t/unfused.so --input=%t/x.npy --input=%t/bytes.npy --expect=%t/0.npy
// RUN: attn-run %t/per-head.so --input=%t/x.npy --input=%t/bytes.npy --expect=%t/0.npy
// RUN: attn-run %t/unfused.so --input=%t/x.npy --input=%t/bytes.npy --expect=%t/0.npy --level=x86-64
// RUN: attn-run %t/per-head.so --input=%t/x.npy --input=%t/bytes.npy --expect=%t/0.npy --level=x86-64

func.func @f(%x: tensor<20x8xf32>, %mask: tensor<20x20xi1>) -> tensor<20x8xf32> {
  %e = tensor.empty() : tensor<20x8xf32>
  %r = attn.attention ins(%x, %x, %x : tensor<20x8xf32>, tensor<20x8xf32>, tensor<20x8xf32>) captures(%mask : tensor<20x20xi1>) outs(%e : tensor<20x8xf32>) mask(#attn.dense<0>)
    {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>,
                      affine_map<(q, k, d, e) -> (q, k)>, affine_map<(q, k, d, e) -> (q, e)>], scale = 1.0 : f32} -> tensor<20x8xf32>
  return %r : tensor<20x8xf32>
}
