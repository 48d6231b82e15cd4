//===- PlanWorkspace.cpp - temporaries become slices of a workspace --------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @forward(%x: memref<?x768xf32>, %out: ...) {
//     %o = memref.alloc(%n) : memref<?x768xf32>
//     scf.forall (%h) in (12) { %k = memref.alloc(%n) : memref<?x64xf32> ... }
// becomes
//   func.func @forward(%x, %out, %workspace: memref<?xi8>, %scratch: memref<?xi8> {attn.scratch})
//       attributes {attn.kernel = "entry"} {
//     %o = memref.view %workspace[0][%n]
//     scf.forall (%h) in (12) { %k = memref.view %scratch[0][%n] ... }
//   func.func @forward.workspace(%n: index) -> (index, index)    3072 n per call, 256 n per worker
//
// Temporaries of a task do not overlap, and their memory is not reused, which attn-separate-scratch tells LLVM. A size
// that depends on loop variables is replaced with an upper bound that does not. The numbers of bytes are sums of
// products of the function's symbols and of quotients of symbols, so the caller can compute them before the call; a
// number beyond 64 bits becomes 2^64 - 1. Temporaries of @forward.pack become additional packed buffers, because this function runs without a
// workspace.
// Test: test/passes/bufferize/plan-workspace.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Size.h"
#include "dialect/Symbols.h"
#include "passes/Passes.h"
#include "support/Loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

#include <numeric>

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PLANWORKSPACE
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The size of a cache line, and the alignment that the runtime gives a workspace.
static constexpr int64_t kAlignment = 64;

namespace {

/// The symbols of an entry function, and the arguments from which they can be read.
class Symbols {
public:
  explicit Symbols(func::FuncOp function) : function(function) {
    if (auto symbols = function->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr))
      for (SymbolAttr symbol : symbols.getAsRange<SymbolAttr>())
        names.push_back(symbol.getName());
    forEachSymbol(function, [&](StringAttr symbol, BlockArgument argument, int64_t axis) {
      sources.try_emplace(symbol, argument, axis);
    });
  }

  ArrayRef<StringRef> getNames() const { return names; }

  /// The size of dimension `axis` of `value`, if `value` is an argument.
  std::optional<Size> sizeOf(Value value, int64_t axis) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner()->getParentOp() != function)
      return std::nullopt;
    StringAttr symbol = symbolOfArgument(function, argument.getArgNumber(), axis);
    return symbol && llvm::is_contained(names, symbol) ? std::optional(Size::symbol(symbol))
                                                       : std::nullopt;
  }

  /// The value of a symbol, computed once at the start of the function.
  Value valueOf(StringRef symbol) {
    Value &value = values[symbol];
    if (!value) {
      OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
      auto [argument, axis] = sources.lookup(symbol);
      value = memref::DimOp::create(builder, function.getLoc(), argument, axis);
    }
    return value;
  }

private:
  func::FuncOp function;
  SmallVector<StringRef> names;
  llvm::StringMap<std::pair<BlockArgument, int64_t>> sources;
  llvm::StringMap<Value> values;
};

} // namespace

//===----------------------------------------------------------------------===//
// Numbers of bytes. Their coefficients are not negative, so greater coefficients give an upper bound.
//===----------------------------------------------------------------------===//

/// `size`, or the greatest number of 63 bits if it does not fit.
static Size saturated(const std::optional<Size> &size) {
  return size ? *size : Size(std::numeric_limits<int64_t>::max());
}

/// The part of a size that does not depend on symbols.
static int64_t constantPart(const Size &size) {
  auto term = size.terms().find({});
  return term == size.terms().end() ? 0 : term->second;
}

static bool isMultipleOf(const Size &size, int64_t divisor) {
  return llvm::all_of(size.terms(), [&](const auto &term) { return term.second % divisor == 0; });
}

/// Adds the padding that a buffer of this size needs. Buffers are placed one after the other. Each buffer begins at the
/// sum of the padded sizes before it, rounded down to a multiple of kAlignment.
static Size padded(const Size &size) {
  // For all values of the symbols, the size is `constant` plus a multiple of `unit`.
  int64_t unit = kAlignment, constant = constantPart(size);
  for (const auto &[factors, coefficient] : size.terms())
    if (!factors.empty())
      unit = std::gcd(unit, coefficient);
  int64_t padding = (unit - constant % unit) % unit + kAlignment - unit;
  return saturated(add(size, Size(padding)));
}

/// A size that is never less than `a` and never less than `b`: each coefficient is the greater of the two.
static Size greaterOf(const Size &a, const Size &b) {
  Size result = a;
  for (const auto &[factors, coefficient] : b.terms()) {
    auto mine = a.terms().find(factors);
    int64_t known = mine == a.terms().end() ? 0 : mine->second;
    if (coefficient > known)
      result = saturated(add(result, Size::product(factors, coefficient - known)));
  }
  return result;
}

/// Builds the value of `size`, an index, from the value of each symbol. With `saturates`, a value beyond 2^64 - 1 becomes
/// 2^64 - 1.
static Value build(OpBuilder &builder, Location loc, const Size &size,
                   function_ref<Value(StringRef symbol)> valueOf, bool saturates = false) {
  auto constant = [&](uint64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto unless = [&](arith::CmpIPredicate predicate, Value a, Value b, Value value) -> Value {
    Value overflows = arith::CmpIOp::create(builder, loc, predicate, a, b);
    return arith::SelectOp::create(builder, loc, overflows, constant(UINT64_MAX), value);
  };
  auto multiply = [&](Value a, Value b) -> Value {
    if (!saturates)
      return arith::MulIOp::create(builder, loc, a, b);
    auto product = arith::MulUIExtendedOp::create(builder, loc, a, b);
    return unless(arith::CmpIPredicate::ne, product.getHigh(), constant(0), product.getLow());
  };
  auto plus = [&](Value a, Value b) -> Value {
    Value sum = arith::AddIOp::create(builder, loc, a, b);
    return saturates ? unless(arith::CmpIPredicate::ult, sum, a, sum) : sum;
  };

  Value sum = constant(0);
  for (const auto &[factors, coefficient] : size.terms()) {
    Value product = constant(coefficient);
    for (const Size::Factor &factor : factors) {
      Value value;
      if (factor.operands) // boundOfExpr() creates no function but this one
        value = arith::DivUIOp::create(
            builder, loc, build(builder, loc, factor.operands->first, valueOf, saturates),
            build(builder, loc, factor.operands->second, valueOf, saturates));
      else
        value = valueOf(factor.text);
      product = multiply(product, value);
    }
    sum = plus(sum, product);
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Upper bounds
//===----------------------------------------------------------------------===//

/// The symbol s and the constant c, if `size` is s + c.
static std::optional<std::pair<Size, int64_t>> shiftedSymbol(const Size &size) {
  int64_t constant = constantPart(size);
  std::optional<Size> symbol = subtract(size, Size(constant));
  return symbol && symbol->symbol() ? std::optional(std::pair(*symbol, constant)) : std::nullopt;
}

/// An upper bound of an expression, from the upper bounds that `leaf` returns for its dimensions and symbols, and from
/// whether they are proved not to be negative. The operands of products must not be negative.
static std::optional<Size> boundOfExpr(AffineExpr expr,
                                       function_ref<std::optional<Size>(AffineExpr)> leaf,
                                       function_ref<bool(AffineExpr)> isNonNegative) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() >= 0 ? std::optional<Size>(constant.getValue()) : std::nullopt;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return leaf(expr);
  // If c is negative, an upper bound of a is also an upper bound of a + c.
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  std::optional<Size> lhs = boundOfExpr(binary.getLHS(), leaf, isNonNegative);
  if (!lhs)
    return std::nullopt;
  switch (expr.getKind()) {
  case AffineExprKind::Add: {
    if (constant && constant.getValue() < 0)
      return lhs;
    std::optional<Size> rhs = boundOfExpr(binary.getRHS(), leaf, isNonNegative);
    return rhs ? std::optional(saturated(add(*lhs, *rhs))) : std::nullopt;
  }
  case AffineExprKind::Mul: {
    if (constant && constant.getValue() < 0)
      return isNonNegative(binary.getLHS()) ? std::optional(Size(0)) : std::nullopt;
    std::optional<Size> rhs = boundOfExpr(binary.getRHS(), leaf, isNonNegative);
    return rhs ? std::optional(saturated(multiply(*lhs, *rhs))) : std::nullopt;
  }
  case AffineExprKind::FloorDiv:
  case AffineExprKind::CeilDiv: {
    auto shifted = shiftedSymbol(*lhs);
    if (!shifted || !constant || constant.getValue() < 2)
      return lhs;
    // (s + c) / d is at most ceil(s / d) plus c / d, where c / d is rounded as the whole quotient is.
    auto [symbol, c] = *shifted;
    int64_t d = constant.getValue();
    std::optional<Size> quotient = divideUp(symbol, Size(d));
    int64_t rest = expr.getKind() == AffineExprKind::FloorDiv ? c / d : llvm::divideCeil(c, d);
    return quotient ? std::optional(saturated(add(*quotient, Size(rest)))) : lhs;
  }
  default:
    return std::nullopt;
  }
}

static std::optional<Size> boundOf(Value size, Symbols &symbols);

/// Whether nonlinear arithmetic computes `value`. ValueBoundsConstraintSet finds no bounds of this arithmetic.
static bool isNonlinear(Value value) {
  if (auto product = value.getDefiningOp<arith::MulIOp>())
    return !getConstantIntValue(product.getLhs()) && !getConstantIntValue(product.getRhs());
  if (auto apply = value.getDefiningOp<affine::AffineApplyOp>())
    return !apply.getAffineMap().getResult(0).isPureAffine();
  return isa_and_present<arith::DivUIOp, arith::RemUIOp, arith::MaxSIOp, arith::MinSIOp>(
      value.getDefiningOp());
}

/// Whether the ops that compute `value` show that it is not negative. Divisions are assumed to divide sizes.
static bool isNonNegative(Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return *constant >= 0;
  Operation *op = value.getDefiningOp();
  if (isa_and_present<memref::DimOp, arith::DivUIOp, arith::RemUIOp>(op))
    return true;
  if (isa_and_present<arith::MaxSIOp>(op))
    return llvm::any_of(op->getOperands(), isNonNegative);
  return isa_and_present<arith::AddIOp, arith::MulIOp, arith::MinSIOp>(op) &&
         llvm::all_of(op->getOperands(), isNonNegative);
}

/// The operand of `map` that `leaf`, a dimension or a symbol, names.
static unsigned operandOf(AffineExpr leaf, AffineMap map) {
  if (std::optional<unsigned> dim = findLoop(leaf))
    return *dim;
  return map.getNumDims() + cast<AffineSymbolExpr>(leaf).getPosition();
}

/// An upper bound of the result of nonlinear arithmetic, from bounds of its operands.
static std::optional<Size> boundOfNonlinear(Value value, Symbols &symbols) {
  Operation *op = value.getDefiningOp();
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    AffineMap map = apply.getAffineMap();
    return boundOfExpr(
        map.getResult(0),
        [&](AffineExpr leaf) {
          Value operand = apply.getMapOperands()[operandOf(leaf, map)];
          return isNonNegative(operand) ? boundOf(operand, symbols) : std::nullopt;
        },
        // The operands are known not to be negative.
        [](AffineExpr expr) { return !isa<AffineBinaryOpExpr, AffineConstantExpr>(expr); });
  }
  std::optional<Size> a = boundOf(op->getOperand(0), symbols),
                      b = boundOf(op->getOperand(1), symbols);
  if (isa<arith::DivUIOp>(op))
    return a;
  // The second operand is the better bound if it is a constant.
  if (isa<arith::MinSIOp, arith::RemUIOp>(op))
    return b && (!a || getConstantIntValue(op->getOperand(1))) ? b : a;
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::MaxSIOp>(op))
    return greaterOf(*a, *b);
  return llvm::all_of(op->getOperands(), isNonNegative) ? std::optional(saturated(multiply(*a, *b)))
                                                        : std::nullopt;
}

/// An upper bound of `size` in the symbols alone.
static std::optional<Size> boundOf(Value size, Symbols &symbols) {
  using Bounds = ValueBoundsConstraintSet;
  FailureOr<int64_t> constant =
      Bounds::computeConstantBound(presburger::BoundType::UB, {size}, nullptr, /*closedUB=*/true);
  if (succeeded(constant))
    return Size(std::max<int64_t>(*constant, 0));
  if (isNonlinear(size))
    return boundOfNonlinear(size, symbols);
  AffineMap map;
  ValueDimList operands;
  auto isKnown = [&](Value value, std::optional<int64_t> dim, Bounds &) {
    return dim ? symbols.sizeOf(value, *dim).has_value() : isNonlinear(value);
  };
  if (failed(Bounds::computeBound(map, operands, presburger::BoundType::UB, {size}, isKnown,
                                  /*closedUB=*/true)))
    return std::nullopt;
  auto leafBound = [&](AffineExpr leaf) -> std::optional<Size> {
    auto [value, dim] = operands[operandOf(leaf, map)];
    if (!dim)
      return boundOfNonlinear(value, symbols);
    return symbols.sizeOf(value, *dim);
  };
  auto isNonNegativeLeaf = [&](AffineExpr expr) {
    if (isa<AffineBinaryOpExpr, AffineConstantExpr>(expr))
      return false;
    auto [value, dim] = operands[operandOf(expr, map)];
    return dim || isNonNegative(value);
  };
  return boundOfExpr(map.getResult(0), leafBound, isNonNegativeLeaf);
}

namespace {
struct PlanWorkspace : attn::impl::PlanWorkspaceBase<PlanWorkspace> {
  void runOnOperation() override {
    for (func::FuncOp function : llvm::to_vector(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal())
        continue;
      auto kernel = function->getAttrOfType<StringAttr>(AttnDialect::kKernelAttr);
      if (failed(kernel && kernel == "pack" ? planPack(function) : planEntry(function)))
        return signalPassFailure();
    }
  }

  LogicalResult planEntry(func::FuncOp function) {
    OpBuilder builder(function);
    Symbols symbols(function);
    Type bytes = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
    auto addArgument = [&](DictionaryAttr attributes) -> Value {
      unsigned index = function.getNumArguments();
      (void)function.insertArgument(index, bytes, attributes, function.getLoc());
      return function.getArgument(index);
    };
    Value workspace = addArgument(builder.getDictionaryAttr({}));
    Value scratch = addArgument(builder.getDictionaryAttr(
        builder.getNamedAttr(AttnDialect::kScratchAttr, builder.getUnitAttr())));

    // Place the temporaries of the call one after the other. A worker runs tasks of one forall at a time, so all
    // foralls share the workspace of the worker.
    Size perCall, perWorker;
    llvm::DenseMap<Operation *, Size> ofForall;
    WalkResult result = function.walk([&](memref::AllocOp alloc) {
      std::optional<Size> size = bytesOf(alloc, symbols);
      if (!size) {
        alloc.emitError() << "expected a size with an upper bound in the function's symbols, got "
                          << alloc.getType();
        return WalkResult::interrupt();
      }
      scf::ForallOp forall = alloc->getParentOfType<scf::ForallOp>();
      Size &used = forall ? ofForall[forall] : perCall;
      replace(alloc, forall ? scratch : workspace, used, symbols);
      used = saturated(add(used, *size));
      perWorker = forall ? greaterOf(perWorker, used) : perWorker;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    for (const Size *size : {&perCall, &perWorker})
      if (int64_t bytes = constantPart(*size); bytes > AttnDialect::kMaxBytes) {
        std::string got = std::to_string(bytes);
        got += bytes == std::numeric_limits<int64_t>::max() ? " or more" : "";
        got += size == &perCall ? " per call" : " per worker";
        return function.emitError() << "expected a workspace of at most 2^47 bytes, got " << got;
      }

    function->setAttr(AttnDialect::kKernelAttr, builder.getStringAttr("entry"));
    builder.setInsertionPointAfter(function);
    ArrayRef<StringRef> names = symbols.getNames();
    SmallVector<Type> inputs(names.size(), builder.getIndexType());
    auto size = func::FuncOp::create(
        builder, function.getLoc(), (function.getName() + ".workspace").str(),
        builder.getFunctionType(inputs, {builder.getIndexType(), builder.getIndexType()}));
    size->setAttr(AttnDialect::kKernelAttr, builder.getStringAttr("workspace"));
    size->setAttr(AttnDialect::kTextAttr, builder.getStringAttr("per call " + perCall.str() +
                                                                ", per worker " + perWorker.str()));
    builder.setInsertionPointToStart(size.addEntryBlock());
    auto valueOf = [&](StringRef symbol) -> Value {
      return size.getArgument(llvm::find(names, symbol) - names.begin());
    };
    Value call = build(builder, size.getLoc(), perCall, valueOf, /*saturates=*/true);
    Value worker = build(builder, size.getLoc(), perWorker, valueOf, /*saturates=*/true);
    func::ReturnOp::create(builder, size.getLoc(), ValueRange{call, worker});
    return success();
  }

  LogicalResult planPack(func::FuncOp function) {
    WalkResult result = function.walk([&](memref::AllocOp alloc) {
      if (!alloc.getType().hasStaticShape()) {
        alloc.emitError() << "expected weights of static shape, got " << alloc.getType();
        return WalkResult::interrupt();
      }
      unsigned index = function.getNumArguments();
      auto attributes = DictionaryAttr::get(
          &getContext(), NamedAttribute(StringAttr::get(&getContext(), AttnDialect::kOutputAttr),
                                        UnitAttr::get(&getContext())));
      (void)function.insertArgument(index, alloc.getType(), attributes, alloc.getLoc());
      alloc.replaceAllUsesWith(function.getArgument(index));
      alloc.erase();
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  std::optional<Size> bytesOf(memref::AllocOp alloc, Symbols &symbols) {
    MemRefType type = alloc.getType();
    int64_t element =
        type.getElementType().isIndex() ? 8 : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    Size bytes(element);
    for (int64_t size : type.getShape())
      if (!ShapedType::isDynamic(size))
        bytes = saturated(multiply(bytes, Size(size)));
    for (Value size : alloc.getDynamicSizes()) {
      std::optional<Size> bound = boundOf(size, symbols);
      if (!bound)
        return std::nullopt;
      bytes = saturated(multiply(bytes, *bound));
    }
    return padded(bytes);
  }

  void replace(memref::AllocOp alloc, Value memory, const Size &offset, Symbols &symbols) {
    OpBuilder builder(alloc);
    Location loc = alloc.getLoc();
    Value shift =
        build(builder, loc, offset, [&](StringRef symbol) { return symbols.valueOf(symbol); });
    if (!isMultipleOf(offset, kAlignment)) {
      Value mask = arith::ConstantIndexOp::create(builder, loc, -kAlignment);
      shift = arith::AndIOp::create(builder, loc, shift, mask);
    }
    Value view = memref::ViewOp::create(builder, loc, alloc.getType(), memory, shift,
                                        alloc.getDynamicSizes());
    alloc.replaceAllUsesWith(view);
    alloc.erase();
  }
};
} // namespace
