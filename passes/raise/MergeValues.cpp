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
// and coordinates by the same probabilities.
// Test: test/passes/raise/merge-values.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Access.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "support/Loops.h"

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

namespace {
struct MergeValues : attn::impl::MergeValuesBase<MergeValues> {
  void runOnOperation() override {
    llvm::SetVector<Value> operands;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (isProduct(op))
        operands.insert_range(op.getDpsInputs());
    });
    // Find all probabilities first, because merging erases products, whose results other products may read.
    SmallVector<Value> probabilities = llvm::to_vector(llvm::make_filter_range(
        operands, [](Value operand) { return !operand.hasOneUse() && isOfSoftmax(operand); }));
    for (Value each : probabilities)
      mergeProductsOf(each);
  }

  void mergeProductsOf(Value probabilities) {
    SmallVector<ValueProduct> products;
    Operation *after = probabilities.getDefiningOp();
    for (OpOperand &use : probabilities.getUses()) {
      std::optional<ValueProduct> product = findProduct(use);
      if (!product || use.getOwner()->getBlock() != after->getBlock())
        continue;
      products.push_back(*product);
    }
    // In the order of the function. Uses are in the reverse order.
    llvm::sort(products, [](const ValueProduct &a, const ValueProduct &b) {
      return a.op->isBeforeInBlock(b.op);
    });
    if (products.empty())
      return;
    const ValueProduct &first = products.front();
    unsigned e = cast<RankedTensorType>(probabilities.getType()).getRank();
    auto reducedBy = [&](const ValueProduct &product) {
      SmallVector<unsigned> loops;
      for (unsigned loop = 0; loop < e; ++loop)
        if (!llvm::is_contained(product.ofResult, loop))
          loops.push_back(loop);
      return loops;
    };
    auto typesOf = [](const ValueProduct &product) {
      return std::pair(getElementTypeOrSelf(product.values), getElementTypeOrSelf(product.op->getResult(0)));
    };
    llvm::erase_if(products, [&](const ValueProduct &product) {
      return reducedBy(product) != reducedBy(first) || typesOf(product) != typesOf(first);
    });
    if (products.size() < 2)
      return;
    // The merged product comes after the last of the values, so no value may depend on a product.
    for (const ValueProduct &product : products)
      if (Operation *op = product.values.getDefiningOp(); op && op->getBlock() == after->getBlock())
        after = after->isBeforeInBlock(op) ? op : after;
    for (const ValueProduct &product : products) {
      if (product.op == after)
        return;
      for (Operation *user : product.op->getUsers())
        if (Operation *place = after->getBlock()->findAncestorOpInBlock(*user);
            !place || !after->isBeforeInBlock(place))
          return;
    }
    merge(probabilities, products, after);
  }
};
} // namespace
