// A fill with a negative scale, a region, a sink, lengths, and numbers of queries and keys that are known only at the call.
// RUN: attn-run %s --reference --dim=q.1=70 --dim=k.1=333 --opt-report | FileCheck %s
// RUN: attn-run %s --reference --dim=q.1=333 --dim=k.1=70
// RUN: attn-run %s --reference --dim=q.1=9 --dim=k.1=333
// RUN: attn-run %s --reference --dim=q.1=50 --dim=k.1=0
// RUN: attn-run %s --reference --dim=q.1=333 --dim=k.1=333 --target=x86-64
// CHECK: with fill -1000, tiles skipped
// CHECK: tiles: {{[0-9]+}} run, {{[1-9][0-9]*}} skipped

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#s = affine_map<(b, q, k, d, e) -> (q)>
#l = affine_map<(b, q, k, d, e) -> (b)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>

func.func @region(%q: tensor<2x?x24xf32> {attn.name = "q"}, %k: tensor<2x?x24xf32> {attn.name = "k"}, %v: tensor<2x?x40xf32>,
                  %lengths: tensor<2xi64>, %bias: tensor<?xf32>) -> tensor<2x?x40xf32> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %q, %c1 : tensor<2x?x24xf32>
  %e = tensor.empty(%n) : tensor<2x?x40xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<2x?x24xf32>, tensor<2x?x24xf32>, tensor<2x?x40xf32>)
      captures(%lengths, %bias : tensor<2xi64>, tensor<?xf32>) sink(%bias : tensor<?xf32>) outs(%e : tensor<2x?x40xf32>)
      mask(#attn.and<[#attn.window<left = 40, right = -5>, #attn.lengths<0>]>)
      {fill = -1000.0 : f32, indexing_maps = [#q, #k, #v, #l, #s, #s, #o], scale = -1.5 : f32} score {
  ^bb0(%b: index, %i: index, %j: index, %x: f32, %length: i64, %more: f32):
    %t = arith.addf %x, %more : f32
    attn.yield %t : f32
  } -> tensor<2x?x40xf32>
  return %o : tensor<2x?x40xf32>
}
