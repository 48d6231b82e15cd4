//===- GuardedMemory.cpp - memory between guard pages ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/GuardedMemory.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Process.h"

#include <sys/mman.h>

using namespace llvm;
using namespace attn;

/// Bytes of the guard on each side. It is larger than any tile, so that it also traps an access to
/// a tile that lies completely outside.
static constexpr size_t kGuard = 1 << 20;

Expected<GuardedMemory> GuardedMemory::create(size_t bytes, Side side) {
  size_t room = alignTo(bytes, sys::Process::getPageSizeEstimate());
  size_t size = room + 2 * kGuard;
  void *mapping = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char *first = static_cast<char *>(mapping) + kGuard;
  if (mapping == MAP_FAILED || mprotect(first, room, PROT_READ | PROT_WRITE))
    return createStringError("expected " + Twine(size) + " bytes of guarded memory, got none");
  char *start = side == Side::Start ? first : first + room - bytes;
  return GuardedMemory({static_cast<char *>(mapping), size}, {start, bytes});
}

char *GuardedMemory::release() {
  mapping = {};
  return bytes.data();
}

GuardedMemory GuardedMemory::adopt(void *memory, size_t bytes) {
  char *start = static_cast<char *>(memory);
  size_t room = alignTo(bytes, sys::Process::getPageSizeEstimate());
  return GuardedMemory({start + bytes - room - kGuard, room + 2 * kGuard}, {start, bytes});
}

GuardedMemory::~GuardedMemory() {
  if (!mapping.empty())
    munmap(mapping.data(), mapping.size());
}

void GuardedMemory::protect() {
  mprotect(mapping.data() + kGuard, mapping.size() - 2 * kGuard, PROT_READ);
}

attn_status attn::guardRuntimeMemory() {
  attn_allocator allocator = {};
  allocator.size = sizeof(allocator);
  allocator.allocate = [](size_t bytes, size_t alignment, void *) -> void * {
    // The size is rounded up to the alignment, which leaves a gap between the bytes and the guard.
    auto memory = GuardedMemory::create(alignTo(bytes, alignment), GuardedMemory::Side::End);
    if (!memory) {
      consumeError(memory.takeError());
      return nullptr;
    }
    return memory->release();
  };
  allocator.release = [](void *memory, size_t bytes, size_t alignment, void *) {
    GuardedMemory::adopt(memory, alignTo(bytes, alignment)); // the destructor unmaps it
  };
  return attn_set_allocator(&allocator);
}
