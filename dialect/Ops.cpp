//===- Ops.cpp - effects and verifiers of the operations -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Comments name the constraint of Ops.td that a check enforces.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace attn;

#define GET_OP_CLASSES
#include "dialect/Ops.cpp.inc"

//===----------------------------------------------------------------------===//
// Effects of destination-style ops
//===----------------------------------------------------------------------===//

static void
addBufferEffects(Operation *op,
                 SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  auto dps = cast<DestinationStyleOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand, SideEffects::DefaultResource::get());
    if (dps.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

#define ATTN_DPS_EFFECTS(OpTy)                                                                     \
  void OpTy::getEffects(                                                                           \
      SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {              \
    addBufferEffects(*this, effects);                                                              \
  }                                                                                                \
  Speculation::Speculatability OpTy::getSpeculatability() {                                        \
    return hasPureTensorSemantics() ? Speculation::Speculatable : Speculation::NotSpeculatable;    \
  }

ATTN_DPS_EFFECTS(AttentionOp)
ATTN_DPS_EFFECTS(OnlineInitOp)
ATTN_DPS_EFFECTS(OnlineStepOp)
ATTN_DPS_EFFECTS(OnlineProbabilitiesOp)
ATTN_DPS_EFFECTS(OnlineMergeOp)
ATTN_DPS_EFFECTS(OnlineFinishOp)
ATTN_DPS_EFFECTS(PackOp)
ATTN_DPS_EFFECTS(PackMaskOp)

#undef ATTN_DPS_EFFECTS

//===----------------------------------------------------------------------===//
// Checks that several ops share
//===----------------------------------------------------------------------===//

static ShapedType shapedType(Value value) { return cast<ShapedType>(value.getType()); }

std::optional<unsigned> attn::findWordOfKey(AffineMap map) {
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    auto word = dyn_cast<AffineBinaryOpExpr>(expr);
    if (word && word.getKind() == AffineExprKind::FloorDiv && isa<AffineDimExpr>(word.getLHS()) &&
        word.getRHS() == getAffineConstantExpr(kKeysPerWord, map.getContext()))
      return i;
  }
  return std::nullopt;
}

/// Returns `map` with k in place of `k floordiv 32`.
static AffineMap withKeysForWords(AffineMap map) {
  if (std::optional<unsigned> word = findWordOfKey(map)) {
    SmallVector<AffineExpr> results(map.getResults());
    results[*word] = cast<AffineBinaryOpExpr>(results[*word]).getLHS();
    return AffineMap::get(map.getNumDims(), map.getNumSymbols(), results, map.getContext());
  }
  return map;
}

Type attn::elementOfCapture(Value capture, AffineMap map) {
  if (findWordOfKey(map))
    return IntegerType::get(capture.getContext(), 1);
  return shapedType(capture).getElementType();
}

/// Verifies A2 and S3 for a captured operand that is a packed mask: it holds words of i32, and its dimensions are
/// (batch..., k floordiv 32, q).
static LogicalResult verifyWords(Operation *op, Value capture, AffineMap map, unsigned q,
                                 unsigned k) {
  std::optional<unsigned> word = findWordOfKey(map);
  if (!word)
    return success();
  if (*word + 2 != map.getNumResults() ||
      map.getResults().back() != getAffineDimExpr(q, map.getContext()))
    return op->emitOpError() << "expected words with dimensions (batch..., k floordiv "
                             << kKeysPerWord << ", q), got " << AffineMapAttr::get(map);
  if (!shapedType(capture).getElementType().isInteger(32) ||
      cast<AffineBinaryOpExpr>(map.getResult(*word)).getLHS() !=
          getAffineDimExpr(k, map.getContext()))
    return op->emitOpError() << "expected words of i32 that are read at k floordiv " << kKeysPerWord
                             << ", got " << capture.getType() << " at " << AffineMapAttr::get(map);
  return success();
}

namespace {
/// Records the sizes of named dimensions, such as "q", while a verifier goes through the operands.
class NamedSizes {
public:
  explicit NamedSizes(Operation *op) : op(op) {}

  /// Records that dimension `dim` of `value` is `name`. Verifies that its static size is the size recorded before.
  LogicalResult record(StringRef operand, Value value, int64_t dim, StringRef name) {
    int64_t size = shapedType(value).getDimSize(dim);
    if (ShapedType::isDynamic(size))
      return success();
    auto [it, isNew] = sizes.try_emplace(name, size);
    if (!isNew && it->second != size)
      return op->emitOpError() << "expected size " << it->second << " of " << name
                               << " in dimension " << dim << " of " << operand << ", got " << size;
    return success();
  }

  /// Verifies that dimension `dim` of `value` has one word for every kKeysPerWord keys.
  LogicalResult recordWords(StringRef operand, Value value, int64_t dim) {
    auto keys = sizes.find("k");
    int64_t size = shapedType(value).getDimSize(dim);
    if (ShapedType::isDynamic(size) || keys == sizes.end() ||
        size == llvm::divideCeilSigned(keys->second, kKeysPerWord))
      return success();
    return op->emitOpError() << "expected words of " << keys->second << " keys in dimension " << dim
                             << " of " << operand << ", got " << size;
  }

  /// Records the sizes of `value`, a tile with the dimensions `names`. If `group` is not 1, the elements along
  /// dimension `grouped` are in groups of this size.
  LogicalResult recordGroups(StringRef operand, Value value, ArrayRef<StringRef> names,
                             int64_t group, size_t grouped = 0) {
    if (group == 1)
      return recordAll(operand, value, names);
    if (shapedType(value).getRank() != int64_t(names.size()) + 1 ||
        shapedType(value).getShape().back() != group)
      return op->emitOpError() << "expected " << operand << " in groups of " << group << ", got "
                               << value.getType();
    auto elements = sizes.find(names[grouped]);
    int64_t size = shapedType(value).getDimSize(grouped);
    if (!ShapedType::isDynamic(size) && elements != sizes.end() &&
        size != llvm::divideCeilSigned(elements->second, group))
      return op->emitOpError() << "expected groups of " << elements->second << " elements of "
                               << names[grouped] << " in dimension " << grouped << " of " << operand
                               << ", got " << size;
    for (auto [dim, name] : llvm::enumerate(names))
      if (dim != grouped && failed(record(operand, value, dim, name)))
        return failure();
    return success();
  }

  /// Records the sizes of `value`, a tile with the dimensions `names`.
  LogicalResult recordAll(StringRef operand, Value value, ArrayRef<StringRef> names) {
    if (shapedType(value).getRank() != int64_t(names.size()))
      return op->emitOpError() << "expected " << operand << " of rank " << names.size() << ", got "
                               << value.getType();
    for (auto [dim, name] : llvm::enumerate(names))
      if (failed(record(operand, value, dim, name)))
        return failure();
    return success();
  }

private:
  Operation *op;
  llvm::StringMap<int64_t> sizes;
};
} // namespace

/// Verifies A8 and A9: the score region takes (indices, score, captured elements) and computes a score with pure scalar
/// ops.
static LogicalResult verifyScoreRegion(Operation *op, Region &region, unsigned numIndices,
                                       Type scoreType, ValueRange captures,
                                       llvm::function_ref<AffineMap(unsigned)> mapOf) {
  if (region.empty())
    return success();
  if (!region.hasOneBlock())
    return op->emitOpError("expected a score region of one block");
  Block &block = region.front();
  SmallVector<Type> expected(numIndices, IndexType::get(op->getContext()));
  expected.push_back(scoreType);
  for (auto [i, capture] : llvm::enumerate(captures))
    expected.push_back(elementOfCapture(capture, mapOf(i)));
  if (!llvm::equal(block.getArgumentTypes(), expected))
    return op->emitOpError() << "expected score region arguments (" << expected << "), got ("
                             << block.getArgumentTypes() << ")";
  auto yield = block.mightHaveTerminator() ? dyn_cast<YieldOp>(block.getTerminator()) : nullptr;
  if (!yield)
    return op->emitOpError("expected the score region to end in attn.yield");
  if (yield.getValue().getType() != scoreType)
    return op->emitOpError() << "expected the score region to yield " << scoreType << ", got "
                             << yield.getValue().getType();
  for (Operation &inner : block.without_terminator()) {
    bool isScalar =
        OpTrait::hasElementwiseMappableTraits(&inner) || inner.hasTrait<OpTrait::ConstantLike>();
    if (!isScalar || !isPure(&inner))
      return op->emitOpError() << "expected pure scalar operations in the score region, got '"
                               << inner.getName() << "'";
  }
  return success();
}

/// Verifies A10 and S6: the captured operands that the mask names exist; captured operands that are symbols hold
/// integers and do not vary with dimension `k`.
static LogicalResult verifyMask(Operation *op, MaskInterface mask, unsigned numBatch,
                                ValueRange captures, llvm::function_ref<AffineMap(unsigned)> mapOf,
                                unsigned k) {
  if (!mask)
    return success();
  auto inRange = [&](unsigned capture) -> LogicalResult {
    if (capture < captures.size())
      return success();
    return op->emitOpError() << "expected the mask to name one of " << captures.size()
                             << " captured operands, got " << capture;
  };
  for (const KeptSet &set : mask.kept(numBatch)) {
    for (unsigned capture : set.symbols) {
      if (failed(inRange(capture)))
        return failure();
      Type element = shapedType(captures[capture]).getElementType();
      if (!element.isSignlessInteger() && !element.isIndex())
        return op->emitOpError() << "expected captured operand " << capture
                                 << " to hold integers, got " << element;
      if (mapOf(capture).isFunctionOfDim(k))
        return op->emitOpError() << "expected captured operand " << capture
                                 << ", a symbol of the mask, without k, got "
                                 << AffineMapAttr::get(mapOf(capture));
    }
    for (DenseTest test : set.tests)
      if (failed(inRange(test.capture)))
        return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// attn.attention
//===----------------------------------------------------------------------===//

static std::string nameOfOperand(AttentionOp op, unsigned i) {
  unsigned numCaptures = op.getCaptures().size();
  if (i < 3)
    return std::array<const char *, 3>{"query", "key", "value"}[i];
  if (i < 3 + numCaptures)
    return "captured operand " + std::to_string(i - 3);
  if (i < op.getNumInputs())
    return "sink";
  if (op.getState())
    return std::array<const char *, 3>{"acc", "max", "sum"}[i - op.getNumInputs()];
  return i == op.getNumInputs() ? "out" : "probabilities";
}

bool attn::isAttentionElement(Type type) { return type.isF32() || type.isF16() || type.isBF16(); }

LogicalResult attn::verifyElementTypes(AttentionOp op) {
  SmallVector<Type> types = {op.getQuery().getType(), op.getKey().getType(),
                             op.getValue().getType()};
  llvm::append_range(types, op.getOuts().getTypes());
  if (op.getSink())
    types.push_back(op.getSink().getType());
  for (Type type : types)
    if (Type element = getElementTypeOrSelf(type); !isAttentionElement(element))
      return op.emitError() << "expected an attention of f32, f16 or bf16, got " << element;
  if (!op.getAccumulatorType().isF32())
    return op.emitError() << "expected an attention with scores of f32, got "
                          << op.getAccumulatorType();
  return success();
}

int64_t AttentionOp::getStaticSize(unsigned dim) {
  int64_t result = 1;
  for (unsigned i = 0; i < getIndexingMaps().size(); ++i) {
    std::optional<unsigned> position =
        getMap(i).getResultPosition(getAffineDimExpr(dim, getContext()));
    if (!position)
      continue;
    result = cast<ShapedType>(getOperand(i).getType()).getDimSize(*position);
    if (!ShapedType::isDynamic(result))
      return result;
  }
  return result;
}

/// Verifies A13.
static LogicalResult verifyGroup(AttentionOp op) {
  std::optional<PlanAttr> plan = op.getPlan();
  if (!plan || plan->getGroup() == 1)
    return success();
  auto typeOf = [](Value operand) { return shapedType(operand).getElementType(); };
  int64_t d = op.getStaticSize(op.getDDim()), e = op.getStaticSize(op.getEDim());
  if (typeOf(op.getQuery()) != typeOf(op.getKey()) || typeOf(op.getKey()) != typeOf(op.getValue()))
    return op.emitOpError() << "expected query, key and value of one type for " << *plan << ", got "
                            << typeOf(op.getQuery()) << ", " << typeOf(op.getKey()) << " and "
                            << typeOf(op.getValue());
  if (ShapedType::isDynamic(d) || ShapedType::isDynamic(e) || d % plan->getGroup() != 0)
    return op.emitOpError()
           << "expected static head sizes, and for queries and keys a multiple of the "
              "group, for "
           << *plan;
  return success();
}

/// Verifies the part of A12 about states, except the dimensions of the outputs, which AttentionOp::verify() checks.
static LogicalResult verifyState(AttentionOp op) {
  if (op.getSink())
    return op.emitOpError() << "expected no sink of a state, got " << op.getSink().getType();
  if (op.getEmptyRow() != EmptyRow::Zero)
    return op.emitOpError() << "expected no empty_row of a state, got " << op.getEmptyRowAttr();
  FloatType type = op.getAccumulatorType();
  for (Value out : op.getOuts())
    if (shapedType(out).getElementType() != type)
      return op.emitOpError() << "expected a state of " << type << ", got " << out.getType();
  std::optional<PlanAttr> plan = op.getPlan();
  SmallVector<AffineExpr> rows = {getAffineDimExpr(op.getQDim(), op.getContext()),
                                  getAffineDimExpr(op.getEDim(), op.getContext())};
  if (plan && (plan->getSchedule() != Schedule::Decode ||
               op.getOutMap().getResults().take_back(2) != ArrayRef<AffineExpr>(rows)))
    return op.emitOpError()
           << "expected acc (batch..., q, e) and the schedule decode for a state, got "
           << AffineMapAttr::get(op.getOutMap()) << " and " << *plan;
  return success();
}

LogicalResult AttentionOp::verify() {
  // A12
  if (getState() && getOuts().size() != 3)
    return emitOpError() << "expected the outputs acc, max and sum, got " << getOuts().size();
  if (!getState() && (getOuts().empty() || getOuts().size() > 2))
    return emitOpError() << "expected one or two outputs, got " << getOuts().size();
  // A1
  unsigned out = getNumInputs(), numMapped = out + getOuts().size();
  if (getIndexingMaps().size() != numMapped)
    return emitOpError() << "expected " << numMapped << " indexing maps, got "
                         << getIndexingMaps().size();
  unsigned numDims = getQueryMap().getNumDims();
  if (numDims < 4)
    return emitOpError() << "expected indexing maps over (batch..., q, k, d, e), got "
                         << AffineMapAttr::get(getQueryMap());
  NamedSizes sizes(*this);
  SmallVector<std::string> dimNames;
  for (unsigned dim = 0; dim < numDims; ++dim)
    dimNames.push_back(dim < getQDim() ? "batch dimension " + std::to_string(dim)
                                       : std::string(1, "qkde"[dim - getQDim()]));
  for (unsigned i = 0; i < numMapped; ++i) {
    AffineMap map = getMap(i);
    Value operand = getOperation()->getOperand(i);
    std::string name = nameOfOperand(*this, i);
    if (map.getNumDims() != numDims || map.getNumSymbols() != 0)
      return emitOpError() << "expected indexing maps over the same " << numDims
                           << " dimensions, got " << AffineMapAttr::get(map) << " for " << name;
    if (shapedType(operand).getRank() != map.getNumResults())
      return emitOpError() << "expected " << name << " of rank " << map.getNumResults() << ", got "
                           << operand.getType();
    // A2
    bool isCapture = i >= 3 && i < 3 + getCaptures().size();
    AffineMap permutation = isCapture ? withKeysForWords(map) : map;
    if (!permutation.isProjectedPermutation(/*allowZeroInResults=*/true))
      return emitOpError() << "expected a projected permutation with no constant but 0, got "
                           << AffineMapAttr::get(map) << " for " << name;
    if (isCapture && failed(verifyWords(*this, operand, map, getQDim(), getKDim())))
      return failure();
    // A6
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        if (failed(sizes.record(name, operand, position, dimNames[dim.getPosition()])))
          return failure();
      } else if (position == findWordOfKey(map)) {
        if (failed(sizes.recordWords(name, operand, position)))
          return failure();
      } else if (int64_t size = shapedType(operand).getDimSize(position); size != 1) {
        return emitOpError() << "expected size 1 in dimension " << position << " of " << name
                             << ", which is read at 0, got " << size;
      }
    }
  }
  // A3, A4, A5
  auto names = [&](unsigned i, ArrayRef<unsigned> must,
                   ArrayRef<unsigned> mustNot) -> LogicalResult {
    for (unsigned dim : must)
      if (!getMap(i).isFunctionOfDim(dim))
        return emitOpError() << "expected " << nameOfOperand(*this, i) << " to have "
                             << dimNames[dim] << ", got " << AffineMapAttr::get(getMap(i));
    for (unsigned dim : mustNot)
      if (getMap(i).isFunctionOfDim(dim))
        return emitOpError() << "expected " << nameOfOperand(*this, i) << " without "
                             << dimNames[dim] << ", got " << AffineMapAttr::get(getMap(i));
    return success();
  };
  unsigned q = getQDim(), k = getKDim(), d = getDDim(), e = getEDim();
  if (failed(names(0, {q, d}, {k, e})) || failed(names(1, {k, d}, {q, e})) ||
      failed(names(2, {k, e}, {q, d})))
    return failure();
  for (unsigned i = 0; i < getCaptures().size(); ++i)
    if (failed(names(3 + i, {}, {d, e})))
      return failure();
  if (getSink() && failed(names(out - 1, {}, {k, d, e})))
    return failure();
  SmallVector<unsigned> ofOut = llvm::to_vector(llvm::seq<unsigned>(0, q + 1)),
                        ofProbabilities = ofOut;
  SmallVector<unsigned> ofRow = ofOut;
  ofOut.push_back(e);
  ofProbabilities.push_back(k);
  if (failed(names(out, ofOut, {k, d})) ||
      (returnsProbabilities() && failed(names(out + 1, ofProbabilities, {d, e}))))
    return failure();
  for (unsigned i = out + 1; getState() && i < numMapped; ++i)
    if (failed(names(i, ofRow, {k, d, e})))
      return failure();
  if (getState() && failed(verifyState(*this)))
    return failure();
  // A7
  FloatType accumulator = getAccumulatorType();
  SmallVector<unsigned> floats = {0, 1, 2, out, numMapped - 1};
  if (getSink())
    floats.push_back(out - 1);
  for (unsigned i : floats) {
    auto element = dyn_cast<FloatType>(shapedType(getOperation()->getOperand(i)).getElementType());
    if (!element || element.getWidth() > accumulator.getWidth())
      return emitOpError() << "expected " << nameOfOperand(*this, i)
                           << " to hold floats no wider than the accumulator " << accumulator
                           << ", got " << getOperation()->getOperand(i).getType();
  }
  // A8, A9
  auto mapOf = [&](unsigned capture) { return getCaptureMap(capture); };
  if (failed(verifyScoreRegion(*this, getScore(), k + 1, accumulator, getCaptures(), mapOf)))
    return failure();
  // A10
  if (failed(verifyMask(*this, getMaskAttr(), getNumBatch(), getCaptures(), mapOf, k)))
    return failure();
  // A14
  if (FloatAttr fill = getFillAttr();
      fill && (!getMask() || getState() || !fill.getValue().isFinite()))
    return emitOpError() << "expected a fill that is finite, with a mask and without a state, got "
                         << fill;
  if (getAdded() && !getFill())
    return emitOpError() << "expected a fill that is added, got none";
  if (getBounded()) {
    unsigned last = getCaptures().size() - 1;
    if (!getAdded() || getCaptures().empty() || getCaptureMap(last).isFunctionOfDim(k) ||
        !isa<FloatType>(getElementTypeOrSelf(getCaptures()[last].getType())))
      return emitOpError() << "expected an added fill, and as its bound a last captured operand of "
                              "floats that do not vary with the key";
  }
  // A11
  if (!getOrigin().empty() && getOrigin().size() != k + 1)
    return emitOpError() << "expected an origin of " << k + 1 << " indices, got "
                         << getOrigin().size();
  return verifyGroup(*this);
}

//===----------------------------------------------------------------------===//
// Ops on tiles
//===----------------------------------------------------------------------===//

LogicalResult KeyRangeOp::verify() {
  // R2
  if (getStep() < 1)
    return emitOpError() << "expected a positive step, got " << getStep();
  // R1
  unsigned numSymbols = 0;
  if (MaskInterface mask = getMaskAttr())
    for (const KeptSet &set : mask.kept(getBatch().size()))
      numSymbols += set.symbols.size();
  if (getSymbols().size() != 2 * numSymbols)
    return emitOpError() << "expected the least and greatest value of " << numSymbols
                         << " symbols, got " << getSymbols().size() << " operands";
  return success();
}

/// Verifies that all `values` hold floats of one type.
static LogicalResult verifyOneFloatType(Operation *op, ValueRange values) {
  Type element = shapedType(values.front()).getElementType();
  for (Value value : values)
    if (!isa<FloatType>(element) || shapedType(value).getElementType() != element)
      return op->emitOpError() << "expected one float type, got " << values.front().getType()
                               << " and " << value.getType();
  return success();
}

/// The least and the greatest unit, the factor by which attn.online_step divides the maxima that it stores. With a
/// smaller unit, the factor of the exponent, unit * log2(e), might be subnormal, and GPUs flush subnormal numbers to 0.
/// With a greater unit, this factor might overflow.
static constexpr float kLeastUnit = 0x1p-126f, kGreatestUnit = 0x1p126f;

static bool isUnit(float scale) { return scale >= kLeastUnit && scale <= kGreatestUnit; }

template <typename OpTy> static float unitOf(OpTy op) {
  float scale = op.getScale().convertToFloat();
  return op.getScore().empty() && isUnit(scale) ? scale : 1;
}
float OnlineStepOp::getUnit() { return unitOf(*this); }
float OnlineProbabilitiesOp::getUnit() { return unitOf(*this); }

/// Verifies S3 to S6, which hold for both ops that compute scores.
template <typename OpTy> static LogicalResult verifyScores(OpTy op, NamedSizes &sizes) {
  // S5
  if (op.getOrigin().size() < 2)
    return op.emitOpError() << "expected an origin (batch..., q, k), got " << op.getOrigin().size()
                            << " indices";
  // S3
  if (op.getCaptureMaps().size() != op.getCaptures().size())
    return op.emitOpError() << "expected " << op.getCaptures().size() << " capture maps, got "
                            << op.getCaptureMaps().size();
  static constexpr StringLiteral kNames[] = {"k", "q"};
  auto mapOf = [&](unsigned capture) { return op.getCaptureMap(capture); };
  for (auto [i, capture] : llvm::enumerate(op.getCaptures())) {
    AffineMap map = op.getCaptureMap(i);
    if (map.getNumDims() != 2 || !withKeysForWords(map).isProjectedPermutation())
      return op.emitOpError() << "expected capture maps over (k, q), got "
                              << AffineMapAttr::get(map);
    std::string name = "captured tile " + std::to_string(i);
    if (shapedType(capture).getRank() != map.getNumResults())
      return op.emitOpError() << "expected " << name << " of rank " << map.getNumResults()
                              << ", got " << capture.getType();
    if (failed(verifyWords(op, capture, map, /*q=*/1, /*k=*/0)))
      return failure();
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (failed(loop ? sizes.record(name, capture, dim, kNames[loop.getPosition()])
                      : sizes.recordWords(name, capture, dim)))
        return failure();
    }
  }
  // S4
  Type score = shapedType(op.getDpsInits()[0]).getElementType();
  if (failed(verifyScoreRegion(op, op.getScore(), op.getOrigin().size(), score, op.getCaptures(),
                               mapOf)))
    return failure();
  // S6
  return verifyMask(op, op.getMaskAttr(), op.getNumBatch(), op.getCaptures(), mapOf, /*k=*/0);
}

LogicalResult AfterScoresOp::verify() {
  auto step = dyn_cast_if_present<OnlineStepOp>((*this)->getNextNode());
  auto overlap = step ? step->getAttrOfType<OverlapAttr>(AttnDialect::kOverlapAttr) : OverlapAttr();
  if (!step || (overlap && overlap.getValue() == Overlap::End))
    return emitOpError() << "expected an attn.online_step that computes scores as the next op";
  return success();
}

LogicalResult OnlineInitOp::verify() {
  // I1
  NamedSizes sizes(*this);
  return failure(
      failed(verifyOneFloatType(*this, getDpsInits())) ||
      failed(sizes.recordAll("max", getMax(), {"q"})) ||
      failed(sizes.recordAll("sum", getSum(), {"q"})) ||
      failed(sizes.recordAll("acc", getAcc(), withQueries<StringRef>("e", "q", getRows()))));
}

int64_t OnlineStepOp::getGroup() {
  ShapedType query = shapedType(getQuery());
  return query.getRank() == 3 ? query.getShape().back() : 1;
}

LogicalResult OnlineStepOp::verify() {
  // S8
  int64_t group = getGroup();
  if (group != 1 &&
      (!getProbabilities() || ShapedType::isDynamic(group) || !llvm::isPowerOf2_64(group)))
    return emitOpError() << "expected probabilities, and groups of a power of two, beside a query "
                            "in groups, got "
                         << getQuery().getType();
  if (getRows() && group != 1)
    return emitOpError() << "expected no groups beside queries in rows, got "
                         << getQuery().getType();
  if (getTransposed() && group == 1)
    return emitOpError() << "expected a query in groups beside a transposed value, got "
                         << getQuery().getType();
  NamedSizes sizes(*this);
  // S1, S2
  if (failed(verifyOneFloatType(*this, {getScores(), getMax(), getSum(), getAcc()})) ||
      failed(sizes.recordAll("scores", getScores(), withQueries<StringRef>("k", "q", getRows()))) ||
      failed(sizes.recordAll("max", getMax(), {"q"})) ||
      failed(sizes.recordAll("sum", getSum(), {"q"})) ||
      failed(sizes.recordAll("acc", getAcc(), withQueries<StringRef>("e", "q", getRows()))) ||
      failed(sizes.recordAll("key", getKey(), {"k", "d"})) ||
      failed(sizes.recordGroups("query", getQuery(), withQueries<StringRef>("d", "q", getRows()),
                                getGroup())) ||
      failed(getTransposed()
                 ? sizes.recordGroups("value", getValue(), {"e", "k"}, getGroup(), /*grouped=*/1)
                 : sizes.recordGroups("value", getValue(), {"k", "e"}, getGroup())))
    return failure();
  if (Value probabilities = getProbabilities()) {
    if (failed(sizes.recordGroups("probabilities", probabilities,
                                  withQueries<StringRef>("k", "q", getRows()), group)))
      return failure();
    if (shapedType(probabilities).getElementType() != shapedType(getValue()).getElementType())
      return emitOpError() << "expected probabilities of the type of the value, got "
                           << probabilities.getType() << " and " << getValue().getType();
  }
  // S7
  for (Value rows : getPrefetch())
    if (shapedType(rows).getRank() != 2)
      return emitOpError() << "expected rows of two dimensions to prefetch, got " << rows.getType();
  return verifyScores(*this, sizes);
}

LogicalResult OnlineProbabilitiesOp::verify() {
  NamedSizes sizes(*this);
  // W1, W2
  if (failed(verifyOneFloatType(*this, {getMax(), getSum(), getProbabilities()})) ||
      failed(sizes.recordAll("probabilities", getProbabilities(),
                             withQueries<StringRef>("k", "q", getRows()))) ||
      failed(sizes.recordAll("max", getMax(), {"q"})) ||
      failed(sizes.recordAll("sum", getSum(), {"q"})) ||
      failed(sizes.recordAll("query", getQuery(), withQueries<StringRef>("d", "q", getRows()))) ||
      failed(sizes.recordAll("key", getKey(), {"k", "d"})))
    return failure();
  return verifyScores(*this, sizes);
}

LogicalResult OnlineMergeOp::verify() {
  // G2
  if (!isUnit(getScale().convertToFloat()))
    return emitOpError() << "expected a scale of 2^-126 to 2^126, got " << getScaleAttr();
  // G1
  NamedSizes sizes(*this);
  SmallVector<StringRef> partAcc = {"n"};
  llvm::append_range(partAcc, withQueries<StringRef>("e", "q", getRows()));
  return failure(
      failed(verifyOneFloatType(*this, getOperands())) ||
      failed(sizes.recordAll("part_max", getPartMax(), {"n", "q"})) ||
      failed(sizes.recordAll("part_sum", getPartSum(), {"n", "q"})) ||
      failed(sizes.recordAll("part_acc", getPartAcc(), partAcc)) ||
      failed(sizes.recordAll("max", getMax(), {"q"})) ||
      failed(sizes.recordAll("sum", getSum(), {"q"})) ||
      failed(sizes.recordAll("acc", getAcc(), withQueries<StringRef>("e", "q", getRows()))));
}

LogicalResult OnlineFinishOp::verify() {
  // F1
  if (!isa<FloatType>(shapedType(getOut()).getElementType()))
    return emitOpError() << "expected an output of floats, got " << getOut().getType();
  NamedSizes sizes(*this);
  return failure(
      failed(verifyOneFloatType(*this, {getSum(), getAcc()})) ||
      failed(sizes.recordAll("sum", getSum(), {"q"})) ||
      failed(sizes.recordAll("acc", getAcc(), withQueries<StringRef>("e", "q", getRows()))) ||
      failed(sizes.recordAll("out", getOut(), {"q", "e"})));
}

//===----------------------------------------------------------------------===//
// attn.pack
//===----------------------------------------------------------------------===//

LogicalResult PackOp::verify() {
  // P1
  if (getOuts().size() != 1)
    return emitOpError() << "expected one output, got " << getOuts().size();
  ShapedType source = shapedType(getSource()), out = shapedType(getOuts()[0]);
  int64_t rank = source.getRank(), group = getGroup();
  if (rank < 2 || out.getRank() != rank + (group == 1 ? 1 : 2))
    return emitOpError() << "expected a source of rank 2 or more and an output of "
                         << (group == 1 ? "one rank" : "two ranks") << " more, got " << source
                         << " and " << out;
  // P5
  if (!llvm::isPowerOf2_64(group) || (group > 1 && out.getShape().back() != group))
    return emitOpError() << "expected a group that is a power of two and the innermost size, got "
                         << group << " and " << out;
  auto from = dyn_cast<FloatType>(source.getElementType()),
       to = dyn_cast<FloatType>(out.getElementType());
  bool rounds = from && to && to.getWidth() < from.getWidth();
  if (source.getElementType() != out.getElementType() && !rounds)
    return emitOpError() << "expected one element type, or floats that are rounded, got " << source
                         << " and " << out;
  auto agree = [](int64_t a, int64_t b) {
    return ShapedType::isDynamic(a) || ShapedType::isDynamic(b) || a == b;
  };
  int64_t n = source.getDimSize(getFromRows() ? rank - 1 : rank - 2);
  int64_t k = source.getDimSize(getFromRows() ? rank - 2 : rank - 1);
  bool batchAgrees = llvm::all_of(llvm::seq<int64_t>(0, rank - 2), [&](int64_t i) {
    return agree(source.getDimSize(i), out.getDimSize(i));
  });
  int64_t rows = ShapedType::isDynamic(k) ? k : llvm::divideCeil(k, group);
  if (!batchAgrees || !agree(rows, out.getDimSize(rank - 1)))
    return emitOpError() << "expected batch and k sizes to agree, got " << source << " and " << out;
  // P2
  int64_t width = out.getDimSize(rank), panels = out.getDimSize(rank - 2);
  if (ShapedType::isDynamic(width) || width == 0)
    return emitOpError() << "expected a static, positive panel width, got " << out;
  // P3
  if (!ShapedType::isDynamic(n) && !agree(llvm::divideCeil(n, width), panels))
    return emitOpError() << "expected " << llvm::divideCeil(n, width) << " panels of width "
                         << width << ", got " << panels;
  // P4
  if (getScale() && !isa<FloatType>(source.getElementType()))
    return emitOpError() << "expected floats with a scale, got " << source;
  return success();
}

//===----------------------------------------------------------------------===//
// attn.parallel_for
//===----------------------------------------------------------------------===//

LogicalResult ParallelForOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // L1
  auto task = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getTaskAttr());
  if (!task)
    return emitOpError() << "expected '" << getTask() << "' to be a function";
  Type index = IndexType::get(getContext());
  SmallVector<Type> expected = {index, index};
  llvm::append_range(expected, getArgs().getTypes());
  unsigned numArguments = task.getNumArguments();
  if (numArguments > 0 && task.getArgAttr(numArguments - 1, AttnDialect::kScratchAttr))
    expected.push_back(MemRefType::get({ShapedType::kDynamic}, IntegerType::get(getContext(), 8)));
  if (!llvm::equal(task.getArgumentTypes(), expected) || !task.getResultTypes().empty())
    return emitOpError() << "expected '" << getTask() << "' to take (" << expected
                         << ") and return nothing";
  return success();
}

//===----------------------------------------------------------------------===//
// attn.pack_mask, attn.test_mask
//===----------------------------------------------------------------------===//

LogicalResult PackMaskOp::verify() {
  ShapedType mask = shapedType(getSource()), words = shapedType(getWords());
  // M1
  int64_t rank = mask.getRank();
  if (rank < 2 || !mask.getElementType().isIntOrFloat())
    return emitOpError() << "expected a mask (batch..., q, k) of integers or floats, got " << mask;
  // M2
  if (words.getRank() != rank || !words.getElementType().isInteger(32))
    return emitOpError() << "expected words of i32 and of rank " << rank << ", got " << words;
  NamedSizes sizes(*this);
  if (failed(sizes.record("mask", getSource(), rank - 1, "k")) ||
      failed(sizes.record("mask", getSource(), rank - 2, "q")) ||
      failed(sizes.record("words", getWords(), rank - 1, "q")) ||
      failed(sizes.recordWords("words", getWords(), rank - 2)))
    return failure();
  for (int64_t dim = 0; dim < rank - 2; ++dim) {
    std::string name = "batch dimension " + std::to_string(dim);
    if (failed(sizes.record("mask", getSource(), dim, name)) ||
        failed(sizes.record("words", getWords(), dim, name)))
      return failure();
  }
  return success();
}

LogicalResult TestMaskOp::verify() {
  ShapedType words = shapedType(getWords());
  if (words.getRank() != 2 || !words.getElementType().isInteger(32))
    return emitOpError() << "expected words (w, q) of i32, got " << words;
  return success();
}

void TestMaskOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (isa<MemRefType>(getWords().getType()))
    effects.emplace_back(MemoryEffects::Read::get(), &getWordsMutable(),
                         SideEffects::DefaultResource::get());
}
