//===- OutlineTasks.cpp - the body of a forall as a function ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @forward(%x, %out, %workspace, %scratch {attn.scratch}) {
//     scf.forall (%b, %h) in (%n, 12) { ... %x ... %scratch ... }
// becomes
//   func.func @forward(%x, %out, %workspace) {
//     attn.parallel_for @forward.attend(%x, %out, ...) count(%n * 12)
//   func.func private @forward.attend(%index: index, %worker: index, %x, %out, ..., %scratch {attn.scratch}) {
//     %b, %h = affine.delinearize_index %index into (%n, 12)
//
// Tasks are named after what they do, because profilers show their names.
// Test: test/passes/bufferize/outline-tasks.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/bufferize/Outlining.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_OUTLINETASKS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
struct OutlineTasks : attn::impl::OutlineTasksBase<OutlineTasks> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (func::FuncOp function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      auto kernel = function->getAttrOfType<StringAttr>(AttnDialect::kKernelAttr);
      if (!kernel || kernel != "entry")
        continue;
      unsigned last = function.getNumArguments() - 1;
      Value scratch = function.getArgument(last);
      SmallVector<scf::ForallOp> foralls;
      function.walk([&](scf::ForallOp forall) { foralls.push_back(forall); });
      for (scf::ForallOp forall : foralls)
        outline(function, forall, scratch, symbols);
      (void)function.eraseArgument(last);
    }
  }

  void outline(func::FuncOp function, scf::ForallOp forall, Value scratch, SymbolTable &symbols) {
    Location loc = forall.getLoc();
    OpBuilder builder(forall);
    // Compute the number of iterations of each loop, and of all loops together.
    SmallVector<Value> lower = forall.getLowerBound(builder), upper = forall.getUpperBound(builder),
                       step = forall.getStep(builder), counts;
    AffineExpr lb, ub;
    bindDims(&getContext(), lb, ub);
    AffineExpr by = getAffineSymbolExpr(0, &getContext());
    Value total = arith::ConstantIndexOp::create(builder, loc, 1);
    for (auto [from, to, stride] : llvm::zip_equal(lower, upper, step)) {
      OpFoldResult count = affine::makeComposedFoldedAffineApply(
          builder, loc, AffineMap::get(2, 1, (ub - lb).ceilDiv(by)),
          {OpFoldResult(from), OpFoldResult(to), OpFoldResult(stride)});
      counts.push_back(getValueOrCreateConstantIndexOp(builder, loc, count));
      total = arith::MulIOp::create(builder, loc, total, counts.back());
    }

    // Collect the values that the task reads from outside. Constants are cloned, and other values become arguments.
    llvm::SetVector<Value> used;
    getUsedValuesDefinedAbove(forall.getRegion(), used);
    for (ArrayRef<Value> values : {ArrayRef(lower), ArrayRef(step), ArrayRef(counts)})
      used.insert(values.begin(), values.end());
    bool needsScratch = used.remove(scratch);
    Captures captures(used.getArrayRef());
    ArrayRef<Value> captured = captures.arguments;
    SmallVector<Type> types = {builder.getIndexType(), builder.getIndexType()};
    llvm::append_range(types, ValueRange(captured).getTypes());
    if (needsScratch)
      types.push_back(scratch.getType());
    OpBuilder outside(function);
    outside.setInsertionPointAfter(function);
    auto task =
        func::FuncOp::create(outside, loc, (function.getName() + "." + nameOfWork(forall)).str(),
                             outside.getFunctionType(types, {}));
    task.setPrivate();
    symbols.insert(task);
    attn::ParallelForOp::create(builder, loc, task.getName(), total, captured);

    Block *entry = task.addEntryBlock();
    OpBuilder inside = OpBuilder::atBlockBegin(entry);
    IRMapping mapping;
    for (Operation *constant : captures.constants)
      inside.clone(*constant, mapping);
    for (auto [i, value] : llvm::enumerate(captured))
      mapping.map(value, task.getArgument(2 + i));
    if (needsScratch) {
      unsigned last = task.getNumArguments() - 1;
      mapping.map(scratch, task.getArgument(last));
      task.setArgAttr(last, AttnDialect::kScratchAttr, inside.getUnitAttr());
    }
    SmallVector<Value> basis =
        llvm::map_to_vector(counts, [&](Value count) { return mapping.lookup(count); });
    auto position =
        affine::AffineDelinearizeIndexOp::create(inside, loc, task.getArgument(0), basis);
    for (auto [i, variable] : llvm::enumerate(forall.getInductionVars())) {
      Value scaled =
          arith::MulIOp::create(inside, loc, position.getResult(i), mapping.lookup(step[i]));
      mapping.map(variable,
                  arith::AddIOp::create(inside, loc, mapping.lookup(lower[i]), scaled).getResult());
    }
    for (Operation &op : forall.getBody()->without_terminator())
      inside.clone(op, mapping);
    func::ReturnOp::create(inside, loc);
    forall.erase();
  }
};
} // namespace
