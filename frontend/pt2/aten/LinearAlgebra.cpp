//===- LinearAlgebra.cpp - aten's products ---------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn::pt2;

/// Checks that all factors have the same floating-point type.
static LogicalResult checkTypes(Call &call, ArrayRef<Tensor> tensors) {
  for (const Tensor &tensor : tensors)
    if (!isFloat(tensor.dtype) || tensor.dtype != tensors.front().dtype)
      return call.error() << "expected factors of one floating-point type, got "
                          << str(tensors.front().dtype) << " and " << str(tensor.dtype);
  return success();
}

/// product + bias, with the bias along the last dimension; rounded once, to the type of the bias.
static Tensor addBias(Call &call, const Tensor &product, const Tensor &bias) {
  DType type = product.dtype;
  return call.b.elementwise(
      product.sizes, bias.dtype, {{product, type}, {bias, type}},
      [&](ValueRange x) -> Value { return arith::AddFOp::create(call.b, x[0], x[1]); });
}

FailureOr<Tensor> attn::pt2::createLinear(Call &call, const Tensor &x, const Tensor &weight,
                                          const std::optional<Tensor> &bias) {
  if (failed(checkTypes(call, {x, weight, bias.value_or(x)})))
    return failure();
  if (x.rank() < 1 || weight.rank() != 2 || x.sizes.back() != weight.sizes[1] ||
      (bias && (bias->rank() != 1 || bias->sizes[0] != weight.sizes[0])))
    return call.error() << "expected factors (p..., k) and (n, k) and a bias (n), got "
                        << str(x.sizes) << " and " << str(weight.sizes)
                        << (bias ? " and " + str(bias->sizes) : "");
  Sizes sizes = x.sizes;
  sizes.back() = weight.sizes[0];
  // The loops are (p..., n, k).
  MLIRContext *context = call.b.getContext();
  int64_t numDims = x.rank() + 1;
  auto map = [&](ArrayRef<unsigned> dims) {
    return AffineMap::getMultiDimMapWithTargets(numDims, dims, context);
  };
  unsigned n = numDims - 2, k = numDims - 1;
  SmallVector<unsigned> ofX = llvm::to_vector(llvm::seq<unsigned>(0, n)), ofResult = ofX;
  ofX.push_back(k);
  ofResult.push_back(n);
  Tensor product = call.b.contract(sizes, x, weight, map(ofX), map({n, k}), map(ofResult));
  return bias ? addBias(call, product, *bias) : call.b.castTo(product, x.dtype);
}

static LogicalResult linear(Call &call) {
  Tensor x = call.tensor("input"), weight = call.tensor("weight");
  std::optional<Tensor> bias;
  if (call.has("bias"))
    bias = call.tensor("bias");
  if (call.failed())
    return failure();
  FailureOr<Tensor> result = createLinear(call, x, weight, bias);
  return failed(result) ? failure() : call.result(*result);
}

/// `x` without the batch dimensions along which it is broadcast to `batch`, because the maps of a linalg.contract must
/// not index dimensions of size 1 by larger loops.
static FailureOr<Tensor> dropBroadcast(Call &call, const Tensor &x, ArrayRef<Size> batch,
                                       int64_t numBatch) {
  Sizes kept;
  for (auto [i, size] : llvm::enumerate(x.sizes))
    if (int64_t(i) >= numBatch || !size.isOne() || batch[batch.size() - numBatch + i].isOne())
      kept.push_back(size);
  return viewAs(call, x, kept);
}

/// a (batch..., m, k) b (batch..., k, n) -> (batch..., m, n), as in torch.matmul: a vector has no m or no n.
static FailureOr<Tensor> multiply(Call &call, Tensor a, Tensor b) {
  if (failed(checkTypes(call, {a, b})))
    return failure();
  auto mismatch = [&]() -> LogicalResult {
    return call.error() << "expected factors (batch..., m, k) and (batch..., k, n), got "
                        << str(a.sizes) << " and " << str(b.sizes);
  };
  if (a.rank() < 1 || b.rank() < 1)
    return mismatch();
  bool hasM = a.rank() > 1, hasN = b.rank() > 1;
  int64_t batchOfA = hasM ? a.rank() - 2 : 0, batchOfB = hasN ? b.rank() - 2 : 0;
  const Size &k = a.sizes.back();
  std::optional<Sizes> batch =
      TensorBuilder::broadcast({Sizes(ArrayRef(a.sizes).take_front(batchOfA)),
                                Sizes(ArrayRef(b.sizes).take_front(batchOfB))});
  if (!batch || k != b.sizes[batchOfB])
    return mismatch();
  Sizes sizes = *batch;
  if (hasM)
    sizes.push_back(a.sizes[batchOfA]);
  if (hasN)
    sizes.push_back(b.sizes.back());

  // The loops are (batch..., m, n, k).
  unsigned numBatch = batch->size(), numDims = sizes.size() + 1;
  unsigned dimM = numBatch, dimN = numBatch + hasM, dimK = numDims - 1;
  auto mapOf = [&](const Tensor &x, int64_t batchOfX, ArrayRef<unsigned> matrix) {
    SmallVector<unsigned> dims;
    for (unsigned dim = numBatch - batchOfX; dim < numBatch; ++dim)
      if (!x.sizes[dim - (numBatch - batchOfX)].isOne() || (*batch)[dim].isOne())
        dims.push_back(dim);
    dims.append(matrix.begin(), matrix.end());
    return AffineMap::getMultiDimMapWithTargets(numDims, dims, call.b.getContext());
  };
  SmallVector<unsigned> matrixOfA = {dimK}, matrixOfB = {dimK};
  if (hasM)
    matrixOfA.insert(matrixOfA.begin(), dimM);
  if (hasN)
    matrixOfB.push_back(dimN);
  AffineMap ofA = mapOf(a, batchOfA, matrixOfA), ofB = mapOf(b, batchOfB, matrixOfB);
  AffineMap ofResult =
      AffineMap::getMultiDimIdentityMap(numDims, call.b.getContext()).getSliceMap(0, dimK);
  FailureOr<Tensor> left = dropBroadcast(call, a, *batch, batchOfA),
                    right = dropBroadcast(call, b, *batch, batchOfB);
  if (failed(left) || failed(right))
    return failure();
  return call.b.contract(sizes, *left, *right, ofA, ofB, ofResult);
}

static LogicalResult product(Call &call, StringRef left, StringRef right,
                             std::optional<int64_t> rank) {
  Tensor a = call.tensor(left), b = call.tensor(right);
  if (call.failed())
    return failure();
  if (rank && (a.rank() != *rank || b.rank() != *rank))
    return call.error() << "expected factors of rank " << *rank << ", got " << str(a.sizes)
                        << " and " << str(b.sizes);
  FailureOr<Tensor> result = multiply(call, a, b);
  return failed(result) ? failure() : call.result(call.b.castTo(*result, a.dtype));
}

static LogicalResult matmul(Call &call) { return product(call, "self", "other", std::nullopt); }
static LogicalResult mm(Call &call) { return product(call, "self", "mat2", 2); }
static LogicalResult bmm(Call &call) { return product(call, "self", "mat2", 3); }
static LogicalResult mv(Call &call) { return product(call, "self", "vec", std::nullopt); }
static LogicalResult dot(Call &call) { return product(call, "self", "tensor", 1); }
static LogicalResult vdot(Call &call) { return product(call, "self", "other", 1); }

/// beta * self + alpha * a b, where self broadcasts to the product.
static std::function<LogicalResult(Call &)> addProduct(StringRef left, StringRef right,
                                                       int64_t rank, int64_t rightRank) {
  return [=](Call &call) -> LogicalResult {
    Tensor self = call.tensor("self"), a = call.tensor(left), b = call.tensor(right);
    Scalar alpha = call.scalar("alpha", 1), beta = call.scalar("beta", 1);
    if (call.failed() || failed(checkTypes(call, {a, b, self})))
      return failure();
    if (a.rank() != rank || b.rank() != rightRank)
      return call.error() << "expected factors of ranks " << rank << " and " << rightRank
                          << ", got " << str(a.sizes) << " and " << str(b.sizes);
    FailureOr<Tensor> product = multiply(call, a, b);
    if (failed(product))
      return failure();
    std::optional<Sizes> sizes = TensorBuilder::broadcast({product->sizes, self.sizes});
    if (!sizes || *sizes != product->sizes)
      return call.error() << "expected " << str(self.sizes) << " to broadcast to "
                          << str(product->sizes);
    DType as = product->dtype;
    // An operand that is multiplied by 0 is ignored, even if it contains NaN.
    if (beta.number == 0)
      self = call.b.fill(self.sizes, self.dtype, 0);
    if (alpha.number == 0)
      product = call.b.fill(product->sizes, as, 0);
    auto scaled = [&](Value x, const Scalar &factor) -> Value {
      return factor.number == 1 ? x
                                : Value(arith::MulFOp::create(call.b, x, factor.in(call.b, as)));
    };
    return call.result(call.b.elementwise(
        *sizes, a.dtype, {{*product, as}, {self, as}}, [&](ValueRange x) -> Value {
          return arith::AddFOp::create(call.b, scaled(x[0], alpha), scaled(x[1], beta));
        }));
  };
}

/// a (m) b (n) -> (m, n)
static LogicalResult outer(Call &call) {
  Tensor a = call.tensor("self"), b = call.tensor("vec2");
  if (call.failed())
    return failure();
  DType dtype = promote(a, b), as = computeType(dtype);
  if (a.rank() != 1 || b.rank() != 1 || !isFloat(dtype))
    return call.error() << "expected two vectors, at least one of them of floats, got "
                        << str(a.dtype) << str(a.sizes) << " and " << str(b.dtype) << str(b.sizes);
  AffineMap ofA = AffineMap::get(2, 0, call.b.getAffineDimExpr(0)),
            ofB = AffineMap::get(2, 0, call.b.getAffineDimExpr(1));
  return call.result(call.b.elementwise(
      {a.sizes[0], b.sizes[0]}, dtype, {{a, as, ofA}, {b, as, ofB}},
      [&](ValueRange x) -> Value { return arith::MulFOp::create(call.b, x[0], x[1]); }));
}

/// The sum of products over the last dimensions of both tensors.
static LogicalResult inner(Call &call) {
  Tensor a = call.tensor("self"), b = call.tensor("other");
  if (call.failed())
    return failure();
  DType as = computeType(a.dtype);
  bool isScalar = a.rank() == 0 || b.rank() == 0;
  if (a.dtype != b.dtype || !isFloat(as) || isScalar || a.sizes.back() != b.sizes.back())
    return call.error() << "expected tensors of floats whose last sizes are equal, got "
                        << str(a.dtype) << str(a.sizes) << " and " << str(b.dtype) << str(b.sizes);
  Sizes sizes(llvm::drop_end(a.sizes));
  sizes.append(b.sizes.begin(), std::prev(b.sizes.end()));
  unsigned numKept = sizes.size();
  MLIRContext *context = call.b.getContext();
  SmallVector<unsigned> ofA = llvm::to_vector(llvm::seq<unsigned>(0, a.rank() - 1)),
                        ofB = llvm::to_vector(llvm::seq<unsigned>(a.rank() - 1, numKept));
  ofA.push_back(numKept);
  ofB.push_back(numKept);
  auto mapTo = [&](ArrayRef<unsigned> loops) {
    return AffineMap::getMultiDimMapWithTargets(numKept + 1, loops, context);
  };
  SmallVector<unsigned> kept = llvm::to_vector(llvm::seq<unsigned>(0, numKept));
  return call.result(call.b.contract(sizes, a, b, mapTo(ofA), mapTo(ofB), mapTo(kept)));
}

/// The Kronecker product: each element of `self` is replaced by this element times all of `other`.
static LogicalResult kron(Call &call) {
  Tensor a = call.tensor("self"), b = call.tensor("other");
  if (call.failed())
    return failure();
  DType dtype = promote(a, b), as = computeType(dtype);
  if (!isFloat(dtype))
    return call.error() << "expected a product of floats, got " << str(a.dtype) << " and "
                        << str(b.dtype);
  size_t rank = std::max(a.sizes.size(), b.sizes.size());
  Sizes ofA, ofB, wide, sizes;
  for (size_t i = 0; i < rank; ++i) {
    auto sizeAt = [&](const Tensor &tensor) {
      size_t missing = rank - tensor.sizes.size();
      return i < missing ? Size(1) : tensor.sizes[i - missing];
    };
    std::optional<Size> both = multiply(sizeAt(a), sizeAt(b));
    if (!both)
      return failure();
    ofA.append({sizeAt(a), Size(1)});
    ofB.append({Size(1), sizeAt(b)});
    wide.append({sizeAt(a), sizeAt(b)});
    sizes.push_back(*both);
  }
  FailureOr<Tensor> left = viewAs(call, a, ofA), right = viewAs(call, b, ofB);
  if (failed(left) || failed(right))
    return failure();
  AffineMap mapOfA = call.b.broadcastMap(ofA, wide), mapOfB = call.b.broadcastMap(ofB, wide);
  Tensor product = call.b.elementwise(
      wide, dtype, {{*left, as, mapOfA}, {*right, as, mapOfB}},
      [&](ValueRange x) -> Value { return arith::MulFOp::create(call.b, x[0], x[1]); });
  FailureOr<Tensor> result = viewAs(call, product, sizes);
  return failed(result) ? failure() : call.result(*result);
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

namespace {
/// A tensor whose dimensions are named by letters, as in the equation of einsum.
struct Lettered {
  Tensor tensor;
  std::string letters;
};
} // namespace

/// Merges dimensions of `x` with the same letter into one (their diagonal), and sums over the letters in `summed`.
static FailureOr<Lettered> reduceLetters(Call &call, const Lettered &x, StringRef summed) {
  std::string letters;
  Sizes sizes;
  for (auto [letter, size] : llvm::zip_equal(x.letters, x.tensor.sizes)) {
    size_t known = letters.find(letter);
    if (known != std::string::npos) {
      if (sizes[known] != size)
        return call.error() << "expected sizes that agree for '" << Twine(letter).str() << "'";
      continue;
    }
    letters += letter;
    sizes.push_back(size);
  }
  std::string kept;
  SmallVector<int64_t> reduced;
  for (auto [i, letter] : llvm::enumerate(letters)) {
    if (summed.contains(letter))
      reduced.push_back(i);
    else
      kept += letter;
  }
  if (reduced.empty() && letters == x.letters)
    return x;
  SmallVector<AffineExpr> exprs;
  for (char letter : x.letters)
    exprs.push_back(call.b.getAffineDimExpr(letters.find(letter)));
  AffineMap map = AffineMap::get(letters.size(), 0, exprs, call.b.getContext());
  DType as = computeType(x.tensor.dtype);
  auto identity = [](ValueRange element) { return element[0]; };
  Tensor result =
      reduced.empty()
          ? call.b.elementwise(sizes, x.tensor.dtype, Operand{x.tensor, as, map}, identity)
          : call.b.castTo(call.b.reduce(sizes, reduced, call.b.scalar(as, 0.0), as,
                                        Operand{x.tensor, as, map}, identity,
                                        [&](Value sum, Value y) -> Value {
                                          return arith::AddFOp::create(call.b, sum, y);
                                        }),
                          x.tensor.dtype);
  return Lettered{result, kept};
}

/// Drops dimensions of size 1 whose letter has a larger size in another factor: einsum repeats them, so products do not
/// need to index them.
static LogicalResult dropRepeated(Call &call, SmallVectorImpl<Lettered> &factors) {
  auto isLonger = [&](char letter) {
    return llvm::any_of(factors, [&](const Lettered &factor) {
      size_t position = factor.letters.find(letter);
      return position != std::string::npos && !factor.tensor.sizes[position].isOne();
    });
  };
  SmallVector<Lettered> kept;
  for (const Lettered &factor : factors) {
    Lettered rest;
    Sizes sizes;
    for (auto [letter, size] : llvm::zip_equal(factor.letters, factor.tensor.sizes)) {
      if (size.isOne() && isLonger(letter))
        continue;
      rest.letters += letter;
      sizes.push_back(size);
    }
    FailureOr<Tensor> view = viewAs(call, factor.tensor, sizes);
    if (failed(view))
      return failure();
    rest.tensor = *view;
    kept.push_back(rest);
  }
  factors = kept;
  return success();
}

/// The product of `a` and `b`, summed over the letters that are not in `kept`.
static FailureOr<Lettered> contractLetters(Call &call, Lettered a, Lettered b, StringRef kept) {
  auto without = [&](const Lettered &x, const Lettered &other) {
    std::string alone;
    for (char letter : x.letters)
      if (!StringRef(other.letters).contains(letter) && !kept.contains(letter))
        alone += letter;
    return alone;
  };
  FailureOr<Lettered> left = reduceLetters(call, a, without(a, b)),
                      right = reduceLetters(call, b, without(b, a));
  if (failed(left) || failed(right))
    return failure();
  // The loops are the kept letters of both factors, then those of one factor alone, then the summed letters.
  std::string letters, summed;
  Sizes sizes, all;
  auto add = [&](const Lettered &x, const Lettered &other, bool shared) {
    for (auto [letter, size] : llvm::zip_equal(x.letters, x.tensor.sizes))
      if (kept.contains(letter) && StringRef(other.letters).contains(letter) == shared &&
          !StringRef(letters).contains(letter)) {
        letters += letter;
        sizes.push_back(size);
      }
  };
  add(*left, *right, true);
  add(*left, *right, false);
  add(*right, *left, false);
  for (char letter : left->letters)
    if (!kept.contains(letter))
      summed += letter;
  std::string order = letters + summed;
  auto mapOf = [&](StringRef names) {
    SmallVector<unsigned> dims;
    for (char letter : names)
      dims.push_back(order.find(letter));
    return AffineMap::getMultiDimMapWithTargets(order.size(), dims, call.b.getContext());
  };
  for (auto [letter, size] : llvm::zip_equal(right->letters, right->tensor.sizes)) {
    size_t position = left->letters.find(letter);
    if (position != std::string::npos && left->tensor.sizes[position] != size)
      return call.error() << "expected sizes that agree for '" << std::string(1, letter)
                          << "', got " << left->tensor.sizes[position].str() << " and "
                          << size.str();
  }
  Tensor product;
  if (summed.empty()) {
    DType as = computeType(a.tensor.dtype);
    product = call.b.elementwise(
        sizes, a.tensor.dtype,
        {{left->tensor, as, mapOf(left->letters)}, {right->tensor, as, mapOf(right->letters)}},
        [&](ValueRange x) -> Value { return arith::MulFOp::create(call.b, x[0], x[1]); });
  } else {
    product = call.b.contract(sizes, left->tensor, right->tensor, mapOf(left->letters),
                              mapOf(right->letters), mapOf(letters));
    product = call.b.castTo(product, a.tensor.dtype);
  }
  return Lettered{product, letters};
}

/// The equation has letters for each operand and the result, as in "bhqd,bhkd->bhqk"; "..." stands for all
/// dimensions without a letter.
static LogicalResult einsum(Call &call) {
  std::string equation = call.string("equation");
  SmallVector<Tensor> tensors = call.tensors("tensors");
  if (call.has("path"))
    call.constants("path");
  if (call.failed())
    return failure();
  llvm::erase(equation, ' ');
  auto [inputs, output] = StringRef(equation).split("->");
  bool hasOutput = StringRef(equation).contains("->");
  SmallVector<StringRef> terms;
  inputs.split(terms, ',');
  if (terms.size() != tensors.size() || tensors.empty() || failed(checkTypes(call, tensors)))
    return call.error() << "expected letters for each of " << tensors.size()
                        << " tensors of one floating-point type, got '" << equation << "'";
  // The characters with the codes 1, 2, ... stand for the dimensions of "...", from the last dimension to the first.
  std::string ellipsis;
  auto expand = [&](StringRef term, std::optional<int64_t> rank) -> std::optional<std::string> {
    auto [front, back] = term.split("...");
    std::string letters = front.str();
    if (term.contains("...")) {
      int64_t count = rank ? *rank - int64_t(front.size() + back.size()) : int64_t(ellipsis.size());
      if (count < 0 || count > 16)
        return std::nullopt;
      while (int64_t(ellipsis.size()) < count)
        ellipsis.insert(ellipsis.begin(), char(1 + ellipsis.size()));
      letters += ellipsis.substr(ellipsis.size() - count);
      letters += back;
    }
    if (rank && int64_t(letters.size()) != *rank)
      return std::nullopt;
    return letters;
  };
  SmallVector<Lettered> factors;
  for (auto [term, tensor] : llvm::zip_equal(terms, tensors)) {
    std::optional<std::string> letters = expand(term, tensor.rank());
    if (!letters)
      return call.error() << "expected a letter for each dimension, got '" << term << "' for "
                          << str(tensor.sizes);
    factors.push_back({tensor, *letters});
  }
  if (failed(dropRepeated(call, factors)))
    return failure();
  std::string result;
  if (hasOutput) {
    std::optional<std::string> letters = expand(output, std::nullopt);
    if (!letters)
      return failure();
    result = *letters;
  } else {
    // The result has the letters that occur once, in alphabetical order.
    result = ellipsis;
    for (char letter = 'A'; letter <= 'z'; ++letter)
      if (llvm::count(inputs, letter) == 1 && std::isalpha(letter))
        result += letter;
  }
  // Multiply from the left. Keep the letters that a later factor or the result has.
  Lettered product = factors.front();
  for (size_t i = 1; i < factors.size(); ++i) {
    std::string kept = result;
    for (const Lettered &later : ArrayRef(factors).drop_front(i + 1))
      kept += later.letters;
    FailureOr<Lettered> next = contractLetters(call, product, factors[i], kept);
    if (failed(next))
      return failure();
    product = *next;
  }
  std::string summed;
  for (char letter : product.letters)
    if (!StringRef(result).contains(letter))
      summed += letter;
  FailureOr<Lettered> reduced = reduceLetters(call, product, summed);
  if (failed(reduced))
    return failure();
  SmallVector<int64_t> permutation;
  for (char letter : result) {
    size_t position = reduced->letters.find(letter);
    if (position == std::string::npos)
      return call.error() << "expected letters of the result among those of the operands, got '"
                          << equation << "'";
    permutation.push_back(position);
  }
  if (permutation.size() != reduced->letters.size())
    return call.error() << "expected each letter of the result once, got '" << equation << "'";
  bool isIdentity = llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size()));
  Tensor ordered = isIdentity ? reduced->tensor : call.b.transpose(reduced->tensor, permutation);
  // With one operand and no sum, torch only permutes the dimensions, so the result is a view.
  return factors.size() == 1 && summed.empty() ? call.resultView("tensors", ordered, {})
                                               : call.result(ordered);
}

/// tensordot: multiplies the elements of two tensors, and sums the products over `dims_self` and `dims_other`.
static LogicalResult tensordot(Call &call) {
  Tensor x = call.tensor("self"), y = call.tensor("other");
  SmallVector<int64_t> ofX = call.constants("dims_self"), ofY = call.constants("dims_other");
  if (call.failed() || failed(checkTypes(call, {x, y})))
    return failure();
  for (int64_t &dim : ofX)
    dim = call.dim(dim, x.rank());
  for (int64_t &dim : ofY)
    dim = call.dim(dim, y.rank());
  if (call.failed())
    return failure();
  bool fits = !ofX.empty() && ofX.size() == ofY.size();
  for (auto [i, j] : llvm::zip(ofX, ofY))
    fits &= x.sizes[i] == y.sizes[j] && llvm::count(ofX, i) == 1 && llvm::count(ofY, j) == 1;
  if (!fits)
    return call.error() << "expected pairs of dimensions of one size, got " << ofX.size() << " of "
                        << str(x.sizes) << " and " << ofY.size() << " of " << str(y.sizes);
  // The result has the dimensions that are not summed, first those of `self`.
  TensorBuilder &b = call.b;
  unsigned numLoops = x.rank() + y.rank() - ofX.size(), numKept = numLoops - ofX.size(), next = 0;
  Sizes sizes;
  auto mapOf = [&](const Tensor &tensor, ArrayRef<int64_t> summed) {
    SmallVector<AffineExpr> exprs;
    for (int64_t dim = 0; dim < tensor.rank(); ++dim) {
      const int64_t *found = llvm::find(summed, dim);
      bool isKept = found == summed.end();
      exprs.push_back(b.getAffineDimExpr(isKept ? next++ : numKept + (found - summed.begin())));
      if (isKept)
        sizes.push_back(tensor.sizes[dim]);
    }
    return AffineMap::get(numLoops, 0, exprs, b.getContext());
  };
  AffineMap mapOfX = mapOf(x, ofX), mapOfY = mapOf(y, ofY);
  AffineMap result =
      AffineMap::getMultiDimIdentityMap(numLoops, b.getContext()).getSliceMap(0, numKept);
  return call.result(b.castTo(b.contract(sizes, x, y, mapOfX, mapOfY, result), x.dtype));
}

void attn::pt2::addLinearAlgebra(AtenOps &ops) {
  StringRef integers = "integers";
  ops.add("linear.default", linear, integers);
  ops.add("matmul.default", matmul, integers);
  ops.add("inner.default", inner, integers);
  ops.add("kron.default", kron, integers);
  ops.add("mm.default", mm, integers);
  ops.add("bmm.default", bmm, integers);
  ops.add("mv.default", mv, integers);
  ops.add("dot.default", dot, integers);
  ops.add("addmm.default", addProduct("mat1", "mat2", 2, 2), integers);
  ops.add("addmv.default", addProduct("mat", "vec", 2, 1), integers);
  ops.add("baddbmm.default", addProduct("batch1", "batch2", 3, 3), integers);
  ops.add("outer.default", outer, "products of integers");
  ops.add("vdot.default", vdot, integers);
  ops.add("tensordot.default", tensordot, "integers; sums over no dimension");
  ops.add("einsum.default", einsum, integers);
}
