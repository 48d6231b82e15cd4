//===- OutputFiles.cpp - write all files or none ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/OutputFiles.h"

#include "llvm/ADT/STLExtras.h"

using namespace attn;

static llvm::Error cannotWrite(llvm::StringRef path, llvm::Error error) {
  return llvm::createStringError("cannot write '" + path + "': " + toString(std::move(error)));
}

OutputFiles::~OutputFiles() {
  for (File &file : files)
    llvm::consumeError(file.temporary.discard());
}

llvm::Error OutputFiles::add(llvm::StringRef path,
                             llvm::function_ref<void(llvm::raw_ostream &)> write) {
  auto temporary = llvm::sys::fs::TempFile::create(path + ".tmp-%%%%%%%%");
  if (!temporary)
    return cannotWrite(path, temporary.takeError());
  files.push_back({path.str(), std::move(*temporary)});
  llvm::raw_fd_ostream out(files.back().temporary.FD, /*shouldClose=*/false);
  write(out);
  out.flush();
  if (!out.has_error())
    return llvm::Error::success();
  std::error_code error = out.error();
  out.clear_error();
  return cannotWrite(path, llvm::errorCodeToError(error));
}

llvm::Error OutputFiles::keep() {
  for (auto [i, file] : llvm::enumerate(files))
    if (llvm::Error error = file.temporary.keep(file.path)) {
      for (const File &kept : llvm::ArrayRef(files).take_front(i))
        llvm::sys::fs::remove(kept.path);
      return cannotWrite(file.path, std::move(error));
    }
  files.clear();
  return llvm::Error::success();
}
