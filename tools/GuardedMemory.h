//===- GuardedMemory.h - memory between guard pages -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_GUARDEDMEMORY_H
#define ATTN_TOOLS_GUARDEDMEMORY_H

#include "runtime/attn.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Bytes between two regions of guard pages, at which any access faults. The bytes are next to the
/// first or the second region.
class GuardedMemory {
public:
  enum class Side { Start, End };

  /// Allocates `bytes` bytes next to the guard at `side`. With Side::End, the memory has only the
  /// alignment that `bytes` is a multiple of.
  static llvm::Expected<GuardedMemory> create(size_t bytes, Side side);
  GuardedMemory(GuardedMemory &&other) : mapping(other.mapping), bytes(other.bytes) {
    other.mapping = {};
  }
  ~GuardedMemory();

  llvm::MutableArrayRef<char> get() { return bytes; }

  /// Releases ownership of the bytes; adopt() takes it again. Only for Side::End.
  char *release();
  static GuardedMemory adopt(void *memory, size_t bytes);

  /// Makes the bytes read-only.
  void protect();

private:
  GuardedMemory(llvm::MutableArrayRef<char> mapping, llvm::MutableArrayRef<char> bytes)
      : mapping(mapping), bytes(bytes) {}

  llvm::MutableArrayRef<char> mapping, bytes;
};

/// Makes the runtime allocate all its memory, including workspaces and weights, next to a guard at
/// the end.
attn_status guardRuntimeMemory();

} // namespace attn

#endif // ATTN_TOOLS_GUARDEDMEMORY_H
