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

// torch-mlir computes the sizes of a view in i64, and infers a size that is negative. The view becomes a split of a
// dimension, and the result has sizes of the argument.
// CHECK-LABEL: func.func @view(
// CHECK-SAME: -> (tensor<?x?x3x4xf32> {attn.dims = ["arg0.0", "arg0.1", "", ""]
// CHECK-NOT: tensor.reshape
// CHECK: tensor.expand_shape %arg0 {{\[\[}}0], [1], [2, 3]] output_shape [%{{.*}}, %{{.*}}, 3, 4]
// CHECK-NOT: tensor.reshape
func.func @view(%x: tensor<?x?x12xf32>) -> tensor<?x?x3x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %three = arith.constant 3 : i64
  %four = arith.constant 4 : i64
  %twelve = arith.constant 12 : i64
  %dim0 = tensor.dim %x, %c0 : tensor<?x?x12xf32>
  %dim1 = tensor.dim %x, %c1 : tensor<?x?x12xf32>
  %b = arith.index_cast %dim0 : index to i64
  %s = arith.index_cast %dim1 : index to i64
  %negative = arith.cmpi slt, %s, %zero : i64
  %count = arith.extui %negative : i1 to i64
  %atMostOne = arith.cmpi sle, %count, %one : i64
  cf.assert %atMostOne, "must have at most one inferred (negative) dimension"
  %rest = arith.muli %b, %twelve : i64
  %product = arith.muli %rest, %s : i64
  %inferred = arith.divsi %product, %rest : i64
  %size = arith.select %negative, %inferred, %s : i64
  %shape = tensor.from_elements %b, %size, %three, %four : tensor<4xi64>
  %r = tensor.reshape %x(%shape) : (tensor<?x?x12xf32>, tensor<4xi64>) -> tensor<?x?x3x4xf32>
  return %r : tensor<?x?x3x4xf32>
}

// A result may have sizes that are computed from those of arguments. A divisor is at least 1.
// CHECK-LABEL: func.func @computed(
// CHECK-SAME: attn.dims = ["arg0.0*arg0.1"]
// CHECK-SAME: attn.dims = ["((1 + 2*arg0.0) // arg0.1)"]
// CHECK-SAME: #attn.symbol<"arg0.1", 1 to 2147483647>
func.func @computed(%x: tensor<?x?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %twice = arith.muli %m, %c2 : index
  %more = arith.addi %twice, %c1 : index
  %quotient = arith.divsi %more, %n : index
  %e = tensor.empty(%quotient) : tensor<?xf32>
  %r = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %flat, %r : tensor<?xf32>, tensor<?xf32>
}

// A broadcast reads index 0 of a dimension of size 1. If the loop has the size of the dimension, it reads each element.
// CHECK-LABEL: func.func @broadcast(
// CHECK: %[[I:.*]] = linalg.index 0
// CHECK: tensor.extract %{{.*}}[%[[I]]]
func.func @broadcast(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%e : tensor<?xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %isOne = arith.cmpi eq, %n, %c1 : index
    %p = arith.select %isOne, %c0, %i : index
    %v = tensor.extract %x[%p] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// TOSA broadcasts in a branch. If all sizes are equal, the branch changes nothing.
// CHECK-LABEL: func.func @branch(
// CHECK: return %arg0
func.func @branch(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %isOne = arith.cmpi eq, %n, %c1 : index
  %most = arith.maxui %n, %n : index
  %r = scf.if %isOne -> (tensor<?x4xf32>) {
    %e = tensor.empty(%most) : tensor<?x4xf32>
    %copy = linalg.generic {indexing_maps = [affine_map<(a, b) -> (0, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
    } -> tensor<?x4xf32>
    scf.yield %copy : tensor<?x4xf32>
  } else {
    scf.yield %x : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// The sizes of a view follow from the number of elements: y has twice as many as x.
// CHECK-LABEL: func.func @halves(
// CHECK-SAME: attn.symbols = [#attn.symbol<"arg0.0", 0 to 2147483647>, #attn.symbol<"arg1.0", 0 to 2147483647>, #attn.symbol<"arg1.0 == 2*arg0.0", 1 to 1>]
func.func @halves(%x: tensor<?x8xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %y, %c0 : tensor<?x4xf32>
  %shape = tensor.from_elements %n, %c4 : tensor<2xindex>
  %v = tensor.reshape %x(%shape) : (tensor<?x8xf32>, tensor<2xindex>) -> tensor<?x4xf32>
  %r = linalg.exp ins(%v : tensor<?x4xf32>) outs(%y : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
