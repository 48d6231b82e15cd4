// RUN: attn-opt %s -attn-share-tasks | FileCheck %s

// The two tasks of @forward differ only in their arguments and locations, so both calls use the first task.
// CHECK-LABEL: func.func @forward(
// CHECK: attn.parallel_for @forward.map(%arg0, %arg1)
// CHECK: attn.parallel_for @forward.map(%arg1, %arg0)
// CHECK: attn.parallel_for @forward.map_1(%arg0, %arg1)
// CHECK: attn.parallel_for @forward.map_2(%arg0, %arg1)
// CHECK: attn.parallel_for @forward.map(%arg0, %arg1)
func.func @forward(%x: memref<64xf32>, %y: memref<64xf32>) attributes {attn.kernel = "entry"} {
  %n = arith.constant 4 : index
  attn.parallel_for @forward.map(%x, %y) count(%n) : memref<64xf32>, memref<64xf32>
  attn.parallel_for @forward.map_0(%y, %x) count(%n) : memref<64xf32>, memref<64xf32>
  attn.parallel_for @forward.map_1(%x, %y) count(%n) : memref<64xf32>, memref<64xf32>
  attn.parallel_for @forward.map_2(%x, %y) count(%n) : memref<64xf32>, memref<64xf32>
  attn.parallel_for @forward.map_0(%x, %y) count(%n) : memref<64xf32>, memref<64xf32>
  return
}
// CHECK: func.func private @forward.map(
func.func private @forward.map(%index: index, %worker: index, %x: memref<64xf32>, %y: memref<64xf32>) {
  linalg.exp ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) loc("layer 0")
  return
}
// CHECK-NOT: @forward.map_0
func.func private @forward.map_0(%index: index, %worker: index, %x: memref<64xf32>, %y: memref<64xf32>) {
  linalg.exp ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) loc("layer 1")
  return
}
// This task is kept, because its op is different.
// CHECK: func.func private @forward.map_1(
func.func private @forward.map_1(%index: index, %worker: index, %x: memref<64xf32>, %y: memref<64xf32>) {
  linalg.log ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  return
}
// This task is kept, because one of its arguments has an attribute.
// CHECK: func.func private @forward.map_2(
func.func private @forward.map_2(%index: index, %worker: index, %x: memref<64xf32>, %y: memref<64xf32> {llvm.noalias}) {
  linalg.exp ins(%x : memref<64xf32>) outs(%y : memref<64xf32>)
  return
}
// Equal functions that belong to two entry functions are kept.
// CHECK: func.func @f.pack()
// CHECK: func.func @g.pack()
func.func @f.pack() attributes {attn.kernel = "pack"} {
  return
}
func.func @g.pack() attributes {attn.kernel = "pack"} {
  return
}
