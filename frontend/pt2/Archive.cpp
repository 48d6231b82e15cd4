//===- Archive.cpp - the entries of a .pt2 file ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/Archive.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

#include <zip.h>

using namespace llvm;
using namespace attn::pt2;

template <typename... Args> static Error invalid(const char *format, Args &&...args) {
  return createStringError(formatv(format, std::forward<Args>(args)...));
}

void Archive::Close::operator()(struct zip *file) const { zip_discard(file); }

Expected<Archive> Archive::open(StringRef path) {
  uint64_t fileSize;
  if (std::error_code code = sys::fs::file_size(path, fileSize))
    return createStringError(code, code.message());
  int code = 0;
  Archive archive;
  archive.file.reset(zip_open(path.str().c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code));
  if (!archive.file) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    scope_exit fini([&] { zip_error_fini(&error); });
    return invalid("expected a zip file as torch.export.save writes it, got: {0}",
                   zip_error_strerror(&error));
  }

  uint64_t total = 0;
  for (zip_int64_t i = 0, e = zip_get_num_entries(archive.file.get(), 0); i < e; ++i) {
    zip_stat_t stat;
    constexpr zip_uint64_t needed =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (zip_stat_index(archive.file.get(), i, 0, &stat) != 0 || (stat.valid & needed) != needed)
      return invalid("expected a zip directory entry, got: {0}", zip_strerror(archive.file.get()));
    if (stat.comp_method != ZIP_CM_STORE || stat.encryption_method != ZIP_EM_NONE)
      return invalid("expected entry '{0}' to be stored as it is, got compression or encryption",
                     stat.name);
    // Entries that are not compressed cannot together have more bytes than the file. If the directory lists more, its
    // sizes are wrong, or entries share bytes.
    if (stat.size > fileSize - total)
      return invalid(
          "expected entries of at most {0} bytes, the size of the file, got {1} more with '{2}'",
          fileSize, stat.size - (fileSize - total), stat.name);
    total += stat.size;
    StringRef name = StringRef(stat.name).split('/').second;
    if (!archive.entries.try_emplace(name, Entry{uint64_t(i), stat.size}).second)
      return invalid("expected one entry named '{0}', got two", name);
  }
  return archive;
}

Expected<std::unique_ptr<MemoryBuffer>> Archive::read(StringRef name) const {
  auto found = entries.find(name);
  if (found == entries.end())
    return invalid("expected an entry '{0}'", name);
  Entry entry = found->second;
  auto buffer = WritableMemoryBuffer::getNewUninitMemBuffer(entry.size, name);
  if (!buffer)
    return invalid("expected memory for the {0} bytes of '{1}'", entry.size, name);
  zip_file_t *stream = zip_fopen_index(file.get(), entry.index, 0);
  if (!stream)
    return invalid("expected to read '{0}', got: {1}", name, zip_strerror(file.get()));
  scope_exit close([&] { zip_fclose(stream); });
  char past;
  zip_int64_t read = zip_fread(stream, buffer->getBufferStart(), entry.size);
  // libzip compares the checksum only when the reader reads past the end.
  if (read < 0 || uint64_t(read) != entry.size || zip_fread(stream, &past, 1) != 0)
    return invalid("expected the {0} bytes of '{1}', got: {2}", entry.size, name,
                   read < 0 || uint64_t(read) == entry.size ? zip_file_strerror(stream) : "fewer");
  return std::unique_ptr<MemoryBuffer>(std::move(buffer));
}
