// The result that a call writes to an in-out argument must have the size of the argument.
// RUN: not attnc %s -o %t.so 2>&1 | FileCheck %s
// CHECK: in-out-sizes.mlir: 4:1: expected the result that is written to argument 0 to have the sizes of the argument, got a dimension 0 that is not known to be "arg0.0"
func.func @swap(%x: tensor<?x4xf32> {attn.in_out = 0}, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
  return %y : tensor<?x4xf32>
}
