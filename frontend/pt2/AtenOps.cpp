//===- AtenOps.cpp - what each aten op means in linalg ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "frontend/Frontend.h"

#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace attn::pt2;

const AtenOps &AtenOps::all() {
  static const AtenOps ops = [] {
    AtenOps ops;
    addArithmetic(ops);
    addAssertions(ops);
    addAttention(ops);
    addConvolution(ops);
    addCreation(ops);
    addFunctions(ops);
    addIndexing(ops);
    addJoins(ops);
    addLinearAlgebra(ops);
    addNormalisation(ops);
    addOrder(ops);
    addPooling(ops);
    addReductions(ops);
    addSizes(ops);
    addViews(ops);
    addComplex(ops); // forms of the others
    return ops;
  }();
  return ops;
}

bool attn::pt2::worksInPlace(StringRef target) {
  StringRef name = target.rsplit('.').first;
  // Where detach_ cuts the graph of gradients, the tensor stays as it is.
  return name.ends_with("_") && !name.ends_with("__") && !name.ends_with("detach_");
}

bool attn::pt2::copiesView(StringRef target) { return target.rsplit('.').first.ends_with("_copy"); }

const AtenOp *AtenOps::find(StringRef target) const {
  if (!target.consume_front("torch.ops.aten.") && !target.starts_with("_operator.") &&
      !target.starts_with("torch.sym_") && !target.starts_with("torch._sym_"))
    return nullptr;
  std::string name = target.str();
  if (worksInPlace(target)) {
    auto [op, overload] = target.rsplit('.');
    name = (op.drop_back() + "." + overload).str();
  }
  auto found = ops.find(name);
  if (found == ops.end() && copiesView(target)) {
    auto [op, overload] = target.rsplit('.');
    op.consume_back("_copy");
    found = ops.find((op + "." + overload).str());
  }
  return found == ops.end() ? nullptr : &found->second;
}

void attn::printOps(raw_ostream &stream) {
  stream << "# Ops\n\n"
            "What a `.pt2` file may hold, by the overloads that `torch.export` writes. `attn-import --ops` prints this page, "
            "and a test compares the two.\n\n"
            "A form that works in place, such as `add_`, is the op without the underscore: the result takes the place of "
            "the first argument,\nof what that is a view of, and of every other view of it. One that copies, such as "
            "`view_copy`, is the op without `_copy`,\nwhose result shares no elements with its argument. Ops that only "
            "say how gradients are recorded are replaced by what they hold.\n\n"
            "A file with other ops is refused, with all of them in one message. Each op has cases in\n"
            "`test/frontend/pt2/ops/`.\n\n"
            "| op | refused |\n|---|---|\n";
  for (const auto &[name, op] : AtenOps::all().table())
    stream << "| `" << name << "` | " << op.limits << " |\n";
  stream << "\nComplex numbers may be arguments of these:";
  bool isFirst = true;
  for (const auto &[name, op] : AtenOps::all().table()) {
    if (!op.importComplex)
      continue;
    stream << (isFirst ? " `" : ", `") << name << "`";
    isFirst = false;
  }
  stream << ".\n";
}
