//===- SafetensorsFile.h - named tensors from a file ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_SAFETENSORSFILE_H
#define ATTN_TOOLS_SAFETENSORSFILE_H

#include "tools/call/Array.h"

#include "llvm/Support/Error.h"

namespace attn {

/// Reads a .safetensors file: 8 bytes with the length of a JSON header, the header, the data.
llvm::Expected<std::vector<std::pair<std::string, Array>>> readSafetensors(llvm::StringRef path);

} // namespace attn

#endif // ATTN_TOOLS_SAFETENSORSFILE_H
