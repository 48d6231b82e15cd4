//===- TileCopies.h - copies of tiles to shared memory ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_TILECOPIES_H
#define ATTN_CODEGEN_GPU_TILECOPIES_H

#include "codegen/gpu/Threads.h"

namespace attn {

/// The number of columns of a block of a swizzled tile. A row of a block has 128 bytes of 16-bit elements.
inline constexpr int64_t kSwizzledColumns = 64;

/// A tile in shared memory. It has `rows` rows of `columns` elements. Each row is padded with zeros to a multiple of 16
/// elements, because matrix instructions read 16 elements at a time. The layout avoids bank conflicts when 16
/// bytes of each of 8 neighbouring rows are read at once:
/// - For mma.sync, rows lie one after the other with 16 unused bytes between them, so that their pitch is an odd number
///   of units of 16 bytes.
/// - wgmma needs the layout that the PTX manual calls 128-byte swizzling: a tile is split into blocks of 64 columns,
///   one after the other. Row r of a block has 128 bytes, which are eight units of 16 bytes, and unit u is at place u
///   xor (r mod 8). The elements have 16 bits.
struct SharedTile {
  int64_t rows, columns;
  mlir::Type element;
  bool isSwizzled = false; ///< for wgmma

  int64_t chunk() const { return 128 / element.getIntOrFloatBitWidth(); }
  /// The number of columns including the padding.
  int64_t paddedColumns() const { return llvm::alignTo(columns, 16); }
  int64_t pitch() const {
    return isSwizzled ? llvm::alignTo(columns, kSwizzledColumns) : paddedColumns() + chunk();
  }

  /// Allocates `stages` tiles, one after the other.
  mlir::Value allocate(ThreadBuilder &b, int64_t stages) const;
  /// Tile `stage` of `tiles`, with `rows` rows and without the padding.
  mlir::Value view(ThreadBuilder &b, mlir::Value tiles, mlir::Value stage,
                   mlir::OpFoldResult rows) const;
  /// Emits code in which `threads` threads together write zeros to the padding of `stages` tiles.
  void clearPadding(ThreadBuilder &b, mlir::Value tiles, int64_t stages, int64_t threads) const;
  /// Emits code in which `threads` threads together copy the first `validRows` rows and `validColumns` columns of
  /// `source` to tile `stage`, and set the other elements to zero. If `validColumns` is null, all columns are valid.
  /// The tile is complete when every thread has waited for its asynchronous copies. `isAligned` says that rows begin at
  /// multiples of 16 bytes, and that the number of valid columns is a multiple of the number of elements in 16 bytes.
  void copy(ThreadBuilder &b, mlir::Value source, mlir::Value validRows, mlir::Value validColumns,
            bool isAligned, mlir::Value tiles, mlir::Value stage, int64_t threads) const;
};

/// The place, in elements, of (row, column) in a swizzled tile of `rows` rows.
mlir::Value createSwizzledPlace(ThreadBuilder &b, int64_t rows, mlir::Value row,
                                mlir::Value column);

/// Whether `tile` is a view of a buffer in shared memory with attribute attn.swizzled.
bool isSwizzled(mlir::Value tile);

/// Whether `buffer` is in global memory, and the address of every row is a multiple of 16 bytes. The runtime checks
/// that the address of each input and output is a multiple of 16 bytes.
bool hasAlignedRows(mlir::Value buffer);

/// Emits code that distributes the numbers below `count` among the threads. `body` emits the code for a number. With
/// `unrolls`, the code has no loop.
void forEachOfThread(ThreadBuilder &b, int64_t count, int64_t threads, bool unrolls,
                     llvm::function_ref<void(mlir::Value)> body);

/// Emits code that waits for the asynchronous copies of this thread, then for all threads of the block. `toWarpgroups`
/// must be true if wgmma reads the copies.
void waitForCopies(ThreadBuilder &b, bool toWarpgroups);

} // namespace attn

#endif // ATTN_CODEGEN_GPU_TILECOPIES_H
