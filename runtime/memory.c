//===- memory.c - the allocator, and a hash of memory ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

static void *allocate_default(size_t bytes, size_t alignment, void *user_data) {
  (void)user_data;
  void *memory;
  if (alignment < sizeof(void *))
    alignment = sizeof(void *);
  return posix_memalign(&memory, alignment, bytes) ? NULL : memory;
}

static void release_default(void *memory, size_t bytes, size_t alignment, void *user_data) {
  (void)bytes, (void)alignment, (void)user_data;
  free(memory);
}

static attn_allocator allocator = {sizeof(attn_allocator), allocate_default, release_default, NULL};
static atomic_llong held; ///< number of blocks in use

attn_status attn_set_allocator(const attn_allocator *given) {
  attn_allocator known;
  attn_status status = attnrt_read("attn_allocator", given, &known, sizeof known);
  if (status)
    return status;
  if (!known.allocate != !known.release)
    return attnrt_fail(ATTN_ERROR_USAGE,
                       "attn_set_allocator: expected both allocate and release, got one");
  long long blocks = atomic_load(&held);
  if (blocks)
    return attnrt_fail(
        ATTN_ERROR_USAGE,
        "attn_set_allocator: expected 0 blocks of memory in use by objects of attn, got %lld",
        blocks);
  if (!known.allocate) {
    known.allocate = allocate_default;
    known.release = release_default;
  }
  allocator = known;
  return ATTN_OK;
}

void *attnrt_allocate(size_t bytes, size_t alignment) {
  void *memory = allocator.allocate(bytes, alignment, allocator.user_data);
  if (memory)
    atomic_fetch_add(&held, 1);
  return memory;
}

void attnrt_free(void *memory, size_t bytes, size_t alignment) {
  if (!memory)
    return;
  allocator.release(memory, bytes, alignment, allocator.user_data);
  atomic_fetch_sub(&held, 1);
}

void attnrt_discard(void *memory, size_t bytes) {
#ifdef __linux__
  if (allocator.allocate != allocate_default)
    return; // the memory of another allocator may not be anonymous
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t first = ((uintptr_t)memory + page - 1) / page * page;
  uintptr_t end = ((uintptr_t)memory + bytes) / page * page;
  if (first < end)
    madvise((void *)first, end - first, MADV_DONTNEED);
#else
  (void)memory, (void)bytes;
#endif
}

uint64_t attnrt_hash(uint64_t hash, const void *memory, size_t bytes) {
  const unsigned char *at = memory;
  // The multiplication spreads a difference to higher bits, the shift to lower bits.
  const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
  hash ^= bytes;
  for (size_t rest = bytes; rest;) {
    uint64_t word = 0;
    size_t size = rest < sizeof word ? rest : sizeof word;
    memcpy(&word, at, size);
    hash = (hash ^ word) * odd;
    hash ^= hash >> 29;
    at += size;
    rest -= size;
  }
  return hash;
}
