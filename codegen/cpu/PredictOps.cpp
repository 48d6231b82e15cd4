//===- PredictOps.cpp - how long the ops of a graph take -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Attentions and products are predicted as for the choice of their plans (Cost.h). All other linalg ops become loops
// over memory: their time is that of the ops in their bodies, or that of the memory that they read and write. The
// constants were measured on Emerald Rapids. Test: test/codegen/cpu/note-slow-loops.mlir, test/tools/report-json.test
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/PredictOps.h"
#include "codegen/cpu/Choose.h"
#include "codegen/cpu/DoubleMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace attn;

// The costs of one vector, in multiply-adds.
static constexpr double kDivision = 10; // a division or a square root
static constexpr double kFunction = 25; // a function other than an exponential
// The cost of one element if a loop runs over scalars: of a load at an index that is data, and of any other op.
static constexpr double kIndexedLoad = 4;
static constexpr double kScalar = 1;
// The cost of moving one vector, in a copy or a change of layout.
static constexpr double kMove = 2;

/// Returns the number of elements of `type`; none if a size is dynamic.
static std::optional<int64_t> countElements(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped)
    return 1;
  return shaped.hasStaticShape() ? std::optional(shaped.getNumElements()) : std::nullopt;
}

static std::optional<double> countSteps(linalg::LinalgOp op) {
  double steps = 1;
  for (int64_t range : op.getStaticLoopRanges()) {
    if (ShapedType::isDynamic(range))
      return std::nullopt;
    steps *= range;
  }
  return steps;
}

/// The time to run `body` for `steps` elements. The elements are computed in vectors, or one by one if the body reads
/// memory at indices that are data.
static double predictBody(Region &body, CpuAttr cpu, double steps) {
  bool isScalar = false;
  double vectors = 0, scalars = 0;
  body.walk([&](Operation *op) {
    if (isa<tensor::ExtractOp>(op)) {
      isScalar = true;
      scalars += kIndexedLoad;
      return;
    }
    if (op->hasTrait<OpTrait::IsTerminator>() || isa<linalg::IndexOp, arith::ConstantOp>(op))
      return;
    scalars += kScalar;
    int64_t lanes = cpu.getLanes();
    for (Type type : op->getOperandTypes())
      if (type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 64)
        lanes = std::max<int64_t>(1, cpu.getLanes() / 2);
    double cost = 1;
    if (isa<arith::DivFOp, math::SqrtOp, math::RsqrtOp>(op))
      cost = kDivision;
    else if (isa<math::ExpOp, math::Exp2Op>(op))
      cost = cpu.getPipelines().getExponential();
    else if (isComputedInDouble(op))
      cost = 2 * kFunction;
    else if (isa<math::MathDialect>(op->getDialect()) && !isa<math::AbsFOp, math::FmaOp>(op))
      cost = kFunction;
    vectors += cost / lanes;
    // A function that is computed for one scalar costs as much as for a vector.
    scalars += cost - 1;
  });
  return steps * (isScalar ? scalars : vectors);
}

/// The bytes of the operands of `op` that are tensors. The operands of a linalg op include its output.
static std::optional<double> countBytes(Operation *op) {
  double bytes = 0;
  auto add = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return true;
    std::optional<int64_t> elements = countElements(type);
    if (elements)
      bytes += double(*elements) * getBytes(tensor.getElementType());
    return elements.has_value();
  };
  for (Type type : op->getOperandTypes())
    if (!add(type))
      return std::nullopt;
  return bytes;
}

static std::optional<double> predictLinalg(linalg::LinalgOp op, CpuAttr cpu) {
  std::optional<double> steps = countSteps(op), bytes = countBytes(op);
  if (!steps || !bytes)
    return std::nullopt;
  double cost = 0;
  ProductShape shape = isProductOrConvolution(op) ? ProductShape::get(op) : ProductShape();
  const MultiplyAdd *instruction =
      isProductOrConvolution(op) ? findMultiplyAdd(cpu, shape.types) : nullptr;
  if (instruction && shape.depth && !ShapedType::isDynamic(shape.rows) &&
      !ShapedType::isDynamic(shape.columns)) {
    double products = double(shape.rows) * shape.columns * *shape.depth;
    cost = *steps * shape.group / std::max(products, 1.0) *
           predictProduct(cpu, *instruction, getBytes(shape.types.a), shape.rows, shape.columns,
                          *shape.depth, shape.skipsZeros);
  } else {
    cost = predictBody(op->getRegion(0), cpu, *steps);
  }
  return addTraffic(cpu, cost, *bytes);
}

static std::optional<double> predictSoftmax(linalg::SoftmaxOp op, CpuAttr cpu) {
  std::optional<int64_t> elements = countElements(op.getInputOperandType());
  std::optional<double> bytes = countBytes(op);
  if (!elements || !bytes)
    return std::nullopt;
  double vectors = double(*elements) / cpu.getLanes();
  return addTraffic(cpu, vectors * (3 + cpu.getPipelines().getExponential()), *bytes);
}

static double predictAttention(AttentionOp op, CpuAttr cpu) {
  AttentionShape shape = AttentionShape::get(op);
  shape.depth = 0; // the projections are ops of their own
  double scores = double(shape.heads) * shape.groups * shape.queries * shape.keys;
  return predictPlan(cpu, shape, *op.getPlan()) + predictBody(op.getScore(), cpu, scores);
}

std::optional<double> attn::countIterations(Operation *op) {
  auto loop = dyn_cast<LoopLikeOpInterface>(op);
  if (!loop)
    return 1;
  std::optional<APInt> count = loop.getStaticTripCount();
  return count ? std::optional(double(count->getZExtValue())) : std::nullopt;
}

std::optional<double> attn::predictOp(Operation *op, CpuAttr cpu) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return llvm::all_of(op->getOperandTypes(), countElements) && attention.getPlan()
               ? std::optional(predictAttention(attention, cpu))
               : std::nullopt;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return predictLinalg(linalgOp, cpu);
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
    return predictSoftmax(softmax, cpu);
  if (op->getNumRegions() == 0) {
    // Views, and ops on scalars, take no time.
    if (!isa<PackOp, tensor::InsertSliceOp, tensor::ConcatOp, tensor::PadOp>(op))
      return 0;
    std::optional<double> bytes = countBytes(op);
    return bytes ? std::optional(addTraffic(cpu, *bytes / (4 * cpu.getLanes()) * kMove, *bytes))
                 : std::nullopt;
  }
  double cost = 0;
  for (Region &region : op->getRegions())
    for (Operation &inner : region.getOps()) {
      std::optional<double> part = predictOp(&inner, cpu);
      if (!part)
        return std::nullopt;
      cost += *part;
    }
  std::optional<double> iterations = countIterations(op);
  return iterations ? std::optional(cost * *iterations) : std::nullopt;
}
