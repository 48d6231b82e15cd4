//===- Sizes.cpp - what ops require of sizes -------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// In MLIR, the elementwise sum of two tensors of different sizes is undefined: its loop would read past the end of the
// smaller tensor. This file turns every requirement of an operation into an equation between two sizes, or into a size
// that must not be negative. An assertion on sizes (cf.assert) is such a requirement too, and is erased: it is proved, or
// becomes a condition of each call. Assertions that each element of an argument lies in [0, n], as torch-mlir writes them for indices, become
// attn.bound.
//
//===----------------------------------------------------------------------===//

#include "frontend/mlir/Sizes.h"
#include "frontend/mlir/Indices.h"

#include "dialect/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

namespace {

class Requirements {
public:
  Requirements(FunctionSizes &sizes, bool namedByFile)
      : sizes(sizes), function(sizes.function), context(function.getContext()),
        namedByFile(namedByFile) {}

  LogicalResult run() {
    // Repeat until nothing changes: an equation that replaces a symbol may decide numbers of other requirements.
    for (bool changed = true; changed;) {
      changed = false;
      equations.clear();
      notNegative.clear();
      bounds.clear();
      unsupported.reset();
      sizes.forgetNumbers();
      // In the order of the function, so that operands are known before the ops that read them.
      function.walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (op->getNumResults() == 1 && op->getResult(0).getType().isIntOrIndex())
          sizes.namedNumberOf(op->getResult(0));
      });
      function.walk([&](Operation *op) { collect(op); });
      for (const auto &[op, size] : sizes.needs())
        notNegative.push_back({op, size});
      for (const Equation &equation : equations) {
        FailureOr<bool> learned = learn(equation);
        if (failed(learned))
          return failure();
        changed |= *learned;
      }
    }
    if (wrongCast)
      return wrongCast->first.emitError()
             << "expected a cast to sizes that are known, got one of the dynamic dimension "
             << wrongCast->second << " of an argument to 1, from "
             << wrongCast->first.getSource().getType() << " to " << wrongCast->first.getType()
             << ": torch-mlir writes it for views of two dynamic dimensions, and then computes "
                "other values than torch; export the model with one dynamic dimension, or as .pt2";
    if (failed(sizes.mergeSymbols()))
      return failure();
    for (const Equation &equation : equations)
      if (failed(requireEqual(equation)))
        return failure();
    for (auto &[op, size] : notNegative)
      if (failed(requireNotNegative(op, sizes.reduced(size))))
        return failure();
    sizes.setRanges();
    setBounds();
    if (unsupported)
      return unsupported->first.emitError()
             << "expected an assertion that compares sizes, or that bounds the elements of an "
                "argument to [0, n], got one on "
             << unsupported->second << ", with the text '" << unsupported->first.getMsg() << "'";
    sizes.forgetNumbers();
    for (cf::AssertOp assertion : assertions)
      assertion.erase();
    return success();
  }

private:
  struct Equation {
    Operation *op;
    Size a, b;
  };

  /// What assertions say of the elements of an argument.
  struct Bound {
    cf::AssertOp assertion;
    std::optional<int64_t> most;
    bool isNotNegative = false;
  };

  //===------------------------------------------------------------------===//
  // Requirements of operations
  //===------------------------------------------------------------------===//

  Size sizeOf(Value tensor, int64_t dim) { return sizes.namedSizeOf(tensor, dim); }
  Size numberOf(OpFoldResult integer) { return sizes.namedNumberOf(integer); }

  void need(Operation *op, const Size &a, const Size &b) {
    if (a != b)
      equations.push_back({op, a, b});
  }

  /// Requires that `size` is not negative; an unknown size, if it is not known at all.
  void needNotNegative(Operation *op, const std::optional<Size> &size) {
    notNegative.push_back({op, size ? *size : Size::symbol("?")});
  }

  /// Requires that all operand dimensions over which the same loop of `op` runs are equal, and that other indices into
  /// dynamic dimensions, such as i + j, stay in bounds.
  void collect(Operation *op, ValueRange operands, ArrayRef<AffineMap> maps) {
    llvm::SmallMapVector<AffineExpr, Size, 8> counts;
    SmallVector<std::tuple<AffineExpr, Size, unsigned>> computed;
    for (auto [operand, map] : llvm::zip_equal(operands, maps)) {
      if (!isa<RankedTensorType>(operand.getType()))
        continue;
      for (auto [axis, loop] : llvm::enumerate(map.getResults())) {
        if (!isa<AffineDimExpr>(loop)) {
          computed.push_back({loop, sizeOf(operand, axis), map.getNumDims()});
          continue;
        }
        Size size = sizeOf(operand, axis);
        auto [it, isNew] = counts.try_emplace(loop, size);
        need(op, it->second, size);
      }
    }
    for (auto &[index, size, numDims] : computed) {
      // MLIR checks indices of static loops into static dimensions.
      bool isStatic = size.constant().has_value();
      index.walk([&](AffineExpr expr) {
        auto count = counts.find(expr);
        isStatic &= !isa<AffineDimExpr>(expr) || (count != counts.end() && count->second.constant());
      });
      if (isStatic)
        continue;
      // With coefficients of at least 0, the last iterations have the greatest index.
      SmallVector<int64_t> coefficients;
      std::optional<Size> room;
      if (succeeded(getFlattenedAffineExpr(index, numDims, 0, &coefficients)) &&
          coefficients.size() == numDims + 1 &&
          llvm::all_of(coefficients, [](int64_t each) { return each >= 0; }))
        room = subtract(size, Size(coefficients.back()));
      room = room ? subtract(*room, Size(1)) : room;
      for (unsigned dim = 0; room && dim < numDims; ++dim) {
        if (coefficients[dim] == 0)
          continue;
        auto count = counts.find(getAffineDimExpr(dim, context));
        std::optional<Size> last =
            count == counts.end() ? std::nullopt : subtract(count->second, Size(1));
        last = last ? multiply(*last, Size(coefficients[dim])) : last;
        room = last ? subtract(*room, *last) : std::nullopt;
      }
      needNotNegative(op, room);
    }
  }

  /// Requires that a slice lies in `tensor`. Offsets that clampIndices() clamps may have any value: then it suffices
  /// that the slice fits into the tensor at offset 0.
  void collectSlice(OffsetSizeAndStrideOpInterface slice, Value tensor, bool isRead) {
    for (int64_t dim = 0; dim < cast<RankedTensorType>(tensor.getType()).getRank(); ++dim) {
      Size offset = numberOf(slice.getMixedOffsets()[dim]),
           size = numberOf(slice.getMixedSizes()[dim]);
      if (auto value = dyn_cast<Value>(slice.getMixedOffsets()[dim]);
          value && (!isRead || varies(value)))
        offset = 0;
      // A slice of n elements ends behind its last element, at offset + (n - 1) * stride + 1.
      std::optional<Size> span = subtract(size, Size(1));
      span = span ? multiply(*span, numberOf(slice.getMixedStrides()[dim])) : span;
      std::optional<Size> rest = subtract(sizeOf(tensor, dim), offset);
      rest = rest ? subtract(*rest, Size(1)) : rest;
      needNotNegative(slice, offset);
      needNotNegative(slice, size);
      needNotNegative(slice, rest && span ? subtract(*rest, *span) : std::nullopt);
    }
  }

  /// Requires that dimension `dim` of the operand of `cast` has a size that its type does not state. torch-mlir casts a
  /// size of an argument to 1 where it lowers a view of two dynamic dimensions: then it computes something else.
  void needStatic(tensor::CastOp cast, int64_t dim, int64_t size) {
    Size known = sizeOf(cast.getSource(), dim);
    if (size == 1 && isSymbol(known) && !wrongCast)
      wrongCast = {cast, dim};
    need(cast, known, Size(size));
  }

  /// Requires that the sizes that an op states for `tensor` are not negative.
  void needSizes(Value tensor) {
    for (int64_t dim = 0; dim < cast<RankedTensorType>(tensor.getType()).getRank(); ++dim)
      needNotNegative(tensor.getDefiningOp(), sizeOf(tensor, dim));
  }

  /// Requires that a view has as many elements as the dimensions that it reshapes.
  void needCount(Operation *op, Value tensor, ArrayRef<int64_t> dims, Value of,
                 ArrayRef<int64_t> others) {
    std::optional<Size> a = sizes.countOf(tensor, dims), b = sizes.countOf(of, others);
    need(op, a ? *a : Size::symbol("?"), b ? *b : Size::symbol("??"));
  }

  /// Requires that `condition`, which `assertion` tests, holds in every call.
  void collect(cf::AssertOp assertion, Value condition, llvm::SmallPtrSetImpl<Operation *> &seen) {
    if (sizes.truthOf(condition) == true)
      return;
    if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
      if (!seen.insert(both).second)
        return;
      collect(assertion, both.getLhs(), seen);
      return collect(assertion, both.getRhs(), seen);
    }
    using Predicate = arith::CmpIPredicate;
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    bool isOnSizes = compare && !varies(compare.getLhs()) && !varies(compare.getRhs()) &&
                     assertion->getParentOp() == function;
    if (isOnSizes) {
      Size a = numberOf(compare.getLhs()), b = numberOf(compare.getRhs());
      switch (compare.getPredicate()) {
      case Predicate::eq:
        return need(assertion, a, b);
      case Predicate::sle:
      case Predicate::slt:
        std::swap(a, b);
        [[fallthrough]];
      case Predicate::sge:
      case Predicate::sgt: {
        bool isStrict =
            llvm::is_contained({Predicate::slt, Predicate::sgt}, compare.getPredicate());
        std::optional<Size> gap = subtract(a, b);
        return needNotNegative(assertion, gap ? subtract(*gap, Size(isStrict)) : gap);
      }
      default:
        break;
      }
    }
    if (!isOnSizes && compare && collectBound(assertion, compare))
      return;
    noteUnsupported(assertion, isOnSizes ? "another comparison" : "other elements");
  }

  void noteUnsupported(cf::AssertOp assertion, StringRef what) {
    if (!unsupported)
      unsupported = {assertion, what};
  }

  /// If `compare` compares each element of an argument with a constant, notes the bound.
  bool collectBound(cf::AssertOp assertion, arith::CmpIOp compare) {
    using Predicate = arith::CmpIPredicate;
    auto op = dyn_cast<linalg::LinalgOp>(assertion->getParentOp());
    Value element = compare.getLhs();
    while (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(element.getDefiningOp()))
      element = element.getDefiningOp()->getOperand(0);
    auto inside = dyn_cast<BlockArgument>(element);
    APInt number;
    if (!op || !inside || inside.getOwner() != op.getBlock() ||
        !matchPattern(compare.getRhs(), m_ConstantInt(&number)) || number.getSignificantBits() > 32)
      return false;
    OpOperand *operand = op.getOpOperandsMatchingBBargs()[inside.getArgNumber()];
    Value tensor = operand->get();
    while (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(tensor.getDefiningOp()))
      tensor = tensor.getDefiningOp()->getOperand(0);
    auto argument = dyn_cast<BlockArgument>(tensor);
    if (!op.getMatchingIndexingMap(operand).isProjectedPermutation() || !argument ||
        argument.getOwner() != &function.front())
      return false;
    Bound &bound = bounds[argument.getArgNumber()];
    bound.assertion = assertion;
    int64_t value = number.getSExtValue();
    switch (compare.getPredicate()) {
    case Predicate::slt:
      bound.most = std::min(bound.most.value_or(value - 1), value - 1);
      return true;
    case Predicate::sle:
      bound.most = std::min(bound.most.value_or(value), value);
      return true;
    case Predicate::sge:
    case Predicate::sgt:
      bound.isNotNegative |= value + (compare.getPredicate() == Predicate::sgt) == 0;
      return true;
    default:
      return false;
    }
  }

  void setBounds() {
    for (auto &[argument, bound] : bounds) {
      if (!bound.isNotNegative || !bound.most || *bound.most < 0 ||
          function.getArgAttr(argument, AttnDialect::kBoundAttr)) {
        noteUnsupported(bound.assertion, "another range of elements");
        continue;
      }
      function.setArgAttr(argument, AttnDialect::kBoundAttr,
                          IntegerAttr::get(IntegerType::get(context, 64), *bound.most));
    }
  }

  void collect(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](cf::AssertOp assertion) {
          assertions.insert(assertion);
          llvm::SmallPtrSet<Operation *, 8> seen;
          collect(assertion, assertion.getArg(), seen);
        })
        .Case([&](linalg::LinalgOp linalgOp) {
          collect(op, op->getOperands(), linalgOp.getIndexingMapsArray());
        })
        .Case([&](AttentionOp attention) {
          auto maps = llvm::to_vector(attention.getIndexingMaps().getAsValueRange<AffineMapAttr>());
          collect(op, op->getOperands().take_front(maps.size()), maps);
        })
        .Case([&](linalg::SoftmaxOp softmax) {
          AffineMap all = AffineMap::getMultiDimIdentityMap(softmax.getInputOperandRank(), context);
          collect(op, op->getOperands(), {all, all});
        })
        .Case([&](tensor::ExtractSliceOp slice) {
          collectSlice(slice, slice.getSource(), /*isRead=*/true);
        })
        .Case<tensor::InsertSliceOp, tensor::ParallelInsertSliceOp>([&](auto slice) {
          collectSlice(slice, slice.getDest(), /*isRead=*/false);
          // The source has the size of the slice in each dimension that it does not drop.
          llvm::SmallBitVector dropped = slice.getDroppedDims();
          for (int64_t axis = 0, dim = 0; axis < int64_t(dropped.size()); ++axis)
            if (!dropped.test(axis))
              need(op, sizeOf(slice.getSource(), dim++), numberOf(slice.getMixedSizes()[axis]));
        })
        .Case([&](tensor::ConcatOp concat) {
          std::optional<Size> sum = Size(0);
          for (Value input : concat.getInputs())
            for (int64_t dim = 0; dim < concat.getRank(); ++dim)
              if (dim == int64_t(concat.getDim()))
                sum = sum ? add(*sum, sizeOf(input, dim)) : std::nullopt;
              else
                need(op, sizeOf(concat.getResult(), dim), sizeOf(input, dim));
          need(op, sizeOf(concat.getResult(), concat.getDim()), sum ? *sum : Size::symbol("?"));
        })
        .Case([&](tensor::PadOp pad) {
          for (OpFoldResult width : llvm::concat<OpFoldResult>(pad.getMixedLowPad(), pad.getMixedHighPad()))
            needNotNegative(op, numberOf(width));
          for (int64_t dim = 0; dim < pad.getResultType().getRank(); ++dim) {
            std::optional<Size> sum =
                add(sizeOf(pad.getSource(), dim), numberOf(pad.getMixedLowPad()[dim]));
            sum = sum ? add(*sum, numberOf(pad.getMixedHighPad()[dim])) : sum;
            need(op, sizeOf(pad.getResult(), dim), sum ? *sum : Size::symbol("?"));
          }
        })
        .Case<tensor::EmptyOp, tensor::SplatOp, tensor::GenerateOp>([&](auto) {
          needSizes(op->getResult(0));
        })
        .Case([&](tensor::ExpandShapeOp expand) {
          needSizes(expand.getResult());
          for (auto [dim, group] : llvm::enumerate(expand.getReassociationIndices()))
            needCount(op, expand.getSrc(), {int64_t(dim)}, expand.getResult(), group);
        })
        .Case([&](tensor::ReshapeOp reshape) {
          auto from = dyn_cast<RankedTensorType>(reshape.getSource().getType());
          auto to = dyn_cast<RankedTensorType>(reshape.getType());
          if (!from || !to)
            return;
          needSizes(reshape.getResult());
          needCount(op, reshape.getSource(), llvm::to_vector(llvm::seq(from.getRank())),
                      reshape.getResult(), llvm::to_vector(llvm::seq(to.getRank())));
        })
        .Case([&](tensor::CastOp cast) {
          auto from = dyn_cast<RankedTensorType>(cast.getSource().getType());
          auto to = dyn_cast<RankedTensorType>(cast.getType());
          for (int64_t dim = 0; from && to && dim < to.getRank(); ++dim)
            if (!to.isDynamicDim(dim))
              needStatic(cast, dim, to.getDimSize(dim));
        });
  }

  //===------------------------------------------------------------------===//
  // Conclusions about the symbols
  //===------------------------------------------------------------------===//

  /// Whether `size` is a symbol of the function.
  static bool isSymbol(const Size &size) { return size.symbol() && FunctionSizes::isKnown(size); }

  std::string quoted(const Size &size) const {
    return isSymbol(size) ? "'" + sizes.str(size) + "'" : sizes.str(size);
  }

  /// Learns from `equation` which size replaces a symbol. Returns whether it does.
  FailureOr<bool> learn(const Equation &equation) {
    std::optional<Size> a = sizes.facts.reduced(equation.a), b = sizes.facts.reduced(equation.b);
    if (!a || !b || *a == *b || !FunctionSizes::isKnown(*a) || !FunctionSizes::isKnown(*b))
      return false;
    if (namedByFile && isSymbol(*a) && isSymbol(*b))
      return equation.op->emitError()
             << "expected one symbol for sizes that agree in every call, got " << quoted(*a)
             << " and " << quoted(*b);
    for (auto [symbol, other] : {std::pair(&*a, &*b), std::pair(&*b, &*a)}) {
      std::optional<int64_t> value = other->constant();
      SizeRange range = sizes.facts.rangeOf(*symbol);
      if (value && isSymbol(*symbol) && (*value < range.min || *value > range.max))
        return equation.op->emitError() << "expected a size of " << quoted(*symbol) << " in ["
                                        << range.min << ", " << range.max << "], got " << *value;
    }
    return sizes.facts.equate(*a, *b);
  }

  LogicalResult requireEqual(const Equation &equation) {
    Size a = sizes.reduced(equation.a), b = sizes.reduced(equation.b);
    if (a == b)
      return success();
    bool isKnown = FunctionSizes::isKnown(a) && FunctionSizes::isKnown(b);
    if (isKnown && sizes.requireEqual(a, b))
      return success();
    return equation.op->emitError()
           << "expected sizes that agree in every call, got " << quoted(a) << " and " << quoted(b)
           << (namedByFile && !isKnown
                   ? "; attn.symbols is given, so attn.dims must name the unknown sizes"
                   : "");
  }

  LogicalResult requireNotNegative(Operation *op, const Size &size) {
    if (FunctionSizes::isKnown(size) && sizes.requireAtMost(Size(0), size))
      return success();
    if (isa<OffsetSizeAndStrideOpInterface>(op))
      return op->emitError() << "expected a slice inside its tensor in every call, got "
                             << sizes.str(size) << ", which may be negative";
    if (isa<cf::AssertOp>(op))
      return op->emitError() << "expected an assertion that is true in every call, got one on "
                             << sizes.str(size) << ", which may be negative";
    return op->emitError() << "expected sizes that follow from those of arguments and are not "
                              "negative, got "
                           << sizes.str(size);
  }

  FunctionSizes &sizes;
  func::FuncOp function;
  MLIRContext *context;
  bool namedByFile;
  std::vector<Equation> equations;
  std::vector<std::pair<Operation *, Size>> notNegative;
  llvm::SetVector<cf::AssertOp> assertions;
  llvm::MapVector<unsigned, Bound> bounds;
  /// The first cast that makes a dynamic dimension of an argument 1, and the number of the dimension.
  std::optional<std::pair<tensor::CastOp, int64_t>> wrongCast;
  /// The first assertion that attn cannot turn into a condition, and what it compares.
  std::optional<std::pair<cf::AssertOp, StringRef>> unsupported;
};

} // namespace

LogicalResult attn::requireSizes(FunctionSizes &sizes, bool namedByFile) {
  return Requirements(sizes, namedByFile).run();
}
