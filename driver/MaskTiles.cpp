//===- MaskTiles.cpp - which tiles of each attention are computed ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The function is reduced to the values that masks depend on: the sizes of the attentions, and the operands that the
// masks capture. Only the ops that compute these values are interpreted.
//
//===----------------------------------------------------------------------===//

#include "driver/MaskTiles.h"
#include "dialect/KeyBounds.h"
#include "dialect/Report.h"
#include "driver/Interpreter.h"
#include "frontend/FirstError.h"
#include "frontend/Frontend.h"
#include "passes/plan/OneQuery.h"
#include "support/RunPasses.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

MaskTiles::Counts MaskTiles::count() const {
  Counts counts;
  for (const Row &row : rows) {
    counts.full += row.full;
    counts.partial += row.run - row.full;
    counts.skipped += row.all - row.run;
  }
  return counts;
}

/// Whether `plan` computes whole rows of scores, and hence skips no tiles.
static bool computesWholeRows(PlanAttr plan) {
  return plan.getSchedule() == Schedule::WholeScores || plan.getSchedule() == Schedule::Unfused;
}

static SmallVector<KeptSet> keptOf(MaskInterface mask, PlanAttr plan, unsigned numBatch) {
  return mask ? mask.kept(numBatch)
              : SmallVector<KeptSet>{KeptSet::always(plan.getContext(), numBatch)};
}

/// Returns the keys for which each tile of queries computes scores, for one batch coordinate. `symbolAt` gives the
/// value of a captured operand for a query.
static std::vector<MaskTiles::Row>
rowsOf(PlanAttr plan, MaskInterface mask, ArrayRef<int64_t> batch, int64_t queries, int64_t keys,
       llvm::function_ref<int64_t(unsigned capture, int64_t query)> symbolAt) {
  std::vector<MaskTiles::Row> result;
  SmallVector<KeptSet> kept = keptOf(mask, plan, batch.size());
  KeyBounds bounds = KeyBounds::get(plan.getContext(), kept, batch.size(), plan.getK());
  int64_t step = plan.getK(), part = plan.getPart() ? plan.getPart() : std::max<int64_t>(keys, 1);
  for (int64_t q = 0; q < queries; q += plan.getQ()) {
    if (computesWholeRows(plan)) {
      int64_t tiles = llvm::divideCeil(keys, step), full = mask ? 0 : keys;
      result.push_back({0, 0, full, keys, full / step, tiles, tiles});
      continue;
    }
    int64_t rows = std::min(plan.getQ(), queries - q);
    SmallVector<int64_t> operands(batch);
    operands.append({q, rows, keys});
    for (const KeptSet &set : kept)
      for (unsigned capture : set.symbols) {
        int64_t least = std::numeric_limits<int64_t>::max(), greatest = 0;
        for (int64_t row = q; row < q + rows; ++row) {
          int64_t value = symbolAt(capture, row);
          least = std::min(least, value);
          greatest = std::max(greatest, value);
        }
        operands.append({least, greatest});
      }
    auto [lo, fullLo, fullHi, hi] = bounds.evaluate(operands);
    MaskTiles::Row row = {lo, fullLo, fullHi, hi, 0, 0, 0};
    for (int64_t first = 0; first < keys; first += part) {
      int64_t end = std::min(first + part, keys);
      operands[batch.size() + 2] = end;
      // The tiles of a part start at partLo, as in attn.count_tiles.
      auto [partLo, partFullLo, partFullHi, partHi] =
          bounds.relativeTo(first, bounds.evaluate(operands));
      row.full += (partFullHi - partFullLo) / step;
      row.run += llvm::divideCeil(partHi - partLo, step);
      row.all += llvm::divideCeil(end - first, step);
    }
    result.push_back(row);
  }
  return result;
}

SkippedShare attn::getSkippedShare(AttentionOp op) {
  PlanAttr plan = *op.getPlan();
  MaskInterface mask = op.getMaskAttr();
  unsigned numBatch = op.getNumBatch();
  if (!mask || computesWholeRows(plan))
    return {0, false};
  SmallVector<KeptSet> kept = mask.kept(numBatch);
  // Lengths and packed masks are known only at the call.
  bool mayGrow = llvm::any_of(kept, [&](const KeptSet &set) {
    return !set.symbols.empty() || llvm::any_of(set.tests, [&](DenseTest test) {
      return findWordOfKey(op.getCaptureMap(test.capture)).has_value();
    });
  });
  KeyBounds bounds = KeyBounds::get(op.getContext(), kept, numBatch, plan.getK());
  // With more tiles of queries, rowsOf() would take too long.
  constexpr int64_t kMost = int64_t(1) << 16;
  auto sizeOf = [&](AffineMap map, Value value, unsigned dim) {
    auto position = map.getResultPosition(getAffineDimExpr(dim, op.getContext()));
    return position ? cast<ShapedType>(value.getType()).getDimSize(*position) : 1;
  };
  MaskTiles tiles;
  tiles.queries = sizeOf(op.getQueryMap(), op.getQuery(), op.getQDim());
  tiles.keys = sizeOf(op.getKeyMap(), op.getKey(), op.getKDim());
  tiles.keyTile = plan.getK();
  if (ShapedType::isDynamic(tiles.queries) || ShapedType::isDynamic(tiles.keys) ||
      tiles.queries / plan.getQ() > kMost)
    return {0, true};
  // If the bounds depend on a batch dimension, batch coordinates can have different shares.
  if (llvm::any_of(llvm::seq(numBatch), [&](unsigned i) { return bounds.isFunctionOf(i); }))
    return {0, true};
  tiles.rows = rowsOf(plan, mask, SmallVector<int64_t>(numBatch, 0), tiles.queries, tiles.keys,
                      [&](unsigned, int64_t) { return tiles.keys; });
  auto [full, partial, skipped] = tiles.count();
  int64_t all = full + partial + skipped;
  return {all ? double(skipped) / double(all) : 0, mayGrow};
}

namespace {

/// A module of stage `plan`, in a context of its own.
class Planned {
public:
  Planned() : context(registry(), MLIRContext::Threading::DISABLED), error(context, "plan") {
    loadFrontendDialects(context);
    context.loadAllAvailableDialects();
  }

  llvm::Error parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    return module ? llvm::Error::success() : error.take();
  }
  /// Returns the function `entry` of the first level, or the first function if `entry` is empty.
  llvm::Expected<func::FuncOp> find(StringRef entry);
  llvm::Error fail(const Twine &message) { return llvm::createStringError(message); }

  MLIRContext context;
  FirstError error;
  OwningOpRef<ModuleOp> module;

private:
  static DialectRegistry registry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    registerAllExtensions(registry);
    registry.insert<AttnDialect>();
    return registry;
  }
};

/// An attention, and the results of the reduced function for it.
struct Attention {
  Location loc;
  MaskInterface mask;
  PlanAttr plan;
  SmallVector<AffineMap> captureMaps;
  unsigned numBatch;
  SmallVector<unsigned> captures;                     // the captured operands that the mask reads
  SmallVector<int64_t> sizes;                         // sizes of (batch..., q, k)
  SmallVector<std::optional<ReferenceTensor>> values; // value of each captured operand, if known
};

} // namespace

llvm::Expected<func::FuncOp> Planned::find(StringRef entry) {
  auto levels = module->getOps<ModuleOp>();
  if (levels.empty())
    return fail("expected a module of stage plan, got one without levels");
  for (func::FuncOp function : (*levels.begin()).getOps<func::FuncOp>())
    if (!function.getName().ends_with(".pack") && (entry.empty() || function.getName() == entry))
      return function;
  return fail("expected a function '" + entry + "', got none");
}

/// Whether `value` depends on the elements of an argument, not only on the sizes of arguments.
static bool readsArguments(Value value) {
  SmallVector<Value> worklist = {value};
  DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (auto argument = dyn_cast<BlockArgument>(next)) {
      if (isa<func::FuncOp>(argument.getOwner()->getParentOp()))
        return true;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (isa<tensor::DimOp>(op))
      continue;
    op->walk([&](Operation *inner) {
      if (!isa<tensor::DimOp>(inner))
        llvm::append_range(worklist, inner->getOperands());
    });
  }
  return false;
}

static SmallVector<unsigned> capturesOf(AttentionOp op) {
  llvm::SmallSetVector<unsigned, 4> captures;
  if (MaskInterface mask = op.getMaskAttr())
    for (const KeptSet &set : mask.kept(op.getNumBatch())) {
      captures.insert_range(set.symbols);
      for (DenseTest test : set.tests)
        captures.insert(test.capture);
    }
  return captures.takeVector();
}

/// Makes `function` return the sizes and captured operands of its attentions, removes the ops that these results do not
/// need, and interprets the function.
static llvm::Expected<std::vector<Attention>> evaluateMasks(Planned &planned, func::FuncOp function,
                                                            const MaskCall &call) {
  std::vector<Attention> attentions;
  SmallVector<AttentionOp> ops;
  function.walk([&](AttentionOp op) { ops.push_back(op); });
  Operation *terminator = function.getBody().front().getTerminator();
  SmallVector<Value> results;
  for (AttentionOp op : ops) {
    if (findGeneral(op))
      continue; // the picture shows the other plan
    Operation *parent = findForOneQuery(op) ? op->getParentOp()->getParentOp() : op->getParentOp();
    if (parent != function)
      return planned.fail("expected attentions outside loops, got one inside");
    Attention next{
        op.getLoc(), op.getMaskAttr(), *op.getPlan(), {}, op.getNumBatch(), capturesOf(op), {}, {}};
    for (unsigned i = 0; i < op.getCaptures().size(); ++i)
      next.captureMaps.push_back(op.getCaptureMap(i));
    next.values.resize(op.getCaptures().size());
    OpBuilder builder(terminator);
    SmallVector<Range> domain = op.getIterationDomain(builder);
    for (const Range &range : ArrayRef(domain).take_front(op.getKDim() + 1))
      results.push_back(getValueOrCreateConstantIndexOp(builder, op.getLoc(), range.size));
    for (unsigned capture : next.captures)
      if (call.hasValues || !readsArguments(op.getCaptures()[capture])) {
        results.push_back(op.getCaptures()[capture]);
        next.values[capture].emplace();
      }
    attentions.push_back(std::move(next));
  }
  terminator->setOperands(results);
  function.setResAttrsAttr(nullptr);
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    function.removeArgAttr(i, AttnDialect::kInOutAttr); // refers to a result that was removed
  function.setFunctionType(FunctionType::get(&planned.context, function.getArgumentTypes(),
                                             TypeRange(ValueRange(results))));

  // Resolve sizes, so that no tensor.dim keeps the op that produces its tensor alive.
  PassManager manager(&planned.context);
  manager.addPass(memref::createResolveShapedTypeResultDimsPass());
  manager.addPass(createCanonicalizerPass());
  if (failed(runPasses(manager, *planned.module)))
    return planned.error.take();
  llvm::BitVector unused(function.getNumArguments());
  bool readsPacked = false;
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    bool isPacked = bool(function.getArgAttr(i, AttnDialect::kPackedAttr));
    readsPacked |= isPacked && !argument.use_empty();
    if ((isPacked || function.getArgAttr(i, AttnDialect::kWeightAttr)) && argument.use_empty())
      unused.set(i);
  }
  auto level = function->getParentOfType<ModuleOp>();
  if (auto pack = level.lookupSymbol<func::FuncOp>((function.getName() + ".pack").str());
      pack && !readsPacked)
    pack.erase();
  (void)function.eraseArguments(unused);
  if (!call.hasValues)
    for (Value result : function.getBody().front().getTerminator()->getOperands())
      if (result.getType().isIndex() && readsArguments(result))
        return planned.fail("expected sizes that follow from those of the inputs, got one that "
                            "depends on the elements of an input");
  ReferenceResults values = interpret(level, function.getName(), call.inputs, call.weights);
  if (failed(values))
    return planned.error.take();
  const ReferenceTensor *value = values->begin();
  for (Attention &attention : attentions) {
    for (unsigned i = 0; i < attention.numBatch + 2; ++i)
      attention.sizes.push_back((value++)->elements[0]);
    for (unsigned capture : attention.captures)
      if (attention.values[capture])
        attention.values[capture] = *value++;
  }
  return attentions;
}

namespace {
/// The pictures of one attention.
class Pictures {
public:
  explicit Pictures(const Attention &attention)
      : attention(attention), numBatch(attention.numBatch), queries(attention.sizes[numBatch]),
        keys(attention.sizes[numBatch + 1]) {
    kept = keptOf(attention.mask, attention.plan, numBatch);
  }

  /// Returns one picture for each coordinate of the batch dimensions that the mask depends on.
  std::vector<MaskTiles> all();

private:
  bool isKnown() const {
    return llvm::all_of(attention.captures,
                        [&](unsigned capture) { return attention.values[capture].has_value(); });
  }
  /// Returns the element of captured operand `capture` for a pair. If the operand is not known, returns its greatest
  /// value, the number of keys.
  int64_t symbolAt(unsigned capture, ArrayRef<int64_t> pair) const {
    if (!attention.values[capture])
      return keys;
    return attention.values[capture]->at(attention.captureMaps[capture], point(pair));
  }
  /// The point (batch..., q, k, d, e) of a pair. Captured operands do not depend on d and e.
  SmallVector<int64_t> point(ArrayRef<int64_t> pair) const {
    SmallVector<int64_t> point(pair);
    point.append({0, 0});
    return point;
  }
  MaskTiles draw(ArrayRef<int64_t> batch) const;

  Attention attention;
  unsigned numBatch;
  int64_t queries, keys;
  SmallVector<KeptSet> kept;
};
} // namespace

MaskTiles Pictures::draw(ArrayRef<int64_t> batch) const {
  MaskTiles result;
  result.source = getSource(attention.loc);
  llvm::raw_string_ostream mask(result.mask);
  if (attention.mask)
    mask << attention.mask;
  else
    mask << "none";
  result.schedule = stringifySchedule(attention.plan.getSchedule()).str();
  result.queries = queries;
  result.keys = keys;
  result.queryTile = attention.plan.getQ();
  result.keyTile =
      computesWholeRows(attention.plan) ? std::max<int64_t>(keys, 1) : attention.plan.getK();
  result.copies = 1;
  result.rows = rowsOf(attention.plan, attention.mask, batch, queries, keys,
                       [&](unsigned capture, int64_t query) {
                         SmallVector<int64_t> pair(batch);
                         pair.append({query, 0});
                         return symbolAt(capture, pair);
                       });
  SmallVector<int64_t> origin(batch);
  if (isKnown())
    result.keeps = [this, origin](int64_t q, int64_t k) {
      SmallVector<int64_t> pair(origin);
      pair.append({q, k});
      SmallVector<double> captured(attention.values.size());
      for (unsigned capture : attention.captures)
        captured[capture] =
            elementAt(*attention.values[capture], attention.captureMaps[capture], point(pair));
      return isKept(kept, pair, captured);
    };
  else
    result.note = llvm::any_of(kept, [](const KeptSet &set) { return !set.tests.empty(); })
                      ? "the mask is a tensor that is given at the call"
                      : "lengths are given at the call; the picture shows the greatest";
  return result;
}

std::vector<MaskTiles> Pictures::all() {
  // A batch dimension that the mask does not depend on needs only one picture.
  SmallVector<int64_t> shape;
  std::string names;
  int64_t copies = 1;
  for (unsigned i = 0; i < numBatch; ++i) {
    bool matters = llvm::any_of(kept, [&](const KeptSet &set) {
      return llvm::any_of(set.pairs.getConstraints(),
                          [&](AffineExpr expr) { return expr.isFunctionOfDim(i); });
    });
    for (unsigned capture : attention.captures)
      matters |= attention.captureMaps[capture].isFunctionOfDim(i);
    shape.push_back(matters && isKnown() ? attention.sizes[i]
                                         : std::min<int64_t>(attention.sizes[i], 1));
    if (shape.back() != attention.sizes[i])
      copies *= attention.sizes[i];
  }
  std::vector<MaskTiles> result;
  forEachIndex(shape, [&](ArrayRef<int64_t> batch) {
    MaskTiles next = draw(batch);
    next.copies = copies;
    bool varies = llvm::any_of(shape, [](int64_t size) { return size > 1; });
    if (varies)
      next.batch =
          "(" +
          llvm::join(llvm::map_range(batch, [](int64_t i) { return std::to_string(i); }), ", ") +
          ")";
    result.push_back(std::move(next));
  });
  return result;
}

llvm::Expected<std::vector<MaskTiles>> attn::findMaskTiles(StringRef text, StringRef entry,
                                                           const MaskCall &call) {
  // The pictures outlive this function and read the masks, so they share ownership of the module.
  auto planned = std::make_shared<Planned>();
  if (llvm::Error error = planned->parse(text))
    return std::move(error);
  llvm::Expected<func::FuncOp> function = planned->find(entry);
  if (!function)
    return function.takeError();
  llvm::Expected<std::vector<Attention>> attentions = evaluateMasks(*planned, *function, call);
  if (!attentions)
    return attentions.takeError();
  std::vector<MaskTiles> result;
  for (const Attention &attention : *attentions) {
    auto pictures = std::make_shared<Pictures>(attention);
    for (MaskTiles &tiles : pictures->all()) {
      if (tiles.keeps)
        tiles.keeps = [planned, pictures, keeps = std::move(tiles.keeps)](int64_t q, int64_t k) {
          return keeps(q, k);
        };
      result.push_back(std::move(tiles));
    }
  }
  return result;
}

llvm::Expected<std::vector<ReferenceTensor>>
attn::makeZeroInputs(StringRef text, StringRef entry, const llvm::StringMap<int64_t> &sizes) {
  Planned planned;
  if (llvm::Error error = planned.parse(text))
    return std::move(error);
  llvm::Expected<func::FuncOp> function = planned.find(entry);
  if (!function)
    return function.takeError();
  llvm::StringMap<SymbolAttr> symbols;
  if (auto list = (*function)->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr))
    for (SymbolAttr symbol : list.getAsRange<SymbolAttr>())
      symbols[symbol.getName()] = symbol;
  for (const auto &[name, size] : sizes) {
    SymbolAttr symbol = symbols.lookup(name);
    if (!symbol)
      return planned.fail("expected --dim of a dynamic dimension, got '" + name + "'");
    if (size < symbol.getMin() || size > symbol.getMax())
      return planned.fail("expected --dim=" + name + " in [" + Twine(symbol.getMin()) + ", " +
                          Twine(symbol.getMax()) + "], got " + Twine(size));
  }
  std::vector<ReferenceTensor> inputs;
  for (BlockArgument argument : function->getArguments()) {
    unsigned i = argument.getArgNumber();
    if (function->getArgAttr(i, AttnDialect::kWeightAttr) ||
        function->getArgAttr(i, AttnDialect::kPackedAttr))
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    auto dims = function->getArgAttrOfType<ArrayAttr>(i, AttnDialect::kDimsAttr);
    SmallVector<int64_t> shape(type.getShape());
    for (auto [axis, size] : llvm::enumerate(shape)) {
      if (!ShapedType::isDynamic(size))
        continue;
      StringRef name = dims ? cast<StringAttr>(dims[axis]).getValue() : "";
      auto known = sizes.find(name);
      if (known == sizes.end())
        return planned.fail("expected --dim=" + name + "=n for --explain-mask");
      size = known->second;
    }
    inputs.emplace_back(shape);
  }
  return inputs;
}
