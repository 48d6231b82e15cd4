//===- MaskTensor.cpp - conditions as a boolean tensor ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/raise/MaskTensor.h"
#include "passes/raise/Captures.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace attn;

namespace {
/// Parts of conditions, the ops of the region that compute them, and the loops and captured operands that they read.
struct Computation {
  SmallVector<Part> parts;
  llvm::SetVector<Operation *> ops;
  llvm::SmallBitVector dims, captures;

  void add(const Computation &other) {
    parts.append(other.parts);
    ops.insert_range(other.ops);
    dims |= other.dims;
    captures |= other.captures;
  }
};
} // namespace

/// Returns the computation of `part`, or nothing if `part` depends on the scores.
static std::optional<Computation> findComputation(AttentionOp op, Part part) {
  Block *score = &op.getScore().front();
  unsigned numDims = op.getKDim() + 1;
  Computation found{
      {part}, {}, llvm::SmallBitVector(numDims), llvm::SmallBitVector(op.getCaptures().size())};
  SmallVector<Value> values = {part.value};
  while (!values.empty()) {
    Value value = values.pop_back_val();
    if (Operation *inner = value.getDefiningOp()) {
      if (inner->getBlock() == score && found.ops.insert(inner))
        llvm::append_range(values, inner->getOperands());
      continue;
    }
    auto argument = cast<BlockArgument>(value);
    unsigned number = argument.getArgNumber();
    if (argument.getOwner() != score)
      continue;
    if (number == numDims)
      return std::nullopt; // the score
    if (number < numDims)
      found.dims.set(number);
    else
      found.captures.set(number - numDims - 1);
  }
  for (unsigned capture : found.captures.set_bits())
    for (unsigned dim = 0; dim < numDims; ++dim)
      if (op.getCaptureMap(capture).isFunctionOfDim(dim))
        found.dims.set(dim);
  return found;
}

/// Computes and captures a boolean tensor that is true where all parts of `computation` hold.
static unsigned captureComputation(AttentionOp op, const Computation &computation) {
  SmallVector<unsigned> dims(computation.dims.set_bits()),
      captures(computation.captures.set_bits());
  auto compute = [&](OpBuilder &b, Location loc, ValueRange elements) {
    Block &score = op.getScore().front();
    IRMapping mapping;
    for (auto [loop, dim] : llvm::enumerate(dims))
      mapping.map(score.getArgument(dim), linalg::IndexOp::create(b, loc, loop));
    for (auto [capture, element] : llvm::zip_equal(captures, elements))
      mapping.map(score.getArgument(op.getKDim() + 2 + capture), element);
    for (Operation &inner : score)
      if (computation.ops.contains(&inner))
        b.clone(inner, mapping);
    Value all;
    for (Part part : computation.parts) {
      Value holds = createDenseTest(b, loc, mapping.lookupOrDefault(part.value),
                                    part.truth ? Polarity::Nonzero : Polarity::Zero);
      all = all ? arith::AndIOp::create(b, loc, all, holds) : holds;
    }
    return all;
  };
  return captureComputed(op, dims, captures, IntegerType::get(op.getContext(), 1), compute);
}

/// The largest number of elements of a tensor. Testing each pair in the region takes time, but no memory.
static constexpr int64_t kMostElements = int64_t(1) << 28;

bool attn::canComputeTensor(AttentionOp op, Part part) {
  std::optional<Computation> found = findComputation(op, part);
  if (!found || !found->dims[op.getKDim()])
    return false;
  int64_t count = 1;
  for (unsigned dim : found->dims.set_bits())
    if (int64_t size = op.getStaticSize(dim);
        !ShapedType::isDynamic(size) &&
        (llvm::MulOverflow(count, size, count) || count > kMostElements))
      return false;
  return true;
}

void attn::computeMaskTensor(AttentionOp op, Kept &kept) {
  std::optional<Computation> all;
  auto add = [&](Part part) {
    Computation found = *findComputation(op, part);
    if (all)
      all->add(found);
    else
      all = std::move(found);
  };
  SmallVector<Part> rest;
  for (Part part : kept.rest) {
    if (canComputeTensor(op, part))
      add(part);
    else
      rest.push_back(part);
  }
  kept.rest = std::move(rest);
  if (!all)
    return;
  SmallVector<Attribute> masks;
  for (Attribute mask : kept.masks) {
    if (auto dense = dyn_cast<DenseAttr>(mask))
      add({op.getScore().getArgument(op.getKDim() + 2 + dense.getCapture()),
           dense.getKeeps() == Polarity::Nonzero});
    else
      masks.push_back(mask);
  }
  kept.masks = std::move(masks);
  kept.masks.push_back(
      DenseAttr::get(op.getContext(), captureComputation(op, *all), Polarity::Nonzero));
}
