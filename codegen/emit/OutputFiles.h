//===- OutputFiles.h - write all files or none -------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_OUTPUTFILES_H
#define ATTN_CODEGEN_EMIT_OUTPUTFILES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// Writes temporary files in the folders of the final files. keep() renames them in the order of add(). If keep() is
/// not called, or fails, no file is left.
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

} // namespace attn

#endif // ATTN_CODEGEN_EMIT_OUTPUTFILES_H
