//===- Link.h - make a shared library ------------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_LINK_H
#define ATTN_CODEGEN_EMIT_LINK_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace attn {

/// Links `object` into a shared library that depends on no other library. The library exports `query` under its own
/// name and as attn_query. With `allowUndefined`, the program that loads the library supplies the undefined symbols.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> linkShared(llvm::MemoryBufferRef object,
                                                               llvm::StringRef soname,
                                                               llvm::StringRef query,
                                                               bool allowUndefined);

} // namespace attn

#endif // ATTN_CODEGEN_EMIT_LINK_H
