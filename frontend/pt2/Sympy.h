//===- Sympy.h - sizes as sympy writes them ---------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_SYMPY_H
#define ATTN_FRONTEND_PT2_SYMPY_H

#include "dialect/Size.h"

namespace attn::pt2 {

/// Reads the sympy text that torch writes: Symbol('s77', ...), Integer(3), Add, Mul and so on. An unknown expression
/// becomes a symbol whose name is its text. Returns none if the text is not an expression, or if the size is too complex.
std::optional<Size> parseSympy(llvm::StringRef text);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_SYMPY_H
