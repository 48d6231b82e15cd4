//===- ReferenceTest.cpp - the reference against hand-computed values ------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Tests of scores have the keys 0 and ln 3, so that the probabilities are 1/4 and 3/4. Tests of masks have keys of 0,
// so that all kept values have the same probability.
//
//===----------------------------------------------------------------------===//

#include "driver/Interpreter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace attn;

namespace {
const double kNaN = std::nan(""), kInfinity = std::numeric_limits<double>::infinity();
const double kLog3 = std::log(3);

using Elements = std::vector<double>;

ReferenceTensor tensorOf(ArrayRef<int64_t> shape, Elements elements) {
  ReferenceTensor result(shape);
  EXPECT_EQ(result.elements.size(), elements.size());
  result.elements = std::move(elements);
  return result;
}

class ReferenceTest : public testing::Test {
protected:
  ReferenceTest() {
    context.loadDialect<AttnDialect, affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
                        linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
                        tensor::TensorDialect>();
  }

  /// Parses `function`, which defines @f, and returns the results of @f.
  std::vector<Elements> run(const Twine &function, ArrayRef<ReferenceTensor> inputs = {}) {
    std::string text = ("#row = affine_map<(q, k, d, e) -> (q, d)>\n"
                        "#key = affine_map<(q, k, d, e) -> (k, d)>\n"
                        "#value = affine_map<(q, k, d, e) -> (k, e)>\n"
                        "#out = affine_map<(q, k, d, e) -> (q, e)>\n"
                        "#pair = affine_map<(q, k, d, e) -> (q, k)>\n" +
                        function)
                           .str();
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    std::vector<Elements> elements;
    ReferenceResults results = failure();
    if (module)
      results = interpret(*module, "f", inputs);
    EXPECT_TRUE(succeeded(results));
    if (succeeded(results))
      for (ReferenceTensor &result : *results)
        elements.push_back(result.elements);
    return elements;
  }

  void expect(const std::vector<Elements> &got, const std::vector<Elements> &want) {
    ASSERT_EQ(got.size(), want.size());
    for (auto [a, b] : llvm::zip_equal(got, want)) {
      ASSERT_EQ(a.size(), b.size());
      for (auto [x, y] : llvm::zip_equal(a, b))
        if (std::isnan(y))
          EXPECT_TRUE(std::isnan(x)) << "got " << x;
        else if (std::isinf(y))
          EXPECT_EQ(x, y);
        else
          EXPECT_NEAR(x, y, 1e-15 * std::max(1.0, std::abs(y)));
    }
  }

  /// Operands of the tests of attn.online_step and attn.online_probabilities.
  const ReferenceTensor query = tensorOf({1, 1}, {1}), keys = tensorOf({2, 1}, {0, kLog3});

  MLIRContext context;
};

/// Returns a function with an attention that has `mask`. If `operand` is not empty, the attention captures an operand
/// of this type with the indexing map `map`.
std::string masked(StringRef mask, StringRef operand = "", StringRef map = "", StringRef at = "") {
  std::string captures = operand.empty() ? "" : ("captures(%c : " + operand + ")").str();
  std::string argument = operand.empty() ? "" : (", %c: " + operand).str();
  std::string maps = operand.empty() ? "" : (map + ", ").str();
  return ("func.func @f(%q: tensor<3x1xf32>, %k: tensor<4x1xf32>, %v: tensor<4x1xf32>" + argument +
          ") -> tensor<3x1xf32> {\n"
          "  %e = tensor.empty() : tensor<3x1xf32>\n"
          "  %two = arith.constant 2 : index\n  %zero = arith.constant 0 : index\n"
          "  %o = attn.attention ins(%q, %k, %v : tensor<3x1xf32>, tensor<4x1xf32>, "
          "tensor<4x1xf32>)\n" +
          captures + " outs(%e : tensor<3x1xf32>) " + at + mask +
          " {indexing_maps = [#row, #key, #value, " + maps +
          "#out], scale = 1.0 : f32}"
          " -> tensor<3x1xf32>\n"
          "  return %o : tensor<3x1xf32>\n}")
      .str();
}

/// Returns a function with an attention of two queries and two keys that also returns the probabilities. `rest` is the
/// text between the outputs and the attributes.
std::string weighed(StringRef rest, StringRef attributes = "", StringRef score = "") {
  return ("func.func @f(%q: tensor<2x1xf32>, %k: tensor<2x1xf32>, %v: tensor<2x1xf32>)"
          " -> (tensor<2x1xf32>, tensor<2x2xf32>) {\n"
          "  %e = tensor.empty() : tensor<2x1xf32>\n  %w = tensor.empty() : tensor<2x2xf32>\n"
          "  %o, %p = attn.attention ins(%q, %k, %v : tensor<2x1xf32>, tensor<2x1xf32>, "
          "tensor<2x1xf32>)\n"
          "    outs(%e, %w : tensor<2x1xf32>, tensor<2x2xf32>) " +
          rest + " {indexing_maps = [#row, #key, #value, #out, #pair], scale = 0.5 : f32" +
          attributes + "} " + score +
          " -> tensor<2x1xf32>, tensor<2x2xf32>\n"
          "  return %o, %p : tensor<2x1xf32>, tensor<2x2xf32>\n}")
      .str();
}
} // namespace

TEST_F(ReferenceTest, Attention) {
  ReferenceTensor q = tensorOf({2, 1}, {2, 2}), k = tensorOf({2, 1}, {0, kLog3}),
                  v = tensorOf({2, 1}, {8, 16});
  expect(run(weighed(""), {q, k, v}), {{14, 14}, {.25, .75, .25, .75}});
  expect(run(weighed("mask(#attn.causal)"), {q, k, v}), {{8, 14}, {1, 0, .25, .75}});
  // Scores may be arbitrarily large. A tiny probability is not rounded to 0, so an infinite value makes the output
  // infinite.
  k.elements = {1e5, -1e5};
  v.elements = {8, kInfinity};
  expect({run(weighed(""), {q, k, v})[0]}, {{kInfinity, kInfinity}});
}

TEST_F(ReferenceTest, ScoreRegion) {
  ReferenceTensor q = tensorOf({2, 1}, {2, 2}), k = tensorOf({2, 1}, {0, kLog3}),
                  v = tensorOf({2, 1}, {8, 16});
  // -inf hides a key.
  StringRef region = R"(score {
    ^bb0(%i: index, %j: index, %s: f32):
      %same = arith.cmpi eq, %i, %j : index
      %low = arith.constant 0xFF800000 : f32
      %r = arith.select %same, %s, %low : f32
      attn.yield %r : f32 })";
  expect(run(weighed("", "", region), {q, k, v}), {{8, 16}, {1, 0, 0, 1}});
}

TEST_F(ReferenceTest, RowsWithoutAKey) {
  ReferenceTensor q = tensorOf({2, 1}, {2, 2}), k = tensorOf({2, 1}, {0, kLog3}),
                  v = tensorOf({2, 1}, {8, 16});
  StringRef mask = "mask(#attn.causal<offset = -1>)", nan = ", empty_row = #attn.empty_row<nan>";
  expect(run(weighed(mask), {q, k, v}), {{0, 8}, {0, 0, 1, 0}});
  expect(run(weighed(mask, nan), {q, k, v}), {{kNaN, 8}, {kNaN, kNaN, 1, 0}});
  k.elements = {-kInfinity, -kInfinity};
  expect(run(weighed("", nan), {q, k, v}), {{kNaN, kNaN}, {kNaN, kNaN, kNaN, kNaN}});
  // Without keys, the output is 0, whatever `empty_row` is.
  std::string dynamic = R"(
    func.func @f(%q: tensor<2x1xf32>, %k: tensor<?x1xf32>) -> tensor<2x1xf32> {
      %e = tensor.empty() : tensor<2x1xf32>
      %o = attn.attention ins(%q, %k, %k : tensor<2x1xf32>, tensor<?x1xf32>, tensor<?x1xf32>)
        outs(%e : tensor<2x1xf32>) {indexing_maps = [#row, #key, #value, #out], scale = 1.0 : f32,
        empty_row = #attn.empty_row<nan>} -> tensor<2x1xf32>
      return %o : tensor<2x1xf32>
    })";
  expect(run(dynamic, {q, ReferenceTensor({0, 1})}), {{0, 0}});
}

TEST_F(ReferenceTest, NaN) {
  ReferenceTensor q = tensorOf({2, 1}, {2, 2}), k = tensorOf({2, 1}, {0, kNaN}),
                  v = tensorOf({2, 1}, {8, kNaN});
  expect(run(weighed("mask(#attn.causal)"), {q, k, v}), {{8, kNaN}, {1, 0, kNaN, kNaN}});
  k.elements = {0, kLog3};
  expect(run(weighed("mask(#attn.causal)"), {q, k, v}), {{8, kNaN}, {1, 0, .25, .75}});
}

TEST_F(ReferenceTest, Masks) {
  ReferenceTensor q({3, 1}, 1), k({4, 1}), v = tensorOf({4, 1}, {1, 2, 4, 8});
  StringRef i32 = "tensor<3xi32>", byRow = "affine_map<(q, k, d, e) -> (q)>";
  StringRef i1 = "tensor<3x4xi1>";
  expect(run(masked(""), {q, k, v}), {{15 / 4., 15 / 4., 15 / 4.}});
  expect(run(masked("mask(#attn.causal)"), {q, k, v}), {{1, 3 / 2., 7 / 3.}});
  expect(run(masked("mask(#attn.causal<offset = 1>)"), {q, k, v}), {{3 / 2., 7 / 3., 15 / 4.}});
  expect(run(masked("mask(#attn.window<left = 1, right = 0>)"), {q, k, v}), {{1, 3 / 2., 3}});
  expect(run(masked("mask(#attn.window<left = 0, right = 1, offset = 1>)"), {q, k, v}),
         {{3, 6, 8}});
  expect(run(masked("mask(#attn.lengths<0>)", i32, byRow), {q, k, v, tensorOf({3}, {0, 2, 4})}),
         {{0, 3 / 2., 15 / 4.}});
  ReferenceTensor dense = tensorOf({3, 4}, {1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0});
  expect(run(masked("mask(#attn.dense<0>)", i1, "#pair"), {q, k, v, dense}), {{9 / 2., 0, 3}});
  expect(run(masked("mask(#attn.dense<0, keeps = zero>)", i1, "#pair"), {q, k, v, dense}),
         {{3, 15 / 4., 9 / 2.}});
  expect(
      run(masked("mask(#attn.and<[#attn.causal, #attn.dense<0>]>)", i1, "#pair"), {q, k, v, dense}),
      {{1, 0, 3}});
  // In a dense mask, NaN counts as nonzero.
  dense.elements[0] = kNaN;
  expect(run(masked("mask(#attn.dense<0>)", "tensor<3x4xf32>", "#pair"), {q, k, v, dense}),
         {{9 / 2., 0, 3}});
  // The origin, `at`, adds 2 to the coordinates of the queries for the mask.
  expect(run(masked("mask(#attn.causal)", "", "", "at(%two, %zero) "), {q, k, v}),
         {{7 / 3., 15 / 4., 15 / 4.}});
}

TEST_F(ReferenceTest, GroupedHeads) {
  std::string text = R"(
    func.func @f(%q: tensor<2x2x1x1xf32>, %k: tensor<2x2x1xf32>) -> tensor<2x2x1x1xf32> {
      %e = tensor.empty() : tensor<2x2x1x1xf32>
      %o = attn.attention ins(%q, %k, %k : tensor<2x2x1x1xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>)
        outs(%e : tensor<2x2x1x1xf32>) {scale = 1.0 : f32,
        indexing_maps = [affine_map<(h, g, q, k, d, e) -> (h, g, q, d)>,
                         affine_map<(h, g, q, k, d, e) -> (h, k, d)>,
                         affine_map<(h, g, q, k, d, e) -> (h, k, e)>,
                         affine_map<(h, g, q, k, d, e) -> (h, g, q, e)>]} -> tensor<2x2x1x1xf32>
      return %o : tensor<2x2x1x1xf32>
    })";
  ReferenceTensor k = tensorOf({2, 2, 1}, {0, kLog3, 5, 7});
  expect(run(text, {tensorOf({2, 2, 1, 1}, {0, 1, 0, 0}), k}), {{kLog3 / 2, kLog3 * .75, 6, 6}});
}

TEST_F(ReferenceTest, KeyRange) {
  auto range = [&](StringRef mask, int64_t q, int64_t rows, int64_t step,
                   ArrayRef<int64_t> symbols = {}) {
    std::string text = "func.func @f() -> (index, index, index, index) {\n";
    llvm::raw_string_ostream os(text);
    os << "%q = arith.constant " << q << " : index\n%rows = arith.constant " << rows << " : index\n"
       << "%keys = arith.constant 16 : index\n";
    std::string list;
    for (auto [i, symbol] : llvm::enumerate(symbols)) {
      os << "%s" << i << " = arith.constant " << symbol << " : index\n";
      list += (i ? ", %s" : "%s") + std::to_string(i);
    }
    os << "%r:4 = attn.key_range rows(%q, %rows) keys(%keys) step " << step
       << (list.empty() ? "" : " symbols(" + list + ")") << mask
       << "\nreturn %r#0, %r#1, %r#2, %r#3 : index, index, index, index\n}";
    return run(text);
  };
  expect(range("", 4, 2, 5), {{0}, {0}, {15}, {16}});
  expect(range(" mask(#attn.causal)", 4, 2, 2), {{0}, {0}, {4}, {6}});
  expect(range(" mask(#attn.causal)", 4, 2, 8), {{0}, {0}, {0}, {6}});
  expect(range(" mask(#attn.window<left = 2, right = 0>)", 4, 2, 2), {{2}, {3}, {5}, {6}});
  expect(range(" mask(#attn.window<left = 2, right = 0>)", 4, 3, 2), {{2}, {2}, {2}, {7}});
  expect(range(" mask(#attn.lengths<0>)", 0, 4, 2, {3, 5}), {{0}, {0}, {2}, {5}});
  expect(range(" mask(#attn.and<[#attn.causal, #attn.dense<0>]>)", 4, 2, 1), {{0}, {0}, {0}, {6}});
  expect(range(" mask(#attn.causal<offset = -9>)", 4, 2, 1), {{0}, {0}, {0}, {0}});
  expect(range(" mask(#attn.causal)", 4, 0, 1), {{0}, {0}, {0}, {0}});
}

/// Returns a function with an attn.online_step of one query and two keys. `rest` is the text before the attributes,
/// such as a mask.
static std::string step(StringRef rest) {
  return ("func.func @f(%q: tensor<1x1xf32>, %k: tensor<2x1xf32>, %v: tensor<2x1xf32>, %s: "
          "tensor<2x1xf32>,"
          " %m: tensor<1xf32>, %l: tensor<1xf32>, %a: tensor<1x1xf32>)"
          " -> (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1x1xf32>) {\n"
          "  %zero = arith.constant 0 : index\n"
          "  %r:4 = attn.online_step ins(%q, %k, %v : tensor<1x1xf32>, tensor<2x1xf32>, "
          "tensor<2x1xf32>)"
          " outs(%s, %m, %l, %a : tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1x1xf32>)"
          " at(%zero, %zero) " +
          rest +
          " {capture_maps = [], scale = 1.0 : f32}"
          " -> tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1x1xf32>\n"
          "  return %r#0, %r#1, %r#2, %r#3 : tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>, "
          "tensor<1x1xf32>\n}")
      .str();
}

TEST_F(ReferenceTest, OnlineInit) {
  expect(run(R"(
    func.func @f(%q: tensor<2xf32>, %a: tensor<1x2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<1x2xf32>) {
      %r:3 = attn.online_init outs(%q, %q, %a : tensor<2xf32>, tensor<2xf32>, tensor<1x2xf32>)
        -> tensor<2xf32>, tensor<2xf32>, tensor<1x2xf32>
      return %r#0, %r#1, %r#2 : tensor<2xf32>, tensor<2xf32>, tensor<1x2xf32>
    })",
             {ReferenceTensor({2}), ReferenceTensor({1, 2})}),
         {{-kInfinity, -kInfinity}, {0, 0}, {0, 0}});
}

TEST_F(ReferenceTest, OnlineStep) {
  ReferenceTensor v = tensorOf({2, 1}, {3, 6}), scratch({2, 1});
  auto run = [&](StringRef mask, double max, double sum, double acc) {
    return this->run(step(mask), {query, keys, v, scratch, ReferenceTensor({1}, max),
                                  ReferenceTensor({1}, sum), ReferenceTensor({1, 1}, acc)});
  };
  expect(run("", -kInfinity, 0, 0), {{kNaN, kNaN}, {kLog3}, {4 / 3.}, {7}});
  expect(run("", 0, 1, 5), {{kNaN, kNaN}, {kLog3}, {5 / 3.}, {26 / 3.}});
  expect(run("mask(#attn.causal)", -kInfinity, 0, 0), {{kNaN, kNaN}, {0}, {1}, {3}});
  // The values of hidden keys change neither the initial state nor a later state.
  v.elements = {kNaN, kNaN};
  expect(run("mask(#attn.causal<offset = -1>)", -kInfinity, 0, 0),
         {{kNaN, kNaN}, {-kInfinity}, {0}, {0}});
  expect(run("mask(#attn.causal<offset = -1>)", 1, 2, 3), {{kNaN, kNaN}, {1}, {2}, {3}});
}

TEST_F(ReferenceTest, OnlineProbabilities) {
  auto run = [&](StringRef rest, StringRef attributes, double max, double sum) {
    return this->run(
        "func.func @f(%q: tensor<1x1xf32>, %k: tensor<2x1xf32>, %m: tensor<1xf32>, %l: "
        "tensor<1xf32>,"
        " %e: tensor<2x1xf32>) -> tensor<2x1xf32> {\n"
        "  %zero = arith.constant 0 : index\n"
        "  %p = attn.online_probabilities ins(%q, %k, %m, %l : tensor<1x1xf32>, tensor<2x1xf32>,"
        " tensor<1xf32>, tensor<1xf32>) outs(%e : tensor<2x1xf32>) at(%zero, %zero) " +
            rest + " {capture_maps = [], scale = 1.0 : f32" + attributes +
            "} -> tensor<2x1xf32>\n  return %p : tensor<2x1xf32>\n}",
        {query, keys, ReferenceTensor({1}, max), ReferenceTensor({1}, sum),
         ReferenceTensor({2, 1})});
  };
  expect(run("", "", kLog3, 4 / 3.), {{.25, .75}});
  expect(run("mask(#attn.causal)", "", 0, 1), {{1, 0}});
  expect(run("mask(#attn.causal<offset = -1>)", "", -kInfinity, 0), {{0, 0}});
  expect(
      run("mask(#attn.causal<offset = -1>)", ", empty_row = #attn.empty_row<nan>", -kInfinity, 0),
      {{kNaN, kNaN}});
}

TEST_F(ReferenceTest, UnitOfMax) {
  // The scores are 0 and ln 3. Without a score region and with a positive scale, `max` is a product of a query and a
  // key; otherwise it is a score.
  ReferenceTensor v = tensorOf({2, 1}, {3, 6}), scratch({2, 1});
  auto run = [&](double scale, StringRef score, double max) {
    std::string text = step("");
    size_t attributes = text.find("scale = 1.0 : f32}");
    text.replace(attributes, StringRef("scale = 1.0 : f32}").size(),
                 "scale = " + std::to_string(scale) + " : f32} " + score.str());
    return this->run(text, {query, tensorOf({2, 1}, {0, kLog3 / scale}), v, scratch,
                            ReferenceTensor({1}, max), ReferenceTensor({1}, 1),
                            ReferenceTensor({1, 1}, 5)});
  };
  StringRef identity = "score { ^bb0(%i: index, %j: index, %x: f32): attn.yield %x : f32 }";
  expect(run(0.5, "", 0), {{kNaN, kNaN}, {2 * kLog3}, {5 / 3.}, {26 / 3.}});
  expect(run(0.5, "", 4 * kLog3), {{kNaN, kNaN}, {4 * kLog3}, {1 + 4 / 9.}, {5 + 7 / 3.}});
  expect(run(0.5, identity, 0), {{kNaN, kNaN}, {kLog3}, {5 / 3.}, {26 / 3.}});
  expect(run(-0.5, "", 0), {{kNaN, kNaN}, {kLog3}, {5 / 3.}, {26 / 3.}});
}

TEST_F(ReferenceTest, OnlineMerge) {
  auto run = [&](const char *scale, Elements maxima, Elements sums, Elements accs, double max,
                 double sum, double acc) {
    int64_t n = maxima.size();
    return this->run("func.func @f(%ms: tensor<?x1xf32>, %ls: tensor<?x1xf32>, %as: "
                     "tensor<?x1x1xf32>, %m: tensor<1xf32>, %l: tensor<1xf32>, %a: "
                     "tensor<1x1xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<1x1xf32>) {\n"
                     "  %r:3 = attn.online_merge ins(%ms, %ls, %as : tensor<?x1xf32>, "
                     "tensor<?x1xf32>, tensor<?x1x1xf32>) outs(%m, %l, %a : tensor<1xf32>, "
                     "tensor<1xf32>, tensor<1x1xf32>) {scale = " +
                         Twine(scale) +
                         " : f32} -> tensor<1xf32>, tensor<1xf32>, tensor<1x1xf32>\n"
                         "  return %r#0, %r#1, %r#2 : tensor<1xf32>, tensor<1xf32>, "
                         "tensor<1x1xf32>\n}",
                     {tensorOf({n, 1}, maxima), tensorOf({n, 1}, sums), tensorOf({n, 1, 1}, accs),
                      ReferenceTensor({1}, max), ReferenceTensor({1}, sum),
                      ReferenceTensor({1, 1}, acc)});
  };
  expect(run("1.0", {0, kLog3}, {1, 2}, {3, 6}, -kInfinity, 0, 0), {{kLog3}, {7 / 3.}, {7}});
  expect(run("0.5", {0, 2 * kLog3}, {1, 2}, {3, 6}, -kInfinity, 0, 0),
         {{2 * kLog3}, {7 / 3.}, {7}});
  // The state that the op updates contributes to the result.
  expect(run("1.0", {0}, {1}, {3}, kLog3, 2, 6), {{kLog3}, {7 / 3.}, {7}});
  expect(run("1.0", {}, {}, {}, 1, 2, 3), {{1}, {2}, {3}});
  // A part without a kept pair changes nothing, unless its sums are NaN.
  expect(run("1.0", {-kInfinity, 1}, {0, 2}, {0, 3}, -kInfinity, 0, 0), {{1}, {2}, {3}});
  expect(run("1.0", {-kInfinity, -kInfinity}, {0, 0}, {0, 0}, -kInfinity, 1, 0),
         {{-kInfinity}, {1}, {0}});
  expect(run("1.0", {-kInfinity, 1}, {kNaN, 2}, {kNaN, 3}, -kInfinity, 0, 0),
         {{1}, {kNaN}, {kNaN}});
  expect(run("1.0", {kInfinity, 1}, {kNaN, 2}, {kNaN, 3}, 0, 1, 1), {{kInfinity}, {kNaN}, {kNaN}});
}

TEST_F(ReferenceTest, OnlineFinish) {
  for (auto [attributes, empty] :
       {std::pair("", 0.), std::pair("{empty_row = #attn.empty_row<nan>}", kNaN)})
    expect(
        run(std::string("func.func @f(%l: tensor<2xf32>, %a: tensor<1x2xf32>, %e: tensor<2x1xf32>)"
                        " -> tensor<2x1xf32> {\n"
                        "  %o = attn.online_finish ins(%l, %a : tensor<2xf32>, tensor<1x2xf32>)"
                        " outs(%e : tensor<2x1xf32>) ") +
                attributes + " -> tensor<2x1xf32>\n  return %o : tensor<2x1xf32>\n}",
            {tensorOf({2}, {4, 0}), tensorOf({1, 2}, {6, 0}), ReferenceTensor({2, 1})}),
        {{1.5, empty}});
}

TEST_F(ReferenceTest, Pack) {
  auto pack = [&](StringRef rest, StringRef type, ReferenceTensor source, StringRef outType,
                  ArrayRef<int64_t> outShape) {
    return run("func.func @f(%s: " + type + ", %e: " + outType + ") -> " + outType +
                   " {\n  %p = attn.pack " + rest + " ins(%s : " + type + ") outs(%e : " + outType +
                   ") -> " + outType + "\n  return %p : " + outType + "\n}",
               {source, ReferenceTensor(outShape)});
  };
  auto panels = [&](StringRef rest, StringRef type, ReferenceTensor source) {
    return pack(rest, type, source, "tensor<2x2x2xf32>", {2, 2, 2});
  };
  Elements want = {1, 3, 2, 4, 5, 0, 6, 0};
  expect(panels("", "tensor<3x2xf32>", tensorOf({3, 2}, {1, 2, 3, 4, 5, 6})), {want});
  expect(panels("from_rows", "tensor<2x3xf32>", tensorOf({2, 3}, {1, 3, 5, 2, 4, 6})), {want});

  // The output has one panel of two columns, and two groups of two elements along k. The second group is not full.
  auto groups = [&](std::string rest, StringRef type, ReferenceTensor source) {
    return pack(rest + " group(2)", type, source, "tensor<1x2x2x2xf32>", {1, 2, 2, 2});
  };
  want = {1, 2, 4, 5, 3, 0, 6, 0};
  expect(groups("", "tensor<2x3xf32>", tensorOf({2, 3}, {1, 2, 3, 4, 5, 6})), {want});
  expect(groups("from_rows", "tensor<3x2xf32>", tensorOf({3, 2}, {1, 4, 2, 5, 3, 6})), {want});
}

TEST_F(ReferenceTest, PackMask) {
  // There are two queries and 34 keys. The first query keeps keys 0, 31 and 33, the second query keeps key 32.
  ReferenceTensor mask({2, 34});
  mask.at({0, 0}) = mask.at({0, 31}) = mask.at({0, 33}) = mask.at({1, 32}) = 1;
  expect(run("func.func @f(%m: tensor<2x34xi1>, %w: tensor<2x2xi32>) -> tensor<2x2xi32> {\n"
             "  %r = attn.pack_mask ins(%m : tensor<2x34xi1>) outs(%w : tensor<2x2xi32>)"
             " -> tensor<2x2xi32>\n  return %r : tensor<2x2xi32>\n}",
             {mask, ReferenceTensor({2, 2})}),
         {{-0x1p31 + 1, 0, 2, 1}});
}

TEST_F(ReferenceTest, TestMask) {
  auto test = [&](StringRef keeps, Elements words) {
    return run(("func.func @f(%w: tensor<3x2xi32>) -> (index, index, i1) {\n"
                "  %r:3 = attn.test_mask %w keeps " +
                keeps + " : tensor<3x2xi32>\n  return %r#0, %r#1, %r#2 : index, index, i1\n}")
                   .str(),
               {tensorOf({3, 2}, words)});
  };
  expect(test("nonzero", {0, 0, 0, 4, 0, 0}), {{1}, {2}, {0}});
  expect(test("nonzero", {0, 0, 0, 0, 0, 0}), {{3}, {0}, {0}});
  expect(test("nonzero", {-1, -1, -1, -1, -1, -1}), {{0}, {3}, {1}});
  expect(test("zero", {-1, -1, 0, 4, -1, 7}), {{1}, {3}, {0}});
  expect(test("zero", {0, 0, 0, 0, 0, 0}), {{0}, {3}, {1}});
}

TEST_F(ReferenceTest, Scalars) {
  // Integers wrap around at their width. Each op decides whether it treats its operands as signed.
  expect(run(R"(
    func.func @f(%a: i8, %b: i1, %x: f32) -> (i32, i32, i8, f32, i1, f32) {
      %1 = arith.extui %a : i8 to i32
      %2 = arith.extsi %b : i1 to i32
      %3 = arith.muli %a, %a : i8
      %4 = arith.uitofp %a : i8 to f32
      %5 = arith.cmpi ugt, %a, %3 : i8
      %6 = arith.maximumf %4, %x : f32
      return %1, %2, %3, %4, %5, %6 : i32, i32, i8, f32, i1, f32
    })",
             {ReferenceTensor({}, -56), ReferenceTensor({}, 1), ReferenceTensor({}, kNaN)}),
         {{200}, {-1}, {64}, {200}, {1}, {kNaN}});
}

TEST_F(ReferenceTest, FunctionsAndShifts) {
  expect(run("func.func @f(%x: f32, %y: f32, %i: i32, %n: i32, %big: i32) -> (f32, f32, f32, f32, "
             R"(f32, i32, i32, i32, i32, i32, i32) {
      %0 = math.erf %x : f32
      %1 = math.log1p %x : f32
      %2 = math.powf %x, %y : f32
      %3 = math.roundeven %y : f32
      %4 = arith.remf %y, %x : f32
      %5 = arith.shli %i, %n : i32
      %6 = arith.shrsi %i, %n : i32
      %7 = arith.shrui %i, %n : i32
      %8 = arith.floordivsi %i, %n : i32
      %9 = arith.fptosi %y : f32 to i32
      %10 = arith.shli %i, %big : i32
      return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : f32, f32, f32, f32, f32, i32, i32, i32, i32, i32, i32
    })",
             {ReferenceTensor({}, 0.5), ReferenceTensor({}, -2.5), ReferenceTensor({}, -7),
              ReferenceTensor({}, 2), ReferenceTensor({}, 99)}),
         {{std::erf(0.5)},
          {std::log1p(0.5)},
          {std::pow(0.5, -2.5)},
          {-2},
          {0},
          {-28},
          {-2},
          {1073741822},
          {-4},
          {-2},
          {0}});
}

TEST_F(ReferenceTest, UnknownOp) {
  std::string message;
  ScopedDiagnosticHandler handler(&context,
                                  [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "func.func @f(%x: i32) -> i32 {\n  %y = math.ctlz %x : i32\n  return %y : i32\n}", &context);
  EXPECT_TRUE(failed(interpret(*module, "f", {ReferenceTensor()})));
  EXPECT_EQ(message, "expected an op that the reference implements, got 'math.ctlz'");
}
