//===- ViewGroups.cpp - which dimensions a view reshapes ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/graph/ViewGroups.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace attn;
using namespace attn::graph;

static std::optional<Size> product(ArrayRef<Size> sizes) {
  std::optional<Size> result = Size(1);
  for (const Size &size : sizes)
    if (result)
      result = multiply(*result, size);
  return result;
}

std::optional<SmallVector<ViewGroup>> attn::graph::matchView(ArrayRef<Size> source,
                                                             ArrayRef<Size> result) {
  auto isUnit = [](const Size &size) { return size.isOne(); };
  SmallVector<ViewGroup> groups;
  while (!source.empty() && !result.empty()) {
    // Find the shortest run of dimensions on each side such that both runs have the same number of elements.
    std::optional<ViewGroup> next;
    for (unsigned total = 2; total <= source.size() + result.size() && !next; ++total) {
      for (unsigned from = 1; from < total && !next; ++from) {
        unsigned to = total - from;
        if (from > source.size() || to > result.size())
          continue;
        std::optional<Size> a = product(source.take_front(from)),
                            b = product(result.take_front(to));
        if (a && b && areEqual(*a, *b))
          next = ViewGroup{from, to};
      }
    }
    if (!next)
      return std::nullopt;
    groups.push_back(*next);
    source = source.drop_front(next->from);
    result = result.drop_front(next->to);
  }
  // Dimensions of size 1 may remain on one side: add them to the last group.
  if (!all_of(source, isUnit) || !all_of(result, isUnit))
    return std::nullopt;
  if (!source.empty() || !result.empty()) {
    if (groups.empty())
      groups.push_back({0, 0});
    groups.back().from += source.size();
    groups.back().to += result.size();
  }
  return groups;
}
