//===- file.c - files in memory --------------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

attn_status attnrt_map(const char *path, attnrt_file *file) {
  *file = (attnrt_file){NULL, 0};
  // Not O_NONBLOCK: a path that is a pipe or a device is refused below, but opened first.
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status)) {
    int error = errno;
    if (descriptor >= 0)
      close(descriptor);
    return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected a file that can be read, got: %s", path,
                       strerror(error));
  }
  if (!S_ISREG(status.st_mode) || !status.st_size) {
    close(descriptor);
    return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected a file with content, got %s", path,
                       S_ISREG(status.st_mode) ? "an empty one" : "no regular file");
  }
  void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, descriptor, 0);
  int error = errno;
  close(descriptor);
  if (bytes == MAP_FAILED)
    return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected a file that can be mapped, got: %s", path,
                       strerror(error));
  *file = (attnrt_file){bytes, (size_t)status.st_size};
  return ATTN_OK;
}

void attnrt_unmap(attnrt_file *file) {
  if (file->bytes)
    munmap((void *)file->bytes, file->size);
}

/// All bytes, or errno.
static int write_all(int descriptor, const char *bytes, size_t size) {
  while (size) {
    ssize_t written = write(descriptor, bytes, size);
    if (written < 0 && errno != EINTR)
      return errno;
    if (written > 0) {
      bytes += written;
      size -= (size_t)written;
    }
  }
  return 0;
}

attn_status attnrt_write_file(const char *path, const attnrt_file *parts, int count) {
  char draft[PATH_MAX];
  int length = snprintf(draft, sizeof draft, "%s.%ld", path, (long)getpid());
  if (length >= (int)sizeof draft)
    return attnrt_fail(ATTN_ERROR_FILE, "expected a path of less than %d bytes, got %d", PATH_MAX,
                       length);
  int descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  int error = descriptor < 0 ? errno : 0;
  for (int i = 0; i < count && !error; ++i)
    error = write_all(descriptor, parts[i].bytes, parts[i].size);
  if (descriptor >= 0 && close(descriptor) && !error)
    error = errno;
  // Whoever has mapped the former file keeps it.
  if (!error && rename(draft, path))
    error = errno;
  if (!error)
    return ATTN_OK;
  if (descriptor >= 0)
    unlink(draft);
  return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected a file that can be written, got: %s", path,
                     strerror(error));
}
