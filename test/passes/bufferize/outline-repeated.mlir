// RUN: attn-opt %s -split-input-file -attn-outline-repeated | FileCheck %s

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#o = affine_map<(m, n, k) -> (m, n)>

// Four layers of the same shape call one function. A bias stays together with the product that is added to it, and a
// product that does not begin with a bias is another unit.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:.*]]: memref<8x8xf32>, %[[Y:.*]]: memref<8x8xf32>, %[[W:.*]]: memref<8x8xf32>, %[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>)
// CHECK-NEXT: call @forward.project(%[[A]], %[[Y]], %[[X]], %[[W]])
// CHECK-NEXT: call @forward.project(%[[B]], %[[X]], %[[Y]], %[[W]])
// CHECK-NEXT: call @forward.project(%[[A]], %[[Y]], %[[X]], %[[W]])
// CHECK-NEXT: call @forward.project(%[[B]], %[[X]], %[[Y]], %[[W]])
// CHECK-NEXT: linalg.contract
// CHECK-NEXT: return
func.func @forward(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %w: memref<8x8xf32>, %a: memref<8xf32>, %b: memref<8xf32>)
    attributes {attn.kernel = "entry"} {
  linalg.broadcast ins(%a : memref<8xf32>) outs(%y : memref<8x8xf32>) dimensions = [0]
  linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  linalg.broadcast ins(%b : memref<8xf32>) outs(%x : memref<8x8xf32>) dimensions = [0]
  linalg.contract indexing_maps = [#x, #w, #o] ins(%y, %w : memref<8x8xf32>, memref<8x8xf32>) outs(%x : memref<8x8xf32>)
  linalg.broadcast ins(%a : memref<8xf32>) outs(%y : memref<8x8xf32>) dimensions = [0]
  linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  linalg.broadcast ins(%b : memref<8xf32>) outs(%x : memref<8x8xf32>) dimensions = [0]
  linalg.contract indexing_maps = [#x, #w, #o] ins(%y, %w : memref<8x8xf32>, memref<8x8xf32>) outs(%x : memref<8x8xf32>)
  linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  return
}
// CHECK: func.func private @forward.project(%[[BIAS:.*]]: memref<8xf32>, %[[OUT:.*]]: memref<8x8xf32>, %[[IN:.*]]: memref<8x8xf32>, %[[W:.*]]: memref<8x8xf32>) attributes {no_inline} {
// CHECK-NEXT: linalg.broadcast ins(%[[BIAS]] : memref<8xf32>) outs(%[[OUT]] : memref<8x8xf32>)
// CHECK-NEXT: linalg.contract {{.*}} ins(%[[IN]], %[[W]] : {{.*}}) outs(%[[OUT]] : memref<8x8xf32>)
// CHECK-NEXT: return

// -----

// Constants are a part of the function. The same buffer as input and output is one
// argument, so the in-place units are no equals of the others. Three equal ops stay where they are.
// CHECK-LABEL: func.func @constants(
// CHECK-COUNT-4: call @constants.map(%{{.*}}, %{{.*}}) : (memref<512xf32>, memref<512xf32>) -> ()
// CHECK-COUNT-3: linalg.fill
// CHECK-COUNT-3: linalg.exp
// CHECK: return
func.func @constants(%x: memref<512xf32>, %y: memref<512xf32>) attributes {attn.kernel = "entry"} {
  %one = arith.constant 1.0 : f32
  linalg.exp ins(%x : memref<512xf32>) outs(%y : memref<512xf32>)
  linalg.exp ins(%y : memref<512xf32>) outs(%x : memref<512xf32>)
  linalg.exp ins(%x : memref<512xf32>) outs(%y : memref<512xf32>)
  linalg.exp ins(%y : memref<512xf32>) outs(%x : memref<512xf32>)
  linalg.fill ins(%one : f32) outs(%y : memref<512xf32>)
  linalg.fill ins(%one : f32) outs(%x : memref<512xf32>)
  linalg.fill ins(%one : f32) outs(%y : memref<512xf32>)
  linalg.exp ins(%x : memref<512xf32>) outs(%x : memref<512xf32>)
  linalg.exp ins(%y : memref<512xf32>) outs(%y : memref<512xf32>)
  linalg.exp ins(%x : memref<512xf32>) outs(%x : memref<512xf32>)
  return
}
// CHECK-LABEL: func.func private @constants.map(

// -----

// Only kernels are searched: this task keeps its ops.
// CHECK-LABEL: func.func private @task(
// CHECK-COUNT-4: linalg.exp
func.func private @task(%x: memref<512xf32>, %y: memref<512xf32>) {
  linalg.exp ins(%x : memref<512xf32>) outs(%y : memref<512xf32>)
  linalg.exp ins(%y : memref<512xf32>) outs(%x : memref<512xf32>)
  linalg.exp ins(%x : memref<512xf32>) outs(%y : memref<512xf32>)
  linalg.exp ins(%y : memref<512xf32>) outs(%x : memref<512xf32>)
  return
}

// -----

// A call would take as long as these ops.
// CHECK-LABEL: func.func @small(
// CHECK-COUNT-4: linalg.exp
func.func @small(%x: memref<8xf32>, %y: memref<8xf32>) attributes {attn.kernel = "entry"} {
  linalg.exp ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  linalg.exp ins(%y : memref<8xf32>) outs(%x : memref<8xf32>)
  linalg.exp ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  linalg.exp ins(%y : memref<8xf32>) outs(%x : memref<8xf32>)
  return
}

// -----

// A dynamic size counts as a large one.
// CHECK-LABEL: func.func @dynamic(
// CHECK-COUNT-4: call @dynamic.map
func.func @dynamic(%x: memref<?xf32>, %y: memref<?xf32>) attributes {attn.kernel = "entry"} {
  linalg.exp ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  linalg.exp ins(%y : memref<?xf32>) outs(%x : memref<?xf32>)
  linalg.exp ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  linalg.exp ins(%y : memref<?xf32>) outs(%x : memref<?xf32>)
  return
}
