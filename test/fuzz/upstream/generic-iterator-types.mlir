#id = affine_map<(b) -> (b)>
func.func @f(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = [1]} ins(%x : tensor<2xf32>) outs(%y : tensor<2xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
