//===- IndexBounds.h - keep indices within their table ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_INDEXBOUNDS_H
#define ATTN_FRONTEND_PT2_INDEXBOUNDS_H

#include "frontend/pt2/AtenOps.h"

namespace attn::pt2 {

/// Keeps the elements of `index` below `size` in two cases. If the elements are positions in a dimension, such as
/// torch.arange(S), requires sizes of a call that keep the positions below `size`. If `size` is constant and `index` is
/// a function argument plus numbers that are not negative, gives the argument a bound (attn.bound) that keeps `index`
/// in [0, size).
mlir::LogicalResult boundIndex(Call &call, const Tensor &index, const Size &size);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_INDEXBOUNDS_H
