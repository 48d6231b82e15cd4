//===- attn-bench-plans.cpp - is the chosen plan the fastest? -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Measures attention and layers with every plan that the compiler considers, and prints each time beside the
// predicted one. The first selected row of each shape measures all plans of that shape together. The last row of each
// shape repeats the plan that the compiler chooses.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Table.h"
#include "codegen/Pipeline.h"
#include "codegen/cpu/Choose.h"

#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;
using namespace attn::bench;

/// The summary lists the chosen plans that are slower than the fastest plan by more than this fraction.
static constexpr double kLoss = 0.03;

/// The plans of the attention in `module` with the predictions of the stage `plan`, the best plan first.
static llvm::Expected<SmallVector<Prediction>> predict(StringRef module, CpuAttr cpu) {
  auto parsed = parseSourceString<ModuleOp>(module, cpu.getContext());
  PassManager manager(cpu.getContext());
  for (const Stage &stage :
       getStages().take_until([](const Stage &stage) { return stage.name == "plan"; }))
    stage.build(manager, {});
  SmallVector<Prediction> predictions;
  if (parsed && succeeded(manager.run(*parsed)))
    parsed->walk(
        [&](AttentionOp op) { predictions = predictPlans(cpu, attn::AttentionShape::get(op)); });
  if (predictions.empty())
    return llvm::createStringError("expected an attention, got\n" + module);
  return predictions;
}

namespace {

struct Candidate {
  std::string name;
  Case of;
  bool isFused;
  double predicted; ///< in millions of cycles; in this file, a cycle is the unit of time of Cost.h
  std::string error = {};
  Timing timing = {};
  size_t rank = 0; ///< 1 for the fastest plan, 0 if not measured
};

/// Compares the plans of a shape.
class Contest {
public:
  Contest(std::string name, ArrayRef<Prediction> predictions,
          function_ref<Case(StringRef plan)> getCase);

  void addRows(Table &table);

  bool isMeasured() const { return getChosen().rank; }
  double getLoss() const { return getLoss(getChosen()); }
  void print(raw_ostream &out) const;

private:
  /// The plan that Plan.cpp would choose.
  const Candidate &getChosen() const {
    return *llvm::find_if(candidates, [](const Candidate &plan) { return plan.isFused; });
  }
  const Candidate &getFastest() const {
    return *llvm::find_if(candidates, [](const Candidate &plan) { return plan.rank == 1; });
  }
  /// The time that `plan` takes beyond the fastest plan, as a fraction of the fastest plan's time.
  double getLoss(const Candidate &plan) const {
    return plan.timing.seconds / getFastest().timing.seconds - 1;
  }

  void measure(Table &table);
  void addRow(Table &table, StringRef rowName, const Candidate &plan);

  std::string name;
  std::vector<Candidate> candidates; ///< the best predicted first
};

} // namespace

Contest::Contest(std::string name, ArrayRef<Prediction> predictions,
                 function_ref<Case(StringRef plan)> getCase)
    : name(std::move(name)) {
  for (auto [plan, cost] : predictions) {
    std::string text;
    llvm::raw_string_ostream(text) << plan;
    candidates.push_back({llvm::formatv("{0}_q{1}_k{2}", stringifySchedule(plan.getSchedule()),
                                        plan.getQ(), plan.getK()),
                          getCase(text), plan.getSchedule() != Schedule::Unfused, cost * 1e-6});
  }
}

void Contest::measure(Table &table) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::function<void()>> calls;
  std::vector<Candidate *> measured;
  for (Candidate &plan : candidates) {
    // All plans share the same tensors, because their addresses influence the time.
    const Kernel *twin = kernels.empty() ? nullptr : kernels.front().get();
    llvm::Expected<std::unique_ptr<Kernel>> kernel = table.compile(plan.of, twin);
    if (!kernel) {
      plan.error = llvm::toString(kernel.takeError());
      continue;
    }
    kernels.push_back(std::move(*kernel));
    calls.push_back([kernel = kernels.back().get()] { kernel->call(); });
    measured.push_back(&plan);
  }
  for (auto [plan, timing] : llvm::zip_equal(measured, table.time(calls)))
    plan->timing = std::move(timing);
  llvm::sort(measured, [](const Candidate *a, const Candidate *b) {
    return a->timing.seconds < b->timing.seconds;
  });
  for (auto [i, plan] : llvm::enumerate(measured))
    plan->rank = i + 1;
}

void Contest::addRow(Table &table, StringRef rowName, const Candidate &plan) {
  table.addRow((name + "/" + rowName).str(), [this, &table, &plan](Table::Row &row) -> llvm::Error {
    if (!plan.rank && plan.error.empty())
      measure(table);
    if (!plan.error.empty())
      return llvm::createStringError(plan.error);
    table.report(row, plan.timing, plan.of.flop);
    double cyclesPerSecond = table.getPeak() / (2 * table.getCpu().vector / 32);
    row.counters["Mcycles"] = plan.timing.seconds * cyclesPerSecond * 1e-6;
    row.counters["Mcycles predicted"] = plan.predicted;
    row.counters["rank"] = plan.rank;
    row.counters["rank predicted"] = &plan - candidates.data() + 1;
    row.counters["loss%"] = 100 * getLoss(plan);
    return llvm::Error::success();
  });
}

void Contest::addRows(Table &table) {
  for (const Candidate &plan : candidates)
    addRow(table, plan.name, plan);
  addRow(table, "chosen", getChosen());
}

void Contest::print(raw_ostream &out) const {
  out << llvm::formatv("{0,6:F1} %  {1}: {2}, fastest {3}\n", 100 * getLoss(), name,
                       getChosen().name, getFastest().name);
}

/// Prints the summary to stderr, where Google Benchmark prints its own remarks.
static void summarize(const std::list<Contest> &contests) {
  SmallVector<const Contest *> measured;
  for (const Contest &contest : contests)
    if (contest.isMeasured())
      measured.push_back(&contest);
  llvm::sort(measured,
             [](const Contest *a, const Contest *b) { return a->getLoss() > b->getLoss(); });
  size_t numLosing =
      llvm::count_if(measured, [](const Contest *contest) { return contest->getLoss() > kLoss; });
  llvm::errs() << llvm::formatv(
      "\nIn {0} of {1} shapes the chosen plan loses more than {2:F0} percent to the fastest\n",
      numLosing, measured.size(), 100 * kLoss);
  // Always print at least the worst shape.
  for (const Contest *contest : ArrayRef(measured).take_front(std::max<size_t>(numLosing, 1)))
    contest->print(llvm::errs());
}

static llvm::Error run(Table &table) {
  DialectRegistry registry;
  registerAllDialects(registry);
  registry.insert<AttnDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadDialect<AttnDialect>();
  auto cpu = cast<CpuAttr>(table.getCpu().getAttr(&context));

  std::list<Contest> contests;
  auto addContest = [&](const std::string &kind,
                        function_ref<Case(StringRef plan)> getCase) -> llvm::Error {
    Case unplanned = getCase("");
    llvm::Expected<SmallVector<Prediction>> predictions = predict(unplanned.module, cpu);
    if (!predictions)
      return predictions.takeError();
    contests.emplace_back(kind + "/" + unplanned.name, *predictions, getCase).addRows(table);
    return llvm::Error::success();
  };
  for (const auto &shape : getAttentionShapes())
    if (llvm::Error error =
            addContest("attention", [&](StringRef plan) { return getAttention(shape, plan); }))
      return error;
  for (const auto &shape : getLayerShapes())
    if (llvm::Error error =
            addContest("layer", [&](StringRef plan) { return getLayer(shape, plan); }))
      return error;
  llvm::Error error = table.measure();
  summarize(contests);
  return error;
}

int main(int argc, char **argv) {
  // Half of the usual samples, so that all plans of all shapes take a quarter of an hour.
  return benchMain(argc, argv, run, /*numSamples=*/10);
}
