//===- Link.cpp - make a shared library with lld ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Link.h"
#include "codegen/emit/OutputFiles.h"

#include "lld/Common/Driver.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace attn;

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> attn::linkShared(llvm::MemoryBufferRef object,
                                                                     llvm::StringRef soname,
                                                                     llvm::StringRef query,
                                                                     bool allowUndefined) {
  // lld can read its input only from a file, and write its output only to a file.
  TemporaryFile input, output;
  if (llvm::Error error = input.create("o", object.getBuffer()))
    return error;
  if (llvm::Error error = output.create("so"))
    return error;
  // lld maps its output into memory, so writing to a full disk would be a bus error. The library is hardly larger than
  // the object.
  if (llvm::Error error = output.expectRoom(object.getBufferSize() + (1 << 16)))
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
                             input.path().data(),
                             "-o",
                             output.path().data()};
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
  llvm::Expected<std::string> linked = output.read();
  if (!linked)
    return linked.takeError();
  return llvm::MemoryBuffer::getMemBufferCopy(*linked);
}
