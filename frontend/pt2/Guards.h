//===- Guards.h - what torch assumed of the sizes ----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_GUARDS_H
#define ATTN_FRONTEND_PT2_GUARDS_H

#include "frontend/pt2/Graph.h"

namespace attn::pt2 {

/// True if `guard`, as in "L['x'].size()[1] == L['mask'].size()[0] and 2 <= L['x'].size()[0]",
/// follows from the sizes of the arguments and the ranges of their symbols, which every call is
/// checked against.
bool isImplied(llvm::StringRef guard, const std::map<std::string, TensorMeta> &arguments,
               const std::map<std::string, SymbolRange> &ranges);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_GUARDS_H
