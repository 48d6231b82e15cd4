//===- library.c - libraries loaded from a file or linked in --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "internal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/// `where` names the library in messages: its own name cannot be read before its ABI version is
/// checked.
static attn_status open_library(attn_query_fn query, void *handle, const char *where,
                                attn_library **library) {
  const attn_library_info *info = query();
  if (!info)
    return attnrt_fail(ATTN_ERROR_LIBRARY, "%s: expected a description, got null", where);
  if (info->abi_version != ATTN_ABI_VERSION)
    return attnrt_fail(ATTN_ERROR_LIBRARY, "%s: expected ABI version %d, got %u", where,
                       ATTN_ABI_VERSION, info->abi_version);
  if (info->struct_bytes < sizeof *info)
    return attnrt_fail(ATTN_ERROR_LIBRARY, "%s: expected a description of %zu bytes, got %u", where,
                       sizeof *info, info->struct_bytes);
  attn_library *opened = ATTNRT_NEW(attn_library, 1);
  if (!opened)
    return attnrt_fail(ATTN_ERROR_RESOURCE, "%s: expected %zu bytes of memory, got none", where,
                       sizeof *opened);
  opened->info = info;
  opened->handle = handle;
  atomic_init(&opened->loaded, NULL);
  atomic_init(&opened->references, 1);
  *library = opened;
  return ATTN_OK;
}

/// Rejects a pipe, for which dlopen would wait, and a truncated library: dlopen maps the segments
/// that the header lists, and crashes if the file is shorter. dlopen itself rejects a file that is not a library or
/// cannot be read.
static attn_status check_whole(int descriptor, const char *where) {
  struct stat file;
  ElfW(Ehdr) header;
  if (descriptor < 0 || fstat(descriptor, &file))
    return ATTN_OK;
  if (!S_ISREG(file.st_mode))
    return attnrt_fail(ATTN_ERROR_LIBRARY, "%s: expected a shared library, got no regular file",
                       where);
  if (pread(descriptor, &header, sizeof header, 0) != (ssize_t)sizeof header ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_phentsize != sizeof(ElfW(Phdr)))
    return ATTN_OK;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    uint64_t end, size = (uint64_t)file.st_size;
    off_t at = (off_t)(header.e_phoff + i * sizeof segment);
    if (pread(descriptor, &segment, sizeof segment, at) != (ssize_t)sizeof segment)
      return ATTN_OK;
    if (segment.p_type == PT_LOAD &&
        (__builtin_add_overflow(segment.p_offset, segment.p_filesz, &end) || end > size))
      return attnrt_fail(ATTN_ERROR_LIBRARY,
                         "%s: expected a whole library of at least %" PRIu64 " bytes, got %" PRIu64,
                         where, end, size);
  }
  return ATTN_OK;
}

/// Loads `file`. If a file of the same name is loaded already, dlopen compares only the names, and would return the
/// old library even if another file has replaced it. Another spelling of the name makes dlopen compare the files; each
/// spelling is used once. A spelling contains the number of such calls in 32 binary digits: "/" stands for 0, and "./"
/// for 1.
static void *load_file(const char *file) {
  static atomic_uint calls;
  void *known = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!known)
    return dlopen(file, RTLD_NOW | RTLD_LOCAL);
  char spelling[PATH_MAX + 80];
  const char *name = strrchr(file, '/') + 1;
  size_t length = (size_t)(name - file);
  memcpy(spelling, file, length);
  unsigned call = atomic_fetch_add(&calls, 1);
  for (int bit = 0; bit < 32; ++bit) {
    if (call >> bit & 1)
      spelling[length++] = '.';
    spelling[length++] = '/';
  }
  strcpy(spelling + length, name);
  dlclose(known); // before dlopen, because it clears dlerror()
  return dlopen(spelling, RTLD_NOW | RTLD_LOCAL);
}

attn_status attn_library_load(const char *path, attn_library **library) {
  if (!path || !library)
    return attnrt_fail(ATTN_ERROR_USAGE, "attn_library_load: expected a path and a place for the "
                                         "library, got null");
  // dlopen would search the folders of the system for a name without a slash; "./" prevents that.
  char file[PATH_MAX], where[PATH_MAX + 16];
  int length = snprintf(file, sizeof file, "%s%s", strchr(path, '/') ? "" : "./", path);
  if (length >= (int)sizeof file)
    return attnrt_fail(ATTN_ERROR_LIBRARY,
                       "attn_library_load: expected a path of less than %d bytes, got %d", PATH_MAX,
                       length);
  snprintf(where, sizeof where, "library '%s'", path);

  int descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  attn_status status = check_whole(descriptor, where);
  if (descriptor >= 0)
    close(descriptor);
  if (status)
    return status;
  void *handle = load_file(file);
  if (!handle)
    return attnrt_fail(ATTN_ERROR_LIBRARY, "%s: expected a shared library, got: %s", where,
                       dlerror());
  attn_query_fn query;
  // POSIX recommends this assignment to get a function pointer from dlsym.
  *(void **)&query = dlsym(handle, "attn_query");
  if (query)
    status = open_library(query, handle, where, library);
  else
    status = attnrt_fail(ATTN_ERROR_LIBRARY, "%s: expected the symbol attn_query, got none", where);
  if (status)
    dlclose(handle);
  return status;
}

attn_status attn_library_from_query(attn_query_fn query, attn_library **library) {
  if (!query || !library)
    return attnrt_fail(ATTN_ERROR_USAGE, "attn_library_from_query: expected a query function and a "
                                         "place for the library, got null");
  return open_library(query, NULL, "linked library", library);
}

attn_library *attnrt_retain(attn_library *library) {
  atomic_fetch_add(&library->references, 1);
  return library;
}

void attn_library_release(attn_library *library) {
  if (!library || atomic_fetch_sub(&library->references, 1) != 1)
    return;
  attnrt_cuda_unload(atomic_load(&library->loaded));
  if (library->handle)
    dlclose(library->handle);
  ATTNRT_DELETE(attn_library, 1, library);
}

const char *attn_library_name(const attn_library *library) { return library->info->name; }

const char *attn_library_compiler(const attn_library *library) { return library->info->compiler; }

const char *attn_library_manifest(const attn_library *library) { return library->info->manifest; }

int32_t attn_library_num_functions(const attn_library *library) {
  return library->info->num_functions;
}

const char *attn_library_function_name(const attn_library *library, int32_t index) {
  if (index < 0 || index >= library->info->num_functions)
    return NULL;
  return library->info->functions[index].name;
}
