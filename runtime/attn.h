//===- attn.h - load, query and call compiled functions -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A function is immutable code for one ISA level ("level" below): the instruction set of a CPU or a
// GPU, such as x86-64-v3 or sm_80. Weights are packed once, can be shared by calls and are replaced as a whole.
// Everything else is an argument of the call. Any number of threads may use an object at the same time. Objects may be
// released in any order.
//
//   attn_library_load("layer.so", &library);
//   attn_function_create(library, "forward", NULL, &forward);
//   attn_weights_load(forward, "layer.safetensors", &weights);
//   attn_call(forward, weights, inputs, 2, outputs, 1, NULL);
//
// Each C function below that can fail returns a status. After an error, no output was written, unless the launch of a
// kernel on a GPU failed. attn_last_error() says what was expected and what was given.
// A struct that starts with `size` may get more fields at its end in later versions: set `size` to the sizeof of the
// struct, and the fields that you do not use to zero, the default of every field.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_H
#define ATTN_H

#include <stddef.h>
#include <stdint.h>

// Tensors are those of DLPack. If <dlpack/dlpack.h> is not installed, or if ATTN_OWN_DLPACK is
// defined, this header declares the part of DLPack that it uses. Include a dlpack.h from another
// place before this header.
#if !defined DLPACK_DLPACK_H_ && !defined ATTN_OWN_DLPACK && defined __has_include
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1, kDLCUDA = 2 } DLDeviceType;
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
  ATTN_ERROR_USAGE = 1,      ///< a null handle, an index out of range, an invalid option
  ATTN_ERROR_RESOURCE = 2,   ///< no memory, or no thread could be started
  ATTN_ERROR_LIBRARY = 3,    ///< not a file, not an attn library, or one of another ABI version
  ATTN_ERROR_NAME = 4,       ///< no function or weight of that name, or a name given twice
  ATTN_ERROR_LEVEL = 5,      ///< a level that the library lacks or that the device cannot run
  ATTN_ERROR_COUNT = 6,      ///< too few or too many inputs, outputs or weights
  ATTN_ERROR_NULL = 7,       ///< a null tensor, shape or data
  ATTN_ERROR_DEVICE = 8,     ///< a tensor or a context on a device other than that of the function
  ATTN_ERROR_DTYPE = 9,      ///< a wrong element type, or more than one lane
  ATTN_ERROR_RANK = 10,      ///< a wrong number of dimensions
  ATTN_ERROR_SHAPE = 11,     ///< a size that is wrong, out of range, or contradicts another size
  ATTN_ERROR_STRIDE = 12,    ///< not compact row-major
  ATTN_ERROR_ALIGNMENT = 13, ///< data not aligned to its element size or, on a GPU, to 16 bytes
  ATTN_ERROR_OVERLAP = 14,   ///< a written tensor or the workspace overlaps another argument
  ATTN_ERROR_VALUE = 15,     ///< an element out of range, such as a length beyond the sequence
  ATTN_ERROR_WEIGHTS = 16,   ///< weights absent, unexpected, or packed for other code
  ATTN_ERROR_WORKSPACE = 17, ///< workspace too small, misaligned, or beyond 2^63 bytes
  ATTN_ERROR_FILE = 18,      ///< a file that cannot be read or written, or has wrong contents
  ATTN_ERROR_DRIVER = 19     ///< the GPU driver is missing or returned an error
} attn_status;

/// The message of the last error on this thread, such as "forward: argument 'x' expected rank 3,
/// got 2". It is valid until the next error on this thread, and "" before the first error.
ATTN_API const char *attn_last_error(void);

/// Called at each error, on the thread where the error happened. `user_data` is that of the attn_call_options; outside
/// attn_call, it is null.
typedef void (*attn_error_fn)(attn_status status, const char *message, void *user_data);

/// Sets the error handler of the process. Null, the default, means no handler.
ATTN_API void attn_set_error_handler(attn_error_fn handler);

/// The version of the runtime, such as "1.2.3".
ATTN_API const char *attn_version(void);

//===-- Memory ------------------------------------------------------------===//

/// The functions with which the runtime allocates objects, packed weights, and, if a call on a CPU passes no workspace,
/// its workspace. Any thread may call them.
typedef struct attn_allocator {
  size_t size;
  /// Returns `bytes` > 0 bytes aligned to `alignment`, a power of two, or null if out of memory.
  void *(*allocate)(size_t bytes, size_t alignment, void *user_data);
  /// Frees `memory`, which was allocated with the same `bytes` and `alignment`.
  void (*release)(void *memory, size_t bytes, size_t alignment, void *user_data);
  void *user_data;
} attn_allocator;

/// Sets the allocator of the process. Null restores the allocator of the C library. Fails with
/// ATTN_ERROR_USAGE while an object of this interface exists.
ATTN_API attn_status attn_set_allocator(const attn_allocator *allocator);

//===-- Libraries ---------------------------------------------------------===//

/// Opens the shared library at `path`. Loading runs code of the library: never load a library that
/// you do not trust.
ATTN_API attn_status attn_library_load(const char *path, attn_library **library);

/// Opens a library that is linked into the program. `query` is its attn_query_<library>.
typedef const struct attn_library_info *(*attn_query_fn)(void);
ATTN_API attn_status attn_library_from_query(attn_query_fn query, attn_library **library);

/// Releases the library. It is unloaded when its functions and weights are released too. This and
/// all other release functions ignore null.
ATTN_API void attn_library_release(attn_library *library);

ATTN_API const char *attn_library_name(const attn_library *library);
ATTN_API const char *attn_library_compiler(const attn_library *library); ///< "attn 1.2.3"
ATTN_API const char *attn_library_manifest(const attn_library *library); ///< JSON
ATTN_API int32_t attn_library_num_functions(const attn_library *library);

/// Returns null if `index` is not in [0, attn_library_num_functions).
ATTN_API const char *attn_library_function_name(const attn_library *library, int32_t index);

//===-- Functions ---------------------------------------------------------===//

typedef struct attn_function_options {
  size_t size;
  /// The level to use, such as "x86-64-v3". If it is null, the function uses the best level of the
  /// library that the device supports. But if all fields of `device` are 0 too, and the environment
  /// variable ATTN_LEVEL is set, the function uses the level that this variable names.
  const char *level;
  /// The device that runs the function and holds its tensors: {kDLCUDA, number} for a GPU. If all fields are 0, it is
  /// the first device of the kind that `level` is for; without a level, it is the CPU.
  DLDevice device;
} attn_function_options;

/// Creates the function `name` of `library`. `options` may be null. Fails with ATTN_ERROR_NAME if
/// the library has no such function, and with ATTN_ERROR_LEVEL if the library lacks the level or
/// the device cannot run it.
ATTN_API attn_status attn_function_create(attn_library *library, const char *name,
                                          const attn_function_options *options,
                                          attn_function **function);

/// Releases the function. No call may use the function meanwhile.
ATTN_API void attn_function_release(attn_function *function);

ATTN_API const char *attn_function_name(const attn_function *function);
ATTN_API const char *attn_function_level(const attn_function *function);

/// What the compiler fused and how, in lines of text for people to read.
ATTN_API const char *attn_function_report(const attn_function *function);

/// The workspace of the kernel as a formula over the symbols, for people to read. A call needs the
/// larger size that attn_workspace_size gives: rounded up, with room for the counts of tiles.
ATTN_API const char *attn_function_workspace_formula(const attn_function *function);

ATTN_API int32_t attn_function_num_levels(const attn_function *function);

/// The name of a level that the library contains; index 0 is the best level. Returns null if `index` is not in [0,
/// attn_function_num_levels).
ATTN_API const char *attn_function_level_name(const attn_function *function, int32_t index);

/// A size in elements. A symbol names a size that is known only at the call; dimensions with the
/// same symbol must have the same size. If a size of an output is computed from other sizes, its
/// symbol is the formula, such as "2*x.1 + 1".
typedef struct attn_dim {
  const char *symbol; ///< null: the size is static, and min == max
  int64_t min, max;   ///< inclusive
} attn_dim;

typedef enum attn_role { ATTN_INPUT = 0, ATTN_OUTPUT = 1, ATTN_WEIGHT = 2 } attn_role;

typedef struct attn_argument {
  size_t size;
  const char *name;
  DLDataType dtype;
  int32_t rank;
  int32_t bounded; ///< 1: every element must lie in [-below, bound]
  attn_dim bound;
  int32_t in_out; ///< 1: an input that a call also writes to; the caller keeps it between calls
  int32_t reserved;
  attn_dim below; ///< negative if every element must be positive
} attn_argument;

ATTN_API int32_t attn_function_num_arguments(const attn_function *function, attn_role role);

/// Fills `argument`; the caller sets its `size` before. Fails with ATTN_ERROR_USAGE if `index` is
/// not in [0, attn_function_num_arguments).
ATTN_API attn_status attn_function_argument(const attn_function *function, attn_role role,
                                            int32_t index, attn_argument *argument);

/// Gives the size of dimension `axis` of an argument. Fails with ATTN_ERROR_USAGE if `index` or
/// `axis` is out of range.
ATTN_API attn_status attn_function_dim(const attn_function *function, attn_role role, int32_t index,
                                       int32_t axis, attn_dim *dim);

/// The number of symbols that are sizes of inputs. Symbols that are formulas do not count.
ATTN_API int32_t attn_function_num_symbols(const attn_function *function);
ATTN_API attn_status attn_function_symbol(const attn_function *function, int32_t index,
                                          attn_dim *symbol);

//===-- Weights -----------------------------------------------------------===//

/// Packs the named tensors for the level of `function`. The tensors may come in any order, and the
/// caller may free them afterwards. They must be compact row-major CPU tensors of the dtypes and shapes of the weights.
/// Each weight of the function must occur exactly once, and no other tensor may occur.
ATTN_API attn_status attn_weights_create(const attn_function *function, const char *const *names,
                                         const DLTensor *const *tensors, int32_t count,
                                         attn_weights **weights);

/// Packs the tensors of a safetensors file, such as the one that attnc writes beside a library.
ATTN_API attn_status attn_weights_load(const attn_function *function, const char *path,
                                       attn_weights **weights);

/// Packs the weights that `attnc --embed-weights` stored in the library. Fails with
/// ATTN_ERROR_WEIGHTS if the library contains none.
ATTN_API attn_status attn_weights_create_embedded(const attn_function *function,
                                                  attn_weights **weights);

/// Writes the packed weights to a file for attn_weights_map. An existing file of that name is
/// replaced as a whole; a process that has mapped the old file keeps the old content.
ATTN_API attn_status attn_weights_save(const attn_weights *weights, const char *path);

/// Maps a file of packed weights. Processes that map the same file share its memory. Nobody may
/// write to the file. Its weights must have been packed for the same function and level.
ATTN_API attn_status attn_weights_map(const attn_function *function, const char *path,
                                      attn_weights **weights);

typedef struct attn_weights_info {
  size_t size;
  int64_t bytes;        ///< size of the packed weights
  uint64_t source_hash; ///< hash of the tensors that were packed; different for different weights
  int32_t mapped;       ///< 1: the memory is a mapped file
  int32_t reserved;
} attn_weights_info;

/// Fills `info`; the caller sets its `size` before.
ATTN_API attn_status attn_weights_describe(const attn_weights *weights, attn_weights_info *info);

/// The size in bytes of all packed tensors that this process holds in memory, without those of mapped files. Tensors
/// with equal bytes are held once, also if several functions have packed them.
ATTN_API int64_t attn_packed_bytes(void);

/// Exchanges the contents of the two handles. Other threads may call functions with `weights`
/// meanwhile: each call uses either the old or the new weights from its start to its end, and a
/// call that begins after the return uses the new weights. The function returns when no call uses
/// the old weights any more; `other` then holds them. No thread may use `other` meanwhile. Both handles must hold
/// weights packed for the same function and level. Do not swap inside a task or an error handler, which run inside a
/// call. Do not swap in a child of fork() either, if another thread of the parent was in a call or a swap when the
/// parent forked.
ATTN_API attn_status attn_weights_swap(attn_weights *weights, attn_weights *other);

/// Releases the weights. No call may use the weights meanwhile.
ATTN_API void attn_weights_release(attn_weights *weights);

//===-- Threads -----------------------------------------------------------===//

/// One unit of parallel work: `index` in [0, count), `worker` in [0, workers).
typedef void (*attn_task_fn)(void *context, int64_t index, int64_t worker);

/// Calls task(context, i, worker) once for every i in [0, count), in any order and in parallel; returns when all tasks
/// are done. Two tasks that run at the same time have different workers. Tasks of neighbouring indices share data: a
/// loop is fastest if each worker gets a contiguous range of indices, the same range in every loop.
typedef void (*attn_parallel_for_fn)(void *pool, attn_task_fn task, void *context, int64_t count);

/// Creates a pool of worker threads. `workers` counts the calling thread; 0 means the number of
/// CPUs that the affinity mask and the control groups of this process allow. Idle workers spin
/// before they sleep: for a few milliseconds during a loop, for about 0.1 ms after it. A child of
/// fork() starts its own workers at its first loop, unless it was forked inside a task.
ATTN_API attn_status attn_pool_create(int64_t workers, attn_pool **pool);

typedef struct attn_pool_options {
  size_t size;
  int64_t workers; ///< as in attn_pool_create
  /// About how many microseconds a thread that has nothing to do spins before it sleeps: a worker during and after a
  /// loop, and the calling thread at the end of a loop. 0 means the times of attn_pool_create, -1 no spinning.
  int64_t spin_us;
  /// Null, or the numbers of CPUs, to which the pool binds its threads: that of worker i to cpus[i % num_cpus]. Worker 0
  /// is the thread that calls, which the pool does not bind.
  const int32_t *cpus;
  int64_t num_cpus;
} attn_pool_options;

/// Creates a pool with options. Fails with ATTN_ERROR_USAGE if the process may not use one of the CPUs.
ATTN_API attn_status attn_pool_create_with(const attn_pool_options *options, attn_pool **pool);

/// Releases the pool. No loop may run in the pool meanwhile.
ATTN_API void attn_pool_release(attn_pool *pool);
ATTN_API int64_t attn_pool_workers(const attn_pool *pool);

/// An attn_parallel_for_fn; `pool` is an attn_pool. If the pool already runs a loop, which another thread started or to
/// which the calling task belongs, the new loop runs on the calling thread.
ATTN_API void attn_pool_parallel_for(void *pool, attn_task_fn task, void *context, int64_t count);

//===-- Calls -------------------------------------------------------------===//

/// The statistics of a call, which fills them if it succeeds.
typedef struct attn_statistics {
  size_t size;
  int64_t nanoseconds;     ///< from entry to return
  int64_t workspace_bytes; ///< the size of the workspace that the call needed
  const char *level;
  int64_t *worker_tasks; ///< null, or (on a CPU) an array that gets the number of tasks of each worker
  const char *schedules; ///< of all attentions, in order, such as "per-head, whole-scores"
  /// The tiles of queries by keys whose scores were computed in loops over keys; 0 on a GPU, where
  /// attn_call_options.tile_counts counts them.
  int64_t tiles_run;
  int64_t tiles_skipped; ///< tiles that these loops skipped because of the mask
} attn_statistics;

typedef struct attn_call_options {
  size_t size;
  void *workspace; ///< aligned to 64 bytes; null: the call allocates it (and keeps it on a CPU)
  int64_t workspace_bytes;
  attn_parallel_for_fn parallel_for; ///< null: the calling thread does all the work
  void *pool;                        ///< first argument of parallel_for
  int64_t workers; ///< number of workers; 0 is allowed with attn_pool_parallel_for
  /// The CUstream of a call on a GPU. Null means the default stream. For a call on the CPU, it must be null.
  void *stream;
  attn_statistics *statistics;
  void *user_data;     ///< for the error handler
  int32_t skip_checks; ///< 1: tensors and values are not checked; they must match the signature
  int32_t reserved;
  /// For a call on a GPU: null, or the address of a uint32_t in the memory of the device, aligned to 4 bytes. The call
  /// sets bit i of this word if a length or an index in input i is out of range (bit 31 for all inputs from 31 on). It
  /// clears no bit.
  void *range_errors;
  /// For a call on a GPU: null, or the address of two int64_t in the memory of the device, aligned to 8 bytes. The call
  /// adds the number of tiles that it runs to the first number, and the number of tiles that it skips to the second.
  void *tile_counts;
} attn_call_options;

/// Runs the function. Inputs and outputs come in the order of the signature. They are compact row-major tensors in
/// memory of the function's device, aligned to their element size or, on a GPU, to 16 bytes. An output or an in-out
/// input must not overlap any other argument. The call checks all of this before it writes to any tensor, unless
/// `skip_checks` is 1. `weights` must be null if the function has none; `options` may be null.
ATTN_API attn_status attn_call(attn_function *function, const attn_weights *weights,
                               const DLTensor *const *inputs, int32_t num_inputs,
                               const DLTensor *const *outputs, int32_t num_outputs,
                               const attn_call_options *options);

/// Computes the shape of output `index` for these inputs. `shape` must have room for one size, in
/// elements, per dimension. Only the dtype and the shape of the inputs are read: the data may be
/// null.
ATTN_API attn_status attn_output_shape(const attn_function *function, const DLTensor *const *inputs,
                                       int32_t num_inputs, int32_t index, int64_t *shape);

typedef struct attn_workspace {
  size_t size;
  int64_t per_call;   ///< bytes
  int64_t per_worker; ///< bytes
  int64_t total;      ///< bytes: per_call + workers x per_worker, the workspace_bytes of a call
} attn_workspace;

/// Fills `workspace` for a call with these inputs and `workers` >= 1; the caller sets its `size`
/// before. Reads the same parts of the inputs as attn_output_shape.
ATTN_API attn_status attn_workspace_size(const attn_function *function,
                                         const DLTensor *const *inputs, int32_t num_inputs,
                                         int64_t workers, attn_workspace *workspace);

#ifdef __cplusplus
}
#endif

#endif // ATTN_H
