//===- Prefetch.cpp - prefetch instructions --------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Prefetch.h"
#include "codegen/cpu/Lanes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

static int32_t getLocality(Cache level) {
  switch (level) {
  case Cache::First:
    return 3;
  case Cache::Second:
    return 2;
  case Cache::ForOneUse:
    return 0;
  }
  llvm_unreachable("a level without a locality");
}

void attn::createPrefetch(OpBuilder &builder, Location loc, Value buffer, ValueRange indices,
                          Cache level) {
  memref::PrefetchOp::create(builder, loc, buffer, indices, /*isWrite=*/false, getLocality(level),
                             /*isDataCache=*/true);
}

void attn::createPrefetch(OpBuilder &builder, Location loc, Value pointer, Cache level) {
  LLVM::Prefetch::create(builder, loc, pointer, /*rw=*/0, getLocality(level), /*cache=*/1);
}

bool attn::isOfArgument(Value view) { return isa<BlockArgument>(getSource(view)); }
