//===- ContractToVector.h - lowering one contraction -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_CONTRACTTOVECTOR_H
#define ATTN_CODEGEN_CPU_CONTRACTTOVECTOR_H

#include "codegen/cpu/Contraction.h"

namespace attn {

/// Replaces `contraction`, and the op that stores the initial value of its sums if there is one, by loops over vectors.
/// If no dimension can be in the lanes, emits scalar loops and a remark instead.
llvm::LogicalResult lowerContraction(mlir::RewriterBase &rewriter, const Contraction &contraction,
                                     Start start, CpuAttr cpu);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_CONTRACTTOVECTOR_H
