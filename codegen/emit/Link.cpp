//===- Link.cpp - make a shared library with lld ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Link.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace attn;

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> attn::linkShared(llvm::MemoryBufferRef object,
                                                                     llvm::StringRef soname,
                                                                     llvm::StringRef query,
                                                                     bool allowUndefined) {
  // lld can read its input only from a file, and write its output only to a file.
  llvm::SmallString<128> input, output;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("attn", "o", input))
    return llvm::createFileError(input, error);
  llvm::FileRemover removeInput(input);
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("attn", "so", output))
    return llvm::createFileError(output, error);
  llvm::FileRemover removeOutput(output);
  if (llvm::Error error = llvm::writeToOutput(input, [&](llvm::raw_ostream &out) {
        out << object.getBuffer();
        return llvm::Error::success();
      }))
    return error;

  std::string alias = ("--defsym=attn_query=" + query).str(), name = ("-soname=" + soname).str();
  const char *arguments[] = {"ld.lld",
                             "-shared",
                             allowUndefined ? "--allow-shlib-undefined" : "--no-undefined",
                             "--build-id=none",
                             "--hash-style=gnu",
                             "--threads=1",
                             "--eh-frame-hdr",
                             "-znow",
                             "-zrelro",
                             "-znoexecstack",
                             alias.c_str(),
                             name.c_str(),
                             input.c_str(),
                             "-o",
                             output.c_str()};
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result;
  {
    // One link at a time: lld keeps its state in globals.
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  }
  if (result.retCode != 0)
    return llvm::createStringError("the shared library could not be linked: " +
                                   llvm::StringRef(messages).rtrim());
  auto linked =
      llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked)
    return llvm::createFileError(output, linked.getError());
  // Copy the content, because the file is removed and the result must not depend on it.
  return llvm::MemoryBuffer::getMemBufferCopy((*linked)->getBuffer());
}
