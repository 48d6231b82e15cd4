//===- AtenOps.cpp - import aten ops as linalg ops -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/AtenOps.h"

#include "frontend/Frontend.h"

#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace attn::pt2;

/// Other names of ops in torch, each with the name in the table of ops.
static constexpr std::pair<StringLiteral, StringLiteral> kOtherNames[] = {
    {"absolute", "abs"},
    {"clip", "clamp"},
    {"concat", "cat"},
    {"concatenate", "cat"},
    {"divide", "div"},
    {"fix", "trunc"},
    {"ger", "outer"},
    {"greater", "gt"},
    {"greater_equal", "ge"},
    {"less", "lt"},
    {"less_equal", "le"},
    {"linalg_matmul", "matmul"},
    {"moveaxis", "movedim"},
    {"multiply", "mul"},
    {"negative", "neg"},
    {"not_equal", "ne"},
    {"positive", "alias"},
    {"row_stack", "vstack"},
    {"special_erf", "erf"},
    {"special_exp2", "exp2"},
    {"special_expit", "sigmoid"},
    {"special_expm1", "expm1"},
    {"special_log1p", "log1p"},
    {"special_logsumexp", "logsumexp"},
    {"subtract", "sub"},
    {"true_divide", "div"},
};

const AtenOps &AtenOps::all() {
  static const AtenOps ops = [] {
    AtenOps ops;
    addArithmetic(ops);
    addAssertions(ops);
    addAttention(ops);
    addConvolution(ops);
    addCreation(ops);
    addFunctions(ops);
    addGridSampler(ops);
    addGroups(ops);
    addIndexing(ops);
    addJoins(ops);
    addLinearAlgebra(ops);
    addNormalisation(ops);
    addOrder(ops);
    addPooling(ops);
    addRecurrent(ops);
    addReductions(ops);
    addSizes(ops);
    addViews(ops);
    addParts(ops);
    addComplex(ops); // last, because it adds complex forms to the ops above
    return ops;
  }();
  return ops;
}

bool attn::pt2::worksInPlace(StringRef target) {
  StringRef name = target.rsplit('.').first;
  if (name.ends_with("__"))
    return name.substr(name.rfind('.') + 1).starts_with("__i"); // __iand__
  // detach_ changes the graph of gradients, not the tensor.
  return name.ends_with("_") && !name.ends_with("detach_");
}

bool attn::pt2::copiesView(StringRef target) { return target.rsplit('.').first.ends_with("_copy"); }

const AtenOp *AtenOps::find(StringRef target) const {
  if (!target.consume_front("torch.ops.aten.") && !target.starts_with("_operator.") &&
      !target.starts_with("torch.sym_") && !target.starts_with("torch._sym_") &&
      !target.consume_front("torch.ops."))
    return nullptr;
  std::string name = target.str();
  if (worksInPlace(target)) {
    auto [op, overload] = target.rsplit('.');
    name = (op.consume_front("__i") ? "__" + op : op.drop_back()).str();
    name += ("." + overload).str();
  }
  for (auto [other, usual] : kOtherNames)
    if (StringRef(name).split('.').first == other)
      name.replace(0, other.size(), usual.str());
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
            "This page is for users who export models to `.pt2` files: it lists the ops that such a "
            "file may contain, by the names\nthat `torch.export` writes, and the uses of each op "
            "that attn refuses. `attn-import --ops` prints this page, and a test\ncompares its "
            "output with the page.\n\n"
            "An op that works in place, such as `add_` or `__iand__`, is imported as the op "
            "without the underscore or the `i`.\nIts result replaces the first argument. If this "
            "argument is a view, the tensor behind it and other views of that tensor\nchange too. An "
            "op that copies, such as `view_copy`, is imported as the op without `_copy`, but its "
            "result shares no\nelements with its argument. A block under `torch.no_grad()` or a "
            "disabled `torch.autocast()` is replaced by the ops\nin the block.\n\n"
            "attn refuses a file with other ops; one error message names all of them. Each op "
            "has test cases in\n`test/frontend/pt2/ops/`.\n\n"
            "| op | refused |\n|---|---|\n";
  for (const auto &[name, op] : AtenOps::all().table())
    stream << "| `" << name << "` | " << op.limits << " |\n";
  stream << "\nSome ops have other names:";
  bool isFirst = true;
  for (auto [other, usual] : kOtherNames) {
    stream << (isFirst ? " `" : ", `") << other << "` is `" << usual << "`";
    isFirst = false;
  }
  stream << ".\n\nThese ops may have complex arguments or results:";
  isFirst = true;
  for (const auto &[name, op] : AtenOps::all().table()) {
    if (!op.importComplex)
      continue;
    stream << (isFirst ? " `" : ", `") << name << "`";
    isFirst = false;
  }
  stream << ".\n";
}
