// RUN: attn-opt %s -attn-outline-weights -split-input-file | FileCheck %s

// CHECK-LABEL: @forward(
// CHECK-SAME: %[[X:.*]]: tensor<?x768xf32>, %[[I:.*]]: tensor<?x12x64xf32>, %[[P:.*]]: tensor<12x768x64xf32> {attn.packed = 0 : i64})
// CHECK-NOT: attn.pack
// CHECK: linalg.contract {{.*}} ins(%[[X]], %[[P]] :
// CHECK-LABEL: @forward.pack(
// CHECK-SAME: %[[W:.*]]: tensor<768x768xf32> {attn.name = "w", attn.weight}) -> tensor<12x768x64xf32> attributes {attn.kernel = "pack"}
// CHECK: %[[PACKED:.*]] = attn.pack ins(%[[W]] :
// CHECK: return %[[PACKED]]
func.func @forward(%x: tensor<?x768xf32>, %w: tensor<768x768xf32> {attn.name = "w", attn.weight}, %i: tensor<?x12x64xf32>) -> tensor<?x12x64xf32> {
  %e = tensor.empty() : tensor<12x768x64xf32>
  %p = attn.pack ins(%w : tensor<768x768xf32>) outs(%e : tensor<12x768x64xf32>) -> tensor<12x768x64xf32>
  %c = linalg.contract indexing_maps = [affine_map<(s, p, j, k) -> (s, k)>, affine_map<(s, p, j, k) -> (p, k, j)>, affine_map<(s, p, j, k) -> (s, p, j)>]
      ins(%x, %p : tensor<?x768xf32>, tensor<12x768x64xf32>) outs(%i : tensor<?x12x64xf32>) -> tensor<?x12x64xf32>
  return %c : tensor<?x12x64xf32>
}

// -----

// A broadcast of a weight stays in the function, because its result is larger than the weight. The pack function copies
// a weight that the function uses unchanged.
// CHECK-LABEL: @as_it_is(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<4xf32> {attn.packed = 0 : i64})
// CHECK: linalg.broadcast ins(%[[B]] :
// CHECK-LABEL: @as_it_is.pack(
// CHECK-SAME: %[[W:.*]]: tensor<4xf32> {attn.weight})
// CHECK: %[[COPY:.*]] = linalg.copy ins(%[[W]] :
// CHECK: return %[[COPY]]
func.func @as_it_is(%x: tensor<8x4xf32>, %b: tensor<4xf32> {attn.weight}) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %e = tensor.empty() : tensor<8x4xf32>
  %i = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<8x4xf32>) dimensions = [0]
  %s = linalg.add ins(%x, %i : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %s, %x : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Every op that depends only on weights moves to the pack function, which returns a view of a computed value without a
// copy.
// CHECK-LABEL: @chain(
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[V:.*]]: tensor<8xf32> {attn.packed = 0 : i64})
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[V]] :
// CHECK-LABEL: @chain.pack(
// CHECK-SAME: %[[A:.*]]: tensor<4x2xf32> {attn.weight}, %[[B:.*]]: tensor<2x4xf32> {attn.weight})
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[B]] :
// CHECK: %[[S:.*]] = linalg.add ins(%[[A]], %[[T]] :
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[S]]
// CHECK-NOT: linalg.copy
// CHECK: return %[[R]]
func.func @chain(%x: tensor<8x4xf32>, %a: tensor<4x2xf32> {attn.weight}, %b: tensor<2x4xf32> {attn.weight}) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<4x2xf32>
  %t = linalg.transpose ins(%b : tensor<2x4xf32>) outs(%e : tensor<4x2xf32>) permutation = [1, 0]
  %s = linalg.add ins(%a, %t : tensor<4x2xf32>, tensor<4x2xf32>) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  %v = tensor.collapse_shape %s [[0, 1]] : tensor<4x2xf32> into tensor<8xf32>
  %f = tensor.empty() : tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(s, n) -> (s, n)>, affine_map<(s, n) -> (s)>, affine_map<(s, n) -> (s, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %v : tensor<8x4xf32>, tensor<8xf32>) outs(%f : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %sum = arith.addf %p, %q : f32
    linalg.yield %sum : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// CHECK-LABEL: @no_weights(
// CHECK-NOT: no_weights.pack
func.func @no_weights(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  return %x : tensor<8x4xf32>
}

// -----

// Values that the call overwrites, such as the init of a product, are computed in the call. The first init is a
// broadcast that is as large as the bias; the second init is a view of a copy.
// CHECK-LABEL: @starts_from_bias(
// CHECK-SAME: %[[X:.*]]: tensor<1x8xf32>, %[[W:.*]]: tensor<8x4xf32> {attn.packed = 0 : i64}, %[[B:.*]]: tensor<4xf32> {attn.packed = 1 : i64})
// CHECK: %[[I:.*]] = linalg.broadcast ins(%[[B]] :
// CHECK: linalg.matmul {{.*}} outs(%[[I]] :
// CHECK: %[[J:.*]] = linalg.copy ins(%[[B]] :
// CHECK: %[[V:.*]] = tensor.expand_shape %[[J]]
// CHECK: linalg.matmul {{.*}} outs(%[[V]] :
// CHECK-LABEL: @starts_from_bias.pack(
// CHECK-NOT: linalg.broadcast
// CHECK: return
func.func @starts_from_bias(%x: tensor<1x8xf32>, %w: tensor<8x4xf32> {attn.weight}, %b: tensor<4xf32> {attn.weight}) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %e = tensor.empty() : tensor<1x4xf32>
  %i = linalg.broadcast ins(%b : tensor<4xf32>) outs(%e : tensor<1x4xf32>) dimensions = [0]
  %y = linalg.matmul ins(%x, %w : tensor<1x8xf32>, tensor<8x4xf32>) outs(%i : tensor<1x4xf32>) -> tensor<1x4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %j = linalg.copy ins(%b : tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  %v = tensor.expand_shape %j [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
  %z = linalg.matmul ins(%x, %w : tensor<1x8xf32>, tensor<8x4xf32>) outs(%v : tensor<1x4xf32>) -> tensor<1x4xf32>
  return %y, %z : tensor<1x4xf32>, tensor<1x4xf32>
}

// -----

// Two elementwise ops become one op, because the pack function has no memory for the value between them.
// CHECK-LABEL: @elementwise.pack(
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: arith.minimumf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @elementwise(%x: tensor<?x8xf32>, %w: tensor<8xf32> {attn.name = "w", attn.weight}) -> tensor<?x8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%w : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = math.exp %in : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %c = arith.constant 4.0 : f32
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.minimumf %in, %c : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %f = tensor.empty(%n) : tensor<?x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %b : tensor<?x8xf32>, tensor<8xf32>) outs(%f : tensor<?x8xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %y = arith.mulf %p, %q : f32
    linalg.yield %y : f32
  } -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}

// -----

// A product of packed operands stays in the function, because the pack function would need memory for the operands.
// CHECK-LABEL: @product_of_packed(
// CHECK-SAME: %[[X:[^:]*]]: tensor<?x8xf32>, %[[P:[^:]*]]: tensor<1x8x8xf32> {attn.packed = 0 : i64})
// CHECK: linalg.contract {{.*}} ins(%[[P]], %[[P]] :
// CHECK-LABEL: @product_of_packed.pack(
// CHECK: attn.pack
// CHECK-NOT: linalg.contract
// CHECK: return
func.func @product_of_packed(%x: tensor<?x8xf32>, %w: tensor<8x8xf32> {attn.name = "w", attn.weight}) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<1x8x8xf32>
  %p = attn.pack ins(%w : tensor<8x8xf32>) outs(%e : tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
  %zero = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.contract indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>, affine_map<(b, i, j, k) -> (b, j, k)>, affine_map<(b, i, j, k) -> (i, j)>]
      ins(%p, %p : tensor<1x8x8xf32>, tensor<1x8x8xf32>) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}

// -----

// Elementwise ops with a view between them do not become one op. The second op stays in the function, because the pack
// function has no memory for the result of the first op.
// CHECK-LABEL: @view_between(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>, %[[P:.*]]: tensor<2x4xf32> {attn.packed = 0 : i64})
// CHECK: linalg.log ins(%[[P]] :
// CHECK-LABEL: @view_between.pack(
// CHECK: linalg.exp
// CHECK-NOT: linalg.log
func.func @view_between(%x: tensor<2x4xf32>, %w: tensor<8xf32> {attn.weight}) -> tensor<2x4xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.exp ins(%w : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %v = tensor.expand_shape %a [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %f = tensor.empty() : tensor<2x4xf32>
  %b = linalg.log ins(%v : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
  %r = linalg.add ins(%x, %b : tensor<2x4xf32>, tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// -----

// A loop overwrites its initial value, so every call makes the copy.
// CHECK-LABEL: @written_in_a_loop(
// CHECK-SAME: %[[P:[^:]*]]: tensor<8xf32> {attn.packed = 0 : i64})
// CHECK: %[[COPY:.*]] = linalg.copy ins(%[[P]] :
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[COPY]])
func.func @written_in_a_loop(%x: tensor<2xi64>, %w: tensor<8xf32> {attn.weight}) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %copy = linalg.copy ins(%w : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%sofar = %copy) -> tensor<8xf32> {
    %row = tensor.extract %x[%i] : tensor<2xi64>
    %at = arith.index_cast %row : i64 to index
    %written = tensor.insert %zero into %sofar[%at] : tensor<8xf32>
    scf.yield %written : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// An op whose body reads a table that depends only on weights stays in the function; the pack function computes the
// table.
// CHECK-LABEL: @read_of_table(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>, %[[T:[^:]*]]: tensor<8xf32> {attn.packed = 0 : i64})
// CHECK: tensor.extract %[[T]]
// CHECK-LABEL: @read_of_table.pack(
// CHECK: linalg.exp
// CHECK-NOT: tensor.extract
// CHECK: return
func.func @read_of_table(%x: tensor<4xf32>, %w: tensor<8xf32> {attn.weight}) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %t = linalg.exp ins(%w : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %f = tensor.empty() : tensor<4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%f : tensor<4xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %y = tensor.extract %t[%i] : tensor<8xf32>
    linalg.yield %y : f32
  } -> tensor<4xf32>
  %r = linalg.add ins(%x, %b : tensor<4xf32>, tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// A slice of a packed tensor is extracted in the function.
// CHECK-LABEL: @part_of_packed(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4xf32>, %[[P:[^:]*]]: tensor<8xf32> {attn.packed = 0 : i64})
// CHECK: tensor.extract_slice %[[P]]
// CHECK-LABEL: @part_of_packed.pack(
// CHECK: linalg.exp
// CHECK-NEXT: return
func.func @part_of_packed(%x: tensor<4xf32>, %w: tensor<8xf32> {attn.weight}) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %t = linalg.exp ins(%w : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = tensor.extract_slice %t[2] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %r = linalg.add ins(%x, %s : tensor<4xf32>, tensor<4xf32>) outs(%f : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// A product with a table that the graph computes stays in the function, because the pack function would need memory for
// the table.
// CHECK-LABEL: @product_with_table(
// CHECK: linalg.contract
// CHECK-LABEL: @product_with_table.pack(
// CHECK-NOT: linalg.contract
// CHECK: return
func.func @product_with_table(%x: tensor<4x8xf32>, %w: tensor<8x8xf32> {attn.weight}) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %table = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %y = arith.sitofp %n : i64 to f32
    linalg.yield %y : f32
  } -> tensor<4x8xf32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %p = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>]
      ins(%table, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.add ins(%x, %p : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
