//===- StagesTest.cpp - every pass preserves the results of a module -------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The tests interpret modules as they are imported and again after each pass of the stages before bufferization, and
// compare the results. They try every schedule, with tiles so small that loops over tiles run more than once.
//
//===----------------------------------------------------------------------===//

#include "codegen/Pipeline.h"
#include "frontend/Frontend.h"
#include "test/reference/Fixture.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>

using namespace mlir;
using namespace attn;

namespace {
/// Calls `check` after every pass, also after passes on nested ops, with the name of the pass.
struct AfterEachPass : PassInstrumentation {
  AfterEachPass(ModuleOp module, std::function<void(StringRef pass)> check)
      : module(module), check(std::move(check)) {}
  void runAfterPass(Pass *pass, Operation *) override {
    if (!pass->getArgument().empty())
      check(pass->getArgument());
  }
  ModuleOp module;
  std::function<void(StringRef)> check;
};

class StagesTest : public InterpreterTest {
protected:
  StagesTest() { loadFrontendDialects(context); }

  /// Compares `got`, the outputs of a module after `pass`, with `meant`, the expected outputs.
  static void expectSame(StringRef pass, const ReferenceResults &got, const ReferenceResults &meant,
                         double tolerance) {
    ASSERT_TRUE(succeeded(got)) << "after " << pass.str();
    for (auto [x, y] : llvm::zip_equal(*got, *meant)) {
      ASSERT_EQ(x.shape, y.shape);
      double largest = 0;
      for (double element : y.elements)
        if (std::isfinite(element))
          largest = std::max(largest, std::abs(element));
      for (auto [i, a, b] : llvm::enumerate(x.elements, y.elements)) {
        bool isSame = std::isfinite(b) ? std::abs(a - b) <= tolerance * largest
                                       : a == b || (std::isnan(a) && std::isnan(b));
        ASSERT_TRUE(isSame) << "element " << i << " is " << a << " after " << pass.str() << ", was "
                            << b;
      }
    }
  }

  void run(ModuleOp source, StringRef entry, ArrayRef<ReferenceTensor> inputs,
           const llvm::StringMap<ReferenceTensor> &weights = {}) {
    for (Schedule schedule : {Schedule::PerHead, Schedule::Phased, Schedule::WholeScores,
                              Schedule::Decode, Schedule::Unfused}) {
      OwningOpRef<ModuleOp> module = source.clone();
      ReferenceResults meant = interpret(*module, entry, inputs, weights);
      ASSERT_TRUE(succeeded(meant));
      Attribute target = llvm::cantFail(parseTargets("x86-64-v3")).front()->getAttr(&context);
      (*module)->setAttr(AttnDialect::kTargetsAttr, ArrayAttr::get(&context, target));
      for (const Stage &stage : getStages()) {
        if (stage.name == "bufferize")
          break;
        if (stage.name == "plan")
          module->walk([&](AttentionOp op) {
            op.setPlanAttr(PlanAttr::get(&context, schedule, 8, 4, /*group=*/1));
          });
        SCOPED_TRACE((stage.name + ", schedule " + stringifySchedule(schedule)).str());
        // Raising folds factors into one scale, and tiling splits the scale between queries and scores. Both
        // stages round a scale to f32.
        bool changesScale = stage.name == "raise" || stage.name == "tile";
        double tolerance = changesScale ? 1e-6 : 1e-12;
        PassManager manager(&context);
        manager.addInstrumentation(std::make_unique<AfterEachPass>(*module, [&](StringRef pass) {
          if (!HasFatalFailure())
            expectSame(pass, interpret(*module, entry, inputs, weights), meant, tolerance);
        }));
        stage.build(manager, {stringifySchedule(schedule).str()});
        ASSERT_TRUE(succeeded(manager.run(*module)));
        ASSERT_FALSE(HasFatalFailure());
        if (stage.name == "raise")
          meant = interpret(*module, entry, inputs, weights);
      }
    }
  }

  /// One attention of 2 batch items, 2 heads, 19 queries and 23 keys.
  struct Attention {
    std::string mask = "", attributes = "", score = "";
    /// Types, maps and elements of the captured operands.
    std::vector<std::string> types = {}, maps = {};
    std::vector<ReferenceTensor> captured = {};
    bool returnsProbabilities = false;
    /// One sink score for each head.
    std::optional<ReferenceTensor> sink = {};
  };

  void run(const Attention &attention) {
    auto list = [&](const std::vector<std::string> &parts, auto text) {
      std::string result;
      for (auto [i, part] : llvm::enumerate(parts))
        result += text(i, part);
      return result;
    };
    bool hasCaptures = !attention.types.empty();
    std::string sink;
    std::string arguments = list(attention.types, [](size_t i, std::string type) {
      return ", %c" + std::to_string(i) + ": " + type;
    });
    std::string captures = list(attention.types, [](size_t i, std::string) {
      return (i ? ", %c" : "%c") + std::to_string(i);
    });
    std::string types =
        list(attention.types, [](size_t i, std::string type) { return (i ? ", " : "") + type; });
    std::string maps = list(attention.maps, [](size_t, std::string map) {
      return ", affine_map<(b, h, q, k, d, e) -> " + map + ">";
    });
    if (attention.sink) {
      arguments += ", %sink: tensor<2xf32>";
      sink = " sink(%sink : tensor<2xf32>)";
      maps += ", affine_map<(b, h, q, k, d, e) -> (h)>";
    }
    std::string outs = "tensor<2x2x19x5xf32>", inits = "%e";
    if (attention.returnsProbabilities) {
      outs += ", tensor<2x2x19x23xf32>";
      inits += ", %w";
      maps += ", affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>, affine_map<(b, h, q, k, d, e) -> "
              "(b, h, q, k)>";
    } else {
      maps += ", affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>";
    }
    std::string results = attention.returnsProbabilities ? "%o#0, %o#1" : "%o";
    std::string text = "func.func @f(%q: tensor<2x2x19x3xf32>, %k: tensor<2x2x23x3xf32>, %v: "
                       "tensor<2x2x23x5xf32>" +
                       arguments + ") -> (" + outs +
                       ") {\n  %e = tensor.empty() : tensor<2x2x19x5xf32>\n"
                       "  %w = tensor.empty() : tensor<2x2x19x23xf32>\n  %o" +
                       (attention.returnsProbabilities ? ":2" : "") +
                       " = attn.attention ins(%q, %k, %v : tensor<2x2x19x3xf32>, "
                       "tensor<2x2x23x3xf32>, tensor<2x2x23x5xf32>) " +
                       (hasCaptures ? "captures(" + captures + " : " + types + ")" : "") + sink +
                       " outs(" + inits + " : " + outs + ") " + attention.mask +
                       " {indexing_maps = [affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>, "
                       "affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>, affine_map<(b, h, q, k, d, "
                       "e) -> (b, h, k, e)>" +
                       maps + "], scale = -0.5 : f32" + attention.attributes + "} " +
                       attention.score + " -> " + outs + "\n  return " + results + " : " + outs +
                       "\n}";
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    SmallVector<ReferenceTensor> inputs = {query, key, value};
    llvm::append_range(inputs, attention.captured);
    if (attention.sink)
      inputs.push_back(*attention.sink);
    run(*module, "f", inputs);
  }

  ReferenceTensor query = normal({2, 2, 19, 3}), key = normal({2, 2, 23, 3}),
                  value = normal({2, 2, 23, 5});
};

constexpr char kNaNRows[] = ", empty_row = #attn.empty_row<nan>";
} // namespace

TEST_F(StagesTest, NoMask) { run(Attention{}); }

TEST_F(StagesTest, Causal) {
  for (const char *offset : {"0", "4", "-7"})
    for (const char *attributes : {"", kNaNRows})
      run({"mask(#attn.causal<offset = " + std::string(offset) + ">)", attributes});
}

TEST_F(StagesTest, Window) { run({"mask(#attn.window<left = 5, right = 1>)"}); }

TEST_F(StagesTest, Lengths) {
  ReferenceTensor lengths({2});
  lengths.elements = {0, 17};
  run({"mask(#attn.lengths<0>)", "", "", {"tensor<2xi64>"}, {"(b)"}, {lengths}});
  // Each query has its own length.
  ReferenceTensor byRow({2, 19});
  for (auto [i, length] : llvm::enumerate(byRow.elements))
    length = i * 7 % 24;
  run({"mask(#attn.lengths<0>)", "", "", {"tensor<2x19xi32>"}, {"(b, q)"}, {byRow}});
}

TEST_F(StagesTest, Dense) {
  ReferenceTensor mask({2, 1, 19, 23});
  for (double &element : mask.elements)
    element = random() % 3 == 0;
  for (const char *keeps : {"nonzero", "zero"})
    run({std::string("mask(#attn.dense<0, keeps = ") + keeps + ">)",
         "",
         "",
         {"tensor<2x1x19x23xi1>"},
         {"(b, 0, q, k)"},
         {mask}});
}

TEST_F(StagesTest, AndOfMasks) {
  ReferenceTensor lengths({2}), mask({19, 23});
  lengths.elements = {9, 23};
  for (double &element : mask.elements)
    element = random() % 3;
  run({"mask(#attn.and<[#attn.causal<offset = 2>, #attn.lengths<1>, #attn.dense<0>]>)",
       "",
       "",
       {"tensor<19x23xf32>", "tensor<2xi32>"},
       {"(q, k)", "(b)"},
       {mask, lengths}});
}

TEST_F(StagesTest, ScoreRegion) {
  std::string score = R"(score {
    ^bb0(%b: index, %h: index, %i: index, %j: index, %s: f32, %bias: f32):
      %distance = arith.subi %i, %j : index
      %integer = arith.index_cast %distance : index to i32
      %slope = arith.sitofp %integer : i32 to f32
      %capped = math.tanh %s : f32
      %sum = arith.addf %capped, %bias : f32
      %factor = arith.constant 1.250000e-01 : f32
      %alibi = arith.mulf %slope, %factor : f32
      %r = arith.addf %sum, %alibi : f32
      attn.yield %r : f32 })";
  ReferenceTensor bias = normal({2, 19, 23});
  for (const char *mask : {"", "mask(#attn.causal)"})
    run({mask,
         "",
         score,
         {"tensor<2x19x23xf32>"},
         {"(h, q, k)"},
         {bias},
         /*returnsProbabilities=*/true});
  // A bias of -inf hides pairs.
  for (auto [i, element] : llvm::enumerate(bias.elements))
    if (i % 5 == 0 || i < 23)
      element = -std::numeric_limits<double>::infinity();
  for (const char *attributes : {"", kNaNRows})
    run({"",
         attributes,
         score,
         {"tensor<2x19x23xf32>"},
         {"(h, q, k)"},
         {bias},
         /*returnsProbabilities=*/true});
}

TEST_F(StagesTest, Weights) {
  for (const char *attributes : {"", kNaNRows})
    run({"mask(#attn.causal<offset = -3>)",
         attributes,
         "",
         {},
         {},
         {},
         /*returnsProbabilities=*/true});
}

TEST_F(StagesTest, Sink) {
  const char *causal = "mask(#attn.causal<offset = -3>)";
  ReferenceTensor sink({2});
  sink.elements = {-1, 40};
  run({causal, kNaNRows, "", {}, {}, {}, /*returnsProbabilities=*/true, sink});
  sink.elements = {0.5, -std::numeric_limits<double>::infinity()};
  run({causal, kNaNRows, "", {}, {}, {}, /*returnsProbabilities=*/true, sink});
  // In a row of NaN, the probability of a hidden pair may be 0 or NaN, so this test does not compare probabilities.
  sink.elements = {0.5, std::nan("")};
  run({causal, kNaNRows, "", {}, {}, {}, /*returnsProbabilities=*/false, sink});
}

TEST_F(StagesTest, NaN) {
  // Keys and values contain NaN at two positions. The causal mask hides position 22 from all queries, and position 6
  // from some queries.
  for (int64_t e = 0; e < 5; ++e)
    value.at({0, 0, 22, e}) = std::nan("");
  key.at({0, 1, 22, 1}) = std::nan("");
  key.at({1, 0, 6, 2}) = std::nan("");
  value.at({1, 1, 6, 3}) = std::nan("");
  run({"mask(#attn.causal)"});
  run(Attention{});
}

TEST_F(StagesTest, GroupedHeadsOfDynamicSizes) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    func.func @f(%q: tensor<?x2x3x?x4xf32>, %k: tensor<?x2x?x4xf32>, %v: tensor<?x2x?x4xf32>)
        -> tensor<?x2x3x?x4xf32> {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %b = tensor.dim %q, %c0 : tensor<?x2x3x?x4xf32>
      %n = tensor.dim %q, %c3 : tensor<?x2x3x?x4xf32>
      %e = tensor.empty(%b, %n) : tensor<?x2x3x?x4xf32>
      %o = attn.attention ins(%q, %k, %v : tensor<?x2x3x?x4xf32>, tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>)
          outs(%e : tensor<?x2x3x?x4xf32>) mask(#attn.causal) {scale = 0.5 : f32,
          indexing_maps = [affine_map<(b, h, g, q, k, d, e) -> (b, h, g, q, d)>,
                           affine_map<(b, h, g, q, k, d, e) -> (b, h, k, d)>,
                           affine_map<(b, h, g, q, k, d, e) -> (b, h, k, e)>,
                           affine_map<(b, h, g, q, k, d, e) -> (b, h, g, q, e)>],
          empty_row = #attn.empty_row<nan>} -> tensor<?x2x3x?x4xf32>
      return %o : tensor<?x2x3x?x4xf32>
    })",
                                                             &context);
  ASSERT_TRUE(module);
  for (auto [queries, keys] :
       {std::pair(11, 13), std::pair(1, 9), std::pair(3, 0), std::pair(0, 3)})
    run(*module, "f",
        {normal({2, 2, 3, queries, 4}), normal({2, 2, keys, 4}), normal({2, 2, keys, 4})});
}

/// Tests models from torch that have projections, views, masks and softmaxes, and whose weights are packed.
TEST_F(StagesTest, Models) {
  for (const char *name :
       {"000_SelfAttentionV4", "001_MultiHeadAttention_x", "002_Multi_Head_Attention_dyn",
        "003_single_head_no_value_dyn", "004_TransformerEncoder_dynS", "sdpa_gqa"}) {
    SCOPED_TRACE(name);
    Model model =
        llvm::cantFail(importFile((Twine(CASES "/") + name + "/model.pt2").str(), context));
    llvm::StringMap<ReferenceTensor> weights;
    for (const NamedTensor &weight : model.weights)
      weights[weight.name] = normal(weight.shape);
    auto function = *model.module->getOps<func::FuncOp>().begin();
    SmallVector<ReferenceTensor> inputs;
    for (BlockArgument argument : function.getArguments()) {
      if (function.getArgAttr(argument.getArgNumber(), AttnDialect::kWeightAttr))
        continue;
      auto type = cast<RankedTensorType>(argument.getType());
      inputs.push_back(normal(llvm::map_to_vector(
          type.getShape(), [](int64_t size) { return ShapedType::isDynamic(size) ? 5 : size; })));
      if (!isa<FloatType>(type.getElementType()))
        for (double &element : inputs.back().elements)
          element = random() % 2;
    }
    run(*model.module, function.getName(), inputs, weights);
  }
}
