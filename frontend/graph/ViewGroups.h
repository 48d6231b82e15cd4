//===- ViewGroups.h - which dimensions a view reshapes ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_GRAPH_VIEWGROUPS_H
#define ATTN_FRONTEND_GRAPH_VIEWGROUPS_H

#include "dialect/Size.h"

namespace attn::graph {

/// A group of neighbouring dimensions that a view reshapes: `from` dimensions of the source have the
/// same elements, in the same order, as `to` dimensions of the result.
struct ViewGroup {
  unsigned from, to;
};

/// Splits the dimensions of `source` and of its view `result` into as many groups as possible. Returns none if it
/// cannot prove that the two shapes have the same number of elements in every call.
std::optional<llvm::SmallVector<ViewGroup>> matchView(llvm::ArrayRef<Size> source,
                                                      llvm::ArrayRef<Size> result);

} // namespace attn::graph

#endif // ATTN_FRONTEND_GRAPH_VIEWGROUPS_H
