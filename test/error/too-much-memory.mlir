// RUN: rm -rf %t && mkdir %t
// RUN: not attn-run %s --dim=x.0=2147483647 --output-dir=%t/out 2>&1 | FileCheck %s
// RUN: not ls %t/out

// CHECK: attn-run: expected tensors that fit into the {{[0-9]+}} bytes of this machine's memory, got 70368744144896 bytes
func.func @f(%x: tensor<?x8192xf32> {attn.name = "x"}) -> tensor<?x8192xf32> {
  %r = linalg.exp ins(%x : tensor<?x8192xf32>) outs(%x : tensor<?x8192xf32>) -> tensor<?x8192xf32>
  return %r : tensor<?x8192xf32>
}
