// RUN: attn-opt %s -split-input-file -verify-diagnostics

// L1 is the constraint of attn.parallel_for in docs/dialect.md.

// L1: the task is a function.
func.func @invalid(%n: index) {
  // expected-error @+1 {{expected 'missing' to be a function}}
  attn.parallel_for @missing() count(%n)
  return
}

// -----

// L1: the first two arguments of the task are the index and the number of the worker.
func.func private @task(index, memref<4xf32>)
func.func @invalid(%n: index, %x: memref<4xf32>) {
  // expected-error @+1 {{expected 'task' to take ('index', 'index', 'memref<4xf32>') and return nothing}}
  attn.parallel_for @task(%x) count(%n) : memref<4xf32>
  return
}

// -----

// L1: the task returns nothing.
func.func private @task(index, index) -> index
func.func @invalid(%n: index) {
  // expected-error @+1 {{expected 'task' to take ('index', 'index') and return nothing}}
  attn.parallel_for @task() count(%n)
  return
}

// -----

// L1: the workspace of the worker is a memref<?xi8>.
func.func private @task(index, index, memref<4xf32> {attn.scratch})
func.func @invalid(%n: index) {
  // expected-error @+1 {{expected 'task' to take ('index', 'index', 'memref<?xi8>') and return nothing}}
  attn.parallel_for @task() count(%n)
  return
}

// -----

// L1: the call supplies a workspace only for an argument that is marked attn.scratch.
func.func private @task(index, index, memref<?xi8>)
func.func @invalid(%n: index) {
  // expected-error @+1 {{expected 'task' to take ('index', 'index') and return nothing}}
  attn.parallel_for @task() count(%n)
  return
}
