//===- Interface.cpp - describe a library, write and read its manifest -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Interface.h"

#include "codegen/Codegen.h"
#include "dialect/Report.h"
#include "runtime/attn_kernel.h"
#include "support/Json.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace attn;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

llvm::ArrayRef<DataType> DataType::all() {
  static constexpr DataType kTypes[] = {
#define ELEMENT_TYPE(...) {__VA_ARGS__},
#include "support/ElementTypes.def"
  };
  return kTypes;
}

const DataType *DataType::get(llvm::StringRef name) {
  const DataType *found =
      llvm::find_if(all(), [&](const DataType &type) { return type.name == name; });
  return found == all().end() ? nullptr : found;
}

const DataType *DataType::get(Type type) {
  std::string name;
  llvm::raw_string_ostream(name) << type;
  return get(name);
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

std::string FunctionInfo::nameOf(DimInfo dim) const {
  return dim.symbol < 0 ? std::to_string(dim.size) : symbols[dim.symbol].name;
}

std::string FunctionInfo::leastOf(const TensorInfo &tensor) const {
  if (tensor.below.symbol < 0)
    return std::to_string(-tensor.below.size);
  const SymbolInfo &symbol = symbols[tensor.below.symbol];
  return symbol.formula ? "-(" + symbol.name + ")" : "-" + symbol.name;
}

int32_t FunctionInfo::findSymbol(llvm::StringRef name) const {
  for (auto [i, symbol] : llvm::enumerate(symbols))
    if (symbol.name == name)
      return static_cast<int32_t>(i);
  return -1;
}

/// Whether every name in `formula` is one of the first `numCarried` symbols.
static bool hasNames(const FunctionInfo &info, const Formula &formula, size_t numCarried) {
  if (formula.op == Formula::Op::Name)
    return static_cast<uint32_t>(info.findSymbol(formula.name)) < numCarried;
  return llvm::all_of(formula.operands,
                      [&](const Formula &operand) { return hasNames(info, operand, numCarried); });
}

/// Sets the formulas of symbols. An input carries a symbol if the symbol is the size of a dimension of the input. A
/// symbol that no input carries is computed by a formula of carried symbols, and the name of the symbol is this
/// formula. Fails if the name is not such a formula, or if a carried symbol comes after a symbol with a formula.
static llvm::Error setFormulas(FunctionInfo &info) {
  llvm::SmallDenseSet<int32_t> carried;
  for (const TensorInfo &input : info.inputs)
    for (DimInfo dim : input.shape)
      if (dim.symbol >= 0)
        carried.insert(dim.symbol);
  for (auto [i, symbol] : llvm::enumerate(info.symbols)) {
    if (carried.contains(i) && i < carried.size())
      continue;
    symbol.formula = Formula::parse(symbol.name);
    if (carried.contains(i) || !symbol.formula || !hasNames(info, *symbol.formula, carried.size()))
      return llvm::createStringError(
          "expected the sizes of inputs, then formulas of them, among '" +
          AttnDialect::kSymbolsAttr + "', got '" + symbol.name + "'");
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// From a module
//===----------------------------------------------------------------------===//

std::optional<int64_t> attn::packedIndex(func::FuncOp function, unsigned i) {
  if (auto index = function.getArgAttrOfType<IntegerAttr>(i, AttnDialect::kPackedAttr))
    return index.getInt();
  auto kind = function->getAttrOfType<StringAttr>(AttnDialect::kKernelAttr);
  if (!kind || kind.getValue() != "pack" || function.getArgAttr(i, AttnDialect::kWeightAttr))
    return std::nullopt;
  return llvm::count_if(llvm::seq(i), [&](unsigned before) {
    return !function.getArgAttr(before, AttnDialect::kWeightAttr);
  });
}

FailureOr<PackedLayout> attn::packedLayout(func::FuncOp function) {
  SmallVector<int64_t> sizes;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::optional<int64_t> index = packedIndex(function, i);
    if (!index)
      continue;
    auto type = dyn_cast<MemRefType>(function.getArgumentTypes()[i]);
    const DataType *element = type ? DataType::get(type.getElementType()) : nullptr;
    if (!element || !type.hasStaticShape() || *index < 0)
      return function.emitError() << "expected packed tensor " << *index
                                  << " to be a static memref, got "
                                  << function.getArgumentTypes()[i];
    sizes.resize(std::max<size_t>(sizes.size(), *index + 1), -1);
    sizes[*index] = type.getNumElements() * element->bytes();
  }
  PackedLayout layout;
  for (auto [index, size] : llvm::enumerate(sizes)) {
    if (size < 0)
      return function.emitError() << "expected packed tensors 0 to " << sizes.size() - 1
                                  << ", got none with " << AttnDialect::kPackedAttr << " = "
                                  << index;
    layout.offsets.push_back(layout.bytes);
    layout.bytes = llvm::alignTo(layout.bytes + size, ATTN_ALIGNMENT);
  }
  return layout;
}

/// Prints `pack` and the functions that it calls, without source locations and with neutral names. Functions with equal
/// texts pack weights in the same layout.
static std::string describePacking(func::FuncOp pack) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::MapVector<StringAttr, std::string> names; // of the functions that are called, in order
  OwningOpRef<func::FuncOp> nameless = pack.clone();
  nameless->setSymName("pack");
  nameless->walk([&](func::CallOp call) {
    StringAttr callee = call.getCalleeAttr().getAttr();
    auto [name, isNew] = names.try_emplace(callee, ("part" + llvm::Twine(names.size())).str());
    call.setCallee(name->second);
  });
  out << *nameless;
  for (auto &[callee, name] : names) {
    OwningOpRef<func::FuncOp> part =
        SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(pack, callee).clone();
    part->setSymName(name);
    out << *part;
  }
  return text;
}

namespace {
/// Describes one declared function.
class Describer {
public:
  explicit Describer(func::FuncOp declaration) : declaration(declaration) {}

  FailureOr<FunctionInfo> run() {
    info.name = declaration.getSymName();
    if (auto symbols = declaration->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr))
      for (auto symbol : symbols.getAsRange<SymbolAttr>())
        info.symbols.push_back({symbol.getName().str(), symbol.getMin(), symbol.getMax()});
    for (unsigned i = 0; i < declaration.getNumArguments(); ++i) {
      bool isWeight = declaration.getArgAttr(i, AttnDialect::kWeightAttr) != nullptr;
      DictionaryAttr attrs = declaration.getArgAttrDict(i);
      if (failed(addTensor(isWeight ? info.weights : info.inputs, declaration.getArgumentTypes()[i],
                           attrs)))
        return failure();
    }
    for (unsigned i = 0; i < declaration.getNumResults(); ++i)
      if (!getInOutArgument(declaration, i) &&
          failed(addTensor(info.outputs, declaration.getResultTypes()[i],
                           declaration.getResultAttrDict(i))))
        return failure();
    if (llvm::Error error = setFormulas(info))
      return declaration.emitError() << llvm::toString(std::move(error));
    for (ModuleOp level : cast<ModuleOp>(declaration->getParentOp()).getOps<ModuleOp>())
      if (auto target = level->getAttrOfType<CodegenInterface>(AttnDialect::kTargetAttr))
        if (failed(addVariant(level, target)))
          return failure();
    if (info.variants.empty())
      return declaration.emitError()
             << "expected code for at least one level of '" << info.name << "'";
    return info;
  }

private:
  FailureOr<int32_t> findSymbol(StringRef name) {
    if (int32_t symbol = info.findSymbol(name); symbol >= 0)
      return symbol;
    return declaration.emitError()
           << "expected symbol '" << name << "' among '" << AttnDialect::kSymbolsAttr << "'";
  }

  LogicalResult addTensor(std::vector<TensorInfo> &list, Type type, DictionaryAttr attrs) {
    auto shaped = dyn_cast<RankedTensorType>(type);
    const DataType *element = shaped ? DataType::get(shaped.getElementType()) : nullptr;
    if (element && attrs && attrs.contains(AttnDialect::kUnsignedAttr))
      element = DataType::get("ui8");
    auto name = attrs ? attrs.getAs<StringAttr>(AttnDialect::kNameAttr) : StringAttr();
    if (!element)
      return declaration.emitError()
             << "expected a ranked tensor with an element type of DLPack, got " << type;
    if (!name)
      return declaration.emitError() << "expected '" << AttnDialect::kNameAttr
                                     << "' on every argument and result of '" << info.name << "'";
    TensorInfo tensor{name.str(), element, {}, {}, {}, false};
    auto dims = attrs.getAs<ArrayAttr>(AttnDialect::kDimsAttr);
    for (int64_t i = 0; i < shaped.getRank(); ++i) {
      DimInfo dim{shaped.getDimSize(i), -1};
      if (shaped.isDynamicDim(i)) {
        FailureOr<int32_t> symbol = findSymbol(dims ? cast<StringAttr>(dims[i]).getValue() : "");
        if (failed(symbol))
          return failure();
        dim = {0, *symbol};
      }
      tensor.shape.push_back(dim);
    }
    for (StringRef limit : {AttnDialect::kBoundAttr, AttnDialect::kBelowAttr}) {
      Attribute value = attrs.get(limit);
      if (!value)
        break;
      DimInfo &dim = limit == AttnDialect::kBoundAttr ? tensor.bound.emplace() : tensor.below;
      if (auto size = dyn_cast<IntegerAttr>(value)) {
        dim = {size.getInt(), -1};
      } else {
        FailureOr<int32_t> symbol = findSymbol(cast<StringAttr>(value).getValue());
        if (failed(symbol))
          return failure();
        dim = {0, *symbol};
      }
    }
    tensor.inOut = attrs.contains(AttnDialect::kInOutAttr);
    list.push_back(std::move(tensor));
    return success();
  }

  LogicalResult addVariant(ModuleOp level, CodegenInterface codegen) {
    llvm::Expected<const Target *> target = codegen.getDescription();
    if (!target)
      return level.emitError(llvm::toString(target.takeError()));
    auto find = [&](const Twine &symbol, StringRef kind) -> func::FuncOp {
      auto function = level.lookupSymbol<func::FuncOp>(symbol.str());
      auto actual =
          function ? function->getAttrOfType<StringAttr>(AttnDialect::kKernelAttr) : StringAttr();
      return actual && actual.getValue() == kind ? function : nullptr;
    };
    func::FuncOp entry = find(info.name, "entry"),
                 workspace = find(info.name + ".workspace", "workspace"),
                 pack = find(info.name + ".pack", "pack");
    if (!entry || !workspace || (!pack && !info.weights.empty()))
      return level.emitError() << "expected the "
                               << (!entry       ? "entry"
                                   : !workspace ? "workspace"
                                                : "pack")
                               << " function of '" << info.name << "'";
    auto text = [](func::FuncOp function, StringRef attr) -> std::string {
      auto value = function->getAttrOfType<StringAttr>(attr);
      return value ? value.str() : "";
    };
    auto report = entry->getAttrOfType<DictionaryAttr>(AttnDialect::kReportAttr);
    VariantInfo variant{
        (*target)->level.str(),
        std::vector<std::string>((*target)->features.begin(), (*target)->features.end()),
        text(workspace, AttnDialect::kTextAttr), report ? printReport(report) : "",
        text(entry, AttnDialect::kSchedulesAttr)};
    if (auto compute = entry->getAttrOfType<TypeAttr>(AttnDialect::kComputeAttr))
      llvm::raw_string_ostream(variant.compute) << compute.getValue();
    for (auto task : level.getOps<func::FuncOp>())
      if (auto launch = task->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr)) {
        KernelInfo &kernel = variant.kernels.emplace_back(
            KernelInfo{getKernelName(task.getName(), launch.getKernel()),
                       launch.getThreads() + launch.getProducers(), launch.getShared(),
                       launch.getArguments(), launch.getBlocks()});
        if (launch.getMaps())
          for (auto map : launch.getMaps().getAsRange<TensorMapAttr>())
            kernel.maps.push_back(
                {map.getOffset(), map.getRank(), map.getDim(), map.getRows(), map.getBytes()});
      }
    if (pack) {
      FailureOr<PackedLayout> written = packedLayout(pack), read = packedLayout(entry);
      if (failed(written) || failed(read))
        return failure();
      // The tensors that the entry reads come first, then the intermediate tensors of packing.
      size_t count = read->offsets.size();
      if (written->offsets.size() < count ||
          ArrayRef(written->offsets).take_front(count) != ArrayRef(read->offsets))
        return pack.emitError()
               << "expected the first packed tensors to be those that the entry reads";
      variant.packedBytes = written->bytes;
      variant.packedOffsets.assign(read->offsets.begin(), read->offsets.end());
      variant.packedOffsets.push_back(read->bytes);
      variant.packedHash = llvm::xxh3_64bits(describePacking(pack));
    }
    info.variants.push_back(std::move(variant));
    return success();
  }

  func::FuncOp declaration;
  FunctionInfo info;
};
} // namespace

FailureOr<LibraryInfo> attn::describe(ModuleOp module, StringRef libraryName) {
  LibraryInfo library{libraryName.str(), "attn " ATTN_VERSION, {}};
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function.isDeclaration())
      continue;
    FailureOr<FunctionInfo> info = Describer(function).run();
    if (failed(info))
      return failure();
    library.functions.push_back(std::move(*info));
  }
  if (library.functions.empty())
    return module.emitError() << "expected the declaration of at least one function";
  return library;
}

//===----------------------------------------------------------------------===//
// Manifest
//===----------------------------------------------------------------------===//

/// Writes a symbol as its name, and a static size as a number.
static json::Value dimToJSON(const FunctionInfo &function, DimInfo dim) {
  return dim.symbol < 0 ? json::Value(dim.size) : json::Value(function.symbols[dim.symbol].name);
}

static void writeTensors(json::OStream &out, llvm::StringRef role, const FunctionInfo &function,
                         llvm::ArrayRef<TensorInfo> tensors) {
  out.attributeArray(role, [&] {
    for (const TensorInfo &tensor : tensors)
      out.object([&] {
        out.attribute("name", tensor.name);
        out.attribute("dtype", tensor.type->name);
        out.attributeArray("shape", [&] {
          for (DimInfo dim : tensor.shape)
            out.value(dimToJSON(function, dim));
        });
        if (tensor.bound)
          out.attribute("bound", dimToJSON(function, *tensor.bound));
        if (tensor.below.size != 0 || tensor.below.symbol >= 0)
          out.attribute("below", dimToJSON(function, tensor.below));
        if (tensor.inOut)
          out.attribute("in_out", true);
      });
  });
}

std::string attn::writeManifest(const LibraryInfo &library) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  json::OStream out(stream, /*IndentSize=*/2);
  out.object([&] {
    out.attribute("library", library.name);
    out.attribute("compiler", library.compiler);
    out.attribute("abi", ATTN_ABI_VERSION);
    out.attributeArray("functions", [&] {
      for (const FunctionInfo &function : library.functions)
        out.object([&] {
          out.attribute("name", function.name);
          writeTensors(out, "inputs", function, function.inputs);
          writeTensors(out, "outputs", function, function.outputs);
          writeTensors(out, "weights", function, function.weights);
          out.attributeArray("symbols", [&] {
            for (const SymbolInfo &symbol : function.symbols)
              out.object([&] {
                out.attribute("name", symbol.name);
                out.attribute("min", symbol.min);
                out.attribute("max", symbol.max);
              });
          });
          out.attributeArray("levels", [&] {
            for (const VariantInfo &variant : function.variants)
              out.object([&] {
                out.attribute("level", variant.level);
                out.attributeArray("features", [&] {
                  for (const std::string &feature : variant.features)
                    out.value(feature);
                });
                out.attribute("workspace", variant.workspace);
                out.attribute("packed_bytes", variant.packedBytes);
                // Write a string, because some readers of JSON round 64-bit numbers.
                out.attribute("packed_hash",
                              llvm::utohexstr(variant.packedHash, /*LowerCase=*/true, 16));
                out.attribute("report", variant.report);
                out.attribute("schedules", variant.schedules);
                if (!variant.compute.empty())
                  out.attribute("compute", variant.compute);
                if (!variant.kernels.empty())
                  out.attributeArray("kernels", [&] {
                    for (const KernelInfo &kernel : variant.kernels)
                      out.object([&] {
                        out.attribute("name", kernel.name);
                        out.attribute("threads", kernel.threads);
                        out.attribute("shared", kernel.shared);
                        out.attribute("context", kernel.context);
                        if (kernel.blocks)
                          out.attribute("blocks", kernel.blocks);
                        if (kernel.maps.empty())
                          return;
                        out.attributeArray("tensor_maps", [&] {
                          for (const TensorMapInfo &map : kernel.maps)
                            out.object([&] {
                              out.attribute("offset", map.offset);
                              out.attribute("rank", map.rank);
                              out.attribute("dim", map.dim);
                              out.attribute("rows", map.rows);
                              out.attribute("bytes", map.bytes);
                            });
                        });
                      });
                  });
              });
          });
        });
    });
  });
  return text + "\n";
}

// llvm::json finds these functions by argument-dependent lookup.
namespace attn {

static bool dimFromJSON(const FunctionInfo &function, const json::Value &value, DimInfo &dim,
                        json::Path path) {
  if (std::optional<int64_t> size = value.getAsInteger()) {
    dim = {*size, -1};
    return true;
  }
  std::optional<llvm::StringRef> name = value.getAsString();
  dim = {0, name ? function.findSymbol(*name) : -1};
  if (dim.symbol >= 0)
    return true;
  path.report("expected a size or a symbol");
  return false;
}

static bool tensorsFromJSON(const FunctionInfo &function, const json::Object &object,
                            llvm::StringRef role, std::vector<TensorInfo> &tensors,
                            json::Path path) {
  const json::Array *array = object.getArray(role);
  if (!array) {
    path.field(role).report("expected an array");
    return false;
  }
  json::Path list = path.field(role); // must outlive the paths below, which refer to it
  for (auto [i, value] : llvm::enumerate(*array)) {
    json::Path at = list.index(i);
    std::string dtype;
    TensorInfo tensor{};
    json::ObjectMapper mapper(value, at);
    if (!mapper || !mapper.map("name", tensor.name) || !mapper.map("dtype", dtype))
      return false;
    tensor.type = DataType::get(dtype);
    const json::Array *dims = value.getAsObject()->getArray("shape");
    if (!tensor.type || !dims) {
      at.report("expected a dtype and a shape");
      return false;
    }
    for (auto [axis, dim] : llvm::enumerate(*dims)) {
      tensor.shape.emplace_back();
      if (!dimFromJSON(function, dim, tensor.shape.back(), at.field("shape").index(axis)))
        return false;
    }
    if (const json::Value *bound = value.getAsObject()->get("bound"))
      if (!dimFromJSON(function, *bound, tensor.bound.emplace(), at.field("bound")))
        return false;
    if (const json::Value *below = value.getAsObject()->get("below"))
      if (!dimFromJSON(function, *below, tensor.below, at.field("below")))
        return false;
    tensor.inOut = value.getAsObject()->getBoolean("in_out").value_or(false);
    tensors.push_back(std::move(tensor));
  }
  return true;
}

static bool fromJSON(const json::Value &value, SymbolInfo &symbol, json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("name", symbol.name) && mapper.map("min", symbol.min) &&
         mapper.map("max", symbol.max);
}

static bool fromJSON(const json::Value &value, TensorMapInfo &map, json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("offset", map.offset) && mapper.map("rank", map.rank) &&
         mapper.map("dim", map.dim) && mapper.map("rows", map.rows) &&
         mapper.map("bytes", map.bytes);
}

static bool fromJSON(const json::Value &value, KernelInfo &kernel, json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("name", kernel.name) && mapper.map("threads", kernel.threads) &&
         mapper.map("shared", kernel.shared) && mapper.map("context", kernel.context) &&
         mapper.mapOptional("blocks", kernel.blocks) &&
         mapper.mapOptional("tensor_maps", kernel.maps);
}

static bool fromJSON(const json::Value &value, VariantInfo &variant, json::Path path) {
  json::ObjectMapper mapper(value, path);
  std::string hash;
  if (!mapper || !mapper.map("level", variant.level) || !mapper.map("features", variant.features) ||
      !mapper.map("workspace", variant.workspace) ||
      !mapper.map("packed_bytes", variant.packedBytes) || !mapper.map("packed_hash", hash) ||
      !mapper.map("report", variant.report) || !mapper.map("schedules", variant.schedules) ||
      !mapper.mapOptional("compute", variant.compute) ||
      !mapper.mapOptional("kernels", variant.kernels))
    return false;
  if (!llvm::to_integer(hash, variant.packedHash, 16)) {
    path.field("packed_hash").report("expected a hexadecimal number");
    return false;
  }
  return true;
}

static bool fromJSON(const json::Value &value, FunctionInfo &function, json::Path path) {
  json::ObjectMapper mapper(value, path);
  if (!mapper || !mapper.map("name", function.name) || !mapper.map("symbols", function.symbols) ||
      !mapper.map("levels", function.variants))
    return false;
  const json::Object &object = *value.getAsObject();
  if (!tensorsFromJSON(function, object, "inputs", function.inputs, path) ||
      !tensorsFromJSON(function, object, "outputs", function.outputs, path) ||
      !tensorsFromJSON(function, object, "weights", function.weights, path))
    return false;
  if (llvm::Error error = setFormulas(function)) {
    llvm::consumeError(std::move(error));
    path.field("symbols").report("expected the sizes of inputs, then formulas of them");
    return false;
  }
  return true;
}

static bool fromJSON(const json::Value &value, LibraryInfo &library, json::Path path) {
  json::ObjectMapper mapper(value, path);
  return mapper && mapper.map("library", library.name) &&
         mapper.map("compiler", library.compiler) && mapper.map("functions", library.functions);
}

} // namespace attn

llvm::Expected<LibraryInfo> attn::readManifest(llvm::StringRef text) {
  llvm::Expected<json::Value> value = parseJSON(text);
  if (!value)
    return value.takeError();
  LibraryInfo library;
  json::Path::Root root("manifest");
  if (!fromJSON(*value, library, root))
    return root.getError();
  return library;
}
