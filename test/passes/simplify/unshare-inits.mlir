// RUN: attn-opt %s -attn-unshare-inits | FileCheck %s

#x = affine_map<(s, n, c) -> (s, c)>
#w = affine_map<(s, n, c) -> (n, c)>
#y = affine_map<(s, n, c) -> (s, n)>

// CHECK-LABEL: @two_products
// CHECK-DAG: %[[E0:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-DAG: %[[F0:.*]] = linalg.fill {{.*}} outs(%[[E0]]
// CHECK-DAG: %[[E1:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-DAG: %[[F1:.*]] = linalg.fill {{.*}} outs(%[[E1]]
// CHECK: linalg.contract {{.*}} outs(%[[F1]]
// CHECK: linalg.contract {{.*}} outs(%[[F0]]
func.func @two_products(%x: tensor<4x16xf32>, %wk: tensor<8x16xf32>, %wv: tensor<8x16xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wk : tensor<4x16xf32>, tensor<8x16xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %wv : tensor<4x16xf32>, tensor<8x16xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %k, %v : tensor<4x8xf32>, tensor<4x8xf32>
}

// The init of two products is an argument. A product must not overwrite the argument, so each one starts from a copy.
// CHECK-LABEL: @init_with_data
// CHECK-SAME: %[[R:[a-z0-9]*]]: tensor<4x8xf32>)
// CHECK: %[[C0:.*]] = linalg.copy ins(%[[R]]
// CHECK: linalg.contract {{.*}} outs(%[[C0]]
// CHECK: %[[C1:.*]] = linalg.copy ins(%[[R]]
// CHECK: linalg.contract {{.*}} outs(%[[C1]]
func.func @init_with_data(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>, %r: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%r : tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%r : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %k, %v : tensor<4x8xf32>, tensor<4x8xf32>
}

// A view of an argument shares the memory of the argument, so the product starts from a copy.
// CHECK-LABEL: @init_view
// CHECK-SAME: %[[R:[a-z0-9]*]]: tensor<32xf32>)
// CHECK: %[[V:.*]] = tensor.expand_shape %[[R]]
// CHECK: %[[C:.*]] = linalg.copy ins(%[[V]]
// CHECK: linalg.contract {{.*}} outs(%[[C]]
func.func @init_view(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>, %r: tensor<32xf32>) -> tensor<4x8xf32> {
  %v = tensor.expand_shape %r [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%v : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %k : tensor<4x8xf32>
}

// A product that is the init of a second product is copied if it has another use; otherwise the second overwrites it.
// CHECK-LABEL: @sum_of_products
// CHECK: %[[K:.*]] = linalg.contract
// CHECK: %[[C:.*]] = linalg.copy ins(%[[K]]
// CHECK: %[[V:.*]] = linalg.contract {{.*}} outs(%[[C]]
// CHECK: linalg.contract {{.*}} outs(%[[V]]
func.func @sum_of_products(%x: tensor<4x16xf32>, %w: tensor<8x16xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %k = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%0 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %v = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%k : tensor<4x8xf32>) -> tensor<4x8xf32>
  %u = linalg.contract indexing_maps = [#x, #w, #y] ins(%x, %w : tensor<4x16xf32>, tensor<8x16xf32>) outs(%v : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %k, %u : tensor<4x8xf32>, tensor<4x8xf32>
}

// An init whose elements are not read is replaced by an empty tensor of the same sizes. The destination of an insertion
// is copied, because the elements that the insertion does not write keep their values.
// CHECK-LABEL: @init_unread
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<?x16xf32>
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK: %[[E:.*]] = tensor.empty(%[[N]])
// CHECK: linalg.exp {{.*}} outs(%[[E]]
// CHECK: %[[C:.*]] = linalg.copy ins(%[[X]]
// CHECK: tensor.insert_slice %{{.*}} into %[[C]]
func.func @init_unread(%x: tensor<?x16xf32>, %row: tensor<1x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %e = linalg.exp ins(%x : tensor<?x16xf32>) outs(%x : tensor<?x16xf32>) -> tensor<?x16xf32>
  %i = tensor.insert_slice %row into %x[0, 0] [1, 16] [1, 1] : tensor<1x16xf32> into tensor<?x16xf32>
  return %e, %i : tensor<?x16xf32>, tensor<?x16xf32>
}

// An op that writes only column 0 of its init starts from a copy, because the other columns keep their values.
// CHECK-LABEL: @init_written_in_part
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<4x3xf32>
// CHECK: %[[C:.*]] = linalg.copy ins(%[[X]]
// CHECK: linalg.generic {{.*}} outs(%[[C]]
func.func @init_written_in_part(%x: tensor<4x3xf32>, %column: tensor<4xf32>) -> tensor<4x3xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i, 0)>], iterator_types = ["parallel"]}
      ins(%column : tensor<4xf32>) outs(%x : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// An in-out argument is written in place. If another value starts from a state of the argument, that state is copied.
// CHECK-LABEL: @in_out
// CHECK-SAME: %[[CACHE:[a-z0-9]*]]: tensor<4x16xf32>
// CHECK: %[[FIRST:.*]] = tensor.insert_slice %{{.*}} into %[[CACHE]]
// CHECK: %[[SECOND:.*]] = tensor.insert_slice %{{.*}} into %[[FIRST]]
// CHECK: %[[C:.*]] = linalg.copy ins(%[[FIRST]]
// CHECK: %[[OTHER:.*]] = tensor.insert_slice %{{.*}} into %[[C]]
// CHECK: return %[[OTHER]], %[[SECOND]]
func.func @in_out(%cache: tensor<4x16xf32> {attn.in_out = 1}, %row: tensor<1x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %first = tensor.insert_slice %row into %cache[0, 0] [1, 16] [1, 1] : tensor<1x16xf32> into tensor<4x16xf32>
  %second = tensor.insert_slice %row into %first[1, 0] [1, 16] [1, 1] : tensor<1x16xf32> into tensor<4x16xf32>
  %other = tensor.insert_slice %row into %first[2, 0] [1, 16] [1, 1] : tensor<1x16xf32> into tensor<4x16xf32>
  return %other, %second : tensor<4x16xf32>, tensor<4x16xf32>
}
