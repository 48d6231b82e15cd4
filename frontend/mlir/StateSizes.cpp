//===- StateSizes.cpp - sizes in terms of arguments ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// torch-mlir computes sizes in i64, checks them, and reshapes tensors to them:
//   %n = arith.index_cast %dim : index to i64            // of %x : tensor<?x?x12xf32>
//   %isNegative = arith.cmpi slt, %n, %c0_i64 : i64
//   %size = arith.select %isNegative, %inferred, %n : i64
//   %shape = tensor.from_elements %size, %m, %c3_i64, %c4_i64 : tensor<4xi64>
//   %r = tensor.reshape %x(%shape) : (tensor<?x?x12xf32>, tensor<4xi64>) -> tensor<?x?x3x4xf32>
// becomes
//   %r = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [%dim, %dim_0, 3, 4]
//
// The index into a dimension that is broadcast if its size is 1 becomes the index of the loop, if both have one size:
//   %isOne = arith.cmpi eq, %dim, %c1 : index
//   %i = arith.select %isOne, %c0, %index : index
// In the same way, scf.if that broadcasts %x if a size is 1, and else yields %x, becomes %x.
// Test: test/frontend/mlir/sizes.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/mlir/StateSizes.h"

#include "dialect/Symbols.h"
#include "frontend/graph/TensorBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;
using namespace attn::graph;

namespace {
class Rewriter {
public:
  explicit Rewriter(FunctionSizes &sizes)
      : sizes(sizes), function(sizes.function), b(function.getLoc(), function.getContext()) {
    forEachSymbol(function, [&](StringAttr symbol, BlockArgument argument, int64_t axis) {
      b.bindSymbol(sizes.keyOf(symbol), argument, axis);
    });
  }

  LogicalResult run() {
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) { ops.push_back(op); });
    // The numbers of all ops first, because they are computed from ops that change.
    SmallVector<std::pair<Operation *, Size>> numbers;
    for (Operation *op : ops)
      if (std::optional<Size> number = numberToState(op))
        numbers.push_back({op, *number});
    SmallVector<arith::SelectOp> broadcasts;
    for (Operation *op : ops)
      if (auto select = dyn_cast<arith::SelectOp>(op); select && isBroadcastIndex(select))
        broadcasts.push_back(select);
    SmallVector<scf::IfOp> branches;
    for (Operation *op : ops)
      if (auto branch = dyn_cast<scf::IfOp>(op); branch && isBroadcastBranch(branch))
        branches.push_back(branch);
    for (Operation *op : ops)
      if (auto reshape = dyn_cast<tensor::ReshapeOp>(op); reshape && failed(toView(reshape)))
        return failure();
    for (auto &[op, number] : numbers)
      state(op, number);
    for (arith::SelectOp select : broadcasts)
      select.replaceAllUsesWith(select.getFalseValue());
    for (scf::IfOp branch : branches)
      branch.getResult(0).replaceAllUsesWith(branch.elseYield().getOperand(0));
    for (const auto &[size, least] : b.assumptions())
      if (!sizes.requireAtMost(Size(least), size))
        return function.emitError()
               << "expected a size of at least " << least << ", got " << sizes.str(size);
    sizes.setRanges();
    return success();
  }

private:
  /// The number that `op` computes, if it is known and is not yet a constant or a dimension of an argument.
  std::optional<Size> numberToState(Operation *op) {
    if (op->getNumResults() != 1 || op->hasTrait<OpTrait::ConstantLike>() || op->use_empty())
      return std::nullopt;
    Type type = op->getResult(0).getType();
    if (!type.isIndex() && !type.isInteger(64) && !type.isInteger(32) && !type.isInteger(1))
      return std::nullopt;
    if (auto dim = dyn_cast<tensor::DimOp>(op); dim && isa<BlockArgument>(dim.getSource()))
      return std::nullopt;
    std::optional<Size> number = sizes.numberOf(op->getResult(0));
    if (!number || (!number->constant() && !type.isIndex() && !type.isInteger(64)) ||
        !llvm::all_of(number->symbols(),
                      [&](const std::string &symbol) { return b.isBound(symbol); }))
      return std::nullopt;
    return number;
  }

  /// Moves the builder to the op in the body of the function that contains `op`.
  void moveTo(Operation *op) {
    while (op->getParentOp() != function)
      op = op->getParentOp();
    b.setInsertionPoint(op);
    b.setLoc(op->getLoc());
  }

  void state(Operation *op, const Size &number) {
    moveTo(op);
    Value result = op->getResult(0);
    Type type = result.getType();
    std::optional<int64_t> constant = number.constant();
    Value value;
    if (constant && !type.isIndex())
      value = arith::ConstantOp::create(b, b.getIntegerAttr(type, *constant));
    else
      value = b.indexOf(number);
    if (value.getType() != type)
      value = arith::IndexCastOp::create(b, type, value);
    result.replaceAllUsesWith(value);
  }

  /// Whether `select` is the index of a loop in a dimension that has the size of the loop, or the index 0 if this size is
  /// 1.
  bool isBroadcastIndex(arith::SelectOp select) {
    auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
    auto index = select.getFalseValue().getDefiningOp<linalg::IndexOp>();
    if (!compare || !index || compare.getPredicate() != arith::CmpIPredicate::eq ||
        getConstantIntValue(compare.getRhs()) != 1 ||
        getConstantIntValue(select.getTrueValue()) != 0)
      return false;
    std::optional<Size> size = sizes.numberOf(compare.getLhs());
    auto op = cast<linalg::LinalgOp>(index->getParentOp());
    AffineExpr loop = getAffineDimExpr(index.getDim(), b.getContext());
    return size && llvm::any_of(op->getOpOperands(), [&](OpOperand &operand) {
             std::optional<unsigned> dim =
                 op.getMatchingIndexingMap(&operand).getResultPosition(loop);
             return dim && sizes.reduced(sizes.namedSizeOf(operand.get(), *dim)) == *size;
           });
  }

  /// Whether both results of `branch` have the same elements: one branch yields a tensor, and the other one a copy that
  /// broadcasts a dimension of size 1, although all sizes of both are equal.
  bool isBroadcastBranch(scf::IfOp branch) {
    auto compare = branch.getCondition().getDefiningOp<arith::CmpIOp>();
    if (branch.getNumResults() != 1 || !compare ||
        compare.getPredicate() != arith::CmpIPredicate::eq ||
        getConstantIntValue(compare.getRhs()) != 1)
      return false;
    Value tensor = branch.elseYield().getOperand(0), copied = branch.thenYield().getOperand(0);
    auto copy = copied.getDefiningOp<linalg::GenericOp>();
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (!copy || !type || copy.getNumDpsInputs() != 1 || copy.getDpsInputs()[0] != tensor ||
        copy.getNumReductionLoops() != 0 ||
        copy.getBlock()->getTerminator()->getOperand(0) != copy.getBlock()->getArgument(0) ||
        !copy.getMatchingIndexingMap(copy.getDpsInitOperand(0)).isIdentity())
      return false;
    AffineMap map = copy.getMatchingIndexingMap(copy.getDpsInputOperand(0));
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      Size size = sizes.reduced(sizes.namedSizeOf(tensor, dim));
      bool isRead = expr == getAffineDimExpr(dim, b.getContext());
      bool isOne = expr == getAffineConstantExpr(0, b.getContext()) &&
                   (size.isOne() || size == sizes.reduced(sizes.namedNumberOf(compare.getLhs())));
      if (size != sizes.reduced(sizes.namedSizeOf(copied, dim)) || (!isRead && !isOne))
        return false;
    }
    return true;
  }

  Tensor asTensor(Value value) {
    Tensor tensor{value, DType::F32, {}};
    for (int64_t dim = 0; dim < cast<RankedTensorType>(value.getType()).getRank(); ++dim)
      tensor.sizes.push_back(sizes.reduced(sizes.namedSizeOf(value, dim)));
    return tensor;
  }

  Value castTo(Value value, Type type) {
    return value.getType() == type ? value : tensor::CastOp::create(b, type, value).getResult();
  }

  LogicalResult toView(tensor::ReshapeOp op) {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    std::optional<DType> dtype = type ? dtypeOf(type.getElementType()) : std::nullopt;
    if (!dtype || !isa<RankedTensorType>(op.getSource().getType()))
      return op.emitError() << "expected a reshape of a ranked tensor of numbers, got "
                            << op.getSource().getType();
    Tensor from = asTensor(op.getSource());
    Tensor to = asTensor(op.getResult());
    std::optional<SmallVector<ViewGroup>> groups = matchView(from.sizes, to.sizes);
    auto isStated = [&](const Size &size) {
      return llvm::all_of(size.symbols(),
                          [&](const std::string &symbol) { return b.isBound(symbol); });
    };
    if (!groups || !llvm::all_of(from.sizes, isStated) || !llvm::all_of(to.sizes, isStated))
      return op.emitError()
             << "expected a reshape that merges and splits dimensions in every call, got one from "
             << attn::str(from.sizes) << " to " << attn::str(to.sizes);
    moveTo(op);
    b.setInsertionPoint(op);
    from.dtype = *dtype;
    from.value = castTo(from.value, b.typeOf(from.sizes, *dtype));
    op.getResult().replaceAllUsesWith(castTo(b.view(from, to.sizes, *groups).value, type));
    op.erase();
    return success();
  }

  FunctionSizes &sizes;
  func::FuncOp function;
  TensorBuilder b;
};
} // namespace

LogicalResult attn::stateSizes(FunctionSizes &sizes) { return Rewriter(sizes).run(); }
