//===- kernel.c - a library like those of attnc, written by hand ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   forward(x [B, S, 4], residual [B, S, 4], lengths i32 [B] in [0, S]) with scale [4], bias [4]:
//     y [B, S, 4] = x * scale + bias + residual where s < lengths[b], else 0;  total [B] = sum of y
//   halve(ids i64 [N] in [0, 9]): y [N] = ids / 2
//   sized(a [A], b [B]), if A != B and another condition on A and B holds: y [2*A - B] = 0, 1, ..
//   append(row [4], at i64 [1] in [0, 7], cache [8, 4] in-out, sums [8] in-out):
//     y [4] = cache[at];  then cache[at] = row;  sums[at] += sum of row
//
// forward exists at every level, with embedded weights. The lowest level has its own layout of packed weights.
//
//===----------------------------------------------------------------------===//

#include "attn_kernel.h"

#include <stddef.h>

#ifndef ABI_VERSION
#define ABI_VERSION ATTN_ABI_VERSION
#endif

static inline void forward_row(const attn_kernel_call *call, int64_t b, int64_t worker,
                               int64_t scale_stride, int64_t bias_offset) {
  int64_t rows = call->dims[1];
  const float *x = (const float *)call->inputs[0] + b * rows * 4;
  const float *residual = (const float *)call->inputs[1] + b * rows * 4;
  int64_t length = ((const int32_t *)call->inputs[2])[b];
  const float *weights = call->weights[0];
  float *y = (float *)call->outputs[0] + b * rows * 4;
  float *row = (float *)((char *)call->task_workspace + worker * call->task_stride);
  float total = 0;
  for (int64_t i = 0; i < rows * 4; ++i) {
    int64_t c = i % 4;
    row[i] = i / 4 < length ? x[i] * weights[c * scale_stride] +
                                  weights[c * scale_stride + bias_offset] + residual[i]
                            : 0;
  }
  for (int64_t i = 0; i < rows * 4; ++i)
    total += y[i] = row[i];
  ((float *)call->workspace)[b] = total;
  // Each row counts as a tile.
  call->tiles[worker].run += length;
  call->tiles[worker].skipped += rows - length;
}

static void forward_task(void *call, int64_t b, int64_t worker) {
  forward_row(call, b, worker, 1, 4);
}

static void forward_task_interleaved(void *call, int64_t b, int64_t worker) {
  forward_row(call, b, worker, 2, 1);
}

static void forward_with(const attn_kernel_call *call, attn_task_fn task) {
  call->parallel_for(call->pool, task, (void *)call, call->dims[0]);
  for (int64_t b = 0; b < call->dims[0]; ++b)
    ((float *)call->outputs[1])[b] = ((const float *)call->workspace)[b];
}

static void forward(const attn_kernel_call *call) { forward_with(call, forward_task); }

static void forward_interleaved(const attn_kernel_call *call) {
  forward_with(call, forward_task_interleaved);
}

static void forward_workspace(const int64_t *dims, int64_t bytes[2]) {
  bytes[0] = 4 * dims[0];
  bytes[1] = 16 * dims[1];
}

/// Each function with weights has one packed tensor.
static const int64_t packed_offsets[] = {0, 32}, table_offsets[] = {0, 16};

static void pack(const void *const *weights, void *packed) {
  for (int i = 0; i < 8; ++i)
    ((float *)packed)[i] = ((const float *)weights[i / 4])[i % 4];
}

static void pack_interleaved(const void *const *weights, void *packed) {
  for (int i = 0; i < 8; ++i)
    ((float *)packed)[i] = ((const float *)weights[i % 2])[i / 2];
}

static void pack_table(const void *const *weights, void *packed) {
  for (int i = 0; i < 4; ++i)
    ((int32_t *)packed)[i] = ((const int32_t *)weights[0])[i];
}

static void halve(const attn_kernel_call *call) {
  for (int64_t i = 0; i < call->dims[0]; ++i)
    ((float *)call->outputs[0])[i] = (float)((const int64_t *)call->inputs[0])[i] / 2;
}

static void count(const attn_kernel_call *call) {
  for (int64_t i = 0; i < call->dims[2]; ++i)
    ((float *)call->outputs[0])[i] = (float)i;
}

static void halve_workspace(const int64_t *dims, int64_t bytes[2]) {
  // For size 1000, the workspace is larger than any memory.
  bytes[0] = dims[0] == 1000 ? INT64_MAX : 0;
  bytes[1] = 0;
}

static void append(const attn_kernel_call *call) {
  int64_t at = ((const int64_t *)call->inputs[1])[0];
  for (int i = 0; i < 4; ++i) {
    float *element = (float *)call->inputs[2] + at * 4 + i;
    ((float *)call->outputs[0])[i] = *element;
    *element = ((const float *)call->inputs[0])[i];
    ((float *)call->inputs[3])[at] += *element;
  }
}

static void append_workspace(const int64_t *dims, int64_t bytes[2]) {
  (void)dims;
  bytes[0] = bytes[1] = 0;
}

static const float scale[] = {1, 2, 3, 4}, bias[] = {5, 6, 7, 8};
static const void *const forward_embedded[] = {scale, bias};
static const int32_t table[] = {1, 2, 10, 3};
static const void *const bounded_embedded[] = {table};

#define FLOAT .dtype_code = 2, .dtype_bits = 32
#define FIXED(n)                                                                                   \
  { n, -1, 0 }
#define SYMBOL(i)                                                                                  \
  { 0, i, 0 }

static const attn_dim_info bsc[] = {SYMBOL(0), SYMBOL(1), FIXED(4)}, c[] = {FIXED(4)},
                           first[] = {SYMBOL(0)};
static const attn_symbol_info forward_symbols[] = {{"x.0", 0, 1000, NULL, 0, 0},
                                                   {"x.1", 0, 64, NULL, 0, 0}};
static const attn_symbol_info halve_symbols[] = {{"n", 1, INT64_MAX, NULL, 0, 0}};

#define STEP(op, operand)                                                                          \
  { operand, ATTN_FORMULA_##op, 0 }
static const attn_formula_step length[] = {STEP(NUMBER, 2), STEP(SYMBOL, 0), STEP(MULTIPLY, 0),
                                           STEP(SYMBOL, 1), STEP(SUBTRACT, 0)};
static const attn_formula_step differ[] = {STEP(SYMBOL, 0), STEP(SYMBOL, 1), STEP(EQUAL, 0),
                                           STEP(NOT, 0)};
// b == 1 or a % b == 0 and max(a // b, min(a, b) + 1) <= 1000 and not b < -1
static const attn_formula_step divides[] = {
    STEP(SYMBOL, 1), STEP(NUMBER, 1),  STEP(EQUAL, 0),     STEP(SYMBOL, 0),  STEP(SYMBOL, 1),
    STEP(MODULO, 0), STEP(NUMBER, 0),  STEP(EQUAL, 0),     STEP(SYMBOL, 0),  STEP(SYMBOL, 1),
    STEP(DIVIDE, 0), STEP(SYMBOL, 0),  STEP(SYMBOL, 1),    STEP(MIN, 0),     STEP(NUMBER, 1),
    STEP(ADD, 0),    STEP(MAX, 0),     STEP(NUMBER, 1000), STEP(AT_MOST, 0), STEP(AND, 0),
    STEP(SYMBOL, 1), STEP(NUMBER, -1), STEP(LESS, 0),      STEP(NOT, 0),     STEP(AND, 0),
    STEP(OR, 0)};
#define COUNT(array) (int32_t)(sizeof(array) / sizeof *(array))
static const attn_symbol_info sized_symbols[] = {
    {"a", 0, INT64_MAX, NULL, 0, 0},
    {"b", 0, INT64_MAX, NULL, 0, 0},
    {"2*a - b", 0, INT64_MAX, length, COUNT(length), 0},
    {"a != b", 1, 1, differ, COUNT(differ), 1},
    {"b == 1 or ..", 1, 1, divides, COUNT(divides), 1}};

static const attn_tensor_info forward_inputs[] = {
    {"x", bsc, 3, FLOAT},
    {"residual", bsc, 3, FLOAT},
    {"lengths", first, 1, 0, 32, .bounded = 1, .bound = SYMBOL(1)}};
static const attn_tensor_info forward_outputs[] = {{"y", bsc, 3, FLOAT},
                                                   {"total", first, 1, FLOAT}};
static const attn_tensor_info forward_weights[] = {{"scale", c, 1, FLOAT}, {"bias", c, 1, FLOAT}};
static const attn_tensor_info halve_inputs[] = {
    {"ids", first, 1, 0, 64, .bounded = 1, .bound = FIXED(9)}};
// attnc never writes a bound for booleans.
static const attn_tensor_info bounded_inputs[] = {
    {"mask", first, 1, 6, 8, .bounded = 1, .bound = FIXED(9)}};
static const attn_tensor_info signed_inputs[] = {
    {"wide", first, 1, 0, 64, .bounded = 2, .bound = {3, -1, 0}}, // from minus symbol 0 to 3
    {"byte", first, 1, 0, 8, .bounded = 1, .bound = {9, -1, 3}},
    {"unsigned", first, 1, 1, 8, .bounded = 1, .bound = FIXED(200)},
    {"short", first, 1, 0, 16, .bounded = 1, .bound = {9, -1, -2}}};
static const attn_tensor_info bounded_weights[] = {
    {"table", c, 1, 0, 32, .bounded = 1, .bound = FIXED(9)}};
static const attn_dim_info cache[] = {FIXED(8), FIXED(4)}, one[] = {FIXED(1)};
static const attn_tensor_info append_inputs[] = {
    {"row", c, 1, FLOAT},
    {"at", one, 1, 0, 64, .bounded = 1, .bound = FIXED(7)},
    {"cache", cache, 2, FLOAT, .in_out = 1},
    {"sums", cache, 1, FLOAT, .in_out = 1}};
static const attn_tensor_info append_outputs[] = {{"y", c, 1, FLOAT}};
static const attn_tensor_info halve_outputs[] = {{"y", first, 1, FLOAT}};
static const attn_dim_info second[] = {SYMBOL(1)}, third[] = {SYMBOL(2)};
static const attn_tensor_info sized_inputs[] = {{"a", first, 1, FLOAT}, {"b", second, 1, FLOAT}};
static const attn_tensor_info sized_outputs[] = {{"y", third, 1, FLOAT}};

/// The last fields of a variant for CPUs: the device type kDLCPU, no kernels, and the packed tensors.
#define CPU_WITH(offsets, count) 1, 0, NULL, NULL, offsets, count, 0
#define CPU CPU_WITH(NULL, 0)
#define VARIANT(level, features)                                                                   \
  {                                                                                                \
    level, features, forward, forward_workspace, pack, 32, 1, "4*B + workers*16*S", "fused\n",     \
        "per-head", CPU_WITH(packed_offsets, 1)                                                                          \
  }
#define V2 "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3"
#define V3 V2 " avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
#define V4 V3 " avx512bw avx512cd avx512dq avx512f avx512vl"

static const attn_variant_info forward_variants[] = {
    VARIANT("of-another-cpu", "of-the-future"),
#if defined __x86_64__
    VARIANT("x86-64-v4-bf16", V4 " avx512bf16"),
    VARIANT("x86-64-v4", V4),
    VARIANT("x86-64-v3", V3),
    VARIANT("x86-64-v2", V2),
    {"x86-64", "", forward_interleaved, forward_workspace, pack_interleaved, 32, 2, "as above", "",
     "whole-scores", CPU_WITH(packed_offsets, 1)},
#else
    {"aarch64", "neon", forward_interleaved, forward_workspace, pack_interleaved, 32, 2, "as above",
     "", "whole-scores", CPU_WITH(packed_offsets, 1)},
#endif
};
static const attn_variant_info halve_variants[] = {
#if defined __x86_64__
    {"x86-64", "", halve, halve_workspace, NULL, 0, 0, "0", "", "", CPU},
#else
    {"aarch64", "neon", halve, halve_workspace, NULL, 0, 0, "0", "", "", CPU},
#endif
};
static const attn_variant_info append_variants[] = {
#if defined __x86_64__
    {"x86-64", "", append, append_workspace, NULL, 0, 0, "0", "", "", CPU},
#else
    {"aarch64", "neon", append, append_workspace, NULL, 0, 0, "0", "", "", CPU},
#endif
};
static const attn_variant_info packed_halve_variants[] = {
#if defined __x86_64__
    {"x86-64", "", halve, halve_workspace, pack_table, 16, 3, "0", "", "", CPU_WITH(table_offsets, 1)},
#else
    {"aarch64", "neon", halve, halve_workspace, pack_table, 16, 3, "0", "", "", CPU_WITH(table_offsets, 1)},
#endif
};
static const attn_variant_info sized_variants[] = {
#if defined __x86_64__
    {"x86-64", "", count, halve_workspace, NULL, 0, 0, "0", "", "", CPU},
#else
    {"aarch64", "neon", count, halve_workspace, NULL, 0, 0, "0", "", "", CPU},
#endif
};
static const attn_variant_info foreign_variants[] = {VARIANT("of-another-cpu", "of-the-future")};

static const attn_function_info functions[] = {
    {"forward", 3, 2, 2, 2, COUNT(forward_variants), 0, forward_inputs, forward_outputs,
     forward_weights, forward_symbols, forward_variants, forward_embedded},
    {"halve", 1, 1, 0, 1, 1, 0, halve_inputs, halve_outputs, NULL, halve_symbols, halve_variants,
     NULL},
    {"foreign", 3, 2, 2, 2, 1, 0, forward_inputs, forward_outputs, forward_weights, forward_symbols,
     foreign_variants, NULL},
    {"crowded", 200, 100, 0, 0, 1, 0, NULL, NULL, NULL, NULL, foreign_variants, NULL},
    {"symbolic", 1, 1, 0, 300, 1, 0, halve_inputs, halve_outputs, NULL, NULL, foreign_variants,
     NULL},
    {"sized", 2, 1, 0, COUNT(sized_symbols), 1, 0, sized_inputs, sized_outputs, NULL, sized_symbols,
     sized_variants, NULL},
    // The symbol of this function is a size of its output, but not of an input.
    {"unbound", 0, 1, 0, 1, 1, 0, NULL, halve_outputs, NULL, halve_symbols, halve_variants, NULL},
    {"bounded", 1, 1, 0, 1, 1, 0, bounded_inputs, halve_outputs, NULL, halve_symbols,
     halve_variants, NULL},
    {"signed", 4, 1, 0, 1, 1, 0, signed_inputs, halve_outputs, NULL, halve_symbols, halve_variants,
     NULL},
    {"bounded_weights", 1, 1, 1, 1, 1, 0, halve_inputs, halve_outputs, bounded_weights,
     halve_symbols, packed_halve_variants, NULL},
    // attnc would not write this library: the embedded weight 10 is above the bound 9.
    {"bounded_embedded", 1, 1, 1, 1, 1, 0, halve_inputs, halve_outputs, bounded_weights,
     halve_symbols, packed_halve_variants, bounded_embedded},
    {"append", 4, 1, 0, 0, 1, 0, append_inputs, append_outputs, NULL, NULL, append_variants, NULL},
};

static const attn_library_info library = {
    ABI_VERSION, sizeof(attn_library_info), "kernel", "by hand",
    "{}",        COUNT(functions),          0,        functions};

const attn_library_info *attn_query_kernel(void) { return &library; }
const attn_library_info *attn_query(void) { return &library; }
