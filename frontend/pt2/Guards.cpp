//===- Guards.cpp - which sizes a call may have ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Guards are the conditions on sizes under which torch traced the graph. Equalities are used first. They express a
// symbol by other symbols, or as a number:
//   (4*L['context'].size()[0]) == (4*L['x'].size()[0])      context.0 and x.0 become one symbol
// Attention ops require further equalities, for which torch writes no guard, for example that there are as many keys as
// values. A guard that then follows from the ranges of the symbols is dropped:
//   (L['x'].size()[1] % (4*L['x'].size()[1])) != 0          if x.1 lies in [2, 4096]
// A guard that bounds one symbol becomes part of its range. Any other guard becomes a condition of the call:
//   x.1 != 64
//
//===----------------------------------------------------------------------===//

#include "frontend/pt2/Guards.h"
#include "frontend/checks/SizeFacts.h"
#include "frontend/pt2/Tree.h"

#include "dialect/Formula.h"
#include "support/Json.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace attn;
using namespace attn::pt2;
namespace json = llvm::json;

template <typename... Args> static Error invalid(const char *format, Args &&...args) {
  return createStringError(formatv(format, std::forward<Args>(args)...));
}

//===----------------------------------------------------------------------===//
// Names of inputs
//===----------------------------------------------------------------------===//

/// The names of the inputs in guards, such as "L['x'][0]".
static std::vector<std::string> pathsOf(const Program &program, ArrayRef<Input> inputs) {
  // The leaves of the tree are the inputs of the user in order, whether they are tensors or not.
  std::vector<bool> isTensor;
  for (const InputSpec &spec : program.inputs)
    if (spec.kind == "user_input" || spec.kind == "constant_input")
      isTensor.push_back(spec.isTensor());
  std::vector<TreePath> leaves = leavesOf(program.inputTree);
  std::vector<std::string> paths;
  for (size_t i = 0; i < leaves.size() && i < isTensor.size(); ++i) {
    if (!isTensor[i])
      continue;
    // The first key of a leaf says whether the argument is positional ("0"). Guards use the name of a positional
    // argument in place of its number, which is the second key.
    std::string path = "L";
    for (const auto &[depth, key] : enumerate(drop_begin(leaves[i]))) {
      int64_t position;
      bool isNamed = depth == 0 && key.isNumber && !StringRef(key.text).getAsInteger(10, position) &&
                     leaves[i].front().text == "0" && position < int64_t(program.inputNames.size());
      path += key.isNumber && !isNamed ? "[" + key.text + "]"
                                       : "['" + (isNamed ? program.inputNames[position] : key.text) + "']";
    }
    paths.push_back(path);
  }
  if (paths.size() == inputs.size() && leaves.size() == isTensor.size())
    return paths;
  paths.clear();
  for (const Input &input : inputs)
    paths.push_back("L['" + input.name + "']");
  return paths;
}

/// The names of dictionaries of keyword arguments in guards: each "kw" in "L['kw']['x']" that is not the name of an
/// input.
static std::set<std::string> doublyStarredNames(const Program &program) {
  std::set<std::string> names;
  for (StringRef text : program.guards)
    while (!text.empty()) {
      StringRef name = text.split("L['").second.split("']").first;
      text = text.split("L['").second;
      if (!name.empty() && !is_contained(program.inputNames, name))
        names.insert(name.str());
    }
  return names;
}

/// The other name of an input that is an element of *x: guards write "L['x'][0]" for the input "L['x_0']". Empty for
/// any other input.
static std::string starredPath(const std::string &of) {
  StringRef path = of;
  if (!path.consume_front("L['") || !path.consume_back("']"))
    return "";
  auto [name, number] = path.rsplit('_');
  if (number.empty() || !all_of(number, isDigit))
    return "";
  return formatv("L['{0}'][{1}]", name, number);
}

//===----------------------------------------------------------------------===//
// Conclusions
//===----------------------------------------------------------------------===//

namespace {
class Rules {
public:
  Rules(const Program &program, ArrayRef<Input> inputs) : program(program), inputs(inputs) {}

  Expected<SizeRules> run() {
    if (Error error = readGuards())
      return error;
    collectNeeds(program);
    if (Error error = unify())
      return error;
    if (Error error = nameDimensions())
      return error;
    for (const Guard &guard : guards)
      if (Error error = conclude(guard))
        return error;
    for (auto [i, dimension] : enumerate(result.dimensions))
      if (Error error = setRange(dimension, ofDimension[i]))
        return error;
    return std::move(result);
  }

private:
  using Op = Formula::Op;

  struct Guard {
    Formula formula;
    std::string text;
  };

  void addSymbol(const std::string &symbol);
  Error readGuards();
  void addGuard(const Formula &formula, const std::string &text);
  void collectNeeds(const Graph &graph);
  Error unify();
  Error nameDimensions();
  Error conclude(const Guard &guard);
  Error setRange(Dimension &dimension, const Size &original);

  /// The size that has this name in guards, expressed in symbols of the file; null if there is none.
  const Size *sizeOf(StringRef name) const {
    auto found = sizes.find(name.str());
    return found == sizes.end() ? nullptr : &found->second;
  }
  std::optional<Size> sizeOf(const Formula &formula) const;
  std::optional<bool> isTrue(const Formula &formula, SizeFacts::RangeOfSymbol ofSymbol) const;
  void collectDivisors(const Formula &formula, std::set<std::string> &symbols) const;

  const Program &program;
  ArrayRef<Input> inputs;
  SizeRules result;
  std::vector<Guard> guards;
  /// Sizes that ops require to be equal, although no guard says so.
  std::vector<std::pair<Size, Size>> needs;
  /// The size for which each name in guards stands.
  std::map<std::string, Size> sizes;
  /// The dimension of each of these names: input and axis.
  std::map<std::string, std::pair<size_t, size_t>> places;
  /// The symbols of the file.
  SizeFacts facts;
  /// The size of each of `result.dimensions`, expressed in symbols of the file.
  std::vector<Size> ofDimension;
};
} // namespace

static bool hasNames(const Formula &formula, const std::map<std::string, Size> &sizes) {
  return formula.op == Formula::Op::Name
             ? sizes.count(formula.name)
             : all_of(formula.operands,
                      [&](const Formula &operand) { return hasNames(operand, sizes); });
}

/// Adds a guard, or each operand of an "and" as a guard of its own.
void Rules::addGuard(const Formula &formula, const std::string &text) {
  if (formula.op != Op::And) {
    guards.push_back({formula, text});
    return;
  }
  for (const Formula &operand : formula.operands)
    addGuard(operand, text);
}

/// Adds a symbol with the range that the file gives. torch gives each dynamic size a minimum of 2 for tracing. This
/// minimum is ignored unless a guard states it, because the graph is valid for smaller sizes too.
void Rules::addSymbol(const std::string &symbol) {
  auto found = program.ranges.find(symbol);
  SymbolRange range = found == program.ranges.end() ? SymbolRange() : found->second;
  int64_t least = range.min.value_or(0);
  facts.addSymbol(symbol, {least <= 2 ? 0 : least, std::min(range.max.value_or(kMaxDim), kMaxDim)});
}

Error Rules::readGuards() {
  std::vector<std::string> paths = pathsOf(program, inputs);
  auto addNames = [&](function_ref<std::string(const std::string &)> rename) {
    for (auto [i, input] : enumerate(inputs))
      for (auto [axis, size] : enumerate(input.sizes)) {
        std::string name = formatv("{0}.size()[{1}]", rename(paths[i]), axis);
        sizes.try_emplace(name, size);
        places.try_emplace(name, i, axis);
        for (const std::string &symbol : size.symbols())
          addSymbol(symbol);
      }
  };
  addNames([](const std::string &path) { return path; });
  addNames(starredPath);
  for (const auto &[symbol, range] : program.ranges)
    addSymbol(symbol);
  for (const std::string &name : doublyStarredNames(program))
    addNames([&](const std::string &path) { return "L['" + name + "']" + path.substr(1); });
  for (const std::string &text : program.guards) {
    std::optional<Formula> formula = Formula::parse(text);
    if (!formula || !formula->isCondition() || !hasNames(*formula, sizes))
      return invalid("expected conditions on the sizes of inputs, got '{0}': export again with "
                     "fewer dynamic sizes",
                     text);
    addGuard(*formula, text);
  }
  return Error::success();
}

std::optional<Size> Rules::sizeOf(const Formula &formula) const {
  if (formula.op == Op::Number)
    return Size(formula.number);
  if (formula.op == Op::Name)
    return facts.reduced(*sizeOf(formula.name));
  std::optional<Size> a = sizeOf(formula.operands[0]), b = sizeOf(formula.operands[1]);
  if (!a || !b)
    return std::nullopt;
  switch (formula.op) {
  case Op::Add:
    return add(*a, *b);
  case Op::Subtract:
    return subtract(*a, *b);
  case Op::Multiply:
    return multiply(*a, *b);
  case Op::Divide:
    return divideDown(*a, *b);
  case Op::Modulo:
    return remainder(*a, *b);
  case Op::Max:
    return maximum(*a, *b);
  case Op::Min:
    return minimum(*a, *b);
  default:
    return std::nullopt;
  }
}

/// Returns true if `formula` holds for all sizes in the ranges, false if it holds for no sizes, and std::nullopt if
/// neither can be proved.
std::optional<bool> Rules::isTrue(const Formula &formula, SizeFacts::RangeOfSymbol ofSymbol) const {
  if (formula.op >= Op::Not) {
    std::optional<bool> a = isTrue(formula.operands[0], ofSymbol);
    if (formula.op == Op::Not)
      return a ? std::optional(!*a) : std::nullopt;
    std::optional<bool> b = isTrue(formula.operands[1], ofSymbol);
    bool decides = formula.op == Op::Or;
    if (a == decides || b == decides)
      return decides;
    return a && b ? std::optional(!decides) : std::nullopt;
  }
  std::optional<Size> a = sizeOf(formula.operands[0]), b = sizeOf(formula.operands[1]);
  if (a && formula.op == Op::Less)
    a = add(*a, Size(1));
  if (!a || !b)
    return std::nullopt;
  return formula.op == Op::Equal ? SizeFacts::areEqual(*a, *b, ofSymbol)
                                 : SizeFacts::isAtMost(*a, *b, ofSymbol);
}

/// Collects the sizes that attentions require to be equal: the lengths of key and value, the widths of query and key,
/// and the batch sizes of query, key and value, except those that are broadcast.
void Rules::collectNeeds(const Graph &graph) {
  for (const Node &node : graph.nodes) {
    std::map<StringRef, const Sizes *> sizesOf;
    for (const NamedArgument &input : node.inputs) {
      if (input.value.graph)
        collectNeeds(*input.value.graph);
      if (input.value.kind != Argument::Kind::Tensor)
        continue;
      auto meta = graph.tensors.find(input.value.names.front());
      if (meta != graph.tensors.end())
        sizesOf[input.name] = &meta->second.sizes;
    }
    const Sizes *query = sizesOf["query"], *key = sizesOf["key"], *value = sizesOf["value"];
    if (!StringRef(node.target).contains("scaled_dot_product") || !query || !key || !value ||
        query->size() < 3 || key->size() != query->size() || value->size() != query->size())
      continue;
    needs.emplace_back(key->end()[-2], value->end()[-2]);
    needs.emplace_back(query->back(), key->back());
    for (auto [ofQuery, ofKey, ofValue] :
         zip(ArrayRef<Size>(*query).drop_back(2), *key, *value))
      for (const Size &size : {ofKey, ofValue})
        if (!size.isOne() && !ofQuery.isOne())
          needs.emplace_back(ofQuery, size);
  }
}

Error Rules::unify() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Guard &guard : guards) {
      if (guard.formula.op != Op::Equal)
        continue;
      std::optional<Size> a = sizeOf(guard.formula.operands[0]),
                          b = sizeOf(guard.formula.operands[1]);
      changed |= a && b && facts.equate(*a, *b);
    }
    for (const auto &[first, second] : needs) {
      std::optional<Size> a = facts.reduced(first), b = facts.reduced(second);
      changed |= a && b && facts.equate(*a, *b);
    }
  }
  return Error::success();
}

Error Rules::nameDimensions() {
  std::map<std::string, Size> named;
  std::map<std::string, unsigned> dimensionOf;
  std::vector<std::pair<unsigned, Size>> others;
  for (const Input &input : inputs) {
    auto &axes = result.axes.emplace_back();
    for (auto [axis, original] : enumerate(input.sizes)) {
      std::optional<Size> size = facts.reduced(original);
      if (!size)
        return invalid("expected sizes that fit into 64 bits, got {0} of '{1}'", original.str(),
                       input.name);
      axes.push_back(std::nullopt);
      if (size->constant())
        continue;
      unsigned next = result.dimensions.size();
      std::optional<StringRef> symbol = size->symbol();
      auto [known, isNew] = symbol ? dimensionOf.try_emplace(symbol->str(), next)
                                   : std::pair(dimensionOf.end(), true);
      axes.back() = isNew ? next : known->second;
      if (!isNew)
        continue;
      std::string name = formatv("{0}.{1}", input.name, axis);
      result.dimensions.push_back({name, Size::symbol(name), 0, 0});
      ofDimension.push_back(original);
      if (symbol)
        named[symbol->str()] = Size::symbol(name);
      else
        others.push_back({next, *size});
    }
  }
  auto inDimensions = [&](const Size &size) {
    return size.substitute([&](StringRef symbol) -> std::optional<Size> {
      auto found = named.find(symbol.str());
      return found == named.end() ? std::nullopt : std::optional(found->second);
    });
  };
  // If no input has size s, compute s from an input of a size such as 2*s + 1.
  for (auto &[index, size] : others) {
    const std::string &name = result.dimensions[index].name;
    if (size.terms().size() > 2 || inDimensions(size))
      continue;
    const auto &[factors, number] = *size.terms().rbegin();
    Size constant = *subtract(size, Size::product(factors, number));
    std::optional<Size> whole = subtract(Size::symbol(name), constant);
    if (factors.size() != 1 || factors.front().operands || number < 1 || !constant.constant() ||
        !whole)
      continue;
    named[factors.front().text] = *divideDown(*whole, Size(number));
  }
  for (auto &[index, size] : others) {
    Dimension &dimension = result.dimensions[index];
    std::optional<Size> known = inDimensions(size);
    if (!known)
      return invalid("expected each size of '{0}' to be a number or a symbol, or to follow from "
                     "other inputs, got {1}",
                     StringRef(dimension.name).rsplit('.').first, size.str());
    dimension.size = *known;
    result.conditions.push_back(dimension.name + " == " + known->str());
  }
  for (const auto &[symbol, size] : named)
    result.symbols[symbol] = size;
  for (const auto &[symbol, size] : facts.replacements())
    if (std::optional<Size> known = inDimensions(size))
      result.symbols[symbol] = *known;
  return Error::success();
}

/// Collects the symbols that are factors of a divisor: if such a symbol is 0, the divisor is 0.
void Rules::collectDivisors(const Formula &formula, std::set<std::string> &symbols) const {
  for (const Formula &operand : formula.operands)
    collectDivisors(operand, symbols);
  std::optional<Size> divisor;
  if (formula.op == Op::Divide || formula.op == Op::Modulo)
    divisor = sizeOf(formula.operands[1]);
  if (divisor && divisor->terms().size() == 1)
    for (const Size::Factor &factor : divisor->terms().begin()->first)
      if (!factor.operands)
        symbols.insert(factor.text);
}

/// Drops a guard that the ranges imply, or makes it a range or a condition.
Error Rules::conclude(const Guard &guard) {
  // torch divides sizes to check whether a view is possible, and assumes that the divisors are not 0.
  std::set<std::string> divisors;
  collectDivisors(guard.formula, divisors);
  std::optional<bool> known = isTrue(guard.formula, [&](StringRef symbol) {
    SizeRange range = facts.rangeOf(symbol);
    return SizeRange{std::max<int64_t>(range.min, divisors.count(symbol.str())), range.max};
  });
  auto refuse = [&] {
    return invalid("expected a graph that is valid for some sizes, got the condition '{0}', "
                   "which is never true: export again with wider ranges of sizes",
                   guard.text);
  };
  if (known)
    return *known ? Error::success() : refuse();
  // A comparison that bounds one symbol becomes a range.
  bool isNot = guard.formula.op == Op::Not;
  const Formula &comparison = isNot ? guard.formula.operands.front() : guard.formula;
  if (comparison.op == Op::Less || comparison.op == Op::AtMost) {
    std::optional<Size> a = sizeOf(comparison.operands[isNot]),
                        b = sizeOf(comparison.operands[!isNot]);
    if (a && (comparison.op == Op::Less) != isNot)
      a = add(*a, Size(1));
    SizeFacts::Outcome outcome = a && b ? facts.requireAtMost(*a, *b) : SizeFacts::Outcome::Open;
    if (outcome != SizeFacts::Outcome::Open)
      return outcome == SizeFacts::Outcome::Holds ? Error::success() : refuse();
  }
  std::string condition = guard.formula.str([&](StringRef name) {
    auto [input, axis] = places.at(name.str());
    std::optional<unsigned> dimension = result.axes[input][axis];
    return dimension ? result.dimensions[*dimension].name
                     : facts.reduced(inputs[input].sizes[axis])->str();
  });
  if (!is_contained(result.conditions, condition))
    result.conditions.push_back(condition);
  return Error::success();
}

/// Sets the range of a dimension, whose size in the file is `original`.
Error Rules::setRange(Dimension &dimension, const Size &original) {
  // If several symbols are equal, the remaining one has the intersection of their ranges.
  std::optional<Size> size = facts.reduced(original);
  SizeRange range = size->symbol() ? facts.rangeOf(*size->symbol()) : facts.rangeOf(original);
  // A guard may have bounded a symbol of which this one is a multiple.
  SizeRange ofSize = size->symbol() ? range : facts.rangeOf(*size);
  range = {std::max(range.min, ofSize.min), std::min(range.max, ofSize.max)};
  dimension.min = std::max<int64_t>(range.min, 0);
  dimension.max = std::min(range.max, kMaxDim);
  if (dimension.min > dimension.max)
    return invalid("expected a range of '{0}' that contains a size, got {1} to {2}", dimension.name,
                   range.min, range.max);
  return Error::success();
}

Expected<SizeRules> attn::pt2::ruleSizes(const Program &program, ArrayRef<Input> inputs) {
  return Rules(program, inputs).run();
}
