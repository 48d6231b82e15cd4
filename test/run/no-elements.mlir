// Calls with 0 batch items, 0 queries or 0 keys work with two schedules. With 0 keys, the output is 0.
// DEFINE: %{schedule} =
// DEFINE: %{test} = rm -rf %t && mkdir %t && attnc %s -o %t/f.so --target=native --schedule=%{schedule} && \
// DEFINE:   attn-run %t/f.so --dim=b=0 --dim=q=3 --dim=k=4 --output-dir=%t/b && \
// DEFINE:   attn-run %t/f.so --dim=b=2 --dim=q=0 --dim=k=4 --output-dir=%t/q && \
// DEFINE:   attn-run %t/f.so --dim=b=2 --dim=q=3 --dim=k=0 --output-dir=%t/k && \
// DEFINE:   grep -aoh "'shape': ([^)]*)" %t/b/0.npy %t/q/0.npy %t/k/0.npy | FileCheck %s && \
// DEFINE:   od -A n -t f4 -j 128 %t/k/0.npy | FileCheck %s --check-prefix=ZEROS
// REDEFINE: %{schedule} = per-head
// RUN: %{test}
// REDEFINE: %{schedule} = unfused
// RUN: %{test}

// CHECK: (0, 3, 8, )
// CHECK: (2, 0, 8, )
// CHECK: (2, 3, 8, )
// ZEROS: {{^ +0 +0 +0 +0$}}
// ZEROS-NEXT: *
// ZEROS-NOT: {{.}}
func.func @f(%q: tensor<?x?x8xf32> {attn.name = "q", attn.dims = ["b", "q", ""]},
             %k: tensor<?x?x8xf32> {attn.name = "k", attn.dims = ["b", "k", ""]})
    -> (tensor<?x?x8xf32> {attn.name = "out", attn.dims = ["b", "q", ""]})
    attributes {attn.symbols = [#attn.symbol<"b", 0 to 9>, #attn.symbol<"q", 0 to 9>, #attn.symbol<"k", 0 to 9>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %q, %c0 : tensor<?x?x8xf32>
  %n = tensor.dim %q, %c1 : tensor<?x?x8xf32>
  %e = tensor.empty(%b, %n) : tensor<?x?x8xf32>
  %r = attn.attention ins(%q, %k, %k : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) outs(%e : tensor<?x?x8xf32>)
    {indexing_maps = [affine_map<(b, q, k, d, e) -> (b, q, d)>, affine_map<(b, q, k, d, e) -> (b, k, d)>,
                      affine_map<(b, q, k, d, e) -> (b, k, e)>, affine_map<(b, q, k, d, e) -> (b, q, e)>], scale = 1.0 : f32} -> tensor<?x?x8xf32>
  return %r : tensor<?x?x8xf32>
}
