//===- file.c - read, map and write files ----------------------------------===//
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

static attn_status unreadable(const char *path, int error) {
  return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected a file that can be read, got: %s", path,
                     strerror(error));
}

attn_status attnrt_open(const char *path, int *descriptor, size_t *size) {
  // Without O_NONBLOCK, open() would wait for a writer if the file is a pipe. Pipes are rejected
  // below.
  *descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (*descriptor < 0)
    return unreadable(path, errno);
  if (fstat(*descriptor, &status)) {
    int error = errno;
    close(*descriptor);
    return unreadable(path, error);
  }
  if (!S_ISREG(status.st_mode) || !status.st_size) {
    close(*descriptor);
    return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected a file with content, got %s", path,
                       S_ISREG(status.st_mode) ? "an empty one" : "no regular file");
  }
  *size = (size_t)status.st_size;
  return ATTN_OK;
}

attn_status attnrt_map(const char *path, attnrt_file *file) {
  int descriptor;
  size_t size = 0;
  *file = (attnrt_file){NULL, 0};
  attn_status status = attnrt_open(path, &descriptor, &size);
  if (status)
    return status;
  void *bytes = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
  int error = errno;
  close(descriptor);
  if (bytes == MAP_FAILED)
    return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected a file that can be mapped, got: %s", path,
                       strerror(error));
  *file = (attnrt_file){bytes, size};
  return ATTN_OK;
}

void attnrt_unmap(attnrt_file *file) {
  if (file->bytes)
    munmap((void *)file->bytes, file->size);
}

attn_status attnrt_read_at(const char *path, int descriptor, void *bytes, size_t size,
                           size_t offset) {
  for (size_t done = 0; done < size;) {
    ssize_t got = pread(descriptor, (char *)bytes + done, size - done, (off_t)(offset + done));
    if (got == 0)
      return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected %zu bytes, got %zu: it was cut off", path,
                         offset + size, offset + done);
    if (got < 0 && errno != EINTR)
      return unreadable(path, errno);
    if (got > 0)
      done += (size_t)got;
  }
  return ATTN_OK;
}

/// Writes all bytes. Returns 0, or errno if that fails.
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

/// Creates a new file beside `path`, writes its name to `draft` and returns its descriptor, or
/// returns -1 and sets errno.
static int create_draft(const char *path, char draft[PATH_MAX]) {
  static atomic_uint drafts;
  int descriptor;
  // A process on another machine that shares the folder may have the same process id, and a process that ended early
  // leaves its file behind. Therefore, try other numbers if the file exists.
  do {
    unsigned number = atomic_fetch_add(&drafts, 1);
    if (snprintf(draft, PATH_MAX, "%s.%ld-%u", path, (long)getpid(), number) >= PATH_MAX) {
      errno = ENAMETOOLONG;
      return -1;
    }
    descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  return descriptor;
}

attn_status attnrt_write_file(const char *path, const attnrt_file *parts, int count) {
  char draft[PATH_MAX];
  int descriptor = create_draft(path, draft);
  int error = descriptor < 0 ? errno : 0;
  for (int i = 0; i < count && !error; ++i)
    error = write_all(descriptor, parts[i].bytes, parts[i].size);
  if (descriptor >= 0 && !error && fsync(descriptor))
    error = errno;
  if (descriptor >= 0 && close(descriptor) && !error)
    error = errno;
  // A process that has mapped the old file keeps the old content.
  if (!error && rename(draft, path))
    error = errno;
  if (!error)
    return ATTN_OK;
  if (descriptor >= 0)
    unlink(draft);
  return attnrt_fail(ATTN_ERROR_FILE, "'%s': expected a file that can be written, got: %s", path,
                     strerror(error));
}
