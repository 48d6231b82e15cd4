// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(attn-contract-to-vector),canonicalize,cse)' \
// RUN:   | FileCheck %s
//
// The test covers entries of the table in RegisterBlocks.h, which has the rows and vectors of the block for each number
// of columns. The checks distinguish blocks by the number of accumulators, and by the step over rows or columns.

module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>} {
// CHECK-LABEL: @v4_16
// CHECK:         %{{.*}}:8 = scf.for
func.func @v4_16(%a: memref<240x8xf32>, %b: memref<8x16xf32>, %c: memref<240x16xf32>) {
  linalg.matmul ins(%a, %b : memref<240x8xf32>, memref<8x16xf32>) outs(%c : memref<240x16xf32>)
  return
}
// CHECK-LABEL: @v4_48
// CHECK:         scf.for %{{.*}} step %c8 {
// CHECK:         %{{.*}}:24 = scf.for
func.func @v4_48(%a: memref<240x8xf32>, %b: memref<8x48xf32>, %c: memref<240x48xf32>) {
  linalg.matmul ins(%a, %b : memref<240x8xf32>, memref<8x48xf32>) outs(%c : memref<240x48xf32>)
  return
}
// CHECK-LABEL: @v4_64
// CHECK:         scf.for %{{.*}} step %c6 {
// CHECK:         %{{.*}}:24 = scf.for
func.func @v4_64(%a: memref<240x8xf32>, %b: memref<8x64xf32>, %c: memref<240x64xf32>) {
  linalg.matmul ins(%a, %b : memref<240x8xf32>, memref<8x64xf32>) outs(%c : memref<240x64xf32>)
  return
}
// CHECK-LABEL: @v4_96
// CHECK:         scf.for %{{.*}} step %c48 {
func.func @v4_96(%a: memref<240x8xf32>, %b: memref<8x96xf32>, %c: memref<240x96xf32>) {
  linalg.matmul ins(%a, %b : memref<240x8xf32>, memref<8x96xf32>) outs(%c : memref<240x96xf32>)
  return
}
// CHECK-LABEL: @v4_768
// CHECK:         scf.for %{{.*}} step %c64 {
func.func @v4_768(%a: memref<240x8xf32>, %b: memref<8x768xf32>, %c: memref<240x768xf32>) {
  linalg.matmul ins(%a, %b : memref<240x8xf32>, memref<8x768xf32>) outs(%c : memref<240x768xf32>)
  return
}
}

// -----

module attributes {attn.target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>} {
// CHECK-LABEL: @v3_24
// CHECK:         scf.for %{{.*}} step %c4 {
// CHECK:         %{{.*}}:12 = scf.for
func.func @v3_24(%a: memref<240x8xf32>, %b: memref<8x24xf32>, %c: memref<240x24xf32>) {
  linalg.matmul ins(%a, %b : memref<240x8xf32>, memref<8x24xf32>) outs(%c : memref<240x24xf32>)
  return
}
// CHECK-LABEL: @v3_16
// CHECK:         scf.for %{{.*}} step %c6 {
// CHECK:         %{{.*}}:12 = scf.for
func.func @v3_16(%a: memref<240x8xf32>, %b: memref<8x16xf32>, %c: memref<240x16xf32>) {
  linalg.matmul ins(%a, %b : memref<240x8xf32>, memref<8x16xf32>) outs(%c : memref<240x16xf32>)
  return
}
}

// -----

module attributes {attn.target = #attn.cpu<"x86-64", vector = 128, registers = 16, l1 = 32768, l2 = 262144>} {
// CHECK-LABEL: @v1_48
// CHECK:         scf.for %{{.*}} step %c6 {
// CHECK:         %{{.*}}:12 = scf.for
func.func @v1_48(%a: memref<240x8xf32>, %b: memref<8x48xf32>, %c: memref<240x48xf32>) {
  linalg.matmul ins(%a, %b : memref<240x8xf32>, memref<8x48xf32>) outs(%c : memref<240x48xf32>)
  return
}
}
