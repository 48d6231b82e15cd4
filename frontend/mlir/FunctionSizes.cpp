//===- FunctionSizes.cpp - numbers and sizes in an MLIR file ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Test: test/frontend/mlir/sizes.mlir
//
//===----------------------------------------------------------------------===//

#include "frontend/mlir/FunctionSizes.h"

#include "dialect/Attn.h"
#include "dialect/Formula.h"
#include "dialect/Symbols.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

/// The first characters of symbols that stand for unknown sizes, and for dimensions whose names formulas cannot have. No
/// name in a formula begins with one of them.
static constexpr char kUnknown = '?', kQuoted = '#';

/// Whether formulas can have `name` as the name of a size.
static bool isPlainName(StringRef name) {
  std::optional<Formula> formula = Formula::parse(name);
  return formula && formula->op == Formula::Op::Name && formula->name == name;
}

std::string FunctionSizes::keyOf(StringRef name) const {
  return isPlainName(name) ? name.str() : kQuoted + name.str();
}

/// The symbols of `function`: its dimensions of arguments, the sizes that are computed from them, and its conditions.
static SmallVector<SymbolAttr> symbolsOf(func::FuncOp function) {
  auto list = function->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr);
  return list ? llvm::to_vector(list.getAsRange<SymbolAttr>()) : SmallVector<SymbolAttr>();
}

static void setSymbols(func::FuncOp function, ArrayRef<SymbolAttr> symbols) {
  SmallVector<Attribute> list(symbols.begin(), symbols.end());
  function->setAttr(AttnDialect::kSymbolsAttr, ArrayAttr::get(function.getContext(), list));
}

FunctionSizes::FunctionSizes(func::FuncOp function) : function(function) {
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto dims =
        function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), AttnDialect::kDimsAttr);
    if (!type || !dims)
      continue;
    std::vector<std::string> symbols;
    Type element = type.getElementType();
    int64_t bytes = element.isIntOrFloat() ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8) : 1;
    for (auto [dim, name] : llvm::enumerate(dims.getAsValueRange<StringAttr>())) {
      if (name.empty()) {
        if (llvm::MulOverflow(bytes, std::max<int64_t>(type.getDimSize(dim), 1), bytes))
          bytes = std::numeric_limits<int64_t>::max();
        continue;
      }
      symbols.push_back(keyOf(name));
      names.try_emplace(symbols.back(), name);
    }
    arguments.push_back({symbols, std::numeric_limits<int64_t>::max() / bytes});
  }
  for (SymbolAttr symbol : symbolsOf(function))
    if (std::string name = keyOf(symbol.getName()); names.count(name))
      facts.addSymbol(name, {symbol.getMin(), symbol.getMax()});
}

bool FunctionSizes::isKnown(const Size &size) {
  return llvm::none_of(size.symbols(),
                       [](const std::string &symbol) { return symbol.front() == kUnknown; });
}

std::string FunctionSizes::str(const Size &size) const {
  if (!isKnown(size))
    return "an unknown size";
  auto name = names.find(size.str());
  return name == names.end() ? size.str() : name->second;
}

Size FunctionSizes::reduced(const Size &size) const {
  std::optional<Size> result = facts.reduced(size);
  result = result ? facts.expanded(*result) : std::nullopt;
  return result ? facts.decided(*result) : size;
}

Size FunctionSizes::unknown(Value value, int64_t dim) {
  auto [it, isNew] = unknowns.try_emplace({value, dim});
  if (isNew)
    it->second = Size::symbol(kUnknown + std::to_string(unknowns.size()));
  return it->second;
}

std::optional<Size> FunctionSizes::unstatedSizeOf(Value tensor, int64_t dim) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  if (argument && argument.getOwner() == &function.front())
    if (StringAttr symbol = symbolOfArgument(function, argument.getArgNumber(), dim))
      return Size::symbol(keyOf(symbol));
  // A branch may only broadcast dimensions that have one size anyway.
  if (auto branch = tensor.getDefiningOp<scf::IfOp>()) {
    unsigned result = cast<OpResult>(tensor).getResultNumber();
    Size a = reduced(namedSizeOf(branch.thenYield().getOperand(result), dim)),
         b = reduced(namedSizeOf(branch.elseYield().getOperand(result), dim));
    if (a == b)
      return a;
  }
  return unknown(tensor, dim);
}

Size FunctionSizes::namedSizeOf(Value tensor, int64_t dim) {
  std::optional<Size> size = sizeOf(tensor, dim);
  return size ? *size : unknown(tensor, dim);
}

Size FunctionSizes::namedNumberOf(OpFoldResult integer) {
  if (auto attribute = dyn_cast<Attribute>(integer)) {
    std::optional<int64_t> number = cast<IntegerAttr>(attribute).getValue().trySExtValue();
    return number ? Size(*number) : Size::symbol(std::string(1, kUnknown));
  }
  auto value = cast<Value>(integer);
  if (auto found = known.find(value); found != known.end())
    return found->second;
  std::optional<Size> number = compute(value);
  return known[value] = number ? *number : unknown(value, -1);
}

std::optional<Size> FunctionSizes::numberOf(OpFoldResult integer) {
  Size number = reduced(namedNumberOf(integer));
  return isKnown(number) ? std::optional(number) : std::nullopt;
}

/// The size that `expr` computes from `operands`.
static std::optional<Size> evaluate(AffineExpr expr, ArrayRef<Size> dims, ArrayRef<Size> symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return Size(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<Size> a = evaluate(binary.getLHS(), dims, symbols),
                      b = evaluate(binary.getRHS(), dims, symbols);
  if (!a || !b)
    return std::nullopt;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return add(*a, *b);
  case AffineExprKind::Mul:
    return multiply(*a, *b);
  case AffineExprKind::FloorDiv:
    return b->constant() ? divideDown(*a, *b) : std::nullopt;
  case AffineExprKind::CeilDiv:
    return b->constant() ? divideUp(*a, *b) : std::nullopt;
  case AffineExprKind::Mod:
    return b->constant() ? remainder(*a, *b) : std::nullopt;
  default:
    return std::nullopt;
  }
}

/// Whether every partial result of `size` lies within 63 bits in each call. The runtime checks that the sizes of each
/// argument do not overflow when they are multiplied.
bool FunctionSizes::holdsWithoutOverflow(const Size &size) const {
  SizeRange range = facts.rangeOf(size);
  if (range.min != SizeRange::kLeast && range.max != SizeRange::kMost)
    return true;
  __int128 sum = 0;
  for (const auto &[factors, coefficient] : size.terms()) {
    SizeRange term = facts.rangeOf(Size::product(factors, 1));
    __int128 most = term.min >= 0 && term.max != SizeRange::kMost ? term.max : -1;
    for (const auto &[symbols, count] : arguments) {
      std::vector<std::string> left = symbols;
      bool isPart = llvm::all_of(factors, [&](const Size::Factor &factor) {
        auto found = llvm::find(left, factor.text);
        if (factor.operands || found == left.end())
          return false;
        left.erase(found);
        return true;
      });
      if (isPart && (most < 0 || count < most))
        most = count;
    }
    if (most < 0)
      return false;
    sum += most * (coefficient < 0 ? -__int128(coefficient) : __int128(coefficient));
    if (sum > std::numeric_limits<int64_t>::max())
      return false;
  }
  return true;
}

/// `number`, the result of `op`, after noting what keeps it within the type of the result; none if nothing does.
std::optional<Size> FunctionSizes::fitted(Operation *op, std::optional<Size> number) {
  if (!number || !isKnown(*number))
    return std::nullopt;
  Type type = op->getResult(0).getType();
  int64_t width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  Size simple = reduced(*number);
  int64_t most = width == 64 ? std::numeric_limits<int64_t>::max() : (int64_t(1) << (width - 1)) - 1;
  SizeRange range = facts.rangeOf(simple);
  if (width == 64 ? holdsWithoutOverflow(simple) : range.min >= -most && range.max <= most)
    return number;
  std::optional<Size> above = subtract(Size(most), simple), below = add(simple, Size(most));
  if (!above || !below)
    return std::nullopt;
  needed.push_back({op, *above});
  if (range.min < -most)
    needed.push_back({op, *below});
  return number;
}

std::optional<Size> FunctionSizes::compute(Value value) {
  APInt number;
  Type type = value.getType();
  if (matchPattern(value, m_ConstantInt(&number))) {
    if (type.isInteger(1))
      return Size(number.isZero() ? 0 : 1);
    return number.getSignificantBits() <= 64 ? std::optional(Size(number.getSExtValue()))
                                             : std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  using Result = std::optional<Size>;
  auto operand = [&](unsigned i) -> Result {
    Size known = namedNumberOf(op->getOperand(i));
    return isKnown(known) ? Result(known) : std::nullopt;
  };
  auto select = [&](arith::SelectOp op) -> Result {
    std::optional<bool> truth = truthOf(op.getCondition());
    Result a = operand(1), b = operand(2);
    return truth ? (*truth ? a : b) : a == b ? a : std::nullopt;
  };
  if (type.isInteger(1)) {
    if (auto chosen = dyn_cast<arith::SelectOp>(op))
      return select(chosen);
    std::optional<bool> truth = decide(op);
    return truth ? Result(Size(*truth)) : std::nullopt;
  }
  if (!type.isIndex() && !type.isInteger(64) && !type.isInteger(32))
    return std::nullopt;
  auto isNonNegative = [&](const Result &size) {
    return size && facts.isAtMost(Size(0), reduced(*size)) == true;
  };
  auto binary = [&](Result (*function)(const Size &, const Size &)) {
    Result a = operand(0), b = operand(1);
    return fitted(op, a && b ? function(*a, *b) : std::nullopt);
  };
  // A quotient that is known needs a divisor of at least 1. Inside a region, the op may only run if there is one.
  auto divide = [&](Result (*compute)(const Size &, const Size &), bool isUnsigned) -> Result {
    Result a = operand(0), b = operand(1);
    if (!a || !isNonNegative(b) || (isUnsigned && !isNonNegative(a)))
      return std::nullopt;
    if (facts.isAtMost(Size(1), reduced(*b)) != true) {
      std::optional<Size> less = subtract(*b, Size(1));
      if (!less || op->getParentOp() != function.getOperation())
        return std::nullopt;
      needed.push_back({op, *less});
    }
    return fitted(op, compute(*a, *b));
  };
  auto isBoolean = [&] { return op->getOperand(0).getType().isInteger(1); };
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](tensor::DimOp dim) -> Result {
        std::optional<int64_t> axis = dim.getConstantIndex();
        auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
        return axis && type && *axis >= 0 && *axis < type.getRank()
                   ? sizeOf(dim.getSource(), *axis)
                   : std::nullopt;
      })
      .Case([&](arith::AddIOp) { return binary(add); })
      .Case([&](arith::SubIOp) { return binary(subtract); })
      .Case([&](arith::MulIOp) { return binary(multiply); })
      .Case([&](arith::MaxSIOp) { return binary(maximum); })
      .Case([&](arith::MinSIOp) { return binary(minimum); })
      .Case([&](arith::FloorDivSIOp) { return divide(divideDown, false); })
      .Case([&](arith::CeilDivSIOp) { return divide(divideUp, false); })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](Operation *) { return divide(divideDown, true); })
      .Case([&](arith::CeilDivUIOp) { return divide(divideUp, true); })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](Operation *) { return divide(remainder, true); })
      .Case<arith::MaxUIOp, arith::MinUIOp>([&](Operation *op) -> Result {
        if (!isNonNegative(operand(0)) || !isNonNegative(operand(1)))
          return std::nullopt;
        return binary(isa<arith::MaxUIOp>(op) ? maximum : minimum);
      })
      .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>([&](Operation *op) -> Result {
        // The boolean true is -1 for these ops.
        return isBoolean() ? std::nullopt : fitted(op, operand(0));
      })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>([&](Operation *op) -> Result {
        return isBoolean() || isNonNegative(operand(0)) ? fitted(op, operand(0)) : std::nullopt;
      })
      .Case([&](arith::SelectOp op) { return select(op); })
      .Case([&](affine::AffineApplyOp apply) -> Result {
        AffineMap map = apply.getAffineMap();
        SmallVector<Size> operands;
        for (unsigned i = 0; i < apply->getNumOperands(); ++i) {
          Result known = operand(i);
          if (!known)
            return std::nullopt;
          operands.push_back(*known);
        }
        ArrayRef<Size> all(operands);
        return fitted(op, evaluate(map.getResult(0), all.take_front(map.getNumDims()),
                                   all.drop_front(map.getNumDims())));
      })
      .Default(Result());
}

/// Whether a comparison of sizes or the conjunction of two conditions is true or false in every call.
std::optional<bool> FunctionSizes::decide(Operation *op) {
  if (auto both = dyn_cast<arith::AndIOp>(op)) {
    std::optional<bool> a = truthOf(both.getLhs()), b = truthOf(both.getRhs());
    return a == false || b == false ? std::optional(false) : a ? b : std::nullopt;
  }
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare)
    return std::nullopt;
  Size a = reduced(namedNumberOf(compare.getLhs())), b = reduced(namedNumberOf(compare.getRhs()));
  bool isBoolean = compare.getLhs().getType().isInteger(1);
  if (!isKnown(a) || !isKnown(b) ||
      (isBoolean && compare.getPredicate() != Predicate::eq && compare.getPredicate() != Predicate::ne))
    return std::nullopt;
  auto negate = [](std::optional<bool> truth) { return truth ? std::optional(!*truth) : truth; };
  switch (compare.getPredicate()) {
  case Predicate::eq:
    return facts.areEqual(a, b);
  case Predicate::ne:
    return negate(facts.areEqual(a, b));
  case Predicate::sle:
    return facts.isAtMost(a, b);
  case Predicate::sge:
    return facts.isAtMost(b, a);
  case Predicate::slt:
    return negate(facts.isAtMost(b, a));
  case Predicate::sgt:
    return negate(facts.isAtMost(a, b));
  default:
    return std::nullopt;
  }
}

std::optional<bool> FunctionSizes::truthOf(Value condition) {
  std::optional<int64_t> number = namedNumberOf(condition).constant();
  return number ? std::optional(*number != 0) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Symbols of the function
//===----------------------------------------------------------------------===//

/// Adds a symbol that `formula` computes from the sizes `of`, unless the function has it. Returns false if formulas cannot
/// have the names of these sizes.
bool FunctionSizes::addComputed(const std::string &formula, ArrayRef<Size> of, int64_t min,
                                int64_t max) {
  for (const Size &size : of)
    if (llvm::any_of(size.symbols(), [](const std::string &symbol) {
          return symbol.front() == kQuoted || symbol.front() == kUnknown;
        }))
      return false;
  // A dimension with this name would be taken for the formula.
  if (!Formula::parse(formula) || names.count(keyOf(formula)))
    return false;
  SmallVector<SymbolAttr> symbols = symbolsOf(function);
  if (llvm::none_of(symbols, [&](SymbolAttr symbol) { return symbol.getName() == formula; })) {
    symbols.push_back(SymbolAttr::get(function.getContext(), formula, min, max));
    setSymbols(function, symbols);
  }
  return true;
}

/// The condition "a `sign` b" as text without negative numbers: 1000 + y.0 <= x.0 instead of 0 <= -1000 + x.0 + -1*y.0.
static std::string conditionOf(const Size &a, StringRef sign, const Size &b) {
  Size left, right;
  std::optional<Size> gap = subtract(b, a);
  if (!gap)
    return (a.str() + sign + b.str()).str();
  for (const auto &[factors, number] : gap->terms()) {
    Size &side = number < 0 ? left : right;
    side = add(side, Size::product(factors, number < 0 ? -number : number)).value_or(side);
  }
  return (left.str() + sign + right.str()).str();
}

bool FunctionSizes::requireEqual(const Size &a, const Size &b) {
  SizeFacts::Outcome outcome = facts.requireEqual(a, b);
  return outcome == SizeFacts::Outcome::Holds ||
         (outcome == SizeFacts::Outcome::Open &&
          addComputed(conditionOf(a, " == ", b), {a, b}, 1, 1));
}

bool FunctionSizes::requireAtMost(const Size &a, const Size &b) {
  SizeFacts::Outcome outcome = facts.requireAtMost(a, b);
  return outcome == SizeFacts::Outcome::Holds ||
         (outcome == SizeFacts::Outcome::Open &&
          addComputed(conditionOf(a, " <= ", b), {a, b}, 1, 1));
}

LogicalResult FunctionSizes::mergeSymbols() {
  SmallVector<SymbolAttr> kept;
  SmallVector<std::pair<Size, Size>> conditions;
  std::map<std::string, std::string> renamed; // names of dimensions
  for (SymbolAttr symbol : symbolsOf(function)) {
    Size original = Size::symbol(keyOf(symbol.getName()));
    std::optional<Size> size = facts.reduced(original);
    if (size && size->symbol() && *size != original && names.count(size->symbol()->str())) {
      renamed[symbol.getName().str()] = names.at(size->symbol()->str());
      continue;
    }
    kept.push_back(symbol);
    std::optional<Size> by = size ? facts.expanded(*size) : std::nullopt;
    if (by && !by->constant() && *by != original)
      conditions.push_back({original, *by});
  }
  if (kept.empty())
    return success();
  auto nameOf = [&](StringRef name) {
    auto found = renamed.find(name.str());
    return found == renamed.end() ? name.str() : found->second;
  };
  // The formulas of the file have the old names too.
  auto rename = [&](StringRef name) {
    std::optional<Formula> formula =
        names.count(keyOf(name)) ? std::nullopt : Formula::parse(name);
    return formula ? formula->str(nameOf) : nameOf(name);
  };
  if (!renamed.empty())
    for (SymbolAttr &symbol : kept)
      symbol = SymbolAttr::get(function.getContext(), rename(symbol.getName()), symbol.getMin(),
                               symbol.getMax());
  setSymbols(function, kept);
  Builder b(function.getContext());
  auto renameAll = [&](ArrayAttr dims) {
    return b.getArrayAttr(llvm::map_to_vector(dims, [&](Attribute dim) -> Attribute {
      return b.getStringAttr(rename(cast<StringAttr>(dim).getValue()));
    }));
  };
  if (!renamed.empty()) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto dims = function.getArgAttrOfType<ArrayAttr>(i, AttnDialect::kDimsAttr))
        function.setArgAttr(i, AttnDialect::kDimsAttr, renameAll(dims));
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (auto dims = function.getResultAttrOfType<ArrayAttr>(i, AttnDialect::kDimsAttr))
        function.setResultAttr(i, AttnDialect::kDimsAttr, renameAll(dims));
  }
  for (const auto &[symbol, size] : conditions)
    if (!addComputed(symbol.str() + " == " + size.str(), {symbol, size}, 1, 1))
      return function.emitError() << "expected sizes that agree in every call, got '" << str(symbol)
                                  << "' and " << str(size);
  return success();
}

void FunctionSizes::setRanges() {
  SmallVector<SymbolAttr> symbols = symbolsOf(function);
  for (SymbolAttr &symbol : symbols) {
    std::string name = keyOf(symbol.getName());
    if (!names.count(name))
      continue;
    std::optional<Size> size = facts.reduced(Size::symbol(name));
    std::optional<int64_t> value = size ? size->constant() : std::nullopt;
    SizeRange range = value ? SizeRange{*value, *value} : facts.rangeOf(StringRef(name));
    symbol = SymbolAttr::get(function.getContext(), symbol.getName(), range.min, range.max);
  }
  if (!symbols.empty())
    setSymbols(function, symbols);
}

StringAttr FunctionSizes::symbolFor(const Size &size) {
  for (SymbolAttr symbol : symbolsOf(function))
    if (std::string name = keyOf(symbol.getName());
        names.count(name) && reduced(Size::symbol(name)) == size)
      return StringAttr::get(function.getContext(), symbol.getName());
  return addComputed(size.str(), {size}, 0, std::numeric_limits<int64_t>::max())
             ? StringAttr::get(function.getContext(), size.str())
             : nullptr;
}
