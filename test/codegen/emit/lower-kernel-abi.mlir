// RUN: attn-opt %s --attn-lower-kernel-abi --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

// Offsets are those of the struct attn_kernel_call. The entry function reads the pointers to its buffers, the sizes and
// the packed weights from this struct, and writes a context for the tasks.
// CHECK-LABEL: func.func @f(%arg0: !llvm.ptr) {
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i64)
// CHECK-DAG: %[[TASK:.*]] = constant @f.rows : (!llvm.ptr, i64, i64) -> ()
// CHECK: %[[DIMS_FIELD:.*]] = llvm.getelementptr %arg0[24]
// CHECK: %[[DIMS:.*]] = llvm.load %[[DIMS_FIELD]]
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[DIMS]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK: %[[N:.*]] = llvm.load %[[SECOND]] : !llvm.ptr -> i64
// Each packed weight has an address of its own.
// CHECK: %[[WEIGHTS_FIELD:.*]] = llvm.getelementptr %arg0[16]
// CHECK: %[[WEIGHTS:.*]] = llvm.load %[[WEIGHTS_FIELD]]
// CHECK: llvm.getelementptr %[[WEIGHTS]][1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// The context is allocated outside the loop, so that the stack does not grow.
// CHECK: %[[CONTEXT:.*]] = llvm.alloca %[[ONE]] x !llvm.struct<(ptr, struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>, i64)>
// CHECK: scf.for
// CHECK-NOT: llvm.alloca
// CHECK: llvm.store %arg0, %{{.*}} : !llvm.ptr, !llvm.ptr
// CHECK: llvm.store %{{.*}}, %{{.*}} : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>, !llvm.ptr
// CHECK: %[[POINTER:.*]] = builtin.unrealized_conversion_cast %[[TASK]] : (!llvm.ptr, i64, i64) -> () to !llvm.ptr
// CHECK: llvm.getelementptr %arg0[56]
// CHECK: llvm.getelementptr %arg0[64]
// CHECK: llvm.call %{{.*}}(%{{.*}}, %[[POINTER]], %[[CONTEXT]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()

// The scratch memory of a task is the part of the tasks' workspace that belongs to its worker.
// CHECK-LABEL: func.func private @f.rows(%arg0: !llvm.ptr, %arg1: i64, %arg2: i64) {
// CHECK: %[[CALL_FIELD:.*]] = llvm.getelementptr %arg0[0, 0]
// CHECK: %[[CALL:.*]] = llvm.load %[[CALL_FIELD]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[STRIDE_FIELD:.*]] = llvm.getelementptr %[[CALL]][48]
// CHECK: %[[STRIDE:.*]] = llvm.load %[[STRIDE_FIELD]] : !llvm.ptr -> i64
// CHECK: %[[BASE_FIELD:.*]] = llvm.getelementptr %[[CALL]][40]
// CHECK: %[[BASE:.*]] = llvm.load %[[BASE_FIELD]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[OFFSET:.*]] = llvm.mul %arg2, %[[STRIDE]]
// CHECK: llvm.getelementptr %[[BASE]][%[[OFFSET]]] {attn.scratch} : (!llvm.ptr, i64) -> !llvm.ptr, i8

// CHECK-LABEL: func.func @f.workspace(%arg0: !llvm.ptr, %arg1: !llvm.ptr) {
// CHECK: llvm.getelementptr %arg0[1]
// CHECK: llvm.store %{{.*}}, %arg1 : i64, !llvm.ptr
// CHECK: %[[PER_TASK:.*]] = llvm.getelementptr %arg1[1]
// CHECK: llvm.store %{{.*}}, %[[PER_TASK]] : i64, !llvm.ptr
// CHECK-NEXT: return

// CHECK-LABEL: func.func @f.pack(%arg0: !llvm.ptr, %arg1: !llvm.ptr) {
// CHECK: llvm.load %arg0 : !llvm.ptr -> !llvm.ptr
// CHECK: llvm.getelementptr %arg1[64]

// A function that is neither a kernel nor a task keeps its signature.
// CHECK-LABEL: func.func private @helper(%arg0: memref<4xf32>) -> index

#symbols = [#attn.symbol<"m", 0 to 9>, #attn.symbol<"n", 0 to 9>]
func.func @f(%x: memref<?x4xf32> {attn.name = "x", attn.dims = ["n", ""]},
             %v: memref<3xf32> {attn.packed = 0}, %w: memref<4xf32> {attn.packed = 1},
             %y: memref<?x4xf32> {attn.output, attn.dims = ["n", ""]}, %workspace: memref<?xi8>)
    attributes {attn.kernel = "entry", attn.symbols = #symbols} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32>
  %k = func.call @helper(%w) : (memref<4xf32>) -> index
  scf.for %i = %c0 to %k step %c1 {
    attn.parallel_for @f.rows(%y, %i) count(%n) : memref<?x4xf32>, index
  }
  return
}
func.func private @f.rows(%i: index, %worker: index, %y: memref<?x4xf32>, %round: index,
                          %scratch: memref<?xi8> {attn.scratch}) {
  %c0 = arith.constant 0 : index
  %t = memref.view %scratch[%c0][] : memref<?xi8> to memref<4xf32>
  %a = vector.load %t[%c0] : memref<4xf32>, vector<4xf32>
  vector.store %a, %y[%i, %round] : memref<?x4xf32>, vector<4xf32>
  return
}
func.func @f.workspace(%m: index, %n: index) -> (index, index) attributes {attn.kernel = "workspace"} {
  %c64 = arith.constant 64 : index
  return %n, %c64 : index, index
}
func.func @f.pack(%raw: memref<4xf32> {attn.weight}, %v: memref<3xf32>, %w: memref<4xf32>)
    attributes {attn.kernel = "pack"} {
  %c0 = arith.constant 0 : index
  %a = vector.load %raw[%c0] : memref<4xf32>, vector<4xf32>
  vector.store %a, %w[%c0] : memref<4xf32>, vector<4xf32>
  return
}
func.func private @helper(%w: memref<4xf32>) -> index {
  %c1 = arith.constant 1 : index
  return %c1 : index
}

// -----

// A packed tensor without elements also has an address.
// CHECK-LABEL: func.func @empty(%arg0: !llvm.ptr) {
// CHECK: %[[field:.*]] = llvm.getelementptr %arg0[16]
// CHECK: %[[weights:.*]] = llvm.load %[[field]]
// CHECK: %[[tensor:.*]] = llvm.load %[[weights]]
// CHECK: llvm.insertvalue %[[tensor]]
func.func @empty(%w: memref<0x4xf32> {attn.packed = 0}, %workspace: memref<?xi8>)
    attributes {attn.kernel = "entry"} {
  call @use(%w) : (memref<0x4xf32>) -> ()
  return
}
func.func private @use(%w: memref<0x4xf32>)

// -----

func.func private @task(%i: index, %worker: index) { return }
func.func @f(%n: index) {
  // expected-error @below {{'attn.parallel_for' op expected to be in an entry, got 'f'}}
  attn.parallel_for @task() count(%n)
  return
}

// -----

// expected-error @below {{expected argument 0 to be a memref of identity layout, got 'memref<4xf32, strided<[2]>>'}}
func.func @f(%x: memref<4xf32, strided<[2]>>, %workspace: memref<?xi8>)
    attributes {attn.kernel = "entry"} {
  return
}

// -----

// expected-error @below {{expected argument 0 to name its dynamic dimensions, got 'memref<?xf32>'}}
func.func @f(%x: memref<?xf32>, %workspace: memref<?xi8>) attributes {attn.kernel = "entry"} {
  return
}

// -----

// expected-error @below {{expected packed tensors 0 to 1, got none with attn.packed = 0}}
func.func @f(%x: memref<4xf32> {attn.packed = 1}, %workspace: memref<?xi8>)
    attributes {attn.kernel = "entry"} {
  return
}

// -----

// expected-error @below {{expected a workspace function from indices to two indices, got '(index) -> index'}}
func.func @f.workspace(%n: index) -> index attributes {attn.kernel = "workspace"} {
  return %n : index
}

// -----

// expected-error @below {{expected a kernel 'entry', 'workspace' or 'pack', got "main"}}
func.func @f() attributes {attn.kernel = "main"} {
  return
}

// -----

// Packed weights have an address even if no weight has an element.
// CHECK-LABEL: func.func @empty_weight(%arg0: !llvm.ptr) {
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %arg0[16]
// CHECK: llvm.load %[[FIELD]]
func.func @empty_weight(%w: memref<0x4xf32> {attn.packed = 0}, %workspace: memref<?xi8>)
    attributes {attn.kernel = "entry"} {
  func.call @use(%w) : (memref<0x4xf32>) -> ()
  return
}
func.func private @use(memref<0x4xf32>)

// -----

// Counts of tiles are added to the counters of a worker, which take 64 bytes. In a task, this is the worker that runs
// the task; in an entry function, it is worker 0.
// CHECK-LABEL: func.func @counts(
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %arg0[72]
// CHECK: %[[TILES:.*]] = llvm.load %[[FIELD]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[MINE:.*]] = llvm.getelementptr %[[TILES]]
// CHECK: %[[BEFORE:.*]] = llvm.load %[[MINE]] : !llvm.ptr -> i64
// CHECK: %[[AFTER:.*]] = llvm.add %[[BEFORE]], %{{.*}} : i64
// CHECK: llvm.store %[[AFTER]], %[[MINE]]
// CHECK: llvm.getelementptr %[[MINE]][1] : (!llvm.ptr) -> !llvm.ptr, i64
// CHECK-LABEL: func.func private @counts.task(%arg0: !llvm.ptr, %arg1: i64, %arg2: i64) {
// CHECK: %[[LINE:.*]] = llvm.mlir.constant(64 : i64)
// CHECK: %[[CALL_FIELD:.*]] = llvm.getelementptr %arg0[0, 0]
// CHECK: %[[CALL:.*]] = llvm.load %[[CALL_FIELD]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[CALL]][72]
// CHECK: %[[TILES:.*]] = llvm.load %[[FIELD]]
// CHECK: %[[OFFSET:.*]] = llvm.mul %arg2, %[[LINE]]
// CHECK: llvm.getelementptr %[[TILES]][%[[OFFSET]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
func.func @counts(%workspace: memref<?xi8>) attributes {attn.kernel = "entry"} {
  %c5 = arith.constant 5 : index
  attn.count_tiles run(%c5) skipped(%c5)
  attn.parallel_for @counts.task(%c5) count(%c5) : index
  return
}
func.func private @counts.task(%i: index, %worker: index, %n: index) {
  attn.count_tiles run(%n) skipped(%i)
  return
}

// -----

// A kernel of a GPU gets the counts of the call in the first field of its context.
// CHECK-LABEL: func.func @launches(%arg0: !llvm.ptr) {
// CHECK: %[[CONTEXT:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(ptr, i64)>
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %arg0[72]
// CHECK: %[[TILES:.*]] = llvm.load %[[FIELD]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[FIRST:.*]] = llvm.getelementptr %[[CONTEXT]][0, 0]
// CHECK: llvm.store %[[TILES]], %[[FIRST]]
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[CONTEXT]][0, 1]
// CHECK: llvm.store %{{.*}}, %[[SECOND]] : i64, !llvm.ptr
// CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %[[CONTEXT]])
// CHECK-NOT: @launches.task
func.func @launches(%workspace: memref<?xi8>) attributes {attn.kernel = "entry"} {
  %c5 = arith.constant 5 : index
  attn.parallel_for @launches.task(%c5) count(%c5) : index
  return
}
func.func private @launches.task(index, index, index)
    attributes {attn.launch = #attn.launch<threads = 128, shared = 2048, arguments = 16>}
