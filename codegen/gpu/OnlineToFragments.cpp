//===- OnlineToFragments.cpp - the online softmax in registers -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %acc = memref.alloca() : memref<64x64xf32, private>       // of the block of threads
//   attn.online_step rows ins(%q, %k, %v : memref<?x64xbf16, workgroup>, ...) outs(%scores, %max, %sum, %acc)
// becomes, for each thread,
//   %acc = memref.alloca() : memref<32xf32>                   // the elements of this lane
//   %s = nvvm.mma.sync of rows of %q and of %k                // 16 queries by 8 keys each
//   %s = scores, -inf where a pair is hidden
//   %m = the maximum of %max and of %s, over the 4 lanes that share a query
//   %p = 2^(%s - %m)    %a = 2^(%max - %m)    %sum = %a * %sum + %p
//   %acc = %a * %acc + nvvm.mma.sync of %p, rounded, and rows of %v
//
// A warp computes a multiple of 16 queries. Its lanes share each 16 x 8 accumulator (MatrixMultiply.h): a lane holds
// two neighbouring keys of two queries. The 4 lanes of a query keep partial sums of its probabilities, which
// attn.online_finish adds. All indices into the memory of a lane are constants, so LLVM keeps this memory in registers.
//
// A hidden pair has probability 0, but 0 * NaN is NaN. If pairs can be hidden, a warp therefore first tests whether all
// values of the tile are finite. If not, it multiplies by 0 in place of each infinity and NaN. Two more products add up
// the probabilities of values that are infinity or NaN, and of values that are minus infinity or NaN. Where the first
// sum is positive, infinity is added to the output; where the second sum is positive, minus infinity is added. Where
// both sums are positive, the output becomes NaN.
// Test: test/codegen/gpu/online-to-fragments.mlir, test/ptx/
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/NonFinite.h"
#include "codegen/gpu/PairScores.h"
#include "codegen/gpu/Passes.h"
#include "codegen/gpu/TileCopies.h"
#include "codegen/gpu/WarpgroupMultiply.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_ONLINETOFRAGMENTS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// The bytes of two elements of 16 bits.
static constexpr uint64_t kPairBytes = 4;
/// The number of lanes that share a query.
static constexpr int64_t kLanesOfRow = 4;

static Value createAdd(ThreadBuilder &b, Value x, Value y) {
  return arith::AddFOp::create(b, x, y);
}
/// The greater of two numbers; of a number and NaN, the number.
static Value createMax(ThreadBuilder &b, Value x, Value y) {
  return arith::MaxNumFOp::create(b, x, y);
}
static Value createMultiply(ThreadBuilder &b, Value x, Value y) {
  return arith::MulFOp::create(b, x, y);
}
static Value createMultiplyAdd(ThreadBuilder &b, Value x, Value y, Value z) {
  return math::FmaOp::create(b, x, y, z);
}
static Value createSubtract(ThreadBuilder &b, Value x, Value y) {
  return arith::SubFOp::create(b, x, y);
}

namespace {
/// Computes probabilities of one query as 2^((score - subtracted) * scale + added). One of `subtracted` and `added` is
/// 0. A large maximum is subtracted, because the rounding error of maximum * scale would be too large. For any other
/// maximum, `added` is -maximum * scale, and an exponent takes one multiply-add.
struct Exponents {
  Exponents(ThreadBuilder &b, Value max, double scale) : scale(b.f32(scale)) {
    // For a smaller maximum, the rounding error of maximum * scale is at most 2^-13.
    double large = 4096 / scale;
    Value zero = b.f32(0);
    isLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGE, math::AbsFOp::create(b, max),
                                    b.f32(large));
    // If every score is -inf, the maximum is -inf too, and -inf - -inf would be NaN.
    Value origin = arith::SelectOp::create(b, createIsLowest(b, max), zero, max);
    subtracted = arith::SelectOp::create(b, isLarge, origin, zero);
    added = arith::SelectOp::create(b, isLarge, zero, createMultiply(b, origin, b.f32(-scale)));
  }

  /// The probability of a score from which `subtracted` is already subtracted.
  Value probability(ThreadBuilder &b, Value difference) const {
    return createExp2(b, createMultiplyAdd(b, difference, scale, added));
  }
  /// The factor that turns probabilities relative to the maximum of `before` into probabilities relative to this
  /// maximum.
  Value changeFrom(ThreadBuilder &b, const Exponents &before) const {
    return createExp2(b, createMultiplyAdd(b, createSubtract(b, before.subtracted, subtracted),
                                           scale, createSubtract(b, added, before.added)));
  }

  Value scale, isLarge, subtracted, added;
};
} // namespace

/// Combines the values of the lanes that share a query. Each of these lanes gets the result.
static Value reduceRow(ThreadBuilder &b, Value value,
                       function_ref<Value(ThreadBuilder &, Value, Value)> combine) {
  for (int64_t distance = 1; distance < kLanesOfRow; distance *= 2) {
    Value other =
        gpu::ShuffleOp::create(b, value, int32_t(distance), int32_t(kWarp), gpu::ShuffleMode::XOR)
            .getShuffleResult();
    value = combine(b, value, other);
  }
  return value;
}

namespace {

/// The elements that a lane holds of a buffer in registers.
struct LaneMemory {
  Value memory;

  Value load(ThreadBuilder &b, int64_t i) const {
    return memref::LoadOp::create(b, memory, ValueRange{b.constant(i)});
  }
  void store(ThreadBuilder &b, Value value, int64_t i) const {
    memref::StoreOp::create(b, value, memory, ValueRange{b.constant(i)});
  }
};

/// The state of a tile of queries, distributed over the lanes of the warps of a block.
struct Fragments {
  int64_t queries; ///< the number of queries of the tile
  int64_t size;    ///< the size of a head
  int64_t rows;    ///< the number of queries of a warp
  int64_t warps;   ///< the number of warps of the block of threads
  Value group;     ///< the number of the warpgroup of this thread
  Value accBuffer; ///< the buffer of the accumulators in the task
  LaneMemory max, sum, acc;
  LaneMemory probabilities; ///< i32: left factors for the next step, if steps overlap

  int64_t blocks() const { return rows / kMatrixRows; }
  int64_t columns() const { return llvm::divideCeil(size, 2 * kMatrixColumns) * 2; }
  /// The number of the first query of this warp.
  Value firstRow(ThreadBuilder &b) const { return b.multiply(b.warp(), rows); }

  Accumulator loadSums(ThreadBuilder &b, int64_t block, int64_t column) const {
    Accumulator result;
    for (auto [i, value] : llvm::enumerate(result))
      value = acc.load(b, (block * columns() + column) * 4 + int64_t(i));
    return result;
  }
  void storeSums(ThreadBuilder &b, const Accumulator &sums, int64_t block, int64_t column) const {
    for (auto [i, value] : llvm::enumerate(sums))
      acc.store(b, value, (block * columns() + column) * 4 + int64_t(i));
  }
};

class Lowering {
public:
  explicit Lowering(func::FuncOp function)
      : function(function), warps(getThreads(function) / kWarp) {}

  LogicalResult run();

private:
  LogicalResult findStates();
  const Fragments &stateOf(Value max) { return states.find(rootOf(max))->second; }
  /// The buffer of which `view` is a part.
  static Value rootOf(Value view) {
    while (auto subview = view.getDefiningOp<memref::SubViewOp>())
      view = subview.getSource();
    return view;
  }

  void lower(OnlineInitOp op);
  void lower(OnlineStepOp op);
  void lower(OnlineProbabilitiesOp op);
  void lower(OnlineFinishOp op);
  LogicalResult lower(linalg::LinalgOp op);
  LogicalResult lowerCopy(linalg::CopyOp op);

  func::FuncOp function;
  int64_t warps;
  /// Maps the buffer of maxima of a state to the state.
  llvm::MapVector<Value, Fragments> states;
  /// Maps the buffer of sums of a state to its buffer of maxima.
  llvm::DenseMap<Value, Value> maxOfSum;
};

} // namespace

LogicalResult Lowering::findStates() {
  // The largest number of keys of a tile whose probabilities are kept for the next step.
  int64_t keysOfOverlap = 0;
  WalkResult steps = function.walk([&](OnlineStepOp op) -> WalkResult {
    for (Value tile : {op.getQuery(), op.getKey()}) {
      auto view = tile.getDefiningOp<memref::SubViewOp>();
      auto type = cast<MemRefType>(view ? view.getSource().getType() : tile.getType());
      if (type.getRank() != (view ? 3 : 2) || !type.hasStaticShape())
        return op.emitOpError() << "expected a tile of rank 2, or a part of a buffer of tiles, of "
                                   "rank 3, with static sizes, got one in memory of type "
                                << type;
    }
    if (op->hasAttr(AttnDialect::kOverlapAttr))
      keysOfOverlap =
          std::max(keysOfOverlap, cast<MemRefType>(op.getKey().getType()).getDimSize(0));
    return WalkResult::advance();
  });
  if (steps.wasInterrupted())
    return failure();
  WalkResult walk = function.walk([&](OnlineInitOp op) -> WalkResult {
    Value acc = rootOf(op.getAcc()), max = rootOf(op.getMax());
    if (isIn(acc, sharedSpace(op.getContext())))
      return WalkResult::advance(); // MergeToThreads lowers it
    auto type = cast<MemRefType>(acc.getType());
    if (!op.getRows() || !isIn(acc, registerSpace(op.getContext())) || !type.hasStaticShape() ||
        type.getDimSize(0) % (warps * kMatrixRows) != 0)
      return op.emitOpError() << "expected a multiple of 16 queries in registers for each of "
                              << warps << " warps, got " << type;
    Fragments state;
    state.queries = type.getDimSize(0);
    state.size = type.getDimSize(1);
    state.rows = state.queries / warps;
    state.warps = warps;
    state.accBuffer = acc;
    ThreadBuilder b(op.getLoc(), OpBuilder::atBlockBegin(&function.front()));
    // The shuffle has the same result in all lanes, so NVIDIA's assembler can keep values that are computed from this
    // result in registers that the lanes of a warp share.
    Value ofThread = b.toI32(b.divide(b.warp(), kWarpgroupWarps));
    state.group = arith::IndexCastOp::create(
        b, b.getIndexType(),
        gpu::ShuffleOp::create(b, ofThread, 0, int32_t(kWarp), gpu::ShuffleMode::IDX)
            .getShuffleResult());
    auto allocate = [&](int64_t count) {
      return LaneMemory{memref::AllocaOp::create(b, MemRefType::get({count}, b.getF32Type()))};
    };
    state.max = allocate(2 * state.blocks());
    state.sum = allocate(2 * state.blocks());
    state.acc = allocate(4 * state.blocks() * state.columns());
    if (keysOfOverlap)
      state.probabilities = {memref::AllocaOp::create(
          b, MemRefType::get({keysOfOverlap * kMatrixRows / kWarp / 2}, b.getI32Type()))};
    states.insert({max, state});
    maxOfSum[rootOf(op.getSum())] = max;
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return failure(function
                     .walk([&](Operation *op) -> WalkResult {
                       bool isKnown =
                           llvm::TypeSwitch<Operation *, bool>(op)
                               .Case<OnlineStepOp, OnlineProbabilitiesOp>([&](auto online) {
                                 return states.contains(rootOf(online.getMax()));
                               })
                               .Case([&](OnlineFinishOp finish) {
                                 return !isIn(finish.getAcc(), registerSpace(op->getContext())) ||
                                        maxOfSum.contains(rootOf(finish.getSum()));
                               })
                               .Default(true);
                       if (!isKnown)
                         return op->emitOpError(
                             "expected a state in registers that an attn.online_init begins");
                       return WalkResult::advance();
                     })
                     .wasInterrupted());
}

void Lowering::lower(OnlineInitOp op) {
  const Fragments &state = stateOf(op.getMax());
  ThreadBuilder b(op.getLoc(), op);
  Value zero = b.f32(0), lowest = b.f32(-kInfinity);
  for (int64_t i = 0; i < 2 * state.blocks(); ++i) {
    state.max.store(b, lowest, i);
    state.sum.store(b, zero, i);
  }
  for (int64_t i = 0; i < 4 * state.blocks() * state.columns(); ++i)
    state.acc.store(b, zero, i);
  op.erase();
}

//===----------------------------------------------------------------------===//
// attn.online_step
//===----------------------------------------------------------------------===//

namespace {
/// Lowers an attn.online_step or an attn.online_probabilities, for one warp.
struct Step {
  template <typename OpTy>
  Step(OpTy op, const Fragments &state)
      : state(state), afterScores(dyn_cast_if_present<AfterScoresOp>(op->getPrevNode())),
        b(op.getLoc(), op), query(op.getQuery()), key(op.getKey()),
        multiply(*MatrixMultiply::get(getElementTypeOrSelf(key.getType()))),
        isByWarpgroups(isSwizzled(key)),
        keyMatrices(llvm::divideCeil(getTileKeys(), 2 * kMatrixColumns) * 2),
        scores(op, keyMatrices * kMatrixColumns) {}

  void run(OnlineStepOp op);
  void run(OnlineProbabilitiesOp op);

private:
  WarpgroupMultiply wide() { return WarpgroupMultiply(getElementTypeOrSelf(key.getType())); }
  /// The number of keys for which the buffer of the tile has room.
  int64_t getTileKeys() {
    auto view = key.getDefiningOp<memref::SubViewOp>();
    return view ? view.getSourceType().getDimSize(1)
                : cast<MemRefType>(key.getType()).getDimSize(0);
  }
  /// A view with a static shape of the whole buffer of the tile `operand`, including the padding.
  Value wholeTile(Value operand);
  using Row = SmallVector<Accumulator>; // the accumulators of 16 queries
  void computeProducts();
  /// Multiplies queries and keys with wgmma. Waits for the products if `waits`; otherwise only starts them.
  void computeProductsByWarpgroups(bool waits);
  /// The factors by which the sums of two queries are multiplied when the maxima of these queries change.
  using Change = std::array<Value, 2>;
  /// Replaces the scores of 16 queries by probabilities, and updates the maxima and sums. Returns the factors by which
  /// the accumulators must be multiplied.
  Change computeProbabilities(int64_t block);
  static void scale(ThreadBuilder &b, Accumulator &sums, const Change &change) {
    for (auto [i, sum] : llvm::enumerate(sums))
      sum = createMultiply(b, sum, change[i / 2]);
  }
  /// Subtracts `Exponents::subtracted` of each query from the scores of 16 queries.
  void subtract(Row &row, ArrayRef<Exponents> exponents);
  /// The values that the `k`-th factor of probabilities multiplies, as right factors for the accumulators `column` and
  /// `column` + 1 of a row.
  std::array<Factor, 2> loadValues(Value value, int64_t k, int64_t column) {
    return loadValues(value, b.constant(k * multiply.depth()), column);
  }
  std::array<Factor, 2> loadValues(Value value, Value row, int64_t column) {
    return multiply.loadRightRows(b, value, row, b.constant(column * kMatrixColumns),
                                  /*isBesideLoaded=*/false);
  }
  /// An i1: whether some value of the tile is not finite. It is the same in all lanes of a warp and, for wgmma, in all
  /// warps of a warpgroup.
  Value testValues(Value value);
  Factor describeValues(Value value) {
    return wide().describeColumns(b, value, keyMatrices * kMatrixColumns);
  }
  /// Adds the products of probabilities and values to the accumulators.
  void addValues(Value value);
  /// Adds the products of probabilities and values to one accumulator. A value that is not finite has an influence only
  /// where its probability is not 0.
  void addFiniteValues(Value value, int64_t block, int64_t column);
  /// Emits the code of the attn.after_scores before the step, if there is one.
  void runAfterScores();
  /// Lowers a step whose products overlap with a softmax (ProduceTiles.cpp).
  void runOverlapped(OnlineStepOp op, Overlap overlap);
  SmallVector<Accumulator> loadAllSums();
  void storeAllSums(ArrayRef<Accumulator> sums);
  void endSoftmax();

  const Fragments &state;
  AfterScoresOp afterScores; ///< null if there is none
  ThreadBuilder b;
  Value query, key;
  MatrixMultiply multiply;
  bool isByWarpgroups;
  int64_t keyMatrices;
  PairScores scores;
  SmallVector<Row> rows;
  SmallVector<SmallVector<Factor>> probabilities;
};
} // namespace

Value Step::wholeTile(Value operand) {
  auto view = operand.getDefiningOp<memref::SubViewOp>();
  if (!view)
    return operand;
  MemRefType source = view.getSourceType();
  SmallVector<OpFoldResult> sizes = {b.getIndexAttr(1), b.getIndexAttr(source.getDimSize(1)),
                                     b.getIndexAttr(source.getDimSize(2))};
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(source.getShape().drop_front(),
                                                                  source, view.getMixedOffsets(),
                                                                  sizes, view.getMixedStrides());
  return memref::SubViewOp::create(b, type, view.getSource(), view.getMixedOffsets(), sizes,
                                   view.getMixedStrides());
}

void Step::computeProducts() {
  if (isByWarpgroups)
    return computeProductsByWarpgroups(/*waits=*/true);
  Value query = wholeTile(this->query), key = wholeTile(this->key), zero = b.f32(0);
  rows.assign(state.blocks(), Row(keyMatrices, Accumulator{zero, zero, zero, zero}));
  int64_t size = cast<MemRefType>(this->query.getType()).getDimSize(1);
  for (int64_t d = 0; d < size; d += multiply.depth()) {
    SmallVector<Factor> left;
    for (int64_t block = 0; block < state.blocks(); ++block)
      left.push_back(multiply.loadLeft(b, query, b.add(state.firstRow(b), block * kMatrixRows), d));
    for (int64_t pair = 0; pair < keyMatrices / 2; ++pair)
      for (auto [half, right] :
           llvm::enumerate(multiply.loadRight(b, key, b.constant(pair * 2 * kMatrixColumns), d)))
        for (auto [row, factor] : llvm::zip_equal(rows, left))
          multiply.multiply(b, factor, right, row[2 * pair + half]);
  }
}

void Step::computeProductsByWarpgroups(bool waits) {
  Value query = wholeTile(this->query), key = wholeTile(this->key);
  rows.assign(1, Row(keyMatrices));
  int64_t size = llvm::alignTo(cast<MemRefType>(this->query.getType()).getDimSize(1),
                               WarpgroupMultiply::kDepth);
  Value firstRow = b.multiply(state.group, kWarpgroupRows);
  Factor left = wide().describeRows(b, query, firstRow, size),
         right = wide().describeRows(b, key, b.constant(0), size);
  if (waits)
    wide().multiply(b, left, right, WarpgroupMultiply::Right::Rows, /*clears=*/true, rows[0]);
  else
    wide().start(b, left, right, WarpgroupMultiply::Right::Rows, /*clears=*/true, rows[0]);
}

void Step::subtract(Row &row, ArrayRef<Exponents> exponents) {
  // Large maxima are rare, so warps without a large maximum skip the subtractions.
  Value isLarge = arith::OrIOp::create(b, exponents[0].isLarge, exponents[1].isLarge);
  Value any =
      NVVM::VoteSyncOp::create(b, b.getI1Type(), b.i32(-1), isLarge, NVVM::VoteSyncKind::any);
  SmallVector<Value> scores, differences;
  for (Accumulator &sums : row)
    scores.append(sums.begin(), sums.end());
  auto subtracts = scf::IfOp::create(b, ValueRange(scores).getTypes(), any, /*addThenBlock=*/true,
                                     /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(subtracts.elseBlock());
    scf::YieldOp::create(b, scores);
    b.setInsertionPointToStart(subtracts.thenBlock());
    for (auto [i, score] : llvm::enumerate(scores))
      differences.push_back(createSubtract(b, score, exponents[i % 4 / 2].subtracted));
    scf::YieldOp::create(b, differences);
  }
  for (auto [i, difference] : llvm::enumerate(subtracts.getResults()))
    row[i / 4][i % 4] = difference;
}

Step::Change Step::computeProbabilities(int64_t block) {
  Row &row = rows[block];
  scores.apply(b, b.add(state.firstRow(b), block * kMatrixRows), row);
  Value zero = b.f32(0);
  SmallVector<Exponents> exponents;
  Change change;
  for (int64_t half : {0, 1}) {
    Value greatest;
    for (Accumulator &sums : row)
      for (int64_t odd : {0, 1}) {
        Value score = sums[2 * half + odd];
        greatest = greatest ? createMax(b, greatest, score) : score;
      }
    Value before = state.max.load(b, 2 * block + half);
    Value after = createMax(b, before, reduceRow(b, greatest, createMax));
    state.max.store(b, after, 2 * block + half);
    exponents.emplace_back(b, after, scores.exponentScale());
    Exponents exponentsBefore(b, before, scores.exponentScale());
    // While the maximum is -inf, all sums are 0. The computed factor may then be infinity, and 0 times infinity is NaN.
    change[half] = arith::SelectOp::create(b, createIsLowest(b, before), zero,
                                           exponents.back().changeFrom(b, exponentsBefore));
  }
  subtract(row, exponents);
  for (int64_t half : {0, 1}) {
    // Four partial sums shorten the chain of dependent additions.
    std::array<Value, 4> sumsOf;
    for (auto [i, sums] : llvm::enumerate(row))
      for (int64_t odd : {0, 1}) {
        Value &p = sums[2 * half + odd];
        p = exponents[half].probability(b, p);
        Value &sum = sumsOf[(2 * i + odd) % 4];
        sum = sum ? createAdd(b, sum, p) : p;
      }
    Value sum =
        createAdd(b, createAdd(b, sumsOf[0], sumsOf[1]), createAdd(b, sumsOf[2], sumsOf[3]));
    state.sum.store(b, createMultiplyAdd(b, state.sum.load(b, 2 * block + half), change[half], sum),
                    2 * block + half);
  }
  return change;
}

SmallVector<Accumulator> Step::loadAllSums() {
  SmallVector<Accumulator> sums;
  for (int64_t column = 0; column < state.columns(); ++column)
    sums.push_back(state.loadSums(b, 0, column));
  return sums;
}

void Step::storeAllSums(ArrayRef<Accumulator> sums) {
  for (auto [column, accumulator] : llvm::enumerate(sums))
    state.storeSums(b, accumulator, 0, column);
}

/// Whether `condition` holds in some thread of the warpgroup. This is inline assembly, because nvvm.barrier can reduce
/// only with barrier 0.
static Value voteOfWarpgroup(ThreadBuilder &b, Value group, Value condition) {
  Value barrier = b.toI32(b.add(group, kFirstWarpgroupBarrier));
  return createAssembly(b, b.getI1Type(), ValueRange{barrier, condition},
                        "barrier.red.or.pred $0, $1, " + std::to_string(kWarpgroupWarps * kWarp) +
                            ", $2;",
                        "=b,r,b")
      .getResult(0);
}

Value Step::testValues(Value value) {
  NonFinite nonFinite(cast<FloatType>(getElementTypeOrSelf(value.getType())));
  Value tests;
  auto test = [&](const std::array<Factor, 2> &factors) {
    for (const Factor &factor : factors)
      for (Value element : factor) {
        Value result = nonFinite.test(b, element);
        tests = tests ? arith::OrIOp::create(b, tests, result).getResult() : result;
      }
  };
  int64_t count = int64_t(probabilities.front().size());
  if (isByWarpgroups) {
    // The warps of a warpgroup divide the keys among them.
    Value warp = b.remainder(b.warp(), std::min(count, kWarpgroupWarps));
    for (int64_t column = 0; column < state.columns(); column += 2)
      for (int64_t k = 0; k < count; k += kWarpgroupWarps) {
        Value ofWarp = b.add(warp, k);
        if (k + kWarpgroupWarps > count) // the last warps test the last keys again
          ofWarp = b.min(ofWarp, b.constant(count - 1));
        test(loadValues(value, b.multiply(ofWarp, multiply.depth()), column));
      }
    return voteOfWarpgroup(b, state.group, nonFinite.any(b, tests));
  }
  for (int64_t column = 0; column < state.columns(); column += 2)
    for (int64_t k = 0; k < count; ++k)
      test(loadValues(value, k, column));
  return NVVM::VoteSyncOp::create(b, b.getI1Type(), b.i32(-1), nonFinite.any(b, tests),
                                  NVVM::VoteSyncKind::any);
}

void Step::addValues(Value value) {
  if (isByWarpgroups) {
    SmallVector<Accumulator> sums = loadAllSums();
    wide().multiply(b, probabilities[0], describeValues(value), WarpgroupMultiply::Right::Columns,
                    sums);
    return storeAllSums(sums);
  }
  for (int64_t column = 0; column < state.columns(); column += 2) {
    SmallVector<std::array<Accumulator, 2>> sums;
    for (int64_t block = 0; block < state.blocks(); ++block)
      sums.push_back({state.loadSums(b, block, column), state.loadSums(b, block, column + 1)});
    for (size_t k = 0; k < probabilities.front().size(); ++k) {
      auto right = loadValues(value, k, column);
      for (auto [block, ofBlock] : llvm::enumerate(sums))
        for (int64_t half : {0, 1})
          multiply.multiply(b, probabilities[block][k], right[half], ofBlock[half]);
    }
    for (auto [block, ofBlock] : llvm::enumerate(sums))
      for (int64_t half : {0, 1})
        state.storeSums(b, ofBlock[half], block, column + half);
  }
}

void Step::addFiniteValues(Value value, int64_t block, int64_t column) {
  NonFinite nonFinite(cast<FloatType>(getElementTypeOrSelf(value.getType())));
  Value zero = b.f32(0);
  // Add one kind of values after the other, because adding all kinds at once would need more registers.
  auto add = [&](Factor NonFinite::Parts::*kind, Accumulator sums) {
    for (auto [k, left] : llvm::enumerate(probabilities[block])) {
      // Without this barrier, factors would be loaded early, into registers that the path for finite values needs.
      NVVM::SyncWarpOp::create(b, b.i32(-1));
      Factor right = loadValues(value, k, column / 2 * 2)[column % 2];
      multiply.multiply(b, left, nonFinite.split(b, right).*kind, sums);
    }
    return sums;
  };
  Accumulator sums = add(&NonFinite::Parts::finite, state.loadSums(b, block, column));
  auto addWhere = [&](Factor NonFinite::Parts::*kind, double infinity) {
    Accumulator weights = add(kind, {zero, zero, zero, zero});
    for (auto [sum, weight] : llvm::zip_equal(sums, weights)) {
      Value counts = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, weight, zero);
      sum = createAdd(b, sum, arith::SelectOp::create(b, counts, b.f32(infinity), zero));
    }
  };
  addWhere(&NonFinite::Parts::positive, kInfinity);
  addWhere(&NonFinite::Parts::negative, -kInfinity);
  state.storeSums(b, sums, block, column);
}

/// Writes the probabilities of a tile.
void Step::run(OnlineProbabilitiesOp op) {
  computeProducts();
  Value out = op.getProbabilities(), zero = b.f32(0);
  Value numQueries = memref::DimOp::create(b, out, 0), numKeys = memref::DimOp::create(b, out, 1);
  bool isNaN = op.getEmptyRow() == EmptyRow::NaN;
  Value emptyRow = b.f32(isNaN ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  Value firstColumn = b.multiply(b.remainder(b.lane(), kLanesOfRow), 2);
  for (int64_t block = 0; block < state.blocks(); ++block) {
    Value firstRow = b.add(state.firstRow(b), block * kMatrixRows);
    scores.apply(b, firstRow, rows[block]);
    for (int64_t half : {0, 1}) {
      int64_t i = 2 * block + half;
      Value sum = reduceRow(b, state.sum.load(b, i), createAdd);
      Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, zero);
      Value factor = arith::DivFOp::create(b, b.f32(1), sum);
      // The probability of a pair that the mask hides is 0. The probability of any other pair with a score of -inf is
      // NaN if the sum of its row is NaN, and otherwise 0.
      Value hidden = scores.hasMask() ? zero : createMultiply(b, zero, factor);
      Exponents exponents(b, state.max.load(b, i), scores.exponentScale());
      Value row = b.add(b.add(firstRow, b.divide(b.lane(), kLanesOfRow)), 8 * half);
      auto exists = scf::IfOp::create(b, b.isLess(row, numQueries));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(exists.thenBlock());
      for (auto [column, sums] : llvm::enumerate(rows[block]))
        for (int64_t odd : {0, 1}) {
          Value at = b.add(firstColumn, int64_t(column) * kMatrixColumns + odd);
          Value score = sums[2 * half + odd];
          Value p = exponents.probability(b, createSubtract(b, score, exponents.subtracted));
          p = createMultiply(b, p, factor);
          p = arith::SelectOp::create(b, createIsLowest(b, score), hidden, p);
          p = arith::SelectOp::create(b, isEmpty, emptyRow, p);
          auto isKey = scf::IfOp::create(b, b.isLess(at, numKeys));
          OpBuilder::InsertionGuard inner(b);
          b.setInsertionPointToStart(isKey.thenBlock());
          memref::StoreOp::create(b, p, out, ValueRange{row, at});
        }
    }
  }
  gpu::BarrierOp::create(b); // later ops read the probabilities
}

void Step::runAfterScores() {
  if (!afterScores)
    return;
  b.getInsertionBlock()->getOperations().splice(b.getInsertionPoint(),
                                                afterScores.getBody().front().getOperations());
  afterScores.erase();
}

/// Keeps the wait for products after the exponentials. NVIDIA's assembler would move the wait above them, but it moves
/// nothing above an instruction that may end the thread. Therefore, this code ends the thread if a sum of probabilities
/// is negative, which never happens. If a block runs several tasks, it ends the kernel: behind an exit, the assembler
/// takes the code of the next task for code that only some threads run, in which it runs products one by one. In other
/// kernels, it uses more registers for a trap than for an exit.
void Step::endSoftmax() {
  Value least = arith::MinNumFOp::create(b, state.sum.load(b, 0), state.sum.load(b, 1));
  Value isNegative = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, least, b.f32(0));
  Value any =
      NVVM::VoteSyncOp::create(b, b.getI1Type(), b.i32(-1), isNegative, NVVM::VoteSyncKind::any);
  auto launch = b.getInsertionBlock()
                    ->getParent()
                    ->getParentOfType<func::FuncOp>()
                    ->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
  createAssembly(b, TypeRange(), any, launch.getBlocks() ? "@$0 trap;" : "@$0 exit;", "b");
}

void Step::runOverlapped(OnlineStepOp op, Overlap overlap) {
  Value value = wholeTile(op.getValue());
  LaneMemory pending = state.probabilities;
  auto store = [&] {
    for (auto [i, factor] : llvm::enumerate(probabilities[0]))
      for (auto [j, number] : llvm::enumerate(factor))
        pending.store(b, LLVM::BitcastOp::create(b, b.getI32Type(), number),
                      int64_t(i * factor.size() + j));
  };
  SmallVector<Factor> before(keyMatrices / 2);
  for (auto [i, factor] : llvm::enumerate(before))
    for (int64_t j = 0; overlap != Overlap::Begin && j < 4; ++j)
      factor.push_back(pending.load(b, int64_t(i) * 4 + j));
  if (overlap == Overlap::Begin) {
    computeProducts();
    runAfterScores();
    Change change = computeProbabilities(0);
    probabilities.push_back(multiply.toLeft(b, rows[0]));
    store();
    SmallVector<Accumulator> sums = loadAllSums();
    for (Accumulator &accumulator : sums)
      scale(b, accumulator, change);
    storeAllSums(sums);
    return;
  }
  SmallVector<Accumulator> sums = loadAllSums();
  if (overlap == Overlap::End) {
    wide().multiply(b, before, describeValues(value), WarpgroupMultiply::Right::Columns, sums);
    return storeAllSums(sums);
  }
  computeProductsByWarpgroups(/*waits=*/false);
  wide().start(b, before, describeValues(value), WarpgroupMultiply::Right::Columns, sums);
  WarpgroupMultiply::wait(b, /*running=*/1, rows[0]);
  runAfterScores();
  Change change = computeProbabilities(0);
  endSoftmax();
  WarpgroupMultiply::wait(b, /*running=*/0, sums);
  probabilities.push_back(multiply.toLeft(b, rows[0]));
  for (Accumulator &accumulator : sums)
    scale(b, accumulator, change);
  storeAllSums(sums);
  store();
}

void Step::run(OnlineStepOp op) {
  if (auto overlap = op->getAttrOfType<OverlapAttr>(AttnDialect::kOverlapAttr))
    return runOverlapped(op, overlap.getValue());
  computeProducts();
  runAfterScores();
  for (int64_t block = 0; block < state.blocks(); ++block) {
    Change change = computeProbabilities(block);
    probabilities.push_back(multiply.toLeft(b, rows[block]));
    for (int64_t column = 0; column < state.columns(); ++column) {
      Accumulator sums = state.loadSums(b, block, column);
      scale(b, sums, change);
      state.storeSums(b, sums, block, column);
    }
  }
  Value value = wholeTile(op.getValue());
  if (!scores.hidesPairs())
    return addValues(value);
  Value isSpecial = testValues(value);
  // Without this barrier, LLVM would keep the factors of all values in registers from here to the products.
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  auto hasSpecial = scf::IfOp::create(b, isSpecial, /*withElseRegion=*/true);
  b.setInsertionPointToStart(hasSpecial.thenBlock());
  for (int64_t block = 0; block < state.blocks(); ++block)
    for (int64_t column = 0; column < state.columns(); ++column)
      addFiniteValues(value, block, column);
  b.setInsertionPointToStart(hasSpecial.elseBlock());
  addValues(value);
}

void Lowering::lower(OnlineStepOp op) {
  Step(op, stateOf(op.getMax())).run(op);
  op.erase();
}

void Lowering::lower(OnlineProbabilitiesOp op) {
  Step(op, stateOf(op.getMax())).run(op);
  op.erase();
}

//===----------------------------------------------------------------------===//
// attn.online_finish
//===----------------------------------------------------------------------===//

void Lowering::lower(OnlineFinishOp op) {
  const Fragments &state = stateOf(maxOfSum.lookup(rootOf(op.getSum())));
  ThreadBuilder b(op.getLoc(), op);
  auto out = cast<MemRefType>(op.getOut().getType());
  Value end = memref::DimOp::create(b, op.getOut(), 0);
  Value columnOfLane = b.multiply(b.remainder(b.lane(), kLanesOfRow), 2);
  // Whether a lane stores its pairs of neighbouring elements at once.
  bool storesPairs = out.getElementTypeBitWidth() == 16 && hasAlignedRows(op.getOut()) &&
                     state.size % kMatrixColumns == 0;
  for (int64_t block = 0; block < state.blocks(); ++block)
    for (int64_t half : {0, 1}) {
      Value sum = reduceRow(b, state.sum.load(b, 2 * block + half), createAdd);
      Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, b.f32(0));
      bool isNaN = op.getEmptyRow() == EmptyRow::NaN;
      Value factor = arith::DivFOp::create(b, b.f32(1), sum);
      factor = arith::SelectOp::create(
          b, isEmpty, b.f32(isNaN ? std::numeric_limits<double>::quiet_NaN() : 0.0), factor);
      Value row = b.add(b.add(state.firstRow(b), b.divide(b.lane(), kLanesOfRow)),
                        block * kMatrixRows + 8 * half);
      auto exists = scf::IfOp::create(b, b.isLess(row, end));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(exists.thenBlock());
      for (int64_t column = 0; column * kMatrixColumns < state.size; ++column) {
        Accumulator sums = state.loadSums(b, block, column);
        for (Value &sum : sums)
          sum = createMultiply(b, sum, factor);
        if (storesPairs) {
          Value at = b.add(columnOfLane, column * kMatrixColumns);
          Value pair =
              vector::FromElementsOp::create(b, VectorType::get(2, b.getF32Type()),
                                             ValueRange{sums[2 * half], sums[2 * half + 1]});
          pair = arith::TruncFOp::create(b, VectorType::get(2, out.getElementType()), pair);
          vector::StoreOp::create(b, pair, op.getOut(), ValueRange{row, at}, /*nontemporal=*/false,
                                  llvm::MaybeAlign(kPairBytes));
          continue;
        }
        for (int64_t odd : {0, 1}) {
          Value at = b.add(columnOfLane, column * kMatrixColumns + odd);
          Value element = sums[2 * half + odd];
          if (!out.getElementType().isF32())
            element = arith::TruncFOp::create(b, out.getElementType(), element);
          OpBuilder::InsertionGuard inner(b);
          if ((column + 1) * kMatrixColumns > state.size)
            b.setInsertionPointToStart(
                scf::IfOp::create(b, b.isLess(at, b.constant(state.size))).thenBlock());
          memref::StoreOp::create(b, element, op.getOut(), ValueRange{row, at});
        }
      }
    }
  gpu::BarrierOp::create(b); // later ops may read the output
  op.erase();
}

//===----------------------------------------------------------------------===//
// States that other tasks merge
//===----------------------------------------------------------------------===//

/// Lowers a copy of the maxima, sums or accumulators of a state to memory.
LogicalResult Lowering::lowerCopy(linalg::CopyOp op) {
  Value from = op.getInputs()[0], out = op.getOutputs()[0], root = rootOf(from);
  const auto *found = llvm::find_if(states, [&](auto &entry) {
    return entry.first == root || entry.second.accBuffer == root ||
           maxOfSum.lookup(root) == entry.first;
  });
  if (found == states.end())
    return op.emitOpError() << "expected a copy of a state in registers, got a copy of "
                            << from.getType();
  const Fragments &state = found->second;
  ThreadBuilder b(op.getLoc(), op);
  Value end = memref::DimOp::create(b, out, 0);
  Value columnOfLane = b.multiply(b.remainder(b.lane(), kLanesOfRow), 2);
  bool isMax = found->first == root, isAcc = state.accBuffer == root;
  for (int64_t block = 0; block < state.blocks(); ++block)
    for (int64_t half : {0, 1}) {
      int64_t i = 2 * block + half;
      Value row = b.add(b.add(state.firstRow(b), b.divide(b.lane(), kLanesOfRow)),
                        block * kMatrixRows + 8 * half);
      // Each lane of a row has the maximum of the row; the sum of the row is the sum over these lanes.
      Value ofRow = isMax   ? state.max.load(b, i)
                    : isAcc ? Value()
                            : reduceRow(b, state.sum.load(b, i), createAdd);
      Value writes = b.isLess(row, end);
      if (!isAcc)
        writes = arith::AndIOp::create(
            b, writes,
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, columnOfLane, b.constant(0)));
      auto exists = scf::IfOp::create(b, writes);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(exists.thenBlock());
      if (!isAcc) {
        memref::StoreOp::create(b, ofRow, out, ValueRange{row});
        continue;
      }
      for (int64_t column = 0; column * kMatrixColumns < state.size; ++column) {
        Accumulator sums = state.loadSums(b, block, column);
        for (int64_t odd : {0, 1}) {
          Value at = b.add(columnOfLane, column * kMatrixColumns + odd);
          OpBuilder::InsertionGuard inner(b);
          if ((column + 1) * kMatrixColumns > state.size)
            b.setInsertionPointToStart(
                scf::IfOp::create(b, b.isLess(at, b.constant(state.size))).thenBlock());
          memref::StoreOp::create(b, sums[2 * half + odd], out, ValueRange{row, at});
        }
      }
    }
  op.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Ops that add a sink to the state
//===----------------------------------------------------------------------===//

/// Lowers an elementwise op on the maxima and sums of queries.
LogicalResult Lowering::lower(linalg::LinalgOp op) {
  const Fragments *state = nullptr;
  for (Value out : op.getDpsInits()) {
    Value root = rootOf(out), max = maxOfSum.lookup(root);
    auto *found = states.find(max ? max : root);
    if (found == states.end() || cast<MemRefType>(out.getType()).getRank() != 1 ||
        op.getNumLoops() != 1)
      return op.emitOpError() << "expected an op on the maxima or sums of queries, got "
                              << out.getType();
    state = &found->second;
  }
  ThreadBuilder b(op.getLoc(), op);
  // Rows beyond the last query of the tile repeat the last query.
  Value last = b.subtract(memref::DimOp::create(b, op.getDpsInits()[0], 0), b.constant(1));
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        b.remainder(b.lane(), kLanesOfRow), b.constant(0));
  for (int64_t i = 0; i < 2 * state->blocks(); ++i) {
    Value row =
        b.min(b.add(b.add(state->firstRow(b), b.divide(b.lane(), kLanesOfRow)), 8 * i), last);
    IRMapping mapping;
    for (auto [operand, argument] :
         llvm::zip_equal(op->getOpOperands(), op.getBlock()->getArguments())) {
      if (op.isDpsInit(&operand) && argument.use_empty())
        continue;
      Value value = operand.get();
      if (isa<MemRefType>(value.getType())) {
        bool isOfRow = op.getMatchingIndexingMap(&operand).getNumResults() > 0;
        value = memref::LoadOp::create(b, value, isOfRow ? ValueRange{row} : ValueRange{});
      }
      mapping.map(argument, value);
    }
    for (Operation &inner : op.getBlock()->without_terminator())
      b.clone(inner, mapping);
    for (auto [out, yielded] :
         llvm::zip_equal(op.getDpsInits(), op.getBlock()->getTerminator()->getOperands())) {
      Value value = mapping.lookupOrDefault(yielded);
      if (!maxOfSum.contains(rootOf(out))) {
        state->max.store(b, value, i);
        continue;
      }
      // The sum of a query is the sum over its lanes, so only the first of these lanes gets the value.
      state->sum.store(b, arith::SelectOp::create(b, isFirst, value, b.f32(0)), i);
    }
  }
  op->erase();
  return success();
}

LogicalResult Lowering::run() {
  if (failed(findStates()))
    return failure();
  Attribute registers = registerSpace(function.getContext());
  SmallVector<Operation *> ops;
  function.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    if (auto copy = dyn_cast<linalg::CopyOp>(op); copy && isIn(copy.getInputs()[0], registers)) {
      if (failed(lowerCopy(copy)))
        return failure();
      continue;
    }
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
        linalgOp && isIn(linalgOp.getDpsInits()[0], registers)) {
      if (failed(lower(linalgOp)))
        return failure();
      continue;
    }
    llvm::TypeSwitch<Operation *>(op)
        .Case<OnlineStepOp, OnlineProbabilitiesOp>([&](auto online) { lower(online); })
        .Case<OnlineInitOp, OnlineFinishOp>([&](auto online) {
          if (isIn(online.getAcc(), registers))
            lower(online);
        });
  }
  return success();
}

namespace {
struct OnlineToFragments : attn::impl::OnlineToFragmentsBase<OnlineToFragments> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!isTaskOfThreads(function))
      return;
    if (failed(Lowering(function).run()))
      signalPassFailure();
  }
};
} // namespace
