// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/f.so --target=native
// RUN: %python %S/npy.py %t/x.npy '<f4' 1000 1
// RUN: %python %S/npy.py %t/y.npy '<f4' 1 1
// RUN: not attn-run %t/f.so --input=%t/x.npy --input=%t/y.npy 2>&1 | FileCheck %s

// CHECK: attn-run: f: argument 'y' expected size 1000 in dimension 0, as in dimension 0 of 'x', got 1
#id = affine_map<(a) -> (a)>
func.func @f(%x: tensor<?xf32> {attn.name = "x"}, %y: tensor<?xf32> {attn.name = "y"}) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
