//===- OneQuery.h - the two attentions of attn-one-query ---------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_ONEQUERY_H
#define ATTN_PASSES_PLAN_ONEQUERY_H

#include "dialect/Attn.h"

namespace attn {

/// If calls with one query compute `op` instead of another attention, returns this other attention; otherwise null.
AttentionOp findGeneral(AttentionOp op);

/// The attention that calls with one query compute instead of `op`, or null.
AttentionOp findForOneQuery(AttentionOp op);

} // namespace attn

#endif // ATTN_PASSES_PLAN_ONEQUERY_H
