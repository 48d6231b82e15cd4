//===- shared.c - packed tensors that several handles of weights share ----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Functions that have the same weights, such as those that process a prompt and generate tokens, often pack them alike.
// So tensors with the same bytes are kept once: a list has all packed tensors of the process, with a hash of their
// bytes.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <pthread.h>
#include <string.h>

struct attnrt_tensor {
  attnrt_tensor *next;
  void *data;
  size_t bytes;
  uint64_t hash;
  int32_t uses;
};

static attnrt_tensor *all;
static int64_t total_bytes; ///< of all tensors
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/// At least one cache line, because an allocator may return null for 0 bytes.
static size_t allocated(size_t bytes) { return bytes ? bytes : ATTN_ALIGNMENT; }

static attnrt_tensor *find(const void *data, size_t bytes, uint64_t hash) {
  attnrt_tensor *tensor = all;
  while (tensor &&
         (tensor->hash != hash || tensor->bytes != bytes || memcmp(tensor->data, data, bytes)))
    tensor = tensor->next;
  return tensor;
}

static attnrt_tensor *make(const void *data, size_t bytes, uint64_t hash) {
  attnrt_tensor *tensor = ATTNRT_NEW(attnrt_tensor, 1);
  void *copy = attnrt_allocate(allocated(bytes), ATTN_ALIGNMENT);
  if (!tensor || !copy) {
    attnrt_free(copy, allocated(bytes), ATTN_ALIGNMENT);
    ATTNRT_DELETE(attnrt_tensor, 1, tensor);
    return NULL;
  }
  memcpy(copy, data, bytes);
  *tensor = (attnrt_tensor){.next = all, .data = copy, .bytes = bytes, .hash = hash};
  all = tensor;
  total_bytes += (int64_t)bytes;
  return tensor;
}

const void *attnrt_share(const void *data, size_t bytes, attnrt_tensor **shared) {
  uint64_t hash = attnrt_hash(0, data, bytes);
  pthread_mutex_lock(&lock);
  attnrt_tensor *tensor = find(data, bytes, hash);
  if (!tensor)
    tensor = make(data, bytes, hash);
  if (tensor)
    ++tensor->uses;
  pthread_mutex_unlock(&lock);
  *shared = tensor;
  return tensor ? tensor->data : NULL;
}

void attnrt_unshare(attnrt_tensor *tensor) {
  if (!tensor)
    return;
  pthread_mutex_lock(&lock);
  if (--tensor->uses == 0) {
    attnrt_tensor **place = &all;
    while (*place != tensor)
      place = &(*place)->next;
    *place = tensor->next;
    total_bytes -= (int64_t)tensor->bytes;
    attnrt_free(tensor->data, allocated(tensor->bytes), ATTN_ALIGNMENT);
    ATTNRT_DELETE(attnrt_tensor, 1, tensor);
  }
  pthread_mutex_unlock(&lock);
}

int64_t attn_packed_bytes(void) {
  pthread_mutex_lock(&lock);
  int64_t bytes = total_bytes;
  pthread_mutex_unlock(&lock);
  return bytes;
}
