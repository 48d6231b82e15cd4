//===- Order.cpp - aten ops that compare elements with each other ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// These ops compare all pairs of elements, so that the number of steps does not depend on data.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn::pt2;

/// The largest number of elements that attn sorts. The number of comparisons grows with the square of the number of
/// elements.
static constexpr int64_t kMaxSorted = 4096;

/// The type for comparisons. Integers are compared as int64, which can hold the values of the unsigned types too.
static DType comparedAs(DType dtype) { return isFloat(dtype) ? computeType(dtype) : DType::I64; }

/// x > y, where NaN is greater than any number.
static Value isGreater(TensorBuilder &b, Value x, Value y) {
  if (!isa<FloatType>(x.getType()))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, x, y);
  Value isNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, y, y);
  Value isAbove = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, x, y);
  return arith::AndIOp::create(b, isNumber, isAbove);
}

static Value toInteger(TensorBuilder &b, Value condition) {
  return arith::ExtUIOp::create(b, b.getI64Type(), condition);
}

static Value indexAsInteger(TensorBuilder &b, int64_t dim) {
  return arith::IndexCastOp::create(b, b.getI64Type(), linalg::IndexOp::create(b, dim));
}

static Value addIntegers(TensorBuilder &b, Value x, Value y) {
  return arith::AddIOp::create(b, x, y);
}

/// The map by which an op of rank + 1 loops reads a tensor: the last loop, in place of loop `dim`, indexes dimension
/// `dim`.
static AffineMap alongLast(TensorBuilder &b, int64_t rank, int64_t dim) {
  SmallVector<AffineExpr> exprs;
  for (int64_t i = 0; i < rank; ++i)
    exprs.push_back(b.getAffineDimExpr(i == dim ? rank : i));
  return AffineMap::get(rank + 1, 0, exprs, b.getContext());
}

/// The positions along `dim` of the first `count` elements in sorted order. The sort is stable.
static Tensor orderOf(TensorBuilder &b, const Tensor &x, int64_t dim, const Size &count,
                      bool isDescending) {
  int64_t rank = x.rank();
  DType as = comparedAs(x.dtype);
  AffineMap same = AffineMap::getMultiDimIdentityMap(rank + 1, b.getContext()).getSliceMap(0, rank),
            other = alongLast(b, rank, dim);
  Sizes pairs = x.sizes;
  pairs.push_back(x.sizes[dim]);
  Value zero = b.scalar(DType::I64, int64_t(0));
  auto add = [&](Value x, Value y) { return addIntegers(b, x, y); };
  // For each element, count the elements that come before it.
  Tensor places = b.reduce(
      pairs, rank, zero, DType::I64, {{x, as, same}, {x, as, other}},
      [&](ValueRange e) -> Value {
        Value first = isDescending ? e[1] : e[0], second = isDescending ? e[0] : e[1];
        Value isBefore = isGreater(b, first, second), isAfter = isGreater(b, second, first);
        Value isEarlier = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                                indexAsInteger(b, rank), indexAsInteger(b, dim));
        Value isTie =
            arith::SelectOp::create(b, isAfter, b.scalar(DType::Bool, int64_t(0)), isEarlier);
        return toInteger(b, arith::OrIOp::create(b, isBefore, isTie));
      },
      add);
  Sizes found = x.sizes;
  found[dim] = count;
  found.push_back(x.sizes[dim]);
  return b.reduce(
      found, rank, zero, DType::I64, Operand{places, DType::I64, other},
      [&](ValueRange e) -> Value {
        Value isHere =
            arith::CmpIOp::create(b, arith::CmpIPredicate::eq, e[0], indexAsInteger(b, dim));
        return arith::SelectOp::create(b, isHere, indexAsInteger(b, rank), zero);
      },
      add);
}

/// The sorted elements of `dim` and their positions. topk takes the first elements; argsort returns only the positions.
static std::function<LogicalResult(Call &)> sorted(bool isTopK, bool returnsValues) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor("self");
    // These flags are ignored: the sort is always stable, and the results are always sorted.
    for (StringRef name : {"sorted", "stable"})
      call.flag(name);
    bool isDescending = isTopK ? call.flag("largest", true) : call.flag("descending");
    Size count = isTopK ? call.integer("k") : Size(1);
    if (call.failed())
      return failure();
    if (x.rank() == 0) {
      FailureOr<Tensor> vector = viewAs(call, x, Size(1));
      if (failed(vector))
        return failure();
      x = *vector;
    }
    bool isScalar = call.expected().sizes.empty();
    int64_t dim = call.dim("dim", x.rank(), -1);
    if (call.failed())
      return failure();
    if (!isTopK)
      count = x.sizes[dim];
    if (x.sizes[dim].constant().value_or(0) > kMaxSorted)
      return call.error() << "expected to sort at most " << kMaxSorted << " elements, got "
                          << x.sizes[dim].str();
    call.requireAtMost(x.sizes[dim], Size(kMaxSorted));
    call.requireAtMost(Size(0), count);
    call.requireAtMost(count, x.sizes[dim]);
    if (call.failed())
      return failure();
    TensorBuilder &b = call.b;
    Tensor places = orderOf(b, x, dim, count, isDescending);
    call.state().positions.try_emplace(places.value, x.sizes[dim]);
    Tensor values = b.elementwise(places.sizes, x.dtype, Operand{places, DType::I64},
                                  [&](ValueRange e) -> Value {
                                    SmallVector<Value> at;
                                    for (int64_t i = 0; i < x.rank(); ++i)
                                      at.push_back(linalg::IndexOp::create(b, i));
                                    at[dim] = arith::IndexCastOp::create(b, b.getIndexType(), e[0]);
                                    Value element = tensor::ExtractOp::create(b, x.value, at);
                                    return b.convert(element, x.dtype, computeType(x.dtype));
                                  });
    auto set = [&](Tensor result) -> LogicalResult {
      FailureOr<Tensor> view = isScalar ? viewAs(call, result, {}) : FailureOr<Tensor>(result);
      return failed(view) ? failure() : call.result(*view);
    };
    if (returnsValues && failed(set(values)))
      return failure();
    return set(places);
  };
}

/// For each element, the number of boundaries less than the element or, with `right`, less than or equal to it. The
/// boundaries are in increasing order.
static std::function<LogicalResult(Call &)> bucketize(StringRef elements, StringRef boundaries) {
  return [=](Call &call) -> LogicalResult {
    Tensor x = call.tensor(elements), bounds = call.tensor(boundaries);
    bool isRight = call.flag("right") || call.string("side", "left") == "right";
    DType dtype = call.flag("out_int32") ? DType::I32 : DType::I64;
    if (call.failed())
      return failure();
    if (bounds.rank() != 1)
      return call.error() << "expected boundaries of rank 1, got " << str(bounds.sizes);
    TensorBuilder &b = call.b;
    int64_t rank = x.rank();
    DType as = comparedAs(promote(Tensor{{}, x.dtype, bounds.sizes}, bounds));
    Sizes domain = x.sizes;
    domain.push_back(bounds.sizes[0]);
    AffineMap all = AffineMap::getMultiDimIdentityMap(rank + 1, b.getContext());
    Tensor counts = b.reduce(
        domain, rank, b.scalar(DType::I64, int64_t(0)), DType::I64,
        {{x, as, all.getSliceMap(0, rank)}, {bounds, as, all.getSliceMap(rank, 1)}},
        [&](ValueRange e) -> Value {
          // Comparisons with NaN are false, so NaN comes after all boundaries.
          Value stops =
              isa<FloatType>(e[0].getType())
                  ? Value(arith::CmpFOp::create(
                        b, isRight ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OGE, e[1],
                        e[0]))
                  : Value(arith::CmpIOp::create(
                        b, isRight ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::sge, e[1],
                        e[0]));
          Value one = b.scalar(DType::I64, int64_t(1)), zero = b.scalar(DType::I64, int64_t(0));
          return arith::SelectOp::create(b, stops, zero, one);
        },
        [&](Value x, Value y) { return addIntegers(b, x, y); });
    return call.result(b.castTo(counts, dtype));
  };
}

/// Whether each element is one of `test_elements` or, with `invert`, is none of them.
static LogicalResult isIn(Call &call) {
  Tensor x = call.tensor("elements"), among = call.tensor("test_elements");
  call.flag("assume_unique");
  bool inverts = call.flag("invert");
  std::optional<Size> count = Size(1);
  for (const Size &size : among.sizes)
    count = count ? multiply(*count, size) : count;
  if (call.failed() || !count)
    return failure();
  DType as = comparedAs(promote(x, among));
  FailureOr<Tensor> flat = viewAs(call, among, *count);
  if (failed(flat))
    return failure();
  TensorBuilder &b = call.b;
  int64_t rank = x.rank();
  Sizes domain = x.sizes;
  domain.push_back(*count);
  AffineMap all = AffineMap::getMultiDimIdentityMap(rank + 1, b.getContext());
  Tensor found = b.reduce(
      domain, rank, b.scalar(DType::Bool, int64_t(0)), DType::Bool,
      {{x, as, all.getSliceMap(0, rank)}, {*flat, as, all.getSliceMap(rank, 1)}},
      [&](ValueRange e) -> Value {
        if (isa<FloatType>(e[0].getType()))
          return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, e[0], e[1]);
        return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, e[0], e[1]);
      },
      [&](Value x, Value y) -> Value { return arith::OrIOp::create(b, x, y); });
  if (!inverts)
    return call.result(found);
  Value yes = b.scalar(DType::Bool, int64_t(1));
  return call.result(
      b.elementwise(x.sizes, DType::Bool, Operand{found, DType::Bool},
                    [&](ValueRange e) -> Value { return arith::XOrIOp::create(b, e[0], yes); }));
}

void attn::pt2::addOrder(AtenOps &ops) {
  StringRef limits = "more than 4096 elements";
  ops.add("topk.default", sorted(/*isTopK=*/true, /*returnsValues=*/true), limits);
  for (StringRef overload : {"default", "stable"}) {
    ops.add(("sort." + overload).str(), sorted(/*isTopK=*/false, /*returnsValues=*/true), limits);
    ops.add(("argsort." + overload).str(), sorted(/*isTopK=*/false, /*returnsValues=*/false),
            limits);
  }
  ops.add("bucketize.Tensor", bucketize("self", "boundaries"));
  ops.add("searchsorted.Tensor", bucketize("self", "sorted_sequence"),
          "sorted sequences of more than one dimension; sorters");
  ops.add("isin.Tensor_Tensor", isIn);
}
