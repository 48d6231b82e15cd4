//===- Divisions.h - divisions of integers that cannot trap ------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_MLIR_DIVISIONS_H
#define ATTN_FRONTEND_MLIR_DIVISIONS_H

#include "frontend/mlir/FunctionSizes.h"

namespace attn {

/// Gives each division of integers whose divisor may be 0 or -1 a result for these divisors: x / 0 is x, x % 0 is 0, and
/// x / -1 is -x. In MLIR, a division by 0 and the quotient of the least integer and -1 are undefined; x86 traps.
mlir::LogicalResult guardDivisions(FunctionSizes &sizes);

} // namespace attn

#endif // ATTN_FRONTEND_MLIR_DIVISIONS_H
