//===- GuardedMemory.cpp - memory between guard pages ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/GuardedMemory.h"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

using namespace attn;

/// Bytes of the guard on each side. It is larger than any tile, so that it also traps an access to a tile that lies
/// completely outside of the bytes.
static constexpr size_t kGuard = 1 << 20;

static size_t getPageSize() { return sysconf(_SC_PAGESIZE); }

GuardedMemory::GuardedMemory(size_t bytes, Side side) : numBytes(bytes) {
  size_t room = getRoom();
  void *mapping = mmap(nullptr, room + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return;
  char *pages = static_cast<char *>(mapping) + kGuard;
  if (room && mprotect(pages, room, PROT_READ | PROT_WRITE)) // QEMU refuses a length of 0
    munmap(mapping, room + 2 * kGuard);
  else
    first = side == Side::Start ? pages : pages + room - bytes;
}

// Less than a page of the room is unused, so the first byte is on the first page.
char *GuardedMemory::getPages() const {
  return first - reinterpret_cast<uintptr_t>(first) % getPageSize();
}

size_t GuardedMemory::getRoom() const { return alignTo(numBytes, getPageSize()); }

char *GuardedMemory::release() {
  char *bytes = first;
  first = nullptr;
  return bytes;
}

GuardedMemory GuardedMemory::adopt(void *memory, size_t bytes) {
  GuardedMemory adopted;
  adopted.first = static_cast<char *>(memory);
  adopted.numBytes = bytes;
  return adopted;
}

GuardedMemory::~GuardedMemory() {
  if (first)
    munmap(getPages() - kGuard, getRoom() + 2 * kGuard);
}

void GuardedMemory::protect() { mprotect(getPages(), getRoom(), PROT_READ); }

attn_status attn::guardRuntimeMemory() {
  attn_allocator allocator = {};
  allocator.size = sizeof(allocator);
  allocator.allocate = [](size_t bytes, size_t alignment, void *) -> void * {
    // The size is rounded up to the alignment, which leaves a gap between the bytes and the guard.
    return GuardedMemory(alignTo(bytes, alignment), GuardedMemory::Side::End).release();
  };
  allocator.release = [](void *memory, size_t bytes, size_t alignment, void *) {
    GuardedMemory::adopt(memory, alignTo(bytes, alignment)); // the destructor unmaps it
  };
  return attn_set_allocator(&allocator);
}
