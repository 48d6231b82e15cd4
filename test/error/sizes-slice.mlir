// RUN: rm -rf %t && mkdir %t
// RUN: not attnc %s -o %t/f.so 2>&1 | FileCheck %s
// RUN: ls %t | count 0

// CHECK: sizes-slice.mlir: 9:8: expected a slice inside its tensor in every call, got ('x.0' + ('y.0' * -1)), which may be negative
func.func @f(%x: tensor<?xf32> {attn.name = "x"}, %y: tensor<?xf32> {attn.name = "y"}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?xf32>
  %r = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>
  return %r : tensor<?xf32>
}
