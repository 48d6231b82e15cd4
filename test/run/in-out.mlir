// The step for one token writes a row to each of two caches, then attends to all their rows. The caches are inputs and
// results of a call; each call gets copies of them in guarded memory.
// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/../error/npy.py %t/position.npy '<i8' 1 5
// RUN: %python %S/../error/npy.py %t/lengths.npy '<i4' 2 6 6
// RUN: %python %S/../error/npy.py %t/beyond.npy '<i8' 1 64
// RUN: %python %S/../error/npy.py %t/row.npy '<f4' 2x1x8 1 -0.5 2 0.25 3 -1 0.125
// RUN: %python %S/../error/npy.py %t/cache.npy '<f4' 2x64x8 0.5 -1 0.75 2
// RUN: attn-run %s --reference --output-dir=%t --input=%t/row.npy --input=%t/position.npy --input=%t/lengths.npy --input=%t/cache.npy --input=%t/cache.npy
// RUN: attnc %s -o %t/step.so --target=native
// RUN: attn-run %t/step.so --input=%t/row.npy --input=%t/position.npy --input=%t/lengths.npy --input=%t/cache.npy --input=%t/cache.npy --expect=%t/0.npy --expect=%t/1.npy --expect=%t/2.npy | FileCheck %s
// CHECK: out: f32[2, 1, 8]{{.*}}; keys: f32[2, 64, 8]{{.*}}; values: f32[2, 64, 8]
// RUN: attn-run %t/step.so --describe | FileCheck %s --check-prefix=DESCRIBE
// DESCRIBE: step(x: f32[2, 1, 8], position: i64[1], lengths: i32[2], in-out keys: f32[2, 64, 8], in-out values: f32[2, 64, 8]) -> (out: f32[2, 1, 8])
// RUN: FileCheck %s --check-prefix=HEADER < %t/step.h
// HEADER: in-out keys: f32 [2, 64, 8]
// HEADER: const int32_t *lengths,
// HEADER-NEXT: {{^ *}}float *keys,
// HEADER-NEXT: {{^ *}}float *values,
// HEADER-NEXT: {{^ *}}float *out,
// RUN: not attn-run %t/step.so --input=%t/row.npy --input=%t/beyond.npy --input=%t/lengths.npy --input=%t/cache.npy --input=%t/cache.npy 2>&1 | FileCheck %s --check-prefix=BEYOND
// BEYOND: step: argument 'position' expected values in [0, 63], got 64 at element 0
// RUN: not attn-run %t/step.so --input=%t/row.npy 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: step: expected 5 inputs, got 1

// The kernel stores one row to each cache, and no other element of the caches.
// RUN: attnc %s -o %t/step.mlir --target=x86-64-v3 --dump-stages=%t/stages
// RUN: FileCheck %s --check-prefix=STORES < %t/stages/7-bufferize.mlir
// STORES-NOT: memref.copy
// STORES: memref.subview %[[KEYS:.*]][0, %[[P:.*]], 0] [2, 1, 8]

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @step(%x: tensor<2x1x8xf32> {attn.name = "x"}, %position: tensor<1xi64> {attn.name = "position", attn.bound = 63},
                %lengths: tensor<2xi32> {attn.name = "lengths"}, %keys: tensor<2x64x8xf32> {attn.name = "keys", attn.in_out = 0},
                %values: tensor<2x64x8xf32> {attn.name = "values", attn.in_out = 2})
    -> (tensor<2x64x8xf32>, tensor<2x1x8xf32>, tensor<2x64x8xf32>) {
  %c0 = arith.constant 0 : index
  %i = tensor.extract %position[%c0] : tensor<1xi64>
  %p = arith.index_cast %i : i64 to index
  %e = tensor.empty() : tensor<2x1x8xf32>
  %f = tensor.empty() : tensor<2x1x8xf32>
  %v = linalg.negf ins(%x : tensor<2x1x8xf32>) outs(%f : tensor<2x1x8xf32>) -> tensor<2x1x8xf32>
  %new_keys = tensor.insert_slice %x into %keys[0, %p, 0] [2, 1, 8] [1, 1, 1] : tensor<2x1x8xf32> into tensor<2x64x8xf32>
  %new_values = tensor.insert_slice %v into %values[0, %p, 0] [2, 1, 8] [1, 1, 1] : tensor<2x1x8xf32> into tensor<2x64x8xf32>
  %r = attn.attention ins(%x, %new_keys, %new_values : tensor<2x1x8xf32>, tensor<2x64x8xf32>, tensor<2x64x8xf32>) captures(%lengths : tensor<2xi32>)
    outs(%e : tensor<2x1x8xf32>) mask(#attn.lengths<0>)
    {indexing_maps = [#q, #k, #v, affine_map<(b, q, k, d, e) -> (b)>, #o], scale = 0.5 : f32} -> tensor<2x1x8xf32>
  return %new_keys, %r, %new_values : tensor<2x64x8xf32>, tensor<2x1x8xf32>, tensor<2x64x8xf32>
}
