//===- Tables.cpp - the constants that describe a library ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Each function below writes one struct of attn_kernel.h, field by field in its order.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Tables.h"

#include "runtime/attn_kernel.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"

using namespace attn;

static constexpr llvm::StringLiteral kManifest = "attn.manifest";

namespace {
class TableBuilder {
public:
  TableBuilder(llvm::Module &module, llvm::ArrayRef<Weight> embedded)
      : module(module), embedded(embedded), context(module.getContext()),
        pointer(llvm::PointerType::get(context, 0)) {}

  llvm::Constant *library(const LibraryInfo &info) {
    std::vector<llvm::Constant *> functions;
    for (const FunctionInfo &function : info.functions)
      functions.push_back(this->function(function));
    return global("attn.library",
                  structure({i32(ATTN_ABI_VERSION), i32(sizeof(attn_library_info)), text(info.name),
                             text(info.compiler), text(writeManifest(info), kManifest),
                             i32(info.functions.size()), i32(0), array(functions)}));
  }

private:
  llvm::Constant *integer(unsigned bits, int64_t value) {
    return llvm::ConstantInt::getSigned(llvm::IntegerType::get(context, bits), value);
  }
  llvm::Constant *i8(int64_t value) { return integer(8, value); }
  llvm::Constant *i32(int64_t value) { return integer(32, value); }
  llvm::Constant *i64(int64_t value) { return integer(64, value); }
  llvm::Constant *null() { return llvm::ConstantPointerNull::get(pointer); }

  llvm::Constant *structure(llvm::ArrayRef<llvm::Constant *> fields) {
    return llvm::ConstantStruct::getAnon(context, fields);
  }

  llvm::Constant *global(const llvm::Twine &name, llvm::Constant *value) {
    auto *variable = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                              llvm::GlobalValue::PrivateLinkage, value, name);
    variable->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return variable;
  }

  llvm::Constant *text(llvm::StringRef value, const llvm::Twine &name = "attn.text") {
    return global(name, llvm::ConstantDataArray::getString(context, value));
  }

  /// Null if `elements` is empty.
  llvm::Constant *array(llvm::ArrayRef<llvm::Constant *> elements) {
    if (elements.empty())
      return null();
    auto *type = llvm::ArrayType::get(elements.front()->getType(), elements.size());
    return global("attn.table", llvm::ConstantArray::get(type, elements));
  }

  llvm::Constant *dim(DimInfo info) {
    return structure({i64(info.size), i32(info.symbol), i32(0)});
  }

  llvm::Constant *tensor(const TensorInfo &info) {
    std::vector<llvm::Constant *> shape;
    for (DimInfo size : info.shape)
      shape.push_back(dim(size));
    return structure({text(info.name), array(shape), i32(shape.size()), i8(info.type->code),
                      i8(info.type->bits), i8(info.bound.has_value()), i8(info.inOut),
                      dim(info.bound.value_or(DimInfo{0, -1}))});
  }

  llvm::Constant *tensors(llvm::ArrayRef<TensorInfo> infos) {
    std::vector<llvm::Constant *> table;
    for (const TensorInfo &info : infos)
      table.push_back(tensor(info));
    return array(table);
  }

  /// The data of each weight, or null if no weights are embedded. Functions that share a weight share its data.
  llvm::Constant *weights(const FunctionInfo &function) {
    std::vector<llvm::Constant *> table;
    for (const TensorInfo &info : function.weights) {
      const Weight *weight =
          llvm::find_if(embedded, [&](const Weight &weight) { return weight.name == info.name; });
      if (weight == embedded.end())
        return null();
      llvm::Constant *&data = weightData[weight->name];
      if (!data) {
        llvm::StringRef bytes(weight->data.data(), weight->data.size());
        data = global("attn.weight",
                      llvm::ConstantDataArray::getString(context, bytes, /*AddNull=*/false));
        llvm::cast<llvm::GlobalVariable>(data)->setAlignment(llvm::Align(ATTN_ALIGNMENT));
      }
      table.push_back(data);
    }
    return array(table);
  }

  llvm::Constant *variant(const FunctionInfo &function, const VariantInfo &info) {
    auto code = [&](const llvm::Twine &stage) {
      return module.getFunction((function.name + stage + "." + info.level).str());
    };
    llvm::Constant *pack = function.weights.empty() ? null() : code(".pack");
    return structure({text(info.level), code(""), code(".workspace"), pack, i64(info.packedBytes),
                      i64(info.packedHash), text(info.workspace), text(info.report),
                      text(info.schedules)});
  }

  static attn_formula_op stepOf(Formula::Op op) {
    using Op = Formula::Op;
    switch (op) {
    case Op::Number:
      return ATTN_FORMULA_NUMBER;
    case Op::Name:
      return ATTN_FORMULA_SYMBOL;
    case Op::Add:
      return ATTN_FORMULA_ADD;
    case Op::Subtract:
      return ATTN_FORMULA_SUBTRACT;
    case Op::Multiply:
      return ATTN_FORMULA_MULTIPLY;
    case Op::Divide:
      return ATTN_FORMULA_DIVIDE;
    case Op::Modulo:
      return ATTN_FORMULA_MODULO;
    case Op::Max:
      return ATTN_FORMULA_MAX;
    case Op::Min:
      return ATTN_FORMULA_MIN;
    case Op::Equal:
      return ATTN_FORMULA_EQUAL;
    case Op::Less:
      return ATTN_FORMULA_LESS;
    case Op::AtMost:
      return ATTN_FORMULA_AT_MOST;
    case Op::Not:
      return ATTN_FORMULA_NOT;
    case Op::And:
      return ATTN_FORMULA_AND;
    case Op::Or:
      return ATTN_FORMULA_OR;
    }
    llvm_unreachable("every operation returns");
  }

  /// Adds the steps in postfix order: the operands of an operation, then the operation.
  void addSteps(const FunctionInfo &info, const Formula &formula,
                std::vector<llvm::Constant *> &steps) {
    for (const Formula &operand : formula.operands)
      addSteps(info, operand, steps);
    bool isName = formula.op == Formula::Op::Name;
    int64_t operand = isName ? info.findSymbol(formula.name) : formula.number;
    steps.push_back(structure({i64(operand), i32(stepOf(formula.op)), i32(0)}));
  }

  llvm::Constant *symbol(const FunctionInfo &function, const SymbolInfo &info) {
    std::vector<llvm::Constant *> steps;
    if (info.formula)
      addSteps(function, *info.formula, steps);
    return structure({text(info.name), i64(info.min), i64(info.max), array(steps),
                      i32(steps.size()), i32(info.formula && info.formula->isCondition())});
  }

  llvm::Constant *function(const FunctionInfo &info) {
    std::vector<llvm::Constant *> symbols, variants;
    for (const SymbolInfo &symbol : info.symbols)
      symbols.push_back(this->symbol(info, symbol));
    for (const VariantInfo &variant : info.variants)
      variants.push_back(this->variant(info, variant));
    return structure({text(info.name), i32(info.inputs.size()), i32(info.outputs.size()),
                      i32(info.weights.size()), i32(symbols.size()), i32(variants.size()), i32(0),
                      tensors(info.inputs), tensors(info.outputs), tensors(info.weights),
                      array(symbols), array(variants), weights(info)});
  }

  llvm::Module &module;
  llvm::ArrayRef<Weight> embedded;
  llvm::StringMap<llvm::Constant *> weightData;
  llvm::LLVMContext &context;
  llvm::PointerType *pointer;
};
} // namespace

std::string attn::queryName(llvm::StringRef libraryName) {
  return "attn_query_" + libraryName.str();
}

void attn::addTables(llvm::Module &module, const LibraryInfo &library,
                     llvm::ArrayRef<Weight> embedded) {
  for (llvm::GlobalObject &object : module.global_objects())
    if (!object.isDeclaration())
      object.setLinkage(llvm::GlobalValue::InternalLinkage);
  llvm::Constant *table = TableBuilder(module, embedded).library(library);
  auto *type = llvm::FunctionType::get(table->getType(), /*isVarArg=*/false);
  auto *query = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                       queryName(library.name), module);
  query->setDoesNotThrow();
  query->setUWTableKind(llvm::UWTableKind::Async);
  llvm::IRBuilder<>(llvm::BasicBlock::Create(module.getContext(), "", query)).CreateRet(table);
}

llvm::Expected<LibraryInfo> attn::readTables(const llvm::Module &module) {
  const llvm::GlobalVariable *manifest =
      module.getGlobalVariable(kManifest, /*AllowInternal=*/true);
  const auto *text = manifest && manifest->hasInitializer()
                         ? llvm::dyn_cast<llvm::ConstantDataArray>(manifest->getInitializer())
                         : nullptr;
  if (!text || !text->isCString())
    return llvm::createStringError("expected the LLVM IR of an attn library, got none named '" +
                                   kManifest + "'");
  return readManifest(text->getAsCString());
}
