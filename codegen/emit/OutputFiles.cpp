//===- OutputFiles.cpp - write all files or none ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/OutputFiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"

using namespace attn;

static llvm::Error cannotWrite(llvm::StringRef path, std::error_code error) {
  return llvm::createStringError("cannot write '" + path + "': " + error.message());
}

OutputFiles::~OutputFiles() {
  for (const File &file : files) {
    llvm::sys::fs::remove(file.temporary);
    llvm::sys::DontRemoveFileOnSignal(file.temporary);
  }
}

llvm::Error OutputFiles::add(llvm::StringRef path,
                             llvm::function_ref<void(llvm::raw_ostream &)> write) {
  // LLVM's functions for temporary files would replace each % in the path.
  std::string temporary;
  std::error_code error;
  int descriptor;
  do {
    temporary = path.str() + ".tmp-" + llvm::utohexstr(llvm::sys::Process::GetRandomNumber());
    error = llvm::sys::fs::openFileForWrite(temporary, descriptor, llvm::sys::fs::CD_CreateNew);
  } while (error == std::errc::file_exists);
  if (error)
    return cannotWrite(path, error);
  llvm::sys::RemoveFileOnSignal(temporary);
  files.push_back({path.str(), temporary});
  llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
  write(out);
  out.close();
  error = out.error();
  out.clear_error();
  return error ? cannotWrite(path, error) : llvm::Error::success();
}

llvm::Error OutputFiles::keep() {
  for (auto [i, file] : llvm::enumerate(files))
    if (std::error_code error = llvm::sys::fs::rename(file.temporary, file.path)) {
      for (const File &kept : llvm::ArrayRef(files).take_front(i))
        llvm::sys::fs::remove(kept.path);
      return cannotWrite(file.path, error);
    }
  for (const File &file : files)
    llvm::sys::DontRemoveFileOnSignal(file.temporary);
  files.clear();
  return llvm::Error::success();
}
