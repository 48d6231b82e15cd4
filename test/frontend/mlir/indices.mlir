// Indices that the import cannot prove to be in bounds are clamped.
// RUN: attn-import %s | FileCheck %s
// RUN: attn-import %s > %t.once.mlir
// RUN: attn-import %t.once.mlir > %t.twice.mlir
// RUN: diff %t.once.mlir %t.twice.mlir

#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @gather(
// CHECK: %[[J:.*]] = linalg.index 1
// CHECK: %[[LOW:.*]] = arith.minsi %{{.*}}, %c9
// CHECK: %[[I:.*]] = arith.maxsi %[[LOW]], %c0
// CHECK: tensor.extract %{{.*}}[%[[I]], %[[J]]]
func.func @gather(%table: tensor<10x4xf32>, %indices: tensor<6xi64>) -> tensor<6x4xf32> {
  %empty = tensor.empty() : tensor<6x4xf32>
  %rows = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%indices : tensor<6xi64>) outs(%empty : tensor<6x4xf32>) {
  ^bb0(%index: i64, %old: f32):
    %i = arith.index_cast %index : i64 to index
    %j = linalg.index 1 : index
    %element = tensor.extract %table[%i, %j] : tensor<10x4xf32>
    linalg.yield %element : f32
  } -> tensor<6x4xf32>
  return %rows : tensor<6x4xf32>
}

// The runtime checks the bound of an argument. The sizes of a column and of the result are equal.
// CHECK-LABEL: func.func @bounded(
// CHECK-NOT: arith.m{{(in|ax)}}si
// CHECK: return
func.func @bounded(%table: tensor<10x?xf32> {attn.name = "t", attn.dims = ["", "n"]},
                   %indices: tensor<6xi64> {attn.name = "i", attn.bound = 9 : i64})
    -> (tensor<6x?xf32> {attn.dims = ["", "n"]}) attributes {attn.symbols = [#attn.symbol<"n", 0 to 100>]} {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %table, %c1 : tensor<10x?xf32>
  %empty = tensor.empty(%n) : tensor<6x?xf32>
  %rows = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%indices : tensor<6xi64>) outs(%empty : tensor<6x?xf32>) {
  ^bb0(%index: i64, %old: f32):
    %i = arith.index_cast %index : i64 to index
    %j = linalg.index 1 : index
    %element = tensor.extract %table[%i, %j] : tensor<10x?xf32>
    linalg.yield %element : f32
  } -> tensor<6x?xf32>
  return %rows : tensor<6x?xf32>
}

// CHECK-LABEL: func.func @write(
// CHECK: %[[LOW:.*]] = arith.minsi %{{.*}}, %c7
// CHECK: %[[OFFSET:.*]] = arith.maxsi %[[LOW]], %c0
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[%[[OFFSET]], 0] [3, 4]
// CHECK: %[[LAST:.*]] = arith.minsi %{{.*}}, %c9
// CHECK: %[[ROW:.*]] = arith.maxsi %[[LAST]], %c0
// CHECK: tensor.insert %{{.*}} into %{{.*}}[%[[ROW]], %c0
func.func @write(%table: tensor<10x4xf32>, %rows: tensor<3x4xf32>, %index: tensor<i64>) -> tensor<10x4xf32> {
  %element = tensor.extract %index[] : tensor<i64>
  %i = arith.index_cast %element : i64 to index
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %written = tensor.insert_slice %rows into %table[%i, 0] [3, 4] [1, 1] : tensor<3x4xf32> into tensor<10x4xf32>
  %result = tensor.insert %one into %written[%i, %c0] : tensor<10x4xf32>
  return %result : tensor<10x4xf32>
}
