//===- TensorBuilder.cpp - tensors of symbolic size in linalg --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/graph/TensorBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;
using namespace attn::graph;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

void TensorBuilder::bindSymbol(StringRef name, Value argument, int64_t dim) {
  symbols.try_emplace(name, argument, dim);
}

RankedTensorType TensorBuilder::typeOf(ArrayRef<Size> sizes, DType dtype) {
  SmallVector<int64_t> shape;
  for (const Size &size : sizes)
    shape.push_back(size.constant().value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, elementType(dtype, getContext()));
}

Value TensorBuilder::valueOf(const Size::Factor &factor) {
  if (!factor.operands) {
    Value &value = symbolValues[factor.text];
    if (!value) {
      // Read the dimension at the start of the function, so that it is read only once.
      auto [argument, dim] = symbols.lookup(factor.text);
      InsertionGuard guard(*this);
      setInsertionPointToStart(cast<BlockArgument>(argument).getOwner());
      value = tensor::DimOp::create(*this, argument, dim);
    }
    return value;
  }
  const auto &[first, second] = *factor.operands;
  Value a = indexOf(first), b = indexOf(second);
  switch (factor.function) {
  case Size::Function::Quotient:
  case Size::Function::Remainder:
    assumed.insert(assumed.end(), {{first, 0}, {second, 1}});
    if (factor.function == Size::Function::Quotient)
      return arith::DivUIOp::create(*this, a, b);
    return arith::RemUIOp::create(*this, a, b);
  case Size::Function::Max:
    return arith::MaxSIOp::create(*this, a, b);
  case Size::Function::Min:
    return arith::MinSIOp::create(*this, a, b);
  }
  llvm_unreachable("every function returns");
}

OpFoldResult TensorBuilder::sizeOf(const Size &size) {
  if (std::optional<int64_t> constant = size.constant())
    return getIndexAttr(*constant);
  Value sum;
  for (const auto &[monomial, coefficient] : size.terms()) {
    Value product;
    for (const Size::Factor &factor : monomial)
      product = product ? arith::MulIOp::create(*this, product, valueOf(factor)) : valueOf(factor);
    if (!product || coefficient != 1) {
      Value factor = arith::ConstantIndexOp::create(*this, coefficient);
      product = product ? arith::MulIOp::create(*this, product, factor) : factor;
    }
    sum = sum ? arith::AddIOp::create(*this, sum, product) : product;
  }
  created.try_emplace(sum, size);
  return sum;
}

std::optional<Size> TensorBuilder::findSize(OpFoldResult value) const {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return Size(*constant);
  auto found = created.find(cast<Value>(value));
  return found == created.end() ? std::nullopt : std::optional(found->second);
}

Value TensorBuilder::indexOf(const Size &size) {
  OpFoldResult value = sizeOf(size);
  if (auto attribute = dyn_cast<Attribute>(value))
    return arith::ConstantIndexOp::create(*this, cast<IntegerAttr>(attribute).getInt());
  return cast<Value>(value);
}

Tensor TensorBuilder::number(const Size &size) {
  Value integer = arith::IndexCastOp::create(*this, getI64Type(), indexOf(size));
  return {tensor::FromElementsOp::create(*this, typeOf({}, DType::I64), integer), DType::I64, {}};
}

SmallVector<OpFoldResult> TensorBuilder::sizesOf(ArrayRef<Size> sizes) {
  return llvm::map_to_vector(sizes, [&](const Size &size) { return sizeOf(size); });
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value TensorBuilder::scalar(DType dtype, double number) {
  return arith::ConstantOp::create(*this, getFloatAttr(elementType(dtype, getContext()), number));
}

Value TensorBuilder::scalar(DType dtype, int64_t number) {
  if (isFloat(dtype))
    return scalar(dtype, double(number));
  if (dtype == DType::Bool)
    number = number != 0;
  return arith::ConstantOp::create(*this, getIntegerAttr(elementType(dtype, getContext()), number));
}

bool TensorBuilder::converts(DType from, DType to) {
  auto category = [](DType dtype) { return isFloat(dtype) ? 2 : dtype == DType::Bool ? 0 : 1; };
  return category(from) <= category(to);
}

Value TensorBuilder::convert(Value value, DType from, DType to) {
  Type type = elementType(to, getContext());
  if (value.getType() == type)
    return value;
  bool isUnsigned = from == DType::Bool || from == DType::U8;
  if (to == DType::Bool)
    return isNonzero(value);
  if (isFloat(from) && !isFloat(to)) {
    if (to == DType::U8)
      return arith::TruncIOp::create(*this, type,
                                     arith::FPToSIOp::create(*this, getI32Type(), value));
    return arith::FPToSIOp::create(*this, type, value);
  }
  if (isFloat(from)) {
    if (byteSize(from) < byteSize(to))
      return arith::ExtFOp::create(*this, type, value);
    if (byteSize(from) > byteSize(to))
      return arith::TruncFOp::create(*this, type, value);
    // float16 and bfloat16: neither type contains the other, so convert through float32.
    return arith::TruncFOp::create(*this, type, arith::ExtFOp::create(*this, getF32Type(), value));
  }
  if (isFloat(to)) {
    if (isUnsigned)
      return arith::UIToFPOp::create(*this, type, value);
    return arith::SIToFPOp::create(*this, type, value);
  }
  if (value.getType().getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(*this, type, value);
  if (isUnsigned)
    return arith::ExtUIOp::create(*this, type, value);
  return arith::ExtSIOp::create(*this, type, value);
}

Value TensorBuilder::isNonzero(Value value) {
  if (value.getType().isInteger(1))
    return value;
  Value zero = arith::ConstantOp::create(*this, getZeroAttr(value.getType()));
  if (isa<FloatType>(value.getType()))
    return arith::CmpFOp::create(*this, arith::CmpFPredicate::UNE, value, zero);
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::ne, value, zero);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Tensor TensorBuilder::empty(ArrayRef<Size> sizes, DType dtype) {
  Value value = tensor::EmptyOp::create(*this, sizesOf(sizes), elementType(dtype, getContext()));
  return {value, dtype, Sizes(sizes)};
}

Tensor TensorBuilder::fill(ArrayRef<Size> sizes, Value scalar, DType dtype) {
  Tensor init = empty(sizes, dtype);
  init.value = linalg::FillOp::create(*this, scalar, init.value).getResult(0);
  return init;
}

Tensor TensorBuilder::fill(ArrayRef<Size> sizes, DType dtype, int64_t number) {
  return fill(sizes, scalar(dtype, number), dtype);
}

std::optional<Sizes> TensorBuilder::broadcast(ArrayRef<Sizes> operands) {
  Sizes result;
  for (const Sizes &sizes : operands) {
    if (sizes.size() > result.size())
      result.insert(result.begin(), sizes.size() - result.size(), Size(1));
    for (auto [have, want] : llvm::zip(llvm::reverse(sizes), llvm::reverse(result))) {
      if (want.isOne())
        want = have;
      else if (!have.isOne() && have != want)
        return std::nullopt;
    }
  }
  return result;
}

AffineMap TensorBuilder::broadcastMap(ArrayRef<Size> sizes, ArrayRef<Size> result) {
  SmallVector<AffineExpr> exprs;
  size_t missing = result.size() - sizes.size();
  for (auto [i, size] : llvm::enumerate(sizes)) {
    bool isBroadcast = size.isOne() && !result[missing + i].isOne();
    exprs.push_back(isBroadcast ? getAffineConstantExpr(0) : getAffineDimExpr(missing + i));
  }
  return AffineMap::get(result.size(), 0, exprs, getContext());
}

Tensor TensorBuilder::generic(const Tensor &init, AffineMap initMap,
                              ArrayRef<utils::IteratorType> iterators, ArrayRef<Operand> operands,
                              ArrayRef<Size> domain, function_ref<Value(ValueRange, Value)> body) {
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const Operand &operand : operands) {
    inputs.push_back(operand.tensor.value);
    maps.push_back(operand.map ? operand.map : broadcastMap(operand.tensor.sizes, domain));
  }
  maps.push_back(initMap);
  auto op = linalg::GenericOp::create(
      *this, init.value.getType(), inputs, init.value, maps, iterators,
      [&](OpBuilder &, Location, ValueRange args) {
        SmallVector<Value> elements;
        for (auto [operand, arg] : llvm::zip(operands, args))
          elements.push_back(convert(arg, operand.tensor.dtype, operand.as));
        Value result = body(elements, args.back());
        linalg::YieldOp::create(*this, convert(result, computeType(init.dtype), init.dtype));
      });
  return {op.getResult(0), init.dtype, init.sizes};
}

Tensor TensorBuilder::elementwise(ArrayRef<Size> sizes, DType dtype, ArrayRef<Operand> operands,
                                  Body body) {
  SmallVector<utils::IteratorType> parallel(sizes.size(), utils::IteratorType::parallel);
  return generic(empty(sizes, dtype), getMultiDimIdentityMap(sizes.size()), parallel, operands,
                 sizes, [&](ValueRange elements, Value) { return body(elements); });
}

Tensor TensorBuilder::castTo(const Tensor &tensor, DType dtype) {
  if (tensor.dtype == dtype)
    return tensor;
  if (dtype == DType::Bool)
    return elementwise(tensor.sizes, dtype, Operand{tensor, tensor.dtype},
                       [&](ValueRange x) { return isNonzero(x.front()); });
  return elementwise(tensor.sizes, dtype, Operand{tensor, computeType(dtype)},
                     [](ValueRange x) { return x.front(); });
}

Tensor TensorBuilder::broadcastTo(const Tensor &tensor, ArrayRef<Size> sizes) {
  if (ArrayRef<Size>(tensor.sizes) == sizes)
    return tensor;
  return elementwise(sizes, tensor.dtype, Operand{tensor, tensor.dtype},
                     [](ValueRange x) { return x.front(); });
}

Tensor TensorBuilder::reduce(ArrayRef<Size> sizes, ArrayRef<int64_t> reduced, Value start,
                             DType dtype, ArrayRef<Operand> operands, Body body, Combine combine) {
  SmallVector<utils::IteratorType> iterators(sizes.size(), utils::IteratorType::parallel);
  SmallVector<AffineExpr> exprs;
  Sizes kept;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (llvm::is_contained(reduced, int64_t(dim))) {
      iterators[dim] = utils::IteratorType::reduction;
      continue;
    }
    exprs.push_back(getAffineDimExpr(dim));
    kept.push_back(size);
  }
  AffineMap map = AffineMap::get(sizes.size(), 0, exprs, getContext());
  return generic(
      fill(kept, start, dtype), map, iterators, operands, sizes,
      [&](ValueRange elements, Value sofar) -> Value { return combine(sofar, body(elements)); });
}

Tensor TensorBuilder::sum(ArrayRef<Size> sizes, ArrayRef<int64_t> reduced, DType dtype,
                          ArrayRef<Operand> operands, Body body) {
  constexpr uint64_t kLongSum = 4096;
  uint64_t count = 1;
  for (int64_t dim : reduced)
    count = llvm::SaturatingMultiply<uint64_t>(count, sizes[dim].constant().value_or(1));
  DType as = dtype == DType::F32 && count > kLongSum ? DType::F64 : dtype;
  Tensor total = reduce(
      sizes, reduced, isFloat(as) ? scalar(as, 0.0) : scalar(as, int64_t(0)), as, operands,
      [&](ValueRange elements) { return convert(body(elements), dtype, as); },
      [&](Value sum, Value element) -> Value {
        if (isFloat(as))
          return arith::AddFOp::create(*this, sum, element);
        return arith::AddIOp::create(*this, sum, element);
      });
  return castTo(total, dtype);
}

Tensor TensorBuilder::contract(ArrayRef<Size> sizes, const Tensor &a, const Tensor &b,
                               AffineMap ofA, AffineMap ofB, AffineMap ofResult) {
  Tensor init = fill(sizes, computeType(a.dtype), 0);
  auto op = linalg::ContractOp::create(*this, init.value.getType(), ValueRange{a.value, b.value},
                                       init.value, getAffineMapArrayAttr({ofA, ofB, ofResult}));
  return {op.getResult(0), init.dtype, init.sizes};
}

Tensor TensorBuilder::transpose(const Tensor &tensor, ArrayRef<int64_t> permutation) {
  Sizes sizes = llvm::map_to_vector(permutation, [&](int64_t dim) { return tensor.sizes[dim]; });
  SmallVector<int64_t> moved(permutation);
  llvm::erase_if(moved, [&](int64_t dim) { return tensor.sizes[dim].isOne(); });
  if (llvm::is_sorted(moved))
    if (std::optional<SmallVector<ViewGroup>> groups = matchView(tensor.sizes, sizes))
      return view(tensor, sizes, *groups);
  Tensor init = empty(sizes, tensor.dtype);
  init.value =
      linalg::TransposeOp::create(*this, tensor.value, init.value, permutation).getResult()[0];
  return init;
}

Tensor TensorBuilder::extract(const Tensor &tensor, int64_t dim, const Size &offset,
                              const Size &size, int64_t step, ArrayRef<Size> result) {
  // If the tensor has no elements, neither has the result. A slice would be invalid, because MLIR allows no offset into
  // an empty tensor.
  if (llvm::is_contained(tensor.sizes, Size(0)))
    return empty(result, tensor.dtype);
  SmallVector<OpFoldResult> offsets(tensor.rank(), getIndexAttr(0)),
      strides(tensor.rank(), getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = sizesOf(tensor.sizes);
  // MLIR allows no offset beyond the last element, but an empty slice at the end has such an offset. Use 0 instead.
  offsets[dim] = sizeOf(size == Size(0) ? Size(0) : offset);
  sizes[dim] = sizeOf(size);
  strides[dim] = getIndexAttr(step);
  RankedTensorType type = typeOf(result, tensor.dtype);
  Value value = tensor::ExtractSliceOp::create(*this, type, tensor.value, offsets, sizes, strides);
  return {value, tensor.dtype, Sizes(result)};
}

Tensor TensorBuilder::slice(const Tensor &tensor, int64_t dim, const Size &offset, const Size &size,
                            int64_t step) {
  Sizes result = tensor.sizes;
  result[dim] = size;
  return result == tensor.sizes && offset == Size(0) ? tensor
                                                     : extract(tensor, dim, offset, size, step, result);
}

Tensor TensorBuilder::select(const Tensor &tensor, int64_t dim, const Size &index) {
  Sizes result = tensor.sizes;
  result.erase(result.begin() + dim);
  return extract(tensor, dim, index, 1, /*step=*/1, result);
}

Tensor TensorBuilder::insert(const Tensor &tensor, const Tensor &part, int64_t dim,
                             const Size &offset, int64_t step, bool isDropped) {
  // MLIR allows no offset beyond the last element, but an empty part may have such an offset.
  if (llvm::is_contained(part.sizes, Size(0)))
    return tensor;
  SmallVector<OpFoldResult> offsets(tensor.rank(), getIndexAttr(0)),
      strides(tensor.rank(), getIndexAttr(1));
  SmallVector<OpFoldResult> sizes = sizesOf(tensor.sizes);
  offsets[dim] = sizeOf(offset);
  sizes[dim] = isDropped ? OpFoldResult(getIndexAttr(1)) : sizeOf(part.sizes[dim]);
  strides[dim] = getIndexAttr(step);
  Value value = tensor::InsertSliceOp::create(*this, part.value, tensor.value, offsets, sizes, strides);
  return {value, tensor.dtype, tensor.sizes};
}

Tensor TensorBuilder::surround(const Tensor &tensor, Value scalar, ArrayRef<Size> offsets,
                               ArrayRef<Size> sizes, ArrayRef<int64_t> steps) {
  Tensor whole = fill(sizes, scalar, tensor.dtype);
  // MLIR allows no offset beyond the last element, but an empty tensor may have such an offset.
  if (llvm::is_contained(tensor.sizes, Size(0)))
    return whole;
  SmallVector<OpFoldResult> strides(tensor.rank(), getIndexAttr(1));
  for (auto [stride, step] : llvm::zip(strides, steps))
    stride = getIndexAttr(step);
  whole.value = tensor::InsertSliceOp::create(*this, tensor.value, whole.value, sizesOf(offsets),
                                              sizesOf(tensor.sizes), strides);
  return whole;
}

Tensor TensorBuilder::concat(ArrayRef<Tensor> tensors, int64_t dim, ArrayRef<Size> sizes) {
  SmallVector<Value> values =
      llvm::map_to_vector(tensors, [](const Tensor &tensor) { return tensor.value; });
  DType dtype = tensors.front().dtype;
  Value value = tensor::ConcatOp::create(*this, typeOf(sizes, dtype), dim, values);
  return {value, dtype, Sizes(sizes)};
}

Tensor TensorBuilder::view(const Tensor &tensor, ArrayRef<Size> sizes, ArrayRef<ViewGroup> groups) {
  // A tensor of rank 0 has no dimension for a reassociation: copy its element from or to dimensions of size 1.
  if (tensor.rank() == 0)
    return broadcastTo(tensor, sizes);
  if (sizes.empty()) {
    Tensor element = tensor;
    while (element.rank() != 0)
      element = select(element, 0, 0);
    return element;
  }
  // Collapse each group of dimensions to one dimension, then expand it to the dimensions of the result.
  SmallVector<ReassociationIndices> merged, split;
  Sizes between;
  int64_t from = 0, to = 0;
  for (ViewGroup group : groups) {
    merged.push_back(llvm::to_vector<2>(llvm::seq<int64_t>(from, from + group.from)));
    split.push_back(llvm::to_vector<2>(llvm::seq<int64_t>(to, to + group.to)));
    Size all = 1;
    for (const Size &size : ArrayRef(tensor.sizes).slice(from, group.from))
      all = *multiply(all, size);
    between.push_back(all);
    from += group.from;
    to += group.to;
  }
  Tensor result = tensor;
  if (between.size() != tensor.sizes.size()) {
    RankedTensorType type = typeOf(between, tensor.dtype);
    result = {tensor::CollapseShapeOp::create(*this, type, tensor.value, merged), tensor.dtype,
              between};
  }
  if (between.size() != sizes.size()) {
    RankedTensorType type = typeOf(sizes, tensor.dtype);
    result = {tensor::ExpandShapeOp::create(*this, type, result.value, split, sizesOf(sizes)),
              tensor.dtype, Sizes(sizes)};
  }
  return result;
}
