// RUN: attn-opt %s | attn-opt | FileCheck %s

func.func private @task(index, index, memref<4xf32>, f32)

// CHECK-LABEL: @parallel_for
// CHECK-SAME: %[[N:.*]]: index, %[[X:.*]]: memref<4xf32>, %[[S:.*]]: f32)
func.func @parallel_for(%n: index, %x: memref<4xf32>, %s: f32) {
  // CHECK: attn.parallel_for @task(%[[X]], %[[S]]) count(%[[N]]) : memref<4xf32>, f32
  attn.parallel_for @task(%x, %s) count(%n) : memref<4xf32>, f32
  // CHECK: attn.parallel_for @nothing() count(%[[N]])
  attn.parallel_for @nothing() count(%n)
  // The argument with attn.scratch has no operand: the runtime passes the workspace of the worker.
  // CHECK: attn.parallel_for @scratch(%[[S]]) count(%[[N]]) : f32
  attn.parallel_for @scratch(%s) count(%n) : f32
  return
}

func.func private @nothing(index, index)

func.func private @scratch(index, index, f32, memref<?xi8> {attn.scratch})
