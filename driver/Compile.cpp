//===- Compile.cpp - from a model to files --------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "driver/Compile.h"
#include "codegen/emit/Emit.h"
#include "codegen/emit/Interface.h"
#include "codegen/emit/Passes.h"
#include "frontend/Frontend.h"
#include "passes/plan/Choose.h"
#include "support/RunPasses.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace mlir;
using namespace attn;

static llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// "file:line" of the user's source, if the location knows it.
static std::string sourceOf(Location loc) {
  if (auto file = loc->findInstanceOf<FileLineColLoc>())
    return (llvm::sys::path::filename(file.getFilename()) + ":" + llvm::Twine(file.getLine()))
        .str();
  return "unknown source";
}

namespace {

/// One compilation: the context, what it said, and the stages.
class Compilation {
public:
  explicit Compilation(const CompileOptions &options)
      : options(options), context(registry(), threading()) {
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
  /// Whether the module is what stage `options.from` leaves, as far as can be told.
  LogicalResult verifyResumable(ModuleOp module);
  llvm::Error runStages();
  /// Runs the rules that read the module as `stage` leaves it.
  llvm::Error lint(StringRef stage);
  llvm::Error dump(size_t number, StringRef stage, StringRef suffix,
                   llvm::function_ref<void(llvm::raw_ostream &)> print);
  /// Notes the attentions that `raise` left alone on the module, one line each.
  void noteUnraised();
  /// Notes every attention as `plan` leaves it on its function, one line each.
  void notePlans();
  /// Reads the notes, those of the file that compilation resumed from too.
  void report();

  const CompileOptions &options;
  MLIRContext context;
  std::string firstError;
  std::vector<std::string> remarks;
  std::set<std::tuple<std::string, unsigned, std::string>> findings; // file, line, text
  Model model;
  CompileReport result;
};

} // namespace

LogicalResult Compilation::verifyResumable(ModuleOp module) {
  Location file = FileLineColLoc::get(&context, options.input, /*line=*/1, /*column=*/1);
  if (failed(verifyStage(module, options.from, file)))
    return failure();
  // A file that was written by hand may say nothing.
  auto comesBefore = [&](StringRef stage) {
    auto isNamed = [](StringRef name) {
      return [=](const Stage &stage) { return stage.name == name; };
    };
    return llvm::find_if(getStages(), isNamed(options.from)) <
           llvm::find_if(getStages(), isNamed(stage));
  };
  bool hasLevels = !module.getOps<ModuleOp>().empty();
  if (hasLevels == comesBefore("plan"))
    return emitError(file) << "expected " << (hasLevels ? "no modules" : "a module")
                           << " of target levels in a file of stage " << options.from;
  bool hasTensors = comesBefore("bufferize");
  WalkResult walk = module.walk([&](Operation *op) -> WalkResult {
    for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
      for (Type type : types)
        if (hasTensors ? isa<BaseMemRefType>(type) : isa<TensorType>(type))
          return op->emitError() << "expected " << (hasTensors ? "tensors" : "buffers")
                                 << " in a file of stage " << options.from << ", got " << type;
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

llvm::Error Compilation::load() {
  if (options.from.empty() || options.from == "import") {
    llvm::Expected<Model> imported = importFile(options.input, context);
    if (!imported)
      return imported.takeError();
    model = std::move(*imported);
  } else {
    if (StringRef(options.input).ends_with(".ll") || StringRef(options.input).ends_with(".pt2"))
      return fail("expected a file of stage " + options.from + ", which ends in .mlir, got '" +
                  options.input + "'");
    loadFrontendDialects(context);
    context.loadAllAvailableDialects();
    auto file = llvm::MemoryBuffer::getFile(options.input, /*IsText=*/true);
    if (!file)
      return fail("cannot read '" + options.input + "': " + file.getError().message());
    llvm::SourceMgr source;
    source.AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
    model.module = parseSourceFile<ModuleOp>(source, &context);
    if (!model.module)
      return fail(firstError.empty() ? "expected a module in '" + options.input + "'" : firstError);
    if (failed(verifyResumable(*model.module)))
      return fail(firstError);
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

/// What follows the place in the note of an attention that is fused.
static constexpr StringLiteral kFused = "attention fused";

void Compilation::noteUnraised() {
  if (!remarks.empty())
    (*model.module)
        ->setAttr(AttnDialect::kReportAttr, StringAttr::get(&context, llvm::join(remarks, "\n")));
}

/// What the plan of `op` is predicted to take, then the best plan of each other schedule, in
/// millions of cycles where a cycle does one multiply-add of a vector.
static std::string predictionsOf(AttentionOp op) {
  TargetAttr target = getTarget(op);
  AttentionShape shape = AttentionShape::get(op);
  std::string text;
  llvm::raw_string_ostream out(text);
  SmallVector<Schedule> named;
  auto add = [&](PlanAttr plan, double cost) {
    if (llvm::is_contained(named, plan.getSchedule()))
      return;
    named.push_back(plan.getSchedule());
    out << (named.size() > 1 ? ", " : "") << stringifySchedule(plan.getSchedule()) << " "
        << llvm::format("%.3g", cost / 1e6);
  };
  add(*op.getPlan(), predictAttention(target, shape, *op.getPlan()));
  for (const Prediction &other : predictPlans(target, shape))
    add(other.plan, other.cost);
  return text;
}

void Compilation::notePlans() {
  for (ModuleOp level : model.module->getOps<ModuleOp>())
    for (func::FuncOp function : level.getOps<func::FuncOp>()) {
      std::string lines;
      llvm::raw_string_ostream line(lines);
      SmallVector<StringRef> schedules;
      function.walk([&](AttentionOp op) {
        PlanAttr plan = *op.getPlan();
        bool isFused = plan.getSchedule() != Schedule::Unfused;
        schedules.push_back(stringifySchedule(plan.getSchedule()));
        line << (lines.empty() ? "" : "\n") << sourceOf(op.getLoc()) << ": "
             << (isFused ? kFused : "attention left unfused") << ", schedule "
             << stringifySchedule(plan.getSchedule()) << ", tiles of " << plan.getQ()
             << " queries and " << plan.getK() << " keys";
        if (MaskInterface mask = op.getMaskAttr())
          line << ", mask " << mask;
        line << "\n  predicted Mcycles: " << predictionsOf(op);
      });
      if (lines.empty())
        continue;
      function->setAttr(AttnDialect::kReportAttr, StringAttr::get(&context, lines));
      function->setAttr(AttnDialect::kSchedulesAttr,
                        StringAttr::get(&context, llvm::join(schedules, ", ")));
    }
}

void Compilation::report() {
  auto read = [&](Operation *op, const Twine &prefix, bool counts) {
    auto note = op->getAttrOfType<StringAttr>(AttnDialect::kReportAttr);
    if (!note)
      return;
    for (StringRef line : llvm::split(note.getValue(), '\n')) {
      bool isFused = line.contains(kFused);
      result.text += (prefix + line + "\n").str();
      if (!counts || line.starts_with(" ")) // says more about the line before
        continue;
      result.numFused += isFused;
      if (!isFused)
        result.unfused.push_back(line.str());
    }
  };
  bool first = true;
  for (ModuleOp level : model.module->getOps<ModuleOp>()) {
    for (func::FuncOp function : level.getOps<func::FuncOp>())
      read(function, "[" + *level.getSymName() + "] ", /*counts=*/first);
    first = false;
  }
  read(*model.module, "", /*counts=*/true);
}

llvm::Error Compilation::lint(StringRef stage) {
  if (!options.lint)
    return llvm::Error::success();
  ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Warning)
      return failure();
    Location loc = diagnostic.getLocation();
    auto file = loc->findInstanceOf<FileLineColLoc>();
    findings.emplace(file ? file.getFilename().str() : "", file ? file.getLine() : 0,
                     sourceOf(loc) + ": lint: " + diagnostic.str());
    return success();
  });
  PassManager manager(&context);
  addLintRules(manager, stage);
  if (failed(manager.run(*model.module)))
    return fail(firstError);
  return llvm::Error::success();
}

llvm::Error Compilation::runStages() {
  ArrayRef<Stage> stages = getStages();
  auto print = [&](llvm::raw_ostream &os) {
    model.module->print(os, OpPrintingFlags().enableDebugInfo());
  };
  bool active = options.from.empty() || options.from == "import";
  if (options.from.empty())
    if (llvm::Error error = dump(1, "import", ".mlir", print))
      return error;
  if (llvm::Error error = lint("import"))
    return error;
  for (auto [i, stage] : llvm::enumerate(stages)) {
    if (!active) {
      active = stage.name == options.from;
      if (active && stage.name == "plan") // perhaps edited since
        notePlans();
      continue;
    }
    PassManager manager(&context);
    addStage(manager, stage, options.pipeline);
    if (failed(runPasses(manager, *model.module)))
      return fail(firstError.empty() ? "stage " + stage.name + " failed" : llvm::Twine(firstError));
    if (stage.name == "raise")
      noteUnraised();
    if (stage.name == "plan")
      notePlans();
    if (llvm::Error error = dump(i + 2, stage.name, ".mlir", print))
      return error;
    if (llvm::Error error = lint(stage.name))
      return error;
    if (options.output.empty() && stage.name == "raise") // the last that rules read
      break;
  }
  for (const auto &[file, line, text] : findings)
    result.findings.push_back(text);
  return llvm::Error::success();
}

llvm::Expected<CompileReport> Compilation::run() {
  if (options.lint && !options.from.empty() && options.from != "import")
    return fail("expected --lint at stage import, got --from=" + options.from);
  if (options.output.empty()) {
    if (llvm::Error error = load())
      return std::move(error);
    if (llvm::Error error = runStages())
      return std::move(error);
    return result;
  }
  SmallVector<Weight> weights;
  EmitOptions emission;
  emission.output = options.output;
  emission.sanitizer = options.sanitizer;
  llvm::Expected<OutputKind> kind = getOutputKind(options.output);
  if (!kind)
    return kind.takeError();
  if (options.sanitizer != Sanitizer::None &&
      (*kind == OutputKind::MLIR || *kind == OutputKind::LLVMIR))
    return fail("expected no --sanitize with an output of .ll or .mlir, got '" + options.output +
                "'");
  if (options.embedWeights && *kind == OutputKind::MLIR)
    return fail("expected no --embed-weights with an output of .mlir, got '" + options.output +
                "'");
  if (options.from == "emit") {
    if (options.embedWeights)
      return fail("expected --embed-weights before stage emit, got --from=emit");
    if (options.requireFused)
      return fail("expected --require-fused before stage emit, got --from=emit");
    if (*kind == OutputKind::MLIR)
      return fail("expected an output made from LLVM IR, got '" + options.output + "'");
    if (StringRef(options.input).ends_with(".mlir") || StringRef(options.input).ends_with(".pt2"))
      return fail("expected a file of stage emit, which ends in .ll, got '" + options.input + "'");
    auto text = llvm::MemoryBuffer::getFile(options.input, /*IsText=*/true);
    if (!text)
      return fail("cannot read '" + options.input + "': " + text.getError().message());
    llvm::Expected<LLVMModule> ir = parseLLVMIR((*text)->getMemBufferRef());
    if (!ir)
      return ir.takeError();
    if (llvm::Error error = emitLLVMIR(std::move(*ir), emission))
      return std::move(error);
    return result;
  }
  if (llvm::Error error = load())
    return std::move(error);
  if (llvm::Error error = runStages())
    return std::move(error);
  report();
  if (options.requireFused && !result.unfused.empty())
    return fail(llvm::join(result.unfused, "\n"));
  if (options.requireFused && !result.numFused)
    return fail("expected an attention, got none");
  if (*kind == OutputKind::MLIR) {
    if (llvm::Error error = emitMLIR(*model.module, options.output))
      return std::move(error);
    return result;
  }

  for (const NamedTensor &weight : model.weights)
    weights.push_back(
        {weight.name, RankedTensorType::get(weight.shape, weight.elementType),
         ArrayRef<char>(weight.bytes->getBufferStart(), weight.bytes->getBufferSize())});
  if (options.embedWeights && weights.empty())
    return fail("expected a model with weights for --embed-weights, got '" + options.input + "'");
  if (!options.embedWeights)
    emission.weights = weights;
  std::string library = toIdentifier(llvm::sys::path::stem(options.output));
  llvm::Expected<LLVMModule> ir = lowerToLLVMIR(
      *model.module, library, options.embedWeights ? ArrayRef(weights) : ArrayRef<Weight>());
  if (!ir) {
    llvm::consumeError(ir.takeError());
    return fail(firstError.empty() ? "stage emit failed" : llvm::Twine(firstError));
  }
  if (llvm::Error error = dump(getStages().size() + 2, "emit", ".ll",
                               [&](llvm::raw_ostream &os) { os << *ir->module; }))
    return std::move(error);
  if (llvm::Error error = emitLLVMIR(std::move(*ir), emission))
    return std::move(error);
  return result;
}

llvm::Expected<CompileReport> attn::compile(const CompileOptions &options) {
  return Compilation(options).run();
}
