//===- MergeValues.cpp - several products of one softmax ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %p = linalg.softmax dimension(2) ins(%s)
//   %a = linalg.contract ins(%p, %v) (h,q,k), (h,k,e) -> (h,q,e)     : tensor<4x64x32xf32>
//   %b = linalg.contract ins(%p, %x) (h,q,k), (k,e) -> (h,q,e)       : tensor<4x64x3xf32>
// becomes
//   %wide = linalg.generic ins(%x) (k,e) -> (h,k,e)                  a copy
//   %both = tensor.concat dim(2) %v, %wide
//   %r = linalg.contract ins(%p, %both) (h,q,k), (h,k,e) -> (h,q,e)  : tensor<4x64x35xf32>
//   %a = tensor.extract_slice %r[0, 0, 0] [4, 64, 32] [1, 1, 1]
//   %b = tensor.extract_slice %r[0, 0, 32] [4, 64, 3] [1, 1, 1]
//
// so that attn-raise-attention finds one product of the probabilities with values. Models of molecules weigh features
// and coordinates by the same probabilities. Products with few queries stay apart, because they cost less than the
// copies, and so do wide values that would have to be repeated, and values that vary with the query.
// Test: test/passes/raise/merge-values.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "support/Loops.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace attn {
#define GEN_PASS_DEF_MERGEVALUES
#include "passes/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// A product of probabilities with values. The loops of its maps are the dimensions of the probabilities, followed by the
/// dimension e of the values.
struct ValueProduct {
  Operation *op;
  Value values;
  SmallVector<unsigned> ofValues, ofResult; ///< the loop of each dimension
};
} // namespace

/// `product` in terms of the dimensions of `probabilities`; none if it has another form.
static std::optional<ValueProduct> findProduct(OpOperand &probabilities) {
  auto op = dyn_cast<linalg::LinalgOp>(probabilities.getOwner());
  if (!op || !isProduct(op) || probabilities.getOperandNumber() > 1)
    return std::nullopt;
  OpOperand &values = op->getOpOperand(1 - probabilities.getOperandNumber());
  auto start = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  std::optional<SmallVector<unsigned>> read = findLoops(op.getMatchingIndexingMap(&probabilities)),
                                       ofValues = findLoops(op.getMatchingIndexingMap(&values)),
                                       ofResult = findLoops(op.getMatchingIndexingMap(op.getDpsInitOperand(0)));
  if (values.get() == probabilities.get() || !start || !matchPattern(start.getInputs()[0], m_AnyZeroFloat()) ||
      !read || !ofValues || !ofResult || op.getNumLoops() != read->size() + 1)
    return std::nullopt;
  SmallVector<unsigned> renamed(op.getNumLoops(), read->size());
  for (auto [dim, loop] : llvm::enumerate(*read))
    renamed[loop] = dim;
  auto rename = [&](ArrayRef<unsigned> loops) {
    return llvm::map_to_vector(loops, [&](unsigned loop) { return renamed[loop]; });
  };
  ValueProduct product{op, values.get(), rename(*ofValues), rename(*ofResult)};
  unsigned e = read->size();
  if (llvm::count(product.ofValues, e) != 1 || llvm::count(product.ofResult, e) != 1)
    return std::nullopt;
  return product;
}

/// A copy of `tensor`, whose dimensions are `loops`, with the dimensions `wanted`. A dimension that the tensor lacks
/// repeats it.
static Value toDims(OpBuilder &b, Location loc, Value tensor, ArrayRef<unsigned> loops,
                    ArrayRef<unsigned> wanted, ArrayRef<OpFoldResult> sizes) {
  if (loops == wanted)
    return tensor;
  SmallVector<AffineExpr> read;
  for (unsigned loop : loops)
    read.push_back(b.getAffineDimExpr(llvm::find(wanted, loop) - wanted.begin()));
  AffineMap maps[] = {AffineMap::get(wanted.size(), 0, read, b.getContext()),
                      b.getMultiDimIdentityMap(wanted.size())};
  Value out = tensor::EmptyOp::create(b, loc, sizes, getElementTypeOrSelf(tensor));
  SmallVector<utils::IteratorType> parallel(wanted.size(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(b, loc, out.getType(), tensor, out, maps, parallel,
                                   [](OpBuilder &b, Location loc, ValueRange elements) {
                                     linalg::YieldOp::create(b, loc, elements[0]);
                                   })
      .getResult(0);
}

/// Replaces `products`, which read `probabilities`, by one product.
static void merge(Value probabilities, ArrayRef<ValueProduct> products, Operation *after) {
  OpBuilder b(after->getContext());
  b.setInsertionPointAfter(after);
  Location loc = products.front().op->getLoc();
  unsigned e = cast<RankedTensorType>(probabilities.getType()).getRank();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, probabilities);
  SmallVector<unsigned> dims, results;
  for (unsigned loop = 0; loop < e; ++loop) {
    if (llvm::any_of(products, [&](const ValueProduct &product) {
          return llvm::is_contained(product.ofValues, loop);
        }))
      dims.push_back(loop);
    if (llvm::is_contained(products.front().ofResult, loop))
      results.push_back(loop);
  }
  dims.push_back(e);
  results.push_back(e);
  auto sizesOf = [&](ArrayRef<unsigned> loops, OpFoldResult width) {
    return llvm::map_to_vector(loops, [&](unsigned loop) { return loop == e ? width : sizes[loop]; });
  };

  SmallVector<Value> values;
  SmallVector<OpFoldResult> widths;
  for (const ValueProduct &product : products) {
    int64_t axis = llvm::find(product.ofValues, e) - product.ofValues.begin();
    widths.push_back(tensor::getMixedSize(b, loc, product.values, axis));
    values.push_back(toDims(b, loc, product.values, product.ofValues, dims, sizesOf(dims, widths.back())));
  }
  Value all = tensor::ConcatOp::create(b, loc, dims.size() - 1, values);
  OpFoldResult width = tensor::getMixedSize(b, loc, all, dims.size() - 1);
  auto mapOf = [&](ArrayRef<unsigned> loops) {
    return AffineMap::getMultiDimMapWithTargets(e + 1, loops, b.getContext());
  };
  Type element = getElementTypeOrSelf(products.front().op->getResult(0));
  Value out = tensor::EmptyOp::create(b, loc, sizesOf(results, width), element);
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
  out = linalg::FillOp::create(b, loc, zero, out).getResult(0);
  Value whole = createProduct(b, loc, probabilities, all, out,
                              {mapOf(llvm::to_vector(llvm::seq<unsigned>(0, e))), mapOf(dims), mapOf(results)})
                    ->getResult(0);

  OpFoldResult offset = b.getIndexAttr(0);
  for (auto [product, width] : llvm::zip_equal(products, widths)) {
    SmallVector<OpFoldResult> offsets(results.size(), b.getIndexAttr(0)),
        strides(results.size(), b.getIndexAttr(1));
    offsets.back() = offset;
    Value part = tensor::ExtractSliceOp::create(b, loc, whole, offsets, sizesOf(results, width), strides);
    part = toDims(b, loc, part, results, product.ofResult, sizesOf(product.ofResult, width));
    Value old = product.op->getResult(0);
    if (part.getType() != old.getType())
      part = tensor::CastOp::create(b, loc, old.getType(), part);
    old.replaceAllUsesWith(part);
    offset = affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineSymbolExpr(0) + b.getAffineSymbolExpr(1), {offset, width});
  }
  for (const ValueProduct &product : products)
    product.op->erase();
}

/// Whether elementwise ops compute `tensor` from a softmax, such as nan_to_num. Follows chains of at most `depth` ops.
static bool isOfSoftmax(Value tensor, int depth = 12) {
  if (tensor.getDefiningOp<linalg::SoftmaxOp>())
    return true;
  auto op = tensor.getDefiningOp<linalg::GenericOp>();
  return op && depth > 0 && isElementwise(op) &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
         llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
           return op.getMatchingIndexingMap(input).isIdentity() &&
                  isOfSoftmax(input->get(), depth - 1);
         });
}

/// The dimensions of the probabilities that the result lacks.
static SmallVector<unsigned> reducedBy(const ValueProduct &product, unsigned rank) {
  SmallVector<unsigned> loops;
  for (unsigned loop = 0; loop < rank; ++loop)
    if (!llvm::is_contained(product.ofResult, loop))
      loops.push_back(loop);
  return loops;
}

/// The products of `probabilities` that sum over the same dimension and have the same types, in the order of the function,
/// without those whose values depend on another product.
static SmallVector<ValueProduct> groupProducts(Value probabilities) {
  Block *block = probabilities.getParentBlock();
  unsigned rank = cast<RankedTensorType>(probabilities.getType()).getRank();
  SmallVector<ValueProduct> products;
  for (OpOperand &use : probabilities.getUses())
    if (std::optional<ValueProduct> product = findProduct(use);
        product && use.getOwner()->getBlock() == block)
      products.push_back(*product);
  llvm::sort(products, [](const ValueProduct &a, const ValueProduct &b) {
    return a.op->isBeforeInBlock(b.op);
  });
  llvm::SmallPtrSet<Operation *, 4> ops;
  for (const ValueProduct &product : products)
    ops.insert(product.op);
  auto typesOf = [](const ValueProduct &product) {
    return std::pair(getElementTypeOrSelf(product.values),
                     getElementTypeOrSelf(product.op->getResult(0)));
  };
  SmallVector<ValueProduct> group;
  for (const ValueProduct &product : products) {
    llvm::SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.inclusive = true;
    (void)getBackwardSlice(product.values, &slice, options);
    bool dependsOnProduct = llvm::any_of(slice, [&](Operation *op) { return ops.contains(op); });
    if (!dependsOnProduct && (group.empty() || (reducedBy(product, rank) == reducedBy(group.front(), rank) &&
                                                typesOf(product) == typesOf(group.front()))))
      group.push_back(product);
  }
  return group;
}

/// Whether one product costs less than several: the values are shared by all queries, there are more than a few queries,
/// and no wide values have to be repeated for each batch.
static bool pays(Value probabilities, ArrayRef<ValueProduct> products) {
  constexpr int64_t kFewQueries = 8, kNarrow = 16;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(probabilities.getType()).getShape();
  llvm::SmallSetVector<unsigned, 4> ofValues;
  for (const ValueProduct &product : products)
    ofValues.insert_range(product.ofValues);
  int64_t numQueries = 1;
  bool hasQueries = false;
  for (unsigned loop : products.front().ofResult) {
    if (loop >= shape.size() || ofValues.contains(loop))
      continue;
    hasQueries = true;
    numQueries = ShapedType::isDynamic(shape[loop]) ? kFewQueries + 1 : numQueries * shape[loop];
  }
  return hasQueries && numQueries > kFewQueries &&
         llvm::all_of(products, [&](const ValueProduct &product) {
           int64_t axis = llvm::find(product.ofValues, shape.size()) - product.ofValues.begin();
           int64_t width = cast<RankedTensorType>(product.values.getType()).getDimSize(axis);
           return product.ofValues.size() == ofValues.size() ||
                  (!ShapedType::isDynamic(width) && width <= kNarrow);
         });
}

/// The op after which all operands of the products are known; null if a result is used before.
static Operation *findPlace(Value probabilities, ArrayRef<ValueProduct> products) {
  Operation *last = probabilities.getDefiningOp();
  for (const ValueProduct &product : products)
    if (Operation *op = product.values.getDefiningOp();
        op && op->getBlock() == last->getBlock() && last->isBeforeInBlock(op))
      last = op;
  for (const ValueProduct &product : products)
    for (Operation *user : product.op->getUsers())
      if (Operation *place = last->getBlock()->findAncestorOpInBlock(*user);
          !place || !last->isBeforeInBlock(place))
        return nullptr;
  return last;
}

namespace {
struct MergeValues : attn::impl::MergeValuesBase<MergeValues> {
  void runOnOperation() override {
    llvm::SetVector<Value> operands;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isProduct(op))
        operands.insert_range(op.getDpsInputs());
    });
    // Find all probabilities first, because merging erases products, whose results other products may read.
    SmallVector<Value> all = llvm::to_vector(llvm::make_filter_range(
        operands, [](Value operand) { return !operand.hasOneUse() && isOfSoftmax(operand); }));
    for (Value probabilities : all) {
      SmallVector<ValueProduct> products = groupProducts(probabilities);
      if (products.size() < 2 || !pays(probabilities, products))
        continue;
      if (Operation *place = findPlace(probabilities, products))
        merge(probabilities, products, place);
    }
  }
};
} // namespace
