//===- MaskToVector.cpp - packed masks as vectors ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn.pack_mask ins(%mask : memref<512x512xi1>) outs(%words : memref<16x512xi32>)
// becomes
//   scf.for %q = %c0 to %c512 step %c8 {
//     scf.for %w = %c0 to %c16 step %c1 {
//       %bytes = vector.load ... : vector<32xi8>              // for each of eight queries
//       %kept = arith.cmpi ne, %bytes, %zero : vector<32xi8>
//       %word = vector.bitcast %kept : vector<32xi1> to vector<1xi32>
//       memref.store ...
//     }
//   }
// A last word of fewer than 32 keys, and masks whose keys are not adjacent in memory, are packed bit by bit.
//
//   %begin, %end, %all = attn.test_mask %words keeps nonzero : memref<2x48xi32>
// becomes a loop over the rows of %words. It combines the bits of all queries of a row, a vector of queries at a time.
//
// Test: test/codegen/cpu/mask-to-vector.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/StridedView.h"
#include "dialect/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_MASKTOVECTOR
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The number of queries that are packed together, because their words are adjacent in memory.
static constexpr int64_t kQueries = 8;

namespace {
/// Lowers one attn.pack_mask.
class Packing {
public:
  Packing(OpBuilder &builder, PackMaskOp op)
      : loc(op.getLoc()), words(op.getWords()),
        rank(cast<MemRefType>(op.getSource().getType()).getRank()) {
    auto type = cast<MemRefType>(op.getSource().getType());
    AffineMap identity = builder.getMultiDimIdentityMap(rank);
    sizes = memref::getMixedSizes(builder, loc, op.getSource());
    mask = StridedView::create(builder, loc, op.getSource(), identity);
    areKeysAdjacent = isRowContiguous(type);
    bytes = mask.row;
    if (type.getElementType().isInteger(1)) {
      // A vector of i1 is packed in memory, but a buffer of i1 holds bytes.
      auto row = cast<MemRefType>(mask.row.getType());
      Type ofBytes = MemRefType::get(row.getShape(), builder.getI8Type(), row.getLayout());
      bytes = UnrealizedConversionCastOp::create(builder, loc, ofBytes, mask.row).getResult(0);
    }
  }

  void run(OpBuilder &builder) {
    emitBatch(builder, arith::ConstantIndexOp::create(builder, loc, 0), {});
  }

private:
  Value constant(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }

  /// Emits loops over the batch dimensions for which `batch` has no index yet, and inside them the code for the words.
  void emitBatch(OpBuilder &b, Value index, SmallVector<Value> batch) {
    unsigned dim = batch.size();
    if (dim + 2 == rank)
      return emitQueries(b, index, batch);
    createLoop(b, loc, b.getIndexAttr(0), sizes[dim], 1, {},
               [&](OpBuilder &inner, Value i, ValueRange) {
                 SmallVector<Value> next(batch);
                 next.push_back(i);
                 emitBatch(inner, mask.advance(inner, loc, index, dim, i), next);
                 return SmallVector<Value>();
               });
  }

  void emitQueries(OpBuilder &builder, Value index, ArrayRef<Value> batch) {
    OpFoldResult keys = sizes.back();
    AffineExpr count = builder.getAffineDimExpr(0);
    OpFoldResult whole =
        affine::makeComposedFoldedAffineApply(builder, loc, count.floorDiv(kKeysPerWord), {keys});
    OpFoldResult all =
        affine::makeComposedFoldedAffineApply(builder, loc, count.ceilDiv(kKeysPerWord), {keys});
    if (!areKeysAdjacent)
      whole = builder.getIndexAttr(0);
    createUnrolledLoop(
        builder, loc, sizes[rank - 2], kQueries, {},
        [&](OpBuilder &b, ArrayRef<Value> queries, ValueRange) {
          auto emitWords = [&](OpFoldResult from, OpFoldResult to,
                               function_ref<Value(OpBuilder &, Value, Value)> wordOf) {
            createLoop(b, loc, from, to, 1, {}, [&](OpBuilder &inner, Value w, ValueRange) {
              Value key = arith::MulIOp::create(inner, loc, w, constant(inner, kKeysPerWord));
              for (Value q : queries) {
                Value row = mask.advance(inner, loc, index, rank - 2, q);
                SmallVector<Value> at(batch);
                at.append({w, q});
                memref::StoreOp::create(inner, loc, wordOf(inner, row, key), words, at);
              }
              return SmallVector<Value>();
            });
          };
          emitWords(builder.getIndexAttr(0), whole, [&](OpBuilder &inner, Value row, Value key) {
            return wordOfVector(inner, mask.advance(inner, loc, row, rank - 1, key));
          });
          emitWords(whole, all, [&](OpBuilder &inner, Value row, Value key) {
            return wordOfElements(inner, row, key);
          });
          return SmallVector<Value>();
        });
  }

  /// The word of the 32 adjacent elements at `index`.
  Value wordOfVector(OpBuilder &b, Value index) {
    auto type = VectorType::get(kKeysPerWord, cast<MemRefType>(bytes.getType()).getElementType());
    Value elements = vector::LoadOp::create(b, loc, type, bytes, index);
    Value bits = createDenseTest(b, loc, elements, Polarity::Nonzero);
    Value word =
        vector::BitCastOp::create(b, loc, VectorType::get(1, b.getI32Type()), bits).getResult();
    return vector::ExtractOp::create(b, loc, word, 0);
  }

  /// The word of the elements from `key` on. The last word may have fewer than 32 elements.
  Value wordOfElements(OpBuilder &b, Value row, Value key) {
    AffineExpr all, begin;
    bindDims(b.getContext(), all, begin);
    AffineMap rest =
        AffineMap::get(2, 0, {b.getAffineConstantExpr(kKeysPerWord), all - begin}, b.getContext());
    OpFoldResult count =
        affine::makeComposedFoldedAffineMin(b, loc, rest, {sizes.back(), OpFoldResult(key)});
    Value none = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
    return createLoop(b, loc, b.getIndexAttr(0), count, 1, none,
                      [&](OpBuilder &inner, Value i, ValueRange word) {
                        Value position = arith::AddIOp::create(inner, loc, key, i);
                        Value index = mask.advance(inner, loc, row, rank - 1, position);
                        Value element = memref::LoadOp::create(inner, loc, mask.row, index);
                        Value kept = createDenseTest(inner, loc, element, Polarity::Nonzero);
                        Value bit = arith::ExtUIOp::create(inner, loc, inner.getI32Type(), kept);
                        Value place = arith::IndexCastOp::create(inner, loc, inner.getI32Type(), i);
                        bit = arith::ShLIOp::create(inner, loc, bit, place);
                        return SmallVector<Value>{arith::OrIOp::create(inner, loc, word[0], bit)};
                      })[0];
  }

  Location loc;
  Value words;
  unsigned rank;
  SmallVector<OpFoldResult> sizes; // batch..., q, k
  StridedView mask;
  Value bytes; // mask.row, as a buffer of bytes if the elements are booleans
  bool areKeysAdjacent;
};
} // namespace

static void lowerTest(OpBuilder &builder, TestMaskOp op, CpuAttr cpu) {
  Location loc = op.getLoc();
  Value words = op.getWords();
  OpFoldResult numRows = memref::getMixedSize(builder, loc, words, 0),
               numQueries = memref::getMixedSize(builder, loc, words, 1);
  VectorType type = VectorType::get(cpu.getLanes(), builder.getI32Type());
  Value none = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, int32_t(0))),
        ones = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, int32_t(-1)));
  bool keepsOnes = op.getKeeps() == Polarity::Nonzero;
  auto isAnySet = [&](OpBuilder &b, Value bits) {
    return createAny(b, loc, createDenseTest(b, loc, bits, Polarity::Nonzero));
  };
  auto select = [&](OpBuilder &b, Value condition, Value yes, Value no) -> Value {
    return arith::SelectOp::create(b, loc, condition, yes, no);
  };

  // The loop carries three values for the rows so far: the first row that keeps a pair, the row after the last one that
  // keeps a pair, and the union of the hidden bits.
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0),
        one = arith::ConstantIndexOp::create(builder, loc, 1),
        all = getValueOrCreateConstantIndexOp(builder, loc, numRows);
  SmallVector<Value> results = createLoop(
      builder, loc, builder.getIndexAttr(0), numRows, 1, {all, zero, none},
      [&](OpBuilder &b, Value w, ValueRange carried) {
        SmallVector<Value> unions = forEachVector(
            b, loc, numQueries, cpu.getLanes(), {none, carried[2]},
            [&](OpBuilder &inner, const Lanes &q, ValueRange bits) {
              Value kept = q.load(inner, loc, words, {w, q.offset});
              Value hidden = arith::XOrIOp::create(inner, loc, kept, ones);
              if (!keepsOnes)
                std::swap(kept, hidden);
              if (q.mask) { // lanes beyond the last query neither keep nor hide
                kept = select(inner, q.mask, kept, none);
                hidden = select(inner, q.mask, hidden, none);
              }
              return SmallVector<Value>{arith::OrIOp::create(inner, loc, bits[0], kept),
                                        arith::OrIOp::create(inner, loc, bits[1], hidden)};
            });
        Value isKept = isAnySet(b, unions[0]);
        Value begin = arith::MinUIOp::create(b, loc, carried[0], select(b, isKept, w, all));
        Value end = select(b, isKept, b.createOrFold<arith::AddIOp>(loc, w, one), carried[1]);
        return SmallVector<Value>{begin, end, unions[1]};
      });
  op.getBegin().replaceAllUsesWith(results[0]);
  op.getEnd().replaceAllUsesWith(results[1]);
  Value yes = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
  op.getAll().replaceAllUsesWith(
      arith::XOrIOp::create(builder, loc, isAnySet(builder, results[2]), yes).getResult());
}

namespace {
struct MaskToVector : attn::impl::MaskToVectorBase<MaskToVector> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<PackMaskOp, TestMaskOp>(op) && isa<MemRefType>(op->getOperand(0).getType()))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      OpBuilder builder(op);
      if (auto pack = dyn_cast<PackMaskOp>(op)) {
        Packing(builder, pack).run(builder);
      } else {
        CpuAttr cpu = getCpu(op);
        if (!cpu) {
          op->emitOpError() << "expected '" << AttnDialect::kTargetAttr
                            << "' on an enclosing module";
          return signalPassFailure();
        }
        auto words = cast<MemRefType>(op->getOperand(0).getType());
        if (!isRowContiguous(words) && words.getShape().back() != 1) {
          op->emitOpError() << "expected words with adjacent queries, got " << words;
          return signalPassFailure();
        }
        lowerTest(builder, cast<TestMaskOp>(op), cpu);
      }
      op->erase();
    }
  }
};
} // namespace
