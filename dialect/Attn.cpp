//===- Attn.cpp - the attn dialect -----------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "dialect/Symbols.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

#include "dialect/Dialect.cpp.inc"
#include "dialect/Enums.cpp.inc"

/// Parses the masks of #attn.and. There may be none, but TableGen's parser of an array parameter expects at least one
/// element.
static ParseResult parseMasks(AsmParser &parser, SmallVectorImpl<Attribute> &masks) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&] { return parser.parseAttribute(masks.emplace_back()); });
}

static void printMasks(AsmPrinter &printer, ArrayRef<Attribute> masks) {
  printer << '[';
  llvm::interleaveComma(masks, printer);
  printer << ']';
}

#define GET_ATTRDEF_CLASSES
#include "dialect/Attributes.cpp.inc"

namespace {
/// Keeps the constants of a score region in the region, because people read a stage file one op at a time, and because
/// a region that uses no value from outside can be copied to any tile.
struct KeepConstantsInRegion : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *region) const final { return true; }
};
} // namespace

void AttnDialect::initialize() {
  addInterfaces<KeepConstantsInRegion>();
  attachSizes(getContext());
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/Attributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/Ops.cpp.inc"
      >();
}

Operation *AttnDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                            Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult attn::verifyStage(ModuleOp module, StringRef stage, Location file) {
  auto said = module->getAttrOfType<StringAttr>(AttnDialect::kStageAttr);
  if (said && said.getValue() != stage)
    return emitError(file) << "expected a file of stage " << stage << ", got one of stage "
                           << said.getValue();
  return success();
}

/// Whether the body computes c + a * b if a is not 0, and c otherwise.
static bool addsProductsExceptZeros(Block &body) {
  auto isOrWidens = [](Value value, Value factor) {
    auto widened = value.getDefiningOp<arith::ExtFOp>();
    return value == factor || (widened && widened.getIn() == factor);
  };
  if (body.getNumArguments() != 3 || body.getTerminator()->getNumOperands() != 1)
    return false;
  Value a = body.getArgument(0), b = body.getArgument(1), c = body.getArgument(2);
  auto kept = body.getTerminator()->getOperand(0).getDefiningOp<arith::SelectOp>();
  if (!kept || kept.getFalseValue() != c)
    return false;
  auto isLive = kept.getCondition().getDefiningOp<arith::CmpFOp>();
  auto sum = kept.getTrueValue().getDefiningOp<arith::AddFOp>();
  auto product = sum ? sum.getRhs().getDefiningOp<arith::MulFOp>() : nullptr;
  return isLive && isLive.getPredicate() == arith::CmpFPredicate::UNE && isLive.getLhs() == a &&
         matchPattern(isLive.getRhs(), m_AnyZeroFloat()) && sum.getLhs() == c && product &&
         isOrWidens(product.getLhs(), a) && isOrWidens(product.getRhs(), b);
}

/// Verifies an attribute of the dialect on an op, such as a module, a function or a product.
LogicalResult AttnDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kSkipsZerosAttr) {
    if (!isa<UnitAttr>(attribute.getValue()) || op->getNumRegions() != 1 ||
        op->getRegion(0).empty() || !addsProductsExceptZeros(op->getRegion(0).front()))
      return op->emitError() << "expected '" << name
                             << "' on an op that adds products except where the first factor is 0";
    return success();
  }
  if (name == kVersionAttr) {
    auto version = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!version || version.getInt() > kVersion)
      return op->emitError() << "expected '" << name << "' of at most " << kVersion << ", got "
                             << attribute.getValue();
    return success();
  }
  if (name == kStageAttr) {
    if (!isa<StringAttr>(attribute.getValue()))
      return op->emitError() << "expected '" << name << "' to be a string, got "
                             << attribute.getValue();
    return success();
  }
  if (name == kReportAttr) {
    if (!isa<DictionaryAttr>(attribute.getValue()))
      return op->emitError() << "expected '" << name << "' to be a dictionary, got "
                             << attribute.getValue();
    return success();
  }
  if (name == kOneQueryAttr) {
    if (!isa<UnitAttr>(attribute.getValue()) || !isa<AttentionOp>(op))
      return op->emitError() << "expected '" << name << "' without a value, on an attn.attention";
    return success();
  }
  if (name == kBlockAttr) {
    if (!isa<BlockAttr>(attribute.getValue()))
      return op->emitError() << "expected '" << name << "' to be an #attn.block, got "
                             << attribute.getValue();
    return success();
  }
  if (name == kBlocksAttr) {
    auto blocks = dyn_cast<DictionaryAttr>(attribute.getValue());
    bool isValid = blocks && llvm::all_of(blocks, [](NamedAttribute block) {
                     return llvm::is_contained({"scores", "values", "masked"}, block.getName()) &&
                            isa<BlockAttr>(block.getValue());
                   });
    if (!isValid)
      return op->emitError() << "expected '" << name
                             << "' to be a dictionary of #attn.block with the names scores, values "
                                "and masked, got "
                             << attribute.getValue();
    return success();
  }
  if (name == kTaskAttr) {
    if (!isa<TaskAttr>(attribute.getValue()))
      return op->emitError() << "expected '" << name << "' to be an #attn.task, got "
                             << attribute.getValue();
    return success();
  }
  if (name == kComputeAttr) {
    auto type = dyn_cast<TypeAttr>(attribute.getValue());
    if (!type || !type.getValue().isBF16())
      return op->emitError() << "expected '" << name << "' to be bf16, got "
                             << attribute.getValue();
    return success();
  }
  if (name == kTargetAttr) {
    if (!isa<TargetInterface>(attribute.getValue()))
      return op->emitError() << "expected '" << name << "' to be a target such as #attn.cpu, got "
                             << attribute.getValue();
    return success();
  }
  if (name == kTargetsAttr) {
    auto targets = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!targets || !llvm::all_of(targets, llvm::IsaPred<TargetInterface>))
      return op->emitError() << "expected '" << name
                             << "' to be an array of targets such as #attn.cpu, got "
                             << attribute.getValue();
    return success();
  }
  if (name == kSymbolsAttr) {
    auto symbols = dyn_cast<ArrayAttr>(attribute.getValue());
    if (!symbols || !llvm::all_of(symbols, llvm::IsaPred<SymbolAttr>))
      return op->emitError() << "expected '" << name << "' to be an array of #attn.symbol, got "
                             << attribute.getValue();
    return success();
  }
  return success();
}

/// Verifies that `attn.dims` of an argument or a result has a symbol of the function for each dynamic dimension, and ""
/// for each static one.
static LogicalResult verifyDims(Operation *op, Type type, NamedAttribute attribute) {
  if (attribute.getName() != AttnDialect::kDimsAttr)
    return success();
  auto shaped = dyn_cast<ShapedType>(type);
  auto dims = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!shaped || !shaped.hasRank() || !dims || int64_t(dims.size()) != shaped.getRank() ||
      !llvm::all_of(dims, llvm::IsaPred<StringAttr>))
    return op->emitError() << "expected '" << attribute.getName().getValue()
                           << "' to hold one string for each dimension of " << type << ", got "
                           << attribute.getValue();
  auto symbols = op->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr);
  for (int64_t i = 0; i < shaped.getRank(); ++i) {
    StringRef dim = cast<StringAttr>(dims[i]).getValue();
    if (dim.empty() != !shaped.isDynamicDim(i))
      return op->emitError() << "expected a symbol for exactly the dynamic dimensions of " << type
                             << ", got " << attribute.getValue();
    bool known = symbols && llvm::any_of(symbols.getAsRange<SymbolAttr>(), [&](SymbolAttr symbol) {
                   return symbol.getName() == dim;
                 });
    if (!dim.empty() && !known)
      return op->emitError() << "expected symbol '" << dim << "' among '"
                             << AttnDialect::kSymbolsAttr << "'";
  }
  return success();
}

/// Verifies that `attn.bound` and `attn.below` of an argument are sizes or symbols of the function, and that the
/// elements of the argument are integers. A negative number as `attn.below` says that all elements are positive.
static LogicalResult verifyBound(Operation *op, Type type, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name != AttnDialect::kBoundAttr && name != AttnDialect::kBelowAttr)
    return success();
  auto shaped = dyn_cast<ShapedType>(type);
  auto element = shaped ? dyn_cast<IntegerType>(shaped.getElementType()) : nullptr;
  if (!element || !llvm::is_contained({8, 16, 32, 64}, element.getWidth()) || !element.isSignless())
    return op->emitError() << "expected '" << name << "' on a tensor of i8, i16, i32 or i64, got "
                           << type;
  if (auto size = dyn_cast<IntegerAttr>(attribute.getValue());
      size && (size.getValue().isNonNegative() || name == AttnDialect::kBelowAttr))
    return success();
  auto symbol = dyn_cast<StringAttr>(attribute.getValue());
  auto symbols = op->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr);
  if (symbol && symbols && llvm::any_of(symbols.getAsRange<SymbolAttr>(), [&](SymbolAttr known) {
        return known.getName() == symbol.getValue();
      }))
    return success();
  return op->emitError() << "expected '" << name << "' to be a size or one of '"
                         << AttnDialect::kSymbolsAttr << "', got " << attribute.getValue();
}

static LogicalResult verifyUnsigned(Operation *op, Type type, NamedAttribute attribute) {
  if (attribute.getName() != AttnDialect::kUnsignedAttr ||
      getElementTypeOrSelf(type).isSignlessInteger(8))
    return success();
  return op->emitError() << "expected '" << AttnDialect::kUnsignedAttr
                         << "' on a tensor of i8, got " << type;
}

std::optional<unsigned> attn::getInOutResult(FunctionOpInterface function, unsigned number) {
  auto result = function.getArgAttrOfType<IntegerAttr>(number, AttnDialect::kInOutAttr);
  return result ? std::optional<unsigned>(result.getInt()) : std::nullopt;
}

std::optional<unsigned> attn::getInOutArgument(FunctionOpInterface function, unsigned number) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (getInOutResult(function, i) == number)
      return i;
  return std::nullopt;
}

/// Verifies that `attn.in_out` of an argument is the number of a result of the same type, that no other argument has
/// this number, and that the argument is not a weight.
static LogicalResult verifyInOut(FunctionOpInterface function, unsigned index,
                                 NamedAttribute attribute) {
  Type type = function.getArgumentTypes()[index];
  if (attribute.getName() != AttnDialect::kInOutAttr || isa<BaseMemRefType>(type))
    return success();
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!number || !number.getType().isSignlessInteger(64) || number.getInt() < 0 ||
      number.getInt() >= int64_t(function.getNumResults()))
    return function.emitError() << "expected '" << AttnDialect::kInOutAttr
                                << "' to be the number of a result, got " << attribute.getValue();
  Type result = function.getResultTypes()[number.getInt()];
  if (result != type)
    return function.emitError() << "expected a result of type " << type << " for the '"
                                << AttnDialect::kInOutAttr << "' of argument " << index << ", got "
                                << result;
  if (function.getArgAttr(index, AttnDialect::kWeightAttr))
    return function.emitError() << "expected no weight with '" << AttnDialect::kInOutAttr
                                << "', got argument " << index;
  if (unsigned first = *getInOutArgument(function, number.getInt()); first != index)
    return function.emitError() << "expected one argument for result " << number.getInt()
                                << ", got arguments " << first << " and " << index;
  return success();
}

LogicalResult AttnDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  Type type = function.getArgumentTypes()[index];
  if (attribute.getName() == AttnDialect::kBelowAttr &&
      !function.getArgAttr(index, AttnDialect::kBoundAttr))
    return op->emitError() << "expected '" << AttnDialect::kBoundAttr << "' beside '"
                           << AttnDialect::kBelowAttr << "'";
  return failure(failed(verifyDims(op, type, attribute)) ||
                 failed(verifyBound(op, type, attribute)) ||
                 failed(verifyUnsigned(op, type, attribute)) ||
                 failed(verifyInOut(function, index, attribute)));
}

LogicalResult AttnDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                       NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return success();
  Type type = function.getResultTypes()[index];
  return failure(failed(verifyDims(op, type, attribute)) ||
                 failed(verifyUnsigned(op, type, attribute)));
}
