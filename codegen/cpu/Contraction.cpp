//===- Contraction.cpp - contractions on buffers: the roles of their loops -===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Contraction.h"
#include "codegen/cpu/RegisterBlocks.h"
#include "codegen/cpu/StridedView.h"
#include "passes/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace attn;

/// Whether `op` is a product, with or without `attn.skips_zeros`, or a convolution of strided buffers.
static bool isContraction(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || (!isProductOrConvolution(op) && !skipsZeros(op)))
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    return type && succeeded(getLoopStrides(type, op.getMatchingIndexingMap(&operand)));
  });
}

static int64_t staticStride(linalg::LinalgOp op, OpOperand *operand, unsigned loop) {
  return (*getLoopStrides(cast<MemRefType>(operand->get().getType()),
                          op.getMatchingIndexingMap(operand)))[loop];
}

/// Assigns roles to the loops for an instruction that adds groups of `group` products. A loop of one iteration is never
/// n or m, whatever its strides.
static std::optional<Contraction::Roles> assignRoles(linalg::LinalgOp op, int64_t group) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  OpOperand *out = op.getDpsInitOperand(0);
  std::optional<Contraction::Roles> roles;
  SmallVector<unsigned> parallel, reductions;
  op.getParallelDims(parallel);
  op.getReductionDims(reductions);
  if (group > 1) {
    bool isAdjacent = llvm::all_of(op.getDpsInputOperands(), [&](OpOperand *input) {
      return staticStride(op, input, reductions.back()) == 1;
    });
    if (reductions.size() < 2 || sizes[reductions.back()] != group || !isAdjacent)
      return std::nullopt;
    reductions.pop_back();
  }
  for (unsigned input : {1, 0}) {
    OpOperand *vector = op.getDpsInputOperand(input), *scalar = op.getDpsInputOperand(1 - input);
    for (unsigned loop : parallel)
      if (!roles && sizes[loop] != 1 && staticStride(op, out, loop) == 1 &&
          staticStride(op, vector, loop) == group && staticStride(op, scalar, loop) == 0)
        roles = Contraction::Roles{input, loop, {}, {}, reductions};
  }
  if (!roles)
    return std::nullopt;

  // m is the longest loop that only the scalar operand has. A loop of unknown length counts as the
  // longest.
  OpOperand *vector = op.getDpsInputOperand(roles->vectorInput),
            *scalar = op.getDpsInputOperand(1 - roles->vectorInput);
  auto length = [&](unsigned loop) {
    return ShapedType::isDynamic(sizes[loop]) ? std::numeric_limits<int64_t>::max() : sizes[loop];
  };
  for (unsigned loop : parallel)
    if (loop != roles->n && sizes[loop] != 1 &&
        op.getMatchingIndexingMap(scalar).isFunctionOfDim(loop) &&
        !op.getMatchingIndexingMap(vector).isFunctionOfDim(loop) &&
        (!roles->m || length(loop) >= length(*roles->m)))
      roles->m = loop;
  for (unsigned loop : parallel)
    if (loop != roles->n && loop != roles->m)
      roles->outer.push_back(loop);
  return roles;
}

/// Whether `op` may have one of `Effects` on `buffer`.
template <typename... Effects>
static bool mayHave(Operation *op, Value buffer, AliasAnalysis &aliases) {
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects = getEffectsRecursively(op);
  return !effects || llvm::any_of(*effects, [&](const MemoryEffects::EffectInstance &effect) {
    return isa<Effects...>(effect.getEffect()) &&
           (!effect.getValue() || !aliases.alias(effect.getValue(), buffer).isNo());
  });
}

std::optional<Contraction> Contraction::match(linalg::LinalgOp op, CpuAttr cpu) {
  if (!isContraction(op))
    return std::nullopt;
  std::optional<Contraction> result;
  for (const MultiplyAdd *instruction : findMultiplyAdds(cpu, ProductTypes::get(op))) {
    result =
        Contraction{op, instruction, attn::skipsZeros(op), assignRoles(op, instruction->group)};
    if (result->roles)
      return result;
  }
  return result;
}

/// An upper bound on the size of `loop`, or kDynamic if none is known. For a loop over a tile that is smaller only at
/// an edge, the bound is the size of a full tile.
static int64_t boundOf(linalg::LinalgOp op, unsigned loop) {
  for (OpOperand &operand : op->getOpOperands()) {
    AffineExpr dim = getAffineDimExpr(loop, op.getContext());
    std::optional<unsigned> position = op.getMatchingIndexingMap(&operand).getResultPosition(dim);
    if (!position)
      continue;
    FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
        presburger::BoundType::UB, {operand.get(), static_cast<int64_t>(*position)},
        /*stopCondition=*/nullptr, /*closedUB=*/true);
    if (succeeded(bound))
      return *bound;
  }
  return ShapedType::kDynamic;
}

BlockAttr Contraction::getBlock(CpuAttr cpu) const {
  linalg::LinalgOp linalgOp = op;
  if (auto planned = linalgOp->getAttrOfType<BlockAttr>(AttnDialect::kBlockAttr))
    return planned;
  assert(roles && "a contraction without lanes has no block");
  std::optional<int64_t> depth;
  if (roles->reductions.size() == 1)
    if (int64_t size = linalgOp.getStaticLoopRanges()[roles->reductions.front()];
        !ShapedType::isDynamic(size))
      depth = size * instruction->group;
  int64_t rows = roles->m ? boundOf(op, *roles->m) : 1;
  return planBlock(cpu, {boundOf(op, roles->n), depth, skipsZeros, instruction->group, rows,
                         ProductTypes::get(op)});
}

std::optional<int64_t> Contraction::getSplit(CpuAttr cpu) const {
  if (!roles || roles->reductions.empty() || (roles->reductions.size() != 1 && !isConvolution(op)))
    return std::nullopt;
  SmallVector<int64_t> ranges = linalg::LinalgOp(op).getStaticLoopRanges();
  int64_t whole = ranges[roles->reductions.front()], products = instruction->group;
  for (unsigned loop : ArrayRef(roles->reductions).drop_front())
    products *= ShapedType::isDynamic(ranges[loop]) ? 1 : ranges[loop];
  int64_t depth = getBlock(cpu).getDepth(), steps = products ? depth / products : 0;
  bool splits = steps > 0 && depth % products == 0 && !ShapedType::isDynamic(whole) &&
                whole % steps == 0 && steps != whole;
  return splits ? std::optional(steps) : std::nullopt;
}

/// The last op before `op` in its block that may read, write or free `buffer`; null if there is none.
static Operation *findLastAccess(Operation *op, Value buffer, AliasAnalysis &aliases) {
  Operation *previous = op->getPrevNode();
  while (previous && !mayHave<MemoryEffects::Read, MemoryEffects::Write, MemoryEffects::Free>(
                         previous, buffer, aliases))
    previous = previous->getPrevNode();
  return previous;
}

Start Start::ofOutput(const Contraction &contraction) {
  linalg::LinalgOp op = contraction.op;
  OpOperand *out = op.getDpsInitOperand(0);
  return {out->get(), op.getMatchingIndexingMap(out), nullptr};
}

Start attn::findStart(const Contraction &contraction, AliasAnalysis &aliases) {
  linalg::LinalgOp op = contraction.op;
  OpOperand *out = op.getDpsInitOperand(0);
  Start itself = Start::ofOutput(contraction);
  auto writer = dyn_cast_or_null<linalg::LinalgOp>(findLastAccess(op, out->get(), aliases));
  if (!writer || writer.getNumDpsInits() != 1 || writer.getDpsInits()[0] != out->get() ||
      writer.getNumParallelLoops() != writer.getNumLoops() ||
      writer.getBlock()->getOperations().size() != 1)
    return itself;
  AffineMap writerOut = writer.getMatchingIndexingMap(writer.getDpsInitOperand(0));
  if (!writerOut.isPermutation())
    return itself;

  Value yielded = writer.getBlock()->getTerminator()->getOperand(0);
  auto argument = dyn_cast<BlockArgument>(yielded);
  if (!argument || argument.getOwner() != writer.getBlock())
    return {yielded, {}, writer};
  OpOperand *source = &writer->getOpOperand(argument.getArgNumber());
  if (writer.isDpsInit(source))
    return itself;
  auto type = dyn_cast<MemRefType>(source->get().getType());
  if (!type)
    return {source->get(), {}, writer};
  if (!contraction.roles)
    return itself;
  // Map each loop of the writer to a dimension of the output, and the dimension to a loop of the contraction.
  AffineMap map = writer.getMatchingIndexingMap(source)
                      .compose(inversePermutation(writerOut))
                      .compose(itself.map);
  FailureOr<SmallVector<int64_t>> strides = getLoopStrides(type, map);
  if (failed(strides) ||
      ((*strides)[contraction.roles->n] != 1 && (*strides)[contraction.roles->n] != 0))
    return itself;
  for (Operation *between = writer->getNextNode(); between != op; between = between->getNextNode())
    if (mayHave<MemoryEffects::Write, MemoryEffects::Free>(between, source->get(), aliases))
      return itself;
  return {source->get(), map, writer};
}

SmallVector<OpFoldResult> attn::getLoopSizes(OpBuilder &builder, linalg::LinalgOp op) {
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(op.getContext(), op.getStaticLoopRanges());
  for (OpOperand &operand : op->getOpOperands())
    for (auto [i, expr] : llvm::enumerate(op.getMatchingIndexingMap(&operand).getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr);
          dim && ShapedType::isDynamic(op.getStaticLoopRanges()[dim.getPosition()]))
        sizes[dim.getPosition()] = memref::getMixedSize(builder, op.getLoc(), operand.get(), i);
  return sizes;
}
