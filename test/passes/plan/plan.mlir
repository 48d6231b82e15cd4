// RUN: attn-opt %s -attn-plan -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -attn-plan=schedule=phased -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=NAMED
// RUN: attn-opt %s -attn-plan=schedule=unfused -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=UNFUSED

// The test covers codegen/cpu/Choose.cpp, which chooses the plan with the smallest time that Cost.cpp predicts.

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#maps = [#q, #k, #v, #o]
module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>} {
  // The tiles fit in L1.
  // CHECK-LABEL: @dynamic(
  // CHECK: attn.attention {{.*}} plan(<"per-head", q = 48, k = 64>)
  // NAMED: attn.attention {{.*}} plan(<phased, q = 48, k = 64>)
  // UNFUSED: attn.attention {{.*}} plan(<unfused, q = 48, k = 96>)
  func.func @dynamic(%x: tensor<2x?x64xf32>, %e: tensor<2x?x64xf32>) -> tensor<2x?x64xf32> {
    %o = attn.attention ins(%x, %x, %x : tensor<2x?x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>) outs(%e : tensor<2x?x64xf32>)
        {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<2x?x64xf32>
    return %o : tensor<2x?x64xf32>
  }

  // Narrower tiles of queries compute fewer hidden pairs along the diagonal.
  // CHECK-LABEL: @causal(
  // CHECK: attn.attention {{.*}} plan(<"per-head", q = 32, k = 64>)
  func.func @causal(%x: tensor<2x512x64xf32>, %e: tensor<2x512x64xf32>) -> tensor<2x512x64xf32> {
    %o = attn.attention ins(%x, %x, %x : tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x64xf32>) outs(%e : tensor<2x512x64xf32>)
        mask(#attn.causal) {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<2x512x64xf32>
    return %o : tensor<2x512x64xf32>
  }

  // A tile of one query would use one lane of a vector; in the schedule whole-scores, vectors hold keys.
  // CHECK-LABEL: @decode(
  // CHECK: attn.attention {{.*}} plan(<"whole-scores", q = 1, k = {{[0-9]+}}>)
  func.func @decode(%x: tensor<2x1x64xf32>, %y: tensor<2x?x64xf32>, %e: tensor<2x1x64xf32>) -> tensor<2x1x64xf32> {
    %o = attn.attention ins(%x, %y, %y : tensor<2x1x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>) outs(%e : tensor<2x1x64xf32>)
        {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<2x1x64xf32>
    return %o : tensor<2x1x64xf32>
  }

  // Only one tile of queries reads the keys, so each tile of keys except the first is prefetched while
  // the previous one is computed. With smaller tiles of keys, this prefetching begins sooner.
  // CHECK-LABEL: @stream(
  // CHECK: attn.attention {{.*}} plan(<"per-head", q = 16, k = 64>)
  func.func @stream(%x: tensor<96x16x64xf32>, %y: tensor<96x512x64xf32>, %e: tensor<96x16x64xf32>) -> tensor<96x16x64xf32> {
    %o = attn.attention ins(%x, %y, %y : tensor<96x16x64xf32>, tensor<96x512x64xf32>, tensor<96x512x64xf32>) outs(%e : tensor<96x16x64xf32>)
        {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<96x16x64xf32>
    return %o : tensor<96x16x64xf32>
  }

  // 14 queries nearly fill a vector of 16 lanes, so a tile of queries is faster than whole-scores, in which vectors
  // hold keys.
  // CHECK-LABEL: @nearly_a_vector(
  // CHECK: attn.attention {{.*}} plan(<"per-head", q = 16, k = 14>)
  func.func @nearly_a_vector(%x: tensor<96x14x64xf32>, %e: tensor<96x14x64xf32>) -> tensor<96x14x64xf32> {
    %o = attn.attention ins(%x, %x, %x : tensor<96x14x64xf32>, tensor<96x14x64xf32>, tensor<96x14x64xf32>) outs(%e : tensor<96x14x64xf32>)
        {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<96x14x64xf32>
    return %o : tensor<96x14x64xf32>
  }

  // A tile has at most as many keys as there are. Its number of queries is the least multiple of the vector length that
  // holds all queries.
  // CHECK-LABEL: @short(
  // CHECK: attn.attention {{.*}} plan(<"per-head", q = 32, k = 9>)
  func.func @short(%x: tensor<2x30x64xf32>, %y: tensor<2x9x64xf32>, %e: tensor<2x30x64xf32>) -> tensor<2x30x64xf32> {
    %o = attn.attention ins(%x, %y, %y : tensor<2x30x64xf32>, tensor<2x9x64xf32>, tensor<2x9x64xf32>) outs(%e : tensor<2x30x64xf32>)
        {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<2x30x64xf32>
    return %o : tensor<2x30x64xf32>
  }

  // A plan that the op already has is kept.
  // CHECK-LABEL: @planned(
  // CHECK: attn.attention {{.*}} plan(<"per-head", q = 16, k = 64>)
  // UNFUSED: attn.attention {{.*}} plan(<"per-head", q = 16, k = 64>)
  func.func @planned(%x: tensor<2x?x64xf32>, %e: tensor<2x?x64xf32>) -> tensor<2x?x64xf32> {
    %o = attn.attention ins(%x, %x, %x : tensor<2x?x64xf32>, tensor<2x?x64xf32>, tensor<2x?x64xf32>) outs(%e : tensor<2x?x64xf32>)
        plan(<"per-head", q = 16, k = 64>) {indexing_maps = #maps, scale = 1.25e-01 : f32} -> tensor<2x?x64xf32>
    return %o : tensor<2x?x64xf32>
  }
}

// -----

// With narrower vectors, tiles are narrower.
// CHECK-LABEL: @narrow(
// CHECK: attn.attention {{.*}} plan(<"per-head", q = 24, k = 128>)
module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 1048576, has = fma>} {
  func.func @narrow(%x: tensor<?x64xf32>, %e: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %o = attn.attention ins(%x, %x, %x : tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>)
        {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>,
                          affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>],
         scale = 1.25e-01 : f32} -> tensor<?x64xf32>
    return %o : tensor<?x64xf32>
  }
}

// -----

// expected-error@+1 {{expected 'attn.target' on an enclosing module}}
func.func @no_target() {
  return
}

// -----

module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 1048576, has = fma>} {
  func.func @doubles(%x: tensor<4x8xf64>, %e: tensor<4x8xf64>) -> tensor<4x8xf64> {
    // expected-error@+1 {{expected an attention of f32, f16 or bf16, got 'f64'}}
    %o = attn.attention ins(%x, %x, %x : tensor<4x8xf64>, tensor<4x8xf64>, tensor<4x8xf64>) outs(%e : tensor<4x8xf64>)
        {acc_type = f64, indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>,
                          affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>],
         scale = 1.0 : f32} -> tensor<4x8xf64>
    return %o : tensor<4x8xf64>
  }
}

// -----

module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 1048576, has = fma>} {
  func.func @wide_scores(%x: tensor<4x8xf32>, %e: tensor<4x8xf32>) -> tensor<4x8xf32> {
    // expected-error@+1 {{expected an attention with scores of f32, got 'f64'}}
    %o = attn.attention ins(%x, %x, %x : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>)
        {acc_type = f64, indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>,
                          affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>],
         scale = 1.0 : f32} -> tensor<4x8xf32>
    return %o : tensor<4x8xf32>
  }
}

// -----

// A target with instructions that add the products of pairs of bf16 gets plans with groups of two, if two divides the
// head size and all operands are of bf16.
// CHECK-LABEL: @pairs(
// CHECK: attn.attention {{.*}} plan(<"per-head", q = {{[0-9]+}}, k = {{[0-9]+}}, group = 2>)
// CHECK: attn.attention {{.*}} plan(<{{[a-z"-]+}}, q = {{[0-9]+}}, k = {{[0-9]+}}>)
// CHECK: attn.attention {{.*}} plan(<{{[a-z"-]+}}, q = {{[0-9]+}}, k = {{[0-9]+}}>)
#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
module attributes {attn.target = #attn.cpu<"x86-64-v4-bf16", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|scale|pairs>} {
  func.func @pairs(%x: tensor<256x64xbf16>, %y: tensor<256x63xbf16>, %z: tensor<256x64xf32>, %e: tensor<256x64xf32>)
      -> (tensor<256x64xf32>, tensor<256x64xf32>, tensor<256x64xf32>) {
    %a = attn.attention ins(%x, %x, %x : tensor<256x64xbf16>, tensor<256x64xbf16>, tensor<256x64xbf16>) outs(%e : tensor<256x64xf32>)
        {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<256x64xf32>
    %b = attn.attention ins(%y, %y, %x : tensor<256x63xbf16>, tensor<256x63xbf16>, tensor<256x64xbf16>) outs(%e : tensor<256x64xf32>)
        {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<256x64xf32>
    %c = attn.attention ins(%x, %x, %z : tensor<256x64xbf16>, tensor<256x64xbf16>, tensor<256x64xf32>) outs(%e : tensor<256x64xf32>)
        {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<256x64xf32>
    return %a, %b, %c : tensor<256x64xf32>, tensor<256x64xf32>, tensor<256x64xf32>
  }
}

// -----

// On a target with tile registers (AMX), values are transposed.
// CHECK-LABEL: @tiles
// CHECK: plan(<"per-head", q = {{64|128}}, k = {{[0-9]+}}, group = 2, transposes = true>)
#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
module attributes {attn.target = #attn.cpu<"x86-64-amx", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|scale|pairs|tiles>} {
  func.func @tiles(%x: tensor<256x64xbf16>, %e: tensor<256x64xf32>) -> tensor<256x64xf32> {
    %a = attn.attention ins(%x, %x, %x : tensor<256x64xbf16>, tensor<256x64xbf16>, tensor<256x64xbf16>) outs(%e : tensor<256x64xf32>)
        {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<256x64xf32>
    return %a : tensor<256x64xf32>
  }
}
