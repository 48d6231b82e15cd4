//===- OnlineProducts.cpp - the two products of an online softmax ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/OnlineProducts.h"
#include "codegen/cpu/ContractToVector.h"
#include "passes/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

Value attn::createReplace(OpBuilder &builder, Location loc, Value value, double constant,
                          double replacement) {
  Value isEqual = createIsEqual(builder, loc, value, constant);
  return arith::SelectOp::create(builder, loc, isEqual,
                                 floatConstant(builder, loc, value.getType(), replacement), value);
}

SmallVector<Value> attn::createProbabilities(OpBuilder &builder, Location loc, ValueRange scores,
                                             const Exponents &relative, CpuAttr cpu) {
  auto exponents = llvm::map_to_vector(scores, [&](Value s) { return relative.of(builder, s); });
  return createExp2(builder, loc, exponents, cpu, Underflow::Live);
}

double attn::valueOf(EmptyRow emptyRow) {
  return emptyRow == EmptyRow::Zero ? 0.0 : std::numeric_limits<double>::quiet_NaN();
}

/// Copies the block `name`, which was planned for a product of `step`, to `product`.
static void setBlock(Operation *product, Operation *step, StringRef name) {
  auto blocks = step->getAttrOfType<DictionaryAttr>(AttnDialect::kBlocksAttr);
  if (Attribute block = blocks ? blocks.get(name) : Attribute())
    product->setAttr(AttnDialect::kBlockAttr, block);
}

/// Returns a view (k, d / group, group) of `rows`, a buffer (k, d).
static Value createViewOfGroups(OpBuilder &builder, Location loc, Value rows, int64_t group) {
  auto type = cast<MemRefType>(rows.getType());
  SmallVector<int64_t> shape = {type.getDimSize(0), type.getDimSize(1) / group, group};
  SmallVector<ReassociationIndices> dims = {{0}, {1, 2}};
  SmallVector<OpFoldResult> sizes = {memref::getMixedSize(builder, loc, rows, 0),
                                     builder.getIndexAttr(shape[1]), builder.getIndexAttr(group)};
  return memref::ExpandShapeOp::create(builder, loc, shape, rows, dims, sizes);
}

/// The indexing map of each operand of a product, from the indices that address the operand.
static SmallVector<AffineMap> inferMaps(ArrayRef<SmallVector<AffineExpr, 4>> indices,
                                        MLIRContext *context) {
  return AffineMap::inferFromExprList(indices, context);
}

template <typename OpTy>
ScoreProducts attn::createScoreProducts(OpBuilder &builder, OpTy op, Value scores, CpuAttr cpu) {
  Location loc = op.getLoc();
  AffineExpr k, q, d, g;
  bindDims(builder.getContext(), k, q, d, g);
  SmallVector<AffineExpr, 4> ofKey = {k, d}, ofQuery = withQueries(d, q, op.getRows());
  Value key = op.getKey(), query = op.getQuery();
  if (auto type = cast<MemRefType>(query.getType()); type.getRank() == 3) {
    key = createViewOfGroups(builder, loc, key, type.getShape().back());
    ofKey.push_back(g);
    ofQuery.push_back(g);
  }
  SmallVector<AffineMap> maps =
      inferMaps({ofKey, ofQuery, withQueries(k, q, op.getRows())}, builder.getContext());
  Value zero = floatConstant(builder, loc, getElementTypeOrSelf(scores.getType()), 0);
  auto fill = linalg::FillOp::create(builder, loc, zero, scores);
  linalg::LinalgOp product = createProduct(builder, loc, key, query, scores, maps);
  setBlock(product, op, "scores");
  return {*Contraction::match(product, cpu), {zero, {}, fill}};
}

template ScoreProducts attn::createScoreProducts(OpBuilder &, OnlineStepOp, Value, CpuAttr);
template ScoreProducts attn::createScoreProducts(OpBuilder &, OnlineProbabilitiesOp, Value,
                                                 CpuAttr);

LogicalResult attn::weighValues(IRRewriter &rewriter, OnlineStepOp op, CpuAttr cpu) {
  AffineExpr e, q, k, g;
  bindDims(op.getContext(), e, q, k, g);
  SmallVector<AffineExpr, 4> value = {k, e}, probabilities = withQueries(k, q, op.getRows()),
                             acc = withQueries(e, q, op.getRows());
  if (op.getTransposed())
    std::swap(value[0], value[1]);
  if (op.getGroup() > 1) {
    value.push_back(g);
    probabilities.push_back(g);
  }
  Value p = op.getProbabilities() ? op.getProbabilities() : op.getScores();
  MLIRContext *context = op.getContext();
  linalg::LinalgOp product =
      op.getMask() ? createGuardedProduct(rewriter, op.getLoc(), p, op.getValue(), op.getAcc(),
                                          inferMaps({probabilities, value, acc}, context))
                   : createProduct(rewriter, op.getLoc(), op.getValue(), p, op.getAcc(),
                                   inferMaps({value, probabilities, acc}, context));
  setBlock(product, op, "values");
  Contraction contraction = *Contraction::match(product, cpu);
  return lowerContraction(rewriter, contraction, Start::ofOutput(contraction), cpu);
}
