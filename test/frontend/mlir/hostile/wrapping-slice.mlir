// The product of three sizes wraps around, although the tensors have no elements.
// RUN: not attn-run %s --reference --dim arg0.0=874149517 --dim arg1.0=130792 --dim arg2.0=161344 2>&1 | FileCheck %s
// CHECK: expected sizes with arg0.0*arg1.0*arg2.0 <= 9223372036854775807

func.func @f(%x: tensor<?x0xf32>, %x1: tensor<?x0xf32>, %x2: tensor<?x0xf32>, %y: tensor<5xf32>) -> tensor<1xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %a = tensor.dim %x, %c0 : tensor<?x0xf32>
  %b = tensor.dim %x1, %c0 : tensor<?x0xf32>
  %c = tensor.dim %x2, %c0 : tensor<?x0xf32>
  %ab = arith.muli %a, %b : index
  %abc = arith.muli %ab, %c : index
  %i = arith.minsi %abc, %c4 : index
  %o = arith.subi %c4, %i : index
  %r = tensor.extract_slice %y[%o] [1] [1] : tensor<5xf32> to tensor<1xf32>
  return %r : tensor<1xf32>
}
