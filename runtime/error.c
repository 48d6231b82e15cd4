//===- error.c - error messages, the handler, and sized structs -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_message[512];
static _Thread_local void *user_data;
static _Atomic(attn_error_fn) handler;

const char *attn_last_error(void) { return last_message; }

void attn_set_error_handler(attn_error_fn new_handler) { atomic_store(&handler, new_handler); }

const char *attn_version(void) { return ATTN_VERSION; }

void attnrt_set_user_data(void *data) { user_data = data; }

attn_status attnrt_fail(attn_status status, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(last_message, sizeof last_message, format, values);
  va_end(values);
  // Names in the message may come from files, so the message may contain control characters.
  for (char *c = last_message; *c; ++c)
    if ((unsigned char)*c < ' ' || *c == 0x7f)
      *c = '?';
  attn_error_fn tell = atomic_load(&handler);
  if (tell)
    tell(status, last_message, user_data);
  return status;
}

attn_status attnrt_read(const char *who, const void *given, void *known, size_t known_size) {
  memset(known, 0, known_size);
  if (!given)
    return ATTN_OK;
  size_t size;
  memcpy(&size, given, sizeof size);
  if (size < sizeof size)
    return attnrt_fail(ATTN_ERROR_USAGE, "%s: expected a struct that starts with its size, got %zu",
                       who, size);
  for (size_t i = known_size; i < size; ++i)
    if (((const char *)given)[i])
      return attnrt_fail(
          ATTN_ERROR_USAGE,
          "%s: expected a struct of %zu bytes, got one of %zu with fields of a newer version", who,
          known_size, size);
  memcpy(known, given, size < known_size ? size : known_size);
  return ATTN_OK;
}

void attnrt_write(void *given, const void *known, size_t known_size) {
  size_t size;
  memcpy(&size, given, sizeof size);
  size_t end = size < known_size ? size : known_size;
  if (end > sizeof size)
    memcpy((char *)given + sizeof size, (const char *)known + sizeof size, end - sizeof size);
}
