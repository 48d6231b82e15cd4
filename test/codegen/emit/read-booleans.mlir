// RUN: attn-opt %s --attn-read-booleans | FileCheck %s

// CHECK-LABEL: llvm.func @f(
// CHECK: %[[byte:.*]] = llvm.load %arg0 : !llvm.ptr -> i8
// CHECK: %[[zero:.*]] = llvm.mlir.constant(0 : i8)
// CHECK: %[[true:.*]] = llvm.icmp "ne" %[[byte]], %[[zero]] : i8
// CHECK: llvm.return %[[true]]
llvm.func @f(%p: !llvm.ptr) -> i1 {
  %a = llvm.load %p : !llvm.ptr -> i1
  llvm.return %a : i1
}

// Loads of bytes and of vectors of bits stay.
// CHECK-LABEL: llvm.func @others(
// CHECK-NOT: llvm.icmp
llvm.func @others(%p: !llvm.ptr) -> i8 {
  %a = llvm.load %p : !llvm.ptr -> vector<8xi1>
  %b = llvm.load %p : !llvm.ptr -> i8
  llvm.return %b : i8
}
