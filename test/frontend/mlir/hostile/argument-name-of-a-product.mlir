// The same, with names of dimensions that follow from the name of an argument.
// RUN: not attn-import %s 2>&1 | FileCheck %s
// CHECK: expected result 'out' to have sizes that follow from those of arguments

func.func @f(%x: tensor<?xf32> {attn.name = "a"}, %y: tensor<?xf32> {attn.name = "a.0*b"}, %z: tensor<?xf32> {attn.name = "b"}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %m = tensor.dim %z, %c0 : tensor<?xf32>
  %o = arith.constant 1.0 : f32
  %p = arith.muli %n, %m : index
  %e = tensor.empty(%p) : tensor<?xf32>
  %r = linalg.fill ins(%o : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
