//===- Tree.cpp - how a module nests inputs and outputs ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/Tree.h"
#include "support/Json.h"

using namespace llvm;
using namespace attn::pt2;

static void collectLeaves(const json::Value &tree, TreePath &path, std::vector<TreePath> &leaves) {
  const json::Object *object = tree.getAsObject();
  const json::Array *children = object ? object->getArray("children_spec") : nullptr;
  if (!object || !object->getString("type")) {
    leaves.push_back(path);
    return;
  }
  // The context is the list of the keys of a dictionary, or of a user's class that is registered with torch; a list has
  // no keys.
  Expected<json::Value> context = attn::parseJSON(object->getString("context").value_or(""));
  if (!context)
    consumeError(context.takeError());
  const json::Array *keys = context ? context->getAsArray() : nullptr;
  for (size_t i = 0; children && i < children->size(); ++i) {
    TreeKey key = {std::to_string(i), true};
    if (keys && i < keys->size()) {
      if (std::optional<StringRef> text = (*keys)[i].getAsString())
        key = {text->str(), false};
      else if (std::optional<int64_t> number = (*keys)[i].getAsInteger())
        key.text = std::to_string(*number);
    }
    path.push_back(std::move(key));
    collectLeaves((*children)[i], path, leaves);
    path.pop_back();
  }
}

std::vector<TreePath> attn::pt2::leavesOf(StringRef spec) {
  std::vector<TreePath> leaves;
  Expected<json::Value> versioned = attn::parseJSON(spec);
  if (!versioned) {
    consumeError(versioned.takeError());
    return leaves;
  }
  const json::Array *array = versioned->getAsArray();
  TreePath path;
  if (array && array->size() == 2)
    collectLeaves((*array)[1], path, leaves);
  return leaves;
}
