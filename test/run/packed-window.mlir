// With a window, loops over keys begin within a word of a packed mask. In @region, the first attention has a window and
// a boolean tensor that only the region reads; the second has a window and a dense mask. @query has one query.
// RUN: sed -n '/^#q/,/^}/p' %s > %t.region.mlir && attn-run %t.region.mlir --reference
// RUN: sed -n '/^#s/,/^}/p' %s > %t.query.mlir && attn-run %t.query.mlir --reference

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#m = affine_map<(b, q, k, d, e) -> (b, q, k)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
func.func @region(%x: tensor<2x300x16xf32> {attn.name = "x"}, %c: tensor<2x300x300xi1> {attn.name = "c"}, %keep: tensor<2x300x300xi1> {attn.name = "keep"})
    -> (tensor<2x300x16xf32> {attn.name = "out"}) {
  %e = tensor.empty() : tensor<2x300x16xf32>
  %a = attn.attention ins(%x, %x, %x : tensor<2x300x16xf32>, tensor<2x300x16xf32>, tensor<2x300x16xf32>)
      captures(%c : tensor<2x300x300xi1>) outs(%e : tensor<2x300x16xf32>) mask(#attn.window<left = 50, right = 0>)
      {indexing_maps = [#q, #k, #v, #m, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %i: index, %j: index, %s: f32, %bit: i1):
        %t = arith.uitofp %bit : i1 to f32
        %u = arith.addf %s, %t : f32
        attn.yield %u : f32
      } -> tensor<2x300x16xf32>
  %o = attn.attention ins(%a, %x, %x : tensor<2x300x16xf32>, tensor<2x300x16xf32>, tensor<2x300x16xf32>)
      captures(%keep : tensor<2x300x300xi1>) outs(%e : tensor<2x300x16xf32>) mask(#attn.and<[#attn.window<left = 50, right = 20>, #attn.dense<0, keeps = zero>]>)
      {indexing_maps = [#q, #k, #v, #m, #o], scale = 1.0 : f32} -> tensor<2x300x16xf32>
  return %o : tensor<2x300x16xf32>
}

#s = affine_map<(q, k, d, e) -> (q, d)>
#t = affine_map<(q, k, d, e) -> (k, d)>
#u = affine_map<(q, k, d, e) -> (k, e)>
#n = affine_map<(q, k, d, e) -> (q, k)>
#p = affine_map<(q, k, d, e) -> (q, e)>
func.func @query(%x: tensor<1x64xf32> {attn.name = "x"}, %y: tensor<4096x64xf32> {attn.name = "y"}, %keep: tensor<1x4096xi1> {attn.name = "keep"})
    -> (tensor<1x64xf32> {attn.name = "out"}) {
  %e = tensor.empty() : tensor<1x64xf32>
  %o = attn.attention ins(%x, %y, %y : tensor<1x64xf32>, tensor<4096x64xf32>, tensor<4096x64xf32>)
      captures(%keep : tensor<1x4096xi1>) outs(%e : tensor<1x64xf32>) mask(#attn.and<[#attn.window<left = 20, right = 0>, #attn.dense<0>]>)
      {indexing_maps = [#s, #t, #u, #n, #p], scale = 1.0 : f32} -> tensor<1x64xf32>
  return %o : tensor<1x64xf32>
}
