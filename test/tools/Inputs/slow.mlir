#id = affine_map<(i, j) -> (i, j)>
func.func @f(%table: tensor<100xf32>, %x: tensor<4x4xi32> {attn.bound = 99 : i64, attn.below = 1 : i64}) -> tensor<4x4xf32> {
  %e = tensor.empty() : tensor<4x4xf32>
  %l = tensor.empty() : tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xi32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: i32, %out: f32):
    %i = arith.index_cast %a : i32 to index
    %y = tensor.extract %table[%i] : tensor<100xf32>
    linalg.yield %y : f32 } -> tensor<4x4xf32>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%r : tensor<4x4xf32>) outs(%l : tensor<4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    %y = math.log %a : f32
    linalg.yield %y : f32 } -> tensor<4x4xf32>
  %p = linalg.softmax dimension(1) ins(%m : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %p : tensor<4x4xf32>
}
