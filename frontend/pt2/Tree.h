//===- Tree.h - how a module nests inputs and outputs ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_TREE_H
#define ATTN_FRONTEND_PT2_TREE_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace attn::pt2 {

/// The place of a child in a node of a tree: an index in a list, or a key in a dictionary.
struct TreeKey {
  std::string text;
  bool isNumber;
};

/// The keys that lead from the root to a leaf.
using TreePath = std::vector<TreeKey>;

/// The paths of the leaves of a tree, in order. `spec` is the text that torch writes for a pytree, such as
///   [1, {"type": "builtins.dict", "context": "[\"y\", \"z\"]", "children_spec": [LEAF, LEAF]}]
/// where a leaf is {"type": null, ...}. Returns no path if the text has another form.
std::vector<TreePath> leavesOf(llvm::StringRef spec);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_TREE_H
