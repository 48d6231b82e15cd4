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

/// The first character of symbols that stand for unknown sizes. No name of a dimension begins with it.
static constexpr char kUnknown = '?';

/// The symbols of `function`: its dimensions of arguments, the sizes that are computed from them, and its conditions.
static SmallVector<SymbolAttr> symbolsOf(func::FuncOp function) {
  auto list = function->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr);
  return list ? llvm::to_vector(list.getAsRange<SymbolAttr>()) : SmallVector<SymbolAttr>();
}

static void setSymbols(func::FuncOp function, ArrayRef<SymbolAttr> symbols) {
  SmallVector<Attribute> list(symbols.begin(), symbols.end());
  function->setAttr(AttnDialect::kSymbolsAttr, ArrayAttr::get(function.getContext(), list));
}

/// Whether a dimension of an argument has the symbol `name`.
static bool isOfArgument(func::FuncOp function, StringRef name) {
  return llvm::any_of(llvm::seq(function.getNumArguments()), [&](unsigned i) {
    auto dims = function.getArgAttrOfType<ArrayAttr>(i, AttnDialect::kDimsAttr);
    return dims && llvm::is_contained(dims, StringAttr::get(function.getContext(), name));
  });
}

FunctionSizes::FunctionSizes(func::FuncOp function) : function(function) {
  for (SymbolAttr symbol : symbolsOf(function))
    if (isOfArgument(function, symbol.getName()))
      facts.addSymbol(symbol.getName(), {symbol.getMin(), symbol.getMax()});
}

bool FunctionSizes::isKnown(const Size &size) {
  return llvm::none_of(size.symbols(),
                       [](const std::string &symbol) { return symbol.front() == kUnknown; });
}

std::string FunctionSizes::str(const Size &size) {
  return isKnown(size) ? size.str() : "an unknown size";
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
      return Size::symbol(symbol);
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

std::optional<Size> FunctionSizes::compute(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number))) {
    if (value.getType().isInteger(1))
      return Size(number.isZero() ? 0 : 1);
    return number.getSignificantBits() <= 64 ? std::optional(Size(number.getSExtValue()))
                                             : std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (!op || !(value.getType().isIndex() || value.getType().isInteger(64) ||
               value.getType().isInteger(32) || value.getType().isInteger(1)))
    return std::nullopt;
  auto operand = [&](unsigned i) { return namedNumberOf(op->getOperand(i)); };
  auto isNonNegative = [&](const Size &size) {
    Size simple = reduced(size);
    return isKnown(simple) && facts.isAtMost(Size(0), simple) == true;
  };
  // A quotient that is known needs a divisor of at least 1.
  auto divide = [&](auto function, bool needsNonNegative) -> std::optional<Size> {
    Size a = operand(0), b = operand(1);
    if (!isKnown(a) || !isKnown(b) || !isNonNegative(b) || (needsNonNegative && !isNonNegative(a)))
      return std::nullopt;
    std::optional<Size> result = function(a, b);
    if (result && !b.constant())
      divided.push_back({op, b});
    return result;
  };
  using Result = std::optional<Size>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::CmpIOp, arith::AndIOp>([&](Operation *op) -> Result {
        std::optional<bool> truth =
            value.getType().isInteger(1) ? decide(op) : std::optional<bool>();
        return truth ? Result(Size(*truth)) : std::nullopt;
      })
      .Case([&](tensor::DimOp dim) -> Result {
        std::optional<int64_t> axis = dim.getConstantIndex();
        auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
        return axis && type && *axis >= 0 && *axis < type.getRank() ? sizeOf(dim.getSource(), *axis)
                                                                    : std::nullopt;
      })
      .Case([&](arith::AddIOp) { return add(operand(0), operand(1)); })
      .Case([&](arith::SubIOp) { return subtract(operand(0), operand(1)); })
      .Case([&](arith::MulIOp) { return multiply(operand(0), operand(1)); })
      .Case([&](arith::FloorDivSIOp) { return divide(divideDown, false); })
      .Case([&](arith::CeilDivSIOp) { return divide(divideUp, false); })
      .Case<arith::DivSIOp, arith::DivUIOp>([&](Operation *) { return divide(divideDown, true); })
      .Case([&](arith::CeilDivUIOp) { return divide(divideUp, true); })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](Operation *) { return divide(remainder, true); })
      .Case([&](arith::MaxSIOp) { return maximum(operand(0), operand(1)); })
      .Case([&](arith::MinSIOp) { return minimum(operand(0), operand(1)); })
      .Case<arith::MaxUIOp, arith::MinUIOp>([&](Operation *op) -> Result {
        Size a = operand(0), b = operand(1);
        bool isSigned = isNonNegative(a) && isNonNegative(b);
        return !isSigned ? std::nullopt : isa<arith::MaxUIOp>(op) ? maximum(a, b) : minimum(a, b);
      })
      .Case<arith::IndexCastOp, arith::ExtSIOp>([&](Operation *op) -> Result {
        // A boolean is 0 or -1 for these ops.
        return op->getOperand(0).getType().isInteger(1) ? std::nullopt : Result(operand(0));
      })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>([&](Operation *op) -> Result {
        if (op->getOperand(0).getType().isInteger(1)) {
          std::optional<bool> truth = truthOf(op->getOperand(0));
          return truth ? Result(Size(*truth)) : std::nullopt;
        }
        return isNonNegative(operand(0)) ? Result(operand(0)) : std::nullopt;
      })
      .Case([&](arith::SelectOp select) -> Result {
        if (std::optional<bool> truth = truthOf(select.getCondition()))
          return operand(*truth ? 1 : 2);
        Size a = operand(1), b = operand(2);
        return a == b ? Result(a) : std::nullopt;
      })
      .Case([&](affine::AffineApplyOp apply) {
        AffineMap map = apply.getAffineMap();
        SmallVector<Size> operands = llvm::map_to_vector(
            apply.getMapOperands(), [&](Value operand) { return namedNumberOf(operand); });
        ArrayRef<Size> all(operands);
        return evaluate(map.getResult(0), all.take_front(map.getNumDims()),
                        all.drop_front(map.getNumDims()));
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
  if (!isKnown(a) || !isKnown(b))
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

/// Adds a symbol that `formula` computes from the sizes `of`, unless the function has it.
bool FunctionSizes::addComputed(const std::string &formula, ArrayRef<Size> of, int64_t min,
                                int64_t max) {
  for (const Size &size : of)
    for (const std::string &symbol : size.symbols())
      if (std::optional<Formula> name = Formula::parse(symbol);
          !name || name->op != Formula::Op::Name || name->name != symbol)
        return false;
  if (!Formula::parse(formula))
    return false;
  SmallVector<SymbolAttr> symbols = symbolsOf(function);
  auto added = SymbolAttr::get(function.getContext(), formula, min, max);
  if (llvm::none_of(symbols, [&](SymbolAttr symbol) { return symbol.getName() == formula; }))
    symbols.push_back(added);
  setSymbols(function, symbols);
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
  llvm::DenseMap<Attribute, Attribute> renamed;
  for (SymbolAttr symbol : symbolsOf(function)) {
    Size original = Size::symbol(symbol.getName());
    std::optional<Size> size = facts.reduced(original);
    if (size && size->symbol() && *size != original) {
      renamed[StringAttr::get(function.getContext(), symbol.getName())] =
          StringAttr::get(function.getContext(), *size->symbol());
      continue;
    }
    kept.push_back(symbol);
    std::optional<Size> by = size ? facts.expanded(*size) : std::nullopt;
    if (by && !by->constant() && *by != original)
      conditions.push_back({original, *by});
  }
  if (kept.empty())
    return success();
  setSymbols(function, kept);
  auto rename = [&](ArrayAttr dims) {
    return ArrayAttr::get(function.getContext(), llvm::map_to_vector(dims, [&](Attribute dim) {
                            Attribute name = renamed.lookup(dim);
                            return name ? name : dim;
                          }));
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto dims = function.getArgAttrOfType<ArrayAttr>(i, AttnDialect::kDimsAttr))
      function.setArgAttr(i, AttnDialect::kDimsAttr, rename(dims));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto dims = function.getResultAttrOfType<ArrayAttr>(i, AttnDialect::kDimsAttr))
      function.setResultAttr(i, AttnDialect::kDimsAttr, rename(dims));
  for (const auto &[symbol, size] : conditions)
    if (!addComputed(symbol.str() + " == " + size.str(), {symbol, size}, 1, 1))
      return function.emitError() << "expected sizes that agree in every call, got '"
                                  << symbol.str() << "' and " << size.str();
  return success();
}

void FunctionSizes::setRanges() {
  SmallVector<SymbolAttr> symbols = symbolsOf(function);
  for (SymbolAttr &symbol : symbols) {
    if (!isOfArgument(function, symbol.getName()))
      continue;
    std::optional<Size> size = facts.reduced(Size::symbol(symbol.getName()));
    std::optional<int64_t> value = size ? size->constant() : std::nullopt;
    SizeRange range = value ? SizeRange{*value, *value} : facts.rangeOf(symbol.getName());
    symbol = SymbolAttr::get(function.getContext(), symbol.getName(), range.min, range.max);
  }
  if (!symbols.empty())
    setSymbols(function, symbols);
}

StringAttr FunctionSizes::symbolFor(const Size &size) {
  for (SymbolAttr symbol : symbolsOf(function))
    if (isOfArgument(function, symbol.getName()) && reduced(Size::symbol(symbol.getName())) == size)
      return StringAttr::get(function.getContext(), symbol.getName());
  return addComputed(size.str(), {size}, 0, std::numeric_limits<int64_t>::max())
             ? StringAttr::get(function.getContext(), size.str())
             : nullptr;
}
