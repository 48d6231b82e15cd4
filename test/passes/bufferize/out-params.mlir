// RUN: attn-opt %s -attn-out-params -split-input-file | FileCheck %s

// CHECK-LABEL: @forward(
// CHECK-SAME: %{{.*}}: tensor<?x768xf32> {bufferization.writable = false}, %{{.*}}: tensor<?x768xf32> {bufferization.writable = false}, %[[OUT:.*]]: memref<?x768xf32> {attn.name = "out", attn.output}) {
// CHECK: %[[Y:.*]] = linalg.exp
// CHECK-NEXT: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[OUT]]
// CHECK-NEXT: return{{$}}
func.func @forward(%x: tensor<?x768xf32>, %e: tensor<?x768xf32>) -> (tensor<?x768xf32> {attn.name = "out"}) {
  %y = linalg.exp ins(%x : tensor<?x768xf32>) outs(%e : tensor<?x768xf32>) -> tensor<?x768xf32>
  return %y : tensor<?x768xf32>
}

// -----

// A result that is written part by part is written directly to the buffer of the caller.
// CHECK-LABEL: @parts(
// CHECK-SAME: %[[OUT:[^ ]*]]: memref<1x8xf32> {attn.output})
// CHECK: %[[T:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[T]]
// CHECK: %[[Y:.*]] = linalg.exp {{.*}} outs(%[[PART]] :
// CHECK: %[[ALL:.*]] = tensor.insert_slice %[[Y]] into %[[T]]
// CHECK: bufferization.materialize_in_destination %[[ALL]] in restrict writable %[[OUT]]
func.func @parts(%x: tensor<8xf32>) -> tensor<1x8xf32> {
  %e = tensor.empty() : tensor<1x8xf32>
  %part = tensor.extract_slice %e[0, 0] [1, 8] [1, 1] : tensor<1x8xf32> to tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%part : tensor<8xf32>) -> tensor<8xf32>
  %all = tensor.insert_slice %y into %e[0, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<1x8xf32>
  return %all : tensor<1x8xf32>
}

// -----

// Two branches that fill the same empty tensor fill the buffer of the caller.
// CHECK-LABEL: @branches(
// CHECK-SAME: %[[OUT:[^ ]*]]: memref<8xf32> {attn.output})
// CHECK: %[[T:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK: %[[R:.*]] = scf.if
// CHECK: linalg.exp {{.*}} outs(%[[T]] :
// CHECK: linalg.log {{.*}} outs(%[[T]] :
// CHECK: bufferization.materialize_in_destination %[[R]] in restrict writable %[[OUT]]
func.func @branches(%x: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = scf.if %c -> (tensor<8xf32>) {
    %y = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  } else {
    %y = linalg.log ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// A branch that yields an argument does not compute its result in the buffer, so the result is copied.
// CHECK-LABEL: @branch_of_argument(
// CHECK-SAME: %[[OUT:[^ ]*]]: memref<8xf32> {attn.output})
// CHECK: %[[R:.*]] = scf.if
// CHECK: %[[COPY:.*]] = linalg.copy ins(%[[R]] :
// CHECK: bufferization.materialize_in_destination %[[COPY]] in restrict writable %[[OUT]]
func.func @branch_of_argument(%x: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %r = scf.if %c -> (tensor<8xf32>) {
    %y = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// A result that is computed in a part of an empty tensor is computed in the buffer instead.
// CHECK-LABEL: @part_of_empty(
// CHECK-SAME: %[[OUT:[^ ]*]]: memref<13x8xf32> {attn.output})
// CHECK: %[[T:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK: %[[Y:.*]] = linalg.exp {{.*}} outs(%[[T]] :
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[OUT]]
func.func @part_of_empty(%x: tensor<13x8xf32>) -> tensor<13x8xf32> {
  %e = tensor.empty() : tensor<1x13x16xf32>
  %part = tensor.extract_slice %e[0, 0, 0] [1, 13, 8] [1, 1, 1] : tensor<1x13x16xf32> to tensor<13x8xf32>
  %y = linalg.exp ins(%x : tensor<13x8xf32>) outs(%part : tensor<13x8xf32>) -> tensor<13x8xf32>
  return %y : tensor<13x8xf32>
}

// -----

// A value whose insertion fills the whole result is computed in the buffer.
// CHECK-LABEL: @whole_inserted(
// CHECK-SAME: %[[N:[^:]*]]: index, %[[OUT:[^ ]*]]: memref<1x?xf32> {attn.output})
// CHECK: %[[T:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK: %[[Y:.*]] = linalg.exp {{.*}} outs(%[[T]] :
// CHECK-NOT: tensor.insert_slice
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[OUT]]
func.func @whole_inserted(%x: tensor<1x?xf32>, %n: index) -> tensor<1x?xf32> {
  %e = tensor.empty(%n) : tensor<1x?xf32>
  %y = linalg.exp ins(%x : tensor<1x?xf32>) outs(%e : tensor<1x?xf32>) -> tensor<1x?xf32>
  %all = tensor.empty(%n) : tensor<1x?xf32>
  %r = tensor.insert_slice %y into %all[0, 0] [1, %n] [1, 1] : tensor<1x?xf32> into tensor<1x?xf32>
  return %r : tensor<1x?xf32>
}

// -----

// If the result collapses dimensions of the computed value, the buffer is expanded to the shape of this value.
// CHECK-LABEL: @reshaped(
// CHECK-SAME: %[[OUT:[^ ]*]]: memref<2x?x768xf32> {attn.output})
// CHECK: %[[S:.*]] = memref.dim %[[OUT]]
// CHECK: %[[OUT4:.*]] = memref.expand_shape %[[OUT]] {{\[}}[0], [1], [2, 3]] output_shape [2, %[[S]], 12, 64]
// CHECK: %[[Y:.*]] = linalg.exp
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[OUT4]]
func.func @reshaped(%x: tensor<2x?x12x64xf32>, %e: tensor<2x?x12x64xf32>) -> tensor<2x?x768xf32> {
  %y = linalg.exp ins(%x : tensor<2x?x12x64xf32>) outs(%e : tensor<2x?x12x64xf32>) -> tensor<2x?x12x64xf32>
  %r = tensor.collapse_shape %y [[0], [1], [2, 3]] : tensor<2x?x12x64xf32> into tensor<2x?x768xf32>
  return %r : tensor<2x?x768xf32>
}

// -----

// If the result expands dimensions of the computed value, the buffer is collapsed to the shape of this value.
// CHECK-LABEL: @split(
// CHECK-SAME: %[[OUT:[^ ]*]]: memref<1x2x3xf32> {attn.output})
// CHECK: %[[BUFFER:.*]] = memref.collapse_shape %[[OUT]] {{\[\[}}0, 1], [2]] : memref<1x2x3xf32> into memref<2x3xf32>
// CHECK: %[[T:.*]] = bufferization.to_tensor %[[BUFFER]] restrict writable
// CHECK: %[[Y:.*]] = linalg.exp ins(%{{.*}}) outs(%[[T]]
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[BUFFER]]
func.func @split(%x: tensor<2x3xf32>) -> tensor<1x2x3xf32> {
  %e = tensor.empty() : tensor<2x3xf32>
  %y = linalg.exp ins(%x : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = tensor.expand_shape %y [[0, 1], [2]] output_shape [1, 2, 3] : tensor<2x3xf32> into tensor<1x2x3xf32>
  return %r : tensor<1x2x3xf32>
}

// -----

// A result is copied if the shape of the computed value does not follow from the shape of the buffer.
// CHECK-LABEL: @guessed(
// CHECK-SAME: %[[OUT:[^ ]*]]: memref<?x64xf32> {attn.output})
// CHECK: %[[R:.*]] = tensor.collapse_shape
// CHECK: %[[COPY:.*]] = linalg.copy ins(%[[R]] :
// CHECK: bufferization.materialize_in_destination %[[COPY]] in restrict writable %[[OUT]]
func.func @guessed(%x: tensor<?x?x64xf32>, %e: tensor<?x?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.exp ins(%x : tensor<?x?x64xf32>) outs(%e : tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  %r = tensor.collapse_shape %y [[0, 1], [2]] : tensor<?x?x64xf32> into tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

// A result is copied if it is an argument, the value of another result, or a part of such a value.
// CHECK-LABEL: @copied(
// CHECK-SAME: %[[X:[^ ]*]]: tensor<8xf32> {bufferization.writable = false}, %{{.*}}: tensor<8xf32> {bufferization.writable = false}, %[[O0:.*]]: memref<8xf32> {attn.output}, %[[O1:.*]]: memref<8xf32> {attn.output}, %[[O2:.*]]: memref<8xf32> {attn.output}, %[[O3:.*]]: memref<4xf32> {attn.output})
// CHECK: %[[Y:.*]] = linalg.exp
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[Y]]
// CHECK: %[[C0:.*]] = linalg.copy ins(%[[X]] :
// CHECK: bufferization.materialize_in_destination %[[C0]] in restrict writable %[[O0]]
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[O1]]
// CHECK: %[[C2:.*]] = linalg.copy ins(%[[Y]] :
// CHECK: bufferization.materialize_in_destination %[[C2]] in restrict writable %[[O2]]
// CHECK: %[[C3:.*]] = linalg.copy ins(%[[PART]] :
// CHECK: bufferization.materialize_in_destination %[[C3]] in restrict writable %[[O3]]
func.func @copied(%x: tensor<8xf32>, %e: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) {
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %p = tensor.extract_slice %y[4] [4] [1] : tensor<8xf32> to tensor<4xf32>
  return %x, %y, %y, %p : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>
}

// -----

// The function has no op except its return.
// CHECK-LABEL: @identity(
// CHECK-SAME: %[[X:[^ ]*]]: tensor<8xf32> {bufferization.writable = false}, %[[Y:.*]]: tensor<8xf32> {bufferization.writable = false}, %[[O0:.*]]: memref<8xf32> {attn.output}, %[[O1:.*]]: memref<8xf32> {attn.output})
// CHECK-NEXT: %[[T0:.*]] = bufferization.to_tensor %[[O0]] restrict writable
// CHECK-NEXT: %[[C0:.*]] = linalg.copy ins(%[[X]] : {{.*}}) outs(%[[T0]] :
// CHECK-NEXT: bufferization.materialize_in_destination %[[C0]] in restrict writable %[[O0]]
// CHECK-NEXT: %[[T1:.*]] = bufferization.to_tensor %[[O1]] restrict writable
// CHECK-NEXT: %[[C1:.*]] = linalg.copy ins(%[[Y]] : {{.*}}) outs(%[[T1]] :
// CHECK-NEXT: bufferization.materialize_in_destination %[[C1]] in restrict writable %[[O1]]
// CHECK-NEXT: return{{$}}
func.func @identity(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  return %x, %y : tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK: func.func private @declared(tensor<8xf32>) -> tensor<8xf32>
func.func private @declared(tensor<8xf32>) -> tensor<8xf32>

// -----

// The buffer of a result is its in-out argument. If the function returns the result a second time, it is copied.
// CHECK-LABEL: @in_out(
// CHECK-SAME: %[[K:[^ ]*]]: tensor<1x8xf32> {bufferization.writable = false}, %[[CACHE:.*]]: memref<64x8xf32> {attn.in_out = 0 : i64}, %{{.*}}: index, %[[OUT:.*]]: memref<64x8xf32> {attn.output})
// CHECK: %[[OLD:.*]] = bufferization.to_tensor %[[CACHE]] restrict writable
// CHECK: %[[NEW:.*]] = tensor.insert_slice %[[K]] into %[[OLD]]
// CHECK: bufferization.materialize_in_destination %[[NEW]] in restrict writable %[[CACHE]]
// CHECK: %[[COPY:.*]] = linalg.copy ins(%[[NEW]]
// CHECK: bufferization.materialize_in_destination %[[COPY]] in restrict writable %[[OUT]]
func.func @in_out(%k: tensor<1x8xf32>, %cache: tensor<64x8xf32> {attn.in_out = 0}, %p: index) -> (tensor<64x8xf32>, tensor<64x8xf32>) {
  %new = tensor.insert_slice %k into %cache[%p, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
  return %new, %new : tensor<64x8xf32>, tensor<64x8xf32>
}

// The buffer of a scalar that is a collapsed result is expanded.
// CHECK-LABEL: @scalar(
// CHECK: memref.expand_shape %{{.*}} [] output_shape [1, 1] : memref<f32> into memref<1x1xf32>
func.func @scalar(%x: tensor<1x1xf32>) -> (tensor<f32> {attn.name = "out"}) {
  %e = tensor.empty() : tensor<1x1xf32>
  %y = linalg.exp ins(%x : tensor<1x1xf32>) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %c = tensor.collapse_shape %y [] : tensor<1x1xf32> into tensor<f32>
  return %c : tensor<f32>
}
