// A dimension has the name of an unknown size.
// RUN: not attn-import %s 2>&1 | FileCheck %s
// CHECK: expected sizes that agree in every call, got '?1' and 2 + b

func.func @f(%x: tensor<?xf32> {attn.dims = ["?1"]}, %y: tensor<?xf32> {attn.dims = ["b"]}) -> tensor<f32> attributes {attn.symbols = [#attn.symbol<"?1", 0 to 100000000>, #attn.symbol<"b", 0 to 100000000>]} {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %y low[1] high[1] { 
  ^bb0(%q: index):
    tensor.yield %z : f32
  } : tensor<?xf32> to tensor<?xf32>
  %yy = linalg.exp ins(%x : tensor<?xf32>) outs(%p : tensor<?xf32>) -> tensor<?xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> ()>], iterator_types = ["reduction"]} ins(%yy : tensor<?xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %s : tensor<f32>
}
