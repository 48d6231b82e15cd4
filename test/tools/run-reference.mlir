// attn-run --reference compares the compiled code with the model, which it interprets op by op in float64.

// RUN: attn-run %s --reference --entry=attend --dim=q.2=5 | FileCheck %s --check-prefix=CLOSE
// CLOSE: output 0: error {{[0-9.]+}}e-0{{[6-9]}}, largest value {{.*}}
// CLOSE-NEXT: output 1: error

// Compiled code rounds to float32 and the reference does not, so the results differ: a tolerance of 0 is too small.
// RUN: not attn-run %s --reference --entry=attend --dim=q.2=5 --tolerance=0 2>&1 | FileCheck %s --check-prefix=APART
// APART: attn-run: expected an error of at most 0.00e+00 in output 0 (--tolerance=0), got

// The reference reads the same weights as the compiled code. Outputs are written as they are without --reference.
// RUN: rm -rf %t && mkdir %t
// RUN: attn-run %S/../../examples/models/mha.pt2 --input=%S/../../examples/models/mha.x.npy \
// RUN:   --reference --output-dir=%t | FileCheck %s --check-prefix=MODEL
// RUN: ls %t/0.npy
// MODEL: output 0: error {{[0-9.]+}}e-0{{[6-9]}}

// RUN: not attn-run %t/mha.so --reference 2>&1 | FileCheck %s --check-prefix=LIBRARY
// LIBRARY: attn-run: expected a model for --reference, got the library '{{.*}}mha.so'

// RUN: not attn-run %s --reference --entry=shift 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: attn-run: {{.*}}run-reference.mlir: [[#@LINE+24]]:{{[0-9]+}}: expected an op that the reference implements, got 'arith.addui_extended'

func.func @attend(%q: tensor<2x2x?x8xf32> {attn.name = "q"}, %k: tensor<2x2x9x8xf32>,
                  %v: tensor<2x2x9x8xf32>) -> (tensor<2x2x?x8xf32>, tensor<2x2x?x9xf32>) {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %q, %c2 : tensor<2x2x?x8xf32>
  %e = tensor.empty(%n) : tensor<2x2x?x8xf32>
  %w = tensor.empty(%n) : tensor<2x2x?x9xf32>
  %o:2 = attn.attention ins(%q, %k, %v : tensor<2x2x?x8xf32>, tensor<2x2x9x8xf32>, tensor<2x2x9x8xf32>)
      outs(%e, %w : tensor<2x2x?x8xf32>, tensor<2x2x?x9xf32>) mask(#attn.causal<offset = 1>) {
      indexing_maps = [affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>,
                       affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>,
                       affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>,
                       affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>,
                       affine_map<(b, h, q, k, d, e) -> (b, h, q, k)>],
      scale = 0.35 : f32} -> tensor<2x2x?x8xf32>, tensor<2x2x?x9xf32>
  return %o#0, %o#1 : tensor<2x2x?x8xf32>, tensor<2x2x?x9xf32>
}

#id = affine_map<(i) -> (i)>
func.func @shift(%x: tensor<4xi32>) -> tensor<4xi32> {
  %e = tensor.empty() : tensor<4xi32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xi32>) outs(%e : tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %c, %overflow = arith.addui_extended %a, %a : i32, i1
    linalg.yield %c : i32
  } -> tensor<4xi32>
  return %y : tensor<4xi32>
}
