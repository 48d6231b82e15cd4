//===- Element.cpp - how an element of a tensor is computed ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/raise/Element.h"
#include "support/Loops.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

Element Element::of(Value tensor) {
  int64_t rank = cast<RankedTensorType>(tensor.getType()).getRank();
  return at({tensor, AffineMap::getMultiDimIdentityMap(rank, tensor.getContext())});
}

/// If `access` reads a slice with static offsets and unit strides, returns the access to the source of the slice;
/// otherwise none.
static std::optional<Access> readThroughSlice(Access access) {
  auto slice = access.tensor.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || !slice.hasUnitStride() || ShapedType::isDynamicShape(slice.getStaticOffsets()))
    return std::nullopt;
  SmallVector<AffineExpr> exprs;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  unsigned dim = 0;
  for (auto [i, offset] : llvm::enumerate(slice.getStaticOffsets())) {
    AffineExpr at = getAffineConstantExpr(offset, slice.getContext());
    exprs.push_back(dropped[i] ? at : access.map.getResult(dim++) + at);
  }
  return Access{slice.getSource(),
                AffineMap::get(access.map.getNumDims(), 0, exprs, slice.getContext())};
}

Element Element::at(Access access) {
  if (auto op = access.tensor.getDefiningOp<linalg::LinalgOp>(); op && isScalarFunction(op)) {
    auto result = cast<OpResult>(access.tensor);
    Value scalar = op.getBlock()->getTerminator()->getOperand(result.getResultNumber());
    return resolve(scalar, op, loopsAt(op, result, access.map));
  }
  if (std::optional<Access> source = readThroughUnitReshape(access))
    return at(*source);
  // If a scalar op computes the source of a slice, this op computes the element; otherwise the element is read from the
  // slice.
  if (std::optional<Access> source = readThroughSlice(access))
    if (Element element = at(*source); element.op) {
      element.isOfSlice = true;
      return element;
    }
  Element element;
  element.read = access;
  return element;
}

Element Element::resolve(Value scalar, linalg::LinalgOp body, AffineMap loops) {
  Element element;
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    OpOperand *operand = body.getOpOperandsMatchingBBargs()[argument.getArgNumber()];
    if (isa<RankedTensorType>(operand->get().getType()))
      return at({operand->get(), body.getMatchingIndexingMap(operand).compose(loops)});
    scalar = operand->get(); // a constant outside of the body, which isScalarFunction has checked
  }
  element.op = scalar.getDefiningOp();
  // A constant is the same at all coordinates, so constants that are read at different coordinates are equal elements.
  if (!element.op->hasTrait<OpTrait::ConstantLike>()) {
    element.body = body;
    element.loops = loops;
  }
  return element;
}

AffineExpr Element::getCoordinate() const {
  auto index = dyn_cast_or_null<linalg::IndexOp>(op);
  return index ? loops.getResult(index.getDim()) : AffineExpr();
}

Attribute Element::getConstant() const {
  Attribute value;
  if (op)
    return matchPattern(op, m_Constant(&value)) ? value : Attribute();
  DenseElementsAttr splat;
  if (matchPattern(read.tensor, m_Constant(&splat)) && splat.isSplat())
    return splat.getSplatValue<Attribute>();
  return {};
}

/// Whether a reduction by `combiner` may start from `start`: the neutral element, or one that gives the same result. The
/// neutral element of an addition is -0; a sum that starts from 0 differs only in the sign of zero. A maximum may start
/// from the lowest finite number, as in TOSA; the softmax of a row of -inf is NaN with either.
static bool isStart(Attribute start, Operation *combiner) {
  std::optional<TypedAttr> neutral = arith::getNeutralElement(combiner);
  if (!start || !neutral)
    return false;
  if (isa<arith::AddFOp>(combiner))
    return cast<FloatAttr>(start).getValue().isZero();
  if (isa<arith::MaximumFOp>(combiner)) {
    APFloat number = cast<FloatAttr>(start).getValue();
    return number.isNegative() && (number.isInfinity() || number.isLargest());
  }
  return start == *neutral;
}

/// Whether the values that the region of `op` uses and that are defined outside of it are constants.
static bool usesOnlyConstants(linalg::LinalgOp op) {
  return llvm::all_of(*op.getBlock(), [&](Operation &inner) {
    return llvm::all_of(inner.getOperands(), [&](Value operand) {
      return operand.getParentBlock() == op.getBlock() || matchPattern(operand, m_Constant());
    });
  });
}

std::optional<RowReduction> attn::matchRowReduction(const Element &element) {
  Access access = element.getRead();
  auto op = access.tensor ? access.tensor.getDefiningOp<linalg::LinalgOp>() : linalg::LinalgOp();
  if (!op || !op.hasPureTensorSemantics() || op.getNumReductionLoops() != 1 ||
      op.getNumDpsInputs() == 0 || op.getNumDpsInits() != 1 || !usesOnlyConstants(op))
    return std::nullopt;
  SmallVector<Operation *> combiners;
  Value reduced = matchReduction(op.getRegionOutputArgs(), 0, combiners);
  if (!reduced || combiners.size() != 1)
    return std::nullopt;
  if (!isStart(Element::of(op.getDpsInits()[0]).getConstant(), combiners.front()))
    return std::nullopt;

  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  AffineMap inputMap = op.getMatchingIndexingMap(op.getDpsInputOperand(0)),
            outMap = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  auto dim = inputMap.getResultPosition(getAffineDimExpr(reductions[0], op.getContext()));
  std::optional<SmallVector<unsigned>> ofInput = findLoops(inputMap), ofResult = findLoops(outMap);
  if (!dim || !inputMap.isPermutation() || !ofInput || !ofResult ||
      inputMap.getNumResults() != access.map.getNumDims())
    return std::nullopt;
  // The loop coordinates at which `element` is read; the reduction loop has the reduced coordinate.
  SmallVector<AffineExpr> loops(op.getNumLoops(), getAffineDimExpr(*dim, op.getContext()));
  for (auto [loop, coordinate] : llvm::zip_equal(*ofResult, access.map.getResults()))
    loops[loop] = coordinate;
  auto type = cast<RankedTensorType>(op.getDpsInputs()[0].getType());
  for (auto [position, loop] : llvm::enumerate(*ofInput)) {
    AffineExpr coordinate = loops[loop];
    bool isSame = coordinate == getAffineDimExpr(position, op.getContext());
    if (!isSame && (findLoop(coordinate) || type.getDimSize(position) != 1))
      return std::nullopt;
    loops[loop] = getAffineDimExpr(position, op.getContext());
  }
  AffineMap coordinates = AffineMap::get(access.map.getNumDims(), 0, loops, op.getContext());
  return RowReduction{op.getDpsInputs()[0], *dim, combiners.front(),
                      Element::resolve(reduced, op, coordinates)};
}
