//===- Loops.h - the loops that indexing maps name ---------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_LOOPS_H
#define ATTN_SUPPORT_LOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/AffineMap.h"

namespace attn {

/// Returns the loop that `expr`, a result of an indexing map, names; none if `expr` is a constant or is computed, such
/// as i + j. An indexing map that someone else has written may have any of these, so code that has not checked a map does not
/// cast its results to loops: without assertions, a wrong cast would read other memory.
inline std::optional<unsigned> findLoop(mlir::AffineExpr expr) {
  if (auto loop = llvm::dyn_cast<mlir::AffineDimExpr>(expr))
    return loop.getPosition();
  return std::nullopt;
}

/// Returns the loop that each result of `map` names; none unless each is a loop of its own.
inline std::optional<llvm::SmallVector<unsigned>> findLoops(mlir::AffineMap map) {
  if (!map.isProjectedPermutation())
    return std::nullopt;
  return llvm::map_to_vector(map.getResults(),
                             [](mlir::AffineExpr expr) { return *findLoop(expr); });
}

/// A part of an index that an indexing map computes: a loop times a constant factor.
struct LoopTerm {
  unsigned loop;
  int64_t factor;
};

/// Returns the terms whose sum is `expr`, such as 2 * i + j; no terms for the constant 0, and none if `expr` is
/// anything else.
inline std::optional<llvm::SmallVector<LoopTerm>> findTerms(mlir::AffineExpr expr) {
  llvm::SmallVector<LoopTerm> terms;
  if (std::optional<unsigned> loop = findLoop(expr)) {
    terms.push_back({*loop, 1});
    return terms;
  }
  if (auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(expr))
    return constant.getValue() == 0 ? std::optional(terms) : std::nullopt;
  auto binary = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  if (binary.getKind() == mlir::AffineExprKind::Mul) {
    std::optional<unsigned> loop = findLoop(binary.getLHS());
    auto factor = llvm::dyn_cast<mlir::AffineConstantExpr>(binary.getRHS());
    if (!loop || !factor)
      return std::nullopt;
    terms.push_back({*loop, factor.getValue()});
    return terms;
  }
  if (binary.getKind() != mlir::AffineExprKind::Add)
    return std::nullopt;
  for (mlir::AffineExpr part : {binary.getLHS(), binary.getRHS()}) {
    std::optional<llvm::SmallVector<LoopTerm>> more = findTerms(part);
    if (!more)
      return std::nullopt;
    llvm::append_range(terms, *more);
  }
  return terms;
}

/// Returns the loop that each dimension of the first result of `op` runs over; none unless each has a loop of its own.
inline std::optional<llvm::SmallVector<unsigned>> findResultLoops(mlir::linalg::LinalgOp op) {
  return findLoops(op.getMatchingIndexingMap(op.getDpsInitOperand(0)));
}

} // namespace attn

#endif // ATTN_SUPPORT_LOOPS_H
