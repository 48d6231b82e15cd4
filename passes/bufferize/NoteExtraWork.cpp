//===- NoteExtraWork.cpp - note copies, unread buffers, repeated work -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Earlier passes bring the graph into a form in which tiling and bufferization need no copies and repeat no work. If
// the graph does not have this form, the code is correct but slow. A remark at the source location, which the report
// lists too, then names one of these cases:
//   * a memref.copy, because CSE merged inits, or because a value is overwritten while it is still needed;
//   * a buffer that is written and never read, because a tensor.dim kept a whole producer alive beside its fused copy;
//   * a product that is computed in two phases, because it was fused into the second phase and also has another use;
//   * a product that its innermost loop repeats unchanged, because the product was fused one loop too deep;
//   * an elementwise op that adds a broadcast bias to a product that starts from zero, because the bias did not become
//     the init of the product. A product with other uses cannot start from the bias, so it is not reported.
//
// The pass runs after bufferization and changes nothing. Test: test/passes/bufferize/note-extra-work.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Finding.h"
#include "passes/Passes.h"
#include "passes/Product.h"

#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_NOTEEXTRAWORK
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

//===----------------------------------------------------------------------===//
// Buffers and their views
//===----------------------------------------------------------------------===//

/// The buffer that `value` is a view of.
static Value rootOf(Value value) {
  while (auto view = value.getDefiningOp<ViewLikeOpInterface>())
    value = view.getViewSource();
  return value;
}

/// Calls `visit` for each use of a buffer or of a view of the buffer, through any chain of views.
static void forEachUse(Value buffer, function_ref<void(OpOperand &)> visit) {
  for (OpOperand &use : buffer.getUses()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(use.getOwner()))
      forEachUse(view->getResult(0), visit);
    else
      visit(use);
  }
}

static bool writes(OpOperand &use) {
  return mightHaveEffect<MemoryEffects::Write>(use.getOwner(), use.get());
}

/// True if `use` counts as a read of the buffer. An op that reads its output only to add to it does not count. An op
/// with several outputs, such as attn.online_step, may be needed for one of its outputs alone, so each output counts as
/// read.
static bool reads(OpOperand &use) {
  auto dps = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
  if (dps && dps.isDpsInit(&use))
    return dps.getNumDpsInits() > 1;
  return use.getOwner()->hasTrait<OpTrait::IsTerminator>() ||
         mightHaveEffect<MemoryEffects::Read>(use.getOwner(), use.get());
}

/// True if `value` has the same elements in every iteration of `loop`.
static bool isInvariant(Value value, scf::ForOp loop) {
  while (!loop.isDefinedOutsideOfLoop(value)) {
    auto view = value.getDefiningOp<ViewLikeOpInterface>();
    if (!view || !llvm::all_of(view->getOperands(), [&](Value operand) {
          return operand == view.getViewSource() || loop.isDefinedOutsideOfLoop(operand);
        }))
      return false;
    value = view.getViewSource();
  }
  bool isWritten = false;
  forEachUse(rootOf(value), [&](OpOperand &use) {
    isWritten |= loop->isProperAncestor(use.getOwner()) && writes(use);
  });
  return !isWritten;
}

/// True if `a` and `b` are views of different parts of one buffer.
static bool areDisjoint(Value a, Value b) {
  auto partOf = [](Value value) {
    memref::SubViewOp part;
    while (auto view = value.getDefiningOp<ViewLikeOpInterface>()) {
      part = dyn_cast<memref::SubViewOp>(*view);
      value = view.getViewSource();
    }
    return part;
  };
  memref::SubViewOp partA = partOf(a), partB = partOf(b);
  if (!partA || !partB)
    return false;
  FailureOr<bool> overlap = ValueBoundsConstraintSet::areOverlappingSlices(
      a.getContext(), HyperrectangularSlice(partA), HyperrectangularSlice(partB));
  return succeeded(overlap) && !*overlap;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// True if `a` and `b` compute the same product of the user's source, or parts of this product that may overlap. Parts
/// of a packed projection share their location, but read different parts of the weights.
static bool areSameProduct(linalg::LinalgOp a, linalg::LinalgOp b) {
  return a.getLoc() == b.getLoc() &&
         llvm::all_of(llvm::zip_equal(a.getDpsInputs(), b.getDpsInputs()), [](auto inputs) {
           auto [x, y] = inputs;
           return rootOf(x) == rootOf(y) && !areDisjoint(x, y);
         });
}

/// True if `op` only adds a broadcast of a smaller operand to a product that started from zero and has no other reader.
static bool addsBias(linalg::LinalgOp op) {
  Block &body = *op.getBlock();
  if (op.getNumReductionLoops() > 0 || body.getOperations().size() != 2 ||
      !isa<arith::AddFOp>(body.front()))
    return false;
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  bool broadcasts = llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *operand) {
    AffineMap map = op.getMatchingIndexingMap(operand);
    return llvm::any_of(llvm::seq(op.getNumLoops()), [&](unsigned loop) {
      return sizes[loop] != 1 && !map.isFunctionOfDim(loop);
    });
  });
  return broadcasts && llvm::any_of(op.getDpsInputs(), [&](Value input) {
           bool readsProduct = false, fromZero = false, onlyReader = true;
           forEachUse(rootOf(input), [&](OpOperand &use) {
             readsProduct |= isProduct(use.getOwner()) && writes(use);
             fromZero |= isa<linalg::FillOp>(use.getOwner());
             onlyReader &= use.getOwner() == op || !reads(use);
           });
           return readsProduct && fromZero && onlyReader;
         });
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

static void noteUnread(memref::AllocOp alloc) {
  bool isRead = false;
  forEachUse(alloc, [&](OpOperand &use) { isRead |= reads(use); });
  if (!isRead)
    emitFinding(alloc.getLoc(), Finding::ExtraWork)
        << "extra work: writes a buffer that nothing reads";
}

static void noteRepeated(linalg::LinalgOp op) {
  // Only loops inside tasks are checked. Several tasks may repeat a product, for example of scores that do not depend
  // on the batch.
  auto loop =
      dyn_cast_or_null<scf::ForOp>(op->getParentOfType<LoopLikeOpInterface>().getOperation());
  if (loop && isProduct(op) &&
      llvm::all_of(op.getDpsInputs(), [&](Value input) { return isInvariant(input, loop); }))
    emitFinding(op.getLoc(), Finding::ExtraWork)
        << "extra work: a product that every iteration of its loop repeats";
}

/// Notes products that tasks of two phases both compute. Two loops inside one task may compute the same product, for
/// example for full and partial tiles of keys.
static void noteTwoPhases(func::FuncOp function) {
  SmallVector<linalg::LinalgOp> products;
  function.walk([&](linalg::LinalgOp op) {
    if (isProduct(op))
      products.push_back(op);
  });
  for (auto [i, op] : llvm::enumerate(products)) {
    auto phase = op->getParentOfType<scf::ForallOp>();
    if (llvm::any_of(ArrayRef(products).take_front(i), [&, op = op](linalg::LinalgOp other) {
          return other->getParentOfType<scf::ForallOp>() != phase && areSameProduct(op, other);
        }))
      emitFinding(op.getLoc(), Finding::ExtraWork)
          << "extra work: a product that an earlier phase computes too";
  }
}

namespace {
struct NoteExtraWork : attn::impl::NoteExtraWorkBase<NoteExtraWork> {
  void runOnOperation() override {
    getOperation().walk([](memref::CopyOp copy) {
      auto type = cast<MemRefType>(copy.getSource().getType());
      InFlightDiagnostic finding = emitFinding(copy.getLoc(), Finding::ExtraWork)
                                   << "extra work: copies ";
      for (auto [dim, size] : llvm::enumerate(type.getShape()))
        finding << (dim == 0 ? "" : " x ")
                << (ShapedType::isDynamic(size) ? "?" : std::to_string(size));
      finding << (type.getRank() == 0 ? "1 element of " : " elements of ") << type.getElementType();
    });
    getOperation().walk([](memref::AllocOp alloc) { noteUnread(alloc); });
    getOperation().walk([](linalg::LinalgOp op) {
      noteRepeated(op);
      if (addsBias(op))
        emitFinding(op.getLoc(), Finding::ExtraWork)
            << "extra work: adds a bias to a product in a separate loop";
    });
    noteTwoPhases(getOperation());
  }
};
} // namespace
