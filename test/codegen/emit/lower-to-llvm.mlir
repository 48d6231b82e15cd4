// RUN: attn-opt %s --attn-lower-to-llvm | FileCheck %s
// RUN: attn-opt %s --attn-lower-to-llvm --mlir-print-debuginfo | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=IR

// Only the LLVM dialect is left: a task reads its context; an entry writes the context and calls parallel_for.
// CHECK-NOT: unrealized_conversion_cast
// CHECK-LABEL: llvm.func @"add.x86-64-v4"(%arg0: !llvm.ptr)
// CHECK: llvm.alloca {{.*}} !llvm.struct<(struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>
// CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64) -> ()
// CHECK-LABEL: llvm.func @"add.rows.x86-64-v4"(%arg0: !llvm.ptr, %arg1: i64, %arg2: i64)
// CHECK-LABEL: llvm.func @"add.workspace.x86-64-v4"(%arg0: !llvm.ptr, %arg1: !llvm.ptr)

// The functions of an ISA level have its CPU as an attribute, and debug locations.
// IR: define void @add.x86-64-v4(ptr %0) #[[V4:[0-9]+]] !dbg
// IR: define void @add.rows.x86-64-v4({{.*}} #[[V4]] !dbg
// IR: define void @add.x86-64(ptr %0) #[[BASE:[0-9]+]] !dbg
// IR: attributes #[[V4]] = {{.*}}"no-builtins" "prefer-vector-width"="512" "target-cpu"="x86-64-v4"
// IR: attributes #[[BASE]] = {{.*}}"no-builtins" "prefer-vector-width"="128" "target-cpu"="x86-64"
// IR: emissionKind: LineTablesOnly

func.func private @add(tensor<?x4xf32> {attn.name = "x", attn.dims = ["n", ""]})
    -> (tensor<?x4xf32> {attn.name = "y", attn.dims = ["n", ""]})
    attributes {attn.symbols = [#attn.symbol<"n", 0 to 64>]}

module @"x86-64-v4" attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>} {
  func.func @add(%x: memref<?x4xf32> {attn.name = "x", attn.dims = ["n", ""]},
                 %y: memref<?x4xf32> {attn.output, attn.name = "y", attn.dims = ["n", ""]}, %w: memref<?xi8>)
      attributes {attn.kernel = "entry", attn.symbols = [#attn.symbol<"n", 0 to 64>]} {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?x4xf32>
    attn.parallel_for @add.rows(%x, %y) count(%n) : memref<?x4xf32>, memref<?x4xf32>
    return
  }
  func.func private @add.rows(%i: index, %worker: index, %x: memref<?x4xf32>, %y: memref<?x4xf32>) {
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%i, %c0] : memref<?x4xf32>, vector<4xf32>
    %s = arith.addf %v, %v : vector<4xf32>
    vector.store %s, %y[%i, %c0] : memref<?x4xf32>, vector<4xf32>
    return
  }
  func.func @add.workspace(%n: index) -> (index, index) attributes {attn.kernel = "workspace", attn.text = "0"} {
    %c0 = arith.constant 0 : index
    return %c0, %c0 : index, index
  }
}

module @"x86-64" attributes {attn.target = #attn.cpu<"x86-64", vector = 128, registers = 16, l1 = 32768, l2 = 262144>} {
  func.func @add(%x: memref<?x4xf32> {attn.name = "x", attn.dims = ["n", ""]},
                 %y: memref<?x4xf32> {attn.output, attn.name = "y", attn.dims = ["n", ""]}, %w: memref<?xi8>)
      attributes {attn.kernel = "entry", attn.symbols = [#attn.symbol<"n", 0 to 64>]} {
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0, %c0] : memref<?x4xf32>, vector<4xf32>
    vector.store %v, %y[%c0, %c0] : memref<?x4xf32>, vector<4xf32>
    return
  }
}
