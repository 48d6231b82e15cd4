// A tensor whose elements are read has an element.
// RUN: not attn-run %s --reference --dim arg0.0=0 2>&1 | FileCheck %s
// CHECK: expected --dim=arg0.0 in [1, 2147483647], got 0

#id = affine_map<(a) -> (a)>
func.func @f(%x: tensor<?xf32>, %i: tensor<3xi64>) -> tensor<3xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %p = tensor.pad %x low[%n] high[0] { 
  ^bb0(%q: index):
    tensor.yield %z : f32
  } : tensor<?xf32> to tensor<?xf32>
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%i : tensor<3xi64>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: i64, %o: f32):
    %j = arith.index_cast %a : i64 to index
    %v = tensor.extract %p[%j] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<3xf32>
  return %r : tensor<3xf32>
}
