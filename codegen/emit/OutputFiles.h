//===- OutputFiles.h - write files completely or not at all ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_OUTPUTFILES_H
#define ATTN_CODEGEN_EMIT_OUTPUTFILES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// Writes temporary files in the folders of the final files. keep() renames them in the order of add(). If keep() is
/// not called, or fails, no file is left. A path that exists and is no regular file, such as /dev/stdout, is written
/// directly.
class OutputFiles {
public:
  OutputFiles() = default;
  ~OutputFiles();

  llvm::Error add(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);
  llvm::Error keep();

private:
  struct File {
    std::string path, temporary;
  };
  llvm::SmallVector<File> files;
};

/// Writes one file completely, or leaves what is there.
llvm::Error writeFile(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);

/// A temporary file. The destructor removes it.
class TemporaryFile {
public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile &) = delete;
  ~TemporaryFile();

  llvm::Error create(llvm::StringRef suffix, llvm::StringRef text = "");
  llvm::StringRef path() const { return name; }
  llvm::Expected<std::string> read() const;
  /// Reports an error if the file system has no room for `bytes` more bytes.
  llvm::Error expectRoom(uint64_t bytes) const;

private:
  llvm::SmallString<128> name;
};

} // namespace attn

#endif // ATTN_CODEGEN_EMIT_OUTPUTFILES_H
