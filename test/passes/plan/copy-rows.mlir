// RUN: attn-opt %s -attn-copy-rows | FileCheck %s

#x = affine_map<(s, p, j, k) -> (s, k)>
#w = affine_map<(s, p, j, k) -> (p, k, j)>
#o = affine_map<(s, p, j, k) -> (s, p, j)>
module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, spare = 1, l1 = 32768, l2 = 262144, has = fma>} {
// The rows of 4096 bytes share sets of L1. Both products read one copy.
// CHECK-LABEL: @argument
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x1024xf32>
// CHECK: %[[D:.*]] = tensor.dim %[[X]]
// CHECK: %[[E:.*]] = tensor.empty(%[[D]]) : tensor<?x1024xf32>
// CHECK: %[[R:.*]] = linalg.copy ins(%[[X]] : tensor<?x1024xf32>) outs(%[[E]]
// CHECK: linalg.contract {{.*}} ins(%[[R]],
// CHECK: linalg.contract {{.*}} ins(%[[R]],
func.func @argument(%x: tensor<?x1024xf32>, %w: tensor<12x1024x16xf32>, %i: tensor<?x12x16xf32>) -> (tensor<?x12x16xf32>, tensor<?x12x16xf32>) {
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 32>} ins(%x, %w : tensor<?x1024xf32>, tensor<12x1024x16xf32>)
      outs(%i : tensor<?x12x16xf32>) -> tensor<?x12x16xf32>
  %d = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 32>} ins(%x, %w : tensor<?x1024xf32>, tensor<12x1024x16xf32>)
      outs(%c : tensor<?x12x16xf32>) -> tensor<?x12x16xf32>
  return %c, %d : tensor<?x12x16xf32>, tensor<?x12x16xf32>
}
// The rows of a view lie as far apart as those of the argument.
// CHECK-LABEL: @view
// CHECK: %[[V:.*]] = tensor.collapse_shape
// CHECK: linalg.copy ins(%[[V]]
func.func @view(%x: tensor<2x8x1024xf32>, %w: tensor<24x1024x16xf32>, %i: tensor<16x24x16xf32>) -> tensor<16x24x16xf32> {
  %v = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x8x1024xf32> into tensor<16x1024xf32>
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 32>} ins(%v, %w : tensor<16x1024xf32>, tensor<24x1024x16xf32>)
      outs(%i : tensor<16x24x16xf32>) -> tensor<16x24x16xf32>
  return %c : tensor<16x24x16xf32>
}
// CHECK-LABEL: @slice
// CHECK: %[[V:.*]] = tensor.extract_slice
// CHECK: linalg.copy ins(%[[V]]
func.func @slice(%x: tensor<32x1024xf32>, %w: tensor<24x1000x16xf32>, %i: tensor<32x24x16xf32>) -> tensor<32x24x16xf32> {
  %v = tensor.extract_slice %x[0, 0] [32, 1000] [1, 1] : tensor<32x1024xf32> to tensor<32x1000xf32>
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 32>} ins(%v, %w : tensor<32x1000xf32>, tensor<24x1000x16xf32>)
      outs(%i : tensor<32x24x16xf32>) -> tensor<32x24x16xf32>
  return %c : tensor<32x24x16xf32>
}
// Other rows, few rows, few columns, temporaries, weights, and products of a group are read in place.
// CHECK-LABEL: @other_rows
// CHECK-NOT: linalg.copy
func.func @other_rows(%x: tensor<?x1040xf32>, %w: tensor<24x1040x16xf32>, %i: tensor<?x24x16xf32>) -> tensor<?x24x16xf32> {
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 32>} ins(%x, %w : tensor<?x1040xf32>, tensor<24x1040x16xf32>)
      outs(%i : tensor<?x24x16xf32>) -> tensor<?x24x16xf32>
  return %c : tensor<?x24x16xf32>
}
func.func @slice_of_other_rows(%x: tensor<32x1040xf32>, %w: tensor<24x1024x16xf32>, %i: tensor<32x24x16xf32>) -> tensor<32x24x16xf32> {
  %v = tensor.extract_slice %x[0, 0] [32, 1024] [1, 1] : tensor<32x1040xf32> to tensor<32x1024xf32>
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 32>} ins(%v, %w : tensor<32x1024xf32>, tensor<24x1024x16xf32>)
      outs(%i : tensor<32x24x16xf32>) -> tensor<32x24x16xf32>
  return %c : tensor<32x24x16xf32>
}
func.func @few_rows(%x: tensor<8x1024xf32>, %w: tensor<24x1024x16xf32>, %i: tensor<8x24x16xf32>) -> tensor<8x24x16xf32> {
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 8>} ins(%x, %w : tensor<8x1024xf32>, tensor<24x1024x16xf32>)
      outs(%i : tensor<8x24x16xf32>) -> tensor<8x24x16xf32>
  return %c : tensor<8x24x16xf32>
}
func.func @few_columns(%x: tensor<?x1024xf32>, %w: tensor<4x1024x16xf32>, %i: tensor<?x4x16xf32>) -> tensor<?x4x16xf32> {
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 32>} ins(%x, %w : tensor<?x1024xf32>, tensor<4x1024x16xf32>)
      outs(%i : tensor<?x4x16xf32>) -> tensor<?x4x16xf32>
  return %c : tensor<?x4x16xf32>
}
func.func @temporary(%a: tensor<32x1024xf32>, %w: tensor<24x1024x16xf32>, %i: tensor<32x24x16xf32>) -> tensor<32x24x16xf32> {
  %e = tensor.empty() : tensor<32x1024xf32>
  %x = linalg.exp ins(%a : tensor<32x1024xf32>) outs(%e : tensor<32x1024xf32>) -> tensor<32x1024xf32>
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 32>} ins(%x, %w : tensor<32x1024xf32>, tensor<24x1024x16xf32>)
      outs(%i : tensor<32x24x16xf32>) -> tensor<32x24x16xf32>
  return %c : tensor<32x24x16xf32>
}
func.func @weight(%x: tensor<32x1024xf32> {attn.weight}, %w: tensor<24x1024x16xf32>, %i: tensor<32x24x16xf32>) -> tensor<32x24x16xf32> {
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 32>} ins(%x, %w : tensor<32x1024xf32>, tensor<24x1024x16xf32>)
      outs(%i : tensor<32x24x16xf32>) -> tensor<32x24x16xf32>
  return %c : tensor<32x24x16xf32>
}
func.func @group(%x: tensor<?x1024xf32>, %w: tensor<24x1024x16xf32>, %i: tensor<?x24x16xf32>) -> tensor<?x24x16xf32> {
  %c = linalg.contract indexing_maps = [#x, #w, #o] {attn.task = #attn.task<rows = 32, group = 0>} ins(%x, %w : tensor<?x1024xf32>, tensor<24x1024x16xf32>)
      outs(%i : tensor<?x24x16xf32>) -> tensor<?x24x16xf32>
  return %c : tensor<?x24x16xf32>
}
}
