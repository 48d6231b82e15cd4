// After a call, attn-run prints the function, the ISA level, and figures of the outputs. --json prints one object.
// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/f.so --target=x86-64
// RUN: %python %S/../error/npy.py %t/x.npy '<f4' 2x3 0 1 -2 3 nan inf
// RUN: attn-run %t/f.so --input=%t/x.npy | FileCheck %s --match-full-lines
// RUN: attn-run %t/f.so --input=%t/x.npy --threads=2 | FileCheck %s --check-prefix=TASKS
// RUN: attn-run %t/f.so --input=%t/x.npy --output-dir=%t --expect=%t/x.npy --json | %python -m json.tool | FileCheck %s --check-prefix=JSON
// RUN: attn-run %t/f.so --input=%t/x.npy --output-dir=%t --expect=%t/x.npy --json | count 1

// CHECK: f at level x86-64: y: f32[2, 3], mean 0.5, largest 3, 2 not finite
// CHECK-NOT: {{.}}
// TASKS: f at level
// TASKS-NEXT: tasks of each worker: {{[0-9]+ [0-9]+$}}
//      JSON: "function": "f",
// JSON-NEXT: "level": "x86-64",
// JSON: "error": 0,
// JSON-NEXT: "largest": 3,
// JSON-NEXT: "mean": 0.5,
// JSON-NEXT: "name": "y",
// JSON-NEXT: "not_finite": 2,
func.func @f(%x: tensor<2x3xf32>) -> (tensor<2x3xf32> {attn.name = "y"}) {
  %e = tensor.empty() : tensor<2x3xf32>
  %r = linalg.copy ins(%x : tensor<2x3xf32>) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
