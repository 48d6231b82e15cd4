//===- PlaceTemporaries.cpp - registers or shared memory -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   scf.forall (%b, %h, %i) in (...) {
//     %acc = memref.alloc() : memref<64x64xf32>      attn.online_init rows outs(%max, %sum, %acc) ...
//     %t = memref.alloc() : memref<64x64xbf16>       linalg.transpose ins(%k) outs(%t) ...
// becomes
//   scf.forall (%b, %h, %i) in (...) {
//     %acc = memref.alloca() : memref<64x64xf32, #gpu.address_space<private>>
//     %t = memref.alloca() : memref<64x64xbf16, #gpu.address_space<workgroup>>
//
// A buffer in registers belongs to the block of threads that runs the task: each thread holds some of its elements. States
// of online softmaxes are such buffers, and so is the scratch of their steps, which disappears when the steps are lowered.
// Test: test/codegen/gpu/place-temporaries.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PLACETEMPORARIES
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Calls `visit` for each op that accesses the memory of `buffer`, also through views.
static void forEachAccess(Value buffer, function_ref<void(Operation *)> visit) {
  for (Operation *user : buffer.getUsers()) {
    if (isa<ViewLikeOpInterface>(user))
      forEachAccess(user->getResult(0), visit);
    else
      visit(user);
  }
}

static bool belongsToRegisters(memref::AllocOp alloc) {
  bool isState = false, isRead = false;
  forEachAccess(alloc, [&](Operation *user) {
    if (isa<OnlineInitOp>(user))
      isState = true;
    else if (!isa<OnlineStepOp, OnlineFinishOp>(user))
      isRead = true;
  });
  return isState || !isRead;
}

/// Gives `value`, and the views of it, the memory space.
static void setSpace(Value value, Attribute space) {
  auto type = cast<MemRefType>(value.getType());
  value.setType(MemRefType::Builder(type).setMemorySpace(space));
  for (Operation *user : value.getUsers())
    if (isa<ViewLikeOpInterface>(user))
      setSpace(user->getResult(0), space);
}

namespace {
struct PlaceTemporaries : attn::impl::PlaceTemporariesBase<PlaceTemporaries> {
  void runOnOperation() override {
    WalkResult placed = getOperation().walk([&](memref::AllocOp alloc) -> WalkResult {
      if (!alloc->getParentOfType<scf::ForallOp>())
        return WalkResult::advance(); // a temporary of the call
      if (!alloc.getType().hasStaticShape())
        return alloc.emitError() << "expected a temporary of known size in a task, got "
                                 << alloc.getType();
      ThreadBuilder b(alloc.getLoc(), alloc);
      bool isInRegisters = belongsToRegisters(alloc);
      Value place = memref::AllocaOp::create(b, alloc.getType());
      alloc.replaceAllUsesWith(place);
      setSpace(place, isInRegisters ? registerSpace(b.getContext()) : sharedSpace(b.getContext()));
      alloc.erase();
      return WalkResult::advance();
    });
    if (placed.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
