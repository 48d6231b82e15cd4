//===- OutParams.cpp - results become buffers of the caller ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @forward(%x: tensor<...>) -> (tensor<?x768xf32> {attn.name = "out"}) { ... return %y }
// becomes
//   func.func @forward(%x: tensor<...>, %out: memref<?x768xf32> {attn.name = "out", attn.output}) {
//     ...
//     bufferization.materialize_in_destination %y in restrict writable %out
//
//   func.func @step(%cache: tensor<...> {attn.in_out = 0}, ...) -> tensor<...> { ... return %new }
// becomes
//   func.func @step(%cache: memref<...> {attn.in_out = 0}, ...) {
//     %old = bufferization.to_tensor %cache restrict writable
//     ...
//     bufferization.materialize_in_destination %new in restrict writable %cache
//
// Inputs get {bufferization.writable = false}, so that bufferization copies an input instead of writing to it. If %y is
// computed in a tensor.empty, or in a slice of a tensor.empty, a tensor of %out replaces this empty tensor; bufferized
// ops then compute directly into the caller's memory. If a result is a reshape of a computed tensor, the pass reshapes
// the buffer instead. A linalg.copy copies a result that is an argument, a part of another tensor, or returned twice.
// Test: test/passes/bufferize/out-params.mlir
//
//===----------------------------------------------------------------------===//

#include "passes/Memory.h"
#include "passes/Passes.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_OUTPARAMS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Replaces an insertion that fills all of an empty tensor with the inserted value. This saves a copy.
static void foldWholeInsertions(func::FuncOp function) {
  function.walk([](tensor::InsertSliceOp insert) {
    auto empty = insert.getDest().getDefiningOp<tensor::EmptyOp>();
    if (!empty || insert.getSourceType() != insert.getDestType() ||
        !isEqualConstantIntOrValueArray(insert.getMixedSizes(), empty.getMixedSizes()))
      return;
    insert.replaceAllUsesWith(insert.getSource());
    insert.erase();
  });
}

/// Replaces a slice of an empty tensor with a separate empty tensor.
static tensor::EmptyOp separate(tensor::ExtractSliceOp slice) {
  OpBuilder builder(slice);
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes()))
    if (!dropped.test(dim))
      sizes.push_back(size);
  auto empty =
      tensor::EmptyOp::create(builder, slice.getLoc(), sizes, slice.getType().getElementType());
  slice.replaceAllUsesWith(empty.getResult());
  slice.erase();
  return empty;
}

/// Returns the tensor.empty, or the slice of a tensor.empty, in whose memory `value` is computed, or null. If an scf.if
/// computes `value`, both of its branches must compute it in the same tensor.
static Operation *rootOf(Value value) {
  while (auto result = dyn_cast<OpResult>(value)) {
    Operation *op = result.getOwner();
    auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
    if (isa<tensor::EmptyOp>(op) || (slice && slice.getSource().getDefiningOp<tensor::EmptyOp>()))
      return op;
    if (auto choice = dyn_cast<scf::IfOp>(op)) {
      unsigned number = result.getResultNumber();
      Operation *root = rootOf(choice.thenYield().getOperand(number));
      return root == rootOf(choice.elseYield().getOperand(number)) ? root : nullptr;
    }
    OpOperand *init = initOf(result);
    if (!init)
      break;
    value = init->get();
  }
  return nullptr;
}

/// True if the buffer of `value` can be chosen freely, because the op that defines `value` writes it. An scf.if
/// writes it if both branches compute it in the same empty tensor.
static bool isComputedHere(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<scf::IfOp>(op))
    return rootOf(value);
  return op &&
         isa<DestinationStyleOpInterface, scf::ForallOp, scf::ForOp, tensor::InsertSliceOp>(op);
}

/// Expands `buffer` to the shape of the source of `collapse`. Returns null if `collapse` merges a dynamic dimension
/// with others.
static Value expandBuffer(OpBuilder &builder, tensor::CollapseShapeOp collapse, Value buffer) {
  RankedTensorType source = collapse.getSrcType();
  SmallVector<OpFoldResult> shape;
  if (collapse.getReassociationIndices().empty()) // a scalar
    shape.assign(source.getRank(), builder.getIndexAttr(1));
  for (auto [position, group] : llvm::enumerate(collapse.getReassociationIndices())) {
    int64_t numDynamic =
        llvm::count_if(group, [&](int64_t dim) { return source.isDynamicDim(dim); });
    for (int64_t dim : group) {
      if (!source.isDynamicDim(dim))
        shape.push_back(builder.getIndexAttr(source.getDimSize(dim)));
      else if (group.size() == 1)
        shape.push_back(
            memref::DimOp::create(builder, collapse.getLoc(), buffer, position).getResult());
      else
        return nullptr;
    }
    if (numDynamic > 1)
      return nullptr;
  }
  auto type = MemRefType::get(source.getShape(), source.getElementType());
  return memref::ExpandShapeOp::create(builder, collapse.getLoc(), type, buffer,
                                       collapse.getReassociationIndices(), shape);
}

namespace {
struct OutParams : attn::impl::OutParamsBase<OutParams> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal() || function.getNumResults() == 0 ||
        !llvm::all_of(function.getResultTypes(), llvm::IsaPred<RankedTensorType>))
      return;
    foldWholeInsertions(function);
    auto terminator = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    OpBuilder builder(terminator);
    llvm::SmallPtrSet<Value, 4> stored;
    llvm::SmallDenseSet<unsigned> inOut;
    forEachInOut(function, [&](BlockArgument argument, OpOperand &result) {
      inOut.insert(result.getOperandNumber());
      stored.insert(result.get());
      writeInPlace(builder, argument, result.get());
    });
    // attn-verify-buffers checks that nothing writes to inputs.
    for (BlockArgument input : function.getArguments())
      if (isa<TensorType>(input.getType()))
        function.setArgAttr(input.getArgNumber(),
                            bufferization::BufferizationDialect::kWritableAttrName,
                            builder.getBoolAttr(false));
    for (auto [i, value] : llvm::enumerate(llvm::to_vector(terminator.getOperands()))) {
      if (inOut.contains(i))
        continue;
      auto type = cast<RankedTensorType>(value.getType());
      DictionaryAttr attributes = function.getResultAttrDict(i);
      NamedAttrList list(attributes ? attributes : builder.getDictionaryAttr({}));
      list.set(AttnDialect::kOutputAttr, builder.getUnitAttr());
      unsigned index = function.getNumArguments();
      (void)function.insertArgument(index, MemRefType::get(type.getShape(), type.getElementType()),
                                    list.getDictionary(&getContext()), value.getLoc());
      store(builder, value, function.getArgument(index), stored);
    }
    terminator->setOperands({});
    function.setType(builder.getFunctionType(function.getBody().getArgumentTypes(), {}));
    function->removeAttr(function.getResAttrsAttrName());
  }

  /// Turns `argument` into a buffer. attn-copy-overwritten ensures that its memory holds `result` at the end.
  void writeInPlace(OpBuilder &builder, BlockArgument argument, Value result) {
    Location loc = argument.getLoc();
    auto type = cast<RankedTensorType>(argument.getType());
    argument.setType(MemRefType::get(type.getShape(), type.getElementType()));
    OpBuilder entry = OpBuilder::atBlockBegin(builder.getBlock());
    auto old = bufferization::ToTensorOp::create(entry, loc, type, argument, /*restrict=*/true,
                                                 /*writable=*/true);
    argument.replaceAllUsesExcept(old, old);
    if (result != argument)
      materialize(builder, loc, result, argument);
  }

  void store(OpBuilder &builder, Value value, Value buffer, llvm::SmallPtrSetImpl<Value> &stored) {
    Location loc = value.getLoc();
    // Reshape the buffer before the computation, so that the computation can write to it.
    OpBuilder entry = OpBuilder::atBlockBegin(builder.getBlock());
    Value computed = value, destination = buffer;
    while (true) {
      if (auto collapse = computed.getDefiningOp<tensor::CollapseShapeOp>()) {
        Value expanded = expandBuffer(entry, collapse, destination);
        if (!expanded)
          break;
        computed = collapse.getSrc();
        destination = expanded;
      } else if (auto expand = computed.getDefiningOp<tensor::ExpandShapeOp>();
                 expand && rootOf(expand.getSrc())) {
        computed = expand.getSrc();
        destination = memref::CollapseShapeOp::create(entry, loc, destination,
                                                      expand.getReassociationIndices());
      } else {
        break;
      }
    }
    if (!isComputedHere(computed) || !stored.insert(computed).second)
      computed = copyOf(builder, loc, computed);
    Operation *root = rootOf(computed);
    if (auto slice = dyn_cast_if_present<tensor::ExtractSliceOp>(root))
      root = separate(slice);
    if (root && root->getResult(0).getType() == computed.getType()) {
      // Insert before the root and not at `entry`: in a function that only returns, `entry` points behind the copy, and
      // the root may be the empty tensor of the copy.
      entry.setInsertionPoint(root);
      auto tensor = bufferization::ToTensorOp::create(entry, loc, computed.getType(), destination,
                                                      /*restrict=*/true,
                                                      /*writable=*/true);
      root->replaceAllUsesWith(tensor);
      root->erase();
    }
    materialize(builder, loc, computed, destination);
  }
};
} // namespace
