// RUN: attn-opt %s -attn-plan-workspace -canonicalize -cse -split-input-file -verify-diagnostics | FileCheck %s
// The test covers Polynomial.cpp too, because sizes are polynomials of the sizes of arguments.

// Buffers of tasks are in the scratch memory of their worker, which tasks of the next scf.forall reuse. Every buffer
// starts on a cache line.
// CHECK-LABEL: @forward(
// CHECK-SAME: %[[X:[^ ]*]]: memref<?x768xf32> {{.*}}, %[[WORKSPACE:.*]]: memref<?xi8>, %[[SCRATCH:.*]]: memref<?xi8> {attn.scratch}) attributes {attn.kernel = "entry",
// CHECK-NOT: memref.alloc
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[C256:.*]] = arith.constant 256 : index
// CHECK-DAG: %[[C3072:.*]] = arith.constant 3072 : index
// CHECK: %[[N:.*]] = memref.dim %[[X]], %[[C0]]
// CHECK: memref.view %[[WORKSPACE]][%[[C0]]][%[[N]]] : memref<?xi8> to memref<?x768xf32>
// CHECK: %[[A:.*]] = arith.muli %[[N]], %[[C3072]]
// CHECK: memref.view %[[WORKSPACE]][%[[A]]][] : memref<?xi8> to memref<10xf32>
// CHECK: %[[B:.*]] = arith.addi %[[A]], %[[C64]]
// CHECK: memref.view %[[WORKSPACE]][%[[B]]][] : memref<?xi8> to memref<3xindex>
// CHECK: scf.forall
// CHECK: memref.view %[[SCRATCH]][%[[C0]]][%[[N]]] : memref<?xi8> to memref<?x64xf32>
// CHECK: %[[K:.*]] = arith.muli %[[N]], %[[C256]]
// CHECK: memref.view %[[SCRATCH]][%[[K]]][%[[N]]] : memref<?xi8> to memref<?x64xf32>
// CHECK: scf.forall
// CHECK: memref.view %[[SCRATCH]][%[[C0]]][] : memref<?xi8> to memref<48x48xf32>
// CHECK-LABEL: @forward.workspace(
// CHECK-SAME: %[[S:.*]]: index) -> (index, index) attributes {attn.kernel = "workspace", attn.text = "per call 128 + 3072*x.0, per worker 9216 + 512*x.0"}
// CHECK-DAG: %[[MOST:.*]] = arith.constant -1 : index
// CHECK: %[[LOW:.*]], %[[HIGH:.*]] = arith.mului_extended %[[S]], %{{.*}}
// CHECK: %[[LARGE:.*]] = arith.cmpi ne, %[[HIGH]], %{{.*}}
// CHECK: %[[PRODUCT:.*]] = arith.select %[[LARGE]], %[[MOST]], %[[LOW]]
// CHECK: %[[SUM:.*]] = arith.addi %[[PRODUCT]], %[[C:.*]] : index
// CHECK: %[[WRAPS:.*]] = arith.cmpi ult, %[[SUM]], %[[C]]
// CHECK: %[[CALL:.*]] = arith.select %[[WRAPS]], %[[MOST]], %[[SUM]]
// CHECK: return %[[CALL]], %{{.*}}
func.func @forward(%x: memref<?x768xf32> {attn.dims = ["x.0", ""]}, %out: memref<?x768xf32> {attn.dims = ["x.0", ""], attn.output})
    attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 4096>]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x768xf32>
  %a = memref.alloc(%n) : memref<?x768xf32>
  linalg.exp ins(%x : memref<?x768xf32>) outs(%a : memref<?x768xf32>)
  %b = memref.alloc() : memref<10xf32>
  linalg.fill ins(%zero : f32) outs(%b : memref<10xf32>)
  %c = memref.alloc() : memref<3xindex>
  linalg.fill ins(%c0 : index) outs(%c : memref<3xindex>)
  scf.forall (%h) in (12) {
    %k = memref.alloc(%n) : memref<?x64xf32>
    linalg.fill ins(%zero : f32) outs(%k : memref<?x64xf32>)
    %v = memref.alloc(%n) : memref<?x64xf32>
    linalg.exp ins(%k : memref<?x64xf32>) outs(%v : memref<?x64xf32>)
  }
  scf.forall (%h) in (12) {
    %t = memref.alloc() : memref<48x48xf32>
    linalg.fill ins(%zero : f32) outs(%t : memref<48x48xf32>)
  }
  linalg.exp ins(%a : memref<?x768xf32>) outs(%out : memref<?x768xf32>)
  return
}

// -----

// The bound of a tile's size does not depend on the loop variable. After a buffer whose size may not be a multiple of a
// cache line, the offset of the next buffer is rounded up to a cache line at run time.
// CHECK-LABEL: @tail(
// CHECK-DAG: %[[LINES:.*]] = arith.constant -64 : index
// CHECK-DAG: %[[S:.*]] = memref.dim %{{.*}}, %c1
// CHECK: %[[U0:.*]] = arith.muli %[[S]], %{{.*}}
// CHECK: %[[U1:.*]] = arith.addi %[[U0]], %{{.*}}
// CHECK: %[[U:.*]] = arith.andi %[[U1]], %[[LINES]]
// CHECK: memref.view %{{.*}}[%[[U]]][%[[S]]] : memref<?xi8> to memref<?x3xf32>
// CHECK-LABEL: @tail.workspace(
// CHECK-SAME: attn.text = "per call 60 + 12*b*s, per worker 12410 + 14*s"
func.func @tail(%x: memref<?x?x64xf32> {attn.dims = ["b", "s", ""]}) attributes {attn.symbols = [#attn.symbol<"b", 0 to 8>, #attn.symbol<"s", 0 to 4096>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c48 = arith.constant 48 : index
  %zero = arith.constant 0.0 : f32
  %b = memref.dim %x, %c0 : memref<?x?x64xf32>
  %s = memref.dim %x, %c1 : memref<?x?x64xf32>
  %p = memref.alloc(%b, %s) : memref<?x?x3xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<?x?x3xf32>)
  scf.forall (%i) in (%b) {
    scf.for %q = %c0 to %s step %c48 {
      %rows = affine.min affine_map<(q)[s] -> (48, s - q)>(%q)[%s]
      %t = memref.alloc(%rows) : memref<?x64xf32>
      linalg.fill ins(%zero : f32) outs(%t : memref<?x64xf32>)
      %u = memref.alloc(%s) : memref<?xbf16>
      %z = arith.constant 0.0 : bf16
      linalg.fill ins(%z : bf16) outs(%u : memref<?xbf16>)
      %w = memref.alloc(%s) : memref<?x3xf32>
      linalg.fill ins(%zero : f32) outs(%w : memref<?x3xf32>)
    }
  }
  return
}

// -----

// A pack function has no workspace: its intermediate buffers become packed tensors, which it returns too.
// CHECK-LABEL: @forward.pack(
// CHECK-SAME: %[[W:[^ ]*]]: memref<64x64xf32> {attn.weight}, %[[P:.*]]: memref<64x64xf32> {attn.output}, %[[T:.*]]: memref<64x64xf32> {attn.output}) attributes {attn.kernel = "pack"}
// CHECK: linalg.exp ins(%[[W]] : memref<64x64xf32>) outs(%[[T]] :
// CHECK: linalg.exp ins(%[[T]] : memref<64x64xf32>) outs(%[[P]] :
// CHECK-NOT: workspace
func.func @forward.pack(%w: memref<64x64xf32> {attn.weight}, %p: memref<64x64xf32> {attn.output}) attributes {attn.kernel = "pack"} {
  %t = memref.alloc() : memref<64x64xf32>
  linalg.exp ins(%w : memref<64x64xf32>) outs(%t : memref<64x64xf32>)
  linalg.exp ins(%t : memref<64x64xf32>) outs(%p : memref<64x64xf32>)
  return
}

// -----

// A size that does not fit in 63 bits saturates at the largest number of 63 bits.
// expected-error@+1 {{expected a workspace of at most 2^47 bytes, got 9223372036854775807 or more per call}}
func.func @large() {
  %a = memref.alloc() : memref<4294967296x2147483648xf32>
  return
}

// -----

// CHECK-LABEL: @nothing(
// CHECK-LABEL: @nothing.workspace() -> (index, index) attributes {attn.kernel = "workspace", attn.text = "per call 0, per worker 0"}
func.func @nothing() {
  return
}

// -----

func.func @unbounded(%n: index) {
  // expected-error@+1 {{expected a size with an upper bound in the function's symbols, got 'memref<?xf32>'}}
  %a = memref.alloc(%n) : memref<?xf32>
  return
}

// -----

func.func @unbounded.pack(%n: index) attributes {attn.kernel = "pack"} {
  // expected-error@+1 {{expected weights of static shape, got 'memref<?xf32>'}}
  %a = memref.alloc(%n) : memref<?xf32>
  return
}

// -----

// The bound of a product, quotient, remainder, maximum or minimum follows from the bounds of its operands.
// CHECK-LABEL: @nonlinear.workspace(
// CHECK-SAME: attn.text = "per call 5171264 + 640000*x.0 + 65344*x.0*x.1, per worker 0"
func.func @nonlinear(%x: memref<?x?xf32> {attn.dims = ["x.0", "x.1"]})
    attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 4096>, #attn.symbol<"x.1", 0 to 4096>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  %product = arith.muli %n, %m : index
  %next = arith.addi %product, %c1 : index
  %a = memref.alloc(%next) : memref<?x16xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<?x16xf32>)
  %twice = affine.apply affine_map<()[s0, s1] -> (2 * (s0 * s1))>()[%n, %m]
  %b = memref.alloc(%twice) : memref<?x160xf32>
  linalg.fill ins(%zero : f32) outs(%b : memref<?x160xf32>)
  %quotient = arith.divui %product, %c8 : index
  %least = arith.minsi %quotient, %c8 : index
  %c = memref.alloc(%least) : memref<?x1600xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<?x1600xf32>)
  %rest = arith.remui %product, %n : index
  %d = memref.alloc(%rest) : memref<?x16000xf32>
  linalg.fill ins(%zero : f32) outs(%d : memref<?x16000xf32>)
  %most = arith.maxsi %n, %c8 : index
  %e = memref.alloc(%most) : memref<?x160000xf32>
  linalg.fill ins(%zero : f32) outs(%e : memref<?x160000xf32>)
  return
}
