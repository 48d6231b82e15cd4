// RUN: attn-import %s | FileCheck %s --implicit-check-not=call --implicit-check-not=@twice --implicit-check-not=@unused --implicit-check-not=ml_program

// Calls are inlined. Private symbols that nothing uses disappear, such as the global that torch-mlir writes.
ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>

// CHECK: func.func @main
// CHECK: linalg.exp
// CHECK: linalg.exp
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @once(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @once(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
// CHECK: func.func @once
// CHECK: linalg.exp
func.func @once(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
