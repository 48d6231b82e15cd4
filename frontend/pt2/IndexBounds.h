//===- IndexBounds.h - keep indices within their table ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_INDEXBOUNDS_H
#define ATTN_FRONTEND_PT2_INDEXBOUNDS_H

#include "frontend/pt2/AtenOps.h"

namespace attn::pt2 {

/// Ensures that a call is refused if an element of `index` lies outside [0, size) or, with `wraps`, outside
/// [-size, size):
///  * If the elements follow from the sizes of a call, requires sizes that keep the elements inside.
///  * If they are elements of a function argument plus such numbers, gives the argument a bound (attn.bound).
/// If neither is possible, reports that a call does not check the index.
mlir::LogicalResult boundIndex(Call &call, const Tensor &index, const Size &size, bool wraps);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_INDEXBOUNDS_H
