// RUN: attn-opt %s -attn-out-params -split-input-file | FileCheck %s

func.func @forward(%x: tensor<?x768xf32>, %e: tensor<?x768xf32>) -> (tensor<?x768xf32> {attn.name = "out"}) {
  %y = linalg.exp ins(%x : tensor<?x768xf32>) outs(%e : tensor<?x768xf32>) -> tensor<?x768xf32>
  return %y : tensor<?x768xf32>
}

// -----

func.func @reshaped(%x: tensor<2x?x12x64xf32>, %e: tensor<2x?x12x64xf32>) -> tensor<2x?x768xf32> {
  %y = linalg.exp ins(%x : tensor<2x?x12x64xf32>) outs(%e : tensor<2x?x12x64xf32>) -> tensor<2x?x12x64xf32>
  %r = tensor.collapse_shape %y [[0], [1], [2, 3]] : tensor<2x?x12x64xf32> into tensor<2x?x768xf32>
  return %r : tensor<2x?x768xf32>
}

// -----

func.func @guessed(%x: tensor<?x?x64xf32>, %e: tensor<?x?x64xf32>) -> tensor<?x64xf32> {
  %y = linalg.exp ins(%x : tensor<?x?x64xf32>) outs(%e : tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  %r = tensor.collapse_shape %y [[0, 1], [2]] : tensor<?x?x64xf32> into tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// -----

func.func @copied(%x: tensor<8xf32>, %e: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) {
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %p = tensor.extract_slice %y[4] [4] [1] : tensor<8xf32> to tensor<4xf32>
  return %x, %y, %y, %p : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xf32>
}

// -----

func.func private @declared(tensor<8xf32>) -> tensor<8xf32>
