// RUN: attn-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @rows
// CHECK{LITERAL}: dense<[[[1, 3], [2, 4]], [[5, 0], [6, 0]]]> : tensor<2x2x2xi32>
func.func @rows(%o: tensor<2x2x2xi32>) -> tensor<2x2x2xi32> {
  %x = arith.constant dense<[[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi32>
  %p = attn.pack ins(%x : tensor<3x2xi32>) outs(%o : tensor<2x2x2xi32>) -> tensor<2x2x2xi32>
  return %p : tensor<2x2x2xi32>
}

// CHECK-LABEL: @columns
// CHECK{LITERAL}: dense<[[[[1.000000e+00, 2.000000e+00], [4.000000e+00, 5.000000e+00]], [[3.000000e+00, 0.000000e+00], [6.000000e+00, 0.000000e+00]]]]> : tensor<1x2x2x2xf32>
func.func @columns(%o: tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32> {
  %x = arith.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]> : tensor<1x2x3xf32>
  %p = attn.pack from_rows ins(%x : tensor<1x2x3xf32>) outs(%o : tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %p : tensor<1x2x2x2xf32>
}

// CHECK-LABEL: @batches
// CHECK{LITERAL}: dense<[[[[1, 2]]], [[[3, 4]]]]> : tensor<2x1x1x2xi64>
func.func @batches(%o: tensor<2x1x1x2xi64>) -> tensor<2x1x1x2xi64> {
  %x = arith.constant dense<[[[1], [2]], [[3], [4]]]> : tensor<2x2x1xi64>
  %p = attn.pack ins(%x : tensor<2x2x1xi64>) outs(%o : tensor<2x1x1x2xi64>) -> tensor<2x1x1x2xi64>
  return %p : tensor<2x1x1x2xi64>
}

// CHECK-LABEL: @splat
// CHECK: dense<5.000000e-01> : tensor<2x4x2xbf16>
func.func @splat(%o: tensor<2x4x2xbf16>) -> tensor<2x4x2xbf16> {
  %x = arith.constant dense<0.5> : tensor<4x4xbf16>
  %p = attn.pack ins(%x : tensor<4x4xbf16>) outs(%o : tensor<2x4x2xbf16>) -> tensor<2x4x2xbf16>
  return %p : tensor<2x4x2xbf16>
}

// The last panel, which the source does not fill, is padded with zeros.
// CHECK-LABEL: @padded_splat
// CHECK{LITERAL}: dense<[[[7, 7]], [[7, 0]]]> : tensor<2x1x2xi8>
func.func @padded_splat(%o: tensor<2x1x2xi8>) -> tensor<2x1x2xi8> {
  %x = arith.constant dense<7> : tensor<3x1xi8>
  %p = attn.pack ins(%x : tensor<3x1xi8>) outs(%o : tensor<2x1x2xi8>) -> tensor<2x1x2xi8>
  return %p : tensor<2x1x2xi8>
}

// Groups have two elements along k. The last group has one element, which is padded with a zero.
// CHECK-LABEL: @groups
// CHECK{LITERAL}: dense<[[[[1, 2], [4, 5]], [[3, 0], [6, 0]]]]> : tensor<1x2x2x2xi8>
func.func @groups(%o: tensor<1x2x2x2xi8>) -> tensor<1x2x2x2xi8> {
  %x = arith.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi8>
  %p = attn.pack group(2) ins(%x : tensor<2x3xi8>) outs(%o : tensor<1x2x2x2xi8>) -> tensor<1x2x2x2xi8>
  return %p : tensor<1x2x2x2xi8>
}

// CHECK-LABEL: @splat_groups
// CHECK{LITERAL}: dense<[[[[7, 7]], [[7, 0]]]]> : tensor<1x2x1x2xi8>
func.func @splat_groups(%o: tensor<1x2x1x2xi8>) -> tensor<1x2x1x2xi8> {
  %x = arith.constant dense<7> : tensor<3x1xi8>
  %p = attn.pack from_rows group(2) ins(%x : tensor<3x1xi8>) outs(%o : tensor<1x2x1x2xi8>) -> tensor<1x2x1x2xi8>
  return %p : tensor<1x2x1x2xi8>
}

// CHECK-LABEL: @no_rows
// CHECK: dense<> : tensor<0x4x2xf32>
func.func @no_rows(%o: tensor<0x4x2xf32>) -> tensor<0x4x2xf32> {
  %x = arith.constant dense<> : tensor<0x4xf32>
  %p = attn.pack ins(%x : tensor<0x4xf32>) outs(%o : tensor<0x4x2xf32>) -> tensor<0x4x2xf32>
  return %p : tensor<0x4x2xf32>
}

// CHECK-LABEL: @unknown_size
// CHECK: attn.pack
func.func @unknown_size(%o: tensor<?x4x2xf32>) -> tensor<?x4x2xf32> {
  %x = arith.constant dense<1.0> : tensor<4x4xf32>
  %p = attn.pack ins(%x : tensor<4x4xf32>) outs(%o : tensor<?x4x2xf32>) -> tensor<?x4x2xf32>
  return %p : tensor<?x4x2xf32>
}

// CHECK-LABEL: @scaled(
// CHECK: attn.pack scale
func.func @scaled() -> tensor<2x4x2xf32> {
  %x = arith.constant dense<1.0> : tensor<4x4xf32>
  %o = tensor.empty() : tensor<2x4x2xf32>
  %p = attn.pack scale(0.5) ins(%x : tensor<4x4xf32>) outs(%o : tensor<2x4x2xf32>) -> tensor<2x4x2xf32>
  return %p : tensor<2x4x2xf32>
}
