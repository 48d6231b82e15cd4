//===- ScoreBound.cpp - upper bounds of scores -----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "passes/ScoreBound.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

namespace {
class Bounds {
public:
  explicit Bounds(AttentionOp op) : op(op) {}

  std::optional<double> of(Value score) {
    FloatAttr constant;
    if (matchPattern(score, m_Constant(&constant)))
      return std::abs(constant.getValueAsDouble());
    if (auto argument = dyn_cast<BlockArgument>(score))
      return argument.getArgNumber() == op.getKDim() + 1 ? std::optional(1.0) : std::nullopt;
    auto [entry, isNew] = known.try_emplace(score);
    if (!isNew)
      return entry->second;
    std::optional<double> bound = ofResult(score.getDefiningOp());
    return known[score] = bound;
  }

private:
  std::optional<double> ofResult(Operation *inner) {
    if (isa<math::TanhOp>(inner) && of(inner->getOperand(0)))
      return 1;
    if (!isa<arith::MulFOp, arith::DivFOp, arith::AddFOp, arith::SubFOp>(inner))
      return std::nullopt;
    std::optional<double> left = of(inner->getOperand(0)), right = of(inner->getOperand(1));
    if (!left || !right)
      return std::nullopt;
    if (isa<arith::AddFOp, arith::SubFOp>(inner))
      return *left + *right;
    // One factor must be a constant: no multiple of the product bounds its square.
    bool byConstant = matchPattern(inner->getOperand(1), m_Constant());
    if (isa<arith::DivFOp>(inner))
      return byConstant ? std::optional(*left / *right) : std::nullopt;
    if (byConstant || matchPattern(inner->getOperand(0), m_Constant()))
      return *left * *right;
    return std::nullopt;
  }

  AttentionOp op;
  DenseMap<Value, std::optional<double>> known;
};
} // namespace

std::optional<double> attn::boundScore(AttentionOp op, Value score) { return Bounds(op).of(score); }

std::optional<double> attn::boundScore(AttentionOp op) {
  if (op.getScore().empty())
    return 1;
  return boundScore(op, cast<YieldOp>(op.getScore().front().getTerminator()).getValue());
}
