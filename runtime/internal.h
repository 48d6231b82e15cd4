//===- internal.h - shared declarations of the runtime --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The prefix attnrt_ avoids name clashes in programs that link libattn.a.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERNAL_H
#define ATTN_INTERNAL_H

#include "attn.h"
#include "attn_kernel.h"
#include "cpu.h"

#include <stdatomic.h>
#include <stdbool.h>

/// Lists with an entry for each CUDA context: the kernels of a library that are loaded into the context, and the copy
/// of packed weights in the memory of the context.
typedef struct attnrt_loaded attnrt_loaded;
typedef struct attnrt_uploaded attnrt_uploaded;

/// A packed tensor, which several handles of weights may share.
typedef struct attnrt_tensor attnrt_tensor;

struct attn_library {
  const attn_library_info *info;
  _Atomic(attnrt_loaded *) loaded;
  void *handle; ///< result of dlopen; null if the library is linked in
  atomic_int references;
};

/// Workspace that a function keeps from one call to the next.
typedef struct attnrt_block {
  int64_t bytes;
  _Alignas(ATTN_ALIGNMENT) char data[];
} attnrt_block;

struct attn_function {
  attn_library *library;
  const attn_function_info *info;
  const attn_variant_info *variant;
  DLDevice device; ///< the device that runs the variant
  _Atomic(attnrt_block *) spare;
};

/// A mapped file, or bytes to write to a file.
typedef struct attnrt_file {
  const char *bytes;
  size_t size;
} attnrt_file;

/// The size of the packed tensors that calls read, without the intermediate tensors of packing.
static inline int64_t attnrt_kept_bytes(const attn_variant_info *variant) {
  return variant->num_packed ? variant->packed_offsets[variant->num_packed] : 0;
}

/// Packed weights, which a kernel reads. Immutable after creation.
typedef struct attnrt_packed {
  attn_library *library;
  const attn_function_info *function;
  const attn_variant_info *variant;
  const void **data;       ///< where each packed tensor lies, in `shared` or in `file`
  attnrt_tensor **shared;  ///< null if the tensors are in `file`
  attnrt_file file;
  uint64_t source_hash;
  _Atomic(attnrt_uploaded *) uploaded;
} attnrt_packed;

//===-- error.c -----------------------------------------------------------===//

/// Records the message, calls the error handler and returns `status`.
attn_status attnrt_fail(attn_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// Sets the `user_data` that the handler gets on this thread.
void attnrt_set_user_data(void *user_data);

/// Converts a struct from the caller's version, `given`, to this runtime's version, `known`. The first field of the
/// struct is its size. If `given` is null, all fields become 0, their default. If `given` is longer than `known`, its
/// additional bytes must be zero.
attn_status attnrt_read(const char *who, const void *given, void *known, size_t known_size);

/// Copies as many fields of `known` as `given` has room for, except the size.
void attnrt_write(void *given, const void *known, size_t known_size);

//===-- library.c ---------------------------------------------------------===//

attn_library *attnrt_retain(attn_library *library);

//===-- cuda.c ------------------------------------------------------------===//

/// Sets `runs` to whether device `device_id` can run the variant. Fails if there is no driver or no such device.
attn_status attnrt_cuda_check(const attn_function_info *info, const attn_variant_info *variant,
                              int device_id, bool *runs);

/// Runs the function in the current CUDA context, on the stream of `options`. If `options` has `range_errors`, the
/// checks of ranges run first. The caller sets all fields of `call` except weights, launch and device. If the workspace
/// is null, it is allocated on the stream.
attn_status attnrt_cuda_run(const attn_function *function, const attnrt_packed *weights,
                            const attn_call_options *options, int64_t workspace_bytes,
                            attn_kernel_call *call);

void attnrt_cuda_unload(attnrt_loaded *loaded);              ///< null is ignored
void attnrt_cuda_release_weights(attnrt_uploaded *uploaded); ///< null is ignored

/// The alignment of tensors on a GPU in bytes. Kernels copy 16 bytes at a time.
enum { ATTNRT_GPU_ALIGNMENT = 16 };

/// The device of tensors that a variant for CPUs takes.
#define ATTNRT_CPU ((DLDevice){kDLCPU, 0})

//===-- memory.c ----------------------------------------------------------===//

/// Allocates with the allocator that the application set. Returns null if out of memory.
void *attnrt_allocate(size_t bytes, size_t alignment);
/// Frees `memory`, which was allocated with the same `bytes` and `alignment`. Null is ignored.
void attnrt_free(void *memory, size_t bytes, size_t alignment);

/// Allocates an array of `count` objects.
#define ATTNRT_NEW(type, count) ((type *)attnrt_allocate((count) * sizeof(type), _Alignof(type)))
#define ATTNRT_DELETE(type, count, memory)                                                         \
  attnrt_free((void *)(memory), (count) * sizeof(type), _Alignof(type))

/// Returns the pages of `memory` to the system, if it is Linux: the caller does not need their contents any more, and frees
/// the memory later.
void attnrt_discard(void *memory, size_t bytes);

/// Continues `hash` over `bytes` bytes. The hash distinguishes different weights, but an attacker can make collisions.
uint64_t attnrt_hash(uint64_t hash, const void *memory, size_t bytes);

//===-- shared.c ----------------------------------------------------------===//

/// Finds the packed tensor with these bytes, or makes a copy of them, and sets `shared`. Returns the address of its data,
/// which stays until attnrt_unshare, or null if out of memory.
const void *attnrt_share(const void *data, size_t bytes, attnrt_tensor **shared);
void attnrt_unshare(attnrt_tensor *tensor); ///< null is ignored

//===-- file.c ------------------------------------------------------------===//

/// Opens a regular file that is not empty, for reading. The caller closes it.
attn_status attnrt_open(const char *path, int *descriptor, size_t *size);
attn_status attnrt_read_at(const char *path, int descriptor, void *bytes, size_t size,
                           size_t offset);

/// Maps a file for reading.
attn_status attnrt_map(const char *path, attnrt_file *file);
void attnrt_unmap(attnrt_file *file);

/// Writes a file atomically: either the whole file replaces an existing file, or nothing changes.
attn_status attnrt_write_file(const char *path, const attnrt_file *parts, int count);

//===-- weights.c ---------------------------------------------------------===//

attn_status attnrt_check_has_weights(const attn_function *function);

/// Creates packed weights that have no data yet.
attn_status attnrt_packed_create(const attn_function *function, attnrt_packed **packed);
void attnrt_packed_release(attnrt_packed *packed);

/// Takes ownership of `packed`, also if it fails.
attn_status attnrt_weights_create(attnrt_packed *packed, attn_weights **weights);

/// The packed weights that a call reads. They stay alive until attnrt_end_use(). Both pointers are null if the function
/// has no weights.
typedef struct attnrt_use {
  const attnrt_packed *packed;
  atomic_ullong *ended;
} attnrt_use;
attnrt_use attnrt_begin_use(const attn_weights *weights);
void attnrt_end_use(attnrt_use use);

//===-- check.c -----------------------------------------------------------===//

// Limits of a function. They are checked at its creation, so that a call needs no allocation.
enum { ATTNRT_MAX_ARGUMENTS = 256, ATTNRT_MAX_SYMBOLS = 256 };

/// The values of the symbols, and the argument and axis from which each symbol got its value. The name is null while
/// the symbol has no value.
typedef struct attnrt_symbols {
  int64_t values[ATTNRT_MAX_SYMBOLS];
  struct {
    const char *name;
    int32_t axis;
  } origins[ATTNRT_MAX_SYMBOLS];
} attnrt_symbols;

/// A tensor, and the argument of the signature that it should match.
typedef struct attnrt_argument {
  const attn_function_info *function;
  const attn_tensor_info *info;
  const DLTensor *tensor;
  /// The device that should hold the tensor. Its type is 0 for a query, which reads only the shape of the tensor.
  DLDevice device;
} attnrt_argument;

/// Checks the number of inputs or outputs, and that their array is not null.
attn_status attnrt_check_count(const attn_function_info *info, const char *what, int32_t expected,
                               int32_t got, const DLTensor *const *tensors);

/// Checks that no tensor is null, and that each has the expected device, dtype, rank and sizes. Gives the symbols their
/// values; the caller sets `origins` to zeros before.
attn_status attnrt_check_shapes(const attn_function_info *info, const attn_tensor_info *infos,
                                const DLTensor *const *tensors, int32_t count, DLDevice device,
                                attnrt_symbols *symbols);

/// Computes the symbols that have formulas, after the inputs have given the other symbols their values. Fails if
/// a condition does not hold.
attn_status attnrt_compute_symbols(const attn_function_info *info, attnrt_symbols *symbols);

/// Gives all symbols their values in a query, such as attn_output_shape(), which reads only the shapes of the inputs.
/// `who` is the name of the query in messages.
attn_status attnrt_bind_inputs(const char *who, const attn_function *function,
                               const DLTensor *const *inputs, int32_t num_inputs,
                               attnrt_symbols *symbols);

/// Checks size, strides, data and alignment, after attnrt_check_shapes. Gives the address of the
/// first element and the size in bytes.
attn_status attnrt_check_memory(const attnrt_argument *argument, void **data, int64_t *bytes);

/// Checks the elements of a bounded argument that is in CPU memory.
attn_status attnrt_check_values(const attnrt_argument *argument, const void *data,
                                const attnrt_symbols *symbols);

bool attnrt_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes);

/// The size of a dimension for these values of the symbols.
static inline int64_t attnrt_size(const attn_dim_info *dim, const attnrt_symbols *symbols) {
  return dim->symbol < 0 ? dim->size : symbols->values[dim->symbol];
}

/// The number `below` of a bounded argument, whose elements lie in [-below, bound].
static inline attn_dim_info attnrt_below(const attn_tensor_info *info) {
  bool is_symbol = info->bounded == 2;
  return (attn_dim_info){.size = is_symbol ? 0 : info->bound.below,
                         .symbol = is_symbol ? info->bound.below : -1};
}

/// The address of the first element.
static inline void *attnrt_data(const DLTensor *tensor) {
  return (void *)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset);
}

static inline int64_t attnrt_round_up(int64_t bytes) {
  return (bytes + ATTN_ALIGNMENT - 1) & -(int64_t)ATTN_ALIGNMENT;
}

//===-- workspace.c -------------------------------------------------------===//

/// Computes the sizes of the workspace; all parts are multiples of the alignment.
attn_status attnrt_size_workspace(const attn_function *function, const int64_t *dims,
                                  int64_t workers, attn_workspace *size);

/// Takes the workspace that the function keeps, or allocates one if another call uses the kept one
/// or the kept one is too small. Returns null if out of memory.
attnrt_block *attnrt_take_block(attn_function *function, int64_t bytes);

void attnrt_free_block(attnrt_block *block); ///< null is ignored

/// Keeps `block` for the next call.
void attnrt_keep_block(attn_function *function, attnrt_block *block);

//===-- pool.c ------------------------------------------------------------===//

/// An attn_parallel_for_fn that runs the loop on the calling thread.
void attnrt_serial_for(void *pool, attn_task_fn task, void *context, int64_t count);

#endif // ATTN_INTERNAL_H
