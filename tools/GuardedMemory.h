//===- GuardedMemory.h - memory that no stray access survives ---*- C++ -*-===//
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

/// Bytes between two stretches of pages that may not be touched, close to the one or to the other.
class GuardedMemory {
public:
  enum class Side { Start, End };

  /// At the end the alignment is what `bytes` is a multiple of.
  static llvm::Expected<GuardedMemory> create(size_t bytes, Side side);
  GuardedMemory(GuardedMemory &&other) : mapping(other.mapping), bytes(other.bytes) {
    other.mapping = {};
  }
  ~GuardedMemory();

  llvm::MutableArrayRef<char> get() { return bytes; }

  /// Gives the bytes up to who later adopts them. Only at the end.
  char *release();
  static GuardedMemory adopt(void *memory, size_t bytes);

  /// From now on it can be read alone.
  void protect();

private:
  GuardedMemory(llvm::MutableArrayRef<char> mapping, llvm::MutableArrayRef<char> bytes)
      : mapping(mapping), bytes(bytes) {}

  llvm::MutableArrayRef<char> mapping, bytes;
};

/// Makes the runtime take all its memory, workspaces and weights too, from guarded ends of pages.
attn_status guardRuntimeMemory();

} // namespace attn

#endif // ATTN_TOOLS_GUARDEDMEMORY_H
