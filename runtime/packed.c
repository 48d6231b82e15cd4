//===- packed.c - packed weights in a file that processes share -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   struct header, then the packed tensors that a kernel reads, at attn_variant_info.packed_offsets
//
// A kernel reads the mapped file directly, so processes that map the same file share one copy. The packed numbers need
// no check, because a kernel is safe with any numbers. The exception is a weight whose elements have a bound, because
// the kernel relies on the bound. Such weights are neither saved nor mapped.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <inttypes.h>
#include <string.h>

typedef struct header {
  char magic[8];
  uint32_t abi_version;
  uint32_t reserved;
  uint64_t packed_hash;
  uint64_t packed_bytes;
  uint64_t source_hash;
  char level[24];
} header;

_Static_assert(sizeof(header) == ATTN_ALIGNMENT, "packed weights behind the header are aligned");

static const char magic[] = "ATTNPACK";

static attn_status check_unbounded(const attn_function_info *info) {
  for (int32_t w = 0; w < info->num_weights; ++w)
    if (info->weights[w].bounded)
      return attnrt_fail(ATTN_ERROR_WEIGHTS,
                         "%s: weight '%s' expected no bound for a file of packed weights, got one",
                         info->name, info->weights[w].name);
  return ATTN_OK;
}

attn_status attn_weights_save(const attn_weights *weights, const char *path) {
  if (!weights || !path)
    return attnrt_fail(ATTN_ERROR_USAGE,
                       "attn_weights_save: expected weights and a path, got null");
  attnrt_use use = attnrt_begin_use(weights);
  const attn_variant_info *variant = use.packed->variant;
  attn_status status = check_unbounded(use.packed->function);
  if (!status) {
    header h = {.abi_version = ATTN_ABI_VERSION,
                .packed_hash = variant->packed_hash,
                .packed_bytes = (uint64_t)attnrt_kept_bytes(variant),
                .source_hash = use.packed->source_hash};
    memcpy(h.magic, magic, sizeof h.magic);
    strncpy(h.level, variant->level, sizeof h.level - 1);
    size_t count = (size_t)variant->num_packed + 1;
    attnrt_file *parts = ATTNRT_NEW(attnrt_file, count);
    if (parts) {
      parts[0] = (attnrt_file){(const char *)&h, sizeof h};
      for (size_t i = 1; i < count; ++i)
        parts[i] = (attnrt_file){use.packed->data[i - 1], (size_t)(variant->packed_offsets[i] -
                                                                  variant->packed_offsets[i - 1])};
      status = attnrt_write_file(path, parts, (int)count);
    } else {
      status = attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected memory for %zu pointers, got none",
                           use.packed->function->name, 2 * count);
    }
    ATTNRT_DELETE(attnrt_file, count, parts);
  }
  attnrt_end_use(use);
  return status;
}

static attn_status check_header(const attn_function *function, const char *path,
                                const attnrt_file *file, header *h) {
  const attn_variant_info *variant = function->variant;
  if (file->size < sizeof *h || memcmp(file->bytes, magic, sizeof h->magic))
    return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected a file of attn_weights_save, got %s", path,
                       file->size < sizeof *h ? "one shorter than its header" : "another file");
  memcpy(h, file->bytes, sizeof *h);
  h->level[sizeof h->level - 1] = '\0';
  if (h->abi_version != ATTN_ABI_VERSION)
    return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected ABI version %d, got %" PRIu32, path,
                       ATTN_ABI_VERSION, h->abi_version);
  if (h->packed_hash != variant->packed_hash)
    return attnrt_fail(ATTN_ERROR_WEIGHTS,
                       "%s: '%s' expected weights packed as %016" PRIx64
                       " (level %s), got %016" PRIx64 " (level %s)",
                       function->info->name, path, variant->packed_hash, variant->level,
                       h->packed_hash, h->level);
  uint64_t expected = sizeof *h + (uint64_t)attnrt_kept_bytes(variant);
  if (h->packed_bytes != expected - sizeof *h || file->size != expected)
    return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected %" PRIu64 " bytes, got %zu", path, expected,
                       file->size);
  return ATTN_OK;
}

attn_status attn_weights_map(const attn_function *function, const char *path,
                             attn_weights **weights) {
  if (!function || !path || !weights)
    return attnrt_fail(ATTN_ERROR_USAGE, "attn_weights_map: expected a function, a path and a "
                                         "place for the weights, got null");
  attnrt_file file;
  attnrt_packed *packed = NULL;
  header h;
  attn_status status = attnrt_check_has_weights(function);
  if (!status)
    status = check_unbounded(function->info);
  if (!status)
    status = attnrt_map(path, &file);
  if (status)
    return status;
  if ((status = check_header(function, path, &file, &h)) ||
      (status = attnrt_packed_create(function, &packed))) {
    attnrt_unmap(&file);
    return status;
  }
  packed->file = file;
  for (int32_t i = 0; i < packed->variant->num_packed; ++i)
    packed->data[i] = file.bytes + sizeof h + packed->variant->packed_offsets[i];
  packed->source_hash = h.source_hash;
  return attnrt_weights_create(packed, weights);
}
