//===- Prefetch.h - asking for memory ahead of time --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_PREFETCH_H
#define ATTN_CODEGEN_CPU_PREFETCH_H

#include "mlir/IR/Builders.h"

namespace attn {

/// Of a cache's line.
inline constexpr int64_t kBytesPerLine = 64;
/// Of f32, in a line.
inline constexpr int64_t kElementsPerLine = kBytesPerLine / 4;

enum class Cache { First, Second };

/// Asks for the line of an element; an address is never wrong.
void createPrefetch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value buffer,
                    mlir::ValueRange indices, Cache level = Cache::First);

/// Asks for the line at `pointer`, of the LLVM dialect.
void createPrefetch(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value pointer, Cache level);

/// Whether `view` is a part of an argument of the function. What a task computes itself is in its caches.
bool isOfArgument(mlir::Value view);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_PREFETCH_H
