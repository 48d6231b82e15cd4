//===- AssignShared.cpp - assign offsets in shared memory ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func private @f.attend(...) attributes {attn.launch = #attn.launch<threads = 128>} {
//     %q = memref.alloca() : memref<1x64x72xbf16, #gpu.address_space<workgroup>>
//     %k = memref.alloca() : memref<2x64x72xbf16, #gpu.address_space<workgroup>>
// becomes
//   func.func private @f.attend(...) attributes {attn.launch = #attn.launch<threads = 128, shared = 27648>} {
//     %shared = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
//     %q = memref.view %shared[0] : .. to memref<1x64x72xbf16, #gpu.address_space<workgroup>>
//     %k = memref.view %shared[9216] : ...
//
// Two buffers whose uses do not overlap in time may share memory, because all threads of the block wait at a barrier
// after the last access that an op makes to shared memory.
// Test: test/codegen/gpu/assign-shared.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_ASSIGNSHARED
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Each buffer begins at a multiple of its alignment, and of 16 bytes, because asynchronous copies copy 16 bytes to an
/// aligned address.
static constexpr int64_t kAlignment = 16;

namespace {
/// The offset and the size of a buffer in bytes, and the positions in the function of the first and the last op that
/// use the buffer.
struct Place {
  int64_t offset = 0, bytes = 0, first = std::numeric_limits<int64_t>::max(), last = -1;

  bool conflicts(const Place &other) const {
    return first <= other.last && other.first <= last && offset < other.offset + other.bytes &&
           other.offset < offset + bytes;
  }
};

struct AssignShared : attn::impl::AssignSharedBase<AssignShared> {
  void runOnOperation() override {
    auto gpu = dyn_cast_if_present<GpuAttr>(getTarget(getOperation()));
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto launch = function->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
      if (!launch || function.isDeclaration())
        continue;
      int64_t used = assign(function);
      if (gpu && used > gpu.getShared()) {
        function.emitError() << "expected a task that uses at most " << gpu.getShared()
                             << " bytes of shared memory, got " << used;
        return signalPassFailure();
      }
      function->setAttr(AttnDialect::kLaunchAttr,
                        LaunchAttr::get(&getContext(), launch.getThreads(), launch.getProducers(),
                                        launch.getBlocks(), used));
    }
  }

  /// Places the buffers of `function` and returns the bytes that they use.
  int64_t assign(func::FuncOp function) {
    Attribute space = sharedSpace(&getContext());
    SmallVector<memref::AllocaOp> buffers;
    function.walk([&](memref::AllocaOp alloca) {
      if (isIn(alloca, space))
        buffers.push_back(alloca);
    });
    if (buffers.empty())
      return 0;
    ThreadBuilder top(function.getLoc(), OpBuilder::atBlockBegin(&function.front()));
    auto bytes = MemRefType::get({ShapedType::kDynamic}, top.getI8Type(),
                                 MemRefLayoutAttrInterface(), space);
    Value memory = gpu::DynamicSharedMemoryOp::create(top, bytes);
    llvm::DenseMap<Operation *, int64_t> numbers;
    for (Operation &op : function.front())
      numbers[&op] = numbers.size();
    SmallVector<Place> places;
    int64_t end = 0;
    for (memref::AllocaOp alloca : buffers) {
      MemRefType type = alloca.getType();
      uint64_t alignment = std::max<uint64_t>(alloca.getAlignment().value_or(0), kAlignment);
      Place place;
      place.bytes = llvm::alignTo(
          type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8), kAlignment);
      findUses(alloca, function, numbers, place);
      // Move the buffer up until it overlaps with no buffer that is used at the same time.
      for (bool moved = true; moved;) {
        moved = false;
        for (const Place &other : places)
          if (place.conflicts(other)) {
            place.offset = llvm::alignTo(other.offset + other.bytes, alignment);
            moved = true;
          }
      }
      places.push_back(place);
      end = std::max(end, place.offset + place.bytes);
      ThreadBuilder b(alloca.getLoc(), alloca);
      Value view = memref::ViewOp::create(b, type, memory, b.constant(place.offset), ValueRange{});
      alloca.replaceAllUsesWith(view);
      alloca.erase();
    }
    return end;
  }

  /// Extends the range from `first` to `last` of `place` to all uses of `buffer` and of its views.
  static void findUses(Value buffer, func::FuncOp function,
                       const llvm::DenseMap<Operation *, int64_t> &numbers, Place &place) {
    for (Operation *user : buffer.getUsers()) {
      int64_t number = numbers.lookup(function.front().findAncestorOpInBlock(*user));
      for (Value view : user->getResults())
        if (isa<MemRefType>(view.getType()))
          findUses(view, function, numbers, place);
      place.first = std::min(place.first, number);
      place.last = std::max(place.last, number);
    }
  }
};
} // namespace
