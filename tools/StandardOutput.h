//===- StandardOutput.h - errors of standard output --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_STANDARDOUTPUT_H
#define ATTN_TOOLS_STANDARDOUTPUT_H

#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <string>
#include <unistd.h>

namespace attn {

/// When `tool` ends and a write to standard output failed, for example because a disk is full, ends it with one line
/// and the status 1. The destructor of the stream would report a crash.
inline void checkStandardOutput(std::string tool) {
  static std::string name;
  name = std::move(tool);
  llvm::outs(); // so that it is destroyed after the check
  std::atexit([] {
    llvm::outs().flush();
    if (!llvm::outs().has_error())
      return;
    llvm::outs().clear_error();
    llvm::errs() << name << ": cannot write to standard output\n";
    _exit(1);
  });
}

} // namespace attn

#endif // ATTN_TOOLS_STANDARDOUTPUT_H
