//===- internal.h - what the files of the runtime share -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The prefix attnrt_ keeps these names out of the way of programs that link libattn.a.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_INTERNAL_H
#define ATTN_INTERNAL_H

#include "attn.h"
#include "attn_kernel.h"

#include <stdatomic.h>
#include <stdbool.h>

struct attn_library {
  const attn_library_info *info;
  void *handle; ///< of dlopen; null where the code is linked in
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
  _Atomic(attnrt_block *) spare;
};

/// A file in memory, or bytes that become one.
typedef struct attnrt_file {
  const char *bytes;
  size_t size;
} attnrt_file;

/// What a kernel reads in place of its weights. Immutable once made.
typedef struct attnrt_packed {
  attn_library *library;
  const attn_function_info *function;
  const attn_variant_info *variant;
  const void *data; ///< in `owned` or in `file`
  void *owned;      ///< `owned_bytes`, aligned to ATTN_ALIGNMENT
  size_t owned_bytes;
  attnrt_file file;
  uint64_t source_hash;
} attnrt_packed;

//===-- error.c -----------------------------------------------------------===//

/// Records the message, tells the handler and returns `status`.
attn_status attnrt_fail(attn_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/// What the handler is given on this thread from now on.
void attnrt_set_user_data(void *user_data);

/// Copies a struct that starts with its size from the caller's to this runtime's version of it. A
/// null `given` is all defaults; a longer one must hold zeros where this runtime knows no field.
attn_status attnrt_read(const char *who, const void *given, void *known, size_t known_size);

/// Copies as many fields of `known` as `given` has room for.
void attnrt_write(void *given, const void *known, size_t known_size);

//===-- library.c ---------------------------------------------------------===//

attn_library *attnrt_retain(attn_library *library);

//===-- cpu.c -------------------------------------------------------------===//

bool attnrt_cpu_supports(const char *level);
const char *attnrt_cpu_level(void); ///< the best that this CPU supports
int64_t attnrt_cpu_count(void);     ///< CPUs that this process may use at a time

//===-- memory.c ----------------------------------------------------------===//

/// Of the allocator that the application set; null: none left.
void *attnrt_allocate(size_t bytes, size_t alignment);
/// As it was allocated; null is ignored.
void attnrt_free(void *memory, size_t bytes, size_t alignment);

/// For one object or an array of them.
#define ATTNRT_NEW(type, count) ((type *)attnrt_allocate((count) * sizeof(type), _Alignof(type)))
#define ATTNRT_DELETE(type, count, memory)                                                         \
  attnrt_free((void *)(memory), (count) * sizeof(type), _Alignof(type))

/// `hash` continued over `bytes` bytes. Tells different weights apart, not an adversary's.
uint64_t attnrt_hash(uint64_t hash, const void *memory, size_t bytes);

//===-- file.c ------------------------------------------------------------===//

/// Opens a regular file that holds something, for reading; it is to be closed.
attn_status attnrt_open(const char *path, int *descriptor, size_t *size);
attn_status attnrt_read_at(const char *path, int descriptor, void *bytes, size_t size,
                           size_t offset);

/// Maps a file for reading.
attn_status attnrt_map(const char *path, attnrt_file *file);
void attnrt_unmap(attnrt_file *file);

/// Writes a file that appears whole, in place of one of that name, or not at all.
attn_status attnrt_write_file(const char *path, const attnrt_file *parts, int count);

//===-- weights.c ---------------------------------------------------------===//

attn_status attnrt_check_has_weights(const attn_function *function);

/// Without data yet.
attn_status attnrt_packed_create(const attn_function *function, attnrt_packed **packed);
void attnrt_packed_release(attnrt_packed *packed);

/// Takes `packed` over, also where it fails.
attn_status attnrt_weights_create(attnrt_packed *packed, attn_weights **weights);

/// The packed memory that a call reads, which stays until the use ends. No weights: nothing.
typedef struct attnrt_use {
  const attnrt_packed *packed;
  atomic_ullong *ended;
} attnrt_use;
attnrt_use attnrt_begin_use(const attn_weights *weights);
void attnrt_end_use(attnrt_use use);

//===-- check.c -----------------------------------------------------------===//

// Limits of a function, checked when it is created, so that a call needs no allocation.
enum { ATTNRT_MAX_ARGUMENTS = 256, ATTNRT_MAX_SYMBOLS = 256 };

/// Values of the symbols, and the dimension that gave each: its name is null until there is one.
typedef struct attnrt_symbols {
  int64_t values[ATTNRT_MAX_SYMBOLS];
  struct {
    const char *name;
    int32_t axis;
  } origins[ATTNRT_MAX_SYMBOLS];
} attnrt_symbols;

/// A tensor and what it should be.
typedef struct attnrt_argument {
  const attn_function_info *function;
  const attn_tensor_info *info;
  const DLTensor *tensor;
} attnrt_argument;

/// The number of inputs or outputs, and whether there is an array of them.
attn_status attnrt_check_count(const attn_function_info *info, const char *what, int32_t expected,
                               int32_t got, const DLTensor *const *tensors);

/// Null, device, dtype, rank, dims of each; binds symbols, whose origins start as zeros.
attn_status attnrt_check_shapes(const attn_function_info *info, const attn_tensor_info *infos,
                                const DLTensor *const *tensors, int32_t count,
                                attnrt_symbols *symbols);

/// The symbols that have formulas, after those that inputs carry: conditions must hold.
attn_status attnrt_compute_symbols(const attn_function_info *info, attnrt_symbols *symbols);

/// What queries need: the symbols, from inputs that may not have data yet.
attn_status attnrt_bind_inputs(const char *who, const attn_function *function,
                               const DLTensor *const *inputs, int32_t num_inputs,
                               attnrt_symbols *symbols);

/// Size, strides, data and alignment; gives the first element and the size in bytes. After
/// attnrt_check_shapes.
attn_status attnrt_check_memory(const attnrt_argument *argument, void **data, int64_t *bytes);

/// Elements of a bounded argument.
attn_status attnrt_check_values(const attnrt_argument *argument, const void *data,
                                const attnrt_symbols *symbols);

bool attnrt_overlap(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes);

/// The size of a dimension under these symbols.
static inline int64_t attnrt_size(const attn_dim_info *dim, const attnrt_symbols *symbols) {
  return dim->symbol < 0 ? dim->size : symbols->values[dim->symbol];
}

/// The address of the first element.
static inline void *attnrt_data(const DLTensor *tensor) {
  return (void *)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset);
}

static inline int64_t attnrt_round_up(int64_t bytes) {
  return (bytes + ATTN_ALIGNMENT - 1) & -(int64_t)ATTN_ALIGNMENT;
}

//===-- workspace.c -------------------------------------------------------===//

/// All parts are multiples of the alignment.
attn_status attnrt_size_workspace(const attn_function *function, const int64_t *dims,
                                  int64_t workers, attn_workspace *size);

/// The kept workspace, or a new one where another call has it or it is too small; null: no memory.
attnrt_block *attnrt_take_block(attn_function *function, int64_t bytes);

void attnrt_free_block(attnrt_block *block); ///< null is ignored

/// Keeps it for the next call.
void attnrt_keep_block(attn_function *function, attnrt_block *block);

//===-- pool.c ------------------------------------------------------------===//

/// The attn_parallel_for_fn of the calling thread alone.
void attnrt_serial_for(void *pool, attn_task_fn task, void *context, int64_t count);

#endif // ATTN_INTERNAL_H
