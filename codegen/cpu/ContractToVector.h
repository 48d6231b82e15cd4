//===- ContractToVector.h - lowering one contraction -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_CONTRACTTOVECTOR_H
#define ATTN_CODEGEN_CPU_CONTRACTTOVECTOR_H

#include "codegen/cpu/Contraction.h"

namespace attn {

/// Replaces `contraction` by loops over vectors. Erases `start.writer` if it is not null, because these loops start
/// from its value. If no dimension can be in the lanes, emits scalar loops that start from the output, and a remark.
llvm::LogicalResult lowerContraction(mlir::RewriterBase &rewriter, const Contraction &contraction,
                                     Start start, CpuAttr cpu);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_CONTRACTTOVECTOR_H
