//===- Groups.cpp - ops of mixtures of experts -----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A mixture of experts sorts its tokens by expert, counts the tokens of each expert (histc), and multiplies the rows of
// the tokens of each expert by the matrix of the expert (grouped_mm).
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn::pt2;

/// Counts the elements in each of the bins that divide [min, max] evenly. Elements outside of [min, max] are ignored.
static LogicalResult countInBins(Call &call) {
  Tensor x = call.tensor("self");
  int64_t bins = call.constant("bins", 100);
  double least = call.number("min", 0), greatest = call.number("max", 0);
  if (call.failed())
    return failure();
  float range = float(greatest) - float(least);
  if (!isFloat(x.dtype) || bins < 1 || !(range > 0) || !std::isfinite(range * float(bins)))
    return call.error() << "expected floats and bins between a minimum and a greater maximum, got "
                        << str(x.dtype) << ", " << bins << " bins from " << least << " to "
                        << greatest << "; pass min and max";
  TensorBuilder &b = call.b;
  DType as = computeType(x.dtype);
  Sizes sizes = {Size(bins)};
  llvm::append_range(sizes, x.sizes);
  AffineMap ofX = AffineMap::getMultiDimIdentityMap(sizes.size(), b.getContext())
                      .getSliceMap(1, sizes.size() - 1);
  auto constant = [&](double number) { return b.scalar(as, number); };
  auto compare = [&](arith::CmpFPredicate predicate, Value x, double y) -> Value {
    return arith::CmpFOp::create(b, predicate, x, constant(y));
  };
  Tensor counts = b.sum(sizes, /*numKept=*/1, DType::F32, Operand{x, as, ofX}, [&](ValueRange e) -> Value {
    // As in torch, the bin is (x - min) * bins / (max - min), rounded down. The maximum is in the last bin.
    Value position = arith::SubFOp::create(b, e[0], constant(least));
    position = arith::MulFOp::create(b, position, constant(double(bins)));
    position = arith::DivFOp::create(b, position, constant(greatest - least));
    Value isInside =
        arith::AndIOp::create(b, compare(arith::CmpFPredicate::OGE, e[0], least),
                              compare(arith::CmpFPredicate::OLE, e[0], greatest));
    // A position outside of the range may not fit in an integer.
    position = arith::SelectOp::create(b, isInside, position, constant(0));
    Value bin = arith::FPToSIOp::create(b, b.getI64Type(), position);
    bin = arith::MinSIOp::create(b, bin, b.scalar(DType::I64, bins - 1));
    Value row = arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, 0));
    Value isHere = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bin, row);
    return arith::SelectOp::create(b, arith::AndIOp::create(b, isHere, isInside),
                                   b.scalar(DType::F32, 1.0), b.scalar(DType::F32, 0.0));
  });
  return call.result(b.castTo(counts, x.dtype));
}

/// result[i] = input[i] times weight[g], where g is the group of row i: group g ends before row offsets[g]. Rows
/// after the last group are 0.
static LogicalResult multiplyGroups(Call &call, StringRef rows, StringRef matrices) {
  Tensor x = call.tensor(rows), weight = call.tensor(matrices), offsets = call.tensor("offs");
  if (call.failed())
    return failure();
  if (x.rank() != 2 || weight.rank() != 3 || offsets.rank() != 1 || !isFloat(x.dtype) ||
      weight.dtype != x.dtype || x.sizes[1] != weight.sizes[1] ||
      offsets.sizes[0] != weight.sizes[0] || !offsets.sizes[0].constant() ||
      *offsets.sizes[0].constant() < 1 ||
      (offsets.dtype != DType::I32 && offsets.dtype != DType::I64))
    return call.error() << "expected rows, a matrix for each group and the ends of the groups, got "
                        << str(x.dtype) << str(x.sizes) << ", " << str(weight.dtype)
                        << str(weight.sizes) << " and " << str(offsets.dtype)
                        << str(offsets.sizes);
  TensorBuilder &b = call.b;
  DType as = computeType(x.dtype);
  const Size &numRows = x.sizes[0];
  int64_t numGroups = *offsets.sizes[0].constant();
  AffineExpr first = b.getAffineDimExpr(0), second = b.getAffineDimExpr(1);
  auto map = [&](unsigned dims, ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(dims, 0, exprs, b.getContext());
  };
  // For each row, the number of groups that end before it. This is the index of the group of the row.
  Tensor groups = b.sum({numRows, Size(numGroups)}, /*numKept=*/1, DType::I64,
                        Operand{offsets, DType::I64, map(2, {second})}, [&](ValueRange e) -> Value {
                          Value row = arith::IndexCastOp::create(b, b.getI64Type(),
                                                                 linalg::IndexOp::create(b, 0));
                          Value ends = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, e[0], row);
                          return arith::ExtUIOp::create(b, b.getI64Type(), ends);
                        });
  // The loops are the rows, the summed dimension and the columns, so that the innermost loop reads a row of the matrix.
  Sizes domain = {numRows, x.sizes[1], weight.sizes[2]};
  Tensor result = b.sum(
      domain, ArrayRef<int64_t>{1}, as,
      {Operand{x, as, map(3, {first, second})}, Operand{groups, DType::I64, map(3, {first})}},
      [&](ValueRange e) -> Value {
        Value last = b.scalar(DType::I64, numGroups - 1);
        Value isInside = arith::CmpIOp::create(b, arith::CmpIPredicate::sle, e[1], last);
        Value group = arith::IndexCastOp::create(b, b.getIndexType(),
                                                 arith::MinSIOp::create(b, e[1], last));
        Value factor = tensor::ExtractOp::create(
            b, weight.value,
            ValueRange{group, linalg::IndexOp::create(b, 1), linalg::IndexOp::create(b, 2)});
        Value product =
            arith::MulFOp::create(b, e[0], b.convert(factor, weight.dtype, as));
        return arith::SelectOp::create(b, isInside, product, b.scalar(as, 0.0));
      });
  return call.result(b.castTo(result, x.dtype));
}

void attn::pt2::addGroups(AtenOps &ops) {
  ops.add("histc.default", countInBins, "a range that depends on data");
  ops.add("_grouped_mm.default", [](Call &call) { return multiplyGroups(call, "self", "mat2"); },
          "a bias");
  // Hugging Face's transformers registers this op for CPUs.
  ops.add("transformers.grouped_mm_fallback.default",
          [](Call &call) { return multiplyGroups(call, "input", "weight"); });
}
