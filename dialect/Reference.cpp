//===- Reference.cpp - what the ops of the dialect mean --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Test: test/reference/ReferenceTest.cpp
//
//===----------------------------------------------------------------------===//

#include "dialect/Reference.h"
#include "dialect/Scalars.h"
#include "support/Loops.h"

#include <cmath>

using namespace mlir;
using namespace attn;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

//===----------------------------------------------------------------------===//
// Tensors and maps
//===----------------------------------------------------------------------===//

ReferenceTensor::ReferenceTensor(ArrayRef<int64_t> shape, double fill)
    : shape(shape), elements(ShapedType::getNumElements(shape), fill) {}

/// The position in `tensor` of the element whose index in dimension i is indexOf(i).
template <typename IndexOf>
static size_t positionOf(const ReferenceTensor &tensor, IndexOf indexOf) {
  size_t position = 0;
  for (auto [dim, size] : llvm::enumerate(tensor.shape)) {
    int64_t index = indexOf(dim);
    assert(0 <= index && index < size && "expected an index within the tensor");
    position = position * size + index;
  }
  return position;
}

double &ReferenceTensor::at(ArrayRef<int64_t> index) {
  return elements[positionOf(*this, [&](size_t dim) { return index[dim]; })];
}

double &ReferenceTensor::at(AffineMap map, ArrayRef<int64_t> point) {
  return elements[positionOf(*this,
                             [&](size_t dim) { return evaluate(map.getResult(dim), point); })];
}

double ReferenceTensor::at(ArrayRef<int64_t> index) const {
  return const_cast<ReferenceTensor &>(*this).at(index);
}

double ReferenceTensor::at(AffineMap map, ArrayRef<int64_t> point) const {
  return const_cast<ReferenceTensor &>(*this).at(map, point);
}

double attn::elementAt(const ReferenceTensor &tensor, AffineMap map, ArrayRef<int64_t> point) {
  double element = tensor.at(map, point);
  std::optional<unsigned> word = findWordOfKey(map);
  if (!word)
    return element;
  std::optional<unsigned> key = findLoop(cast<AffineBinaryOpExpr>(map.getResult(*word)).getLHS());
  return static_cast<int64_t>(element) >> (point[*key] % kKeysPerWord) & 1;
}

void attn::forEachIndex(ArrayRef<int64_t> shape,
                        llvm::function_ref<void(ArrayRef<int64_t>)> function) {
  SmallVector<int64_t> index(shape.size());
  for (int64_t count = ShapedType::getNumElements(shape); count > 0; --count) {
    function(index);
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

SmallVector<int64_t> attn::loopSizes(ArrayRef<AffineMap> maps, ArrayRef<ArrayRef<int64_t>> shapes) {
  SmallVector<int64_t> sizes(maps.front().getNumDims());
  for (auto [map, shape] : llvm::zip_equal(maps, shapes))
    for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape))
      if (std::optional<unsigned> loop = findLoop(expr))
        sizes[*loop] = size;
  return sizes;
}

static SmallVector<AffineMap> getMaps(ArrayAttr maps) {
  return llvm::to_vector(maps.getAsValueRange<AffineMapAttr>());
}

static int64_t integerAt(const ReferenceValues &values, Value index) {
  return static_cast<int64_t>(values.at(index).elements[0]);
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

/// Whether `pair` is a point of `set`.
static bool holds(const IntegerSet &set, ArrayRef<int64_t> pair, ArrayRef<int64_t> symbols) {
  for (auto [expr, isEquality] : llvm::zip_equal(set.getConstraints(), set.getEqFlags())) {
    int64_t value = evaluate(expr, pair, symbols);
    if (isEquality ? value != 0 : value < 0)
      return false;
  }
  return true;
}

bool attn::isKept(ArrayRef<KeptSet> kept, ArrayRef<int64_t> pair, ArrayRef<double> captured) {
  return llvm::any_of(kept, [&](const KeptSet &set) {
    auto symbols = llvm::map_to_vector(
        set.symbols, [&](unsigned i) { return static_cast<int64_t>(captured[i]); });
    return holds(set.pairs, pair, symbols) && llvm::all_of(set.tests, [&](DenseTest test) {
             return (captured[test.capture] != 0) == (test.keeps == Polarity::Nonzero);
           });
  });
}

namespace {
/// Applies the mask, the scale and the score region to the product of a query and a key.
class PairScore {
public:
  template <typename OpTy>
  static FailureOr<PairScore> get(OpTy op, ArrayRef<AffineMap> captureMaps,
                                  const ReferenceValues &values) {
    PairScore result;
    result.scale = op.getScale().convertToDouble();
    if (MaskInterface mask = op.getMaskAttr())
      result.kept = mask.kept(op.getNumBatch());
    for (Value capture : op.getCaptures())
      result.captures.push_back(&values.at(capture));
    result.captureMaps = llvm::to_vector(captureMaps);
    for (Value coordinate : op.getOrigin())
      result.origin.push_back(integerAt(values, coordinate));
    if (op.getScore().empty())
      return result;
    auto outer = [&](Value value) { return values.at(value).elements[0]; };
    FailureOr<ScalarBlock> region = ScalarBlock::get(op.getScore().front(), 0, outer);
    if (failed(region))
      return failure();
    result.region = std::move(*region);
    return result;
  }

  /// Whether the pair whose coordinates relative to the origin are `pair` is kept. Captured operands are read through
  /// their maps at `point`.
  bool keeps(ArrayRef<int64_t> pair, ArrayRef<int64_t> point) const {
    return !kept || isKept(*kept, coordinatesOf(pair), capturedAt(point));
  }

  /// The score of a pair that is kept.
  double operator()(ArrayRef<int64_t> pair, ArrayRef<int64_t> point, double product) {
    if (!region)
      return scale * product;
    SmallVector<int64_t> coordinates = coordinatesOf(pair);
    SmallVector<double> arguments(coordinates.begin(), coordinates.end());
    arguments.push_back(scale * product);
    llvm::append_range(arguments, capturedAt(point));
    return (*region)(arguments).front();
  }

  /// Whether the pair at (k, q) of a step's tile is kept.
  bool keepsInTile(int64_t k, int64_t q) const { return keeps(pairInTile(k, q), {k, q}); }
  /// The score of the pair at (k, q) of a step's tile; -inf if the pair is not kept.
  double scoreInTile(int64_t k, int64_t q, double product) {
    return keepsInTile(k, q) ? (*this)(pairInTile(k, q), {k, q}, product) : -kInfinity;
  }

private:
  SmallVector<int64_t> pairInTile(int64_t k, int64_t q) const {
    SmallVector<int64_t> pair(origin.size() - 2, 0);
    pair.append({q, k});
    return pair;
  }

  SmallVector<int64_t> coordinatesOf(ArrayRef<int64_t> pair) const {
    SmallVector<int64_t> coordinates(pair);
    for (auto [coordinate, start] : llvm::zip(coordinates, origin))
      coordinate += start;
    return coordinates;
  }

  SmallVector<double> capturedAt(ArrayRef<int64_t> point) const {
    SmallVector<double> captured;
    for (auto [tensor, map] : llvm::zip_equal(captures, captureMaps))
      captured.push_back(elementAt(*tensor, map, point));
    return captured;
  }

  double scale;
  std::optional<SmallVector<KeptSet>> kept;
  SmallVector<const ReferenceTensor *> captures;
  SmallVector<AffineMap> captureMaps;
  SmallVector<int64_t> origin;
  std::optional<ScalarBlock> region;
};
} // namespace

/// exp(score - max), but never 0 for a score above -inf, because 0 times an infinite value would be NaN.
static double probabilityOf(double score, double max) {
  if (score == -kInfinity)
    return 0;
  return std::max(std::exp(score - max), std::numeric_limits<double>::min());
}

static double valueOf(EmptyRow emptyRow) { return emptyRow == EmptyRow::NaN ? kNaN : 0; }

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

ReferenceResults attn::evaluate(AttentionOp op, const ReferenceValues &values) {
  SmallVector<AffineMap> maps = getMaps(op.getIndexingMaps());
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Value operand : op->getOperands().take_front(maps.size()))
    shapes.push_back(values.at(operand).shape);
  SmallVector<int64_t> sizes = loopSizes(maps, shapes);
  FailureOr<PairScore> score =
      PairScore::get(op, ArrayRef(maps).slice(3, op.getCaptures().size()), values);
  if (failed(score))
    return failure();
  SmallVector<ReferenceTensor> results;
  for (Value out : op.getOuts())
    results.emplace_back(values.at(out).shape);

  // The functions below read elements at `point` of the iteration space.
  SmallVector<int64_t> point(sizes.size());
  int64_t &k = point[op.getKDim()], &d = point[op.getDDim()], &e = point[op.getEDim()];
  int64_t numKeys = sizes[op.getKDim()];
  auto query = [&] { return values.at(op.getQuery()).at(op.getQueryMap(), point); };
  auto key = [&] { return values.at(op.getKey()).at(op.getKeyMap(), point); };
  auto value = [&] { return values.at(op.getValue()).at(op.getValueMap(), point); };
  auto result = [&](unsigned i) -> double & { return results[i].at(op.getOutMap(i), point); };
  auto product = [&] {
    double sum = 0;
    for (d = 0; d < sizes[op.getDDim()]; ++d)
      sum += query() * key();
    return sum;
  };

  ArrayRef<int64_t> pair = ArrayRef(point).take_front(op.getKDim() + 1);
  forEachIndex(ArrayRef(sizes).take_front(op.getKDim()), [&](ArrayRef<int64_t> row) {
    llvm::copy(row, point.begin());
    std::vector<bool> kept(numKeys);
    std::vector<double> p(numKeys, -kInfinity);
    double sink = op.getSink() ? values.at(op.getSink()).at(op.getSinkMap(), point) : -kInfinity;
    double max = sink;
    for (k = 0; k < numKeys; ++k) {
      kept[k] = score->keeps(pair, point);
      if (kept[k]) {
        p[k] = (*score)(pair, point, product());
      } else if (op.getFill()) {
        kept[k] = true;
        p[k] = op.getFill()->convertToDouble() +
               (op.getAdded() ? (*score)(pair, point, product()) : 0);
      }
      max = std::max(max, p[k]);
    }
    double sum = std::isnan(sink) ? sink : probabilityOf(sink, max);
    for (double &weight : p)
      sum += weight = probabilityOf(weight, max);

    if (op.getState()) {
      for (e = 0; e < sizes[op.getEDim()]; ++e) {
        double &acc = result(0) = 0;
        for (k = 0; k < numKeys; ++k)
          if (kept[k])
            acc += p[k] * value();
      }
      result(1) = max;
      result(2) = sum;
      return;
    }
    bool isEmpty = sum == 0;
    for (e = 0; e < sizes[op.getEDim()]; ++e) {
      double out = std::isnan(sum) ? sum : 0;
      for (k = 0; k < numKeys; ++k)
        if (kept[k])
          out += p[k] / sum * value();
      result(0) = isEmpty && numKeys > 0 ? valueOf(op.getEmptyRow()) : out;
    }
    if (op.returnsProbabilities())
      for (k = 0; k < numKeys; ++k)
        result(1) = isEmpty ? valueOf(op.getEmptyRow()) : kept[k] ? p[k] / sum : 0;
  });
  return results;
}

//===----------------------------------------------------------------------===//
// Ops on tiles
//===----------------------------------------------------------------------===//

ReferenceResults attn::evaluate(KeyRangeOp op, const ReferenceValues &values) {
  int64_t q = integerAt(values, op.getQ()), rows = integerAt(values, op.getRows());
  int64_t keys = integerAt(values, op.getKeys()), step = op.getStep();
  SmallVector<int64_t> pair;
  for (Value coordinate : op.getBatch())
    pair.push_back(integerAt(values, coordinate));
  pair.append(2, 0);

  /// A set and, for each of its symbols, the least value and the number of values.
  struct Part {
    KeptSet set;
    SmallVector<int64_t> least, counts;
  };
  std::vector<Part> parts;
  unsigned next = 0;
  if (MaskInterface mask = op.getMaskAttr()) {
    for (KeptSet &set : mask.kept(op.getBatch().size())) {
      Part part;
      for (unsigned i = 0; i < set.symbols.size(); ++i, next += 2) {
        part.least.push_back(integerAt(values, op.getSymbols()[next]));
        part.counts.push_back(integerAt(values, op.getSymbols()[next + 1]) - part.least.back() + 1);
      }
      part.set = std::move(set);
      parts.push_back(std::move(part));
    }
  }
  // Finds whether the pair of the current row and key k is kept for some values of the symbols and of the dense
  // operands (`may`), and whether it is kept for all such values (`must`).
  auto test = [&](int64_t k, bool &may, bool &must) {
    may = must = !op.getMask();
    pair.back() = k;
    for (const Part &part : parts) {
      bool always = part.set.tests.empty();
      forEachIndex(part.counts, [&](ArrayRef<int64_t> index) {
        SmallVector<int64_t> symbols(part.least);
        for (auto [symbol, i] : llvm::zip_equal(symbols, index))
          symbol += i;
        bool isIn = holds(part.set.pairs, pair, symbols);
        may |= isIn;
        always &= isIn;
      });
      must |= always;
    }
  };

  int64_t lo = keys, hi = 0, run = 0, longest = 0, runEnd = 0;
  for (int64_t k = 0; k < keys; ++k) {
    bool isNeeded = false, isWhole = rows > 0;
    for (int64_t row = 0; row < rows; ++row) {
      pair[pair.size() - 2] = q + row;
      bool may, must;
      test(k, may, must);
      isNeeded |= may;
      isWhole &= must;
    }
    if (isNeeded) {
      lo = std::min(lo, k);
      hi = k + 1;
    }
    run = isWhole ? run + 1 : 0;
    if (run > longest) {
      longest = run;
      runEnd = k + 1;
    }
  }
  if (hi == 0)
    lo = 0;
  int64_t fullLo = longest < step ? lo : runEnd - longest;
  int64_t fullHi = fullLo + longest / step * step;
  SmallVector<ReferenceTensor> results;
  for (int64_t bound : {lo, fullLo, fullHi, hi})
    results.emplace_back(ArrayRef<int64_t>(), bound);
  return results;
}

ReferenceResults attn::evaluate(OnlineInitOp op, const ReferenceValues &values) {
  SmallVector<ReferenceTensor> results;
  constexpr double kStart[] = {-kInfinity, 0, 0};
  for (auto [out, start] : llvm::zip_equal(op.getDpsInits(), kStart))
    results.emplace_back(values.at(out).shape, start);
  return results;
}

static SmallVector<ReferenceTensor> getAll(ValueRange outs, const ReferenceValues &values) {
  return llvm::map_to_vector(outs, [&](Value out) { return values.at(out); });
}

/// `tensor` with its last two dimensions swapped if the op has queries in `rows`. The functions below have queries in
/// the last dimension.
static ReferenceTensor withQueriesLast(ReferenceTensor tensor, bool rows) {
  if (!rows)
    return tensor;
  SmallVector<int64_t> shape(tensor.shape);
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  ReferenceTensor result(shape);
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> swapped(index);
    std::swap(swapped[index.size() - 1], swapped[index.size() - 2]);
    result.at(index) = tensor.at(swapped);
  });
  return result;
}

/// Element (i, j) of a tile. The tile may be in groups of elements along i. With `isTransposed`, the dimensions of the
/// tile are (j, i).
static double atGroup(const ReferenceTensor &tile, int64_t i, int64_t j,
                      bool isTransposed = false) {
  SmallVector<int64_t> at = {i, j};
  if (tile.shape.size() == 3) {
    at[0] = i / tile.shape.back();
    at.push_back(i % tile.shape.back());
  }
  if (isTransposed)
    std::swap(at[0], at[1]);
  return tile.at(at);
}

/// Returns `value` rounded to `type`.
static double roundTo(double value, Type type) {
  APFloat rounded(value);
  bool losesInfo;
  rounded.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
  return rounded.convertToDouble();
}

/// The scores (k, q) of a tile, -inf where a pair is not kept.
template <typename OpTy>
static ReferenceTensor scoresOf(OpTy op, PairScore &score, const ReferenceValues &values) {
  ReferenceTensor query = withQueriesLast(values.at(op.getQuery()), op.getRows());
  const ReferenceTensor &key = values.at(op.getKey());
  ReferenceTensor scores({key.shape[0], query.shape[1]});
  forEachIndex(scores.shape, [&](ArrayRef<int64_t> at) {
    double product = 0;
    for (int64_t d = 0; d < key.shape[1]; ++d)
      product += key.at({at[0], d}) * atGroup(query, d, at[1]);
    scores.at(at) = score.scoreInTile(at[0], at[1], product);
  });
  return scores;
}

ReferenceResults attn::evaluate(OnlineStepOp op, const ReferenceValues &values) {
  FailureOr<PairScore> score = PairScore::get(op, getMaps(op.getCaptureMaps()), values);
  if (failed(score))
    return failure();
  const ReferenceTensor &value = values.at(op.getValue());
  ReferenceTensor p = scoresOf(op, *score, values);
  auto rounded = [&](double probability) {
    return op.getProbabilities()
               ? roundTo(probability, getElementTypeOrSelf(op.getProbabilities().getType()))
               : probability;
  };
  SmallVector<ReferenceTensor> results = getAll(op.getDpsInits(), values);
  results[3] = withQueriesLast(results[3], op.getRows());
  ReferenceTensor &max = results[1], &sum = results[2], &acc = results[3];
  double unit = op.getUnit();
  int64_t numKeys = p.shape[0];
  for (int64_t q = 0; q < p.shape[1]; ++q) {
    double before = unit * max.at(q), m = before;
    for (int64_t k = 0; k < numKeys; ++k)
      m = std::max(m, p.at({k, q}));
    // If all scores so far are -inf, the state keeps its initial values.
    double a = m == -kInfinity ? 1 : std::exp(before - m);
    max.at(q) = m / unit;
    sum.at(q) *= a;
    for (int64_t k = 0; k < numKeys; ++k)
      sum.at(q) += p.at({k, q}) = probabilityOf(p.at({k, q}), m);
    for (int64_t e = 0; e < acc.shape[0]; ++e) {
      acc.at({e, q}) *= a;
      for (int64_t k = 0; k < numKeys; ++k)
        if (score->keepsInTile(k, q))
          acc.at({e, q}) += atGroup(value, k, e, op.getTransposed()) * rounded(p.at({k, q}));
    }
  }
  acc = withQueriesLast(acc, op.getRows());
  // These outputs are scratch, and no code may read them. They become NaN, so that tests find code that reads them.
  results[0] = ReferenceTensor(values.at(op.getScores()).shape, kNaN);
  if (op.getProbabilities())
    results[4] = ReferenceTensor(results[4].shape, kNaN);
  return results;
}

ReferenceResults attn::evaluate(OnlineProbabilitiesOp op, const ReferenceValues &values) {
  FailureOr<PairScore> score = PairScore::get(op, getMaps(op.getCaptureMaps()), values);
  if (failed(score))
    return failure();
  const ReferenceTensor &max = values.at(op.getMax()), &sum = values.at(op.getSum());
  SmallVector<ReferenceTensor> results = {scoresOf(op, *score, values)};
  forEachIndex(results[0].shape, [&](ArrayRef<int64_t> at) {
    int64_t k = at[0], q = at[1];
    double &p = results[0].at(at);
    p = sum.at(q) == 0             ? valueOf(op.getEmptyRow())
        : score->keepsInTile(k, q) ? probabilityOf(p, op.getUnit() * max.at(q)) / sum.at(q)
                                   : 0;
  });
  results[0] = withQueriesLast(results[0], op.getRows());
  return results;
}

ReferenceResults attn::evaluate(OnlineMergeOp op, const ReferenceValues &values) {
  const ReferenceTensor &partMax = values.at(op.getPartMax()),
                        &partSum = values.at(op.getPartSum());
  ReferenceTensor partAcc = withQueriesLast(values.at(op.getPartAcc()), op.getRows());
  SmallVector<ReferenceTensor> results = getAll(op.getDpsInits(), values);
  results[2] = withQueriesLast(results[2], op.getRows());
  ReferenceTensor &max = results[0], &sum = results[1], &acc = results[2];
  double scale = op.getScale().convertToDouble();
  int64_t numParts = partMax.shape[0];
  for (int64_t q = 0; q < max.shape[0]; ++q) {
    double m = max.at(q);
    for (int64_t n = 0; n < numParts; ++n)
      m = std::max(m, partMax.at({n, q}));
    auto factorOf = [&](double part) {
      return m == -kInfinity ? 1 : probabilityOf(scale * part, scale * m);
    };
    double a = factorOf(max.at(q));
    max.at(q) = m;
    sum.at(q) *= a;
    for (int64_t e = 0; e < acc.shape[0]; ++e)
      acc.at({e, q}) *= a;
    for (int64_t n = 0; n < numParts; ++n) {
      double b = factorOf(partMax.at({n, q}));
      sum.at(q) += b * partSum.at({n, q});
      for (int64_t e = 0; e < acc.shape[0]; ++e)
        acc.at({e, q}) += b * partAcc.at({n, e, q});
    }
  }
  acc = withQueriesLast(acc, op.getRows());
  return results;
}

ReferenceResults attn::evaluate(OnlineFinishOp op, const ReferenceValues &values) {
  const ReferenceTensor &sum = values.at(op.getSum());
  ReferenceTensor acc = withQueriesLast(values.at(op.getAcc()), op.getRows());
  SmallVector<ReferenceTensor> results = getAll(op.getOut(), values);
  forEachIndex(results[0].shape, [&](ArrayRef<int64_t> at) {
    int64_t q = at[0], e = at[1];
    results[0].at(at) = sum.at(q) == 0 ? valueOf(op.getEmptyRow()) : acc.at({e, q}) / sum.at(q);
  });
  return results;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

ReferenceResults attn::evaluate(PackOp op, const ReferenceValues &values) {
  const ReferenceTensor &source = values.at(op.getSource());
  SmallVector<ReferenceTensor> results = getAll(op.getOuts(), values);
  size_t numBatch = source.shape.size() - 2;
  double scale = op.getScale() ? op.getScale()->convertToDouble() : 1;
  int64_t n = source.shape[op.getFromRows() ? numBatch + 1 : numBatch],
          k = source.shape[op.getFromRows() ? numBatch : numBatch + 1];
  int64_t w = results[0].shape[numBatch + 2], group = op.getGroup();
  Type type = getElementTypeOrSelf(op.getOuts()[0].getType());
  bool rounds = type != getElementTypeOrSelf(op.getSource().getType());
  forEachIndex(results[0].shape, [&](ArrayRef<int64_t> at) {
    int64_t row = at[numBatch] * w + at[numBatch + 2],
            i = at[numBatch + 1] * group + (group > 1 ? at.back() : 0);
    SmallVector<int64_t> from(at.take_front(numBatch));
    if (op.getFromRows())
      from.append({i, row});
    else
      from.append({row, i});
    double packed = row < n && i < k ? scale * source.at(from) : 0;
    results[0].at(at) = rounds ? roundTo(packed, type) : packed;
  });
  return results;
}

//===----------------------------------------------------------------------===//
// Dense masks
//===----------------------------------------------------------------------===//

ReferenceResults attn::evaluate(PackMaskOp op, const ReferenceValues &values) {
  const ReferenceTensor &mask = values.at(op.getSource());
  SmallVector<ReferenceTensor> results = {ReferenceTensor(values.at(op.getWords()).shape)};
  size_t rank = mask.shape.size();
  forEachIndex(mask.shape, [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> word(at);
    word[rank - 2] = at[rank - 1] / kKeysPerWord;
    word[rank - 1] = at[rank - 2];
    if (mask.at(at) != 0)
      results[0].at(word) += static_cast<double>(int64_t(1) << (at[rank - 1] % kKeysPerWord));
  });
  // Doubles represent signed words.
  for (double &word : results[0].elements)
    word = static_cast<int32_t>(static_cast<int64_t>(word));
  return results;
}

ReferenceResults attn::evaluate(TestMaskOp op, const ReferenceValues &values) {
  const ReferenceTensor &words = values.at(op.getWords());
  double none = op.getKeeps() == Polarity::Nonzero ? 0 : -1, full = -1 - none;
  int64_t begin = words.shape[0], end = 0;
  bool all = true;
  forEachIndex(words.shape, [&](ArrayRef<int64_t> at) {
    all &= words.at(at) == full;
    if (words.at(at) == none)
      return;
    begin = std::min(begin, at[0]);
    end = std::max(end, at[0] + 1);
  });
  SmallVector<ReferenceTensor> results;
  for (int64_t result : {begin, end, int64_t(all)})
    results.emplace_back(ArrayRef<int64_t>(), result);
  return results;
}
