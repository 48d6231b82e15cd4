//===- Emit.cpp - LLVM IR, objects and libraries ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Emit.h"

#include "codegen/Codegen.h"
#include "codegen/emit/FatBinary.h"
#include "codegen/emit/Link.h"
#include "codegen/emit/OutputFiles.h"
#include "codegen/emit/Passes.h"
#include "codegen/emit/Tables.h"
#include "support/RunPasses.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"
#include "llvm/Transforms/Instrumentation/ThreadSanitizer.h"
#include "llvm/Transforms/Scalar/ScalarizeMaskedMemIntrin.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"

using namespace attn;

void attn::registerEmission(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}

//===----------------------------------------------------------------------===//
// From a module to LLVM IR
//===----------------------------------------------------------------------===//

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(llvm::StringRef triple) {
  static const bool kInitialized = [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    return true;
  }();
  (void)kInitialized;
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(llvm::Triple(triple), error);
  if (!target)
    return llvm::createStringError(error);
  // The attributes of each function name its CPU and features, so the TargetMachine is for the baseline of the triple.
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      llvm::Triple(triple), /*CPU=*/"", /*Features=*/"", llvm::TargetOptions(), llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// The triple of the library: that of the first level for CPUs or, without such a level, that of the compiler.
static llvm::Expected<std::string> findTriple(mlir::ModuleOp module) {
  for (auto level : module.getOps<mlir::ModuleOp>()) {
    llvm::Expected<const Target *> target =
        mlir::cast<CodegenInterface>(getTarget(level)).getDescription();
    if (!target)
      return target.takeError();
    if (!(*target)->isForGpu())
      return (*target)->triple.str();
  }
  return llvm::sys::getProcessTriple();
}

/// Lowers `module` and returns its description, which the lowering removes from the module.
static llvm::Expected<LibraryInfo> lowerToLLVMDialect(mlir::ModuleOp module, llvm::StringRef name) {
  auto failure = [] {
    return llvm::createStringError("the module could not be lowered to LLVM IR");
  };
  mlir::FailureOr<LibraryInfo> library = describe(module, name);
  if (failed(library))
    return failure();
  llvm::Expected<std::string> triple = findTriple(module);
  if (!triple)
    return triple.takeError();
  auto machine = createTargetMachine(*triple);
  if (!machine)
    return machine.takeError();
  mlir::Builder builder(module.getContext());
  module->setAttr(mlir::LLVM::LLVMDialect::getTargetTripleAttrName(),
                  builder.getStringAttr(*triple));
  module->setAttr(mlir::LLVM::LLVMDialect::getDataLayoutAttrName(),
                  builder.getStringAttr((*machine)->createDataLayout().getStringRepresentation()));

  mlir::PassManager manager(module.getContext());
  addLowerToLLVMPipeline(manager);
  if (failed(runPasses(manager, module)))
    return failure();
  mlir::WalkResult lowered = module->walk([&](mlir::Operation *op) {
    if (op == module || mlir::isa_and_present<mlir::LLVM::LLVMDialect>(op->getDialect()))
      return mlir::WalkResult::advance();
    op->emitError() << "expected an operation that has a lowering to LLVM IR, got '"
                    << op->getName() << "'";
    return mlir::WalkResult::interrupt();
  });
  if (lowered.wasInterrupted())
    return failure();
  return std::move(*library);
}

/// Verifies that `weights` has every weight that a function names, with the type that the function expects.
static llvm::Error verifyWeights(const LibraryInfo &library, llvm::ArrayRef<Weight> weights) {
  for (const FunctionInfo &function : library.functions)
    for (const TensorInfo &info : function.weights) {
      const Weight *found =
          llvm::find_if(weights, [&](const Weight &weight) { return weight.name == info.name; });
      if (found == weights.end())
        return llvm::createStringError("expected data of weight '" + info.name + "' of '" +
                                       function.name + "'");
      bool agrees =
          DataType::get(found->type.getElementType()) == info.type &&
          llvm::equal(
              found->type.getShape(), info.shape,
              [](int64_t size, DimInfo dim) { return dim.symbol < 0 && dim.size == size; }) &&
          int64_t(found->data.size()) == found->type.getNumElements() * info.type->bytes();
      if (!agrees)
        return llvm::createStringError("expected data of the type of weight '" + info.name +
                                       "' of '" + function.name + "'");
    }
  return llvm::Error::success();
}

llvm::Expected<LLVMModule> attn::lowerToLLVMIR(mlir::ModuleOp module, llvm::StringRef name,
                                               llvm::ArrayRef<Weight> embedded) {
  llvm::Expected<LibraryInfo> library = lowerToLLVMDialect(module, name);
  if (!library)
    return library.takeError();
  if (!embedded.empty())
    if (llvm::Error error = verifyWeights(*library, embedded))
      return std::move(error);
  LLVMModule ir;
  ir.context = std::make_unique<llvm::LLVMContext>();
  ir.module = mlir::translateModuleToLLVMIR(module, *ir.context, library->name);
  if (!ir.module)
    return llvm::createStringError("the module could not be translated to LLVM IR");
  addTables(*ir.module, *library, embedded);
  return ir;
}

llvm::Expected<LLVMModule> attn::parseLLVMIR(llvm::MemoryBufferRef text) {
  LLVMModule ir;
  ir.context = std::make_unique<llvm::LLVMContext>();
  llvm::SMDiagnostic diagnostic;
  ir.module = llvm::parseAssembly(text, diagnostic, *ir.context);
  if (ir.module)
    return ir;
  std::string message;
  llvm::raw_string_ostream stream(message);
  diagnostic.print(nullptr, stream, /*ShowColors=*/false);
  return llvm::createStringError(llvm::StringRef(message).rtrim());
}

//===----------------------------------------------------------------------===//
// From LLVM IR to machine code
//===----------------------------------------------------------------------===//

/// Whether `name` is a symbol that the sanitizer's checks may use: a symbol of the sanitizer's runtime, or the start or
/// end of a section that may be absent.
static bool isSymbolOf(Sanitizer sanitizer, llvm::StringRef name) {
  switch (sanitizer) {
  case Sanitizer::None:
    return false;
  case Sanitizer::Address:
    return name.starts_with("__asan_") || name.ends_with("_asan_globals");
  case Sanitizer::Thread:
    return name.starts_with("__tsan_");
  }
  llvm_unreachable("every sanitizer returns");
}

static void addAttribute(llvm::Module &ir, llvm::Attribute::AttrKind attribute) {
  for (llvm::Function &function : ir)
    if (!function.isDeclaration())
      function.addFnAttr(attribute);
}

/// Makes `builder` add the checks of AddressSanitizer to its pipelines for `ir`.
static void addAddressSanitizer(llvm::PassBuilder &builder, llvm::Module &ir) {
  addAttribute(ir, llvm::Attribute::SanitizeAddress);
  // Globals need no checks: they are tables and constants, and no index into them comes from a caller.
  llvm::GlobalValue::SanitizerMetadata unchecked;
  unchecked.NoAddress = true;
  for (llvm::GlobalVariable &variable : ir.globals())
    variable.setSanitizerMetadata(unchecked);
  builder.registerOptimizerLastEPCallback(
      [](llvm::ModulePassManager &manager, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
        manager.addPass(llvm::AddressSanitizerPass(llvm::AddressSanitizerOptions()));
      });
}

/// Makes `builder` add the checks of ThreadSanitizer to its pipelines for `ir`. ThreadSanitizer can check neither
/// masked accesses nor accesses of more than 16 bytes, so masked accesses become branches first, and vectors are split
/// into elements.
static void addThreadSanitizer(llvm::PassBuilder &builder, llvm::Module &ir,
                               llvm::FunctionAnalysisManager &functions) {
  addAttribute(ir, llvm::Attribute::SanitizeThread);
  // Hide the target from all passes, because ScalarizeMaskedMemIntrinPass keeps masked accesses that the target
  // supports.
  functions.registerPass([] { return llvm::TargetIRAnalysis(); });
  builder.registerOptimizerLastEPCallback(
      [](llvm::ModulePassManager &manager, llvm::OptimizationLevel, llvm::ThinOrFullLTOPhase) {
        llvm::ScalarizerPassOptions scalarize;
        scalarize.ScalarizeLoadStore = true;
        llvm::FunctionPassManager passes;
        passes.addPass(llvm::ScalarizeMaskedMemIntrinPass());
        passes.addPass(llvm::ScalarizerPass(scalarize));
        passes.addPass(llvm::ThreadSanitizerPass());
        manager.addPass(llvm::ModuleThreadSanitizerPass());
        manager.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
      });
}

/// Runs LLVM's passes and code generator.
static llvm::Error compile(llvm::Module &ir, llvm::CodeGenFileType type, Sanitizer sanitizer,
                           llvm::raw_pwrite_stream &out) {
  auto created = createTargetMachine(ir.getTargetTriple().str());
  if (!created)
    return created.takeError();
  llvm::TargetMachine &machine = **created;
  // Kernels must not call the C library, so LLVM must not replace code by calls of that library.
  llvm::TargetLibraryInfoImpl noLibrary(ir.getTargetTriple());
  noLibrary.disableAllFunctions();

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // The loops of products are already unrolled as far as registers allow, so LLVM does not unroll loops.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(noLibrary); });
  if (sanitizer == Sanitizer::Address)
    addAddressSanitizer(builder, ir);
  else if (sanitizer == Sanitizer::Thread)
    addThreadSanitizer(builder, ir, functions);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(ir, modules);

  llvm::legacy::PassManager codegen;
  codegen.add(new llvm::TargetLibraryInfoWrapperPass(noLibrary));
  if (machine.addPassesToEmitFile(codegen, out, nullptr, type))
    return llvm::createStringError("expected a target that can write objects, got '" +
                                   ir.getTargetTriple().str() + "'");
  codegen.run(ir);
  return llvm::Error::success();
}

/// Verifies that the code has no undefined symbols except those of the sanitizer. For example, a call of the C library
/// would be a bug in a lowering.
static llvm::Error verifyNoUndefinedSymbols(llvm::MemoryBufferRef object, Sanitizer sanitizer) {
  auto file = llvm::object::ObjectFile::createObjectFile(object);
  if (!file)
    return file.takeError();
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty() &&
        !isSymbolOf(sanitizer, *name))
      return llvm::createStringError("expected code without undefined symbols, got '" + *name +
                                     "'");
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

llvm::Expected<OutputKind> attn::getOutputKind(llvm::StringRef path) {
  static const std::pair<llvm::StringLiteral, OutputKind> kKinds[] = {
      {".so", OutputKind::Shared},  {".a", OutputKind::Archive}, {".o", OutputKind::Object},
      {".s", OutputKind::Assembly}, {".ll", OutputKind::LLVMIR}, {".mlir", OutputKind::MLIR}};
  llvm::StringRef suffix = llvm::sys::path::extension(path);
  for (auto [known, kind] : kKinds)
    if (suffix == known)
      return kind;
  return llvm::createStringError(
      "expected an output ending in .so, .a, .o, .s, .ll or .mlir, got '" + path + "'");
}

llvm::Error attn::emitMLIR(mlir::ModuleOp module, llvm::StringRef path) {
  OutputFiles files;
  if (llvm::Error error = files.add(path, [&](llvm::raw_ostream &out) {
        module->print(out, mlir::OpPrintingFlags().enableDebugInfo());
      }))
    return error;
  return files.keep();
}

/// Adds the files that are written beside the library: the header, the manifest and the weights.
static llvm::Error addCompanions(OutputFiles &files, const LibraryInfo &library,
                                 const EmitOptions &options) {
  auto add = [&](llvm::StringRef suffix, llvm::function_ref<void(llvm::raw_ostream &)> write) {
    llvm::SmallString<128> path(options.output);
    llvm::sys::path::replace_extension(path, suffix);
    return files.add(path, write);
  };
  if (llvm::Error error = add(".h", [&](llvm::raw_ostream &out) { out << writeHeader(library); }))
    return error;
  if (llvm::Error error =
          add(".json", [&](llvm::raw_ostream &out) { out << writeManifest(library); }))
    return error;
  if (options.weights.empty())
    return llvm::Error::success();
  if (llvm::Error error = verifyWeights(library, options.weights))
    return error;
  return add(".safetensors",
             [&](llvm::raw_ostream &out) { writeSafetensors(options.weights, out); });
}

llvm::Error attn::emitLLVMIR(LLVMModule ir, const EmitOptions &options) {
  llvm::Expected<OutputKind> kind = getOutputKind(options.output);
  if (!kind)
    return kind.takeError();
  if (*kind == OutputKind::MLIR)
    return llvm::createStringError("expected an output made from LLVM IR, got '" + options.output +
                                   "'");
  OutputFiles files;
  if (*kind == OutputKind::LLVMIR) {
    if (llvm::Error error =
            files.add(options.output, [&](llvm::raw_ostream &out) { out << *ir.module; }))
      return error;
    return files.keep();
  }

  llvm::Expected<LibraryInfo> library = readTables(*ir.module);
  if (!library)
    return library.takeError();
  if (options.cubin)
    if (llvm::Error error = makeFatBinaries(*ir.module, *library))
      return error;

  llvm::SmallVector<char, 0> code;
  llvm::raw_svector_ostream stream(code);
  auto type = *kind == OutputKind::Assembly ? llvm::CodeGenFileType::AssemblyFile
                                            : llvm::CodeGenFileType::ObjectFile;
  if (llvm::Error error = compile(*ir.module, type, options.sanitizer, stream))
    return error;
  llvm::MemoryBufferRef object(llvm::StringRef(code.data(), code.size()), "object");
  if (*kind != OutputKind::Assembly) {
    if (llvm::Error error = verifyNoUndefinedSymbols(object, options.sanitizer))
      return error;
    if (llvm::Error error = addCompanions(files, *library, options))
      return error;
  }

  llvm::StringRef bytes = object.getBuffer();
  std::unique_ptr<llvm::MemoryBuffer> archive;
  if (*kind == OutputKind::Archive) {
    std::string member = (llvm::sys::path::stem(options.output) + ".o").str();
    auto written = llvm::writeArchiveToBuffer(
        llvm::NewArchiveMember(llvm::MemoryBufferRef(object.getBuffer(), member)),
        llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU, /*Deterministic=*/true,
        /*Thin=*/false);
    if (!written)
      return written.takeError();
    archive = std::move(*written);
    bytes = archive->getBuffer();
  } else if (*kind == OutputKind::Shared) {
    auto linked =
        linkShared(object, llvm::sys::path::filename(options.output), queryName(library->name),
                   /*allowUndefined=*/options.sanitizer != Sanitizer::None);
    if (!linked)
      return linked.takeError();
    archive = std::move(*linked);
    bytes = archive->getBuffer();
  }
  if (llvm::Error error = files.add(options.output, [&](llvm::raw_ostream &out) { out << bytes; }))
    return error;
  return files.keep();
}
