// RUN: attn-opt %s -split-input-file -attn-unify-dims | FileCheck %s

// CHECK-LABEL: @same_symbol
// CHECK-SAME: (%[[X:.*]]: tensor<?x4xf32>
// CHECK: %[[N:.*]] = tensor.dim %[[X]], %{{.*}} : tensor<?x4xf32>
// CHECK: return %[[N]]
func.func @same_symbol(%x: tensor<?x4xf32> {attn.name = "x", attn.dims = ["n", ""]},
                       %mask: tensor<2x?xi1> {attn.name = "mask", attn.dims = ["", "n"]}) -> index
    attributes {attn.symbols = [#attn.symbol<"n", 0 to 4096>]} {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %mask, %c1 : tensor<2x?xi1>
  return %n : index
}

// -----

// CHECK-LABEL: @no_symbol
// CHECK-SAME: (%{{.*}}: tensor<?x4xf32>, %[[Y:.*]]: tensor<?xf32>)
// CHECK: tensor.dim %[[Y]]
func.func @no_symbol(%x: tensor<?x4xf32>, %y: tensor<?xf32>) -> index {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  return %n : index
}
