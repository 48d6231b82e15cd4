//===- OutputFiles.cpp - write files completely or not at all --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/OutputFiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"

using namespace attn;

static llvm::Error cannotWrite(llvm::StringRef path, std::error_code error) {
  return llvm::createStringError("cannot write '" + path + "': " + error.message());
}

/// Writes to `descriptor` and closes it.
static llvm::Error writeTo(int descriptor, llvm::StringRef path,
                           llvm::function_ref<void(llvm::raw_ostream &)> write) {
  llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
  write(out);
  out.close();
  std::error_code error = out.error();
  out.clear_error(); // the destructor of the stream would report the error as a crash
  return error ? cannotWrite(path, error) : llvm::Error::success();
}

OutputFiles::~OutputFiles() {
  for (const File &file : files) {
    llvm::sys::fs::remove(file.temporary);
    llvm::sys::DontRemoveFileOnSignal(file.temporary);
  }
}

llvm::Error OutputFiles::add(llvm::StringRef path,
                             llvm::function_ref<void(llvm::raw_ostream &)> write) {
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(path, status) &&
      status.type() != llvm::sys::fs::file_type::regular_file) {
    int device;
    if (std::error_code error = llvm::sys::fs::openFileForWrite(path, device))
      return cannotWrite(path, error);
    return writeTo(device, path, write);
  }
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
  return writeTo(descriptor, path, write);
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

llvm::Error attn::writeFile(llvm::StringRef path,
                            llvm::function_ref<void(llvm::raw_ostream &)> write) {
  OutputFiles files;
  if (llvm::Error error = files.add(path, write))
    return error;
  return files.keep();
}

TemporaryFile::~TemporaryFile() {
  if (name.empty())
    return;
  llvm::sys::fs::remove(name);
  llvm::sys::DontRemoveFileOnSignal(name);
}

llvm::Error TemporaryFile::create(llvm::StringRef suffix, llvm::StringRef text) {
  int descriptor = -1;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("attn", suffix, descriptor, name))
    return llvm::createStringError(error, "cannot create a temporary file: " + error.message());
  llvm::sys::RemoveFileOnSignal(name);
  return writeTo(descriptor, name, [&](llvm::raw_ostream &out) { out << text; });
}

llvm::Expected<std::string> TemporaryFile::read() const {
  auto buffer = llvm::MemoryBuffer::getFile(name, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (std::error_code error = buffer.getError())
    return llvm::createStringError(error, "cannot read '" + name + "': " + error.message());
  return (*buffer)->getBuffer().str();
}

llvm::Error TemporaryFile::expectRoom(uint64_t bytes) const {
  llvm::ErrorOr<llvm::sys::fs::space_info> space = llvm::sys::fs::disk_space(name);
  if (!space || space->available >= bytes)
    return llvm::Error::success();
  return llvm::createStringError("cannot write '" + name + "': expected room for " +
                                 llvm::Twine(bytes) + " bytes, got " +
                                 llvm::Twine(space->available));
}
