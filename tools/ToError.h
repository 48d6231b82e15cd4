//===- ToError.h - failures as errors of LLVM -------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_TOERROR_H
#define ATTN_TOOLS_TOERROR_H

#include "tools/call/Failure.h"

#include "llvm/Support/Error.h"

namespace attn {

/// `failure` as an error with its message, or success.
inline llvm::Error toError(const Failure &failure) {
  return failure ? llvm::createStringError(failure.message) : llvm::Error::success();
}

} // namespace attn

#endif // ATTN_TOOLS_TOERROR_H
