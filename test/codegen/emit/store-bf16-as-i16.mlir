// RUN: attn-opt %s --attn-store-bf16-as-i16 --canonicalize | FileCheck %s

// CHECK-LABEL: llvm.func @bits(
// CHECK: %[[bits:.*]] = llvm.load %arg0 {{.*}}: !llvm.ptr -> vector<4xi16>
// CHECK-NOT: llvm.bitcast
// CHECK: llvm.return %[[bits]] : vector<4xi16>
llvm.func @bits(%p: !llvm.ptr) -> vector<4xi16> {
  %q = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, bf16
  %x = llvm.load %p : !llvm.ptr -> vector<4xbf16>
  %bits = llvm.bitcast %x : vector<4xbf16> to vector<4xi16>
  llvm.return %bits : vector<4xi16>
}

// The bf16 1.5 has the bits 0x3FC0, 16320.
// CHECK-LABEL: llvm.func @constants(
// CHECK-DAG: llvm.mlir.constant(16320 : i16) : i16
// CHECK-DAG: llvm.mlir.constant(dense<16320> : vector<4xi16>) : vector<4xi16>
// CHECK-DAG: llvm.getelementptr %arg0[1] : (!llvm.ptr) -> !llvm.ptr, i16
llvm.func @constants(%p: !llvm.ptr) {
  %one = llvm.mlir.constant(1.5 : bf16) : bf16
  %four = llvm.mlir.constant(dense<1.5> : vector<4xbf16>) : vector<4xbf16>
  %q = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, bf16
  llvm.store %one, %p : bf16, !llvm.ptr
  llvm.store %four, %q : vector<4xbf16>, !llvm.ptr
  llvm.return
}

// A conversion for which the CPU has an instruction keeps its type.
// CHECK-LABEL: llvm.func @conversion(
// CHECK: %[[rounded:.*]] = llvm.fptrunc %arg1 : vector<4xf32> to vector<4xbf16>
// CHECK: %[[bits:.*]] = llvm.bitcast %[[rounded]] : vector<4xbf16> to vector<4xi16>
// CHECK: llvm.store %[[bits]], %arg0
llvm.func @conversion(%p: !llvm.ptr, %x: vector<4xf32>) {
  %rounded = llvm.fptrunc %x : vector<4xf32> to vector<4xbf16>
  llvm.store %rounded, %p : vector<4xbf16>, !llvm.ptr
  llvm.return
}
