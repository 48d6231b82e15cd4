// RUN: attn-opt %s -attn-plan-products | FileCheck %s -D#COLUMNS=64
// RUN: sed s/101376/65536/ %s | attn-opt -attn-plan-products - | FileCheck %s -D#COLUMNS=32
// RUN: sed s/101376/49152/ %s | attn-opt -attn-plan-products - | FileCheck %s -D#COLUMNS=32
// RUN: sed s/101376/232448/ %s | attn-opt -attn-plan-products - | FileCheck %s -D#COLUMNS=128

// One task computes both products, because an elementwise op combines them. The task holds the sums of both products and
// two stages of tiles of the factors in shared memory: the less shared memory, the smaller the task.
#x = affine_map<(s, j, k) -> (s, k)>
#w = affine_map<(s, j, k) -> (j, k)>
#o = affine_map<(s, j, k) -> (s, j)>
#i = affine_map<(s, j) -> (s, j)>
module attributes {attn.target = #attn.gpu<"sm_80", shared = 101376, registers = 65536>} {
// CHECK-LABEL: @gate
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 64, columns = [[#COLUMNS]]>
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 64, columns = [[#COLUMNS]]>
func.func @gate(%x: tensor<128x256xf16>, %w: tensor<1024x256xf16>, %g: tensor<1024x256xf16>, %init: tensor<128x1024xf32>, %out: tensor<128x1024xf16>) -> tensor<128x1024xf16> {
  %up = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<128x256xf16>, tensor<1024x256xf16>) outs(%init : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %gate = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %g : tensor<128x256xf16>, tensor<1024x256xf16>) outs(%init : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %r = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel", "parallel"]} ins(%up, %gate : tensor<128x1024xf32>, tensor<128x1024xf32>) outs(%out : tensor<128x1024xf16>) {
  ^bb0(%a: f32, %b: f32, %c: f16):
    %p = arith.mulf %a, %b : f32
    %t = arith.truncf %p : f32 to f16
    linalg.yield %t : f16
  } -> tensor<128x1024xf16>
  return %r : tensor<128x1024xf16>
}
}
