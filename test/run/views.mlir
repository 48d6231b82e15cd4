// Views of the operands or the result of an op change which memory the op reads or writes.
// RUN: attn-run %s --entry=joined_twice --reference
// RUN: attn-run %s --entry=joined_turned --dim=n=5 --reference
// RUN: attn-run %s --entry=slice_in_a_row --reference
// RUN: attn-run %s --entry=last_selected --reference
// RUN: attn-run %s --entry=softmax_of_steps --reference
// RUN: attn-run %s --entry=softmax_of_steps --reference --level=x86-64
// RUN: attn-run %s --entry=bias_of_one_row --reference
// RUN: attn-run %s --entry=bias_from_table --reference
// RUN: attn-run %s --entry=attention_turned --reference
// RUN: attn-run %s --entry=attention_turned --reference --schedule=whole-scores

// The result of a concatenation occurs twice in another concatenation.
func.func @joined_twice(%x: tensor<4x4xf32>) -> tensor<24x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %y = linalg.exp ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = tensor.concat dim(0) %x, %y, %x : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<12x4xf32>
  %d = tensor.concat dim(0) %c, %c : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<24x4xf32>
  return %d : tensor<24x4xf32>
}

// Tasks compute a part %t of dynamic size, which the concatenation and another op read.
func.func @joined_turned(%x: tensor<?x4xf32> {attn.name = "x", attn.dims = ["n", ""]})
    -> (tensor<12x?xf32> {attn.name = "out", attn.dims = ["", "n"]}) attributes {attn.symbols = [#attn.symbol<"n", 0 to 64>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<4x?xf32>
  %t = linalg.transpose ins(%x : tensor<?x4xf32>) outs(%e : tensor<4x?xf32>) permutation = [1, 0]
  %y = linalg.exp ins(%t : tensor<4x?xf32>) outs(%e : tensor<4x?xf32>) -> tensor<4x?xf32>
  %c = tensor.concat dim(0) %t, %y, %t : (tensor<4x?xf32>, tensor<4x?xf32>, tensor<4x?xf32>) -> tensor<12x?xf32>
  return %c : tensor<12x?xf32>
}

// Halves of rows are collapsed to one row.
func.func @slice_in_a_row(%x: tensor<4x6xf32>) -> tensor<12xf32> {
  %s = tensor.extract_slice %x[0, 3] [4, 3] [1, 1] : tensor<4x6xf32> to tensor<4x3xf32>
  %v = tensor.collapse_shape %s [[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
  %e = tensor.empty() : tensor<12xf32>
  %y = linalg.exp ins(%v : tensor<12xf32>) outs(%e : tensor<12xf32>) -> tensor<12xf32>
  return %y : tensor<12xf32>
}

// A slice selects one element of the last dimension, and a task has one element of the first dimension.
func.func @last_selected(%x: tensor<4x5x6x2xf32>) -> tensor<4x5x6xf32> {
  %s = tensor.extract_slice %x[0, 0, 0, 1] [4, 5, 6, 1] [1, 1, 1, 1] : tensor<4x5x6x2xf32> to tensor<4x5x6xf32>
  %e = tensor.empty() : tensor<4x5x6xf32>
  %y = linalg.exp ins(%s : tensor<4x5x6xf32>) outs(%e : tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  return %y : tensor<4x5x6xf32>
}

// The elements of the rows of a softmax are not adjacent.
func.func @softmax_of_steps(%x: tensor<5x60xf32>) -> tensor<5x20xf32> {
  %s = tensor.extract_slice %x[0, 1] [5, 20] [1, 3] : tensor<5x60xf32> to tensor<5x20xf32>
  %e = tensor.empty() : tensor<5x20xf32>
  %y = linalg.softmax dimension(1) ins(%s : tensor<5x20xf32>) outs(%e : tensor<5x20xf32>) -> tensor<5x20xf32>
  return %y : tensor<5x20xf32>
}

// The rows of the result are transposed to columns, as for a convolution.
func.func @attention_turned(%q: tensor<2x40x8xf32>, %k: tensor<2x19x8xf32>, %v: tensor<2x19x7xf32>) -> tensor<2x7x40xf32> {
  %e = tensor.empty() : tensor<2x40x7xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x40x8xf32>, tensor<2x19x8xf32>, tensor<2x19x7xf32>) outs(%e : tensor<2x40x7xf32>)
      {indexing_maps = [affine_map<(b, q, k, d, e) -> (b, q, d)>, affine_map<(b, q, k, d, e) -> (b, k, d)>,
                        affine_map<(b, q, k, d, e) -> (b, k, e)>, affine_map<(b, q, k, d, e) -> (b, q, e)>], scale = 0.25 : f32}
      -> tensor<2x40x7xf32>
  %f = tensor.empty() : tensor<2x7x40xf32>
  %t = linalg.transpose ins(%o : tensor<2x40x7xf32>) outs(%f : tensor<2x7x40xf32>) permutation = [0, 2, 1]
  return %t : tensor<2x7x40xf32>
}

// The init of a product is a bias with dimensions of size 1, which the tasks of the product broadcast.
func.func @bias_of_one_row(%q: tensor<4x5x8xf32>, %k: tensor<4x7x8xf32>, %b: tensor<1x1x7xf32>) -> tensor<4x5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, q, k, d) -> (b, q, d)>, affine_map<(b, q, k, d) -> (b, k, d)>, affine_map<(b, q, k, d) -> (b, q, k)>]
    ins(%q, %k : tensor<4x5x8xf32>, tensor<4x7x8xf32>) outs(%f : tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(b, q, k) -> (b, q, k)>, affine_map<(b, q, k) -> (0, 0, k)>, affine_map<(b, q, k) -> (b, q, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %b : tensor<4x5x7xf32>, tensor<1x1x7xf32>) outs(%e : tensor<4x5x7xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %sum = arith.addf %x, %y : f32
    linalg.yield %sum : f32
  } -> tensor<4x5x7xf32>
  %h = linalg.negf ins(%a : tensor<4x5x7xf32>) outs(%e : tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %p = linalg.softmax dimension(2) ins(%h : tensor<4x5x7xf32>) outs(%e : tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  return %p : tensor<4x5x7xf32>
}

// One row of a computed table is added to the scores. It is read at the position of the key plus 2.
func.func @bias_from_table(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>) -> tensor<2x5x4xf32> {
  %zero = arith.constant 0.0 : f32
  %te = tensor.empty() : tensor<8x9xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%te : tensor<8x9xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %p = arith.muli %i, %j : index
    %pi = arith.index_cast %p : index to i32
    %pf = arith.sitofp %pi : i32 to f32
    linalg.yield %pf : f32
  } -> tensor<8x9xf32>
  %e = tensor.empty() : tensor<2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %s = linalg.contract indexing_maps = [affine_map<(b, q, k, d) -> (b, q, d)>, affine_map<(b, q, k, d) -> (b, k, d)>, affine_map<(b, q, k, d) -> (b, q, k)>]
    ins(%q, %k : tensor<2x5x8xf32>, tensor<2x7x8xf32>) outs(%f : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(b, q, k) -> (3, k + 2)>, affine_map<(b, q, k) -> (b, q, k)>, affine_map<(b, q, k) -> (b, q, k)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%t, %s : tensor<8x9xf32>, tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %sum = arith.addf %x, %y : f32
    linalg.yield %sum : f32
  } -> tensor<2x5x7xf32>
  %w = linalg.softmax dimension(2) ins(%a : tensor<2x5x7xf32>) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %oe = tensor.empty() : tensor<2x5x4xf32>
  %of = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %r = linalg.batch_matmul ins(%w, %v : tensor<2x5x7xf32>, tensor<2x7x4xf32>) outs(%of : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %r : tensor<2x5x4xf32>
}
