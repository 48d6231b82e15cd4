//===- SoftmaxToVector.cpp - a softmax of stored scores --------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   linalg.softmax dimension(1) ins(%x : memref<4x48xf32>) outs(%y : memref<4x48xf32>)
// becomes
//   scf.for %i = 0 to 4 {
//     %m = scf.for %j = 0 to 48 step 16 ...     // maximum
//     %l = scf.for %j = 0 to 48 step 16 ...     // y = exp2(the exponent of x relative to m), and the sum
//     scf.for %j = 0 to 48 step 16 ...          // y *= 1 / l
//   }
//
// Vectors run along the last dimension. If the softmax reduces this dimension, the maximum and the
// sum of a row end in a reduction across lanes. If it reduces another dimension, every lane has its
// own maximum and sum, and no op crosses lanes. Input and output may be the same buffer. If the
// elements of the last dimension are not adjacent, vectors have one lane.
// Test: test/codegen/cpu/softmax-to-vector.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Exp2.h"
#include "codegen/cpu/Lanes.h"
#include "codegen/cpu/Passes.h"
#include "dialect/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

namespace attn {
#define GEN_PASS_DEF_SOFTMAXTOVECTOR
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
/// One softmax along dimension `dim`. `indices` has the induction variables of the loops emitted so far.
struct SoftmaxBuilder {
  Location loc;
  Value input, output;
  int64_t dim;
  CpuAttr cpu;
  SmallVector<Value> indices;
  int64_t lanes = cpu.getLanes(), unroll = exponentialsInFlight(cpu);

  int64_t rank() const { return indices.size(); }
  OpFoldResult sizeOf(OpBuilder &b, int64_t i) const {
    return memref::getMixedSize(b, loc, output, i);
  }

  /// Emits loops over every dimension except the reduced one and the last, and inside them a row or a column of
  /// vectors.
  void createLoops(OpBuilder &builder, int64_t outer) {
    if (outer == rank() - 1)
      return dim == outer ? createRow(builder) : createColumns(builder);
    if (outer == dim)
      return createLoops(builder, outer + 1);
    createLoop(builder, loc, builder.getIndexAttr(0), sizeOf(builder, outer), 1, {},
               [&](OpBuilder &b, Value index, ValueRange) {
                 indices[outer] = index;
                 createLoops(b, outer + 1);
                 return SmallVector<Value>();
               });
  }

  Value constant(OpBuilder &b, double value) {
    return floatConstant(b, loc, VectorType::get(lanes, b.getF32Type()), value);
  }
  Value lowest(OpBuilder &b) { return constant(b, -kInfinity); }
  Value add(OpBuilder &b, Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value inverse(OpBuilder &b, Value sum) {
    return arith::DivFOp::create(b, loc, floatConstant(b, loc, sum.getType(), 1), sum);
  }
  SmallVector<Value> exponentials(OpBuilder &b, ValueRange xs, Value max) {
    Exponents relative(b, loc, max, llvm::numbers::log2e, cpu);
    auto exponents = llvm::map_to_vector(xs, [&](Value x) { return relative.of(b, x); });
    return createExp2(b, loc, exponents, cpu, Underflow::Zero);
  }
  void scale(OpBuilder &b, const Lanes &vector, ValueRange at, Value factor) {
    vector.store(b, loc, arith::MulFOp::create(b, loc, vector.load(b, loc, output, at), factor),
                 output, at);
  }

  /// Emits a softmax along the last dimension. Lanes beyond its end hold -inf, whose exponential is 0.
  void createRow(OpBuilder &builder) {
    VectorType type = VectorType::get(lanes, builder.getF32Type());
    OpFoldResult size = sizeOf(builder, dim);
    auto at = [&](const Lanes &vector) {
      SmallVector<Value> result = indices;
      result[dim] = vector.offset;
      return result;
    };
    auto toAll = [&](Value lane) -> Value {
      return vector::BroadcastOp::create(builder, loc, type, lane);
    };
    Value max = forEachVector(builder, loc, size, lanes, lowest(builder),
                              [&](OpBuilder &b, const Lanes &vector, ValueRange carried) {
                                Value x = vector.load(b, loc, input, at(vector), lowest(b));
                                return SmallVector<Value>{createMax(b, loc, x, carried[0])};
                              })[0];
    // No lane of the maximum is NaN.
    max = toAll(vector::ReductionOp::create(builder, loc, vector::CombiningKind::MAXNUMF, max,
                                            arith::FastMathFlags::nnan));
    Value sum = forEachVector(builder, loc, size, lanes, constant(builder, 0),
                              [&](OpBuilder &b, const Lanes &vector, ValueRange carried) {
                                Value x = vector.load(b, loc, input, at(vector), lowest(b));
                                Value p = exponentials(b, x, max)[0];
                                vector.store(b, loc, p, output, at(vector));
                                return SmallVector<Value>{add(b, carried[0], p)};
                              })[0];
    sum = vector::ReductionOp::create(builder, loc, vector::CombiningKind::ADD, sum,
                                      arith::FastMathFlags::reassoc);
    Value factor = toAll(inverse(builder, sum));
    forEachVector(builder, loc, size, lanes, {},
                  [&](OpBuilder &b, const Lanes &vector, ValueRange) {
                    scale(b, vector, at(vector), factor);
                    return SmallVector<Value>();
                  });
  }

  /// Emits softmaxes along another dimension: every lane is a separate softmax.
  void createColumns(OpBuilder &builder) {
    forEachVector(builder, loc, sizeOf(builder, rank() - 1), lanes, {},
                  [&](OpBuilder &b, const Lanes &vector, ValueRange) {
                    createColumn(b, vector);
                    return SmallVector<Value>();
                  });
  }
  void createColumn(OpBuilder &builder, const Lanes &vector) {
    OpFoldResult size = sizeOf(builder, dim);
    auto at = [&](Value row) {
      SmallVector<Value> result = indices;
      result[dim] = row;
      result.back() = vector.offset;
      return result;
    };
    auto load = [&](OpBuilder &b, ArrayRef<Value> rows) {
      return llvm::map_to_vector(rows,
                                 [&](Value row) { return vector.load(b, loc, input, at(row)); });
    };
    Value max = createUnrolledLoop(builder, loc, size, unroll, lowest(builder),
                                   [&](OpBuilder &b, ArrayRef<Value> rows, ValueRange carried) {
                                     Value max = carried[0];
                                     for (Value x : load(b, rows))
                                       max = createMax(b, loc, x, max);
                                     return SmallVector<Value>{max};
                                   })[0];
    Value sum = createUnrolledLoop(builder, loc, size, unroll, constant(builder, 0),
                                   [&](OpBuilder &b, ArrayRef<Value> rows, ValueRange carried) {
                                     SmallVector<Value> ps = exponentials(b, load(b, rows), max);
                                     for (auto [p, row] : llvm::zip_equal(ps, rows))
                                       vector.store(b, loc, p, output, at(row));
                                     Value total = reduceTree(
                                         ps, [&](Value x, Value y) { return add(b, x, y); });
                                     return SmallVector<Value>{add(b, carried[0], total)};
                                   })[0];
    Value factor = inverse(builder, sum);
    createUnrolledLoop(builder, loc, size, unroll, {},
                       [&](OpBuilder &b, ArrayRef<Value> rows, ValueRange) {
                         for (Value row : rows)
                           scale(b, vector, at(row), factor);
                         return SmallVector<Value>();
                       });
  }
};

/// `cpu` with vectors of one f32, so that elements are loaded and stored one by one.
CpuAttr withOneLane(CpuAttr cpu) {
  return CpuAttr::get(cpu.getContext(), cpu.getLevel(), /*vector=*/32, cpu.getRegisters(),
                      cpu.getSpare(), cpu.getL1(), cpu.getL2(),
                      cpu.getHas() & ~CpuCapabilities::Scale, cpu.getPipelines());
}

struct SoftmaxToVector : attn::impl::SoftmaxToVectorBase<SoftmaxToVector> {
  void runOnOperation() override {
    SmallVector<linalg::SoftmaxOp> ops;
    getOperation()->walk([&](linalg::SoftmaxOp op) { ops.push_back(op); });
    for (linalg::SoftmaxOp op : ops) {
      CpuAttr cpu = getCpu(op);
      if (!cpu) {
        op.emitOpError() << "expected a module with " << AttnDialect::kTargetAttr << ", got none";
        return signalPassFailure();
      }
      for (Value operand : op->getOperands()) {
        auto type = dyn_cast<MemRefType>(operand.getType());
        if (type && type.getElementType().isF32()) {
          if (!isRowContiguous(type))
            cpu = withOneLane(cpu);
          continue;
        }
        op.emitOpError() << "expected buffers of f32, got " << operand.getType();
        return signalPassFailure();
      }
      OpBuilder builder(op);
      SmallVector<Value> indices(cast<MemRefType>(op.getInput().getType()).getRank());
      SoftmaxBuilder{op.getLoc(), op.getInput(), op.getOutput(), int64_t(op.getDimension()),
                     cpu,         indices}
          .createLoops(builder, 0);
      op.erase();
    }
  }
};
} // namespace
