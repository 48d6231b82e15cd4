//===- GuardedMemory.cpp - memory that no stray access survives -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/GuardedMemory.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Process.h"

#include <mutex>
#include <sys/mman.h>

using namespace llvm;
using namespace attn;

/// Beyond any tile, so that a whole one that lies outside is met too.
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

GuardedMemory::~GuardedMemory() {
  if (!mapping.empty())
    munmap(mapping.data(), mapping.size());
}

void GuardedMemory::protect() {
  mprotect(mapping.data() + kGuard, mapping.size() - 2 * kGuard, PROT_READ);
}

namespace {
/// What the runtime holds, by address.
struct RuntimeMemory {
  std::mutex mutex;
  DenseMap<void *, std::unique_ptr<GuardedMemory>> blocks;

  static RuntimeMemory &get() {
    static RuntimeMemory memory;
    return memory;
  }
};
} // namespace

attn_status attn::guardRuntimeMemory() {
  attn_allocator allocator = {};
  allocator.size = sizeof(allocator);
  allocator.allocate = [](size_t bytes, size_t alignment, void *) -> void * {
    // What is not a multiple of its alignment leaves a gap before the guard.
    auto memory = GuardedMemory::create(alignTo(bytes, alignment), GuardedMemory::Side::End);
    if (!memory) {
      consumeError(memory.takeError());
      return nullptr;
    }
    void *address = memory->get().data();
    std::lock_guard lock(RuntimeMemory::get().mutex);
    RuntimeMemory::get().blocks[address] = std::make_unique<GuardedMemory>(std::move(*memory));
    return address;
  };
  allocator.release = [](void *memory, void *) {
    std::lock_guard lock(RuntimeMemory::get().mutex);
    RuntimeMemory::get().blocks.erase(memory);
  };
  return attn_set_allocator(&allocator);
}
