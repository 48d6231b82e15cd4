//===- RaiseAttention.cpp - find attention in a linalg graph ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %s = linalg.contract (b,q,d), (b,k,d) -> (b,q,k) ins(%q, %k) outs(zeros)
//   %m = linalg.generic ins(%hidden, %s) { select %hidden, -inf, %s }
//   %p = linalg.softmax dimension(2) ins(%m)
//   %o = linalg.contract (b,q,k), (b,k,e) -> (b,q,e) ins(%p, %v) outs(zeros)
// becomes
//   %o = attn.attention ins(%q, %k, %v) captures(%hidden) outs(%empty) {empty_row = nan}
//        score { ^bb0(%b, %q, %k, %s, %hidden): yield (select %hidden, -inf, %s) }
//
// The pass starts from the softmax. The product of the probabilities, perhaps transposed, with the values must sum
// over the softmax dimension. The scores, read one element at a time through all-parallel ops, must be computed from
// a product of a query and a key. Elementwise ops between that product and the softmax, masks made from indices
// included, become the score region; the results of other ops, a second product included, become captured operands.
// Scores that another op reads too stay in memory and are captured. For these scores, and for scores without a product
// (the softmax of a masked constant), the query and key of the attention have head size 0. Probabilities with another
// use become the second output. If an op sets probabilities to 0 in rows whose scores are all -inf, or for pairs that
// the scores hide, the attention has {empty_row = zero}. A column that is concatenated to the scores, and whose
// probabilities a slice drops, is a sink.
//
// A graph that is not proved to have this form stays unchanged, and so does a graph with element types for which
// attention is not compiled (isAttentionElement). A remark at the softmax gives the reason, unless the probabilities
// reach neither a product nor a result of the function.
// Test: test/passes/raise/raise-attention.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "dialect/Finding.h"
#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/raise/Element.h"
#include "passes/raise/HiddenPairs.h"
#include "passes/raise/Remarks.h"
#include "passes/raise/Rounding.h"
#include "support/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn {
#define GEN_PASS_DEF_RAISEATTENTION
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {

/// The product that the scores are computed from. `map` is a map over the dimensions of the softmax input, and gives
/// the place where the result of the product is read. The maps of `query` and `key` are over the dimensions of the
/// softmax input, then d.
struct Product {
  linalg::LinalgOp op;
  AffineMap map;
  Access query, key;
};
} // namespace

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// Whether `op` adds products of two operands to sums of f32 over one dimension, starting from 0.
static bool isPlainContraction(linalg::LinalgOp op) {
  if (!isProduct(op) || !op.hasPureTensorSemantics() || op.getNumReductionLoops() != 1 ||
      op.getMatchingIndexingMap(op.getDpsInitOperand(0)).getNumResults() + 1 != op.getNumLoops())
    return false;
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!fill || !matchPattern(fill.value(), m_AnyZeroFloat()))
    return false;
  ProductTypes types = ProductTypes::get(op);
  return isAttentionElement(types.a) && isAttentionElement(types.b) && types.sum.isF32();
}

/// A float type that attention cannot have and that `op` reads or writes, if there is one.
static Type findOtherFloat(Operation *op) {
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  for (Type type : types)
    if (Type element = getElementTypeOrSelf(type);
        isa<FloatType>(element) && !isAttentionElement(element))
      return element;
  return {};
}

/// Returns `map` with coordinate i in place of 0 in each dimension i of size 1. Both maps read the same element.
static AffineMap withUnitCoordinates(AffineMap map, ArrayRef<int64_t> sizes) {
  SmallVector<AffineExpr> exprs(map.getResults());
  for (unsigned i = 0; i < std::min<size_t>(exprs.size(), sizes.size()); ++i)
    if (!isa<AffineDimExpr>(exprs[i]) && sizes[i] == 1 && !map.isFunctionOfDim(i))
      exprs[i] = getAffineDimExpr(i, map.getContext());
  return AffineMap::get(map.getNumDims(), 0, exprs, map.getContext());
}

/// Matches `op`, whose result is read at `map` over the softmax input, as a product of a query and a key.
static std::optional<Product> matchProduct(linalg::LinalgOp op, AffineMap map, unsigned keyDim) {
  unsigned d = map.getNumDims();
  auto isNamed = [&](unsigned dim) { return map.isFunctionOfDim(dim); };
  if (!isPlainContraction(op) || !map.isProjectedPermutation(/*allowZeroInResults=*/true) ||
      !llvm::all_of(llvm::seq(d), isNamed))
    return std::nullopt;
  SmallVector<AffineExpr> loops(op.getNumLoops(), getAffineDimExpr(d, op.getContext()));
  SmallVector<unsigned> resultLoops = *findResultLoops(op);
  for (auto [loop, coordinate] : llvm::zip_equal(resultLoops, map.getResults()))
    loops[loop] = coordinate;
  auto access = [&](unsigned i) {
    OpOperand &operand = op->getOpOperand(i);
    AffineMap read = op.getMatchingIndexingMap(&operand).replaceDimsAndSymbols(loops, {}, d + 1, 0);
    return withoutBroadcasts({operand.get(), read});
  };
  Product product{op, map, access(0), access(1)};
  if (product.query.names(keyDim))
    std::swap(product.query, product.key);
  if (product.query.names(keyDim) || !product.key.names(keyDim) || !product.query.names(d) ||
      !product.key.names(d))
    return std::nullopt;
  return product;
}

//===----------------------------------------------------------------------===//
// Raising
//===----------------------------------------------------------------------===//

namespace {

/// Turns one softmax into an attention.
class Raiser {
public:
  /// Scores in `inMemory` become captured operands.
  Raiser(linalg::SoftmaxOp softmax, DenseSet<Value> inMemory)
      : softmax(softmax), inMemory(std::move(inMemory)), scores(softmax.getInput()),
        reader(softmax), probabilities(softmax->getResult(0)), context(softmax.getContext()),
        keyDim(softmax.getDimension()), rank(softmax.getInputOperandType().getRank()),
        builder(context) {
    Block &block = region.emplaceBlock();
    for (unsigned i = 0; i < rank; ++i)
      block.addArgument(builder.getIndexType(), softmax.getLoc());
    block.addArgument(builder.getF32Type(), softmax.getLoc());
    builder.setInsertionPointToEnd(&block);
  }

  /// Fails with a remark that gives the reason. Fails without a remark if the softmax is not part of an attention, or
  /// if more scores have to be in memory (getSharedScores()).
  LogicalResult run();

  /// Scores that another op reads too and that are not yet in memory.
  const DenseSet<Value> &getSharedScores() const { return sharedScores; }

private:
  /// Starts the remark that says why the attention is left unfused. The result converts to failure.
  InFlightDiagnostic leftUnfused() {
    return emitFinding(softmax.getLoc(), Finding::Unfused) << "attention left unfused: expected ";
  }

  void findSink();
  void findProbabilities();
  LogicalResult hideFiniteFill(Value score);
  bool findsEmptyRows(Operation *op);
  LogicalResult findValueProduct();
  LogicalResult moveValueProduct();
  void findProduct(const Element &element, SmallPtrSetImpl<Operation *> &seen);
  FailureOr<Value> read(Value tensor, AffineMap map);
  FailureOr<Value> inlineBody(linalg::LinalgOp op, OpResult result, AffineMap map);
  FailureOr<Value> capture(Value tensor, AffineMap map);
  ArrayRef<int64_t> shapeOfScores() { return cast<ShapedType>(scores.getType()).getShape(); }
  LogicalResult checkScores();
  LogicalResult chooseDims();
  void rewrite(Value score);

  /// Rewrites `map` over the dimensions of the attention; `dims` has the dimension of the attention for each dimension
  /// of `map`.
  AffineMap toAttention(AffineMap map, ArrayRef<unsigned> dims) {
    SmallVector<AffineExpr> exprs =
        llvm::map_to_vector(dims, [&](unsigned dim) { return getAffineDimExpr(dim, context); });
    return map.replaceDimsAndSymbols(exprs, {}, numDims, 0);
  }

  linalg::SoftmaxOp softmax;
  DenseSet<Value> inMemory, sharedScores;
  /// The input of the softmax without the sink, and the op that reads it: the softmax or a concatenation.
  Value scores;
  Operation *reader;
  /// The probabilities that multiply the values: the result of the softmax, or of the op that puts 0 into empty rows of
  /// this result, without the column of the sink.
  Value probabilities;
  /// The sink, one more score for each row, read at the dimensions of the scores. Its tensor is null without a sink.
  Access sink;
  MLIRContext *context;
  unsigned keyDim, rank;

  /// The scores as a scalar function: its arguments are the coordinates of the softmax input, the
  /// product and the captured elements.
  Region region;
  OpBuilder builder;
  DenseMap<std::pair<Value, AffineMap>, Value> elements;
  SmallVector<Access> captures;
  std::optional<Product> product;
  /// Ops whose results depend on the product.
  llvm::SmallSetVector<Operation *, 8> scorePath;

  EmptyRow emptyRow = EmptyRow::NaN;
  /// If the last select of the scores hides pairs with a finite constant near the lowest float instead of -inf, the
  /// position of this constant among the operands of the select.
  std::optional<unsigned> finiteFill;
  /// The pairs that this constant hides, if they count in the sums of their rows, and the constant.
  std::optional<HiddenByTensor> hidden;
  double scoreOfHidden = 0;
  linalg::LinalgOp valueProduct;
  SmallVector<unsigned> probabilitiesLoops; // of valueProduct, for each dimension of the probabilities
  /// Transposed copies of the probabilities, and the ops other than valueProduct that read the probabilities or such a
  /// copy.
  SmallVector<Operation *> transposes, otherUsers;
  Access value; // over the loops of valueProduct

  /// The dimension of the attention for each dimension of the softmax input (then d), and for each loop of
  /// valueProduct.
  SmallVector<unsigned> ofScores, ofLoops;
  unsigned numDims = 0;
};
} // namespace

/// Finds a sink: a column beside the scores whose probabilities are dropped.
void Raiser::findSink() {
  auto concat = scores.getDefiningOp<tensor::ConcatOp>();
  if (!concat || concat.getDim() != keyDim || concat.getInputs().size() != 2 ||
      !probabilities.hasOneUse() || llvm::any_of(concat->getUsers(), [&](Operation *user) {
        return user != softmax && !findsEmptyRows(user);
      }))
    return;
  auto slice = dyn_cast<tensor::ExtractSliceOp>(*probabilities.user_begin());
  auto isColumn = [&](Value input) {
    return cast<RankedTensorType>(input.getType()).getDimSize(keyDim) == 1;
  };
  // If both inputs are columns, the sink is the last.
  unsigned column = isColumn(concat.getInputs()[1]) ? 1 : 0;
  if (!slice || !isColumn(concat.getInputs()[column]))
    return;
  Value rest = concat.getInputs()[1 - column];
  if (slice.getType().getRank() != rank || !haveEqualSizes(slice, rest))
    return;
  for (unsigned dim = 0; dim < rank; ++dim) {
    int64_t first = dim == keyDim && column == 0 ? 1 : 0;
    if (!isConstantIntValue(slice.getMixedOffsets()[dim], first) ||
        !isOneInteger(slice.getMixedStrides()[dim]))
      return;
  }
  scores = rest;
  reader = concat;
  probabilities = slice;
  SmallVector<AffineExpr> coordinates;
  for (unsigned dim = 0; dim < rank; ++dim)
    coordinates.push_back(dim == keyDim ? getAffineConstantExpr(0, context)
                                        : getAffineDimExpr(dim, context));
  sink = withoutBroadcasts(
      {concat.getInputs()[column], AffineMap::get(rank, 0, coordinates, context)});
}

/// The op that reads `tensor`, perhaps also through other ops that nothing else reads, such as tests for NaN and for
/// infinities and the selects of their results.
static Operation *findLastReader(Value tensor) {
  constexpr size_t kMostReaders = 16;
  Block *block = tensor.getParentBlock();
  llvm::SetVector<Operation *> readers;
  auto addUsers = [&](Value value) {
    for (Operation *user : value.getUsers())
      readers.insert(user);
  };
  // Visits readers in the order of the block. One of them is the last if no other reader is left.
  addUsers(tensor);
  while (!readers.empty() && readers.size() <= kMostReaders) {
    if (llvm::any_of(readers, [&](Operation *reader) { return reader->getBlock() != block; }))
      return nullptr;
    Operation *first = *llvm::min_element(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    if (readers.size() == 1)
      return first;
    readers.remove(first);
    if (first->use_empty())
      return nullptr;
    for (Value result : first->getResults())
      addUsers(result);
  }
  return nullptr;
}

/// Finds out whether an op sets probabilities to 0:
///   select(empty, 0, probabilities)      where all scores of the row are -inf
///   select(hidden, 0, probabilities)     where the pair is hidden: the softmax is of select(hidden, -inf, ..)
///   select(isnan(probabilities), 0, probabilities)
///   probabilities * float(not hidden)
/// A hidden pair already has probability 0, except in rows where every pair is hidden. A product with 0 keeps the NaN
/// of such a row. Rows with a NaN among their scores stay NaN (docs/semantics.md).
void Raiser::findProbabilities() {
  auto op = dyn_cast_or_null<linalg::LinalgOp>(findLastReader(probabilities));
  if (!op || op->getNumResults() != 1 || !isScalarFunction(op))
    return;
  Element chosen = Element::of(op->getResult(0)), probability = Element::of(probabilities),
          score = Element::of(scores);
  bool isProduct = isa_and_nonnull<arith::MulFOp>(chosen.getOp());
  if (!isProduct && !isa_and_nonnull<arith::SelectOp>(chosen.getOp()))
    return;
  auto isZero = [](const Element &element) {
    auto constant = dyn_cast_or_null<FloatAttr>(element.getConstant());
    return constant && constant.getValue().isZero();
  };
  std::optional<ConstantFill> fill;
  std::optional<Element> inPlaceOfNaN = findNaNReplacement(chosen, probability);
  bool findsRows = (inPlaceOfNaN && isZero(*inPlaceOfNaN)) ||
                   (!isProduct && isZero(chosen.getOperand(1)) && chosen.getOperand(2) == probability &&
                    holdsInEmptyRows(chosen.getOperand(0), scores, keyDim));
  auto findIn = [&](auto find) -> std::optional<ConstantFill> {
    if (isProduct) {
      unsigned other = chosen.getOperand(0) == probability ? 1 : 0;
      Element kept = chosen.getOperand(other);
      if (chosen.getOperand(1 - other) == probability &&
          isa_and_nonnull<arith::UIToFPOp>(kept.getOp()))
        return find(kept.getOperand(0), /*hides=*/false, score);
    } else if (isZero(chosen.getOperand(1)) && chosen.getOperand(2) == probability) {
      return find(chosen.getOperand(0), /*hides=*/true, score);
    } else if (isZero(chosen.getOperand(2)) && chosen.getOperand(1) == probability) {
      return find(chosen.getOperand(0), /*hides=*/false, score);
    }
    return std::nullopt;
  };
  fill = findIn(findFill);
  // Beside a constant such as -1e9, hidden pairs may count in the sum of their row. The sink stands for them.
  if (!fill && !findsRows && (fill = findIn(findFiniteFill))) {
    hidden = findHidden(scores, fill->operand, keyDim);
    if (!hidden)
      return;
    scoreOfHidden = fill->value;
  }
  if (!fill && !findsRows)
    return;
  probabilities = op->getResult(0);
  if (!findsRows && std::isfinite(fill->value))
    finiteFill = fill->operand;
  emptyRow = isProduct && !finiteFill ? EmptyRow::NaN : EmptyRow::Zero;
}

/// Replaces the finite number that hides pairs with -inf. The graph sets the probabilities of these pairs to 0, as -inf
/// does.
LogicalResult Raiser::hideFiniteFill(Value score) {
  auto select = score.getDefiningOp<arith::SelectOp>();
  if (!select)
    return leftUnfused() << "scores that nothing else reads, where a finite fill hides pairs";
  OpBuilder atSelect(select);
  select->setOperand(
      *finiteFill,
      arith::ConstantOp::create(atSelect, select.getLoc(),
                                builder.getF32FloatAttr(-std::numeric_limits<float>::infinity())));
  return success();
}

/// Whether `op` is used only to find the empty rows.
bool Raiser::findsEmptyRows(Operation *op) {
  if (op == softmax || op->use_empty())
    return false;
  return op == probabilities.getDefiningOp() ||
         llvm::all_of(op->getUsers(), [&](Operation *user) { return findsEmptyRows(user); });
}

/// Whether `value`, perhaps in another layout or changed element by element, is an operand of a contraction or a result
/// of the function.
static bool reachesContractionOrReturn(Value value) {
  SmallVector<Value> values = {value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!values.empty()) {
    Value form = values.pop_back_val();
    for (Operation *user : form.getUsers()) {
      auto op = dyn_cast<linalg::LinalgOp>(user);
      if (isa<func::ReturnOp>(user) || isProduct(user))
        return true;
      bool keepsElements = isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp,
                               tensor::ExtractSliceOp, tensor::InsertSliceOp, tensor::ConcatOp,
                               linalg::TransposeOp, linalg::SoftmaxOp>(user) ||
                           (op && op->getNumResults() == 1 && isScalarFunction(op) &&
                            haveEqualSizes(op->getResult(0), form));
      if (keepsElements && seen.insert(user).second)
        values.push_back(user->getResult(0));
    }
  }
  return false;
}

/// Finds the one contraction that multiplies the probabilities by values and sums over the softmax dimension.
LogicalResult Raiser::findValueProduct() {
  SmallVector<OpOperand *> products, others;
  // The probabilities and their transposed copies; each map takes coordinates of the copy to those of the
  // probabilities.
  SmallVector<Access> forms = {{probabilities, AffineMap::getMultiDimIdentityMap(rank, context)}};
  SmallVector<SmallVector<unsigned>> loopsOfProducts;
  for (unsigned i = 0; i < forms.size(); ++i)
    for (OpOperand &use : forms[i].tensor.getUses()) {
      auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
      AffineMap map = op ? forms[i].map.compose(op.getMatchingIndexingMap(&use)) : AffineMap();
      if (isPlainContraction(op)) {
        products.push_back(&use);
        loopsOfProducts.push_back(*findLoops(map));
      } else if (op && op.isDpsInput(&use) && isCopy(op) && isScalarFunction(op) &&
                 map.isPermutation()) {
        auto result = cast<OpResult>(op->getResult(0));
        AffineMap loops = loopsAt(op, result, AffineMap::getMultiDimIdentityMap(rank, context));
        forms.push_back({result, map.compose(loops)});
      } else {
        others.push_back(&use);
      }
    }
  if (products.empty()) {
    // Gates and poolings multiply elementwise. They are not attentions, so the pass emits no remark.
    if (!probabilities.use_empty() && !reachesContractionOrReturn(probabilities))
      return failure();
    for (OpOperand *use : others)
      if (Type type = findOtherFloat(use->getOwner()))
        return leftUnfused() << "probabilities and values of type f32, f16 or bf16, got " << type;
    InFlightDiagnostic remark = leftUnfused()
                                << "the probabilities to be multiplied with values, got ";
    if (others.empty())
      return remark << "no use of them";
    Operation *user = others.front()->getOwner();
    return remark << "a use by " << describe(user) << adviceFor(user);
  }
  if (products.size() > 1)
    return leftUnfused() << "one product of the probabilities with values, got " << products.size();
  OpOperand *probabilitiesOperand = products.front();
  probabilitiesLoops = loopsOfProducts.front();
  valueProduct = cast<linalg::LinalgOp>(probabilitiesOperand->getOwner());
  for (OpOperand *other : others)
    otherUsers.push_back(other->getOwner());
  for (const Access &form : ArrayRef(forms).drop_front())
    transposes.push_back(form.tensor.getDefiningOp());

  SmallVector<unsigned> sums;
  valueProduct.getReductionDims(sums);
  if (probabilitiesLoops[keyDim] != sums.front()) {
    InFlightDiagnostic remark = leftUnfused()
                                << "the values to be summed over dimension " << keyDim
                                << " of the probabilities, where the softmax is, got ";
    if (auto found = llvm::find(probabilitiesLoops, sums.front());
        found != probabilitiesLoops.end()) {
      unsigned dim = std::distance(probabilitiesLoops.begin(), found);
      remark << "dimension " << dim;
      if (dim + 2 >= rank && keyDim + 2 >= rank)
        return remark << "; is the softmax meant to be over that dimension?";
      return remark << "; probabilities that are mixed, for example those of several heads, have to "
                       "be in memory";
    }
    return remark << "another";
  }
  OpOperand &operand = valueProduct->getOpOperand(1 - probabilitiesOperand->getOperandNumber());
  value = withoutBroadcasts({operand.get(), valueProduct.getMatchingIndexingMap(&operand)});
  return success();
}

/// Moves the product with the values before the other readers of the probabilities, because the attention, which
/// replaces the product, will compute the probabilities that they read.
LogicalResult Raiser::moveValueProduct() {
  IRRewriter rewriter(context);
  for (Operation *reader : otherUsers) {
    Operation *user = valueProduct->getBlock()->findAncestorOpInBlock(*reader);
    if (user && valueProduct->isBeforeInBlock(user))
      continue;
    if (!user || failed(moveOperationDependencies(rewriter, valueProduct, user)))
      return leftUnfused()
             << "values that can be computed ahead of other uses of the probabilities, got "
                "such a use by "
             << describe(reader);
    rewriter.moveOpBefore(valueProduct, user);
  }
  return success();
}

/// Finds the product of query and key from which `element` of the scores is computed. If there are several products,
/// counts, for each operand, the coordinates of the score on which the operand depends. Takes the product whose smaller
/// count, among its two operands, is greatest. In the projection of a tensor of pairs, one operand depends on all
/// coordinates and the other on few, so the smaller count is low. The remaining products are computed in memory and
/// captured.
void Raiser::findProduct(const Element &element, SmallPtrSetImpl<Operation *> &seen) {
  if (Operation *op = element.getOp()) {
    if (seen.insert(op).second)
      for (unsigned i = 0; i < op->getNumOperands(); ++i)
        findProduct(element.getOperand(i), seen);
    return;
  }
  auto op = element.getRead().tensor.getDefiningOp<linalg::LinalgOp>();
  if (!op)
    return;
  auto numCoordinates = [&](const Product &found) {
    auto count = [&](const Access &access) {
      return llvm::count_if(llvm::seq(rank), [&](unsigned dim) { return access.names(dim); });
    };
    return std::min(count(found.query), count(found.key));
  };
  std::optional<Product> found =
      matchProduct(op, withUnitCoordinates(element.getRead().map, shapeOfScores()), keyDim);
  if (found && (!product || numCoordinates(*found) > numCoordinates(*product)))
    product = found;
}

/// Returns the element of `tensor` at `map` over the softmax input, as a value of the region. Adds the ops that compute
/// it.
FailureOr<Value> Raiser::read(Value tensor, AffineMap map) {
  auto [it, isNew] = elements.try_emplace({tensor, map});
  if (!isNew)
    return it->second;
  auto keep = [&](FailureOr<Value> element) {
    if (succeeded(element))
      elements[{tensor, map}] = *element;
    return element;
  };

  DenseElementsAttr constant;
  if (matchPattern(tensor, m_Constant(&constant)) && constant.isSplat())
    return keep(Value(arith::ConstantOp::create(
        builder, tensor.getLoc(), cast<TypedAttr>(constant.getSplatValue<Attribute>()))));

  if (inMemory.contains(tensor))
    return keep(capture(tensor, map));
  auto op = tensor.getDefiningOp<linalg::LinalgOp>();
  if (op && isScalarFunction(op))
    return keep(inlineBody(op, cast<OpResult>(tensor), map));
  if (auto source = readThroughUnitReshape({tensor, map})) {
    FailureOr<Value> element = read(source->tensor, source->map);
    if (scorePath.contains(source->tensor.getDefiningOp()))
      scorePath.insert(tensor.getDefiningOp());
    return keep(element);
  }
  if (product && op == product->op && withUnitCoordinates(map, shapeOfScores()) == product->map) {
    scorePath.insert(op);
    return keep(Value(region.getArgument(rank)));
  }
  return keep(capture(tensor, map));
}

FailureOr<Value> Raiser::inlineBody(linalg::LinalgOp op, OpResult result, AffineMap map) {
  AffineMap loops = loopsAt(op, result, map);
  IRMapping mapping;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    if (argument.use_empty())
      continue;
    if (!isa<RankedTensorType>(operand.get().getType())) {
      mapping.map(argument, builder.clone(*operand.get().getDefiningOp())->getResult(0));
      continue;
    }
    FailureOr<Value> element =
        read(operand.get(), op.getMatchingIndexingMap(&operand).compose(loops));
    if (failed(element))
      return failure();
    if (scorePath.contains(operand.get().getDefiningOp()))
      scorePath.insert(op);
    mapping.map(argument, *element);
  }
  auto cloneConstants = [&](Operation &inner) {
    for (Value operand : inner.getOperands())
      if (operand.getParentBlock() != op.getBlock() && !mapping.contains(operand))
        mapping.map(operand, builder.clone(*operand.getDefiningOp())->getResult(0));
  };
  for (Operation &inner : op.getBlock()->without_terminator()) {
    cloneConstants(inner);
    auto index = dyn_cast<linalg::IndexOp>(inner);
    if (!index) {
      builder.clone(inner, mapping);
      continue;
    }
    AffineExpr expr = loops.getResult(index.getDim());
    auto dim = dyn_cast<AffineDimExpr>(expr);
    auto number = dyn_cast<AffineConstantExpr>(expr);
    if (!dim && !number)
      return leftUnfused() << "operands of the scores to be read at their coordinates, got "
                              "computed coordinates for "
                           << describe(op);
    mapping.map(index.getResult(),
                dim ? Value(region.getArgument(dim.getPosition()))
                    : arith::ConstantIndexOp::create(builder, inner.getLoc(), number.getValue()));
  }
  Operation *yield = op.getBlock()->getTerminator();
  cloneConstants(*yield);
  return mapping.lookup(yield->getOperand(result.getResultNumber()));
}

FailureOr<Value> Raiser::capture(Value tensor, AffineMap map) {
  auto type = cast<RankedTensorType>(tensor.getType());
  // Dimensions of size 1 that are read at 0 are dropped if there are more dimensions than coordinates.
  SmallVector<AffineExpr> coordinates;
  SmallVector<int64_t> sizes;
  bool isRead = true, dropsUnits = map.getNumResults() > map.getNumDims();
  for (auto [size, expr] : llvm::zip_equal(type.getShape(), map.getResults())) {
    isRead &= isa<AffineDimExpr>(expr) || size == 1;
    if (dropsUnits && size == 1 && !isa<AffineDimExpr>(expr))
      continue;
    coordinates.push_back(expr);
    sizes.push_back(size);
  }
  AffineMap kept = AffineMap::get(map.getNumDims(), 0, coordinates, context);
  if (!isRead || !kept.isProjectedPermutation(/*allowZeroInResults=*/true))
    return leftUnfused()
           << "operands of the scores to be read at a coordinate in each dimension, got "
              "other coordinates for "
           << describe(tensor);
  if (dropsUnits) {
    OpBuilder after(context);
    after.setInsertionPointAfterValue(tensor);
    tensor = tensor::createCanonicalRankReducingExtractSliceOp(
        after, tensor.getLoc(), tensor, RankedTensorType::get(sizes, type.getElementType()));
  }
  captures.push_back({tensor, kept});
  return Value(region.front().addArgument(type.getElementType(), tensor.getLoc()));
}

/// Checks that no other op reads the scores, that the scores are read at their own coordinates, and that they are
/// computed from a product.
LogicalResult Raiser::checkScores() {
  for (Operation *op : scorePath)
    for (OpOperand &use : op->getUses())
      if (Operation *user = use.getOwner();
          user != reader && !scorePath.contains(user) && !findsEmptyRows(user))
        sharedScores.insert(use.get());
  if (!sharedScores.empty())
    return failure();
  for (Access &access : captures)
    if (scorePath.contains(access.tensor.getDefiningOp()))
      return leftUnfused() << "scores read at their own coordinates, got scores read at others too";
  if (!product && inMemory.empty())
    for (Access &access : captures)
      if (isa<FloatType>(getElementTypeOrSelf(access.tensor))) {
        return leftUnfused() << "a product of query and key in the scores, got "
                             << describe(access.tensor);
      }

  return success();
}

/// Chooses which dimensions are q, k and e; the rest are batch dimensions, in the order of the output.
LogicalResult Raiser::chooseDims() {
  auto isQuery = [&](unsigned dim) {
    if (product)
      return product->query.names(dim) && !product->key.names(dim);
    return dim != keyDim && !value.names(probabilitiesLoops[dim]);
  };
  // If several dimensions are dimensions of the query, the innermost is q and the others are query groups.
  auto dims = llvm::reverse(llvm::seq(rank));
  auto found = llvm::find_if(dims, isQuery);
  if (found == dims.end())
    return leftUnfused() << "a dimension of the query that the " << (product ? "key" : "values")
                         << " lack, got none";
  unsigned q = probabilitiesLoops[*found], k = probabilitiesLoops[keyDim];
  if (value.names(q))
    return leftUnfused() << "values shared by all queries, got values that vary with dimension "
                         << *found << " of the probabilities";

  SmallVector<unsigned> ofValueOnly, batch;
  SmallVector<unsigned> resultLoops = *findResultLoops(valueProduct);
  for (unsigned loop : resultLoops) {
    if (!llvm::is_contained(probabilitiesLoops, loop))
      ofValueOnly.push_back(loop);
    if (loop != q)
      batch.push_back(loop);
  }
  if (ofValueOnly.empty() || !value.names(ofValueOnly.back()) || !value.names(k))
    return leftUnfused() << "values that vary with the key and with a dimension of their own, got "
                         << describe(value.tensor);
  unsigned e = ofValueOnly.pop_back_val();
  llvm::erase(batch, e);
  // Without a product, it costs little to compute the probabilities again, so values may have batch dimensions of their
  // own.
  if (!ofValueOnly.empty() && (product || !otherUsers.empty()))
    return leftUnfused() << "values whose batch dimensions are those of the probabilities, got "
                         << ofValueOnly.size() << " more";

  numDims = batch.size() + 4;
  ofLoops.resize(valueProduct.getNumLoops());
  for (auto [position, loop] : llvm::enumerate(batch))
    ofLoops[loop] = position;
  ofLoops[q] = numDims - 4;
  ofLoops[k] = numDims - 3;
  ofLoops[e] = numDims - 1;
  for (unsigned loop : probabilitiesLoops)
    ofScores.push_back(ofLoops[loop]);
  ofScores.push_back(numDims - 2);
  return success();
}

void Raiser::rewrite(Value score) {
  IRRewriter rewriter(valueProduct);
  Location loc = softmax.getLoc();
  if (!product) {
    auto withoutHead = [&](unsigned dim) {
      SmallVector<OpFoldResult> sizes = {dimOf(rewriter, loc, scores, dim),
                                         rewriter.getIndexAttr(0)};
      Value empty = tensor::EmptyOp::create(rewriter, loc, sizes, rewriter.getF32Type());
      return Access{empty, AffineMap::getMultiDimMapWithTargets(rank + 1, {dim, rank}, context)};
    };
    unsigned q = llvm::find(ofScores, numDims - 4) - ofScores.begin();
    product = Product{{}, {}, withoutHead(q), withoutHead(keyDim)};
  }

  Access query = inOrder({product->query.tensor, toAttention(product->query.map, ofScores)});
  Access key = inOrder({product->key.tensor, toAttention(product->key.map, ofScores)});
  value = inOrder({value.tensor, toAttention(value.map, ofLoops)});
  SmallVector<AffineMap> maps = {query.map, key.map, value.map};
  SmallVector<Value> captured, outs;
  ArrayRef<unsigned> pair = ArrayRef(ofScores).drop_back();
  for (Access &access : captures) {
    captured.push_back(access.tensor);
    maps.push_back(toAttention(access.map, pair));
  }
  if (sink.tensor)
    maps.push_back(toAttention(sink.map, pair));
  auto fill = valueProduct.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  Operation *last = valueProduct;
  if (linalg::LinalgOp rounding = findRounding(valueProduct->getResult(0)))
    last = rounding;
  Value out = fill.output();
  if (Type type = getElementTypeOrSelf(last->getResult(0)); !type.isF32())
    out = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, out), type);
  outs.push_back(out);
  maps.push_back(
      toAttention(valueProduct.getMatchingIndexingMap(valueProduct.getDpsInitOperand(0)), ofLoops));
  if (!otherUsers.empty()) {
    SmallVector<OpFoldResult> sizes;
    for (unsigned dim = 0; dim < rank; ++dim)
      sizes.push_back(dimOf(rewriter, loc, scores, dim));
    outs.push_back(
        tensor::EmptyOp::create(rewriter, loc, sizes, getElementTypeOrSelf(probabilities)));
    maps.push_back(toAttention(AffineMap::getMultiDimIdentityMap(rank, context), pair));
  }
  auto attention =
      AttentionOp::create(rewriter, loc, TypeRange(ValueRange(outs)), query.tensor, key.tensor,
                          value.tensor, captured, sink.tensor, outs,
                          /*origin=*/ValueRange(), /*mask=*/nullptr, /*plan=*/nullptr,
                          rewriter.getAffineMapArrayAttr(maps), rewriter.getF32FloatAttr(1.0f),
                          EmptyRowAttr::get(context, emptyRow), /*acc_type=*/nullptr,
                          /*state=*/nullptr, /*fill=*/nullptr, /*added=*/nullptr,
                          /*bounded=*/nullptr);

  if (score != region.getArgument(rank) || !captures.empty()) {
    YieldOp::create(builder, loc, score);
    // The body uses the coordinates of the scores; the coordinates of the score region are (batch..., q, k).
    Block &body = attention.getScore().emplaceBlock();
    for (unsigned i = 0; i < numDims - 2; ++i)
      body.addArgument(rewriter.getIndexType(), loc);
    for (unsigned i = 0; i < rank; ++i)
      region.getArgument(i).replaceAllUsesWith(body.getArgument(ofScores[i]));
    for (BlockArgument argument : region.getArguments().drop_front(rank))
      argument.replaceAllUsesWith(body.addArgument(argument.getType(), argument.getLoc()));
    body.getOperations().splice(body.end(), region.front().getOperations());
  }

  rewriter.replaceOp(last, attention.getResult(0));
  if (last != valueProduct)
    rewriter.eraseOp(valueProduct);
  if (otherUsers.empty())
    return;
  rewriter.replaceAllUsesWith(probabilities, attention.getResult(1));
  for (Operation *transpose : llvm::reverse(transposes))
    if (transpose->isBeforeInBlock(attention))
      rewriter.moveOpAfter(transpose, attention);
}

LogicalResult Raiser::run() {
  Type element = softmax.getInputOperandType().getElementType();
  if (!element.isF32())
    return leftUnfused() << "scores of type f32, got " << element;
  if (linalg::LinalgOp rounding = findRounding(probabilities))
    probabilities = rounding->getResult(0);
  // The score of the sink counts in the test for empty rows, so findProbabilities() precedes findSink().
  findProbabilities();
  findSink();
  if (hidden && sink.tensor)
    return leftUnfused() << "one more score for each row, got a sink and pairs that a finite number hides";
  if (failed(findValueProduct()))
    return failure();
  SmallPtrSet<Operation *, 16> seen;
  findProduct(Element::of(scores), seen);
  FailureOr<Value> score = read(scores, AffineMap::getMultiDimIdentityMap(rank, context));
  if (succeeded(score))
    score = dropRoundings(region, *score);
  if (succeeded(score) && finiteFill && failed(hideFiniteFill(*score)))
    return failure();
  if (product && !scorePath.contains(product->op))
    product.reset();
  if (failed(score) || failed(checkScores()) || failed(chooseDims()) || failed(moveValueProduct()))
    return failure();
  if (hidden) {
    OpBuilder before(softmax);
    sink = createScoreOfHidden(before, softmax.getLoc(), scores, *hidden, scoreOfHidden, keyDim);
  }
  rewrite(*score);
  return success();
}

namespace {
struct RaiseAttention : attn::impl::RaiseAttentionBase<RaiseAttention> {
  void runOnOperation() override {
    // Dead ops that read the scores would prevent fusion. Raising leaves dead ops behind, so DCE runs again at the end.
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, getOperation()->getRegions());
    SmallVector<linalg::SoftmaxOp> anchors;
    getOperation().walk([&](linalg::SoftmaxOp softmax) {
      if (softmax.hasPureTensorSemantics())
        anchors.push_back(softmax);
    });
    for (linalg::SoftmaxOp softmax : anchors) {
      Raiser raiser(softmax, /*inMemory=*/{});
      if (failed(raiser.run()) && !raiser.getSharedScores().empty())
        (void)Raiser(softmax, raiser.getSharedScores()).run();
    }
    (void)runRegionDCE(rewriter, getOperation()->getRegions());
  }
};
} // namespace
