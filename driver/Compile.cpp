//===- Compile.cpp - compile a model to files -----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "driver/Compile.h"
#include "codegen/Codegen.h"
#include "codegen/emit/Emit.h"
#include "codegen/emit/Interface.h"
#include "codegen/emit/OutputFiles.h"
#include "codegen/emit/Passes.h"
#include "dialect/Finding.h"
#include "dialect/Report.h"
#include "driver/MaskTiles.h"
#include "frontend/Frontend.h"
#include "passes/plan/OneQuery.h"
#include "passes/plan/Planner.h"
#include "support/RunPasses.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
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

namespace {

/// One compilation: the context, the diagnostics and the stages.
class Compilation {
public:
  explicit Compilation(const CompileOptions &options)
      : options(options), context(registry(), threading()) {
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      std::string source = getSource(diagnostic.getLocation());
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error && firstError.empty())
        firstError = source + ": " + diagnostic.str();
      if (std::optional<Finding> kind = getFinding(diagnostic))
        findings.push_back({*kind, source, diagnostic.str(), getShare(diagnostic)});
      return success();
    });
    timing.setEnabled(options.timing);
    total = timing.getRootScope();
  }

  llvm::Expected<CompileReport> run();

private:
  static DialectRegistry registry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    registerAllExtensions(registry);
    registry.insert<AttnDialect>();
    registerBufferization(registry);
    registerTargets(registry);
    registerEmission(registry);
    return registry;
  }
  static MLIRContext::Threading threading() { return MLIRContext::Threading::DISABLED; }

  llvm::Error load();
  /// Checks that the levels, plans and types of the module can be those of the output of stage `options.from`.
  LogicalResult verifyResumable(ModuleOp module);
  llvm::Error runStages();
  /// Runs the lint rules that read the output of `stage`.
  llvm::Error lint(StringRef stage);
  llvm::Error dump(size_t number, StringRef stage, StringRef suffix,
                   llvm::function_ref<void(llvm::raw_ostream &)> print);
  /// Moves the findings of a stage to the report attribute of the module.
  void noteFindings();
  /// Returns the entry of the report for an attention of stage `plan`.
  DictionaryAttr describe(AttentionOp op);
  /// Describes the attentions, products and groups of stage `plan` in the report attributes of the functions that
  /// contain them.
  void notePlans();
  /// Makes the report from the report attributes. If compilation was resumed, the stage file contains some of them.
  void report();

  const CompileOptions &options;
  DefaultTimingManager timing; ///< prints when it is destroyed
  TimingScope total;
  MLIRContext context;
  std::string firstError;
  struct FindingText {
    Finding kind;
    std::string source, text;
    std::optional<double> share;
  };
  std::vector<FindingText> findings;                                     // not yet in the report
  std::set<std::tuple<std::string, unsigned, std::string>> lintFindings; // file, line, text
  Model model;
  CompileReport result;
};

} // namespace

LogicalResult Compilation::verifyResumable(ModuleOp module) {
  Location file = FileLineColLoc::get(&context, options.input, /*line=*/1, /*column=*/1);
  if (failed(verifyStage(module, options.from, file)))
    return failure();
  // A file that was written by hand may lack the name of its stage, so use the stage in the options.
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
    if (auto attention = dyn_cast<AttentionOp>(op); attention && hasLevels && !attention.getPlan())
      return op->emitError() << "expected a plan on each attention in a file of stage "
                             << options.from;
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
  TimingScope time = total.nest("import");
  if (options.from.empty() || options.from == "import") {
    llvm::Expected<Model> imported = importFile(options.input, context, options.names);
    if (!imported)
      return imported.takeError();
    model = std::move(*imported);
    noteFindings();
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
    // If a stage wrote the file, the file contains the targets. Users may edit their parameters, such as the size of
    // L2.
    auto written = module->getAttrOfType<ArrayAttr>(AttnDialect::kTargetsAttr);
    auto attributeOf = [&](const Target *target) -> Attribute {
      for (Attribute attribute : written ? written.getValue() : ArrayRef<Attribute>())
        if (auto codegen = dyn_cast<CodegenInterface>(attribute)) {
          llvm::Expected<const Target *> description = codegen.getDescription();
          if (description && *description == target)
            return attribute;
          llvm::consumeError(description.takeError());
        }
      return target->getAttr(&context);
    };
    SmallVector<Attribute> targets = llvm::map_to_vector(options.targets, attributeOf);
    module->setAttr(AttnDialect::kTargetsAttr, ArrayAttr::get(&context, targets));
    if (options.compute == "bf16")
      module->setAttr(AttnDialect::kComputeAttr, TypeAttr::get(BFloat16Type::get(&context)));
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
  return writeFile(path, print);
}

void Compilation::noteFindings() {
  if (findings.empty())
    return;
  Builder builder(&context);
  ModuleOp module = *model.module;
  NamedAttrList fields(module->getAttrOfType<DictionaryAttr>(AttnDialect::kReportAttr));
  for (const FindingText &finding : std::exchange(findings, {})) {
    StringRef reason = finding.text;
    // Drop the prefix, because the report has a separate list of attentions that are not fused.
    (void)reason.consume_front("attention left unfused: ");
    NamedAttrList entry;
    entry.set("source", builder.getStringAttr(finding.source));
    entry.set("reason", builder.getStringAttr(reason));
    StringRef name = getListName(finding.kind);
    auto list = dyn_cast_or_null<ArrayAttr>(fields.get(name));
    SmallVector<Attribute> entries;
    if (list)
      llvm::append_range(entries, list);
    // All levels share one entry, which has the share of the best level, because that level comes first.
    bool isKnown = llvm::any_of(entries, [&](Attribute other) {
      auto fields = dyn_cast<DictionaryAttr>(other);
      return fields && fields.get("source") == entry.get("source") &&
             fields.get("reason") == entry.get("reason");
    });
    if (isKnown)
      continue;
    if (finding.share)
      entry.set("share", builder.getF64FloatAttr(*finding.share));
    entries.push_back(entry.getDictionary(&context));
    fields.set(name, builder.getArrayAttr(entries));
  }
  module->setAttr(AttnDialect::kReportAttr, fields.getDictionary(&context));
}

/// Returns the predicted time of the plan of `op`, then that of the best plan of each other schedule. The unit is one
/// million cycles. On a CPU, a cycle is the time of one vector multiply-add; on a GPU, it is one of a multiprocessor.
static ArrayAttr predictionsOf(AttentionOp op) {
  Builder builder(op.getContext());
  auto planner = cast<PlannerInterface>(getTarget(op));
  AttentionShape shape = AttentionShape::get(op);
  SmallVector<Attribute> predictions;
  SmallVector<Schedule> named;
  auto add = [&](PlanAttr plan, double cost) {
    if (llvm::is_contained(named, plan.getSchedule()))
      return;
    named.push_back(plan.getSchedule());
    StringRef schedule = stringifySchedule(plan.getSchedule());
    NamedAttrList fields;
    fields.set("schedule", builder.getStringAttr(schedule));
    fields.set("mcycles", builder.getF64FloatAttr(cost / 1e6));
    if (std::optional<double> ofMany = planner.predictPlanOfWorkers(shape, plan, kManyWorkers))
      fields.set("mcycles_16", builder.getF64FloatAttr(*ofMany / 1e6));
    predictions.push_back(fields.getDictionary(op.getContext()));
  };
  add(*op.getPlan(), planner.predictPlan(shape, *op.getPlan()));
  for (const Prediction &other : planner.predictPlans(shape, /*only=*/std::nullopt))
    add(other.plan, other.cost);
  return builder.getArrayAttr(predictions);
}

/// Returns where `value` comes from, such as "a product" or "a weight". Skips views and changes of layout.
static std::string originOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::ExtractSliceOp, tensor::CastOp,
            linalg::TransposeOp, linalg::BroadcastOp>(op)) {
      value = op->getOperand(0);
      continue;
    }
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (linalgOp && linalg::isaContractionOpInterface(linalgOp))
      return "a product";
    if (linalgOp && linalg::isElementwise(linalgOp))
      return "elementwise ops";
    return op->getName().getStringRef().str();
  }
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  bool isWeight =
      function && (function.getArgAttr(argument.getArgNumber(), AttnDialect::kPackedAttr) ||
                   function.getArgAttr(argument.getArgNumber(), AttnDialect::kWeightAttr));
  return isWeight ? "a weight" : "an input";
}

/// Adds the plan of `op` to the fields of its entry.
static void addPlan(AttentionOp op, NamedAttrList &fields) {
  Builder builder(op.getContext());
  PlanAttr plan = *op.getPlan();
  fields.set("schedule", builder.getStringAttr(stringifySchedule(plan.getSchedule())));
  fields.set("query_tile", builder.getI64IntegerAttr(plan.getQ()));
  fields.set("key_tile", builder.getI64IntegerAttr(plan.getK()));
  if (plan.getStages())
    fields.set("stages", builder.getI64IntegerAttr(plan.getStages()));
  if (plan.getPart())
    fields.set("part", builder.getI64IntegerAttr(plan.getPart()));
  fields.set("predictions", predictionsOf(op));
}

DictionaryAttr Compilation::describe(AttentionOp op) {
  Builder builder(&context);
  PlanAttr plan = *op.getPlan();
  NamedAttrList fields;
  auto setText = [&](StringRef name, const Twine &text) {
    fields.set(name, builder.getStringAttr(text));
  };
  addPlan(op, fields);
  if (AttentionOp one = findForOneQuery(op)) {
    NamedAttrList ofOne;
    addPlan(one, ofOne);
    fields.set("one_query", ofOne.getDictionary(&context));
  }
  setText("source", getSource(op.getLoc()));
  fields.set("fused", builder.getBoolAttr(plan.getSchedule() != Schedule::Unfused));
  if (MaskInterface mask = op.getMaskAttr()) {
    SkippedShare share = getSkippedShare(op);
    fields.set("mask", mask);
    if (op.getFill()) {
      fields.set("fill", op.getFillAttr());
      fields.set("fill_added", builder.getBoolAttr(op.getAdded()));
    }
    fields.set("skipped_share", builder.getF64FloatAttr(share.least));
    fields.set("skipped_at_call", builder.getBoolAttr(share.mayGrow));
  }
  bool hasProduct =
      op.getScore().empty() || !op.getScore().getArgument(op.getKDim() + 1).use_empty();
  setText("query", hasProduct ? originOf(op.getQuery()) : "none");
  setText("key", hasProduct ? originOf(op.getKey()) : "none");
  setText("value", originOf(op.getValue()));
  SmallVector<StringRef> scoreOps;
  op.getScore().walk([&](Operation *inner) {
    StringRef name = inner->getName().getStringRef();
    if (!isa<YieldOp, arith::ConstantOp>(inner) && !llvm::is_contained(scoreOps, name))
      scoreOps.push_back(name);
  });
  if (!scoreOps.empty())
    fields.set("score_ops", builder.getStrArrayAttr(scoreOps));
  fields.set("captures", builder.getI64IntegerAttr(op.getCaptures().size()));
  fields.set("sink", builder.getBoolAttr(!!op.getSink()));
  fields.set("returns_probabilities", builder.getBoolAttr(op.returnsProbabilities()));
  return fields.getDictionary(&context);
}

/// Returns the entry of the report for the product `op`: its shapes, and when an operand is packed.
static DictionaryAttr describeProduct(linalg::LinalgOp op) {
  Builder builder(op.getContext());
  StringRef packed = "no";
  for (Value operand : op.getDpsInputs()) {
    auto argument = dyn_cast<BlockArgument>(operand);
    auto function =
        argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
    if (function && function.getArgAttr(argument.getArgNumber(), AttnDialect::kPackedAttr))
      packed = "with the weights";
    Operation *producer = operand.getDefiningOp();
    while (isa_and_nonnull<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(producer))
      producer = producer->getOperand(0).getDefiningOp();
    if (isa_and_nonnull<PackOp>(producer))
      packed = "in each call";
  }
  auto shapeOf = [&](Value value) -> Attribute {
    return builder.getI64ArrayAttr(
        llvm::map_to_vector(cast<ShapedType>(value.getType()).getShape(), [](int64_t size) {
          return ShapedType::isDynamic(size) ? int64_t(-1) : size;
        }));
  };
  SmallVector<Attribute> shapes = llvm::map_to_vector(op.getDpsInputs(), shapeOf);
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("source", builder.getStringAttr(getSource(op.getLoc()))),
       builder.getNamedAttr("inputs", builder.getArrayAttr(shapes)),
       builder.getNamedAttr("output", shapeOf(op.getDpsInits()[0])),
       builder.getNamedAttr("packed", builder.getStringAttr(packed))});
}

/// Returns the entry of the report for a group of ops that share tasks: the rows of a task, the source lines of the
/// ops, and the number of products among them.
static DictionaryAttr describeGroup(SmallVector<linalg::LinalgOp> ops) {
  Builder builder(ops.front()->getContext());
  llvm::SetVector<Attribute> sources;
  int64_t numProducts = 0;
  for (linalg::LinalgOp op : ops) {
    sources.insert(builder.getStringAttr(getSource(op.getLoc())));
    numProducts += linalg::isaContractionOpInterface(op);
  }
  int64_t rows = ops.front()->getAttrOfType<TaskAttr>(AttnDialect::kTaskAttr).getRows();
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("rows", builder.getI64IntegerAttr(rows)),
       builder.getNamedAttr("products", builder.getI64IntegerAttr(numProducts)),
       builder.getNamedAttr("sources", builder.getArrayAttr(sources.getArrayRef()))});
}

void Compilation::notePlans() {
  Builder builder(&context);
  for (ModuleOp level : model.module->getOps<ModuleOp>())
    for (func::FuncOp function : level.getOps<func::FuncOp>()) {
      SmallVector<Attribute> attentions, products;
      SmallVector<StringRef> schedules;
      llvm::MapVector<int64_t, SmallVector<linalg::LinalgOp>> groups;
      function.walk([&](Operation *op) {
        auto task = op->getAttrOfType<TaskAttr>(AttnDialect::kTaskAttr);
        if (auto member = dyn_cast<linalg::LinalgOp>(op); member && task && task.getGroup())
          groups[*task.getGroup()].push_back(member);
        if (auto attention = dyn_cast<AttentionOp>(op)) {
          if (findGeneral(attention))
            return; // its plan is in the entry of the other attention
          attentions.push_back(describe(attention));
          schedules.push_back(stringifySchedule(attention.getPlan()->getSchedule()));
        } else if (auto product = dyn_cast<linalg::LinalgOp>(op);
                   product && linalg::isaContractionOpInterface(product)) {
          products.push_back(describeProduct(product));
        }
      });
      NamedAttrList fields;
      if (!attentions.empty())
        fields.set("attentions", builder.getArrayAttr(attentions));
      if (!products.empty())
        fields.set("products", builder.getArrayAttr(products));
      if (!groups.empty())
        fields.set("groups",
                   builder.getArrayAttr(llvm::map_to_vector(groups, [](auto &group) -> Attribute {
                     return describeGroup(group.second);
                   })));
      if (auto compute = function->getAttrOfType<TypeAttr>(AttnDialect::kComputeAttr))
        fields.set("compute", compute);
      if (!fields.empty())
        function->setAttr(AttnDialect::kReportAttr, fields.getDictionary(&context));
      if (!schedules.empty())
        function->setAttr(AttnDialect::kSchedulesAttr,
                          StringAttr::get(&context, llvm::join(schedules, ", ")));
    }
}

void Compilation::report() {
  ModuleOp module = *model.module;
  auto print = [&](Operation *op, const Twine &prefix) {
    auto report = op->getAttrOfType<DictionaryAttr>(AttnDialect::kReportAttr);
    if (!report)
      return;
    std::string text = printReport(report);
    if (text.empty())
      return;
    for (StringRef line : llvm::split(StringRef(text), '\n'))
      result.text += (prefix + line + "\n").str();
  };
  auto count = [&](Operation *op) {
    auto report = op->getAttrOfType<DictionaryAttr>(AttnDialect::kReportAttr);
    for (DictionaryAttr attention : getList(report, "attentions"))
      if (isFused(attention))
        ++result.numFused;
      else
        result.unfused.push_back(printAttention(attention));
  };
  llvm::json::Array levels;
  for (ModuleOp level : module.getOps<ModuleOp>()) {
    // An edited file may lack the name of the level.
    StringRef name = level.getSymName().value_or("unknown level");
    llvm::json::Array functions;
    for (func::FuncOp function : level.getOps<func::FuncOp>()) {
      auto report = function->getAttrOfType<DictionaryAttr>(AttnDialect::kReportAttr);
      if (!report)
        continue;
      print(function, "[" + name + "] ");
      if (levels.empty())
        count(function);
      llvm::json::Value entry = toJSON(report);
      entry.getAsObject()->insert({"function", toJSON(function.getSymNameAttr())});
      functions.push_back(std::move(entry));
    }
    levels.push_back(llvm::json::Object{{"level", llvm::json::fixUTF8(name)},
                                        {"functions", std::move(functions)}});
  }
  print(module, "");
  count(module);
  if (!result.numFused && result.unfused.empty())
    result.text += "no attention found\n";
  auto own = module->getAttrOfType<DictionaryAttr>(AttnDialect::kReportAttr);
  auto listIn = [&](StringRef name) {
    Attribute list = own ? own.get(name) : Attribute();
    return list ? toJSON(list) : llvm::json::Array();
  };
  result.json = llvm::json::Object{{"version", kReportVersion},
                                   {"fused", result.numFused},
                                   {"unfused", int64_t(result.unfused.size())},
                                   {"levels", std::move(levels)},
                                   {"not_raised", listIn("attentions")},
                                   {"extra_work", listIn("extra_work")},
                                   {"slow_loops", listIn("slow_loops")},
                                   {"unchecked", listIn("unchecked")}};
}

llvm::Error Compilation::lint(StringRef stage) {
  if (!options.lint)
    return llvm::Error::success();
  ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Warning)
      return failure();
    Location loc = diagnostic.getLocation();
    auto file = loc->findInstanceOf<FileLineColLoc>();
    lintFindings.emplace(file ? file.getFilename().str() : "", file ? file.getLine() : 0,
                         getSource(loc) + ": lint: " + diagnostic.str());
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
  auto show = [&](StringRef stage) -> llvm::Error {
    if (!options.onStage)
      return llvm::Error::success();
    std::string text;
    llvm::raw_string_ostream out(text);
    print(out);
    return options.onStage(stage, text);
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
      if (active && stage.name == "plan") // the file may have been edited
        notePlans();
      if (active)
        if (llvm::Error error = show(stage.name))
          return error;
      continue;
    }
    TimingScope time = total.nest(stage.name.str());
    PassManager manager(&context);
    addStage(manager, stage, options.pipeline);
    if (failed(runPasses(manager, *model.module)))
      return fail(firstError.empty() ? "stage " + stage.name + " failed" : llvm::Twine(firstError));
    time.stop();
    noteFindings();
    if (stage.name == "plan")
      notePlans();
    if (llvm::Error error = show(stage.name))
      return error;
    if (llvm::Error error = dump(i + 2, stage.name, ".mlir", print))
      return error;
    if (llvm::Error error = lint(stage.name))
      return error;
    if (options.output.empty() && stage.name == "raise") // the last stage that lint rules read
      break;
  }
  for (const auto &[file, line, text] : lintFindings)
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
  emission.cubin = options.cubin;
  llvm::Expected<OutputKind> kind = getOutputKind(options.output);
  if (!kind)
    return kind.takeError();
  if (options.sanitizer != Sanitizer::None &&
      (*kind == OutputKind::MLIR || *kind == OutputKind::LLVMIR))
    return fail("expected no --sanitize with an output of .ll or .mlir, got '" + options.output +
                "'");
  if (options.cubin && (*kind == OutputKind::MLIR || *kind == OutputKind::LLVMIR))
    return fail("expected no --cubin with an output of .ll or .mlir, got '" + options.output + "'");
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
  if (options.onReport)
    if (llvm::Error error = options.onReport(result))
      return std::move(error);
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
  TimingScope emit = total.nest("emit");
  PassManager manager(&context);
  addTargetEmission(manager);
  if (failed(runPasses(manager, *model.module)))
    return fail(firstError.empty() ? "stage emit failed" : llvm::Twine(firstError));
  for (ModuleOp level : model.module->getOps<ModuleOp>())
    for (auto code : level.getOps<LLVM::GlobalOp>()) {
      auto text = dyn_cast_or_null<StringAttr>(code.getValueOrNull());
      std::string stage = ("emit." + getTarget(level).getLevel()).str();
      if (llvm::Error error =
              dump(getStages().size() + 2, stage, ".ptx",
                   [&](llvm::raw_ostream &os) { os << (text ? text.getValue().rtrim('\0') : ""); }))
        return std::move(error);
    }
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
  emit.stop();
  TimingScope machineCode = total.nest("machine code");
  if (llvm::Error error = emitLLVMIR(std::move(*ir), emission))
    return std::move(error);
  return result;
}

llvm::Expected<CompileReport> attn::compile(const CompileOptions &options) {
  return Compilation(options).run();
}
