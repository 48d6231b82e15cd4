//===- ElementAssertions.cpp - assertions on elements ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Python's `assert lengths.max().item() <= 13` is in the graph as
//   max = aten.max(lengths)
//   item = aten.item(max)                     # a number that depends on elements
//   le = operator.le(item, 13)
//   aten._assert_scalar(le, "...")
// Kernels cannot stop in the middle of a call, so they cannot check the assertion. The last three nodes are removed,
// with a remark. An `item` that another node reads stays, and the import fails. Assertions on sizes are not affected:
// torch writes them as guards, which the runtime checks.
// Test: test/frontend/pt2/assertions.test
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/ElementAssertions.h"

#include "dialect/Finding.h"
#include "frontend/pt2/Call.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace attn::pt2;
using Kind = Argument::Kind;

/// Calls `function` with the name of each number and condition in `argument` that a node computes. Skips tensors.
static void forEachNumber(const Argument &argument, llvm::function_ref<void(StringRef)> function) {
  for (const SymInt &integer : argument.integers)
    if (!integer.name.empty())
      function(integer.name);
  if ((argument.kind == Kind::Float || argument.kind == Kind::SymBool) && !argument.text.empty())
    function(argument.text);
}

static bool reads(const Node &node, const llvm::StringSet<> &numbers) {
  bool found = false;
  for (const NamedArgument &input : node.inputs)
    forEachNumber(input.value, [&](StringRef name) { found |= numbers.contains(name); });
  return found;
}

/// The names of the numbers that depend on elements, directly or through other numbers.
static llvm::StringSet<> numbersFromElements(const Program &program) {
  llvm::StringSet<> numbers;
  for (const Node &node : program.nodes) {
    StringRef op = node.target;
    bool isItem =
        op == "torch.ops.aten.item.default" || op == "torch.ops.aten._local_scalar_dense.default";
    bool isArithmetic = op.starts_with("_operator.") || op.starts_with("torch.sym_") ||
                        op.starts_with("torch._sym_");
    if (isItem || (isArithmetic && reads(node, numbers)))
      for (const Argument &output : node.outputs)
        forEachNumber(output, [&](StringRef name) { numbers.insert(name); });
  }
  return numbers;
}

void attn::pt2::dropElementAssertions(Program &program, MLIRContext &context) {
  llvm::StringSet<> fromElements = numbersFromElements(program);
  auto isAssertion = [&](const Node &node) {
    StringRef op = node.target;
    return op.starts_with("torch.ops.aten._assert_async.") ||
           ((op.starts_with("torch.ops.aten._assert_scalar.") ||
             op.starts_with("torch.ops.aten.sym_constrain_range")) &&
            reads(node, fromElements));
  };
  auto isUnread = [&](const Node &node, const llvm::StringSet<> &read) {
    bool computesNumbers = false, isRead = false;
    for (const Argument &output : node.outputs)
      forEachNumber(output, [&](StringRef name) {
        computesNumbers |= fromElements.contains(name);
        isRead |= read.contains(name);
      });
    return computesNumbers && !isRead;
  };

  // Visit the nodes from the last to the first: all nodes that read a number come after the node that computes it.
  llvm::StringSet<> read;
  auto noteReads = [&](const Argument &argument) {
    forEachNumber(argument, [&](StringRef name) { read.insert(name); });
  };
  for (const OutputSpec &output : program.outputs)
    noteReads(output.value);
  std::vector<Node> kept;
  llvm::SetVector<Location> dropped;
  for (Node &node : llvm::reverse(program.nodes)) {
    if (isAssertion(node)) {
      // torch writes further assertions that follow from the user's assertion, at the same line: one remark suffices.
      dropped.insert(locationOf(node, &context));
      continue;
    }
    if (isUnread(node, read)) {
      for (const Argument &output : node.outputs)
        for (const SymInt &integer : output.integers)
          program.symInts.erase(integer.name);
      continue;
    }
    for (const NamedArgument &input : node.inputs)
      noteReads(input.value);
    kept.push_back(std::move(node));
  }
  for (Location line : llvm::reverse(dropped.getArrayRef()))
    emitFinding(line, Finding::Unchecked)
        << "an assertion on elements, which a call does not check";
  std::reverse(kept.begin(), kept.end());
  program.nodes = std::move(kept);
}
