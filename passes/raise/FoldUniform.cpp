//===- FoldUniform.cpp - uniform integer tensors become constants ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %i = linalg.generic outs(%e : tensor<128xi64>) { yield linalg.index 0 }
//   %n = tensor.extract_slice %i[1] [127] [1], %p = tensor.extract_slice %i[0] [127] [1]
//   %d = linalg.generic ins(%n, %p) { yield n - p != 1 }
// becomes
//   %d = arith.constant dense<false> : tensor<127xi1>
//
// Models compute parts of their masks from positions alone, for example whether a new packed sequence starts at a
// token; with the positions 0, 1, 2, ..., no new sequence starts. Such a part looks like a mask until this pass
// computes its elements.
//
// The pass computes integers and booleans that depend on no argument, element by element, with MLIR's own folders. A
// tensor whose elements differ stays a formula of positions, from which attn-extract-mask makes masks. A reduction is
// folded if no element changes its initial value.
// Test: test/passes/raise/fold-uniform.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/raise/PossibleValues.h"
#include "support/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

namespace attn {
#define GEN_PASS_DEF_FOLDUNIFORM
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;

namespace {

/// Computes elements of tensors. Null stands for an element that is not known.
class Evaluator {
public:
  /// The element of `tensor` at an index that is in bounds.
  Attribute at(Value tensor, ArrayRef<int64_t> index);

  /// The largest number of elements that are computed, and the longest chain of ops. These limits bound the compile
  /// time.
  static constexpr int64_t kMaxSteps = 1 << 20;
  static constexpr unsigned kMaxDepth = 64;

private:
  Attribute compute(Operation *op, ArrayRef<int64_t> index);
  Attribute apply(linalg::LinalgOp op, ArrayRef<int64_t> index);

  DenseMap<std::pair<Value, int64_t>, Attribute> known;
  int64_t steps = 0;
  unsigned depth = 0;
};

} // namespace

static int64_t linearize(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t position = 0;
  for (auto [i, size] : llvm::zip_equal(index, shape))
    position = position * size + i;
  return position;
}

static SmallVector<int64_t> delinearize(int64_t position, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> index(shape.size());
  for (int64_t i = shape.size() - 1; i >= 0; --i) {
    index[i] = position % shape[i];
    position /= shape[i];
  }
  return index;
}

static ArrayRef<int64_t> shapeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getShape();
}

Attribute Evaluator::at(Value tensor, ArrayRef<int64_t> index) {
  Operation *op = tensor.getDefiningOp();
  if (!op || ShapedType::isDynamicShape(shapeOf(tensor)))
    return {};
  int64_t position = linearize(index, shapeOf(tensor));
  DenseElementsAttr constant;
  if (matchPattern(op, m_Constant(&constant)))
    return constant.isSplat() ? constant.getSplatValue<Attribute>()
                              : constant.getValues<Attribute>()[position];
  auto [entry, isNew] = known.try_emplace({tensor, position});
  if (!isNew || depth == kMaxDepth || ++steps > kMaxSteps)
    return entry->second;
  ++depth;
  Attribute value = compute(op, index);
  --depth;
  return known[{tensor, position}] = value;
}

Attribute Evaluator::compute(Operation *op, ArrayRef<int64_t> index) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return apply(linalgOp, index);
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    Value source = op->getOperand(0);
    return at(source, delinearize(linearize(index, shapeOf(op->getResult(0))), shapeOf(source)));
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (ShapedType::isDynamicShape(slice.getStaticOffsets()) ||
        ShapedType::isDynamicShape(slice.getStaticStrides()))
      return {};
    SmallVector<int64_t> source(slice.getStaticOffsets());
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    unsigned dim = 0;
    for (auto [i, offset] : llvm::enumerate(source))
      if (!dropped[i])
        offset += index[dim++] * slice.getStaticStrides()[i];
    return at(slice.getSource(), source);
  }
  if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    SmallVector<int64_t> part(index);
    for (Value input : concat.getInputs()) {
      int64_t size = shapeOf(input)[concat.getDim()];
      if (ShapedType::isDynamic(size))
        return {};
      if (part[concat.getDim()] < size)
        return at(input, part);
      part[concat.getDim()] -= size;
    }
  }
  return {};
}

/// The element that `op` computes at `index`. If `op` is a reduction, the elements of an operand are known only if they
/// are all equal.
Attribute Evaluator::apply(linalg::LinalgOp op, ArrayRef<int64_t> index) {
  std::optional<SmallVector<unsigned>> loops = attn::findResultLoops(op);
  if (!op.hasPureTensorSemantics() || op.getNumDpsInits() != 1 || !loops)
    return {};
  bool isReduction = op.getNumReductionLoops() > 0;
  SmallVector<int64_t> point(op.getNumLoops(), 0);
  for (auto [loop, i] : llvm::zip_equal(*loops, index))
    point[loop] = i;

  Block *body = op.getBlock();
  BlockArgument init = body->getArguments().back();
  DenseMap<Value, OpFoldResult> values;
  auto valueOf = [&](Value scalar) -> OpFoldResult {
    Attribute constant;
    if (matchPattern(scalar, m_Constant(&constant)))
      return constant;
    return values.lookup(scalar);
  };
  for (auto [argument, operand] :
       llvm::zip_equal(body->getArguments(), op.getOpOperandsMatchingBBargs())) {
    DenseElementsAttr same;
    if (argument == init)
      values[argument] = Value(init);
    else if (!isa<RankedTensorType>(operand->get().getType()))
      values[argument] = valueOf(operand->get());
    else if (matchPattern(operand->get(), m_Constant(&same)) && same.isSplat())
      values[argument] = same.getSplatValue<Attribute>();
    else if (!isReduction && !argument.use_empty())
      values[argument] = at(operand->get(), op.getMatchingIndexingMap(operand).compose(point));
  }
  for (Operation &inner : body->without_terminator()) {
    if (inner.getNumResults() != 1 || inner.getNumRegions() > 0)
      return {};
    OpFoldResult &result = values[inner.getResult(0)];
    SmallVector<Attribute> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(dyn_cast_if_present<Attribute>(valueOf(operand)));
    if (auto position = dyn_cast<linalg::IndexOp>(inner)) {
      if (!isReduction)
        result = IntegerAttr::get(position.getType(), point[position.getDim()]);
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<int64_t> place;
      for (auto [i, size] :
           llvm::zip_equal(ArrayRef(operands).drop_front(), shapeOf(extract.getTensor()))) {
        auto number = dyn_cast_if_present<IntegerAttr>(i);
        if (!number || number.getInt() < 0 || number.getInt() >= size)
          return {};
        place.push_back(number.getInt());
      }
      result = at(extract.getTensor(), place);
    } else if (auto select = dyn_cast<arith::SelectOp>(inner);
               select && operands[1] && operands[1] == operands[2]) {
      result = operands[1];
    } else if (!inner.hasTrait<OpTrait::ConstantLike>()) {
      OpFoldResult folded = attn::foldOp(&inner, operands);
      auto same = dyn_cast_if_present<Value>(folded);
      result = same ? valueOf(same) : folded;
    }
  }
  OpFoldResult result = valueOf(body->getTerminator()->getOperand(0));
  if (dyn_cast_if_present<Value>(result) == init && init)
    return at(op.getDpsInits()[0], index);
  return dyn_cast_if_present<Attribute>(result);
}

/// The value that all elements of `tensor` have, if it is known.
static Attribute findUniform(Evaluator &evaluator, Value tensor) {
  ArrayRef<int64_t> shape = shapeOf(tensor);
  Attribute first;
  for (int64_t i = 0, e = ShapedType::getNumElements(shape); i < e; ++i) {
    Attribute element = evaluator.at(tensor, delinearize(i, shape));
    if (!element || (first && element != first))
      return {};
    first = element;
  }
  return first;
}

namespace {
struct FoldUniform : attn::impl::FoldUniformBase<FoldUniform> {
  void runOnOperation() override {
    Evaluator evaluator;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op->getNumResults() != 1)
        return;
      Value tensor = op->getResult(0);
      auto type = cast<RankedTensorType>(tensor.getType());
      if (!type.getElementType().isIntOrIndex() || !type.hasStaticShape() ||
          type.getNumElements() > Evaluator::kMaxSteps)
        return;
      Attribute element = findUniform(evaluator, tensor);
      if (!element)
        return;
      OpBuilder builder(op);
      tensor.replaceAllUsesWith(
          arith::ConstantOp::create(builder, op.getLoc(), DenseElementsAttr::get(type, element)));
    });
  }
};
} // namespace
