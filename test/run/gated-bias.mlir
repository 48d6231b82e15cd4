// RUN: attn-run %s --target=native --reference

// Two products compute a bias together. They share tasks of rows, which the tasks of the heads may not divide.
#q = affine_map<(h, q, k, d, e) -> (h, q, d)>
#k = affine_map<(h, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, q, k, d, e) -> (h, k, e)>
#v2 = affine_map<(h, q, k, d, e) -> (h, q, e)>
#s = affine_map<(h, q, k, d, e) -> (h, q, k)>
#p = affine_map<(h, i, j, c) -> (i, j, c)>
#w = affine_map<(h, i, j, c) -> (h, c)>
#b = affine_map<(h, i, j, c) -> (h, i, j)>
#id = affine_map<(h, i, j) -> (h, i, j)>
func.func @f(%q: tensor<4x9x4xf32>, %k: tensor<4x9x4xf32>, %v: tensor<4x9x4xf32>, %z: tensor<9x9x8xf32>, %w1: tensor<4x8xf32>, %w2: tensor<4x8xf32>) -> tensor<4x9x4xf32> {
  %zero = arith.constant 0.0 : f32
  %es = tensor.empty() : tensor<4x9x9xf32>
  %f = linalg.fill ins(%zero : f32) outs(%es : tensor<4x9x9xf32>) -> tensor<4x9x9xf32>
  %b1 = linalg.contract indexing_maps = [#w, #p, #b] ins(%w1, %z : tensor<4x8xf32>, tensor<9x9x8xf32>) outs(%f : tensor<4x9x9xf32>) -> tensor<4x9x9xf32>
  %b2 = linalg.contract indexing_maps = [#w, #p, #b] ins(%w2, %z : tensor<4x8xf32>, tensor<9x9x8xf32>) outs(%f : tensor<4x9x9xf32>) -> tensor<4x9x9xf32>
  %b = linalg.mul ins(%b1, %b2 : tensor<4x9x9xf32>, tensor<4x9x9xf32>) outs(%es : tensor<4x9x9xf32>) -> tensor<4x9x9xf32>
  %eo = tensor.empty() : tensor<4x9x4xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<4x9x4xf32>, tensor<4x9x4xf32>, tensor<4x9x4xf32>) captures(%b : tensor<4x9x9xf32>) outs(%eo : tensor<4x9x4xf32>) {indexing_maps = [#q, #k, #v, #s, #v2], scale = 0.5 : f32} score {
  ^bb0(%h: index, %i: index, %j: index, %x: f32, %c: f32):
    %y = arith.addf %x, %c : f32
    attn.yield %y : f32
  } -> tensor<4x9x4xf32>
  return %o : tensor<4x9x4xf32>
}
