//===- PackedMask.h - attentions whose dense mask is packed --------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// attn.pack_mask packs a dense mask into words. `plan` decides which masks are packed, and `tile` tests the words; both
// use the functions of this file.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PACKEDMASK_H
#define ATTN_PASSES_PACKEDMASK_H

#include "dialect/Attn.h"

namespace attn {

/// Whether the mask of `op` has a dense test of captured operand `capture`.
bool isTested(AttentionOp op, unsigned capture);

/// Whether every tile of keys begins at the first key of a word. `op` must have a plan.
bool tilesBeginAtWords(AttentionOp op);

/// Reports an error if `op` has a packed operand that its mask does not test, or has a packed operand together with the
/// schedule decode or with tiles that begin inside a word.
llvm::LogicalResult verifyPackedMask(AttentionOp op);

/// The two parts of a mask: `packed` has its dense tests of packed operands, and `rest` has all other conditions and
/// may be null. The mask is the conjunction of the parts.
struct MaskParts {
  llvm::SmallVector<DenseAttr> packed;
  MaskInterface rest;
};
MaskParts splitMask(AttentionOp op);

} // namespace attn

#endif // ATTN_PASSES_PACKEDMASK_H
