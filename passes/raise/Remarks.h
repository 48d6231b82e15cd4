//===- Remarks.h - the user's ops in remarks ---------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_RAISE_REMARKS_H
#define ATTN_PASSES_RAISE_REMARKS_H

#include "dialect/Attn.h"

#include <string>

namespace attn {

/// The name of `op` in the user's model, if it has one, and its line in the source. If it has no line, the name of the op
/// in MLIR. The result lacks the number by which torch tells ops of one kind apart, so that each layer of a model gets
/// the same remark.
std::string describe(mlir::Operation *op);

/// The op or the argument that `tensor` comes from.
std::string describe(mlir::Value tensor);

/// The end of a sentence that says what to write instead of `user`, which reads probabilities; empty if nothing is known.
llvm::StringRef adviceFor(mlir::Operation *user);

} // namespace attn

#endif // ATTN_PASSES_RAISE_REMARKS_H
