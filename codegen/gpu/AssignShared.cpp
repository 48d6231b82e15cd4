//===- AssignShared.cpp - the places of buffers in shared memory -----------===//
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

/// Bytes to whose multiples buffers are placed: those of asynchronous copies.
static constexpr int64_t kAlignment = 16;

namespace {
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
                        LaunchAttr::get(&getContext(), launch.getThreads(), used));
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
    int64_t used = 0;
    for (memref::AllocaOp alloca : buffers) {
      ThreadBuilder b(alloca.getLoc(), alloca);
      MemRefType type = alloca.getType();
      Value view = memref::ViewOp::create(b, type, memory, b.constant(used), ValueRange{});
      alloca.replaceAllUsesWith(view);
      alloca.erase();
      used += llvm::alignTo(type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8),
                            kAlignment);
    }
    return used;
  }
};
} // namespace
