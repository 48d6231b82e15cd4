// RUN: attn-opt %s -split-input-file -pass-pipeline='builtin.module(builtin.module(func.func(attn-round-factors)))' | FileCheck %s

#x = affine_map<(s, j, c) -> (s, c)>
#w = affine_map<(s, j, c) -> (c, j)>
#y = affine_map<(s, j, c) -> (s, j)>
#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
#bf16 = #attn.cpu<"x86-64-v4-bf16", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|pairs>
#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.compute = bf16} {
  module attributes {attn.target = #bf16} {
    // Each factor is rounded once, although two products read it, and sums stay f32.
    // CHECK-LABEL: @attend(
    // CHECK-SAME: %[[X:[^:]*]]: tensor<?x64xf32>, %[[W:[^:]*]]: tensor<64x64xf32>
    // CHECK-SAME: attributes {attn.compute = bf16}
    // CHECK-DAG: %[[XR:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<?x64xf32>) outs(%{{.*}} : tensor<?x64xbf16>)
    // CHECK-DAG: %[[WR:.*]] = linalg.generic {{.*}} ins(%[[W]] : tensor<64x64xf32>) outs(%{{.*}} : tensor<64x64xbf16>)
    // CHECK: %[[K:.*]] = linalg.contract {{.*}} ins(%[[XR]], %[[WR]] : tensor<?x64xbf16>, tensor<64x64xbf16>) outs(%{{.*}} : tensor<?x64xf32>)
    // CHECK: %[[KR:.*]] = linalg.generic {{.*}} ins(%[[K]] : tensor<?x64xf32>)
    // CHECK: attn.attention ins(%[[XR]], %[[KR]], %[[KR]] : tensor<?x64xbf16>, tensor<?x64xbf16>, tensor<?x64xbf16>) outs(%{{.*}} : tensor<?x64xf32>)
    func.func @attend(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>, %e: tensor<?x64xf32>) -> tensor<?x64xf32> {
      %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<?x64xf32>, tensor<64x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>
      %o = attn.attention ins(%x, %y, %y : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>)
        {indexing_maps = [#q, #k, #v, #o], scale = 0.5 : f32} -> tensor<?x64xf32>
      return %o : tensor<?x64xf32>
    }

    // The factors of an attention with a mask are rounded too.
    // CHECK-LABEL: @dense_mask(
    // CHECK: arith.truncf
    func.func @dense_mask(%x: tensor<512x64xf32>, %m: tensor<512x512xi1>, %e: tensor<512x64xf32>) -> tensor<512x64xf32> {
      %o = attn.attention ins(%x, %x, %x : tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>) captures(%m : tensor<512x512xi1>) outs(%e : tensor<512x64xf32>)
        mask(#attn.dense<0>) {indexing_maps = [#q, #k, #v, affine_map<(q, k, d, e) -> (q, k)>, #o], scale = 0.5 : f32} -> tensor<512x64xf32>
      return %o : tensor<512x64xf32>
    }

    // For an attention this small, the rounding would take more time than it saves.
    // CHECK-LABEL: @small(
    // CHECK-NOT: arith.truncf
    func.func @small(%x: tensor<16x64xf32>, %e: tensor<16x64xf32>) -> tensor<16x64xf32> {
      %o = attn.attention ins(%x, %x, %x : tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x64xf32>) outs(%e : tensor<16x64xf32>)
        {indexing_maps = [#q, #k, #v, #o], scale = 0.5 : f32} -> tensor<16x64xf32>
      return %o : tensor<16x64xf32>
    }

    // Factors stay f32 if the plan of the op has no groups: code without groups would convert rounded factors back
    // to f32.
    // CHECK-LABEL: @planned(
    // CHECK-NOT: arith.truncf
    func.func @planned(%x: tensor<512x64xf32>, %e: tensor<512x64xf32>) -> tensor<512x64xf32> {
      %o = attn.attention ins(%x, %x, %x : tensor<512x64xf32>, tensor<512x64xf32>, tensor<512x64xf32>) outs(%e : tensor<512x64xf32>)
        plan(<"per-head", q = 48, k = 96>) {indexing_maps = [#q, #k, #v, #o], scale = 0.5 : f32} -> tensor<512x64xf32>
      return %o : tensor<512x64xf32>
    }

    // A sum of an odd number of products does not divide into pairs. For few queries, most of the time is spent on
    // reading keys and values, which the rounding would read once more.
    // CHECK-LABEL: @left_alone(
    // CHECK-NOT: attn.compute
    // CHECK-NOT: arith.truncf
    // CHECK: return
    func.func @left_alone(%x: tensor<8x63xf32>, %w: tensor<63x64xf32>, %k: tensor<?x64xf32>, %e: tensor<8x64xf32>) -> tensor<8x64xf32> {
      %y = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<8x63xf32>, tensor<63x64xf32>) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
      %o = attn.attention ins(%y, %k, %k : tensor<8x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<8x64xf32>)
        {indexing_maps = [#q, #k, #v, #o], scale = 0.5 : f32} -> tensor<8x64xf32>
      return %o : tensor<8x64xf32>
    }
  }
  // This target has no instruction for pairs of bf16.
  module attributes {attn.target = #v4} {
    // CHECK-LABEL: @other_machine(
    // CHECK-NOT: arith.truncf
    func.func @other_machine(%x: tensor<16x64xf32>, %e: tensor<16x64xf32>) -> tensor<16x64xf32> {
      %o = attn.attention ins(%x, %x, %x : tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x64xf32>) outs(%e : tensor<16x64xf32>)
        {indexing_maps = [#q, #k, #v, #o], scale = 0.5 : f32} -> tensor<16x64xf32>
      return %o : tensor<16x64xf32>
    }
  }
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
#bf16 = #attn.cpu<"x86-64-v4-bf16", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|pairs>
module {
  module attributes {attn.target = #bf16} {
    // Without attn.compute, the factors of products stay f32.
    // CHECK-LABEL: @unasked(
    // CHECK-NOT: arith.truncf
    func.func @unasked(%x: tensor<16x64xf32>, %e: tensor<16x64xf32>) -> tensor<16x64xf32> {
      %o = attn.attention ins(%x, %x, %x : tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x64xf32>) outs(%e : tensor<16x64xf32>)
        {indexing_maps = [#q, #k, #v, #o], scale = 0.5 : f32} -> tensor<16x64xf32>
      return %o : tensor<16x64xf32>
    }
  }
}
