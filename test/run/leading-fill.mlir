// The first 200 keys are not hidden, but have a large negative number as their scores, as in sequences that are padded
// on the left. The maximum of the first tiles is this number, so later scores are far above the maximum.
// RUN: attn-run %s --entry=some --reference
// RUN: attn-run %s --entry=least --reference

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#maps = [#q, #k, #v, #o]
func.func @some(%x: tensor<2x300x16xf32>) -> tensor<2x300x16xf32> {
  %e = tensor.empty() : tensor<2x300x16xf32>
  %r = attn.attention ins(%x, %x, %x : tensor<2x300x16xf32>, tensor<2x300x16xf32>, tensor<2x300x16xf32>) outs(%e : tensor<2x300x16xf32>)
      {indexing_maps = #maps, scale = 0.25 : f32} score {
  ^bb0(%b: index, %i: index, %j: index, %s: f32):
    %n = arith.constant 200 : index
    %fill = arith.constant -1.0e9 : f32
    %c = arith.cmpi slt, %j, %n : index
    %y = arith.select %c, %fill, %s : f32
    attn.yield %y : f32
  } -> tensor<2x300x16xf32>
  return %r : tensor<2x300x16xf32>
}
func.func @least(%x: tensor<2x300x16xf32>) -> tensor<2x300x16xf32> {
  %e = tensor.empty() : tensor<2x300x16xf32>
  %r = attn.attention ins(%x, %x, %x : tensor<2x300x16xf32>, tensor<2x300x16xf32>, tensor<2x300x16xf32>) outs(%e : tensor<2x300x16xf32>)
      {indexing_maps = #maps, scale = 0.25 : f32} score {
  ^bb0(%b: index, %i: index, %j: index, %s: f32):
    %n = arith.constant 200 : index
    %fill = arith.constant 0xFF7FFFFF : f32
    %c = arith.cmpi slt, %j, %n : index
    %y = arith.select %c, %fill, %s : f32
    attn.yield %y : f32
  } -> tensor<2x300x16xf32>
  return %r : tensor<2x300x16xf32>
}
