//===- Wrappers.cpp - inline graphs of torch.no_grad() and autocast ---------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The body of a torch.no_grad() block is a separate graph, which is an argument of a node:
//   add, mul = wrap_with_set_grad_enabled(False, graph(a, b) { sub = a - b; neg = -sub; return neg, a }, x, y)
//   exp = aten.exp(add)
// The nodes of the body replace that node. Values of the body get new names. An argument of the body is replaced by the
// value that the node passes, and a result of the node by the value that the body returns, so that views and in-place
// writes are visible on both sides:
//   no_grad.sub = x - y
//   no_grad.neg = -no_grad.sub
//   exp = aten.exp(no_grad.neg)                     # and x replaces mul
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/Wrappers.h"

#include "frontend/pt2/Call.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace attn::pt2;
using Kind = Argument::Kind;

static constexpr StringLiteral kSetGrad = "torch.ops.higher_order.wrap_with_set_grad_enabled";
static constexpr StringLiteral kAutocast = "torch.ops.higher_order.wrap_with_autocast";

namespace {
/// The names that values of one graph have in another graph.
struct Renaming {
  llvm::StringMap<std::string> tensors, floats;
  llvm::StringMap<SymInt> integers;

  void apply(std::string &name, const llvm::StringMap<std::string> &names) const {
    if (auto found = names.find(name); found != names.end())
      name = found->second;
  }
  void apply(SymInt &integer) const {
    if (auto found = integers.find(integer.name); found != integers.end())
      integer = found->second;
  }
  void apply(Argument &argument) const {
    for (std::string &name : argument.names)
      apply(name, tensors);
    for (SymInt &integer : argument.integers)
      apply(integer);
    if (argument.kind == Kind::Float)
      apply(argument.text, floats);
  }
};
} // namespace

static FailureOr<Renaming> inlineWrappersOf(Graph &graph, MLIRContext &context);

/// Whether autocast is on in the block of `node`. The arguments before the graph are the device, the element type,
/// `enabled` and `cache_enabled`; most files do not name them.
static bool hasAutocast(const Node &node) {
  for (const auto &[name, value] : node.inputs)
    if (value.kind == Kind::Bool && (name.empty() || name == "enabled"))
      return value.flag;
  return false;
}

/// The line of a block is the line of its first node, because torch.export stores none for the block itself.
static Location locationOfBlock(const Node &node, const Graph *body, MLIRContext &context) {
  if (body && node.stackTrace.empty())
    for (const Node &inner : body->nodes)
      if (!inner.stackTrace.empty())
        return locationOf(inner, &context);
  return locationOf(node, &context);
}

/// Appends the nodes of the graph in `node` to `nodes`, and the types of their results to `graph`. Adds the new names
/// of the results of `node` to `renamed`.
static LogicalResult inlineBody(const Node &node, Graph &graph, std::vector<Node> &nodes,
                                Renaming &renamed, MLIRContext &context) {
  Graph *body = nullptr;
  SmallVector<const Argument *> operands;
  for (const NamedArgument &input : node.inputs) {
    if (body)
      operands.push_back(&input.value);
    else if (input.value.graph)
      body = input.value.graph.get();
  }
  auto refuse = [&](const Twine &what) -> LogicalResult {
    return emitError(locationOfBlock(node, body, context))
           << "expected '" << node.target << "' with " << what.str();
  };
  if (!body || body->arguments.size() != operands.size())
    return refuse("a graph and its arguments");
  if (node.target == kAutocast && hasAutocast(node))
    return emitError(locationOfBlock(node, body, context))
           << "expected autocast to be off, got a block in which it is on; export the module "
              "without autocast, "
              "and compile with --compute=bf16 for products in bf16";
  FailureOr<Renaming> ofBody = inlineWrappersOf(*body, context);
  if (failed(ofBody))
    return failure();

  Renaming inside;
  for (auto [argument, operand] : llvm::zip_equal(body->arguments, operands)) {
    if (argument.kind == Kind::Tensor && operand->kind == Kind::Tensor)
      inside.tensors[argument.names.front()] = operand->names.front();
    else if (argument.kind == Kind::Int && operand->kind == Kind::Int)
      inside.integers[argument.integers.front().name] = operand->integers.front();
    else
      return refuse("arguments that are tensors and sizes");
  }
  auto nameOutside = [&](StringRef name) { return node.name + "." + name.str(); };
  for (Node &inner : body->nodes) {
    for (NamedArgument &input : inner.inputs)
      inside.apply(input.value);
    for (Argument &output : inner.outputs) {
      for (const std::string &name : output.names) {
        inside.tensors[name] = nameOutside(name);
        if (auto meta = body->tensors.find(name); meta != body->tensors.end())
          graph.tensors[nameOutside(name)] = meta->second;
      }
      for (const auto &[name, value] : output.integers) {
        inside.integers[name] = {nameOutside(name), {}};
        if (auto size = body->symInts.find(name); size != body->symInts.end())
          graph.symInts[nameOutside(name)] = size->second;
      }
      if (output.kind == Kind::Float)
        inside.floats[output.text] = nameOutside(output.text);
      inside.apply(output);
    }
    nodes.push_back(std::move(inner));
  }

  SmallVector<StringRef> tensors, integers;
  for (const Argument &output : node.outputs) {
    llvm::append_range(tensors, output.names);
    for (const SymInt &integer : output.integers)
      integers.push_back(integer.name);
  }
  size_t numTensors = 0, numIntegers = 0;
  for (Argument &result : body->results) {
    ofBody->apply(result);
    inside.apply(result);
    for (const std::string &name : result.names)
      if (numTensors++ < tensors.size())
        renamed.tensors[tensors[numTensors - 1]] = name;
    for (const SymInt &integer : result.integers)
      if (numIntegers++ < integers.size())
        renamed.integers[integers[numIntegers - 1]] = integer;
  }
  if (numTensors != tensors.size() || numIntegers != integers.size())
    return refuse("as many results as its graph");
  return success();
}

/// Inlines all wrappers in `graph`. Returns the new names of the results of the removed nodes.
static FailureOr<Renaming> inlineWrappersOf(Graph &graph, MLIRContext &context) {
  Renaming renamed;
  std::vector<Node> nodes;
  for (Node &node : graph.nodes) {
    for (NamedArgument &input : node.inputs)
      renamed.apply(input.value);
    if (node.target != kSetGrad && node.target != kAutocast)
      nodes.push_back(std::move(node));
    else if (failed(inlineBody(node, graph, nodes, renamed, context)))
      return failure();
  }
  graph.nodes = std::move(nodes);
  return renamed;
}

LogicalResult attn::pt2::inlineWrappers(Program &program, MLIRContext &context) {
  FailureOr<Renaming> renamed = inlineWrappersOf(program, context);
  if (failed(renamed))
    return failure();
  for (OutputSpec &output : program.outputs)
    renamed->apply(output.value);
  return success();
}
