// RUN: attn-opt %s -attn-multiply-before-gather -canonicalize | FileCheck %s

#x = affine_map<(h, q, k, d) -> (h, q, d)>
#g = affine_map<(h, q, k, d) -> (q, k, d)>
#t = affine_map<(h, q, k, d) -> (q, d, k)>
#out = affine_map<(h, q, k, d) -> (h, q, k)>
#place = affine_map<(q, k, d) -> (q, k)>
#id = affine_map<(q, k, d) -> (q, k, d)>

// CHECK-DAG: #[[X:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[TABLE:.+]] = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
// CHECK-DAG: #[[P:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[PLACES:.+]] = affine_map<(d0, d1, d2) -> (d1, d2)>

// CHECK-LABEL: @relative
// CHECK-SAME: %[[X_:.+]]: tensor<2x6x4xf32>, %[[T_:.+]]: tensor<11x4xf32>, %[[I_:.+]]: tensor<6x6xindex>
// CHECK: %[[PRODUCTS:.+]] = linalg.{{.*}}indexing_maps = [#[[X]], #[[TABLE]], #[[P]]]{{.*}} ins(%[[X_]], %[[T_]] : {{.*}}tensor<2x6x11xf32>
// CHECK: linalg.generic {indexing_maps = [#[[PLACES]], {{.*}} ins(%[[I_]] : tensor<6x6xindex>)
// CHECK-DAG: %[[H:.+]] = linalg.index 0
// CHECK-DAG: %[[Q:.+]] = linalg.index 1
// CHECK: tensor.extract %[[PRODUCTS]][%[[H]], %[[Q]], %{{.+}}] : tensor<2x6x11xf32>
func.func @relative(%x: tensor<2x6x4xf32>, %table: tensor<11x4xf32>, %places: tensor<6x6xindex>) -> tensor<2x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6x4xf32>
  %rows = linalg.generic {indexing_maps = [#place, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%places : tensor<6x6xindex>) outs(%e : tensor<6x6x4xf32>) {
  ^bb0(%place: index, %o: f32):
    %d = linalg.index 2 : index
    %y = tensor.extract %table[%place, %d] : tensor<11x4xf32>
    linalg.yield %y : f32
  } -> tensor<6x6x4xf32>
  %empty = tensor.empty() : tensor<2x6x6xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %r = linalg.contract indexing_maps = [#x, #g, #out] ins(%x, %rows : tensor<2x6x4xf32>, tensor<6x6x4xf32>) outs(%fill : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  return %r : tensor<2x6x6xf32>
}

// The rows are transposed before the product, and have an additional dimension of size 1.
// CHECK-LABEL: @view
// CHECK: linalg.{{.*}} ins(%{{.+}}, %{{.+}} : tensor<2x6x4xf32>, tensor<11x4xf32>) {{.*}}tensor<2x6x11xf32>
// CHECK: tensor.extract %{{.+}}[%{{.+}}, %{{.+}}, %{{.+}}] : tensor<2x6x11xf32>
func.func @view(%x: tensor<2x6x4xf32>, %table: tensor<11x4xf32>, %places: tensor<6x6xindex>) -> tensor<1x2x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6x4xf32>
  %rows = linalg.generic {indexing_maps = [#place, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%places : tensor<6x6xindex>) outs(%e : tensor<6x6x4xf32>) {
  ^bb0(%place: index, %o: f32):
    %d = linalg.index 2 : index
    %y = tensor.extract %table[%place, %d] : tensor<11x4xf32>
    linalg.yield %y : f32
  } -> tensor<6x6x4xf32>
  %expanded = tensor.expand_shape %rows [[0, 1], [2], [3]] output_shape [1, 6, 6, 4] : tensor<6x6x4xf32> into tensor<1x6x6x4xf32>
  %te = tensor.empty() : tensor<1x6x4x6xf32>
  %turned = linalg.transpose ins(%expanded : tensor<1x6x6x4xf32>) outs(%te : tensor<1x6x4x6xf32>) permutation = [0, 1, 3, 2]
  %empty = tensor.empty() : tensor<1x2x6x6xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, h, q, k, d) -> (h, q, d)>, affine_map<(b, h, q, k, d) -> (b, q, d, k)>, affine_map<(b, h, q, k, d) -> (b, h, q, k)>] ins(%x, %turned : tensor<2x6x4xf32>, tensor<1x6x4x6xf32>) outs(%fill : tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  return %r : tensor<1x2x6x6xf32>
}

// The table has many rows that no query gathers.
// CHECK-LABEL: @large_table
// CHECK: tensor.extract %{{.+}} : tensor<200x4xf32>
// CHECK: linalg.{{.*}}tensor<2x6x6xf32>
func.func @large_table(%x: tensor<2x6x4xf32>, %table: tensor<200x4xf32>, %places: tensor<6x6xindex>) -> tensor<2x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6x4xf32>
  %rows = linalg.generic {indexing_maps = [#place, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%places : tensor<6x6xindex>) outs(%e : tensor<6x6x4xf32>) {
  ^bb0(%place: index, %o: f32):
    %d = linalg.index 2 : index
    %y = tensor.extract %table[%place, %d] : tensor<200x4xf32>
    linalg.yield %y : f32
  } -> tensor<6x6x4xf32>
  %empty = tensor.empty() : tensor<2x6x6xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %r = linalg.contract indexing_maps = [#x, #g, #out] ins(%x, %rows : tensor<2x6x4xf32>, tensor<6x6x4xf32>) outs(%fill : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  return %r : tensor<2x6x6xf32>
}

// There are 16 heads and 4 elements in a row, and so more products than elements to gather.
// CHECK-LABEL: @many_heads
// CHECK: tensor.extract %{{.+}} : tensor<11x4xf32>
// CHECK: linalg.{{.*}}tensor<16x6x6xf32>
func.func @many_heads(%x: tensor<16x6x4xf32>, %table: tensor<11x4xf32>, %places: tensor<6x6xindex>) -> tensor<16x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6x4xf32>
  %rows = linalg.generic {indexing_maps = [#place, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%places : tensor<6x6xindex>) outs(%e : tensor<6x6x4xf32>) {
  ^bb0(%place: index, %o: f32):
    %d = linalg.index 2 : index
    %y = tensor.extract %table[%place, %d] : tensor<11x4xf32>
    linalg.yield %y : f32
  } -> tensor<6x6x4xf32>
  %empty = tensor.empty() : tensor<16x6x6xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x6x6xf32>) -> tensor<16x6x6xf32>
  %r = linalg.contract indexing_maps = [#x, #g, #out] ins(%x, %rows : tensor<16x6x4xf32>, tensor<6x6x4xf32>) outs(%fill : tensor<16x6x6xf32>) -> tensor<16x6x6xf32>
  return %r : tensor<16x6x6xf32>
}

// The place depends on the element of the row, so that the elements come from several rows.
// CHECK-LABEL: @several_rows
// CHECK: tensor.extract %{{.+}} : tensor<11x4xf32>
// CHECK: linalg.{{.*}}tensor<2x6x6xf32>
func.func @several_rows(%x: tensor<2x6x4xf32>, %table: tensor<11x4xf32>, %places: tensor<6x6x4xindex>) -> tensor<2x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6x4xf32>
  %rows = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%places : tensor<6x6x4xindex>) outs(%e : tensor<6x6x4xf32>) {
  ^bb0(%place: index, %o: f32):
    %d = linalg.index 2 : index
    %y = tensor.extract %table[%place, %d] : tensor<11x4xf32>
    linalg.yield %y : f32
  } -> tensor<6x6x4xf32>
  %empty = tensor.empty() : tensor<2x6x6xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %r = linalg.contract indexing_maps = [#x, #g, #out] ins(%x, %rows : tensor<2x6x4xf32>, tensor<6x6x4xf32>) outs(%fill : tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  return %r : tensor<2x6x6xf32>
}
