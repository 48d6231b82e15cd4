// RUN: attn-import %s | FileCheck %s

#id = affine_map<(a) -> (a)>

// Sizes that an op requires to be equal get one symbol.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME: attn.dims = ["arg0.0"]
// CHECK-SAME: attn.dims = ["arg0.0"]
// CHECK-SAME: attn.symbols = [#attn.symbol<"arg0.0", 0 to 2147483647>]
func.func @sum(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// The number of keys and the number of values share a symbol; the number of queries has another symbol.
// CHECK-LABEL: func.func @attention(
// CHECK-SAME: attn.dims = ["arg0.0", ""]
// CHECK-SAME: attn.dims = ["arg1.0", ""]
// CHECK-SAME: attn.dims = ["arg1.0", ""]
// CHECK-SAME: attn.symbols = [#attn.symbol<"arg0.0", 0 to 2147483647>, #attn.symbol<"arg1.0", 0 to 2147483647>]
func.func @attention(%q: tensor<?x8xf32>, %k: tensor<?x8xf32>, %v: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %q, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %r = attn.attention ins(%q, %k, %v : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>)
    {indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>,
                      affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>], scale = 1.0 : f32} -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// Two products of sizes are accepted as equal if their factors share symbols.
// CHECK-LABEL: func.func @flattened(
// CHECK-SAME: attn.dims = ["arg0.0", "arg0.1"]
// CHECK-SAME: attn.dims = ["arg0.0", "arg0.1"]
func.func @flattened(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %flatX = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %flatY = tensor.collapse_shape %y [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %unused = linalg.exp ins(%flatX : tensor<?xf32>) outs(%flatY : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.exp ins(%x : tensor<?x?xf32>) outs(%y : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r, %y : tensor<?x?xf32>, tensor<?x?xf32>
}

// A size that must equal a constant gets a range of this constant only. A tensor is at least as large as its slices.
// CHECK-LABEL: func.func @ranges(
// CHECK-SAME: [#attn.symbol<"arg0.0", 3 to 3>, #attn.symbol<"arg2.0", 8 to 16>]
func.func @ranges(%x: tensor<?xf32>, %y: tensor<3xf32>, %z: tensor<?xf32>, %table: tensor<16xf32>) -> (tensor<3xf32>, tensor<5xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%y : tensor<3xf32>) -> tensor<3xf32>
  %s = tensor.extract_slice %z[3] [5] [1] : tensor<?xf32> to tensor<5xf32>
  %n = tensor.dim %z, %c0 : tensor<?xf32>
  %t = tensor.extract_slice %table[0] [%n] [1] : tensor<16xf32> to tensor<?xf32>
  return %r, %s, %t : tensor<3xf32>, tensor<5xf32>, tensor<?xf32>
}
