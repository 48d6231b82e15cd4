//===- Lanes.cpp - loops over vectors of exactly L lanes -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Lanes.h"
#include "dialect/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;

Value Lanes::load(OpBuilder &builder, Location loc, Value buffer, ValueRange indices,
                  Value fill) const {
  auto bufferType = cast<MemRefType>(buffer.getType());
  VectorType type = vectorOf(bufferType.getElementType());
  if (bufferType.getShape().back() == 1 && !isRowContiguous(bufferType))
    return vector::BroadcastOp::create(builder, loc, type,
                                       memref::LoadOp::create(builder, loc, buffer, indices));
  if (!mask)
    return vector::LoadOp::create(builder, loc, type, buffer, indices);
  if (!fill)
    fill = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return vector::MaskedLoadOp::create(builder, loc, type, buffer, indices, mask, fill);
}

Lanes Lanes::ofGroups(OpBuilder &builder, Location loc, int64_t size) const {
  Value all = mask;
  for (int64_t copies = 1; all && copies < size; copies *= 2)
    all = vector::InterleaveOp::create(builder, loc, all, all);
  return {count * size, offset, all};
}

void Lanes::store(OpBuilder &builder, Location loc, Value value, Value buffer,
                  ValueRange indices) const {
  auto bufferType = cast<MemRefType>(buffer.getType());
  if (bufferType.getShape().back() == 1 && !isRowContiguous(bufferType))
    memref::StoreOp::create(builder, loc, vector::ExtractOp::create(builder, loc, value, 0), buffer,
                            indices);
  else if (mask)
    vector::MaskedStoreOp::create(builder, loc, buffer, indices, mask, value);
  else
    vector::StoreOp::create(builder, loc, value, buffer, indices);
}

OpFoldResult attn::roundDown(OpBuilder &builder, Location loc, OpFoldResult size, int64_t factor) {
  if (isMultiple(size, factor))
    return size;
  AffineExpr s0 = builder.getAffineSymbolExpr(0);
  return affine::makeComposedFoldedAffineApply(builder, loc, s0.floorDiv(factor) * factor, {size});
}

SmallVector<Value> attn::createLoop(OpBuilder &builder, Location loc, OpFoldResult begin,
                                    OpFoldResult end, int64_t step, ValueRange inits,
                                    LoopBody body) {
  std::optional<int64_t> first = getConstantIntValue(begin), last = getConstantIntValue(end);
  if (begin == end || (first && last && *first >= *last))
    return llvm::to_vector(inits);
  auto value = [&](OpFoldResult bound) {
    return getValueOrCreateConstantIndexOp(builder, loc, bound);
  };
  if (first && last && *first + step >= *last)
    return body(builder, value(begin), inits);
  auto loop =
      scf::ForOp::create(builder, loc, value(begin), value(end), value(builder.getIndexAttr(step)),
                         inits, [&](OpBuilder &inner, Location, Value index, ValueRange carried) {
                           scf::YieldOp::create(inner, loc, body(inner, index, carried));
                         });
  return llvm::to_vector(ValueRange(loop.getResults()));
}

SmallVector<Value> attn::createUnrolledLoop(OpBuilder &builder, Location loc, OpFoldResult size,
                                            int64_t unroll, ValueRange inits, UnrolledBody body) {
  OpFoldResult whole = roundDown(builder, loc, size, unroll);
  SmallVector<Value> carried =
      createLoop(builder, loc, builder.getIndexAttr(0), whole, unroll, inits,
                 [&](OpBuilder &inner, Value index, ValueRange values) {
                   SmallVector<Value> indices = {index};
                   for (int64_t i = 1; i < unroll; ++i)
                     indices.push_back(inner.createOrFold<arith::AddIOp>(
                         loc, index, arith::ConstantIndexOp::create(inner, loc, i).getResult()));
                   return body(inner, indices, values);
                 });
  return createLoop(
      builder, loc, whole, size, 1, carried,
      [&](OpBuilder &inner, Value index, ValueRange values) { return body(inner, index, values); });
}

SmallVector<Value> attn::forEachVector(OpBuilder &builder, Location loc, OpFoldResult size,
                                       int64_t lanes, ValueRange inits, VectorBody body) {
  OpFoldResult whole = roundDown(builder, loc, size, lanes);
  SmallVector<Value> carried =
      createLoop(builder, loc, builder.getIndexAttr(0), whole, lanes, inits,
                 [&](OpBuilder &inner, Value offset, ValueRange values) {
                   return body(inner, Lanes{lanes, offset, {}}, values);
                 });
  if (whole == size)
    return carried;
  VectorType maskType = VectorType::get(lanes, builder.getI1Type());
  Value offset = getValueOrCreateConstantIndexOp(builder, loc, whole);
  if (std::optional<int64_t> staticSize = getConstantIntValue(size)) {
    Value mask = vector::ConstantMaskOp::create(builder, loc, maskType, {*staticSize % lanes});
    return body(builder, Lanes{lanes, offset, mask}, carried);
  }
  Value end = getValueOrCreateConstantIndexOp(builder, loc, size);
  Value isPartial = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, offset, end);
  auto partial = scf::IfOp::create(
      builder, loc, isPartial,
      [&](OpBuilder &inner, Location) {
        Value rest = arith::SubIOp::create(inner, loc, end, offset);
        Value mask = vector::CreateMaskOp::create(inner, loc, maskType, rest);
        scf::YieldOp::create(inner, loc, body(inner, Lanes{lanes, offset, mask}, carried));
      },
      [&](OpBuilder &inner, Location) { scf::YieldOp::create(inner, loc, carried); });
  return llvm::to_vector(ValueRange(partial.getResults()));
}

Value attn::floatConstant(OpBuilder &builder, Location loc, Type type, double value) {
  TypedAttr attribute = builder.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vectorType = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vectorType, attribute);
  return arith::ConstantOp::create(builder, loc, attribute);
}

Value attn::zeroConstant(OpBuilder &builder, Location loc, Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
}

Value attn::createAdd(OpBuilder &builder, Location loc, Value a, Value b) {
  if (isa<FloatType>(getElementTypeOrSelf(a.getType())))
    return arith::AddFOp::create(builder, loc, a, b);
  return arith::AddIOp::create(builder, loc, a, b);
}

Value attn::createConversion(OpBuilder &builder, Location loc, Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == element)
    return value;
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  bool isWider = element.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth();
  if (isa<IntegerType>(element))
    return isWider ? arith::ExtSIOp::create(builder, loc, type, value).getResult()
                   : arith::TruncIOp::create(builder, loc, type, value).getResult();
  return isWider ? arith::ExtFOp::create(builder, loc, type, value).getResult()
                 : arith::TruncFOp::create(builder, loc, type, value).getResult();
}

Value attn::createIsEqual(OpBuilder &builder, Location loc, Value value, double constant) {
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, value,
                               floatConstant(builder, loc, value.getType(), constant));
}

Value attn::createAny(OpBuilder &builder, Location loc, Value lanes) {
  return vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, lanes);
}

Value attn::createMax(OpBuilder &builder, Location loc, Value a, Value b) {
  Value isGreater = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, a, b);
  return arith::SelectOp::create(builder, loc, isGreater, a, b);
}

Value attn::reduceTree(ArrayRef<Value> values, llvm::function_ref<Value(Value, Value)> combine) {
  if (values.size() == 1)
    return values.front();
  size_t half = values.size() / 2;
  return combine(reduceTree(values.take_front(half), combine),
                 reduceTree(values.drop_front(half), combine));
}

Value attn::getSource(Value view) {
  while (auto part = view.getDefiningOp<memref::SubViewOp>())
    view = part.getSource();
  return view;
}

bool attn::isRowContiguous(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  return strides.empty() || strides.back() == 1;
}
