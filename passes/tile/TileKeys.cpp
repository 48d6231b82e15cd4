//===- TileKeys.cpp - the loop over keys -----------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.attention ins(%q, %k, %v : 1x1x48x64, 1x1x?x64, 1x1x?x64) outs(%e) at(%b, %h, %i, 0) mask(M)
//       plan(<..., q = 48, k = 128>)
// becomes
//   %qp = attn.pack scale(0.125) ins(%q2)                     queries in lanes: (d, q)
//   %m, %l, %a = attn.online_init                             then, with a sink, max = sink and sum = 1
//   %lo, %full_lo, %full_hi, %hi = attn.key_range batch(%b, %h) rows(%i, 48) keys(%n) step 128 mask(M)
//   scf.for %j = %lo to %full_lo step 128      { attn.online_step ... mask(M) }   some pairs kept
//   scf.for %j = %full_lo to %full_hi step 128 { attn.online_step ... }           every pair kept, 128 keys
//   scf.for %j = %full_hi to %hi step 128      { attn.online_step ... mask(M) }   some pairs kept
//   attn.online_finish ins(%l, %a) outs(...)
//   attn.count_tiles run(ceil((%hi - %lo) / 128)) skipped(ceil(%n / 128) - the same)
//
// With a packed dense mask, one loop from %lo, rounded down to a whole word, tests each tile and counts it:
//   %begin, %end, %all = attn.test_mask %words
// If no word has a kept pair, the tile is skipped. If the packed mask keeps every pair, the step does not test the
// packed mask. Otherwise the step has the whole mask and the keys of the words [%begin, %end) or, with `stages`, all
// keys of the tile.
//
// With a `fill`, the steps above compute the pairs that the mask keeps. Then
//   %any = the maximum of some query is not above the fill by 56 or more
//   scf.if %any {
//     scf.for %j = 0 to %n step 128 { attn.online_step ... score { ..., select M, score, fill } }   from a new state
//     the sums and accumulators of these queries replace the others }
// If the fill is `added`, hidden pairs have the score `score + fill`, and the maximum is compared with the fill plus the
// captured bound of the scores, which may be NaN.
//
// A scale of magnitude below 1 is split into a power of two and a factor from 1 to 2. The packed queries are multiplied
// by the power, which has no rounding error unless a scaled query is a denormal number; the exponential applies the
// other factor. A product then overflows only where its score does. A scale of magnitude 1 or more is left to the
// exponential, because queries that are multiplied by it might overflow where no score does.
//
// If the plan has a group of more than 1, steps have queries, values and probabilities in groups, in the type of the
// keys. Otherwise, tiles of another type are first converted to the type of the scores, except if queries are rows.
//
// With the schedule decode, queries are rows: the steps have `rows`, queries are scaled without packing, and keys and
// values keep their type, because the code of products converts them in registers. With `stages` in the plan, queries
// are rows too; they stay unscaled and in their own type, and probabilities are rounded to the type of the values. A
// state is computed in the outputs of the op or, with `stages`, is copied to them at the end; no attn.online_finish
// follows. If the keys of the op are a part that begins at a key other than 0, the key range of its mask is made
// relative to this key.
//
// If queries are in lanes, steps compute whole vectors: the number of their queries is rounded up to the lanes of a
// vector, and the further queries are zeros that attn.online_finish does not read. This is not done if an operand is read
// at each query, if there is a fill, or if probabilities are returned.
//
// Full tiles have a static size by construction. Temporaries have the full static size of the tile and are sliced to
// the actual size, so that their rows keep a static stride. A second loop computes the returned probabilities from the
// final maximum and sum. Test: test/passes/tile/tile-keys.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/KeyBounds.h"
#include "passes/Access.h"
#include "passes/OnlineStart.h"
#include "passes/PackedMask.h"
#include "passes/Passes.h"
#include "passes/ScoreBlock.h"
#include "passes/plan/Planner.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_TILEKEYS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {

class KeyLoops {
public:
  KeyLoops(IRRewriter &rewriter, AttentionOp op)
      : rewriter(rewriter), op(op), loc(op.getLoc()), domain(op.getIterationDomain(rewriter)),
        zero(rewriter.getIndexAttr(0)), one(rewriter.getIndexAttr(1)), parts(splitMask(op)) {
    for (unsigned i = 0; i <= op.getKDim(); ++i)
      origin.push_back(op.getOrigin().empty() ? toValue(zero) : op.getOrigin()[i]);
    splitScale();
    paddedQueries = numQueries();
    TargetInterface target = getTarget(op);
    auto planner = target ? dyn_cast<PlannerInterface>(target) : PlannerInterface();
    int64_t lanes = planner ? planner.getLanes() : 1;
    if (canPadQueries() && qTile() % lanes == 0)
      paddedQueries = affine::makeComposedFoldedAffineApply(
          rewriter, loc, rewriter.getAffineDimExpr(0).ceilDiv(lanes) * lanes, {paddedQueries});
  }

  void run();

private:
  using State = OnlineState;

  FloatType scoreType() { return op.getAccumulatorType(); }
  /// Whether queries come first in the tiles.
  bool rows() { return op.getPlan()->getSchedule() == Schedule::Decode || inPlace(); }
  /// Whether steps read queries, keys and values in their own type, without packing them first.
  bool inPlace() { return op.getPlan()->getStages() > 0; }
  UnitAttr rowsAttr() { return rows() ? rewriter.getUnitAttr() : UnitAttr(); }
  int64_t group() { return op.getPlan()->getGroup(); }
  int64_t qTile() { return op.getPlan()->getQ(); }
  int64_t kTile() { return op.getPlan()->getK(); }
  /// Whether the last vector of a tile may contain queries that do not exist. Their elements are zeros, and no operand
  /// is read at such a query.
  bool canPadQueries();
  OpFoldResult numQueries() { return domain[op.getQDim()].size; }
  OpFoldResult numKeys() { return domain[op.getKDim()].size; }
  OpFoldResult valueSize() { return domain[op.getEDim()].size; }

  Value toValue(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(rewriter, loc, value);
  }

  /// The slice of an operand that a tile needs, at keys `[k0, k0 + ks)` and without batch dimensions, and the
  /// dimensions of the iteration space that it has.
  struct View {
    tensor::ExtractSliceOp slice;
    SmallVector<unsigned> dims;
  };
  View view(Value operand, AffineMap map, OpFoldResult k0, OpFoldResult ks);

  /// `view` with dimensions in the order `dims`, transposed into a copy if they are in another order.
  Value ordered(View view, ArrayRef<unsigned> dims);

  /// A temporary of a full tile, sliced to `sizes`.
  Value temporary(ArrayRef<int64_t> full, ArrayRef<OpFoldResult> sizes, Type elementType);

  /// Gives `temporary` memory of its own. Without this, bufferization would use the memory of a tensor that the temporary
  /// is copied to.
  void keepApart(Value temporary);

  /// A copy of `tile` with elements of `type`, in a temporary of the size `full`; `tile` itself if it has this type.
  Value convert(Value tile, ArrayRef<int64_t> full, Type type);
  /// The tile of `operand`, keys or values, at keys `[k0, k0 + ks)` with dimensions k and `dim`.
  Value rowsOfKeys(Value operand, AffineMap map, unsigned dim, OpFoldResult k0, OpFoldResult ks);

  /// Moves a power of two from the scale of the scores to the scale of the queries.
  void splitScale();
  /// The tile of queries: (d, q) or, in rows, (q, d), in the type of the scores; with groups, (d / g, q, g).
  Value packQueries(int64_t group);
  Value scaleRowsOfQueries();
  /// The first `sizes` elements of the only panel that attn.pack wrote to `packed`.
  Value sliceOfPanel(Value packed, ArrayRef<OpFoldResult> sizes);
  /// A temporary with the queries of a tile and `other` elements for each of them.
  Value temporaryOfQueries(int64_t other, OpFoldResult otherSize);
  /// `values (k, e)` as (k / g, e, g) or, if the plan transposes them, as (e, k / g, g).
  Value packValues(Value values, OpFoldResult ks);
  /// The part of `tile`, with queries last, whose queries exist.
  Value withoutPadding(Value tile);
  /// The number of groups that `size` elements fill, rounded up.
  OpFoldResult inGroups(OpFoldResult size);
  /// The tile of a captured operand at keys `[k0, k0 + ks)` and its map over (k, q). If the elements are transposed
  /// into the tile, `rows` is the slice from which they are read; otherwise it is null.
  struct Capture {
    Value tile;
    AffineMap map;
    Value rows;
  };
  Capture captureTile(unsigned i, OpFoldResult k0, OpFoldResult ks);
  /// The rows of captured operand `i` that the tile after the one at `k0` reads.
  Value nextRows(unsigned i, OpFoldResult k0);

  /// Gives a step the register blocks that were planned for its products. `values` is the name in `attn.blocks` of the
  /// block of the product with the values.
  void setBlocks(Operation *step, StringRef values);
  /// The step at keys `[k0, k0 + ks)`; `mask` may be null.
  State step(const State &before, Value query, OpFoldResult k0, OpFoldResult ks,
             MaskInterface mask);
  /// The step over the words of the tile in which the packed parts of the mask keep any pair; no step runs if there is
  /// no such word. If the packed parts keep every pair, the step does not test them.
  State stepIfKept(const State &before, Value query, OpFoldResult k0, OpFoldResult ks);
  /// Whether each tile is tested against packed parts of the mask.
  bool testsTiles() const { return !parts.packed.empty(); }

  /// The results of attn.key_range, relative to the first key.
  struct KeyRange {
    Value lo, fullLo, fullHi, hi;
  };
  KeyRange keyRange();
  void countTiles(const KeyRange &range);
  /// The least and the greatest value of captured operand `capture` over the rows of the tile.
  std::pair<Value, Value> symbolRange(unsigned capture);

  /// The loop over `[from, to)`.
  State loop(Value from, Value to, State state, Value query, bool isFull, MaskInterface mask);
  Value probabilitiesLoop(Value query, const State &state);

  /// The sum and the accumulator over all keys for the queries whose greatest kept score is not far above the fill, and
  /// those of `state` for the other queries. Nothing reads the maximum afterwards. `start` creates a state before the
  /// first key.
  State fill(const State &state, Value query, llvm::function_ref<State()> start);
  /// The captured operand that bounds the scores of each query; steps do not read it.
  std::optional<unsigned> getBound() {
    return op.getBounded() ? std::optional<unsigned>(op.getCaptures().size() - 1) : std::nullopt;
  }

  /// The captured tiles of a step at keys `[k0, k0 + ks)`, their maps, and the captured operands that the step drops:
  /// without a mask, the step has only the captured operands that the score region reads.
  struct Score {
    SmallVector<Value> captures;
    SmallVector<AffineMap> maps;
    llvm::BitVector dropped;
    SmallVector<Value> next; // rows that the next step reads
  };
  Score score(OpFoldResult k0, OpFoldResult ks, MaskInterface mask);
  void cloneScore(Region &into, const Score &score);
  SmallVector<Value> originAt(Value k0);

  /// The number of keys of the tile at `k0`: min(kTile, to - k0).
  OpFoldResult tailSize(Value k0, OpFoldResult to);
  std::optional<OpFoldResult> equalTileSize();

  IRRewriter &rewriter;
  AttentionOp op;
  Location loc;
  SmallVector<Range> domain;
  OpFoldResult zero, one;
  OpFoldResult paddedQueries; // the number of queries that temporaries have, numQueries() or more
  SmallVector<Value> origin;
  MaskParts parts;                  // of the mask
  bool isFilling = false; // whether steps compute all pairs, and give hidden ones the fill
  double unit = 1;        // of the maximum that the last step stored
  FloatAttr queryScale, scoreScale; // their product is the scale; a null queryScale is 1
};

} // namespace

KeyLoops::View KeyLoops::view(Value operand, AffineMap map, OpFoldResult k0, OpFoldResult ks) {
  View result;
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<int64_t> shape;
  std::optional<unsigned> word = findWordOfKey(map);
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    if (i == word) {
      AffineExpr keys = rewriter.getAffineDimExpr(0);
      auto inWords = [&](AffineExpr count, OpFoldResult size) {
        return affine::makeComposedFoldedAffineApply(rewriter, loc, count, {size});
      };
      offsets.push_back(inWords(keys.floorDiv(kKeysPerWord), k0));
      sizes.push_back(inWords(keys.ceilDiv(kKeysPerWord), ks));
      result.dims.push_back(op.getKDim());
      shape.push_back(getConstantIntValue(sizes.back()).value_or(ShapedType::kDynamic));
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(expr);
    bool isKey = dim && dim.getPosition() == op.getKDim();
    bool isKeptDim = dim && dim.getPosition() >= op.getNumBatch();
    offsets.push_back(isKey ? k0 : zero);
    sizes.push_back(isKey ? ks : isKeptDim ? domain[dim.getPosition()].size : one);
    if (!isKeptDim)
      continue;
    result.dims.push_back(dim.getPosition());
    shape.push_back(getConstantIntValue(sizes.back()).value_or(ShapedType::kDynamic));
  }
  SmallVector<OpFoldResult> strides(offsets.size(), one);
  auto type = RankedTensorType::get(shape, cast<ShapedType>(operand.getType()).getElementType());
  result.slice =
      tensor::ExtractSliceOp::create(rewriter, loc, type, operand, offsets, sizes, strides);
  return result;
}

Value KeyLoops::ordered(View view, ArrayRef<unsigned> dims) {
  if (view.dims == dims)
    return view.slice;
  SmallVector<int64_t> permutation, full;
  for (unsigned dim : dims) {
    permutation.push_back(llvm::find(view.dims, dim) - view.dims.begin());
    full.push_back(dim == op.getKDim()   ? kTile()
                   : dim == op.getQDim() ? qTile()
                                         : op.getStaticSize(dim));
  }
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, view.slice);
  applyPermutationToVector(sizes, permutation);
  Value init = temporary(full, sizes, view.slice.getType().getElementType());
  return linalg::TransposeOp::create(rewriter, loc, view.slice, init, permutation)->getResult(0);
}

Value KeyLoops::temporary(ArrayRef<int64_t> full, ArrayRef<OpFoldResult> sizes, Type elementType) {
  SmallVector<OpFoldResult> allocated;
  for (auto [i, size] : llvm::enumerate(full))
    allocated.push_back(ShapedType::isDynamic(size) ? sizes[i] : rewriter.getIndexAttr(size));
  Value tile = tensor::EmptyOp::create(rewriter, loc, allocated, elementType);
  SmallVector<OpFoldResult> offsets(sizes.size(), zero), strides(sizes.size(), one);
  return tensor::ExtractSliceOp::create(rewriter, loc, tile, offsets, sizes, strides);
}

void KeyLoops::keepApart(Value temporary) {
  auto empty = temporary.getDefiningOp<tensor::ExtractSliceOp>().getSource().getDefiningOp();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(empty);
  rewriter.replaceOpWithNewOp<bufferization::AllocTensorOp>(
      empty, cast<RankedTensorType>(empty->getResult(0).getType()), empty->getOperands());
}

void KeyLoops::splitScale() {
  float scale = op.getScale().convertToFloat();
  scoreScale = op.getScaleAttr();
  if (inPlace() || !std::isnormal(scale) || std::abs(scale) >= 1)
    return;
  // The power takes the sign, so the other factor is positive.
  float power = std::copysign(std::scalbn(1.0f, std::ilogb(scale)), scale);
  queryScale = rewriter.getF32FloatAttr(power);
  scoreScale = rewriter.getF32FloatAttr(scale / power);
}

Value KeyLoops::convert(Value tile, ArrayRef<int64_t> full, Type type) {
  auto tileType = cast<RankedTensorType>(tile.getType());
  if (tileType.getElementType() == type)
    return tile;
  Value out = temporary(full, tensor::getMixedSizes(rewriter, loc, tile), type);
  return createConverted(rewriter, loc, tile, out);
}

Value KeyLoops::rowsOfKeys(Value operand, AffineMap map, unsigned dim, OpFoldResult k0,
                           OpFoldResult ks) {
  return ordered(view(operand, map, k0, ks), {op.getKDim(), dim});
}

Value KeyLoops::temporaryOfQueries(int64_t other, OpFoldResult otherSize) {
  SmallVector<int64_t> full = {other, qTile()};
  SmallVector<OpFoldResult> sizes = {otherSize, paddedQueries};
  if (rows()) {
    std::swap(full[0], full[1]);
    std::swap(sizes[0], sizes[1]);
  }
  return temporary(full, sizes, scoreType());
}

Value KeyLoops::scaleRowsOfQueries() {
  Value source =
      ordered(view(op.getQuery(), op.getQueryMap(), zero, zero), {op.getQDim(), op.getDDim()});
  if (inPlace())
    return source;
  Value out = temporaryOfQueries(op.getStaticSize(op.getDDim()), domain[op.getDDim()].size);
  AffineMap identity = rewriter.getMultiDimIdentityMap(2);
  SmallVector<utils::IteratorType> loops(2, utils::IteratorType::parallel);
  return linalg::GenericOp::create(rewriter, loc, out.getType(), source, out,
                                   ArrayRef<AffineMap>{identity, identity}, loops,
                                   [&](OpBuilder &b, Location loc, ValueRange args) {
                                     Value element = convertScalarToDtype(
                                         b, loc, args[0], scoreType(), /*isUnsignedCast=*/false);
                                     if (queryScale) {
                                       double scale = queryScale.getValueAsDouble();
                                       Value factor = arith::ConstantOp::create(
                                           b, loc, b.getFloatAttr(scoreType(), scale));
                                       element = arith::MulFOp::create(b, loc, element, factor);
                                     }
                                     linalg::YieldOp::create(b, loc, element);
                                   })
      .getResult(0);
}

bool KeyLoops::canPadQueries() {
  unsigned q = op.getQDim();
  auto reads = [&](AffineMap map) { return map.isFunctionOfDim(q); };
  for (unsigned i = 0; i < op.getCaptures().size(); ++i)
    if (reads(op.getCaptureMap(i)))
      return false;
  return !rows() && !op.getState() && !(op.getSink() && reads(op.getSinkMap())) && !op.getFill() &&
         !op.returnsProbabilities();
}

Value KeyLoops::withoutPadding(Value tile) {
  if (isEqualConstantIntOrValue(numQueries(), paddedQueries))
    return tile;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, tile),
                            offsets(sizes.size(), zero), strides(sizes.size(), one);
  sizes.back() = numQueries();
  return tensor::ExtractSliceOp::create(rewriter, loc, tile, offsets, sizes, strides);
}

OpFoldResult KeyLoops::inGroups(OpFoldResult size) {
  AffineExpr elements = rewriter.getAffineDimExpr(0);
  return affine::makeComposedFoldedAffineApply(rewriter, loc, elements.ceilDiv(group()), {size});
}

Value KeyLoops::packQueries(int64_t group) {
  if (rows())
    return scaleRowsOfQueries();
  View queries = view(op.getQuery(), op.getQueryMap(), zero, zero);
  bool fromRows = queries.dims.front() == op.getDDim();
  Value source = queries.slice;
  SmallVector<OpFoldResult> sizes = {domain[op.getDDim()].size, paddedQueries};
  if (group > 1) {
    sizes[0] = inGroups(sizes[0]);
    sizes.push_back(rewriter.getIndexAttr(group));
  } else {
    SmallVector<int64_t> full = {qTile(), op.getStaticSize(op.getDDim())};
    if (fromRows)
      std::swap(full[0], full[1]);
    source = convert(source, full, scoreType());
  }
  Type element = getElementTypeOrSelf(source.getType());
  SmallVector<OpFoldResult> outSizes = {one, sizes[0], rewriter.getIndexAttr(qTile())};
  llvm::append_range(outSizes, ArrayRef(sizes).drop_front(2));
  Value empty = tensor::EmptyOp::create(rewriter, loc, outSizes, element);
  Value packed = PackOp::create(rewriter, loc, TypeRange{empty.getType()}, source,
                                ValueRange{empty}, fromRows, group, queryScale)
                     .getResult(0);
  return sliceOfPanel(packed, sizes);
}

Value KeyLoops::sliceOfPanel(Value packed, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  SmallVector<OpFoldResult> all = {one};
  llvm::append_range(all, sizes);
  SmallVector<OpFoldResult> offsets(all.size(), zero), strides(all.size(), one);
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(packed.getType()));
  return tensor::ExtractSliceOp::create(rewriter, loc, type, packed, offsets, all, strides);
}

Value KeyLoops::packValues(Value values, OpFoldResult ks) {
  auto type = cast<RankedTensorType>(values.getType());
  OpFoldResult inGroup = rewriter.getIndexAttr(group());
  int64_t groups = llvm::divideCeilSigned(kTile(), group()), e = type.getDimSize(1);
  if (op.getPlan()->getTransposes()) {
    // The keys are the columns of one panel. Columns beyond the last key are zeros.
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, {1, e, groups * group()}, type.getElementType());
    Value packed = PackOp::create(rewriter, loc, TypeRange{empty.getType()}, values,
                                  ValueRange{empty}, /*from_rows=*/false, /*group=*/1, FloatAttr())
                       .getResult(0);
    auto inGroupsType = RankedTensorType::get({1, e, groups, group()}, type.getElementType());
    packed = tensor::ExpandShapeOp::create(rewriter, loc, inGroupsType, packed, {{0}, {1}, {2, 3}});
    return sliceOfPanel(packed, {valueSize(), inGroups(ks), inGroup});
  }
  Value empty = temporary({1, groups, e, group()}, {one, inGroups(ks), valueSize(), inGroup},
                          type.getElementType());
  Value packed = PackOp::create(rewriter, loc, TypeRange{empty.getType()}, values,
                                ValueRange{empty}, /*from_rows=*/true, group(), FloatAttr())
                     .getResult(0);
  return sliceOfPanel(packed, {inGroups(ks), valueSize(), inGroup});
}

KeyLoops::Capture KeyLoops::captureTile(unsigned i, OpFoldResult k0, OpFoldResult ks) {
  View tile = view(op.getCaptures()[i], op.getCaptureMap(i), k0, ks);
  unsigned q = op.getQDim(), k = op.getKDim();
  Value value = tile.slice, rows;
  if (!this->rows() && tile.dims == ArrayRef<unsigned>{q, k}) {
    rows = tile.slice;
    Value full = temporary({1, kTile(), qTile()}, {one, ks, rewriter.getIndexAttr(qTile())},
                           tile.slice.getType().getElementType());
    Value packed = PackOp::create(rewriter, loc, TypeRange{full.getType()}, value, ValueRange{full},
                                  /*from_rows=*/false, /*group=*/1, /*scale=*/FloatAttr())
                       .getResult(0);
    value = sliceOfPanel(packed, {ks, paddedQueries});
    tile.dims = {k, q};
  }
  SmallVector<AffineExpr> read = llvm::map_to_vector(
      tile.dims, [&](unsigned dim) { return rewriter.getAffineDimExpr(dim == k ? 0 : 1); });
  if (findWordOfKey(op.getCaptureMap(i)))
    read.front() = read.front().floorDiv(kKeysPerWord);
  return {value, AffineMap::get(2, 0, read, op.getContext()), rows};
}

Value KeyLoops::nextRows(unsigned i, OpFoldResult k0) {
  // No tile follows the last tile, which gets the rows of the last keys again.
  AffineExpr from, keys;
  bindDims(op.getContext(), from, keys);
  AffineMap least = AffineMap::get(2, 0, {from + kTile(), keys - kTile()}, op.getContext());
  OpFoldResult next = affine::makeComposedFoldedAffineMin(rewriter, loc, least, {k0, numKeys()});
  AffineMap positive =
      AffineMap::get(1, 0, {from, rewriter.getAffineConstantExpr(0)}, op.getContext());
  next = affine::makeComposedFoldedAffineMax(rewriter, loc, positive, {next});
  return view(op.getCaptures()[i], op.getCaptureMap(i), next, rewriter.getIndexAttr(kTile())).slice;
}

std::pair<Value, Value> KeyLoops::symbolRange(unsigned capture) {
  Value operand = op.getCaptures()[capture];
  AffineMap map = op.getCaptureMap(capture);
  auto load = [&](Value row) -> Value {
    SmallVector<Value> indices;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      indices.push_back(dim && dim.getPosition() == op.getQDim() ? row : toValue(zero));
    }
    Value element = tensor::ExtractOp::create(rewriter, loc, operand, indices);
    return element.getType().isIndex()
               ? element
               : arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(), element)
                     .getResult();
  };
  Value first = load(toValue(zero));
  if (!map.isFunctionOfDim(op.getQDim()))
    return {first, first};
  auto rows = scf::ForOp::create(rewriter, loc, toValue(one), toValue(numQueries()), toValue(one),
                                 ValueRange{first, first});
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(rows.getBody());
  Value element = load(rows.getInductionVar());
  Value least = arith::MinSIOp::create(rewriter, loc, rows.getRegionIterArg(0), element);
  Value greatest = arith::MaxSIOp::create(rewriter, loc, rows.getRegionIterArg(1), element);
  scf::YieldOp::create(rewriter, loc, ValueRange{least, greatest});
  return {rows.getResult(0), rows.getResult(1)};
}

KeyLoops::KeyRange KeyLoops::keyRange() {
  SmallVector<Value> symbols;
  MaskInterface mask = op.getMaskAttr();
  if (mask) {
    for (const KeptSet &set : mask.kept(op.getNumBatch())) {
      for (unsigned capture : set.symbols) {
        auto [least, greatest] = symbolRange(capture);
        symbols.append({least, greatest});
      }
    }
  }
  // A mask refers to absolute positions of keys, so compute the range of all keys up to the last key of this op first.
  OpFoldResult first = mask ? getAsOpFoldResult(origin[op.getKDim()]) : zero;
  AffineExpr d0, d1;
  bindDims(op.getContext(), d0, d1);
  OpFoldResult end =
      affine::makeComposedFoldedAffineApply(rewriter, loc, d0 + d1, {first, numKeys()});
  auto range = KeyRangeOp::create(rewriter, loc, ArrayRef(origin).take_front(op.getNumBatch()),
                                  origin[op.getQDim()], toValue(numQueries()), toValue(end),
                                  symbols, kTile(), mask);
  std::array<OpFoldResult, 4> bounds;
  llvm::copy(range.getResults(), bounds.begin());
  if (!isZeroInteger(first))
    bounds = KeyBounds::relativeTo(rewriter, loc, first, kTile(), bounds);
  return {toValue(bounds[0]), toValue(bounds[1]), toValue(bounds[2]), toValue(bounds[3])};
}

void KeyLoops::countTiles(const KeyRange &range) {
  AffineExpr lo, hi, keys;
  bindDims(op.getContext(), lo, hi, keys);
  AffineExpr begin = testsTiles() ? lo - lo % kKeysPerWord : lo;
  AffineExpr run = (hi - begin).ceilDiv(kTile()), all = keys.ceilDiv(kTile());
  auto apply = [&](AffineExpr expr) {
    return toValue(affine::makeComposedFoldedAffineApply(
        rewriter, loc, AffineMap::get(3, 0, expr),
        {OpFoldResult(range.lo), OpFoldResult(range.hi), numKeys()}));
  };
  // Tiles that are tested are counted in the loop.
  CountTilesOp::create(rewriter, loc, testsTiles() ? toValue(zero) : apply(run), apply(all - run));
}

KeyLoops::Score KeyLoops::score(OpFoldResult k0, OpFoldResult ks, MaskInterface mask) {
  Score result;
  result.dropped.resize(op.getCaptures().size());
  for (unsigned i = 0; i < op.getCaptures().size(); ++i) {
    bool inRegion =
        !op.getScore().empty() && !op.getScore().getArgument(op.getKDim() + 2 + i).use_empty();
    if (i == getBound() || (!mask && !inRegion && !isFilling)) {
      result.dropped.set(i);
      continue;
    }
    Capture capture = captureTile(i, k0, ks);
    result.captures.push_back(capture.tile);
    result.maps.push_back(capture.map);
    // The rows of a next tile are a slice of kTile() keys, which is valid only if there are that many keys.
    std::optional<int64_t> keys = getConstantIntValue(numKeys());
    if (capture.rows && keys && *keys > kTile())
      result.next.push_back(nextRows(i, k0));
  }
  return result;
}

void KeyLoops::cloneScore(Region &into, const Score &score) {
  if (op.getScore().empty()) {
    // A step without a region keeps its maximum as an unscaled product. A sink is a score, however, and the maximum of
    // a state must be a score, so the step gets a region that yields the score unchanged. A fill is a score too.
    if (!op.getSink() && !op.getState() && !isFilling)
      return;
    createScoreBlock(rewriter, op, into);
  } else {
    IRMapping mapping;
    op.getScore().cloneInto(&into, mapping);
  }
  if (isFilling)
    fillScores(rewriter, op, into.front());
  llvm::BitVector erased(into.getNumArguments());
  for (unsigned i : score.dropped.set_bits())
    erased.set(op.getKDim() + 2 + i);
  into.front().eraseArguments(erased);
}

SmallVector<Value> KeyLoops::originAt(Value k0) {
  AffineExpr d0, d1;
  bindDims(op.getContext(), d0, d1);
  SmallVector<Value> result(origin);
  result[op.getKDim()] = toValue(affine::makeComposedFoldedAffineApply(
      rewriter, loc, d0 + d1, {OpFoldResult(origin[op.getKDim()]), OpFoldResult(k0)}));
  return result;
}

OpFoldResult KeyLoops::tailSize(Value k0, OpFoldResult to) {
  AffineExpr d0, d1;
  bindDims(op.getContext(), d0, d1);
  AffineMap map =
      AffineMap::get(2, 0, {rewriter.getAffineConstantExpr(kTile()), d0 - d1}, op.getContext());
  return affine::makeComposedFoldedAffineMin(rewriter, loc, map, {to, OpFoldResult(k0)});
}

/// The number of keys of a tile, if the number of all keys is static and every tile has equally many keys. This size
/// must be static, because MLIR 22 crashes when it folds the size 1 into a slice that drops another dimension of size
/// 1.
std::optional<OpFoldResult> KeyLoops::equalTileSize() {
  std::optional<int64_t> keys = getConstantIntValue(numKeys());
  if (!keys || (*keys > kTile() && *keys % kTile() != 0))
    return std::nullopt;
  return rewriter.getIndexAttr(std::min(*keys, kTile()));
}

void KeyLoops::setBlocks(Operation *step, StringRef values) {
  auto planned = op->getAttrOfType<DictionaryAttr>(AttnDialect::kBlocksAttr);
  if (!planned)
    return;
  NamedAttrList blocks;
  if (Attribute block = planned.get("scores"))
    blocks.set("scores", block);
  if (Attribute block = planned.get(values))
    blocks.set("values", block);
  step->setAttr(AttnDialect::kBlocksAttr, blocks.getDictionary(op.getContext()));
}

KeyLoops::State KeyLoops::step(const State &before, Value query, OpFoldResult k0, OpFoldResult ks,
                               MaskInterface mask) {
  unsigned d = op.getDDim(), e = op.getEDim();
  Value key = rowsOfKeys(op.getKey(), op.getKeyMap(), d, k0, ks);
  Value value = rowsOfKeys(op.getValue(), op.getValueMap(), e, k0, ks);
  Value probabilities;
  SmallVector<Type> types;
  if (group() > 1) {
    value = packValues(value, ks);
    int64_t groups = llvm::divideCeilSigned(kTile(), group());
    probabilities = temporary({groups, qTile(), group()},
                              {inGroups(ks), paddedQueries, rewriter.getIndexAttr(group())},
                              getElementTypeOrSelf(value.getType()));
  } else if (inPlace()) {
    // Without this operand, probabilities have the type of the scores.
    if (Type type = getElementTypeOrSelf(value.getType()); type != scoreType())
      probabilities = temporary({qTile(), kTile()}, {paddedQueries, ks}, type);
  } else if (!rows()) {
    key = convert(key, {kTile(), op.getStaticSize(d)}, scoreType());
    value = convert(value, {kTile(), op.getStaticSize(e)}, scoreType());
  }
  Value scores = temporaryOfQueries(kTile(), ks);
  Score score = this->score(k0, ks, mask);
  for (Value out : {scores, before.max, before.sum, before.acc, probabilities})
    if (out)
      types.push_back(out.getType());
  UnitAttr transposed = op.getPlan()->getTransposes() ? rewriter.getUnitAttr() : UnitAttr();
  auto step = OnlineStepOp::create(
      rewriter, loc, types, query, key, value, score.captures, scores, before.max, before.sum,
      before.acc, probabilities, originAt(toValue(k0)), score.next, mask,
      rewriter.getAffineMapArrayAttr(score.maps), scoreScale, rowsAttr(), transposed);
  setBlocks(step, mask ? "masked" : "values");
  if (inPlace())
    step->setAttr(AttnDialect::kStagesAttr, rewriter.getI64IntegerAttr(op.getPlan()->getStages()));
  cloneScore(step.getScore(), score);
  unit = step.getUnit();
  return {step.getResult(1), step.getResult(2), step.getResult(3)};
}

KeyLoops::State KeyLoops::stepIfKept(const State &before, Value query, OpFoldResult k0,
                                     OpFoldResult ks) {
  // Find the words in which every packed part of the mask keeps some pairs.
  Value begin, end, all;
  for (DenseAttr dense : parts.packed) {
    View words =
        view(op.getCaptures()[dense.getCapture()], op.getCaptureMap(dense.getCapture()), k0, ks);
    auto test = TestMaskOp::create(rewriter, loc, words.slice, dense.getKeeps());
    begin = begin ? arith::MaxUIOp::create(rewriter, loc, begin, test.getBegin()).getResult()
                  : test.getBegin();
    end =
        end ? arith::MinUIOp::create(rewriter, loc, end, test.getEnd()).getResult() : test.getEnd();
    all =
        all ? arith::AndIOp::create(rewriter, loc, all, test.getAll()).getResult() : test.getAll();
  }
  Value any = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult, begin, end);
  auto apply = [&](ArrayRef<AffineExpr> least, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineMin(
        rewriter, loc, AffineMap::get(operands.size(), 0, least, op.getContext()), operands);
  };
  AffineExpr d0, d1, d2;
  bindDims(op.getContext(), d0, d1, d2);

  OpBuilder::InsertionGuard guard(rewriter);
  SmallVector<Value> unchanged = {before.max, before.sum, before.acc};
  TypeRange types = ValueRange(unchanged).getTypes();
  auto yield = [&](Block *block, function_ref<SmallVector<Value>()> compute) {
    rewriter.setInsertionPointToEnd(block);
    SmallVector<Value> values = compute();
    scf::YieldOp::create(rewriter, loc, values);
  };
  auto stepAt = [&](OpFoldResult first, OpFoldResult count, MaskInterface mask) {
    State after = step(before, query, first, count, mask);
    return SmallVector<Value>{after.max, after.sum, after.acc};
  };
  auto count = [&](OpFoldResult run, OpFoldResult skipped) {
    CountTilesOp::create(rewriter, loc, toValue(run), toValue(skipped));
  };
  auto ifAny = scf::IfOp::create(rewriter, loc, types, any, /*withElseRegion=*/true);
  yield(ifAny.thenBlock(), [&] {
    count(one, zero);
    auto ifAll = scf::IfOp::create(rewriter, loc, types, all, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard inner(rewriter);
    yield(ifAll.thenBlock(), [&] { return stepAt(k0, ks, parts.rest); });
    yield(ifAll.elseBlock(), [&] {
      if (inPlace()) // leaving out keys of a tile would save no copy
        return stepAt(k0, ks, op.getMaskAttr());
      OpFoldResult first = apply(d0 + d1 * kKeysPerWord, {k0, begin});
      OpFoldResult count = apply({d0 - d1 * kKeysPerWord, (d2 - d1) * kKeysPerWord},
                                 {ks, OpFoldResult(begin), OpFoldResult(end)});
      return stepAt(first, count, op.getMaskAttr());
    });
    return SmallVector<Value>(ifAll.getResults());
  });
  yield(ifAny.elseBlock(), [&] {
    count(zero, one);
    return unchanged;
  });
  return {ifAny.getResult(0), ifAny.getResult(1), ifAny.getResult(2)};
}

KeyLoops::State KeyLoops::loop(Value from, Value to, State state, Value query, bool isFull,
                               MaskInterface mask) {
  auto loop = scf::ForOp::create(rewriter, loc, from, to, toValue(rewriter.getIndexAttr(kTile())),
                                 ValueRange{state.max, state.sum, state.acc});
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  Value k0 = loop.getInductionVar();
  OpFoldResult ks = isFull ? OpFoldResult(rewriter.getIndexAttr(kTile())) : tailSize(k0, to);
  State before = {loop.getRegionIterArg(0), loop.getRegionIterArg(1), loop.getRegionIterArg(2)};
  State after =
      testsTiles() && mask ? stepIfKept(before, query, k0, ks) : step(before, query, k0, ks, mask);
  scf::YieldOp::create(rewriter, loc, ValueRange{after.max, after.sum, after.acc});
  return {loop.getResult(0), loop.getResult(1), loop.getResult(2)};
}

Value KeyLoops::probabilitiesLoop(Value query, const State &state) {
  auto loop =
      scf::ForOp::create(rewriter, loc, toValue(zero), toValue(numKeys()),
                         toValue(rewriter.getIndexAttr(kTile())), ValueRange{op.getOuts()[1]});
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  Value k0 = loop.getInductionVar();
  std::optional<OpFoldResult> equal = equalTileSize();
  OpFoldResult ks = equal ? *equal : tailSize(k0, numKeys());
  Value key = rowsOfKeys(op.getKey(), op.getKeyMap(), op.getDDim(), k0, ks);
  if (!rows())
    key = convert(key, {kTile(), op.getStaticSize(op.getDDim())}, scoreType());
  Value probabilities = temporaryOfQueries(kTile(), ks);
  Score score = this->score(k0, ks, op.getMaskAttr());
  auto normalized = OnlineProbabilitiesOp::create(
      rewriter, loc, TypeRange{probabilities.getType()}, query, key, state.max, state.sum,
      score.captures, probabilities, originAt(k0), op.getMaskAttr(),
      rewriter.getAffineMapArrayAttr(score.maps), scoreScale, op.getEmptyRowAttr(), rowsAttr());
  setBlocks(normalized, /*values=*/"");
  cloneScore(normalized.getScore(), score);
  View out = view(loop.getRegionIterArg(0), op.getOutMap(1), k0, ks);
  SmallVector<int64_t> permutation = {1, 0}, full = {kTile(), qTile()};
  if ((out.dims.front() == op.getKDim()) != rows())
    permutation = {0, 1};
  if (rows())
    std::swap(full[0], full[1]);
  Value tile = convert(normalized.getResult(0), full, out.slice.getType().getElementType());
  tile = linalg::TransposeOp::create(rewriter, loc, tile, out.slice, permutation)->getResult(0);
  Value inserted = tensor::InsertSliceOp::create(
      rewriter, loc, tile, loop.getRegionIterArg(0), out.slice.getMixedOffsets(),
      out.slice.getMixedSizes(), out.slice.getMixedStrides());
  scf::YieldOp::create(rewriter, loc, inserted);
  return loop.getResult(0);
}

KeyLoops::State KeyLoops::fill(const State &state, Value query, llvm::function_ref<State()> start) {
  // A hidden pair has a probability below 2^-80 if the greatest kept score is larger than the fill by 80 * ln(2) = 55.5.
  // The fill and the maximum are rounded to f32, so the bound is larger by |fill| * 2^-22.
  double fill = op.getFill()->convertToDouble();
  double least = (fill + 56 + std::abs(fill) * 0x1p-22) / unit;
  SmallVector<Value> ofQueries = {state.max};
  if (std::optional<unsigned> bound = getBound())
    ofQueries.push_back(view(op.getCaptures()[*bound], op.getCaptureMap(*bound), zero, zero).slice);
  // False for NaN. `row` is the maximum of a query and, if the fill is added, the bound of its scores.
  auto isAbove = [&](OpBuilder &b, Location loc, ValueRange row) -> Value {
    auto constant = [&](double number) -> Value {
      return arith::ConstantOp::create(b, loc, b.getFloatAttr(scoreType(), number));
    };
    Value bound = constant(least);
    if (row.size() > 1) {
      Value ofScores = arith::MulFOp::create(b, loc, row[1], constant(1 / unit));
      bound = arith::AddFOp::create(b, loc, bound, ofScores);
    }
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, row[0], bound);
  };
  Value no = arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(false));
  auto rows = scf::ForOp::create(rewriter, loc, toValue(zero), toValue(numQueries()), toValue(one),
                                 ValueRange{no});
  {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(rows.getBody());
    SmallVector<Value> row;
    for (Value tensor : ofQueries)
      row.push_back(tensor::ExtractOp::create(rewriter, loc, tensor, rows.getInductionVar()));
    Value isBelow =
        arith::XOrIOp::create(rewriter, loc, isAbove(rewriter, loc, row),
                              arith::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(true)));
    Value any = arith::OrIOp::create(rewriter, loc, rows.getRegionIterArg(0), isBelow);
    scf::YieldOp::create(rewriter, loc, any);
  }
  SmallVector<Value> unchanged = {state.max, state.sum, state.acc};
  auto ifAny = scf::IfOp::create(rewriter, loc, ValueRange(unchanged).getTypes(), rows.getResult(0),
                                 /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToEnd(ifAny.elseBlock());
  scf::YieldOp::create(rewriter, loc, unchanged);
  rewriter.setInsertionPointToEnd(ifAny.thenBlock());
  isFilling = true;
  State all = loop(toValue(zero), toValue(numKeys()), start(), query, /*isFull=*/false,
                   /*mask=*/nullptr);
  isFilling = false;
  AffineExpr keys = rewriter.getAffineDimExpr(0);
  CountTilesOp::create(rewriter, loc,
                       toValue(affine::makeComposedFoldedAffineApply(
                           rewriter, loc, keys.ceilDiv(kTile()), {numKeys()})),
                       toValue(zero));
  auto choose = [&](Value filled, Value kept) -> Value {
    unsigned rank = cast<ShapedType>(kept.getType()).getRank();
    AffineMap identity = rewriter.getMultiDimIdentityMap(rank);
    AffineMap ofQuery =
        AffineMap::get(rank, 0, {rewriter.getAffineDimExpr(rank - 1)}, op.getContext());
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    SmallVector<Value> inputs(ofQueries);
    SmallVector<AffineMap> maps(ofQueries.size(), ofQuery);
    inputs.push_back(filled);
    maps.append({identity, identity});
    return linalg::GenericOp::create(rewriter, loc, kept.getType(), inputs, kept, maps, loops,
                                     [&](OpBuilder &b, Location loc, ValueRange args) {
                                       Value chosen = arith::SelectOp::create(
                                           b, loc, isAbove(b, loc, args.drop_back(2)), args.back(),
                                           args.drop_back().back());
                                       linalg::YieldOp::create(b, loc, chosen);
                                     })
        .getResult(0);
  };
  scf::YieldOp::create(
      rewriter, loc, ValueRange{state.max, choose(all.sum, state.sum), choose(all.acc, state.acc)});
  return {ifAny.getResult(0), ifAny.getResult(1), ifAny.getResult(2)};
}

void KeyLoops::run() {
  View out = view(op.getOuts()[0], op.getOutMap(), zero, zero);
  View outMax, outSum; // of a state
  Value query = packQueries(group());
  OpFoldResult tq = paddedQueries;
  auto emptyState = [&]() -> SmallVector<Value> {
    return {temporary({qTile()}, {tq}, scoreType()), temporary({qTile()}, {tq}, scoreType()),
            temporaryOfQueries(ShapedType::kDynamic, valueSize())};
  };
  SmallVector<Value> empties = emptyState();
  if (op.getState()) {
    outMax = view(op.getOuts()[1], op.getOutMap(1), zero, zero);
    outSum = view(op.getOuts()[2], op.getOutMap(2), zero, zero);
    if (inPlace()) // the state is copied to the outputs from registers
      llvm::for_each(empties, [&](Value empty) { keepApart(empty); });
    else
      empties = {outMax.slice, outSum.slice, out.slice};
  }
  Value sink = op.getSink() ? view(op.getSink(), op.getSinkMap(), zero, zero).slice : Value();
  auto start = [&](ArrayRef<Value> outs) {
    return createOnlineStart(rewriter, loc, op, {outs[0], outs[1], outs[2]}, sink, numKeys(),
                             rows());
  };
  State state = start(empties);

  KeyRange range = keyRange();
  MaskInterface mask = op.getMaskAttr();
  countTiles(range);
  if (testsTiles()) {
    // Each tile is tested, because only the words of the mask show which tiles are full. The first tile begins at a
    // whole word.
    AffineExpr lo = rewriter.getAffineDimExpr(0);
    OpFoldResult from = affine::makeComposedFoldedAffineApply(rewriter, loc, lo - lo % kKeysPerWord,
                                                              {OpFoldResult(range.lo)});
    state = loop(toValue(from), range.hi, state, query, /*isFull=*/false, mask);
  } else {
    // Without a mask, no partial tile precedes the full tiles, and at most one smaller tile of kept pairs follows them.
    if (mask)
      state = loop(range.lo, range.fullLo, state, query, /*isFull=*/false, mask);
    state = loop(range.fullLo, range.fullHi, state, query, /*isFull=*/true,
                 /*mask=*/nullptr);
    state = loop(range.fullHi, range.hi, state, query, /*isFull=*/false, mask);
  }

  if (op.getFill())
    state = fill(state, query, [&] { return start(emptyState()); });

  auto insert = [&](Value tile, View into, Value whole) -> Value {
    return tensor::InsertSliceOp::create(rewriter, loc, tile, whole, into.slice.getMixedOffsets(),
                                         into.slice.getMixedSizes(), into.slice.getMixedStrides());
  };
  if (op.getState()) {
    if (inPlace()) {
      auto copy = [&](Value from, View to) -> Value {
        return linalg::CopyOp::create(rewriter, loc, ValueRange{from}, ValueRange{to.slice})
            .getResult(0);
      };
      state = {copy(state.max, outMax), copy(state.sum, outSum), copy(state.acc, out)};
    }
    rewriter.replaceOp(op, {insert(state.acc, out, op.getOuts()[0]),
                            insert(state.max, outMax, op.getOuts()[1]),
                            insert(state.sum, outSum, op.getOuts()[2])});
    return;
  }

  // The result has one row for each query. If the output has e before q, the rows are transposed into the output.
  bool isTransposed = out.dims.front() != op.getQDim();
  Value rows = out.slice;
  if (isTransposed)
    rows = temporary({qTile(), ShapedType::kDynamic}, {numQueries(), valueSize()},
                     out.slice.getType().getElementType());
  Value sum = withoutPadding(state.sum), acc = withoutPadding(state.acc);
  Value tile = OnlineFinishOp::create(rewriter, loc, TypeRange{rows.getType()}, sum, acc, rows,
                                      op.getEmptyRowAttr(), rowsAttr())
                   .getResult(0);
  if (isTransposed)
    tile = linalg::TransposeOp::create(rewriter, loc, tile, out.slice, ArrayRef<int64_t>{1, 0})
               ->getResult(0);
  SmallVector<Value> results = {insert(tile, out, op.getOuts()[0])};
  if (op.returnsProbabilities())
    results.push_back(probabilitiesLoop(group() > 1 ? packQueries(/*group=*/1) : query, state));
  rewriter.replaceOp(op, results);
}

namespace {
struct TileKeys : attn::impl::TileKeysBase<TileKeys> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) {
      if (op.getPlan())
        ops.push_back(op);
    });
    for (AttentionOp op : ops) {
      rewriter.setInsertionPoint(op);
      if (failed(verifyPackedMask(op)))
        return signalPassFailure();
      if (op.getAdded() && !op.getBounded()) {
        op.emitOpError() << "expected a bound of the scores, because the fill is added; "
                            "attn-bound-fills computes it";
        return signalPassFailure();
      }
      KeyLoops(rewriter, op).run();
    }
  }
};
} // namespace
