//===- MergeToThreads.cpp - merge the states of online softmaxes -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.online_merge rows ins(%ms, %ls, %as) outs(%m, %l, %a : memref<4xf32, workgroup>, ..)
// becomes
//   scf.parallel (%q, %e) = (0, 0) to (4, 64) {
//     %greatest = scf.for %n { the maximum of %m[%q] and %ms[%n, %q] }
//     %a[%q, %e] = w(%m[%q]) * %a[%q, %e] + the sum over %n of w(%ms[%n, %q]) * %as[%n, %q, %e]
//   }
//   scf.parallel (%q) = (0) to (4) { the same sum of %l and %ls for %l[%q]; %m[%q] = %greatest }
// where w(x) is 2^(scale * log2(e) * (x - %greatest)).
//
// In the schedule decode, other tasks compute the states. A task that merges them has no products, and its own state
// lies in shared memory. attn.online_init and attn.online_finish of a state in shared memory become loops too.
// Test: test/codegen/gpu/merge-to-threads.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_MERGETOTHREADS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Creates a parallel loop over all elements of `buffer`.
static void forEach(ThreadBuilder &b, Value buffer,
                    function_ref<void(ThreadBuilder &, ValueRange)> body) {
  SmallVector<Value> upper;
  for (OpFoldResult size : memref::getMixedSizes(b, b.getLoc(), buffer))
    upper.push_back(b.toValue(size));
  SmallVector<Value> lower(upper.size(), b.constant(0)), steps(upper.size(), b.constant(1));
  scf::ParallelOp::create(b, lower, upper, steps,
                          [&](OpBuilder &builder, Location loc, ValueRange at) {
                            ThreadBuilder in(loc, builder);
                            body(in, at);
                          });
}

static void fill(ThreadBuilder &b, Value buffer, double number) {
  forEach(b, buffer, [&](ThreadBuilder &in, ValueRange at) {
    memref::StoreOp::create(in, in.f32(number), buffer, at);
  });
}

static void lower(OnlineInitOp op) {
  ThreadBuilder b(op.getLoc(), op);
  fill(b, op.getMax(), -kInfinity);
  fill(b, op.getSum(), 0);
  fill(b, op.getAcc(), 0);
  op.erase();
}

namespace {
/// Merges the states of one query.
class Merge {
public:
  Merge(ThreadBuilder &b, OnlineMergeOp op, Value query)
      : b(b), op(op), query(query), zero(b.constant(0)), one(b.constant(1)),
        numParts(memref::DimOp::create(b, op.getPartMax(), 0)),
        old(memref::LoadOp::create(b, op.getMax(), ValueRange{query})) {
    auto loop = scf::ForOp::create(
        b, zero, numParts, one, ValueRange{old},
        [&](OpBuilder &builder, Location loc, Value part, ValueRange carried) {
          Value max =
              memref::LoadOp::create(builder, loc, op.getPartMax(), ValueRange{part, query});
          scf::YieldOp::create(builder, loc,
                               arith::MaxNumFOp::create(builder, loc, carried[0], max).getResult());
        });
    greatest = loop.getResult(0);
    // If every score is -inf, the maximum is -inf too, and -inf - -inf would be NaN.
    origin = arith::SelectOp::create(b, createIsLowest(b, greatest), b.f32(0), greatest);
  }

  /// The sum of `start` and of the elements of `parts` at `at`, each multiplied by the factor of its state.
  Value sum(Value start, Value parts, ValueRange at) {
    Value first = arith::MulFOp::create(b, factorOf(b, old), start);
    auto loop = scf::ForOp::create(
        b, zero, numParts, one, ValueRange{first},
        [&](OpBuilder &builder, Location loc, Value part, ValueRange carried) {
          ThreadBuilder in(loc, builder);
          Value factor =
              factorOf(in, memref::LoadOp::create(in, op.getPartMax(), ValueRange{part, query}));
          SmallVector<Value> place = {part};
          llvm::append_range(place, at);
          Value element = memref::LoadOp::create(in, parts, place);
          scf::YieldOp::create(in,
                               math::FmaOp::create(in, factor, element, carried[0]).getResult());
        });
    return loop.getResult(0);
  }

  Value greatest;

private:
  /// exp(scale * (max - greatest)), or 1 if all maxima are -inf.
  Value factorOf(ThreadBuilder &b, Value max) {
    double scale = op.getScale().convertToDouble() * llvm::numbers::log2e;
    Value difference = arith::SubFOp::create(
        b, arith::SelectOp::create(b, createIsLowest(b, greatest), b.f32(0), max), origin);
    return createExp2(b, arith::MulFOp::create(b, difference, b.f32(scale)));
  }

  ThreadBuilder &b;
  OnlineMergeOp op;
  Value query, zero, one, numParts, old, origin;
};
} // namespace

static void lower(OnlineMergeOp op) {
  ThreadBuilder b(op.getLoc(), op);
  forEach(b, op.getAcc(), [&](ThreadBuilder &in, ValueRange at) {
    Merge merge(in, op, at[0]);
    Value before = memref::LoadOp::create(in, op.getAcc(), at);
    memref::StoreOp::create(in, merge.sum(before, op.getPartAcc(), at), op.getAcc(), at);
  });
  forEach(b, op.getSum(), [&](ThreadBuilder &in, ValueRange at) {
    Merge merge(in, op, at[0]);
    Value before = memref::LoadOp::create(in, op.getSum(), at);
    memref::StoreOp::create(in, merge.sum(before, op.getPartSum(), at), op.getSum(), at);
    memref::StoreOp::create(in, merge.greatest, op.getMax(), at);
  });
  op.erase();
}

static void lower(OnlineFinishOp op) {
  ThreadBuilder b(op.getLoc(), op);
  Type element = getElementTypeOrSelf(op.getOut().getType());
  bool isNaN = op.getEmptyRow() == EmptyRow::NaN;
  double emptyRow = isNaN ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  forEach(b, op.getOut(), [&](ThreadBuilder &in, ValueRange at) {
    Value sum = memref::LoadOp::create(in, op.getSum(), at[0]),
          acc = memref::LoadOp::create(in, op.getAcc(), at);
    Value isEmpty = arith::CmpFOp::create(in, arith::CmpFPredicate::OEQ, sum, in.f32(0));
    Value result =
        arith::SelectOp::create(in, isEmpty, in.f32(emptyRow), arith::DivFOp::create(in, acc, sum));
    if (!element.isF32())
      result = arith::TruncFOp::create(in, element, result);
    memref::StoreOp::create(in, result, op.getOut(), at);
  });
  op.erase();
}

namespace {
struct MergeToThreads : attn::impl::MergeToThreadsBase<MergeToThreads> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!isTaskOfThreads(function))
      return;
    Attribute registers = registerSpace(&getContext());
    function.walk([&](Operation *op) {
      if (auto merge = dyn_cast<OnlineMergeOp>(op))
        lower(merge);
      else if (auto init = dyn_cast<OnlineInitOp>(op); init && !isIn(init.getAcc(), registers))
        lower(init);
      else if (auto finish = dyn_cast<OnlineFinishOp>(op);
               finish && !isIn(finish.getAcc(), registers))
        lower(finish);
    });
  }
};
} // namespace
