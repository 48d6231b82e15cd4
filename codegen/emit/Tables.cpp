//===- Tables.cpp - the constants that describe a library ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Each function below writes one struct of attn_kernel.h. Every field gets the offset that C gives it, so only
// attn_kernel.h states the order of the fields.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Tables.h"

#include "runtime/attn_kernel.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"

#include <cstddef>

using namespace attn;

static constexpr llvm::StringLiteral kManifest = "attn.manifest";

static_assert(sizeof(void *) == 8,
              "tables have the struct layouts of the compiler, and targets have 64-bit pointers");

namespace {
/// One field of a struct: its offset and size in C, in bytes, and its value.
struct Field {
  size_t offset, bytes;
  llvm::Constant *value;
};

/// The field `name` of the struct T with `value`.
#define FIELD(name, value)                                                                         \
  Field { offsetof(T, name), sizeof(T::name), value }

class TableBuilder {
public:
  TableBuilder(llvm::Module &module, llvm::ArrayRef<Weight> embedded)
      : module(module), embedded(embedded), context(module.getContext()),
        pointer(llvm::PointerType::get(context, 0)) {}

  llvm::Constant *library(const LibraryInfo &info) {
    std::vector<llvm::Constant *> functions;
    for (const FunctionInfo &function : info.functions)
      functions.push_back(this->function(function));
    using T = attn_library_info;
    return global(
        "attn.library",
        structure(sizeof(T),
                  {FIELD(abi_version, i32(ATTN_ABI_VERSION)), FIELD(struct_bytes, i32(sizeof(T))),
                   FIELD(name, text(info.name)), FIELD(compiler, text(info.compiler)),
                   FIELD(manifest, text(writeManifest(info), kManifest)),
                   FIELD(num_functions, i32(info.functions.size())),
                   FIELD(functions, array(functions))}),
        llvm::Align::Of<T>());
  }

private:
  llvm::Constant *integer(unsigned bits, int64_t value) {
    return llvm::ConstantInt::getSigned(llvm::IntegerType::get(context, bits), value);
  }
  llvm::Constant *i8(int64_t value) { return integer(8, value); }
  llvm::Constant *i32(int64_t value) { return integer(32, value); }
  llvm::Constant *i64(int64_t value) { return integer(64, value); }
  llvm::Constant *null() { return llvm::ConstantPointerNull::get(pointer); }

  /// A struct of `bytes` bytes. Bytes that belong to no field are 0.
  llvm::Constant *structure(size_t bytes, llvm::SmallVector<Field> fields) {
    llvm::sort(fields, [](const Field &a, const Field &b) { return a.offset < b.offset; });
    fields.push_back({bytes, 0, nullptr});
    llvm::SmallVector<llvm::Constant *> values;
    size_t end = 0;
    for (const Field &field : fields) {
      assert(field.offset >= end && "fields overlap");
      if (field.offset > end) {
        auto *gap = llvm::ArrayType::get(llvm::Type::getInt8Ty(context), field.offset - end);
        values.push_back(llvm::Constant::getNullValue(gap));
      }
      end = field.offset + field.bytes;
      if (!field.value)
        continue;
      assert(module.getDataLayout().getTypeAllocSize(field.value->getType()) == field.bytes &&
             "a value has the size of its field");
      values.push_back(field.value);
    }
    return llvm::ConstantStruct::getAnon(context, values, /*Packed=*/true);
  }

  llvm::Constant *global(const llvm::Twine &name, llvm::Constant *value,
                         llvm::MaybeAlign alignment = std::nullopt) {
    auto *variable = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                              llvm::GlobalValue::PrivateLinkage, value, name);
    variable->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    variable->setAlignment(alignment);
    return variable;
  }

  llvm::Constant *text(llvm::StringRef value, const llvm::Twine &name = "attn.text") {
    return global(name, llvm::ConstantDataArray::getString(context, value));
  }

  /// The address of an array of `elements`, or null if `elements` is empty.
  llvm::Constant *array(llvm::ArrayRef<llvm::Constant *> elements) {
    if (elements.empty())
      return null();
    auto *type = llvm::ArrayType::get(elements.front()->getType(), elements.size());
    return global("attn.table", llvm::ConstantArray::get(type, elements),
                  llvm::Align::Of<void *>());
  }

  llvm::Constant *dim(DimInfo info, int32_t below = 0) {
    using T = attn_dim_info;
    return structure(sizeof(T), {FIELD(size, i64(info.size)), FIELD(symbol, i32(info.symbol)),
                                 FIELD(below, i32(below))});
  }

  llvm::Constant *tensor(const TensorInfo &info) {
    std::vector<llvm::Constant *> shape;
    for (DimInfo size : info.shape)
      shape.push_back(dim(size));
    bool isSymbol = info.below.symbol >= 0;
    using Limits = std::numeric_limits<int32_t>;
    int32_t below = isSymbol ? info.below.symbol
                             : std::clamp<int64_t>(info.below.size, -Limits::max(), Limits::max());
    using T = attn_tensor_info;
    return structure(sizeof(T),
                     {FIELD(name, text(info.name)), FIELD(shape, array(shape)),
                      FIELD(rank, i32(shape.size())), FIELD(dtype_code, i8(info.type->code)),
                      FIELD(dtype_bits, i8(info.type->bits)),
                      FIELD(bounded, i8(!info.bound ? 0
                                        : isSymbol  ? 2
                                                    : 1)),
                      FIELD(in_out, i8(info.inOut)),
                      FIELD(bound, dim(info.bound.value_or(DimInfo{0, -1}), below))});
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

  llvm::Constant *maps(llvm::ArrayRef<TensorMapInfo> infos) {
    std::vector<llvm::Constant *> table;
    using T = attn_tensor_map_info;
    for (const TensorMapInfo &info : infos)
      table.push_back(
          structure(sizeof(T), {FIELD(offset, i64(info.offset)), FIELD(rank, i32(info.rank)),
                                FIELD(dim, i32(info.dim)), FIELD(rows, i32(info.rows)),
                                FIELD(element_bytes, i32(info.bytes))}));
    return array(table);
  }

  llvm::Constant *kernels(llvm::ArrayRef<KernelInfo> infos) {
    std::vector<llvm::Constant *> table;
    using T = attn_kernel_info;
    for (const KernelInfo &info : infos)
      table.push_back(
          structure(sizeof(T),
                    {FIELD(name, text(info.name)), FIELD(threads, i64(info.threads)),
                     FIELD(shared_bytes, i64(info.shared)), FIELD(context_bytes, i64(info.context)),
                     FIELD(num_maps, i32(info.maps.size())), FIELD(blocks, i32(info.blocks)),
                     FIELD(maps, maps(info.maps))}));
    return array(table);
  }

  llvm::Constant *offsets(llvm::ArrayRef<int64_t> offsets) {
    std::vector<llvm::Constant *> table;
    for (int64_t offset : offsets)
      table.push_back(i64(offset));
    return array(table);
  }

  llvm::Constant *variant(const FunctionInfo &function, const VariantInfo &info) {
    auto code = [&](const llvm::Twine &stage) {
      return module.getFunction((function.name + stage + "." + info.level).str());
    };
    llvm::Constant *pack = function.weights.empty() ? null() : code(".pack");
    // The numbers of DLPack's device types.
    static constexpr int32_t kCPU = 1, kCUDA = 2;
    bool isOnGpu = !info.kernels.empty();
    llvm::Constant *image =
        isOnGpu ? module.getGlobalVariable("kernels." + info.level, /*AllowInternal=*/true)
                : null();
    using T = attn_variant_info;
    return structure(
        sizeof(T),
        {FIELD(level, text(info.level)), FIELD(features, text(llvm::join(info.features, " "))),
         FIELD(run, code("")), FIELD(workspace, code(".workspace")), FIELD(pack, pack),
         FIELD(packed_bytes, i64(info.packedBytes)), FIELD(packed_offsets, offsets(info.packedOffsets)),
         FIELD(num_packed, i32(info.packedOffsets.empty() ? 0 : info.packedOffsets.size() - 1)),
         FIELD(packed_hash, i64(info.packedHash)),
         FIELD(workspace_text, text(info.workspace)), FIELD(report, text(info.report)),
         FIELD(schedules, text(info.schedules)), FIELD(device_type, i32(isOnGpu ? kCUDA : kCPU)),
         FIELD(num_kernels, i32(info.kernels.size())), FIELD(kernels, kernels(info.kernels)),
         FIELD(image, image)});
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
    using T = attn_formula_step;
    steps.push_back(
        structure(sizeof(T), {FIELD(operand, i64(operand)), FIELD(op, i32(stepOf(formula.op)))}));
  }

  llvm::Constant *symbol(const FunctionInfo &function, const SymbolInfo &info) {
    std::vector<llvm::Constant *> steps;
    if (info.formula)
      addSteps(function, *info.formula, steps);
    using T = attn_symbol_info;
    bool isCondition = info.formula && info.formula->isCondition();
    return structure(sizeof(T),
                     {FIELD(name, text(info.name)), FIELD(min, i64(info.min)),
                      FIELD(max, i64(info.max)), FIELD(formula, array(steps)),
                      FIELD(num_steps, i32(steps.size())), FIELD(is_condition, i32(isCondition))});
  }

  llvm::Constant *function(const FunctionInfo &info) {
    std::vector<llvm::Constant *> symbols, variants;
    for (const SymbolInfo &symbol : info.symbols)
      symbols.push_back(this->symbol(info, symbol));
    for (const VariantInfo &variant : info.variants)
      variants.push_back(this->variant(info, variant));
    using T = attn_function_info;
    return structure(
        sizeof(T),
        {FIELD(name, text(info.name)), FIELD(num_inputs, i32(info.inputs.size())),
         FIELD(num_outputs, i32(info.outputs.size())), FIELD(num_weights, i32(info.weights.size())),
         FIELD(num_symbols, i32(symbols.size())), FIELD(num_variants, i32(variants.size())),
         FIELD(inputs, tensors(info.inputs)), FIELD(outputs, tensors(info.outputs)),
         FIELD(weights, tensors(info.weights)), FIELD(symbols, array(symbols)),
         FIELD(variants, array(variants)), FIELD(embedded, weights(info))});
  }

  llvm::Module &module;
  llvm::ArrayRef<Weight> embedded;
  llvm::StringMap<llvm::Constant *> weightData;
  llvm::LLVMContext &context;
  llvm::PointerType *pointer;
};
#undef FIELD
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
    return llvm::createStringError("expected the LLVM IR of an attn library, got no constant '" +
                                   kManifest + "'");
  return readManifest(text->getAsCString());
}
