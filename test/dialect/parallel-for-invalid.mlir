// RUN: attn-opt %s --split-input-file --verify-diagnostics

// L1
func.func private @task(%i: index, %worker: index, %x: memref<4xf32>) { return }
func.func @f(%n: index, %x: memref<8xf32>) {
  // expected-error @below {{expected 'task' to take ('index', 'index', 'memref<8xf32>') and return nothing}}
  attn.parallel_for @task(%x) count(%n) : memref<8xf32>
  return
}

// -----

// L1: only the mark makes the workspace of the worker an argument that the call supplies.
func.func private @task(%i: index, %worker: index, %scratch: memref<?xi8>) { return }
func.func @f(%n: index) {
  // expected-error @below {{expected 'task' to take ('index', 'index') and return nothing}}
  attn.parallel_for @task() count(%n)
  return
}

// -----

// L1
func.func private @task(%i: index, %worker: index, %scratch: memref<?xf32> {attn.scratch}) { return }
func.func @f(%n: index) {
  // expected-error @below {{expected 'task' to take ('index', 'index', 'memref<?xi8>') and return nothing}}
  attn.parallel_for @task() count(%n)
  return
}
