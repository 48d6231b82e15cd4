//===- OutlineRepeated.cpp - ops that a kernel repeats as a function -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @forward(...) attributes {attn.kernel = "entry"} {
//     linalg.broadcast ins(%bias0) outs(%y)
//     linalg.contract ins(%x, %w0) outs(%y)
//     linalg.broadcast ins(%bias1) outs(%z)
//     linalg.contract ins(%y, %w1) outs(%z)
//     ...                                       two more layers of the same shape
// becomes
//   func.func @forward(...) attributes {attn.kernel = "entry"} {
//     func.call @forward.project(%bias0, %y, %x, %w0)
//     func.call @forward.project(%bias1, %z, %y, %w1)
//     ...
//   func.func private @forward.project(%bias, %out, %x, %w) {
//     linalg.broadcast ins(%bias) outs(%out)
//     linalg.contract ins(%x, %w) outs(%out)
//
// Layers that are too small for tasks, and the packing of weights, are ops of the kernel itself. Models repeat them, and
// the time of LLVM grows with each copy. An op that follows a write of the same buffer stays together with it, because the
// lowering of a product merges its first values into the product (findStart in codegen/cpu/Contraction.cpp). Ops that occur
// fewer than kLeast times stay in the kernel, and so do those for which the time of a call would matter.
// Test: test/passes/bufferize/outline-repeated.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/bufferize/Outlining.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_OUTLINEREPEATED
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The least number of equal units that become a function.
static constexpr size_t kLeast = 4;

/// The least number of iterations of a unit that becomes a function. A call takes about 20 ns, because each buffer is
/// passed with its sizes and strides. Vectors of 8 elements compute 512 of them in about the same time.
static constexpr int64_t kLeastIterations = 512;

namespace {
/// Consecutive ops of a kernel that write the same buffer. If the first values of a product are written further above, the
/// product loads them from the buffer.
using Unit = SmallVector<DestinationStyleOpInterface, 2>;

/// Equal units, and the function that computes one of them.
struct Group {
  OwningOpRef<func::FuncOp> function;
  SmallVector<std::pair<Unit, SmallVector<Value>>> calls; ///< units with the arguments of their calls
};

struct OutlineRepeated : attn::impl::OutlineRepeatedBase<OutlineRepeated> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (!function->hasAttr(AttnDialect::kKernelAttr) || function.isDeclaration())
        continue;
      // Each kernel gets functions of its own: the hash of packed weights is that of the text of the kernel that packs
      // them and of the functions that it calls (codegen/emit/Interface.cpp), and must not depend on other kernels.
      SmallVector<Group> groups;
      for (Unit &unit : findUnits(function.front()))
        if (countIterations(unit) >= kLeastIterations)
          add(groups, function, std::move(unit));
      for (Group &group : groups)
        if (group.calls.size() >= kLeast)
          call(group, symbols);
    }
  }

  static SmallVector<Unit> findUnits(Block &block) {
    SmallVector<Unit> units;
    bool joins =
        false; // whether only pure ops, such as views, are between the last unit and the op
    for (Operation &op : block) {
      auto writer = dyn_cast<DestinationStyleOpInterface>(op);
      if (!writer || writer.getNumDpsInits() != 1 ||
          !isa<linalg::LinalgOp, linalg::SoftmaxOp, PackOp>(op)) {
        joins &= isPure(&op);
        continue;
      }
      if (!joins || units.back().back().getDpsInits() != writer.getDpsInits())
        units.emplace_back();
      units.back().push_back(writer);
      joins = true;
    }
    return units;
  }

  /// The number of elements that `unit` reads or computes in its loops. A dynamic size counts as a large one.
  static int64_t countIterations(const Unit &unit) {
    int64_t count = 0;
    for (DestinationStyleOpInterface op : unit) {
      SmallVector<int64_t> sizes(cast<ShapedType>(op.getDpsInits()[0].getType()).getShape());
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op.getOperation()))
        sizes = linalgOp.getStaticLoopRanges();
      if (ShapedType::isDynamicShape(sizes))
        return kLeastIterations;
      count += ShapedType::getNumElements(sizes);
    }
    return count;
  }

  /// Adds `unit` to the group of its equals.
  static void add(SmallVectorImpl<Group> &groups, func::FuncOp kernel, Unit unit) {
    SmallVector<Value> arguments;
    OwningOpRef<func::FuncOp> function = outline(kernel, unit, arguments);
    auto *group = llvm::find_if(
        groups, [&](Group &other) { return areEqual(*other.function, *function); });
    if (group == groups.end())
      group = &groups.emplace_back(Group{std::move(function), {}});
    group->calls.emplace_back(std::move(unit), std::move(arguments));
  }

  /// The function that computes `unit`. Values that the unit reads become its arguments, and constants are cloned.
  static OwningOpRef<func::FuncOp> outline(func::FuncOp kernel, const Unit &unit,
                                           SmallVectorImpl<Value> &arguments) {
    llvm::SetVector<Value> used;
    for (Operation *op : unit) {
      used.insert(op->operand_begin(), op->operand_end());
      getUsedValuesDefinedAbove(op->getRegions(), used);
    }
    Captures captures(used.getArrayRef());
    arguments = captures.arguments;
    // The last op of a unit is the one that the others prepare.
    StringRef name = nameOfWork(unit.back());
    Builder types(kernel.getContext());
    func::FuncOp function =
        func::FuncOp::create(unit.front()->getLoc(), (kernel.getName() + "." + name).str(),
                             types.getFunctionType(ValueRange(arguments).getTypes(), {}));
    function.setPrivate();
    function.setNoInline(true);
    OpBuilder builder = OpBuilder::atBlockBegin(function.addEntryBlock());
    IRMapping mapping;
    mapping.map(arguments, function.getArguments());
    for (Operation *constant : captures.constants)
      builder.clone(*constant, mapping);
    for (Operation *op : unit)
      builder.clone(*op, mapping);
    func::ReturnOp::create(builder, function.getLoc());
    return function;
  }

  static void call(Group &group, SymbolTable &symbols) {
    func::FuncOp function = group.function.release();
    symbols.insert(function);
    for (auto &[unit, arguments] : group.calls) {
      OpBuilder builder(unit.back());
      // LLVM requires that a call of a function with debug information has a source line. Line 0 means that none is known.
      Location loc = unit.back()->getLoc();
      if (!loc->findInstanceOf<FileLineColLoc>())
        loc = FileLineColLoc::get(builder.getContext(), "<unknown>", 0, 0);
      func::CallOp::create(builder, loc, function, arguments);
      for (Operation *op : unit)
        op->erase();
    }
  }
};
} // namespace
