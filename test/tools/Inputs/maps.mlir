// An attention that runs with TMA on sm_90a, so its kernel has tensor maps.
#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>
#n = affine_map<(b, h, q, k, d, e) -> (b)>
#m = affine_map<(b, h, q, k, d, e) -> (b, q, k)>
#s = affine_map<(b, h, q, k, d, e) -> (h)>
#sink = affine_map<(b, h, q, k, d, e) -> (h, q)>
func.func @attention(%q: tensor<?x2x?x64xbf16> {attn.name = "q"}, %k: tensor<?x2x?x64xbf16> {attn.name = "k"},
                     %v: tensor<?x2x?x64xbf16> {attn.name = "v"}) -> tensor<?x2x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x2x?x64xbf16>
  %n = tensor.dim %q, %c2 : tensor<?x2x?x64xbf16>
  %empty = tensor.empty(%b, %n) : tensor<?x2x?x64xbf16>
  %o = attn.attention ins(%q, %k, %v : tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>)
     outs(%empty : tensor<?x2x?x64xbf16>) 
    {indexing_maps = [#q, #k, #v, #o], scale = 0.2 : f32}  -> tensor<?x2x?x64xbf16>
  return %o : tensor<?x2x?x64xbf16>
}
