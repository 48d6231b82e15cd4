//===- GuardedMemory.h - memory between guard pages -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_GUARDEDMEMORY_H
#define ATTN_TOOLS_CALL_GUARDEDMEMORY_H

#include "runtime/attn.h"

#include <cstddef>

namespace attn {

/// The least multiple of `alignment` that is at least `bytes`.
inline size_t alignTo(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Bytes between two regions of guard pages. Any access to a guard page faults. The bytes are next to the first or to
/// the second region.
class GuardedMemory {
public:
  enum class Side { Start, End };

  /// Allocates `bytes` bytes next to the guard at `side`; data() is null if there is not enough memory. With Side::End,
  /// the memory is aligned to n bytes only if `bytes` is a multiple of n.
  GuardedMemory(size_t bytes, Side side);
  GuardedMemory(GuardedMemory &&other) : first(other.first), numBytes(other.numBytes) {
    other.first = nullptr;
  }
  ~GuardedMemory();

  char *data() { return first; }
  size_t size() const { return numBytes; }

  /// Releases ownership of the bytes; adopt() takes it again.
  char *release();
  static GuardedMemory adopt(void *memory, size_t bytes);

  /// Makes the bytes read-only.
  void protect();

private:
  GuardedMemory() = default;

  /// The first byte between the guards, and the number of bytes between them, a multiple of the page size.
  char *getPages() const;
  size_t getRoom() const;

  char *first = nullptr;
  size_t numBytes = 0;
};

/// Makes the runtime put a guard after each block of memory that it allocates, such as a workspace or packed weights.
/// Up to `alignment` - 1 unused bytes lie between the block and its guard.
attn_status guardRuntimeMemory();

} // namespace attn

#endif // ATTN_TOOLS_CALL_GUARDEDMEMORY_H
