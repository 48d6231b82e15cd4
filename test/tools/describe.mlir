// attn-run --describe prints the functions and their arguments; it needs no weights and no inputs.
// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/f.so --target=all
// RUN: attn-run %t/f.so --describe --level=x86-64 | FileCheck %s --match-full-lines
// RUN: attn-run %s --describe | FileCheck %s --check-prefix=MODEL
// RUN: attn-run %t/f.so --describe --json | %python -m json.tool | FileCheck %s --check-prefix=JSON
// RUN: env ATTN_LEVEL=none attn-run %t/f.so --describe | FileCheck %s --check-prefix=NONE
// RUN: env ATTN_LEVEL=none attn-run %t/f.so --describe --json | FileCheck %s --check-prefix=NULL
// RUN: not attn-run %t/f.so --describe --level=x86-64-v5 2>&1 | FileCheck %s --check-prefix=LEVEL

//      CHECK: f, compiled by attn {{[0-9.]+}}
// CHECK-EMPTY:
// CHECK-NEXT: attend(x: f32[3, S, 8], lengths: i32[3]) -> (out: f32[3, S, 8])
// CHECK-NEXT:   sizes      S in [0, 512]
// CHECK-NEXT:   values     lengths in [0, S]
// CHECK-NEXT:   levels     x86-64-v4, x86-64-v3, x86-64 (runs here)
// CHECK-NEXT:   workspace  per call {{.+}} bytes
// CHECK-NEXT:   report     describe.mlir:{{[0-9]+}}: attention fused, {{.*}}
// CHECK-NEXT:                predicted Mcycles: {{.*}}
// CHECK-NEXT:                query, key and value each from an input
// CHECK-EMPTY:
// CHECK-NEXT: add(x: f32[4], y: f32[4]) -> (out: f32[4])
// CHECK-NEXT:   weights    w.0: f32[4]
// CHECK-NEXT:              w.1: f32[4]
// CHECK-NEXT:   levels     x86-64-v4, x86-64-v3, x86-64 (runs here)
// CHECK-NEXT:   workspace  {{.*}}

// attn-run compiles a model for this CPU.
// MODEL: levels {{.*}} (runs here){{$}}

// JSON: "functions":
// JSON: "bound": "S"
// JSON: "level": "x86-64{{.*}}",
// JSON-NEXT: "levels": [
// JSON: "name": "S"

// If this CPU supports no level of the library, the best level is described.
// NONE: levels x86-64-v4, x86-64-v3, x86-64; none runs here
// NONE: report {{.*}}: attention fused
// NULL: "level": null,

// LEVEL: attn-run: attend: level expected one of x86-64-v4, x86-64-v3, x86-64, got 'x86-64-v5'

func.func @attend(%x: tensor<3x?x8xf32> {attn.name = "x", attn.dims = ["", "S", ""]}, %lengths: tensor<3xi32> {attn.name = "lengths"})
    -> tensor<3x?x8xf32> attributes {attn.symbols = [#attn.symbol<"S", 0 to 512>]} {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<3x?x8xf32>
  %e = tensor.empty(%n) : tensor<3x?x8xf32>
  %r = attn.attention ins(%x, %x, %x : tensor<3x?x8xf32>, tensor<3x?x8xf32>, tensor<3x?x8xf32>)
      captures(%lengths : tensor<3xi32>) outs(%e : tensor<3x?x8xf32>) mask(#attn.lengths<0>) {
      indexing_maps = [affine_map<(b, q, k, d, e) -> (b, q, d)>, affine_map<(b, q, k, d, e) -> (b, k, d)>,
                       affine_map<(b, q, k, d, e) -> (b, k, e)>, affine_map<(b, q, k, d, e) -> (b)>,
                       affine_map<(b, q, k, d, e) -> (b, q, e)>],
      scale = 0.5 : f32} -> tensor<3x?x8xf32>
  return %r : tensor<3x?x8xf32>
}

func.func @add(%x: tensor<4xf32> {attn.name = "x"}, %y: tensor<4xf32> {attn.name = "y"},
               %a: tensor<4xf32> {attn.name = "w.0", attn.weight}, %b: tensor<4xf32> {attn.name = "w.1", attn.weight}) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.add ins(%x, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %1 = linalg.add ins(%y, %b : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %2 = linalg.add ins(%0, %1 : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
