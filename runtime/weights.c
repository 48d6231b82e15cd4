//===- weights.c - weights that are packed once and swapped as a whole ----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A handle has two places for packed weights and one atomic word: the index of the current place, and the number of
// calls that have begun since this place became current. A call increments that number and reads the index in one
// atomic step; when it ends, it increments the count of ended calls of the place. A swap fills the other place and
// makes it current in one atomic step. This step also returns how many calls began in the old place, and the swap waits
// until as many have ended. Calls therefore never wait, and a swap waits only for calls that began before it.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

struct attn_weights {
  _Atomic(uint64_t) state; ///< bit 0: the current place; other bits: calls that began there
  atomic_ullong ended[2];  ///< number of calls that ended, by place
  attnrt_packed *places[2];
  pthread_mutex_t swaps; ///< allows one swap at a time
};

//===-- Packed weights ----------------------------------------------------===//

attn_status attnrt_packed_create(const attn_function *function, attnrt_packed **packed) {
  attnrt_packed *created = ATTNRT_NEW(attnrt_packed, 1);
  const void **data = ATTNRT_NEW(const void *, (size_t)function->variant->num_packed + 1);
  if (!created || !data) {
    ATTNRT_DELETE(attnrt_packed, 1, created);
    ATTNRT_DELETE(const void *, (size_t)function->variant->num_packed + 1, data);
    return attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected %zu bytes of memory, got none",
                       function->info->name, sizeof *created);
  }
  *created = (attnrt_packed){.library = attnrt_retain(function->library),
                             .function = function->info,
                             .variant = function->variant,
                             .data = data};
  *packed = created;
  return ATTN_OK;
}

void attnrt_packed_release(attnrt_packed *packed) {
  if (!packed)
    return;
  attnrt_cuda_release_weights(atomic_load(&packed->uploaded));
  size_t count = (size_t)packed->variant->num_packed;
  for (size_t i = 0; packed->shared && i < count; ++i)
    attnrt_unshare(packed->shared[i]);
  ATTNRT_DELETE(attnrt_tensor *, count + 1, packed->shared);
  ATTNRT_DELETE(const void *, count + 1, packed->data);
  attnrt_unmap(&packed->file);
  attn_library_release(packed->library);
  ATTNRT_DELETE(attnrt_packed, 1, packed);
}

attn_status attnrt_weights_create(attnrt_packed *packed, attn_weights **weights) {
  attn_weights *created = ATTNRT_NEW(attn_weights, 1);
  if (!created) {
    attn_status status =
        attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected %zu bytes of memory, got none",
                    packed->function->name, sizeof *created);
    attnrt_packed_release(packed);
    return status;
  }
  atomic_init(&created->state, 0);
  for (int i = 0; i < 2; ++i)
    atomic_init(&created->ended[i], 0);
  created->places[0] = packed;
  created->places[1] = NULL;
  pthread_mutex_init(&created->swaps, NULL);
  *weights = created;
  return ATTN_OK;
}

//===-- Calls and swaps ---------------------------------------------------===//

attnrt_use attnrt_begin_use(const attn_weights *weights) {
  if (!weights)
    return (attnrt_use){NULL, NULL};
  // A call does not change the weights, so they are const; the counts are internal to the handle.
  attn_weights *counted = (attn_weights *)weights;
  uint64_t place = atomic_fetch_add(&counted->state, 2) & 1;
  return (attnrt_use){counted->places[place], &counted->ended[place]};
}

void attnrt_end_use(attnrt_use use) {
  if (use.ended)
    atomic_fetch_add(use.ended, 1);
}

attn_status attn_weights_swap(attn_weights *weights, attn_weights *other) {
  if (!weights || !other || weights == other)
    return attnrt_fail(ATTN_ERROR_USAGE,
                       "attn_weights_swap: expected two different handles of weights, got %s",
                       weights && other ? "one twice" : "null");
  pthread_mutex_lock(&weights->swaps);
  uint64_t current = atomic_load(&weights->state) & 1, next = current ^ 1;
  attnrt_packed **given = &other->places[atomic_load(&other->state) & 1];
  const attn_variant_info *mine = weights->places[current]->variant, *its = (*given)->variant;
  attn_status status = ATTN_OK;
  if (mine->packed_hash != its->packed_hash)
    status = attnrt_fail(ATTN_ERROR_WEIGHTS,
                         "attn_weights_swap: expected weights packed for '%s' at level %s, got "
                         "those for '%s' at %s",
                         weights->places[current]->function->name, mine->level,
                         (*given)->function->name, its->level);
  if (!status) {
    weights->places[next] = *given;
    atomic_store(&weights->ended[next], 0);
    uint64_t begun = atomic_exchange(&weights->state, next) >> 1;
    // Poll: calls take microseconds to seconds, and do not signal their end to a swap.
    while (atomic_load(&weights->ended[current]) != begun)
      nanosleep(&(struct timespec){.tv_nsec = 50 * 1000}, NULL);
    *given = weights->places[current];
    weights->places[current] = NULL;
  }
  pthread_mutex_unlock(&weights->swaps);
  return status;
}

attn_status attn_weights_describe(const attn_weights *weights, attn_weights_info *info) {
  if (!weights || !info)
    return attnrt_fail(ATTN_ERROR_USAGE, "attn_weights_describe: expected weights and a place for "
                                         "their description, got null");
  attn_weights_info known;
  attn_status status = attnrt_read("attn_weights_info", info, &known, sizeof known);
  if (status)
    return status;
  attnrt_use use = attnrt_begin_use(weights);
  known.bytes = attnrt_kept_bytes(use.packed->variant);
  known.source_hash = use.packed->source_hash;
  known.mapped = use.packed->file.bytes != NULL;
  attnrt_end_use(use);
  attnrt_write(info, &known, sizeof known);
  return ATTN_OK;
}

void attn_weights_release(attn_weights *weights) {
  if (!weights)
    return;
  attnrt_packed_release(weights->places[atomic_load(&weights->state) & 1]);
  pthread_mutex_destroy(&weights->swaps);
  ATTNRT_DELETE(attn_weights, 1, weights);
}

//===-- From tensors ------------------------------------------------------===//

/// Sorts the tensors into the order of the signature.
static attn_status match_names(const attn_function_info *info, const char *const *names,
                               const DLTensor *const *tensors, int32_t count,
                               const DLTensor **ordered) {
  for (int32_t i = 0; i < count; ++i) {
    if (!names[i] || !tensors[i])
      return attnrt_fail(ATTN_ERROR_NULL, "%s: weight %d expected a name and a tensor, got null",
                         info->name, i);
    int32_t w = 0;
    while (w < info->num_weights && strcmp(info->weights[w].name, names[i]))
      ++w;
    if (w == info->num_weights)
      return attnrt_fail(ATTN_ERROR_NAME, "%s: expected weights of this function, got '%s'",
                         info->name, names[i]);
    if (ordered[w])
      return attnrt_fail(ATTN_ERROR_NAME, "%s: weight '%s' expected once, got twice", info->name,
                         names[i]);
    ordered[w] = tensors[i];
  }
  for (int32_t w = 0; w < info->num_weights; ++w)
    if (!ordered[w])
      return attnrt_fail(ATTN_ERROR_COUNT, "%s: weight '%s' expected a tensor, got none",
                         info->name, info->weights[w].name);
  return ATTN_OK;
}

/// Checks the tensors. Sets `data` to the first element of each weight, and `hash` to a hash of all weights.
static attn_status check_tensors(const attn_function_info *info, const DLTensor *const *tensors,
                                 const void **data, uint64_t *hash) {
  attnrt_symbols symbols = {0};
  attn_status status =
      attnrt_check_shapes(info, info->weights, tensors, info->num_weights, ATTNRT_CPU, &symbols);
  *hash = 0;
  for (int32_t w = 0; w < info->num_weights && !status; ++w) {
    attnrt_argument weight = {info, &info->weights[w], tensors[w], ATTNRT_CPU};
    void *first;
    int64_t bytes;
    status = attnrt_check_memory(&weight, &first, &bytes);
    if (!status)
      status = attnrt_check_values(&weight, first, &symbols);
    if (!status)
      *hash = attnrt_hash(*hash, first, (size_t)bytes);
    data[w] = first;
  }
  return status;
}

static attn_status pack(const attn_function *function, const void *const *data, uint64_t hash,
                        attn_weights **weights) {
  const attn_variant_info *variant = function->variant;
  // Allocate at least one cache line: an allocator may return null for 0 bytes.
  int64_t bytes = attnrt_round_up(variant->packed_bytes ? variant->packed_bytes : 1);
  attnrt_packed *packed = NULL;
  attn_status status = attnrt_packed_create(function, &packed);
  if (status)
    return status;
  size_t count = (size_t)variant->num_packed;
  char *memory = attnrt_allocate((size_t)bytes, ATTN_ALIGNMENT);
  packed->shared = ATTNRT_NEW(attnrt_tensor *, count + 1);
  bool is_ok = memory && packed->shared;
  if (packed->shared)
    memset(packed->shared, 0, count * sizeof *packed->shared);
  if (is_ok) {
    // Tensors are compared and written to files with their padding, so the padding must be initialized.
    memset(memory, 0, (size_t)bytes);
    variant->pack(data, memory);
  }
  for (size_t i = 0; i < count && is_ok; ++i) {
    const int64_t *place = &variant->packed_offsets[i];
    size_t size = (size_t)(place[1] - place[0]);
    packed->data[i] = attnrt_share(memory + place[0], size, &packed->shared[i]);
    is_ok = packed->data[i] != NULL;
    attnrt_discard(memory + place[0], size);
  }
  attnrt_free(memory, (size_t)bytes, ATTN_ALIGNMENT);
  if (!is_ok) {
    attnrt_packed_release(packed);
    return attnrt_fail(ATTN_ERROR_RESOURCE,
                       "%s: expected %" PRId64 " bytes of memory for weights, got none",
                       function->info->name, bytes);
  }
  packed->source_hash = hash;
  return attnrt_weights_create(packed, weights);
}

attn_status attnrt_check_has_weights(const attn_function *function) {
  if (function->info->num_weights)
    return ATTN_OK;
  return attnrt_fail(ATTN_ERROR_WEIGHTS, "%s: expected a function with weights, got one without",
                     function->info->name);
}

attn_status attn_weights_create(const attn_function *function, const char *const *names,
                                const DLTensor *const *tensors, int32_t count,
                                attn_weights **weights) {
  if (!function || !weights || (count > 0 && (!names || !tensors)))
    return attnrt_fail(ATTN_ERROR_USAGE, "attn_weights_create: expected a function, names, tensors "
                                         "and a place for the weights, got null");
  const attn_function_info *info = function->info;
  attn_status status = attnrt_check_has_weights(function);
  if (status)
    return status;
  size_t expected = (size_t)info->num_weights;
  const DLTensor **ordered = ATTNRT_NEW(const DLTensor *, expected);
  const void **data = ATTNRT_NEW(const void *, expected);
  uint64_t hash;
  if (ordered)
    memset(ordered, 0, expected * sizeof *ordered);
  if (!ordered || !data)
    status = attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected memory for %d pointers, got none",
                         info->name, 2 * info->num_weights);
  else if (!(status = match_names(info, names, tensors, count, ordered)) &&
           !(status = check_tensors(info, ordered, data, &hash)))
    status = pack(function, data, hash, weights);
  ATTNRT_DELETE(const DLTensor *, expected, ordered);
  ATTNRT_DELETE(const void *, expected, data);
  return status;
}

attn_status attn_weights_create_embedded(const attn_function *function, attn_weights **weights) {
  if (!function || !weights)
    return attnrt_fail(ATTN_ERROR_USAGE, "attn_weights_create_embedded: expected a function and a "
                                         "place for the weights, got null");
  const attn_function_info *info = function->info;
  attn_status status = attnrt_check_has_weights(function);
  if (status)
    return status;
  if (!info->embedded)
    return attnrt_fail(ATTN_ERROR_WEIGHTS,
                       "%s: expected a library with weights in it (attnc --embed-weights), got one "
                       "without",
                       info->name);
  size_t count = (size_t)info->num_weights, sizes = 1;
  for (size_t w = 0; w < count; ++w)
    sizes += (size_t)info->weights[w].rank;
  const char **names = ATTNRT_NEW(const char *, count);
  DLTensor *views = ATTNRT_NEW(DLTensor, count);
  const DLTensor **tensors = ATTNRT_NEW(const DLTensor *, count);
  int64_t *shapes = ATTNRT_NEW(int64_t, sizes);
  if (!names || !views || !tensors || !shapes) {
    status = attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected memory for %zu tensors, got none",
                         info->name, count);
  } else {
    int64_t *shape = shapes;
    for (size_t w = 0; w < count; ++w) {
      const attn_tensor_info *weight = &info->weights[w];
      views[w] = (DLTensor){.data = (void *)info->embedded[w],
                            .device = {kDLCPU, 0},
                            .ndim = weight->rank,
                            .dtype = {weight->dtype_code, weight->dtype_bits, 1},
                            .shape = shape};
      for (int32_t axis = 0; axis < weight->rank; ++axis)
        *shape++ = weight->shape[axis].size;
      names[w] = weight->name;
      tensors[w] = &views[w];
    }
    status = attn_weights_create(function, names, tensors, info->num_weights, weights);
  }
  ATTNRT_DELETE(const char *, count, names);
  ATTNRT_DELETE(DLTensor, count, views);
  ATTNRT_DELETE(const DLTensor *, count, tensors);
  ATTNRT_DELETE(int64_t, sizes, shapes);
  return status;
}
