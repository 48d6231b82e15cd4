//===- attn_kernel.h - the ABI between compiled code and the runtime -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The contract between code that attnc emits and the runtime that loads it. Applications use
// attn.h, not this file. A library is a set of constant C tables that one query function returns.
// Kernel code has no undefined symbols: attn_kernel_call passes everything that it needs.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_KERNEL_H
#define ATTN_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// This number is raised whenever a struct or a rule of this file changes its meaning.
#define ATTN_ABI_VERSION 8

/// Alignment in bytes of workspaces, of packed weights and of weights embedded in a library.
#define ATTN_ALIGNMENT 64

/// One unit of parallel work: `index` in [0, count), `worker` in [0, workers).
typedef void (*attn_task_fn)(void *context, int64_t index, int64_t worker);

/// Calls task(context, i, worker) once for every i in [0, count), in any order and in parallel; returns when all tasks
/// are done. Two tasks that run at the same time have different workers.
typedef void (*attn_parallel_for_fn)(void *pool, attn_task_fn task, void *context, int64_t count);

/// Starts `count` tasks of kernel number `kernel` of the variant; they run after the tasks of earlier launches.
/// `device` is the runtime's state of the call: it records a failure, and later launches then do nothing. `context` has
/// the arguments of the tasks, which are copied before the function returns.
typedef void (*attn_launch_fn)(void *device, int64_t kernel, int64_t count, const void *context);

/// Counts of one worker: the tiles of queries by keys whose scores it computed, and the tiles that it skipped because
/// of the mask. The struct fills a cache line, so that workers do not share a line.
typedef struct attn_tile_counts {
  int64_t run, skipped;
  int64_t reserved[6];
} attn_tile_counts;

/// One call of a compiled function. All pointers are valid during the call; the kernel writes to no
/// field.
typedef struct attn_kernel_call {
  void *const *inputs;  ///< one per input, compact row-major; in-out inputs alias nothing else
  void *const *outputs; ///< one per output, compact row-major, aliasing nothing else
  /// The packed tensors that the function reads, which attn_pack_fn wrote; null if the function has no weights.
  const void *const *weights;
  const int64_t *dims;  ///< the value of each symbol
  void *workspace;      ///< bytes[0] of attn_workspace_fn, aligned
  void *task_workspace; ///< workers x task_stride bytes, aligned
  int64_t task_stride;  ///< >= bytes[1] of attn_workspace_fn, a multiple of ATTN_ALIGNMENT
  attn_parallel_for_fn parallel_for;
  void *pool;              ///< first argument of parallel_for
  /// One per worker; the kernel adds to them. In a variant for a GPU: null, or one in the memory of the device, of
  /// which only `run` and `skipped` exist, and to which the kernels add atomically.
  attn_tile_counts *tiles;
  attn_launch_fn launch;   ///< null unless the variant has kernels
  void *device;            ///< first argument of launch
} attn_kernel_call;

typedef void (*attn_run_fn)(const attn_kernel_call *call);

/// Computes the workspace for these dims: bytes[0] per call, bytes[1] per worker.
typedef void (*attn_workspace_fn)(const int64_t *dims, int64_t bytes[2]);

/// Writes the packed form of `weights` (one pointer per weight, compact row-major) to `packed`.
typedef void (*attn_pack_fn)(const void *const *weights, void *packed);

/// One dimension. Its size is `size` if symbol < 0, and the value of that symbol otherwise.
typedef struct attn_dim_info {
  int64_t size;
  int32_t symbol;
  int32_t below; ///< only in attn_tensor_info.bound; 0 elsewhere
} attn_dim_info;

/// A step of a formula in postfix order: it pops its operands from a stack of integers and pushes
/// its result. Division rounds down; a condition gives 1 or 0.
typedef enum attn_formula_op {
  ATTN_FORMULA_NUMBER = 0, ///< `operand`
  ATTN_FORMULA_SYMBOL = 1, ///< the value of symbol `operand`
  ATTN_FORMULA_ADD = 2,
  ATTN_FORMULA_SUBTRACT = 3,
  ATTN_FORMULA_MULTIPLY = 4,
  ATTN_FORMULA_DIVIDE = 5,
  ATTN_FORMULA_MODULO = 6,
  ATTN_FORMULA_MAX = 7,
  ATTN_FORMULA_MIN = 8,
  ATTN_FORMULA_EQUAL = 9,
  ATTN_FORMULA_LESS = 10,
  ATTN_FORMULA_AT_MOST = 11,
  ATTN_FORMULA_NOT = 12,
  ATTN_FORMULA_AND = 13,
  ATTN_FORMULA_OR = 14
} attn_formula_op;

typedef struct attn_formula_step {
  int64_t operand;
  int32_t op; ///< attn_formula_op
  int32_t reserved;
} attn_formula_step;

/// The largest number of steps of a formula, and so the largest depth of the stack.
#define ATTN_FORMULA_STEPS 512

/// A named size that is known only at the call. All dimensions with the same symbol must have the
/// same size. Symbols without a formula come first. A symbol with a formula is computed from them:
/// it is a size of an output, or a condition of the call, whose range is [1, 1].
typedef struct attn_symbol_info {
  const char *name; ///< "x.0": axis 0 of x, the first argument with this size; or "2*x.0 + 1"
  int64_t min, max; ///< inclusive
  const attn_formula_step *formula; ///< null if an input has this size
  int32_t num_steps;
  int32_t is_condition;
} attn_symbol_info;

/// An input, output or weight. The element type is a code and bits, as in DLPack: kDLInt 0,
/// kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLBool 6.
typedef struct attn_tensor_info {
  const char *name;
  const attn_dim_info *shape;
  int32_t rank;
  uint8_t dtype_code, dtype_bits;
  /// Not 0: every element, such as a length or an index, must lie in [-below, bound]; checked on CPUs. `below` is the
  /// number bound.below if `bounded` is 1, and the value of symbol bound.below if `bounded` is 2.
  uint8_t bounded;
  uint8_t in_out; ///< 1: an input that the kernel also writes to
  attn_dim_info bound;
} attn_tensor_info;

/// A tensor in global memory from which a kernel copies boxes. The context contains the memref descriptor of the
/// tensor: two pointers, and then the offset, the sizes and the strides in elements, as 64-bit numbers. The runtime
/// reads only the second pointer, which points to the data. A box has `rows` elements in dimension `dim`, 128 bytes in
/// the last dimension, and one element in the other dimensions. In shared memory, the rows of a box lie one after the
/// other, and the 16-byte units of a row have the order of 128-byte swizzling (PTX manual).
typedef struct attn_tensor_map_info {
  int64_t offset; ///< byte offset of the descriptor in the context
  int32_t rank, dim, rows, element_bytes;
} attn_tensor_map_info;

/// The largest number of dimensions of such a tensor, and the largest number of tensor maps of a kernel.
#define ATTN_TENSOR_MAP_RANK 5
#define ATTN_TENSOR_MAPS 32

/// A task of a function that runs on a GPU: a kernel whose parameters are the context and a CUtensorMap for each of
/// `maps`.
typedef struct attn_kernel_info {
  const char *name;      ///< name in the image
  int64_t threads;       ///< threads of a block; the grid is one-dimensional
  int64_t shared_bytes;  ///< size of dynamic shared memory
  int64_t context_bytes; ///< size of the context
  int32_t num_maps;
  /// If this is 0, a block runs one task. Otherwise, the runtime launches at most so many blocks for each multiprocessor,
  /// and each block runs several tasks. A runtime that launches a block for each task is right, too.
  int32_t blocks;
  const attn_tensor_map_info *maps;
} attn_kernel_info;

/// The code of one function for one ISA level.
typedef struct attn_variant_info {
  const char *level; ///< such as "x86-64-v3" or "sm_80"
  /// LLVM's names of the features that a machine must have to run the code, with one space between them. A runtime
  /// refuses code that needs a feature whose name it does not recognise.
  const char *features;
  attn_run_fn run;
  attn_workspace_fn workspace;
  attn_pack_fn pack; ///< null if the function has no weights
  int64_t packed_bytes;
  uint64_t packed_hash;       ///< identifies the packed layout: equal hashes mean equal layouts
  const char *workspace_text; ///< the formula of attn_workspace_fn, for people
  const char *report;         ///< what was fused and how, in lines of text
  const char *schedules;      ///< of all attentions, in order, such as "per-head, unfused"
  /// The kind of device that holds inputs, outputs, weights and workspaces, as in DLPack: kDLCPU 1, kDLCUDA 2. In a
  /// variant for kDLCUDA, `features` names the compute capability, such as sm_80; `run`, `workspace` and `pack` run on
  /// the CPU.
  int32_t device_type;
  int32_t num_kernels;
  const attn_kernel_info *kernels;
  /// The kernels of all functions: PTX that ends with a zero, or a fat binary of CUDA.
  const char *image;
  /// The first `num_packed` tensors that `pack` writes are those that `run` reads, the others are intermediate.
  /// packed_offsets has the offset in bytes of each of them, and the end of the last one.
  const int64_t *packed_offsets;
  int32_t num_packed, reserved;
} attn_variant_info;

typedef struct attn_function_info {
  const char *name;
  int32_t num_inputs, num_outputs, num_weights, num_symbols, num_variants, reserved;
  const attn_tensor_info *inputs, *outputs, *weights;
  const attn_symbol_info *symbols;
  const attn_variant_info *variants; ///< best level first: the first that the machine runs is used
  /// The elements of each weight, compact row-major; null if the library does not contain them.
  const void *const *embedded;
} attn_function_info;

typedef struct attn_library_info {
  uint32_t abi_version;  ///< first, so that any runtime can read it
  uint32_t struct_bytes; ///< sizeof(attn_library_info) in the compiler that wrote the library
  const char *name;
  const char *compiler; ///< "attn 1.2.3"
  const char *manifest; ///< JSON, for people and tools
  int32_t num_functions, reserved;
  const attn_function_info *functions;
} attn_library_info;

/// Objects and archives export this function as attn_query_<library>; a shared library also exports
/// it as attn_query.
typedef const attn_library_info *(*attn_query_fn)(void);

#ifdef __cplusplus
}
#endif

#endif // ATTN_KERNEL_H
