// With --json, attn-run prints only JSON, which contains the figures of --benchmark for one caller or several
// concurrent callers.
// RUN: attnc %s -o %t.so --target=native
// RUN: attn-run %t.so --threads=2 --benchmark=0 --json | %python %S/Inputs/figures.py | FileCheck %s
// RUN: attn-run %t.so --threads=2 --benchmark=0 --json --concurrency=5 | %python %S/Inputs/figures.py | FileCheck %s --check-prefix=CALLERS
// RUN: attn-run %t.so --benchmark=0 --gflop=1 | FileCheck %s --check-prefix=TEXT
// RUN: attn-run %t.so --benchmark=0 --concurrency=5 | FileCheck %s --check-prefix=TEXT-CALLERS
// RUN: not attn-run %t.so --concurrency=2 2>&1 | FileCheck %s --check-prefix=ALONE

//      CHECK: calls_per_second concurrency cpu flops function level max_ms median_ms min_ms nanoseconds outputs p90_ms p99_ms peak_gflops repetitions schedules threads tiles_run tiles_skipped workspace_bytes
// CHECK-NEXT: ascending: True
// CHECK-NEXT: 3 calls of 1 callers
// CALLERS: ascending: True
// CALLERS-NEXT: 15 calls of 5 callers

// TEXT: f at level
// TEXT-NEXT: min {{[0-9.]+}} ms, median {{[0-9.]+}}, p90 {{[0-9.]+}}, p99 {{[0-9.]+}}, max {{[0-9.]+}} of 3 calls; workspace {{[0-9]+}} bytes; {{.+}} GFLOP/s, {{.+}}% of a core's FMA peak of {{.+}}; {{.+}}
// TEXT-CALLERS: of 15 calls by 5 callers, {{[0-9.]+}} calls per second
// ALONE: attn-run: expected --benchmark with --concurrency, got none
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
