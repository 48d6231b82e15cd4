// RUN: attn-opt %s --attn-to-schedule | FileCheck %s
// A convolution reads elements more than once, so it is not a reduction of rows. It has its own tasks, which precede
// those of the normalisation. The normalisation reads a transposed copy of the convolution's result.
// CHECK: scf.forall
// CHECK: linalg.transpose
// CHECK: scf.forall
// CHECK: math.rsqrt

#map = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, d3 + d6, d4 + d7)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d2, d5, d6, d7)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d1)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d3)>
#map8 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map9 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d4)>
#map10 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
module attributes {attn.targets = [#attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|scale|halves>], attn.version = 1 : i64} {
  func.func @forward(%arg0: tensor<2x16x8x8xf32> {attn.name = "x"}, %arg1: tensor<32x1x3x3xf32> {attn.name = "c.weight", attn.weight}, %arg2: tensor<32xf32> {attn.name = "c.bias", attn.weight}, %arg3: tensor<32xf32> {attn.name = "n.weight", attn.weight}, %arg4: tensor<32xf32> {attn.name = "n.bias", attn.weight}, %arg5: tensor<64x32xf32> {attn.name = "a.weight", attn.weight}, %arg6: tensor<64xf32> {attn.name = "a.bias", attn.weight}, %arg7: tensor<32x64xf32> {attn.name = "b.weight", attn.weight}, %arg8: tensor<32xf32> {attn.name = "b.bias", attn.weight}) -> (tensor<2x32x8x8xf32> {attn.name = "out"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x16x10x10xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x16x10x10xf32>) -> tensor<2x16x10x10xf32>
    %inserted_slice = tensor.insert_slice %arg0 into %1[0, 0, 1, 1] [2, 16, 8, 8] [1, 1, 1, 1] : tensor<2x16x8x8xf32> into tensor<2x16x10x10xf32>
    %expanded = tensor.expand_shape %inserted_slice [[0], [1], [2, 3], [4]] output_shape [2, 16, 1, 10, 10] : tensor<2x16x10x10xf32> into tensor<2x16x1x10x10xf32>
    %expanded_0 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [16, 2, 1, 3, 3] : tensor<32x1x3x3xf32> into tensor<16x2x1x3x3xf32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<2x16x2x8x8xf32>
    %3 = linalg.fill ins(%cst_1 : f32) outs(%2 : tensor<2x16x2x8x8xf32>) -> tensor<2x16x2x8x8xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%expanded, %expanded_0 : tensor<2x16x1x10x10xf32>, tensor<16x2x1x3x3xf32>) outs(%3 : tensor<2x16x2x8x8xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %33 = arith.mulf %in, %in_9 : f32
      %34 = arith.addf %out, %33 : f32
      linalg.yield %34 : f32
    } -> tensor<2x16x2x8x8xf32>
    %collapsed = tensor.collapse_shape %4 [[0], [1, 2], [3], [4]] : tensor<2x16x2x8x8xf32> into tensor<2x32x8x8xf32>
    %5 = tensor.empty() : tensor<2x32x8x8xf32>
    %6 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed, %arg2 : tensor<2x32x8x8xf32>, tensor<32xf32>) outs(%5 : tensor<2x32x8x8xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %33 = arith.addf %in, %in_9 : f32
      linalg.yield %33 : f32
    } -> tensor<2x32x8x8xf32>
    %7 = tensor.empty() : tensor<2x8x8x32xf32>
    %transposed = linalg.transpose ins(%6 : tensor<2x32x8x8xf32>) outs(%7 : tensor<2x8x8x32xf32>) permutation = [0, 2, 3, 1] 
    %cst_2 = arith.constant 3.200000e+01 : f32
    %cst_3 = arith.constant 9.99999974E-6 : f32
    %cst_4 = arith.constant 0.000000e+00 : f32
    %8 = tensor.empty() : tensor<2x8x8xf32>
    %9 = linalg.fill ins(%cst_4 : f32) outs(%8 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %10 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%transposed : tensor<2x8x8x32xf32>) outs(%9 : tensor<2x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %33 = arith.addf %out, %in : f32
      linalg.yield %33 : f32
    } -> tensor<2x8x8xf32>
    %11 = tensor.empty() : tensor<2x8x8xf32>
    %12 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<2x8x8xf32>) outs(%11 : tensor<2x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %33 = arith.divf %in, %cst_2 : f32
      linalg.yield %33 : f32
    } -> tensor<2x8x8xf32>
    %cst_5 = arith.constant 0.000000e+00 : f32
    %13 = tensor.empty() : tensor<2x8x8xf32>
    %14 = linalg.fill ins(%cst_5 : f32) outs(%13 : tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %15 = linalg.generic {indexing_maps = [#map3, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%transposed, %12 : tensor<2x8x8x32xf32>, tensor<2x8x8xf32>) outs(%14 : tensor<2x8x8xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %33 = arith.subf %in, %in_9 : f32
      %34 = arith.mulf %33, %33 : f32
      %35 = arith.addf %out, %34 : f32
      linalg.yield %35 : f32
    } -> tensor<2x8x8xf32>
    %16 = tensor.empty() : tensor<2x8x8xf32>
    %17 = linalg.generic {indexing_maps = [#map6, #map6], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<2x8x8xf32>) outs(%16 : tensor<2x8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %33 = arith.divf %in, %cst_2 : f32
      %34 = arith.addf %33, %cst_3 : f32
      %35 = math.rsqrt %34 : f32
      linalg.yield %35 : f32
    } -> tensor<2x8x8xf32>
    %18 = tensor.empty() : tensor<2x8x8x32xf32>
    %19 = linalg.generic {indexing_maps = [#map3, #map5, #map5, #map7, #map7, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed, %12, %17, %arg3, %arg4 : tensor<2x8x8x32xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<32xf32>, tensor<32xf32>) outs(%18 : tensor<2x8x8x32xf32>) {
    ^bb0(%in: f32, %in_9: f32, %in_10: f32, %in_11: f32, %in_12: f32, %out: f32):
      %33 = arith.subf %in, %in_9 : f32
      %34 = arith.mulf %33, %in_10 : f32
      %35 = arith.mulf %34, %in_11 : f32
      %36 = arith.addf %35, %in_12 : f32
      linalg.yield %36 : f32
    } -> tensor<2x8x8x32xf32>
    %cst_6 = arith.constant 0.000000e+00 : f32
    %20 = tensor.empty() : tensor<2x8x8x64xf32>
    %21 = linalg.fill ins(%cst_6 : f32) outs(%20 : tensor<2x8x8x64xf32>) -> tensor<2x8x8x64xf32>
    %22 = linalg.contract indexing_maps = [#map8, #map9, #map10] ins(%19, %arg5 : tensor<2x8x8x32xf32>, tensor<64x32xf32>) outs(%21 : tensor<2x8x8x64xf32>) -> tensor<2x8x8x64xf32>
    %23 = tensor.empty() : tensor<2x8x8x64xf32>
    %24 = linalg.generic {indexing_maps = [#map3, #map7, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22, %arg6 : tensor<2x8x8x64xf32>, tensor<64xf32>) outs(%23 : tensor<2x8x8x64xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %33 = arith.addf %in, %in_9 : f32
      linalg.yield %33 : f32
    } -> tensor<2x8x8x64xf32>
    %cst_7 = arith.constant 0.000000e+00 : f32
    %25 = tensor.empty() : tensor<2x8x8x32xf32>
    %26 = linalg.fill ins(%cst_7 : f32) outs(%25 : tensor<2x8x8x32xf32>) -> tensor<2x8x8x32xf32>
    %27 = linalg.contract indexing_maps = [#map8, #map9, #map10] ins(%24, %arg7 : tensor<2x8x8x64xf32>, tensor<32x64xf32>) outs(%26 : tensor<2x8x8x32xf32>) -> tensor<2x8x8x32xf32>
    %28 = tensor.empty() : tensor<2x8x8x32xf32>
    %29 = linalg.generic {indexing_maps = [#map3, #map7, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27, %arg8 : tensor<2x8x8x32xf32>, tensor<32xf32>) outs(%28 : tensor<2x8x8x32xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %33 = arith.addf %in, %in_9 : f32
      linalg.yield %33 : f32
    } -> tensor<2x8x8x32xf32>
    %30 = tensor.empty() : tensor<2x32x8x8xf32>
    %transposed_8 = linalg.transpose ins(%29 : tensor<2x8x8x32xf32>) outs(%30 : tensor<2x32x8x8xf32>) permutation = [0, 3, 1, 2] 
    %31 = tensor.empty() : tensor<2x32x8x8xf32>
    %32 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %transposed_8 : tensor<2x32x8x8xf32>, tensor<2x32x8x8xf32>) outs(%31 : tensor<2x32x8x8xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %33 = arith.addf %in, %in_9 : f32
      linalg.yield %33 : f32
    } -> tensor<2x32x8x8xf32>
    return %32 : tensor<2x32x8x8xf32>
  }
}

