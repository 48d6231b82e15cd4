// RUN: attn-opt %s -attn-verify-buffers -split-input-file -verify-diagnostics

// This result has no out parameter; the function returns its buffer.
func.func @returned(%x: memref<8xf32>) -> memref<8xf32> {
  %y = memref.alloc() : memref<8xf32>
  linalg.exp ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  // expected-error@+1 {{expected results in out parameters, got a returned buffer}}
  return %y : memref<8xf32>
}

// -----

func.func private @project(memref<8x4xf32>)

// A call that was not inlined would copy operands whose layout differs from that of the callee's arguments.
func.func @call_boundary(%x: memref<8x4xf32> {attn.output}) {
  // expected-error@+1 {{expected calls to be inlined, got a call of @project}}
  call @project(%x) : (memref<8x4xf32>) -> ()
  return
}

// -----

// Inputs and packed weights may only be read. Writes to them through views, loops and arith.select are found too.
func.func @overwritten(%x: memref<8x4xf32> {attn.name = "x"}, %w: memref<8x4xf32> {attn.packed = 0}, %b: memref<1x4x8xf32> {attn.name = "b"},
                       %out: memref<8x4xf32> {attn.output}, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  linalg.copy ins(%x : memref<8x4xf32>) outs(%out : memref<8x4xf32>)
  // expected-error@+1 {{expected no write to an argument that is not an output, got a write to 'x'}}
  linalg.exp ins(%out : memref<8x4xf32>) outs(%x : memref<8x4xf32>)
  scf.for %i = %c0 to %c8 step %c1 {
    %row = memref.subview %w[%i, 0] [1, 4] [1, 1] : memref<8x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
    // expected-error@+1 {{expected no write to an argument that is not an output, got a write to argument 1}}
    linalg.fill ins(%zero : f32) outs(%row : memref<1x4xf32, strided<[4, 1], offset: ?>>)
  }
  %either = arith.select %c, %x, %out : memref<8x4xf32>
  // expected-error@+1 {{expected no write to an argument that is not an output, got a write to 'x'}}
  memref.store %zero, %either[%c0, %c0] : memref<8x4xf32>
  %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%buffer = %out) -> (memref<8x4xf32>) {
    // expected-error@+1 {{expected no write to an argument that is not an output, got a write to 'x'}}
    memref.store %zero, %buffer[%i, %c0] : memref<8x4xf32>
    scf.yield %x : memref<8x4xf32>
  }
  %flat = memref.collapse_shape %b [[0, 1, 2]] : memref<1x4x8xf32> into memref<32xf32>
  // expected-error@+1 {{expected no write to an argument that is not an output, got a write to 'b'}}
  memref.store %zero, %flat[%c0] : memref<32xf32>
  // expected-error@+1 {{expected no write to an argument that is not an output, got a write to 'b'}}
  attn.pack ins(%x : memref<8x4xf32>) outs(%b : memref<1x4x8xf32>)
  return
}
