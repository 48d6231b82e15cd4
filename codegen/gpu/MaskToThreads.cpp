//===- MaskToThreads.cpp - pack and test masks word by word ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.pack_mask ins(%mask : memref<300x500xi1>) outs(%words : memref<16x300xi32>)
// becomes
//   scf.parallel (%w, %q) = (0, 0) to (16, 300) {
//     %word = scf.for %i = 0 to the keys of the word { bit %i is set if %mask[%q, 32 * %w + %i] is not 0 }
//     memref.store %word, %words[%w, %q]
//   }
// and
//   %begin, %end, %all = attn.test_mask %words keeps nonzero : memref<2x48xi32>
// becomes
//   %begin, %end, %all = scf.for %w = 0 to 2 {
//     %any, %every = scf.for %q = %lane to 48 step 32 { whether a bit of %words[%w, %q] is set, whether all are }
//     the first %w where %any holds in a lane of the warp, 1 + the last such %w, whether %every holds in all lanes
//   }
// Each warp tests all words, so that warps need not exchange results. Test: test/codegen/gpu/mask-to-threads.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/Chains.h"
#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_MASKTOTHREADS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

static Value compare(ThreadBuilder &b, arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(b, predicate, x, y);
}

static void lower(PackMaskOp op) {
  ThreadBuilder b(op.getLoc(), op);
  Value mask = op.getSource(), words = op.getWords();
  int64_t rank = cast<MemRefType>(words.getType()).getRank();
  Value zero = b.constant(0), one = b.constant(1);
  SmallVector<Value> lower(rank, zero), steps(rank, one), upper;
  for (OpFoldResult size : memref::getMixedSizes(b, b.getLoc(), words))
    upper.push_back(b.toValue(size));
  Value keys = memref::DimOp::create(b, mask, rank - 1);
  scf::ParallelOp::create(
      b, lower, upper, steps, [&](OpBuilder &builder, Location loc, ValueRange at) {
        ThreadBuilder b(loc, builder);
        Value first = b.multiply(at[rank - 2], kKeysPerWord);
        Value count = b.min(b.subtract(keys, first), b.constant(kKeysPerWord));
        auto loop = scf::ForOp::create(
            b, zero, count, one, ValueRange{b.i32(0)},
            [&](OpBuilder &builder, Location loc, Value i, ValueRange carried) {
              ThreadBuilder b(loc, builder);
              SmallVector<Value> from(at.drop_back(2));
              from.append({at[rank - 1], b.add(first, i)});
              Value element = memref::LoadOp::create(b, mask, from);
              Value isSet = createDenseTest(b, loc, element, Polarity::Nonzero);
              Value bit = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, b.getI32Type(), isSet),
                                                b.toI32(i));
              scf::YieldOp::create(b, arith::OrIOp::create(b, carried[0], bit).getResult());
            });
        memref::StoreOp::create(b, loop.getResult(0), words, at);
      });
  op.erase();
}

static Value vote(ThreadBuilder &b, NVVM::VoteSyncKind kind, Value condition) {
  return NVVM::VoteSyncOp::create(b, b.getI1Type(), b.i32(-1), condition, kind);
}

static void lower(TestMaskOp op) {
  ThreadBuilder b(op.getLoc(), op);
  Value words = op.getWords(), zero = b.constant(0), one = b.constant(1);
  Value numWords = memref::DimOp::create(b, words, 0),
        numQueries = memref::DimOp::create(b, words, 1);
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false)),
        yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  // `full` is the word in which every pair is kept, and `empty` the word in which no pair is kept.
  bool keepsOnes = op.getKeeps() == Polarity::Nonzero;
  Value full = b.i32(keepsOnes ? -1 : 0), empty = b.i32(keepsOnes ? 0 : -1);
  auto loop = scf::ForOp::create(
      b, zero, numWords, one, ValueRange{numWords, zero, yes},
      [&](OpBuilder &builder, Location loc, Value w, ValueRange carried) {
        ThreadBuilder b(loc, builder);
        auto lanes = scf::ForOp::create(
            b, b.lane(), numQueries, b.constant(kWarp), ValueRange{no, yes},
            [&](OpBuilder &builder, Location loc, Value q, ValueRange carried) {
              ThreadBuilder b(loc, builder);
              Value word = memref::LoadOp::create(b, words, ValueRange{w, q});
              Value some = compare(b, arith::CmpIPredicate::ne, word, empty),
                    every = compare(b, arith::CmpIPredicate::eq, word, full);
              scf::YieldOp::create(b, ValueRange{arith::OrIOp::create(b, carried[0], some),
                                                 arith::AndIOp::create(b, carried[1], every)});
            });
        Value any = vote(b, NVVM::VoteSyncKind::any, lanes.getResult(0)),
              all = vote(b, NVVM::VoteSyncKind::all, lanes.getResult(1));
        Value begin = arith::SelectOp::create(b, any, b.min(carried[0], w), carried[0]),
              end = arith::SelectOp::create(b, any, b.add(w, 1), carried[1]);
        scf::YieldOp::create(b, ValueRange{begin, end, arith::AndIOp::create(b, carried[2], all)});
      });
  if (!findConstantArgument(op->getParentOfType<func::FuncOp>(), words))
    gpu::BarrierOp::create(b); // later ops may overwrite the words
  op->replaceAllUsesWith(loop.getResults());
  op.erase();
}

namespace {
struct MaskToThreads : attn::impl::MaskToThreadsBase<MaskToThreads> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (auto pack = dyn_cast<PackMaskOp>(op))
        lower(pack);
      else if (auto test = dyn_cast<TestMaskOp>(op))
        lower(test);
    });
  }
};
} // namespace
