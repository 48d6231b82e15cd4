//===- Sizes.cpp - which sizes of the arguments must agree -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// In MLIR, the elementwise sum of two tensors of different sizes is undefined: its loop would read past the end of the
// smaller tensor. This file turns every size into an expression over the dimensions of the arguments. It turns every
// requirement of an operation into an equation between two sizes, or into an expression that must not be negative. An
// assertion on sizes (cf.assert) is such a requirement too, and is erased: it is proved, or becomes a condition of each
// call. Assertions that each element of an argument lies in [0, n], as torch-mlir writes them for indices, become
// attn.bound.
//
//===----------------------------------------------------------------------===//

#include "frontend/Sizes.h"
#include "frontend/Indices.h"

#include "dialect/Attn.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

namespace {

class SizeTies {
public:
  SizeTies(func::FuncOp function, bool namedByFile)
      : function(function), context(function.getContext()), namedByFile(namedByFile) {
    if (auto list = function->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr))
      symbols = llvm::to_vector(list.getAsRange<SymbolAttr>());
    for (SymbolAttr symbol : symbols) {
      same.push_back(getAffineSymbolExpr(same.size(), context));
      names.push_back(("'" + symbol.getName() + "'").str());
    }
  }

  LogicalResult run() {
    function.walk([&](Operation *op) { collect(op); });
    // Repeat until nothing changes: if one equation replaces a symbol, another equation may then determine a symbol.
    for (bool changed = true; changed;) {
      changed = false;
      for (const Equation &equation : equations) {
        FailureOr<bool> tied = tie(equation);
        if (failed(tied))
          return failure();
        changed |= *tied;
      }
      for (Choice &choice : choices)
        if (choice.op && simplified(choice.a) == simplified(choice.b)) {
          substitute(cast<AffineSymbolExpr>(choice.either).getPosition(), simplified(choice.a));
          choice.op->replaceAllUsesWith(ValueRange(choice.op->getOperand(0)));
          choice.op = nullptr;
          changed = true;
        }
    }
    for (const Equation &equation : equations)
      if (AffineExpr a = simplified(equation.a), b = simplified(equation.b); a != b)
        return equation.op->emitError()
               << "expected sizes that agree in every call, got " << text(a) << " and " << text(b)
               << (namedByFile ? "; attn.symbols is given, so attn.dims must name the unknown sizes"
                               : "");
    for (auto [op, expr] : nonNegative)
      if (failed(restrict(op, simplified(expr))))
        return failure();
    rename();
    setBounds();
    for (cf::AssertOp assertion : assertions)
      assertion.erase();
    return success(!hasFailed);
  }

private:
  struct Equation {
    Operation *op;
    AffineExpr a, b;
  };

  /// What assertions say of the elements of an argument.
  struct Bound {
    cf::AssertOp assertion;
    std::optional<int64_t> most;
    bool isNotNegative = false;
  };

  /// The result `either` of `op` is a or b. Once they are known to be equal, a replaces it, and the op is null.
  struct Choice {
    Operation *op;
    AffineExpr either, a, b;
  };

  //===------------------------------------------------------------------===//
  // Sizes as expressions. The first symbols of an expression are the symbols of the function; each further symbol
  // stands for an unknown size.
  //===------------------------------------------------------------------===//

  AffineExpr constant(int64_t value) { return getAffineConstantExpr(value, context); }

  AffineExpr unknown(Value value, int64_t dim) {
    auto [it, isNew] = unknownOf.try_emplace({value, dim}, names.size());
    if (isNew) {
      names.push_back("an unknown size");
      same.push_back(getAffineSymbolExpr(same.size(), context));
    }
    return getAffineSymbolExpr(it->second, context);
  }

  AffineExpr sizeOf(OpFoldResult size) {
    if (auto value = dyn_cast<Value>(size))
      return indexOf(value);
    return constant(cast<IntegerAttr>(cast<Attribute>(size)).getInt());
  }

  /// The expression of `value`, an integer from which a size is computed.
  AffineExpr indexOf(Value value) {
    if (AffineExpr known = exprOf.lookup(value))
      return known;
    return exprOf[value] = computeIndex(value);
  }

  AffineExpr computeIndex(Value value) {
    APInt known;
    if (matchPattern(value, m_ConstantInt(&known)))
      return known.getSignificantBits() <= 64 ? constant(known.getSExtValue()) : unknown(value, -1);
    Operation *op = value.getDefiningOp();
    if (!op)
      return unknown(value, -1);
    auto binary = [&](llvm::function_ref<AffineExpr(AffineExpr, AffineExpr)> combine) {
      return combine(indexOf(op->getOperand(0)), indexOf(op->getOperand(1)));
    };
    AffineExpr none;
    AffineExpr result =
        llvm::TypeSwitch<Operation *, AffineExpr>(op)
            .Case([&](tensor::DimOp dim) {
              std::optional<int64_t> axis = dim.getConstantIndex();
              return axis ? sizeOf(dim.getSource(), *axis) : none;
            })
            .Case([&](arith::AddIOp) {
              return binary([](AffineExpr a, AffineExpr b) { return a + b; });
            })
            .Case([&](arith::SubIOp) {
              return binary([](AffineExpr a, AffineExpr b) { return a - b; });
            })
            .Case([&](arith::MulIOp) {
              return binary([](AffineExpr a, AffineExpr b) { return a * b; });
            })
            .Case<arith::DivSIOp, arith::DivUIOp, arith::FloorDivSIOp>([&](auto) {
              return binary([](AffineExpr a, AffineExpr b) { return a.floorDiv(b); });
            })
            .Case<arith::MaxUIOp, arith::MaxSIOp, arith::MinUIOp, arith::MinSIOp>([&](auto) {
              // torch-mlir writes the size of a broadcast result as the greater one of two sizes, which must be equal.
              AffineExpr either = unknown(value, -1);
              choices.push_back(
                  {op, either, indexOf(op->getOperand(0)), indexOf(op->getOperand(1))});
              return either;
            })
            .Case<arith::IndexCastOp>([&](auto cast) { return indexOf(cast.getIn()); })
            .Case([&](affine::AffineApplyOp apply) {
              AffineMap map = apply.getAffineMap();
              SmallVector<AffineExpr> operands = llvm::map_to_vector(
                  apply.getMapOperands(), [&](Value operand) { return indexOf(operand); });
              ArrayRef<AffineExpr> all(operands);
              return map.getResult(0).replaceDimsAndSymbols(all.take_front(map.getNumDims()),
                                                            all.drop_front(map.getNumDims()));
            })
            .Default([&](Operation *) { return none; });
    return result ? result : unknown(value, -1);
  }

  AffineExpr sizeOf(Value value, int64_t dim) {
    auto type = cast<RankedTensorType>(value.getType());
    if (!type.isDynamicDim(dim))
      return constant(type.getDimSize(dim));
    if (auto argument = dyn_cast<BlockArgument>(value))
      if (argument.getOwner() == &function.front())
        return argumentSize(argument, dim);
    Operation *op = value.getDefiningOp();
    if (!op)
      return unknown(value, dim);
    AffineExpr none;
    AffineExpr result =
        llvm::TypeSwitch<Operation *, AffineExpr>(op)
            .Case([&](tensor::EmptyOp empty) { return sizeOf(empty.getMixedSizes()[dim]); })
            .Case([&](tensor::CastOp cast) { return sizeOf(cast.getSource(), dim); })
            .Case([&](tensor::ExpandShapeOp expand) {
              return sizeOf(expand.getMixedOutputShape()[dim]);
            })
            .Case([&](tensor::CollapseShapeOp collapse) {
              AffineExpr product = constant(1);
              SmallVector<ReassociationIndices> groups = collapse.getReassociationIndices();
              for (int64_t source : groups[dim])
                product = product * sizeOf(collapse.getSrc(), source);
              return product;
            })
            .Case([&](tensor::ExtractSliceOp slice) {
              llvm::SmallBitVector dropped = slice.getDroppedDims();
              int64_t kept = -1, axis = -1;
              while (kept < dim)
                kept += !dropped.test(++axis);
              return sizeOf(slice.getMixedSizes()[axis]);
            })
            .Case([&](tensor::ConcatOp concat) {
              if (dim != int64_t(concat.getDim()))
                return sizeOf(concat.getInputs().front(), dim);
              AffineExpr sum = constant(0);
              for (Value input : concat.getInputs())
                sum = sum + sizeOf(input, dim);
              return sum;
            })
            .Case([&](DestinationStyleOpInterface dps) {
              return sizeOf(dps.getTiedOpOperand(cast<OpResult>(value))->get(), dim);
            })
            .Default([&](Operation *) { return none; });
    return result ? result : unknown(value, dim);
  }

  AffineExpr argumentSize(BlockArgument argument, int64_t dim) {
    auto dims =
        function.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), AttnDialect::kDimsAttr);
    if (dims && dim < int64_t(dims.size()))
      for (auto [i, symbol] : llvm::enumerate(symbols))
        if (dims[dim] == StringAttr::get(context, symbol.getName()))
          return getAffineSymbolExpr(i, context);
    return unknown(argument, dim);
  }

  //===------------------------------------------------------------------===//
  // Requirements of operations
  //===------------------------------------------------------------------===//

  void need(Operation *op, AffineExpr a, AffineExpr b) {
    if (a != b)
      equations.push_back({op, a, b});
  }

  /// Requires that all operand dimensions over which the same loop of `op` runs are equal, and that other indices into
  /// dynamic dimensions, such as i + j, stay in bounds.
  void collect(Operation *op, ValueRange operands, ArrayRef<AffineMap> maps) {
    llvm::SmallMapVector<AffineExpr, AffineExpr, 8> sizes;
    SmallVector<std::tuple<AffineExpr, AffineExpr, unsigned>> computed;
    for (auto [operand, map] : llvm::zip_equal(operands, maps)) {
      if (!isa<RankedTensorType>(operand.getType()))
        continue;
      for (auto [axis, loop] : llvm::enumerate(map.getResults())) {
        if (!isa<AffineDimExpr>(loop)) {
          if (cast<RankedTensorType>(operand.getType()).isDynamicDim(axis))
            computed.push_back({loop, sizeOf(operand, axis), map.getNumDims()});
          continue;
        }
        AffineExpr size = sizeOf(operand, axis);
        auto [it, isNew] = sizes.try_emplace(loop, size);
        need(op, it->second, size);
      }
    }
    for (auto [index, size, numDims] : computed) {
      // With coefficients of at least 0, the last iterations have the greatest index.
      SmallVector<int64_t> coefficients;
      bool isBounded = succeeded(getFlattenedAffineExpr(index, numDims, 0, &coefficients)) &&
                       coefficients.size() == numDims + 1 &&
                       llvm::all_of(coefficients, [](int64_t each) { return each >= 0; });
      AffineExpr most = isBounded ? constant(coefficients.back()) : size;
      for (unsigned dim = 0; isBounded && dim < numDims; ++dim) {
        AffineExpr count = sizes.lookup(getAffineDimExpr(dim, context));
        if (coefficients[dim] != 0)
          most = count ? most + (count - 1) * coefficients[dim] : size;
      }
      nonNegative.push_back({op, size - 1 - most});
    }
  }

  /// Requires that a slice lies in `tensor`. Offsets that clampIndices() clamps may have any value: then it suffices
  /// that the slice fits into the tensor at offset 0.
  void collectSlice(OffsetSizeAndStrideOpInterface slice, Value tensor, bool isRead) {
    for (int64_t dim = 0; dim < cast<RankedTensorType>(tensor.getType()).getRank(); ++dim) {
      AffineExpr offset = sizeOf(slice.getMixedOffsets()[dim]),
                 size = sizeOf(slice.getMixedSizes()[dim]);
      AffineExpr span = (size - 1) * sizeOf(slice.getMixedStrides()[dim]) + 1;
      if (auto value = dyn_cast<Value>(slice.getMixedOffsets()[dim]);
          value && (!isRead || varies(value)))
        offset = constant(0);
      nonNegative.append(
          {{slice, offset}, {slice, size}, {slice, sizeOf(tensor, dim) - offset - span}});
    }
  }

  /// Requires that `condition`, which `assertion` tests, holds in every call. A failure is noted.
  void collect(cf::AssertOp assertion, Value condition) {
    APInt known;
    if (matchPattern(condition, m_ConstantInt(&known)) && known.isOne())
      return;
    if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
      collect(assertion, both.getLhs());
      return collect(assertion, both.getRhs());
    }
    using Predicate = arith::CmpIPredicate;
    auto compare = condition.getDefiningOp<arith::CmpIOp>();
    bool isOnSizes = compare && !varies(compare.getLhs()) && !varies(compare.getRhs()) &&
                     assertion->getParentOp() == function;
    if (isOnSizes) {
      AffineExpr a = indexOf(compare.getLhs()), b = indexOf(compare.getRhs());
      switch (compare.getPredicate()) {
      case Predicate::eq:
        return need(assertion, a, b);
      case Predicate::sle:
      case Predicate::slt:
        std::swap(a, b);
        [[fallthrough]];
      case Predicate::sge:
      case Predicate::sgt: {
        bool isStrict =
            llvm::is_contained({Predicate::slt, Predicate::sgt}, compare.getPredicate());
        nonNegative.push_back({assertion, a - b - int64_t(isStrict)});
        return;
      }
      default:
        break;
      }
    }
    if (!isOnSizes && compare && collectBound(assertion, compare))
      return;
    refuse(assertion, isOnSizes ? "another comparison" : "other elements");
  }

  void refuse(cf::AssertOp assertion, StringRef what) {
    if (!std::exchange(hasFailed, true))
      assertion.emitError() << "expected an assertion that compares sizes, or that bounds the elements of an "
                               "argument to [0, n], got one on "
                            << what << ", with the text '" << assertion.getMsg() << "'";
  }

  /// If `compare` compares each element of an argument with a constant, notes the bound.
  bool collectBound(cf::AssertOp assertion, arith::CmpIOp compare) {
    using Predicate = arith::CmpIPredicate;
    auto op = dyn_cast<linalg::LinalgOp>(assertion->getParentOp());
    Value element = compare.getLhs();
    while (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(element.getDefiningOp()))
      element = element.getDefiningOp()->getOperand(0);
    auto inside = dyn_cast<BlockArgument>(element);
    APInt number;
    if (!op || !inside || inside.getOwner() != op.getBlock() ||
        !matchPattern(compare.getRhs(), m_ConstantInt(&number)) || number.getSignificantBits() > 32)
      return false;
    OpOperand *operand = op.getOpOperandsMatchingBBargs()[inside.getArgNumber()];
    Value tensor = operand->get();
    while (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(tensor.getDefiningOp()))
      tensor = tensor.getDefiningOp()->getOperand(0);
    auto argument = dyn_cast<BlockArgument>(tensor);
    if (!op.getMatchingIndexingMap(operand).isProjectedPermutation() || !argument ||
        argument.getOwner() != &function.front())
      return false;
    Bound &bound = bounds[argument.getArgNumber()];
    bound.assertion = assertion;
    int64_t value = number.getSExtValue();
    switch (compare.getPredicate()) {
    case Predicate::slt:
      bound.most = std::min(bound.most.value_or(value - 1), value - 1);
      return true;
    case Predicate::sle:
      bound.most = std::min(bound.most.value_or(value), value);
      return true;
    case Predicate::sge:
    case Predicate::sgt:
      bound.isNotNegative |= value + (compare.getPredicate() == Predicate::sgt) == 0;
      return true;
    default:
      return false;
    }
  }

  void setBounds() {
    for (auto &[argument, bound] : bounds) {
      if (!bound.isNotNegative || !bound.most || *bound.most < 0 ||
          function.getArgAttr(argument, AttnDialect::kBoundAttr)) {
        refuse(bound.assertion, "another range of elements");
        continue;
      }
      function.setArgAttr(argument, AttnDialect::kBoundAttr,
                          IntegerAttr::get(IntegerType::get(context, 64), *bound.most));
    }
  }

  void collect(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](cf::AssertOp assertion) {
          assertions.push_back(assertion);
          collect(assertion, assertion.getArg());
        })
        .Case([&](linalg::LinalgOp linalgOp) {
          collect(op, op->getOperands(), linalgOp.getIndexingMapsArray());
        })
        .Case([&](AttentionOp attention) {
          auto maps = llvm::to_vector(attention.getIndexingMaps().getAsValueRange<AffineMapAttr>());
          collect(op, op->getOperands().take_front(maps.size()), maps);
        })
        .Case([&](linalg::SoftmaxOp softmax) {
          AffineMap all = AffineMap::getMultiDimIdentityMap(softmax.getInputOperandRank(), context);
          collect(op, op->getOperands(), {all, all});
        })
        .Case([&](tensor::ExtractSliceOp slice) {
          collectSlice(slice, slice.getSource(), /*isRead=*/true);
        })
        .Case<tensor::InsertSliceOp, tensor::ParallelInsertSliceOp>([&](auto slice) {
          collectSlice(slice, slice.getDest(), /*isRead=*/false);
          // The source has the size of the slice in each dimension that it does not drop.
          llvm::SmallBitVector dropped = slice.getDroppedDims();
          for (int64_t axis = 0, dim = 0; axis < int64_t(dropped.size()); ++axis)
            if (!dropped.test(axis))
              need(op, sizeOf(slice.getSource(), dim++), sizeOf(slice.getMixedSizes()[axis]));
        })
        .Case([&](tensor::ConcatOp concat) {
          for (Value input : concat.getInputs().drop_front())
            for (int64_t dim = 0; dim < concat.getRank(); ++dim)
              if (dim != int64_t(concat.getDim()))
                need(op, sizeOf(concat.getInputs().front(), dim), sizeOf(input, dim));
        })
        .Case([&](tensor::CastOp cast) {
          auto from = dyn_cast<RankedTensorType>(cast.getSource().getType());
          auto to = dyn_cast<RankedTensorType>(cast.getType());
          for (int64_t dim = 0; from && to && dim < to.getRank(); ++dim)
            if (!to.isDynamicDim(dim))
              need(op, sizeOf(cast.getSource(), dim), constant(to.getDimSize(dim)));
        });
  }

  //===------------------------------------------------------------------===//
  // Conclusions about the symbols
  //===------------------------------------------------------------------===//

  AffineExpr simplified(AffineExpr expr) {
    return simplifyAffineExpr(expr.replaceSymbols(same), 0, same.size());
  }

  std::string text(AffineExpr expr) {
    std::string result;
    llvm::raw_string_ostream os(result);
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      os << constant.getValue();
    else if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
      os << names[symbol.getPosition()];
    else {
      auto binary = cast<AffineBinaryOpExpr>(expr);
      StringRef sign = binary.getKind() == AffineExprKind::Add        ? " + "
                       : binary.getKind() == AffineExprKind::Mul      ? " * "
                       : binary.getKind() == AffineExprKind::FloorDiv ? " floordiv "
                       : binary.getKind() == AffineExprKind::CeilDiv  ? " ceildiv "
                                                                      : " mod ";
      os << "(" << text(binary.getLHS()) << sign << text(binary.getRHS()) << ")";
    }
    return result;
  }

  /// The position of `expr` among the function's symbols; none if `expr` is not such a symbol.
  std::optional<unsigned> symbolIn(AffineExpr expr) {
    auto symbol = dyn_cast<AffineSymbolExpr>(expr);
    return symbol && symbol.getPosition() < symbols.size()
               ? std::optional<unsigned>(symbol.getPosition())
               : std::nullopt;
  }

  /// If `equation` determines a symbol, replaces the symbol in all sizes and returns true.
  FailureOr<bool> tie(const Equation &equation) {
    AffineExpr a = simplified(equation.a), b = simplified(equation.b);
    std::optional<unsigned> first = symbolIn(a), second = symbolIn(b);
    if (a == b || (!first && !second))
      return false;
    if (first && second) {
      if (namedByFile)
        return equation.op->emitError()
               << "expected one symbol for sizes that agree in every call, got " << text(a)
               << " and " << text(b);
      substitute(std::max(*first, *second), std::min(a, b, [&](AffineExpr x, AffineExpr y) {
                   return *symbolIn(x) < *symbolIn(y);
                 }));
      return true;
    }
    unsigned symbol = first ? *first : *second;
    auto size = dyn_cast<AffineConstantExpr>(first ? b : a);
    if (!size)
      return false;
    int64_t value = size.getValue();
    SymbolAttr known = symbols[symbol];
    if (value < known.getMin() || value > known.getMax())
      return equation.op->emitError()
             << "expected a size of '" << known.getName() << "' in [" << known.getMin() << ", "
             << known.getMax() << "], got " << value;
    symbols[symbol] = SymbolAttr::get(context, known.getName(), value, value);
    substitute(symbol, size);
    return true;
  }

  /// Ensures that `expr` is never negative. If the ranges of its symbols allow a negative value, narrows the range of
  /// its only symbol, or fails if it has several.
  LogicalResult restrict(Operation *op, AffineExpr expr) {
    auto refuse = [&] {
      return op->emitError() << (isa<cf::AssertOp>(op)
                                     ? "expected an assertion that is true in every call, got one on "
                                     : "expected a slice inside its tensor in every call, got ")
                             << text(expr) << ", which may be negative";
    };
    // A product of two symbols cannot be flattened, and the least int64_t cannot be negated.
    SmallVector<int64_t> coefficients;
    if (!expr.isPureAffine() ||
        failed(getFlattenedAffineExpr(expr, 0, same.size(), &coefficients)) ||
        coefficients.size() != same.size() + 1 ||
        llvm::is_contained(coefficients, std::numeric_limits<int64_t>::min()))
      return refuse();
    int64_t least = coefficients.back();
    std::optional<unsigned> only;
    bool hasOthers = false;
    for (auto [i, coefficient] : llvm::enumerate(ArrayRef(coefficients).drop_back())) {
      if (coefficient == 0)
        continue;
      if (i >= symbols.size())
        return refuse();
      hasOthers = only.has_value();
      only = i;
      int64_t term;
      if (llvm::MulOverflow(coefficient,
                            coefficient > 0 ? symbols[i].getMin() : symbols[i].getMax(), term) ||
          llvm::AddOverflow(least, term, least))
        return refuse();
    }
    if (least >= 0)
      return success();
    if (!only || hasOthers)
      return refuse();
    SymbolAttr known = symbols[*only];
    int64_t coefficient = coefficients[*only], constant = coefficients.back();
    int64_t min = known.getMin(), max = known.getMax();
    if (coefficient > 0)
      min = llvm::divideCeilSigned(-constant, coefficient);
    else
      max = llvm::divideFloorSigned(constant, -coefficient);
    if (min > max)
      return refuse();
    symbols[*only] = SymbolAttr::get(context, known.getName(), min, max);
    return success();
  }

  void substitute(unsigned symbol, AffineExpr by) {
    AffineExpr old = getAffineSymbolExpr(symbol, context);
    for (AffineExpr &expr : same)
      expr = expr.replace(old, by);
  }

  void rename() {
    if (symbols.empty())
      return;
    // Keep a symbol that stands for itself or for a number. Drop a symbol that another one replaced.
    SmallVector<Attribute> kept;
    llvm::DenseMap<Attribute, Attribute> renamed;
    for (auto [i, symbol] : llvm::enumerate(symbols)) {
      std::optional<unsigned> other = symbolIn(same[i]);
      renamed[StringAttr::get(context, symbol.getName())] =
          StringAttr::get(context, symbols[other.value_or(i)].getName());
      if (other.value_or(i) == i)
        kept.push_back(symbol);
    }
    auto rename = [&](ArrayAttr dims) {
      return ArrayAttr::get(context, llvm::map_to_vector(dims, [&](Attribute dim) {
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
    function->setAttr(AttnDialect::kSymbolsAttr, ArrayAttr::get(context, kept));
  }

  func::FuncOp function;
  MLIRContext *context;
  bool namedByFile;
  SmallVector<SymbolAttr> symbols;
  /// For each symbol of an expression, the expression that it is known to equal. At first, this is the symbol itself.
  SmallVector<AffineExpr> same;
  /// For each symbol of an expression, its name in error messages.
  SmallVector<std::string> names;
  llvm::DenseMap<Value, AffineExpr> exprOf;
  llvm::DenseMap<std::pair<Value, int64_t>, unsigned> unknownOf;
  SmallVector<Choice> choices;
  SmallVector<cf::AssertOp> assertions;
  llvm::MapVector<unsigned, Bound> bounds;
  bool hasFailed = false;
  SmallVector<Equation> equations;
  SmallVector<std::pair<Operation *, AffineExpr>> nonNegative;
};

} // namespace

LogicalResult attn::tieSizes(func::FuncOp function, bool namedByFile) {
  return SizeTies(function, namedByFile).run();
}
