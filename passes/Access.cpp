//===- Access.cpp - which element of a tensor is read ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace attn;

bool attn::isScalarFunction(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumParallelLoops() != op.getNumLoops())
    return false;
  for (OpOperand &init : op.getDpsInitsMutable())
    if (!op.getMatchingIndexingMap(&init).isPermutation())
      return false;
  auto isScalarSource = [&](Value value) {
    return value.getParentBlock() == op.getBlock() || matchPattern(value, m_Constant());
  };
  for (OpOperand &operand : op->getOpOperands())
    if (!isa<RankedTensorType>(operand.get().getType()) &&
        !matchPattern(operand.get(), m_Constant()))
      return false;
  for (Operation &inner : *op.getBlock()) {
    bool isScalar = isa<linalg::IndexOp, linalg::YieldOp>(inner) ||
                    inner.hasTrait<OpTrait::ConstantLike>() ||
                    (OpTrait::hasElementwiseMappableTraits(&inner) && isPure(&inner));
    if (!isScalar || !llvm::all_of(inner.getOperands(), isScalarSource))
      return false;
  }
  return true;
}

bool attn::isRounding(linalg::LinalgOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 1 || !isScalarFunction(op) ||
      !llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) { return map.isIdentity(); }))
    return false;
  auto round = op.getBlock()->getTerminator()->getOperand(0).getDefiningOp<arith::TruncFOp>();
  return round && round.getIn() == op.getBlock()->getArgument(0);
}

Value attn::createConverted(OpBuilder &builder, Location loc, Value source, Value init) {
  auto type = cast<RankedTensorType>(init.getType());
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, type, source, init, maps, loops,
             [&](OpBuilder &b, Location loc, ValueRange args) {
               linalg::YieldOp::create(b, loc,
                                       convertScalarToDtype(b, loc, args[0], type.getElementType(),
                                                            /*isUnsignedCast=*/false));
             })
      .getResult(0);
}

bool attn::haveEqualSizes(Value a, Value b) {
  int64_t rank = cast<RankedTensorType>(a.getType()).getRank();
  return rank == cast<RankedTensorType>(b.getType()).getRank() &&
         llvm::all_of(llvm::seq(rank), [&](int64_t dim) {
           FailureOr<bool> isEqual = ValueBoundsConstraintSet::areEqual({a, dim}, {b, dim});
           return succeeded(isEqual) && *isEqual;
         });
}

bool attn::isCopy(linalg::LinalgOp op) {
  return op.getNumDpsInputs() == 1 && op->getNumResults() == 1 && op.getNumReductionLoops() == 0 &&
         isa<ShapedType>(op.getDpsInputOperand(0)->get().getType()) &&
         op.getBlock()->getTerminator()->getOperand(0) == op.getBlock()->getArgument(0);
}

AffineMap attn::loopsAt(linalg::LinalgOp op, OpResult result, AffineMap map) {
  AffineMap outMap = op.getMatchingIndexingMap(op.getTiedOpOperand(result));
  return inversePermutation(outMap).compose(map);
}

std::optional<Access> attn::readThroughUnitReshape(Access access) {
  Operation *op = access.tensor.getDefiningOp();
  bool isExpand = isa_and_nonnull<tensor::ExpandShapeOp>(op);
  if (!isExpand && !isa_and_nonnull<tensor::CollapseShapeOp>(op))
    return std::nullopt;
  auto source = cast<TypedValue<RankedTensorType>>(op->getOperand(0));
  RankedTensorType longer =
      isExpand ? cast<RankedTensorType>(access.tensor.getType()) : source.getType();
  auto groups = isExpand ? cast<tensor::ExpandShapeOp>(op).getReassociationIndices()
                         : cast<tensor::CollapseShapeOp>(op).getReassociationIndices();
  SmallVector<AffineExpr> exprs(source.getType().getRank(),
                                getAffineConstantExpr(0, op->getContext()));
  for (auto [shortDim, group] : llvm::enumerate(groups)) {
    auto sized =
        llvm::make_filter_range(group, [&](int64_t dim) { return longer.getDimSize(dim) != 1; });
    if (std::distance(sized.begin(), sized.end()) > 1)
      return std::nullopt;
    for (int64_t longDim : sized)
      exprs[isExpand ? shortDim : longDim] = access.map.getResult(isExpand ? longDim : shortDim);
  }
  return Access{source, AffineMap::get(access.map.getNumDims(), 0, exprs, op->getContext())};
}

std::optional<Access> attn::readThroughView(Access access) {
  if (auto source = readThroughUnitReshape(access))
    return source;
  auto op = access.tensor.getDefiningOp<linalg::LinalgOp>();
  if (!op || !isCopy(op) || !isScalarFunction(op))
    return std::nullopt;
  OpOperand &input = *op.getDpsInputOperand(0);
  AffineMap loops = loopsAt(op, cast<OpResult>(access.tensor), access.map);
  return Access{input.get(), op.getMatchingIndexingMap(&input).compose(loops)};
}

static int64_t numNamed(const Access &access) {
  return llvm::count_if(access.map.getResults(), llvm::IsaPred<AffineDimExpr>);
}

Access attn::withoutBroadcasts(Access access) {
  // A reshape that drops a unit dimension is not a broadcast.
  Access best = access;
  while (std::optional<Access> source = readThroughView(access)) {
    if (access.tensor.getDefiningOp<linalg::LinalgOp>() && numNamed(*source) < numNamed(access))
      best = *source;
    access = *source;
  }
  return best;
}

/// Whether the dimensions of the tensor that `access` reads are in the order of the iteration space.
static bool isInOrder(const Access &access) {
  SmallVector<unsigned> positions;
  for (AffineExpr expr : access.map.getResults())
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      positions.push_back(dim.getPosition());
  return llvm::is_sorted(positions);
}

Access attn::inOrder(Access access) {
  for (std::optional<Access> next = access; next; next = readThroughView(*next))
    if (isInOrder(*next) && numNamed(*next) == numNamed(access))
      return *next;
  return access;
}
