//===- Prefetch.h - prefetch instructions ------------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_PREFETCH_H
#define ATTN_CODEGEN_CPU_PREFETCH_H

#include "mlir/IR/Builders.h"

namespace attn {

/// Bytes per cache line.
inline constexpr int64_t kBytesPerLine = 64;

/// The cache that a prefetch loads a line into. `ForOneUse` is for a line that is used once, such as a line of a bias.
/// Such a line does not displace lines of L2 that are used again, such as those of keys and values.
enum class Cache { First, Second, ForOneUse };

/// Prefetches the cache line of an element. A prefetch never faults, so any address is allowed.
void createPrefetch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                    mlir::ValueRange indices, Cache level = Cache::First);

/// Prefetches the cache line at `pointer`, a pointer of the LLVM dialect.
void createPrefetch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value pointer, Cache level);

/// Whether `view` is a part of an argument of the function. Only such data is worth prefetching, because data that a
/// task computes itself is already in the caches.
bool isOfArgument(mlir::Value view);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_PREFETCH_H
