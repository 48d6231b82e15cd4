//===- Captures.cpp - captured operands as formulas ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/raise/Captures.h"
#include "passes/ScoreBlock.h"
#include "passes/raise/Element.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

/// The largest number of instructions of a formula. The result of a longer formula is read from memory, which is
/// assumed to be faster than computing it for each pair.
static constexpr unsigned kMaxInstructions = 256;

/// Whether `coordinate` is a coordinate of the region, such a coordinate plus a constant, or a constant.
static bool isOffsetOfDim(AffineExpr coordinate) {
  auto sum = dyn_cast<AffineBinaryOpExpr>(coordinate);
  if (!sum)
    return true;
  return sum.getKind() == AffineExprKind::Add && isa<AffineDimExpr>(sum.getLHS()) &&
         isa<AffineConstantExpr>(sum.getRHS());
}

/// Whether `element` can be an element of a captured operand, perhaps of a slice: it does not vary with both query and
/// key, and it is read at coordinates of the attention or, in a slice, at such coordinates plus constants.
static bool isCapturable(AttentionOp op, const Element &element) {
  const Access &read = element.getRead();
  auto type = cast<RankedTensorType>(read.tensor.getType());
  llvm::SmallBitVector named(read.map.getNumDims());
  for (auto [size, expr] : llvm::zip_equal(type.getShape(), read.map.getResults())) {
    bool isPlain = isa<AffineDimExpr>(expr) || size == 1;
    if (element.isInSlice() ? !isOffsetOfDim(expr) : !isPlain)
      return false;
    for (unsigned dim = 0; dim < named.size(); ++dim)
      if (expr.isFunctionOfDim(dim)) {
        if (named[dim])
          return false;
        named.set(dim);
      }
  }
  return !named[op.getQDim()] || !named[op.getKDim()];
}

/// The access that reads `element`. A tensor that is longer than the dimensions of the attention is replaced by the
/// slice that is read.
static Access cutToDims(AttentionOp op, const Element &element) {
  const Access &read = element.getRead();
  if (!element.isInSlice())
    return read;
  OpBuilder builder(op);
  SmallVector<Range> domain = op.getIterationDomain(builder);
  SmallVector<OpFoldResult> offsets, sizes,
      sourceSizes = tensor::getMixedSizes(builder, op.getLoc(), read.tensor);
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : read.map.getResults()) {
    int64_t offset = 0;
    AffineExpr coordinate = builder.getAffineConstantExpr(0);
    expr.walk([&](AffineExpr part) {
      if (auto number = dyn_cast<AffineConstantExpr>(part))
        offset = number.getValue();
      if (isa<AffineDimExpr>(part))
        coordinate = part;
    });
    auto dim = dyn_cast<AffineDimExpr>(coordinate);
    exprs.push_back(coordinate);
    offsets.push_back(builder.getIndexAttr(offset));
    sizes.push_back(dim ? domain[dim.getPosition()].size : builder.getIndexAttr(1));
  }
  if (sizes == sourceSizes)
    return read;
  Value slice = tensor::ExtractSliceOp::create(
      builder, op.getLoc(), read.tensor, offsets, sizes,
      SmallVector<OpFoldResult>(sizes.size(), builder.getIndexAttr(1)));
  return {slice, AffineMap::get(read.map.getNumDims(), 0, exprs, op.getContext())};
}

/// Whether the score region can compute `element` for each pair with at most `budget` instructions; subtracts the
/// instructions from `budget`. An op with several readers is computed, and counted, once for each reader.
static bool isFormula(AttentionOp op, const Element &element, unsigned &budget) {
  if (budget == 0)
    return false;
  --budget;
  Operation *scalar = element.getOp();
  if (element.getConstant())
    return true;
  if (!scalar)
    return isCapturable(op, element);
  if (isa<linalg::IndexOp>(scalar))
    return isOffsetOfDim(element.getCoordinate());
  if (!isa<arith::ArithDialect>(scalar->getDialect()) ||
      isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemFOp, arith::RemSIOp,
          arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>(scalar))
    return false;
  return llvm::all_of(llvm::seq(scalar->getNumOperands()),
                      [&](unsigned i) { return isFormula(op, element.getOperand(i), budget); });
}

unsigned attn::captureElement(AttentionOp op, const Access &read) {
  unsigned count = op.getCaptures().size();
  for (unsigned i = 0; i < count; ++i)
    if (op.getCaptures()[i] == read.tensor && op.getCaptureMap(i) == read.map)
      return i;
  SmallVector<Attribute> maps(op.getIndexingMaps().getValue());
  maps.insert(maps.begin() + 3 + count, AffineMapAttr::get(read.map));
  op.getCapturesMutable().append(read.tensor);
  op.setIndexingMapsAttr(ArrayAttr::get(op.getContext(), maps));
  if (!op.getScore().empty())
    op.getScore().addArgument(getElementTypeOrSelf(read.tensor), read.tensor.getLoc());
  return count;
}

unsigned attn::captureComputed(AttentionOp op, ArrayRef<unsigned> dims, ArrayRef<unsigned> captures,
                               Type type,
                               function_ref<Value(OpBuilder &, Location, ValueRange)> compute) {
  OpBuilder builder(op);
  unsigned numDims = op.getQueryMap().getNumDims();
  SmallVector<AffineExpr> loopOf(numDims, builder.getAffineConstantExpr(0));
  SmallVector<OpFoldResult> sizes;
  SmallVector<Range> domain = op.getIterationDomain(builder);
  for (auto [loop, dim] : llvm::enumerate(dims)) {
    loopOf[dim] = builder.getAffineDimExpr(loop);
    sizes.push_back(domain[dim].size);
  }
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (unsigned capture : captures) {
    operands.push_back(op.getCaptures()[capture]);
    maps.push_back(op.getCaptureMap(capture).replaceDimsAndSymbols(loopOf, {}, dims.size(), 0));
  }
  maps.push_back(builder.getMultiDimIdentityMap(dims.size()));
  Value empty = tensor::EmptyOp::create(builder, op.getLoc(), sizes, type);
  SmallVector<utils::IteratorType> loops(dims.size(), utils::IteratorType::parallel);
  auto computed = linalg::GenericOp::create(
      builder, op.getLoc(), empty.getType(), operands, empty, maps, loops,
      [&](OpBuilder &b, Location loc, ValueRange elements) {
        linalg::YieldOp::create(b, loc, compute(b, loc, elements.drop_back()));
      });
  AffineMap read = AffineMap::getMultiDimMapWithTargets(numDims, dims, op.getContext());
  return captureElement(op, {computed.getResult(0), read});
}

static Value compute(AttentionOp op, const Element &element, OpBuilder &builder) {
  Operation *scalar = element.getOp();
  if (auto constant = dyn_cast_if_present<TypedAttr>(element.getConstant()))
    return arith::ConstantOp::create(builder, op.getLoc(), constant);
  if (!scalar)
    return op.getScore().getArgument(op.getKDim() + 2 + captureElement(op, cutToDims(op, element)));
  if (isa<linalg::IndexOp>(scalar)) {
    Value sum;
    element.getCoordinate().walk([&](AffineExpr part) {
      auto dim = dyn_cast<AffineDimExpr>(part);
      auto number = dyn_cast<AffineConstantExpr>(part);
      if (!dim && !number)
        return;
      Value term =
          dim ? Value(op.getScore().front().getArgument(dim.getPosition()))
              : arith::ConstantIndexOp::create(builder, scalar->getLoc(), number.getValue());
      sum = sum ? arith::AddIOp::create(builder, scalar->getLoc(), sum, term) : term;
    });
    return sum;
  }
  IRMapping mapping;
  for (auto [i, operand] : llvm::enumerate(scalar->getOperands()))
    mapping.map(operand, compute(op, element.getOperand(i), builder));
  return builder.clone(*scalar, mapping)->getResult(0);
}

Value attn::computeCapture(AttentionOp op, unsigned capture) {
  AffineMap map = op.getCaptureMap(capture);
  if (!map.isFunctionOfDim(op.getQDim()) || !map.isFunctionOfDim(op.getKDim()))
    return {};
  Element element = Element::at({op.getCaptures()[capture], map});
  unsigned budget = kMaxInstructions;
  if ((!element.getOp() && !element.getConstant()) || !isFormula(op, element, budget))
    return {};
  OpBuilder builder(op.getContext());
  if (op.getScore().empty())
    createScoreBlock(builder, op, op.getScore());
  builder.setInsertionPointToStart(&op.getScore().front());
  return compute(op, element, builder);
}
