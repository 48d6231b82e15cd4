//===- attn.h - load, query and call what attnc compiled ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Three objects: a function is code for one target level, immutable; weights are packed once,
// shared, and swapped whole; a call brings everything else. Objects may be used by any number of
// threads at once and released in any order.
//
//   attn_library_load("layer.so", &library);
//   attn_function_create(library, "forward", NULL, &forward);
//   attn_weights_load(forward, "layer.safetensors", &weights);
//   attn_call(forward, weights, inputs, 2, outputs, 1, NULL);
//
// Functions that can fail return a status; attn_last_error() then says what was expected and what
// was given, and nothing was written. Structs that start with `size` may grow at their end: set it
// to their sizeof and the rest to zero, which is the default of every field.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_H
#define ATTN_H

#include <stddef.h>
#include <stdint.h>

// Tensors are DLPack's. Where its header is not installed, or ATTN_OWN_DLPACK is defined, the part
// used here is declared below; a dlpack.h kept elsewhere goes before this header.
#if !defined DLPACK_DLPACK_H_ && !defined ATTN_OWN_DLPACK && defined __has_include
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1 } DLDeviceType;
typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 } DLDataTypeCode;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef struct {
  uint8_t code; ///< DLDataTypeCode
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;     ///< in elements; null: compact row-major
  uint64_t byte_offset; ///< from data to the first element
} DLTensor;
#endif

#if defined __GNUC__
#define ATTN_API __attribute__((visibility("default")))
#else
#define ATTN_API
#endif

typedef struct attn_library attn_library;
typedef struct attn_function attn_function;
typedef struct attn_weights attn_weights;
typedef struct attn_pool attn_pool;

//===-- Errors ------------------------------------------------------------===//

typedef enum attn_status {
  ATTN_OK = 0,
  ATTN_ERROR_USAGE = 1,      ///< a null handle, an index out of range, an option without meaning
  ATTN_ERROR_RESOURCE = 2,   ///< the system gave no memory or no thread
  ATTN_ERROR_LIBRARY = 3,    ///< not a file, not an attn library, or one of another ABI version
  ATTN_ERROR_NAME = 4,       ///< no function or weight of that name, or a name given twice
  ATTN_ERROR_LEVEL = 5,      ///< a level that the library lacks or that this CPU cannot run
  ATTN_ERROR_COUNT = 6,      ///< too few or too many inputs, outputs or weights
  ATTN_ERROR_NULL = 7,       ///< a null tensor, shape or data
  ATTN_ERROR_DEVICE = 8,     ///< a tensor that is not in CPU memory
  ATTN_ERROR_DTYPE = 9,      ///< another element type, or more than one lane
  ATTN_ERROR_RANK = 10,      ///< another number of dimensions
  ATTN_ERROR_SHAPE = 11,     ///< a size that is wrong, out of range, or at odds with another
  ATTN_ERROR_STRIDE = 12,    ///< not compact row-major
  ATTN_ERROR_ALIGNMENT = 13, ///< data not aligned to its element size
  ATTN_ERROR_OVERLAP = 14, ///< what is written or the workspace shares memory with another argument
  ATTN_ERROR_VALUE = 15,   ///< an element out of range, such as a length beyond the sequence
  ATTN_ERROR_WEIGHTS = 16, ///< weights absent, unexpected, or packed for other code
  ATTN_ERROR_WORKSPACE = 17, ///< workspace too small, misaligned, or beyond 2^63 bytes
  ATTN_ERROR_FILE = 18       ///< a file that cannot be read or written, or is not what it should be
} attn_status;

/// What the last failure on this thread was, as in "forward: argument 'x' expected rank 3, got 2".
/// Valid until the next failure on this thread; "" before the first.
ATTN_API const char *attn_last_error(void);

/// Called on the failing thread at each failure. `user_data` is that of the attn_call_options, and
/// null outside attn_call.
typedef void (*attn_error_fn)(attn_status status, const char *message, void *user_data);

/// One handler for the process; null, the default: none.
ATTN_API void attn_set_error_handler(attn_error_fn handler);

/// The version of the runtime: "0.1.0".
ATTN_API const char *attn_version(void);

//===-- Memory ------------------------------------------------------------===//

/// Where the runtime takes memory from: objects, packed weights, and workspaces that callers leave
/// to it. Called by any thread.
typedef struct attn_allocator {
  size_t size;
  /// `bytes` > 0 aligned to `alignment`, a power of two; null where there are none left.
  void *(*allocate)(size_t bytes, size_t alignment, void *user_data);
  /// As it was allocated.
  void (*release)(void *memory, size_t bytes, size_t alignment, void *user_data);
  void *user_data;
} attn_allocator;

/// For the process, while no object of this interface exists. Null: the C library's again.
ATTN_API attn_status attn_set_allocator(const attn_allocator *allocator);

//===-- Libraries ---------------------------------------------------------===//

/// Opens the shared library at `path`. This runs its code: never load a stranger's.
ATTN_API attn_status attn_library_load(const char *path, attn_library **library);

/// The same for code linked into the program: pass its attn_query_<library>.
typedef const struct attn_library_info *(*attn_query_fn)(void);
ATTN_API attn_status attn_library_from_query(attn_query_fn query, attn_library **library);

/// Unloads the library once its functions and weights are released too. Null is ignored, here and
/// in every other release function.
ATTN_API void attn_library_release(attn_library *library);

ATTN_API const char *attn_library_name(const attn_library *library);
ATTN_API const char *attn_library_compiler(const attn_library *library); ///< "attn 0.1.0"
ATTN_API const char *attn_library_manifest(const attn_library *library); ///< JSON
ATTN_API int32_t attn_library_num_functions(const attn_library *library);

/// Null where `index` is not in [0, attn_library_num_functions).
ATTN_API const char *attn_library_function_name(const attn_library *library, int32_t index);

//===-- Functions ---------------------------------------------------------===//

typedef struct attn_function_options {
  size_t size;
  /// "x86-64-v3": that code. Null: what the environment variable ATTN_LEVEL names, or else the best
  /// that this CPU runs.
  const char *level;
} attn_function_options;

/// `options` may be null.
ATTN_API attn_status attn_function_create(attn_library *library, const char *name,
                                          const attn_function_options *options,
                                          attn_function **function);

/// Not while a call uses it.
ATTN_API void attn_function_release(attn_function *function);

ATTN_API const char *attn_function_name(const attn_function *function);
ATTN_API const char *attn_function_level(const attn_function *function); ///< the one chosen
ATTN_API const char *
attn_function_report(const attn_function *function); ///< what was fused, and how

/// The kernel's workspace as a formula of the symbols, for people: a call needs what
/// attn_workspace_size says, which is rounded up and counts tiles.
ATTN_API const char *attn_function_workspace_formula(const attn_function *function);

ATTN_API int32_t attn_function_num_levels(const attn_function *function);

/// The levels that the library holds, best first. Null where `index` is not in
/// [0, attn_function_num_levels).
ATTN_API const char *attn_function_level_name(const attn_function *function, int32_t index);

/// A size in elements. A symbol is a size known at the call only; where a name occurs twice the
/// sizes must agree. Where a size of an output follows from several, the name is a formula of theirs,
/// such as "2*x.1 + 1".
typedef struct attn_dim {
  const char *symbol; ///< null: static, and min == max
  int64_t min, max;   ///< inclusive
} attn_dim;

typedef enum attn_role { ATTN_INPUT = 0, ATTN_OUTPUT = 1, ATTN_WEIGHT = 2 } attn_role;

typedef struct attn_argument {
  size_t size;
  const char *name;
  DLDataType dtype;
  int32_t rank;
  int32_t bounded; ///< 1: every element must lie in [0, bound]
  attn_dim bound;
  int32_t in_out; ///< of an input, 1: a call writes to it too, and its caller keeps it for the next
  int32_t reserved;
} attn_argument;

ATTN_API int32_t attn_function_num_arguments(const attn_function *function, attn_role role);

/// Fills `argument`, whose size the caller has set.
ATTN_API attn_status attn_function_argument(const attn_function *function, attn_role role,
                                            int32_t index, attn_argument *argument);

/// Dimension `axis` of an argument.
ATTN_API attn_status attn_function_dim(const attn_function *function, attn_role role, int32_t index,
                                       int32_t axis, attn_dim *dim);

/// The symbols of the inputs.
ATTN_API int32_t attn_function_num_symbols(const attn_function *function);
ATTN_API attn_status attn_function_symbol(const attn_function *function, int32_t index,
                                          attn_dim *symbol);

//===-- Weights -----------------------------------------------------------===//

/// Packs the named tensors, in any order, for the level of `function`; they may be freed
/// afterwards. Every weight of the function must be there, and no other.
ATTN_API attn_status attn_weights_create(const attn_function *function, const char *const *names,
                                         const DLTensor *const *tensors, int32_t count,
                                         attn_weights **weights);

/// The same from a safetensors file, such as the one that attnc writes beside a library.
ATTN_API attn_status attn_weights_load(const attn_function *function, const char *path,
                                       attn_weights **weights);

/// The same from what `attnc --embed-weights` put into the library.
ATTN_API attn_status attn_weights_create_embedded(const attn_function *function,
                                                  attn_weights **weights);

/// Writes the packed weights to a file for attn_weights_map. One of that name is replaced whole;
/// whoever has mapped it keeps what it held.
ATTN_API attn_status attn_weights_save(const attn_weights *weights, const char *path);

/// Uses packed weights where they lie in a file, which processes share and which must not be
/// written to. They must have been packed for the same function and level.
ATTN_API attn_status attn_weights_map(const attn_function *function, const char *path,
                                      attn_weights **weights);

typedef struct attn_weights_info {
  size_t size;
  int64_t bytes;        ///< packed
  uint64_t source_hash; ///< of the tensors that were packed: differs where they differ
  int32_t mapped;       ///< 1: the memory is a file's
  int32_t reserved;
} attn_weights_info;

/// Fills `info`, whose size the caller has set.
ATTN_API attn_status attn_weights_describe(const attn_weights *weights, attn_weights_info *info);

/// Exchanges what both handles hold. Calls may go on with `weights`: each uses one of the two sets
/// for all of it, and those that begin after the return use the new one. Returns when no call uses
/// the former set, which `other`, that nobody may use meanwhile, then holds. Both must be packed
/// for the same function and level. Not from inside a task or an error handler, which are parts of a
/// call; nor in a child of fork() if another thread was in a call or a swap.
ATTN_API attn_status attn_weights_swap(attn_weights *weights, attn_weights *other);

/// Not while a call uses them.
ATTN_API void attn_weights_release(attn_weights *weights);

//===-- Threads -----------------------------------------------------------===//

/// One unit of parallel work: `index` in [0, count), `worker` in [0, workers).
typedef void (*attn_task_fn)(void *context, int64_t index, int64_t worker);

/// Calls task(context, i, worker) once for every i in [0, count), in any order and in parallel;
/// returns when all are done. No two tasks that run at the same time are given the same worker.
/// Indices near each other share data: fastest is a worker that gets neighbours, the same ones in
/// every loop.
typedef void (*attn_parallel_for_fn)(void *pool, attn_task_fn task, void *context, int64_t count);

/// `workers` counts the calling thread; 0: as many as this process has CPUs, by its affinity and
/// its control groups. Who waits spins, then sleeps: after some milliseconds while a loop runs, a
/// tenth of one after it. A child of fork() gets workers of its own at its first loop, unless it
/// was forked inside a task.
ATTN_API attn_status attn_pool_create(int64_t workers, attn_pool **pool);

/// Not while a loop runs.
ATTN_API void attn_pool_release(attn_pool *pool);
ATTN_API int64_t attn_pool_workers(const attn_pool *pool);

/// An attn_parallel_for_fn. A loop that finds the pool busy, from another thread or from one of its
/// own tasks, runs on the calling thread.
ATTN_API void attn_pool_parallel_for(void *pool, attn_task_fn task, void *context, int64_t count);

//===-- Calls -------------------------------------------------------------===//

/// Filled by a call that succeeds.
typedef struct attn_statistics {
  size_t size;
  int64_t nanoseconds;     ///< from entry to return
  int64_t workspace_bytes; ///< what the call needed
  const char *level;
  int64_t *worker_tasks; ///< null, or room for a count per worker: how many tasks each ran
  const char *schedules; ///< of the attentions, in order: "per-head, whole-scores"
  int64_t tiles_run;     ///< tiles of queries by keys whose scores were computed in loops over keys
  int64_t tiles_skipped; ///< tiles that the mask left out of them
} attn_statistics;

typedef struct attn_call_options {
  size_t size;
  void *workspace; ///< aligned to 64 bytes; null: the function keeps memory of its own
  int64_t workspace_bytes;
  attn_parallel_for_fn parallel_for; ///< null: the calling thread does all
  void *pool;                        ///< its first argument
  int64_t workers; ///< its workers; may be 0 for attn_pool_parallel_for, which knows
  void *stream;    ///< reserved, null
  attn_statistics *statistics;
  void *user_data;     ///< for the error handler
  int32_t skip_checks; ///< 1: tensors and their values are what the signature says, unchecked
  int32_t reserved;
} attn_call_options;

/// Runs the function. Inputs and outputs come in the order of the signature: compact row-major CPU
/// tensors, aligned to their element size, outputs and in-out inputs apart from everything else. All
/// of it is checked before the first store. `weights` is null where the function has none; `options` may be null.
ATTN_API attn_status attn_call(attn_function *function, const attn_weights *weights,
                               const DLTensor *const *inputs, int32_t num_inputs,
                               const DLTensor *const *outputs, int32_t num_outputs,
                               const attn_call_options *options);

/// Writes the shape of output `index` for these inputs to `shape`, which has room for its rank.
/// Only dtypes and shapes of the inputs are read: their data may be null.
ATTN_API attn_status attn_output_shape(const attn_function *function, const DLTensor *const *inputs,
                                       int32_t num_inputs, int32_t index, int64_t *shape);

typedef struct attn_workspace {
  size_t size;
  int64_t per_call;   ///< bytes
  int64_t per_worker; ///< bytes
  int64_t total;      ///< bytes: per_call + workers x per_worker, the workspace_bytes of a call
} attn_workspace;

/// Fills `workspace` for a call with these inputs, read as above, and `workers` >= 1.
ATTN_API attn_status attn_workspace_size(const attn_function *function,
                                         const DLTensor *const *inputs, int32_t num_inputs,
                                         int64_t workers, attn_workspace *workspace);

#ifdef __cplusplus
}
#endif

#endif // ATTN_H
