//===- Product.cpp - matrix products ---------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/Product.h"
#include "dialect/Attn.h"
#include "support/Loops.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace attn;

/// Whether each op in the body of `op` multiplies, adds or widens a number to the type of the sum.
static bool multipliesAndAdds(linalg::LinalgOp op) {
  Type sum = getElementTypeOrSelf(op.getDpsInitOperand(0)->get().getType());
  return llvm::all_of(op.getBlock()->without_terminator(), [&](Operation &inner) {
    return isa<arith::MulFOp, arith::AddFOp, arith::ExtFOp, arith::MulIOp, arith::AddIOp,
               arith::ExtSIOp>(inner) &&
           inner.getResult(0).getType() == sum;
  });
}

bool attn::isProduct(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  return linalgOp && linalg::isaContractionOpInterface(linalgOp) && multipliesAndAdds(linalgOp);
}

bool attn::isConvolution(Operation *op) {
  auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
  if (!linalgOp || linalgOp.getNumDpsInputs() != 2 || linalgOp.getNumDpsInits() != 1 ||
      linalgOp.getNumReductionLoops() == 0)
    return false;
  SmallVector<AffineMap> maps = linalgOp.getIndexingMapsArray();
  bool readsSums = !maps[0].isProjectedPermutation(), isLinear = true;
  for (AffineExpr expr : maps[0].getResults())
    isLinear &= findTerms(expr).has_value();
  auto isPair = [](Operation *multiply, Operation *add) {
    return isa<arith::MulFOp>(multiply) && isa<arith::AddFOp>(add);
  };
  return readsSums && isLinear && maps[1].isProjectedPermutation() &&
         maps[2].isProjectedPermutation() && multipliesAndAdds(linalgOp) &&
         linalg::detail::isContractionBody(*linalgOp.getBlock(), isPair);
}

ProductTypes ProductTypes::get(linalg::LinalgOp product) {
  auto typeOf = [&](int64_t operand) {
    return getElementTypeOrSelf(product->getOperand(operand).getType());
  };
  return {typeOf(0), typeOf(1), typeOf(2)};
}

static TypeRange getResultTypes(const Value &out) {
  return isa<TensorType>(out.getType()) ? TypeRange(ValueRange(out)) : TypeRange();
}

linalg::LinalgOp attn::createProduct(OpBuilder &builder, Location loc, Value a, Value b, Value out,
                                     ArrayRef<AffineMap> maps) {
  return linalg::ContractOp::create(builder, loc, getResultTypes(out), ValueRange{a, b},
                                    ValueRange{out}, builder.getAffineMapArrayAttr(maps));
}

linalg::LinalgOp attn::createGuardedProduct(OpBuilder &builder, Location loc, Value a, Value b,
                                            Value out, ArrayRef<AffineMap> maps) {
  SmallVector<utils::IteratorType> iterators;
  for (unsigned loop : llvm::seq(maps.back().getNumDims()))
    iterators.push_back(maps.back().isFunctionOfDim(loop) ? utils::IteratorType::parallel
                                                          : utils::IteratorType::reduction);
  auto op = linalg::GenericOp::create(
      builder, loc, getResultTypes(out), ValueRange{a, b}, ValueRange{out}, maps, iterators,
      [](OpBuilder &inner, Location loc, ValueRange args) {
        Value zero =
            arith::ConstantOp::create(inner, loc, inner.getFloatAttr(args[0].getType(), 0));
        Value isLive = arith::CmpFOp::create(inner, loc, arith::CmpFPredicate::UNE, args[0], zero);
        Type type = args[2].getType();
        auto widened = [&](Value factor) {
          return convertScalarToDtype(inner, loc, factor, type, /*isUnsignedCast=*/false);
        };
        Value product = arith::MulFOp::create(inner, loc, widened(args[0]), widened(args[1]));
        Value sum = arith::AddFOp::create(inner, loc, args[2], product);
        Value kept = arith::SelectOp::create(inner, loc, isLive, sum, args[2]);
        linalg::YieldOp::create(inner, loc, kept);
      });
  op->setAttr(AttnDialect::kSkipsZerosAttr, builder.getUnitAttr());
  return op;
}

int64_t attn::getGroup(linalg::LinalgOp product) {
  SmallVector<unsigned> reductions;
  product.getReductionDims(reductions);
  if (reductions.size() != 2)
    return 1;
  AffineExpr inner = getAffineDimExpr(reductions.back(), product.getContext());
  for (OpOperand *input : product.getDpsInputOperands()) {
    ArrayRef<AffineExpr> results = product.getMatchingIndexingMap(input).getResults();
    if (results.empty() || results.back() != inner)
      return 1;
  }
  int64_t size = product.getStaticLoopRanges()[reductions.back()];
  return ShapedType::isDynamic(size) ? 1 : size;
}

bool attn::skipsZeros(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumReductionLoops() > 0 &&
         op->hasAttr(AttnDialect::kSkipsZerosAttr);
}
