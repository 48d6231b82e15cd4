//===- PlaceTemporaries.cpp - registers or shared memory for temporaries ---===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   scf.forall (%b, %h, %i) in (...) {
//     %acc = memref.alloc() : memref<64x64xf32>      attn.online_init rows outs(%max, %sum, %acc) ...
//     %t = memref.alloc() : memref<64x64xbf16>       linalg.transpose ins(%k) outs(%t) ...
// becomes
//   scf.forall (%b, %h, %i) in (...) {
//     %acc = memref.alloca() : memref<64x64xf32, #gpu.address_space<private>>
//     %bytes = memref.alloca() : memref<8192xi8, #gpu.address_space<workgroup>>
//     %t = memref.view %bytes[0] : .. to memref<64x64xbf16, #gpu.address_space<workgroup>>
//
// A buffer in registers belongs to the block of threads that runs the task: each thread holds some of its elements. The
// pass places the states of online softmaxes in registers, except states into which attn.online_merge merges other
// states. It also places the scratch buffers of steps there; these buffers disappear when the steps are lowered. All
// other temporaries of a task lie in shared memory.
// Test: test/codegen/gpu/place-temporaries.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/Support/MathExtras.h"

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
  bool isState = false, isRead = false, isMerged = false;
  forEachAccess(alloc, [&](Operation *user) {
    if (isa<OnlineInitOp>(user))
      isState = true;
    else if (isa<OnlineMergeOp>(user))
      isMerged = true;
    else if (!isa<OnlineStepOp>(user))
      isRead = true;
  });
  return !isMerged && (isState || !isRead);
}

/// Sets the memory space of `value` and of its views.
static void setSpace(Value value, Attribute space) {
  auto type = cast<MemRefType>(value.getType());
  value.setType(MemRefType::Builder(type).setMemorySpace(space));
  for (Operation *user : value.getUsers())
    if (isa<ViewLikeOpInterface>(user))
      setSpace(user->getResult(0), space);
}

static WalkResult placeInRegisters(memref::AllocOp alloc) {
  if (!alloc.getType().hasStaticShape())
    return alloc.emitError() << "expected a state of known size, got " << alloc.getType();
  ThreadBuilder b(alloc.getLoc(), alloc);
  Value place = memref::AllocaOp::create(b, alloc.getType());
  alloc.replaceAllUsesWith(place);
  setSpace(place, registerSpace(b.getContext()));
  alloc.erase();
  return WalkResult::advance();
}

static WalkResult placeInSharedMemory(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  int64_t bytes = type.getElementType().isIndex()
                      ? sizeof(int64_t)
                      : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t size : type.getShape())
    bytes *= ShapedType::isDynamic(size) ? 1 : size;
  for (Value size : alloc.getDynamicSizes()) {
    FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
        presburger::BoundType::UB, {size}, nullptr, /*closedUB=*/true);
    if (failed(bound))
      return alloc.emitError() << "expected a temporary of bounded size in a task, got " << type;
    bytes *= std::max<int64_t>(*bound, 0);
  }
  ThreadBuilder b(alloc.getLoc(), alloc);
  Attribute space = sharedSpace(b.getContext());
  Value memory = memref::AllocaOp::create(
      b, MemRefType::get({bytes}, b.getI8Type(), MemRefLayoutAttrInterface(), space));
  auto place = MemRefType(MemRefType::Builder(type).setMemorySpace(space));
  Value view = memref::ViewOp::create(b, place, memory, b.constant(0), alloc.getDynamicSizes());
  alloc.replaceAllUsesWith(view);
  setSpace(view, space);
  alloc.erase();
  return WalkResult::advance();
}

namespace {
struct PlaceTemporaries : attn::impl::PlaceTemporariesBase<PlaceTemporaries> {
  void runOnOperation() override {
    WalkResult placed = getOperation().walk([&](memref::AllocOp alloc) -> WalkResult {
      if (!alloc->getParentOfType<scf::ForallOp>())
        return WalkResult::advance(); // attn-plan-workspace places temporaries outside of tasks
      if (belongsToRegisters(alloc))
        return placeInRegisters(alloc);
      return placeInSharedMemory(alloc);
    });
    if (placed.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
