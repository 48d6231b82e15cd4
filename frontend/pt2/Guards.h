//===- Guards.h - which sizes a call may have --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_GUARDS_H
#define ATTN_FRONTEND_PT2_GUARDS_H

#include "frontend/pt2/Graph.h"

namespace attn::pt2 {

/// A size of an input that is known at the call only, under the name that callers see.
struct Dimension {
  std::string name;
  /// In terms of dimensions that no other follows from.
  Size size;
  int64_t min, max;
};

/// What a file says of the sizes of its inputs: in the types of values, the ranges of symbols and guards, the
/// conditions under which torch traced the graph.
struct SizeRules {
  /// Of each input and axis: one of `dimensions`; none where the size is a number.
  std::vector<llvm::SmallVector<std::optional<unsigned>>> axes;
  std::vector<Dimension> dimensions;
  /// What the symbols of the file are.
  std::map<std::string, Size> symbols;
  /// What neither symbols nor ranges imply, as text that Formula reads.
  std::vector<std::string> conditions;

  /// `size`, in terms of dimensions, without maxima and minima that the ranges of these decide.
  Size decided(const Size &size) const;
};

/// An input of the user.
struct Input {
  std::string name;
  Sizes sizes;
};

/// Draws the conclusions from guards, as in "L['x'].size()[1] == L['mask'].size()[0]".
llvm::Expected<SizeRules> ruleSizes(const Program &program, llvm::ArrayRef<Input> inputs);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_GUARDS_H
