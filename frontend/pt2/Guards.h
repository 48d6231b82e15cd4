//===- Guards.h - which sizes a call may have --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_GUARDS_H
#define ATTN_FRONTEND_PT2_GUARDS_H

#include "frontend/pt2/Graph.h"

namespace attn::pt2 {

/// A dynamic size of an input, with the name that callers see.
struct Dimension {
  std::string name;
  /// The size in terms of the dimensions that do not depend on other dimensions.
  Size size;
  int64_t min, max;
};

/// The rules of a file for the sizes of its inputs. They follow from the sizes of the tensors in the graph, the ranges
/// of symbols, and the guards, which are the conditions under which torch traced the graph.
struct SizeRules {
  /// For each input and axis, an index into `dimensions`; none if the size is a number.
  std::vector<llvm::SmallVector<std::optional<unsigned>>> axes;
  std::vector<Dimension> dimensions;
  /// The value of each symbol of the file, in terms of dimensions.
  std::map<std::string, Size> symbols;
  /// The conditions that neither symbols nor ranges imply, as text for Formula::parse.
  std::vector<std::string> conditions;
};

/// An input of the user.
struct Input {
  std::string name;
  Sizes sizes;
};

/// Computes the rules from guards such as "L['x'].size()[1] == L['mask'].size()[0]".
llvm::Expected<SizeRules> ruleSizes(const Program &program, llvm::ArrayRef<Input> inputs);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_GUARDS_H
