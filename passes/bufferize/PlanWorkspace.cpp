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
// products of the function's symbols, so the caller can compute them before the call; a number beyond 64 bits becomes
// 2^64 - 1. Temporaries of @forward.pack become additional packed buffers, because this function runs without a
// workspace.
// Test: test/passes/bufferize/plan-workspace.mlir
//
//===----------------------------------------------------------------------===//

#include "dialect/Symbols.h"
#include "passes/Passes.h"
#include "passes/bufferize/Polynomial.h"
#include "support/Loops.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

#include <list>

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PLANWORKSPACE
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// The size of a cache line, and the alignment that the runtime gives a workspace.
static constexpr int64_t kAlignment = 64;

namespace {

/// The symbols of an entry function, and the arguments from which they can be read. Further symbols stand for quotients
/// of these symbols, rounded up: for example, a packed mask has one word for every 32 keys.
class Symbols {
public:
  explicit Symbols(func::FuncOp function) : function(function) {
    if (auto symbols = function->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr))
      for (SymbolAttr symbol : symbols.getAsRange<SymbolAttr>())
        names.push_back(symbol.getName());
    numSizes = names.size();
    sources.resize(numSizes);
    for (BlockArgument argument : function.getArguments()) {
      auto dims =
          function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), AttnDialect::kDimsAttr);
      if (!dims)
        continue;
      for (auto [axis, dim] : llvm::enumerate(dims.getAsValueRange<StringAttr>()))
        if (std::optional<unsigned> symbol = find(dim); symbol && !sources[*symbol].first)
          sources[*symbol] = {argument, axis};
    }
  }

  ArrayRef<StringRef> getNames() const { return names; }
  /// The number of symbols that are sizes, which come first.
  unsigned getNumSizes() const { return numSizes; }

  /// The symbol of a size divided by `divisor` and rounded up.
  unsigned quotientOf(unsigned size, int64_t divisor) {
    for (auto [i, quotient] : llvm::enumerate(quotients))
      if (quotient.size == size && quotient.divisor == divisor)
        return numSizes + i;
    std::string text = ("ceil(" + names[size] + "/" + Twine(divisor) + ")").str();
    quotients.push_back({size, divisor});
    names.push_back(*quotientNames.insert(quotientNames.end(), text));
    return names.size() - 1;
  }

  /// Emits the value of a symbol; `valueOfSize` returns the values of symbols that are sizes.
  Value build(OpBuilder &builder, Location loc, unsigned symbol,
              function_ref<Value(unsigned)> valueOfSize) const {
    if (symbol < numSizes)
      return valueOfSize(symbol);
    Quotient quotient = quotients[symbol - numSizes];
    Value divisor = arith::ConstantIndexOp::create(builder, loc, quotient.divisor);
    return arith::CeilDivUIOp::create(builder, loc, valueOfSize(quotient.size), divisor);
  }

  /// The symbol of dimension `axis` of `value`, if `value` is an argument.
  std::optional<unsigned> symbolOf(Value value, int64_t axis) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner()->getParentOp() != function)
      return std::nullopt;
    StringAttr symbol = symbolOfArgument(function, argument.getArgNumber(), axis);
    return symbol ? find(symbol) : std::nullopt;
  }

  /// The value of a symbol, computed once at the start of the function.
  Value valueOf(unsigned symbol) {
    Value &value = values[symbol];
    if (!value) {
      OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
      value = build(builder, function.getLoc(), symbol, [&](unsigned size) -> Value {
        auto [argument, axis] = sources[size];
        return memref::DimOp::create(builder, function.getLoc(), argument, axis);
      });
    }
    return value;
  }

private:
  std::optional<unsigned> find(StringRef name) const {
    const auto *it = llvm::find(names, name);
    return it == names.end() || name.empty() ? std::nullopt
                                             : std::optional<unsigned>(it - names.begin());
  }

  struct Quotient {
    unsigned size;
    int64_t divisor;
  };

  func::FuncOp function;
  SmallVector<StringRef> names;
  unsigned numSizes;
  SmallVector<Quotient> quotients;
  std::list<std::string> quotientNames; // `names` refers to these
  SmallVector<std::pair<BlockArgument, int64_t>> sources;
  llvm::DenseMap<unsigned, Value> values;
};

} // namespace

/// An upper bound of an expression, from the upper bounds that `leaf` returns for its dimensions and symbols. The
/// operands of products must not be negative.
static std::optional<Polynomial>
toPolynomial(AffineExpr expr, Symbols &symbols,
             function_ref<std::optional<Polynomial>(AffineExpr)> leaf) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue() >= 0 ? std::optional<Polynomial>(constant.getValue()) : std::nullopt;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return leaf(expr);
  // If c is negative, an upper bound of a is also an upper bound of a + c.
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  std::optional<Polynomial> lhs = toPolynomial(binary.getLHS(), symbols, leaf);
  if (!lhs)
    return std::nullopt;
  switch (expr.getKind()) {
  case AffineExprKind::Add: {
    if (constant && constant.getValue() < 0)
      return lhs;
    std::optional<Polynomial> rhs = toPolynomial(binary.getRHS(), symbols, leaf);
    return rhs ? std::optional<Polynomial>(*lhs + *rhs) : std::nullopt;
  }
  case AffineExprKind::Mul: {
    std::optional<Polynomial> rhs = toPolynomial(binary.getRHS(), symbols, leaf);
    return rhs ? std::optional<Polynomial>(*lhs * *rhs) : std::nullopt;
  }
  case AffineExprKind::FloorDiv:
  case AffineExprKind::CeilDiv: {
    auto shifted = lhs->getShiftedSymbol();
    if (!shifted || !constant || constant.getValue() < 2 || shifted->first >= symbols.getNumSizes())
      return lhs;
    // (s + c) / d is at most ceil(s / d) plus c / d, where c / d is rounded as the whole quotient is.
    uint64_t d = constant.getValue(), c = shifted->second;
    return Polynomial::symbol(symbols.quotientOf(shifted->first, d)) +
           Polynomial(expr.getKind() == AffineExprKind::FloorDiv ? c / d : llvm::divideCeil(c, d));
  }
  default:
    return std::nullopt;
  }
}

static std::optional<Polynomial> boundOf(Value size, Symbols &symbols);

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
static std::optional<Polynomial> boundOfNonlinear(Value value, Symbols &symbols) {
  Operation *op = value.getDefiningOp();
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    AffineMap map = apply.getAffineMap();
    return toPolynomial(map.getResult(0), symbols, [&](AffineExpr leaf) {
      Value operand = apply.getMapOperands()[operandOf(leaf, map)];
      return isNonNegative(operand) ? boundOf(operand, symbols) : std::nullopt;
    });
  }
  std::optional<Polynomial> a = boundOf(op->getOperand(0), symbols),
                            b = boundOf(op->getOperand(1), symbols);
  if (isa<arith::DivUIOp>(op))
    return a;
  // The second operand is the better bound if it is a constant.
  if (isa<arith::MinSIOp, arith::RemUIOp>(op))
    return b && (!a || getConstantIntValue(op->getOperand(1))) ? b : a;
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::MaxSIOp>(op))
    return Polynomial::maximum(*a, *b);
  return llvm::all_of(op->getOperands(), isNonNegative) ? std::optional(*a * *b) : std::nullopt;
}

/// An upper bound of `size` in the symbols alone.
static std::optional<Polynomial> boundOf(Value size, Symbols &symbols) {
  using Bounds = ValueBoundsConstraintSet;
  FailureOr<int64_t> constant =
      Bounds::computeConstantBound(presburger::BoundType::UB, {size}, nullptr, /*closedUB=*/true);
  if (succeeded(constant))
    return Polynomial(std::max<int64_t>(*constant, 0));
  if (isNonlinear(size))
    return boundOfNonlinear(size, symbols);
  AffineMap map;
  ValueDimList operands;
  auto isKnown = [&](Value value, std::optional<int64_t> dim, Bounds &) {
    return dim ? symbols.symbolOf(value, *dim).has_value() : isNonlinear(value);
  };
  if (failed(Bounds::computeBound(map, operands, presburger::BoundType::UB, {size}, isKnown,
                                  /*closedUB=*/true)))
    return std::nullopt;
  return toPolynomial(map.getResult(0), symbols, [&](AffineExpr leaf) -> std::optional<Polynomial> {
    auto [value, dim] = operands[operandOf(leaf, map)];
    if (!dim)
      return boundOfNonlinear(value, symbols);
    std::optional<unsigned> symbol = symbols.symbolOf(value, *dim);
    return symbol ? std::optional<Polynomial>(Polynomial::symbol(*symbol)) : std::nullopt;
  });
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
    auto add = [&](DictionaryAttr attributes) -> Value {
      unsigned index = function.getNumArguments();
      (void)function.insertArgument(index, bytes, attributes, function.getLoc());
      return function.getArgument(index);
    };
    Value workspace = add(builder.getDictionaryAttr({}));
    Value scratch = add(builder.getDictionaryAttr(
        builder.getNamedAttr(AttnDialect::kScratchAttr, builder.getUnitAttr())));

    // Place the temporaries of the call one after the other. A worker runs tasks of one forall at a time, so all
    // foralls share the workspace of the worker.
    Polynomial perCall, perWorker;
    llvm::DenseMap<Operation *, Polynomial> ofForall;
    WalkResult result = function.walk([&](memref::AllocOp alloc) {
      std::optional<Polynomial> size = bytesOf(alloc, symbols);
      if (!size) {
        alloc.emitError() << "expected a size with an upper bound in the function's symbols, got "
                          << alloc.getType();
        return WalkResult::interrupt();
      }
      scf::ForallOp forall = alloc->getParentOfType<scf::ForallOp>();
      Polynomial &used = forall ? ofForall[forall] : perCall;
      replace(alloc, forall ? scratch : workspace, used, symbols);
      used = used + *size;
      perWorker = forall ? Polynomial::maximum(perWorker, used) : perWorker;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    for (const Polynomial *size : {&perCall, &perWorker})
      if (uint64_t bytes = size->constant(); bytes > uint64_t(AttnDialect::kMaxBytes)) {
        std::string got = std::to_string(bytes);
        got += bytes == std::numeric_limits<uint64_t>::max() ? " or more" : "";
        got += size == &perCall ? " per call" : " per worker";
        return function.emitError() << "expected a workspace of at most 2^47 bytes, got " << got;
      }

    function->setAttr(AttnDialect::kKernelAttr, builder.getStringAttr("entry"));
    builder.setInsertionPointAfter(function);
    SmallVector<Type> inputs(symbols.getNumSizes(), builder.getIndexType());
    auto size = func::FuncOp::create(
        builder, function.getLoc(), (function.getName() + ".workspace").str(),
        builder.getFunctionType(inputs, {builder.getIndexType(), builder.getIndexType()}));
    size->setAttr(AttnDialect::kKernelAttr, builder.getStringAttr("workspace"));
    size->setAttr(AttnDialect::kTextAttr,
                  builder.getStringAttr("per call " + perCall.print(symbols.getNames()) +
                                        ", per worker " + perWorker.print(symbols.getNames())));
    builder.setInsertionPointToStart(size.addEntryBlock());
    auto valueOf = [&](unsigned symbol) {
      return symbols.build(builder, size.getLoc(), symbol,
                           [&](unsigned of) -> Value { return size.getArgument(of); });
    };
    Value call = perCall.build(builder, size.getLoc(), valueOf, /*saturates=*/true);
    Value worker = perWorker.build(builder, size.getLoc(), valueOf, /*saturates=*/true);
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

  std::optional<Polynomial> bytesOf(memref::AllocOp alloc, Symbols &symbols) {
    MemRefType type = alloc.getType();
    int64_t element =
        type.getElementType().isIndex() ? 8 : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    Polynomial bytes(element);
    for (int64_t size : type.getShape())
      if (!ShapedType::isDynamic(size))
        bytes = bytes * Polynomial(size);
    for (Value size : alloc.getDynamicSizes()) {
      std::optional<Polynomial> bound = boundOf(size, symbols);
      if (!bound)
        return std::nullopt;
      bytes = bytes * *bound;
    }
    return bytes.padded(kAlignment);
  }

  void replace(memref::AllocOp alloc, Value memory, const Polynomial &offset, Symbols &symbols) {
    OpBuilder builder(alloc);
    Location loc = alloc.getLoc();
    Value shift =
        offset.build(builder, loc, [&](unsigned symbol) { return symbols.valueOf(symbol); });
    if (!offset.isMultipleOf(kAlignment)) {
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
