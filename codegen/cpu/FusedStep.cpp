//===- FusedStep.cpp - probabilities in register blocks ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/FusedStep.h"
#include "codegen/cpu/Exp2.h"
#include "codegen/cpu/GroupedRows.h"
#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/RegisterBlockLowering.h"
#include "codegen/cpu/TilePrefetch.h"
#include "support/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
/// Turns products that are in registers into unnormalised probabilities, relative to the maximum so far. If `exact` is
/// true, stores the products unchanged instead.
class ProbabilitiesEpilogue : public Epilogue {
public:
  /// `groups` is null if probabilities replace the scores.
  ProbabilitiesEpilogue(OnlineStepOp op, const ScoreRegion &region, Value exact, Value tileSums,
                        const GroupedRows *groups, CpuAttr cpu)
      : loc(op.getLoc()), max(op.getMax()), region(region), exact(exact), tileSums(tileSums),
        groups(groups), cpu(cpu), prefetch(TilePrefetch::create(op)) {}

  SmallVector<Value> begin(OpBuilder &b, ArrayRef<Lanes> columns) override {
    SmallVector<Value> sums;
    relative.clear();
    queries.clear();
    for (const Lanes &q : columns) {
      relative.push_back(region.createExponents(b, q.load(b, loc, max, q.offset), cpu));
      queries.push_back(region.createSpan(b, q));
      sums.push_back(floatConstant(b, loc, q.vectorOf(getElementTypeOrSelf(max.getType())), 0));
    }
    return sums;
  }

  void overlap(OpBuilder &b, ArrayRef<Value> rows, Value step, int64_t steps,
               int64_t length) override {
    prefetch.createShare(b, loc, rows.front(), rows.size(), step, steps, length);
  }

  SmallVector<Value> finish(OpBuilder &b, ArrayRef<Value> rows, ArrayRef<Lanes> columns,
                            ValueRange products, ValueRange carried, Store store) override {
    auto storeProducts = [&](OpBuilder &inner, Location) {
      for (auto [i, product] : llvm::enumerate(products))
        store(inner, i, product);
      scf::YieldOp::create(inner, loc, carried);
    };
    auto storeProbabilities = [&](OpBuilder &inner, Location) {
      SmallVector<Value> sums = createProbabilities(inner, rows, columns, products, carried, store);
      scf::YieldOp::create(inner, loc, sums);
    };
    return scf::IfOp::create(b, loc, exact, storeProducts, storeProbabilities).getResults();
  }

  void end(OpBuilder &b, ArrayRef<Lanes> columns, ValueRange carried) override {
    for (auto [q, sum] : llvm::zip_equal(columns, carried))
      q.store(b, loc, sum, tileSums, q.offset);
  }

private:
  /// Stores the probabilities of `products`. Returns `sums` plus, for each column, the sum of its probabilities.
  SmallVector<Value> createProbabilities(OpBuilder &b, ArrayRef<Value> rows,
                                         ArrayRef<Lanes> columns, ValueRange products,
                                         ValueRange sums, Store store) {
    size_t inFlight = exponentialsInFlight(cpu);
    // Sum up each column of the block first: short chains of additions have smaller rounding errors.
    SmallVector<Value> parts(columns.size());
    // For each column of vectors, the probabilities that are not stored yet because their group is not full.
    SmallVector<SmallVector<Value>> inGroup(columns.size());
    auto storeInGroup = [&](size_t row, size_t column, Value probability) {
      inGroup[column].push_back(probability);
      bool isLast = row + 1 == rows.size();
      if (!isLast && int64_t(inGroup[column].size()) < groups->getGroup())
        return;
      groups->store(b, loc, rows[row + 1 - inGroup[column].size()], columns[column],
                    inGroup[column]);
      inGroup[column].clear();
    };
    for (size_t first = 0; first < products.size(); first += inFlight) {
      SmallVector<Value> scores, exponents;
      for (auto [i, value] : llvm::enumerate(products.drop_front(first).take_front(inFlight))) {
        size_t column = (first + i) % columns.size();
        scores.push_back(
            region.createScores(b, value, rows[(first + i) / columns.size()], queries[column]));
        exponents.push_back(relative[column].ofModerate(b, scores.back()));
      }
      SmallVector<Value> probabilities =
          createExp2(b, loc, exponents, cpu, Underflow::Live, Overflow::Large);
      for (auto [i, probability] : llvm::enumerate(probabilities)) {
        size_t column = (first + i) % columns.size();
        if (region.canHide())
          probability =
              arith::SelectOp::create(b, loc, createIsEqual(b, loc, scores[i], -kInfinity),
                                      floatConstant(b, loc, probability.getType(), 0), probability);
        Value &part = parts[column];
        part = part ? Value(arith::AddFOp::create(b, loc, part, probability)) : probability;
        if (groups)
          storeInGroup((first + i) / columns.size(), column, probability);
        else
          store(b, first + i, probability);
      }
    }
    return llvm::map_to_vector(llvm::zip_equal(sums, parts), [&](auto both) -> Value {
      return arith::AddFOp::create(b, loc, std::get<0>(both), std::get<1>(both));
    });
  }

  Location loc;
  Value max;
  const ScoreRegion &region;
  Value exact, tileSums;
  const GroupedRows *groups;
  CpuAttr cpu;
  TilePrefetch prefetch;
  SmallVector<Exponents> relative;
  SmallVector<ScoreRegion::Span> queries;
};

/// Stores products unchanged.
class StoringEpilogue : public Epilogue {
public:
  SmallVector<Value> begin(OpBuilder &, ArrayRef<Lanes>) override { return {}; }
  SmallVector<Value> finish(OpBuilder &b, ArrayRef<Value>, ArrayRef<Lanes>, ValueRange products,
                            ValueRange, Store store) override {
    for (auto [i, product] : llvm::enumerate(products))
      store(b, i, product);
    return {};
  }
  void end(OpBuilder &, ArrayRef<Lanes>, ValueRange) override {}
};
} // namespace

/// The greatest number of queries in a tile of scores: the size of the last dimension of the buffer that contains it.
static int64_t boundOfQueries(Value scores) {
  return cast<MemRefType>(getSource(scores).getType()).getShape().back();
}

bool attn::areInRegisterBlocks(const Contraction &products) {
  linalg::LinalgOp op = products.op;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  return products.roles && products.roles->m && findLoop(map.getResult(0)) == products.roles->m &&
         findLoop(map.getResult(1)) == products.roles->n &&
         !ShapedType::isDynamic(boundOfQueries(op.getDpsInits()[0]));
}

/// Returns whether any value of the buffer `row` satisfies `is`, which emits the test of one vector.
static Value createAnyOf(OpBuilder &builder, Location loc, Value row, int64_t lanes,
                         llvm::function_ref<Value(OpBuilder &, Value)> is) {
  Value no = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false));
  return forEachVector(builder, loc, memref::getMixedSize(builder, loc, row, 0), lanes, no,
                       [&](OpBuilder &b, const Lanes &q, ValueRange carried) {
                         Value any = createAny(b, loc, is(b, q.load(b, loc, row, q.offset)));
                         return SmallVector<Value>{arith::OrIOp::create(b, loc, carried[0], any)};
                       })[0];
}

void attn::createFusedStep(OpBuilder &builder, OnlineStepOp op, const Contraction &products,
                           const Start &zero, CpuAttr cpu, const ScoreRegion &region,
                           const MultiplyAdd *ofGroups,
                           llvm::function_ref<Value(OpBuilder &)> createUpdate) {
  Location loc = op.getLoc();
  int64_t lanes = cpu.getLanes();
  Value max = op.getMax(), sum = op.getSum();
  OpBuilder entry = OpBuilder::atBlockBegin(&op->getParentOfType<func::FuncOp>().getBody().front());
  auto type =
      MemRefType::get({boundOfQueries(op.getScores())}, getElementTypeOrSelf(sum.getType()));
  Value tileSums = memref::AllocaOp::create(entry, loc, type, entry.getI64IntegerAttr(64));
  Value grows = memref::AllocaOp::create(entry, loc, MemRefType::get({}, builder.getI1Type()));
  Value no = arith::ConstantOp::create(entry, loc, entry.getBoolAttr(false));
  memref::StoreOp::create(entry, loc, no, grows);
  OpFoldResult numQueries = memref::getMixedSize(builder, loc, sum, 0);
  tileSums = memref::SubViewOp::create(builder, loc, tileSums, {builder.getIndexAttr(0)},
                                       {numQueries}, {builder.getIndexAttr(1)});

  Value needsExact = createAnyOf(builder, loc, max, lanes, [&](OpBuilder &b, Value max) {
    return region.createExponents(b, max, cpu).needsExact();
  });
  needsExact =
      arith::OrIOp::create(builder, loc, needsExact, memref::LoadOp::create(builder, loc, grows));
  std::optional<GroupedRows> groups;
  if (ofGroups)
    groups.emplace(builder, loc, op.getProbabilities(), *ofGroups);
  auto computeUntilRight = [&](OpBuilder &b, Location, ValueRange exact) {
    ProbabilitiesEpilogue epilogue(op, region, exact[0], tileSums, groups ? &*groups : nullptr,
                                   cpu);
    createContraction(b, products, zero, cpu, &epilogue);
    auto updateExactly = [&](OpBuilder &inner, Location) {
      memref::StoreOp::create(inner, loc, createUpdate(inner), grows);
      scf::YieldOp::create(inner, loc, no);
    };
    auto addSums = [&](OpBuilder &inner, Location) {
      Value isBig = createAnyOf(inner, loc, tileSums, lanes, [&](OpBuilder &c, Value sums) {
        return arith::CmpFOp::create(c, loc, arith::CmpFPredicate::UGE, sums,
                                     floatConstant(c, loc, sums.getType(), kBigSum));
      });
      auto addAll = [&](OpBuilder &c, Location) {
        forEachVector(c, loc, numQueries, lanes, {}, [&](OpBuilder &d, const Lanes &q, ValueRange) {
          Value total = arith::AddFOp::create(d, loc, q.load(d, loc, sum, q.offset),
                                              q.load(d, loc, tileSums, q.offset));
          q.store(d, loc, total, sum, q.offset);
          return SmallVector<Value>();
        });
        scf::YieldOp::create(c, loc);
      };
      scf::IfOp::create(
          inner, loc, isBig, [&](OpBuilder &c, Location) { scf::YieldOp::create(c, loc); }, addAll);
      scf::YieldOp::create(inner, loc, isBig);
    };
    auto again = scf::IfOp::create(b, loc, exact[0], updateExactly, addSums);
    scf::ConditionOp::create(b, loc, again.getResult(0), again.getResults());
  };
  scf::WhileOp::create(
      builder, loc, TypeRange{needsExact.getType()}, needsExact, computeUntilRight,
      [&](OpBuilder &b, Location, ValueRange again) { scf::YieldOp::create(b, loc, again); });
}

void attn::createStoredProducts(OpBuilder &builder, const Contraction &products, const Start &zero,
                                CpuAttr cpu) {
  StoringEpilogue epilogue;
  createContraction(builder, products, zero, cpu, &epilogue);
}
