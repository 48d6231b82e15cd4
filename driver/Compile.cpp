//===- Compile.cpp - from a model to files --------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "driver/Compile.h"
#include "codegen/emit/Emit.h"
#include "codegen/emit/Passes.h"
#include "frontend/Frontend.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace attn;

static llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// "file:line" of the user's source, if the location knows it.
static std::string sourceOf(Location loc) {
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    return (llvm::sys::path::filename(file.getFilename()) + ":" + llvm::Twine(file.getLine())).str();
  return "unknown source";
}

namespace {

/// One compilation: the context, what it said, and the stages.
class Compilation {
public:
  explicit Compilation(const CompileOptions &options) : options(options), context(registry(), threading()) {
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      std::string text = sourceOf(diagnostic.getLocation()) + ": " + diagnostic.str();
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && firstError.empty())
        firstError = text;
      if (diagnostic.getSeverity() == DiagnosticSeverity::Remark)
        remarks.push_back(text);
      return success();
    });
  }

  llvm::Expected<CompileReport> run();

private:
  static DialectRegistry registry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    registerAllExtensions(registry);
    registry.insert<AttnDialect>();
    registerBufferization(registry);
    registerEmission(registry);
    return registry;
  }
  static MLIRContext::Threading threading() { return MLIRContext::Threading::DISABLED; }

  llvm::Error load();
  llvm::Error runStages();
  llvm::Error dump(size_t number, StringRef stage, StringRef suffix, llvm::function_ref<void(llvm::raw_ostream &)> print);
  /// Notes every attention as `plan` leaves it, on the functions and in the report.
  void report();

  const CompileOptions &options;
  MLIRContext context;
  std::string firstError;
  std::vector<std::string> remarks;
  Model model;
  CompileReport result;
};

} // namespace

llvm::Error Compilation::load() {
  if (options.from.empty() || options.from == "import") {
    llvm::Expected<Model> imported = importFile(options.input, context);
    if (!imported)
      return imported.takeError();
    model = std::move(*imported);
  } else {
    loadFrontendDialects(context);
    context.loadAllAvailableDialects();
    model.module = parseSourceFile<ModuleOp>(options.input, &context);
    if (!model.module)
      return fail(firstError.empty() ? "expected a module in '" + options.input + "'" : firstError);
  }
  ModuleOp module = *model.module;
  bool hasLevels = !module.getOps<ModuleOp>().empty();
  if (!hasLevels) {
    SmallVector<Attribute> targets;
    for (const Target *target : options.targets)
      targets.push_back(target->getAttr(&context));
    module->setAttr(AttnDialect::kTargetsAttr, ArrayAttr::get(&context, targets));
  }
  return llvm::Error::success();
}

llvm::Error Compilation::dump(size_t number, StringRef stage, StringRef suffix,
                              llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (options.dumpStages.empty())
    return llvm::Error::success();
  if (std::error_code error = llvm::sys::fs::create_directories(options.dumpStages))
    return fail("cannot create '" + options.dumpStages + "': " + error.message());
  llvm::SmallString<128> path(options.dumpStages);
  llvm::sys::path::append(path, llvm::Twine(number) + "-" + stage + suffix);
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  if (error)
    return fail("cannot write '" + path + "': " + error.message());
  print(out);
  return llvm::Error::success();
}

void Compilation::report() {
  llvm::raw_string_ostream os(result.text);
  bool first = true;
  for (ModuleOp level : model.module->getOps<ModuleOp>()) {
    for (func::FuncOp function : level.getOps<func::FuncOp>()) {
      std::string lines;
      llvm::raw_string_ostream line(lines);
      function.walk([&](AttentionOp op) {
        PlanAttr plan = *op.getPlan();
        line << sourceOf(op.getLoc()) << ": attention fused, schedule " << stringifySchedule(plan.getSchedule())
             << ", tiles of " << plan.getQ() << " queries and " << plan.getK() << " keys";
        if (MaskInterface mask = op.getMaskAttr())
          line << ", mask " << mask;
        line << "\n";
        result.numFused += first;
      });
      if (lines.empty())
        continue;
      function->setAttr(AttnDialect::kReportAttr, StringAttr::get(&context, StringRef(lines).rtrim()));
      os << "[" << *level.getSymName() << "] " << lines;
    }
    first = false;
  }
}

llvm::Error Compilation::runStages() {
  ArrayRef<Stage> stages = getStages();
  auto print = [&](llvm::raw_ostream &os) { model.module->print(os, OpPrintingFlags().enableDebugInfo()); };
  bool active = options.from.empty() || options.from == "import";
  if (options.from.empty())
    if (llvm::Error error = dump(1, "import", ".mlir", print))
      return error;
  for (auto [i, stage] : llvm::enumerate(stages)) {
    if (!active) {
      active = stage.name == options.from;
      continue;
    }
    PassManager manager(&context);
    stage.build(manager, options.pipeline);
    if (failed(manager.run(*model.module)))
      return fail(firstError.empty() ? "stage " + stage.name + " failed" : llvm::Twine(firstError));
    if (stage.name == "plan")
      report();
    if (llvm::Error error = dump(i + 2, stage.name, ".mlir", print))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<CompileReport> Compilation::run() {
  SmallVector<Weight> weights;
  EmitOptions emission;
  emission.output = options.output;
  if (options.from == "emit") {
    auto text = llvm::MemoryBuffer::getFile(options.input, /*IsText=*/true);
    if (!text)
      return fail("cannot read '" + options.input + "': " + text.getError().message());
    if (llvm::Error error = emitLLVMIR((*text)->getMemBufferRef(), emission))
      return std::move(error);
    return result;
  }
  if (llvm::Error error = load())
    return std::move(error);
  if (llvm::Error error = runStages())
    return std::move(error);
  for (const std::string &remark : remarks) {
    if (!StringRef(remark).contains("attention left unfused"))
      continue;
    result.text += remark + "\n";
    ++result.numUnfused;
  }
  if (options.requireFused && (result.numUnfused || !result.numFused))
    return fail(result.numUnfused ? StringRef(result.text).rtrim() : StringRef("expected an attention, got none"));

  for (const NamedTensor &weight : model.weights)
    weights.push_back({weight.name, RankedTensorType::get(weight.shape, weight.elementType),
                       ArrayRef<char>(weight.bytes->getBufferStart(), weight.bytes->getBufferSize())});
  emission.weights = weights;
  StringRef library = llvm::sys::path::stem(options.output);
  std::string identifier = library.str();
  for (char &c : identifier)
    c = llvm::isAlnum(c) ? c : '_';
  if (llvm::isDigit(identifier.front()))
    identifier.insert(0, "_");
  llvm::Expected<std::string> ir = lowerToLLVMIR(*model.module, identifier);
  if (!ir) {
    llvm::consumeError(ir.takeError());
    return fail(firstError.empty() ? "stage emit failed" : llvm::Twine(firstError));
  }
  if (llvm::Error error = dump(getStages().size() + 2, "emit", ".ll", [&](llvm::raw_ostream &os) { os << *ir; }))
    return std::move(error);
  if (llvm::Error error = emitLLVMIR(llvm::MemoryBufferRef(*ir, options.input), emission))
    return std::move(error);
  return result;
}

llvm::Expected<CompileReport> attn::compile(const CompileOptions &options) { return Compilation(options).run(); }
