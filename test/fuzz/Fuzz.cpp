//===- Fuzz.cpp - functions that the fuzz targets share ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

using namespace attn;

namespace {
struct Folder {
  Folder() { fuzz::expect(!llvm::sys::fs::createUniqueDirectory("attn-fuzz", path), "a folder for files"); }
  ~Folder() { llvm::sys::fs::remove_directories(path); }
  llvm::SmallString<128> path;
};
} // namespace

std::string fuzz::pathOf(llvm::StringRef suffix) {
  static Folder folder;
  llvm::SmallString<128> path(folder.path);
  llvm::sys::path::append(path, "input" + suffix);
  return path.str().str();
}

std::string fuzz::writeFile(llvm::StringRef suffix, llvm::StringRef bytes) {
  std::string path = pathOf(suffix);
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << bytes;
  expect(!error, "a file that can be written");
  return path;
}

void fuzz::expect(bool condition, llvm::StringRef promise) {
  if (condition)
    return;
  llvm::errs() << "broken promise: expected " << promise << "\n";
  abort();
}

std::string fuzz::textOf(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  expect(!text.empty(), "an error with a text");
  return text;
}
