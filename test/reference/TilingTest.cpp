//===- TilingTest.cpp - tiles of a step compute what the step computes -----===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// MLIR's tileUsingSCF tiles attn.online_step, one step of an online softmax, with loops over its keys and queries. It
// also splits the keys into parts, whose results attn.online_merge merges. The tests interpret a function before and
// after tiling, and compare the results.
//
//===----------------------------------------------------------------------===//

#include "test/reference/Fixture.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <cmath>

using namespace mlir;
using namespace attn;

namespace {
class TilingTest : public InterpreterTest {
protected:
  static constexpr int64_t kQueries = 11, kKeys = 70;

  /// A captured tile: its type, its map over (k, q) and its elements.
  struct Capture {
    std::string type, map;
    ReferenceTensor elements;
  };

  /// The text of captured operands, for functions with attn.online_step or attn.online_probabilities.
  struct Rest {
    std::string arguments, captures, maps;
  };
  static Rest textOf(ArrayRef<Capture> captures) {
    Rest rest;
    std::string types;
    for (auto [i, capture] : llvm::enumerate(captures)) {
      std::string name = "%c" + std::to_string(i), comma = i ? ", " : "";
      rest.arguments += ", " + name + ": " + capture.type;
      rest.captures += comma + name;
      types += comma + capture.type;
      rest.maps += comma + "affine_map<(k, q) -> " + capture.map + ">";
    }
    if (!captures.empty())
      rest.captures = "captures(" + rest.captures + " : " + types + ")";
    return rest;
  }

  static scf::SCFTilingOptions optionsOf(MLIRContext *context, int64_t keys, int64_t queries) {
    Builder builder(context);
    scf::SCFTilingOptions options;
    options.setTileSizes({builder.getIndexAttr(keys), builder.getIndexAttr(queries)});
    return options;
  }

  /// Compares the results of @f, given `inputs`, before and after tiling its op of type OpTy.
  template <typename OpTy>
  void expectSame(const std::string &text, ArrayRef<ReferenceTensor> inputs,
                  const scf::SCFTilingOptions &options) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    ReferenceResults want = interpret(*module, "f", inputs);
    ASSERT_TRUE(succeeded(want));
    OpTy op;
    module->walk([&](OpTy found) { op = found; });
    IRRewriter rewriter(op);
    FailureOr<scf::SCFTilingResult> tiled =
        scf::tileUsingSCF(rewriter, cast<TilingInterface>(op.getOperation()), options);
    ASSERT_TRUE(succeeded(tiled));
    rewriter.replaceOp(op, tiled->replacements);
    ASSERT_TRUE(succeeded(verify(*module)));
    ReferenceResults got = interpret(*module, "f", inputs);
    ASSERT_TRUE(succeeded(got));
    for (auto [a, b] : llvm::zip_equal(*got, *want)) {
      ASSERT_EQ(a.shape, b.shape);
      for (auto [i, x, y] : llvm::enumerate(a.elements, b.elements)) {
        bool isSame = std::isfinite(y) ? std::abs(x - y) <= 1e-12 * std::max(1.0, std::abs(y))
                                       : x == y || (std::isnan(x) && std::isnan(y));
        ASSERT_TRUE(isSame) << "element " << i << " is " << x << ", was " << y;
      }
    }
  }

  /// Tiles a step with loops over keys and queries. Also splits its keys with MLIR's strategies for partial reductions.
  void runStep(const std::string &mask = "", ArrayRef<Capture> captures = {},
               const std::string &score = "", ArrayRef<int64_t> keyTiles = {1, 32, 33, 64, 70, 99},
               const std::string &scale = "0.5") {
    Rest rest = textOf(captures);
    std::string text =
        "func.func @f(%q: tensor<3x11xf32>, %k: tensor<70x3xf32>, %v: tensor<70x5xf32>, %s: "
        "tensor<70x11xf32>, %m: tensor<11xf32>, %l: tensor<11xf32>, %a: tensor<5x11xf32>" +
        rest.arguments +
        ") -> (tensor<11xf32>, tensor<11xf32>, tensor<5x11xf32>) {\n"
        "  %b = arith.constant 1 : index\n  %i = arith.constant 30 : index\n"
        "  %j = arith.constant 7 : index\n"
        "  %r:4 = attn.online_step ins(%q, %k, %v : tensor<3x11xf32>, tensor<70x3xf32>, "
        "tensor<70x5xf32>) " +
        rest.captures +
        " outs(%s, %m, %l, %a : tensor<70x11xf32>, tensor<11xf32>, tensor<11xf32>, "
        "tensor<5x11xf32>) at(%b, %i, %j) prefetch(%v : tensor<70x5xf32>) " +
        mask + " {capture_maps = [" + rest.maps + "], scale = " + scale + " : f32} " + score +
        " -> tensor<70x11xf32>, tensor<11xf32>, tensor<11xf32>, tensor<5x11xf32>\n"
        "  return %r#1, %r#2, %r#3 : tensor<11xf32>, tensor<11xf32>, tensor<5x11xf32>\n}";
    ReferenceTensor max = normal({kQueries});
    max.elements[2] = -std::numeric_limits<double>::infinity();
    ReferenceTensor sum({kQueries}, 1);
    sum.elements[2] = 0;
    SmallVector<ReferenceTensor> inputs = {
        query, key, value, ReferenceTensor({kKeys, kQueries}), max, sum, normal({5, kQueries})};
    for (const Capture &capture : captures)
      inputs.push_back(capture.elements);
    for (int64_t keys : keyTiles) {
      SCOPED_TRACE("tiles of " + std::to_string(keys) + " keys");
      for (int64_t queries : {0, 4})
        expectSame<OnlineStepOp>(text, inputs, optionsOf(&context, keys, queries));
      for (auto [loop, strategy] :
           {std::pair(scf::SCFTilingOptions::LoopType::ForOp,
                      ReductionTilingStrategy::PartialReductionOuterReduction),
            std::pair(scf::SCFTilingOptions::LoopType::ForallOp,
                      ReductionTilingStrategy::PartialReductionOuterParallel)}) {
        scf::SCFTilingOptions options = optionsOf(&context, keys, /*queries=*/0);
        options.setReductionDims({0});
        options.setLoopType(loop);
        options.setReductionTilingStrategy(strategy);
        expectSame<OnlineStepOp>(text, inputs, options);
      }
    }
  }

  ReferenceTensor query = normal({3, kQueries}), key = normal({kKeys, 3}),
                  value = normal({kKeys, 5});
};
} // namespace

TEST_F(TilingTest, NoMask) {
  for (const char *scale : {"0.5", "-0.5"})
    runStep("", {}, "", {1, 32, 33, 64, 70, 99}, scale);
}

TEST_F(TilingTest, Masks) {
  // The coordinates of queries start at 30, those of keys at 7. So the first two offsets hide all keys of the last
  // parts from every query, and the last offset hides all keys.
  for (const char *offset : {"0", "-20", "-40"})
    runStep("mask(#attn.causal<offset = " + std::string(offset) + ">)");
  ReferenceTensor lengths({kQueries});
  for (auto [i, length] : llvm::enumerate(lengths.elements))
    length = 8 * i;
  runStep("mask(#attn.lengths<0>)", {{"tensor<11xi64>", "(q)", lengths}});
}

TEST_F(TilingTest, ScoreRegion) {
  std::string score = R"(score {
    ^bb0(%bc: index, %qc: index, %kc: index, %x: f32, %bias: f32, %slope: f32):
      %distance = arith.subi %qc, %kc : index
      %integer = arith.index_cast %distance : index to i32
      %float = arith.sitofp %integer : i32 to f32
      %alibi = arith.mulf %slope, %float : f32
      %y = arith.addf %x, %bias : f32
      %z = arith.addf %y, %alibi : f32
      attn.yield %z : f32 })";
  ReferenceTensor bias = normal({kQueries, kKeys});
  for (auto [i, element] : llvm::enumerate(bias.elements))
    if (i % 3 == 0 || i < 60)
      element = -std::numeric_limits<double>::infinity();
  runStep("",
          {{"tensor<11x70xf32>", "(q, k)", bias}, {"tensor<11xf32>", "(q)", normal({kQueries})}},
          score);
}

/// One key and one value contain NaN.
TEST_F(TilingTest, NaN) {
  key.at({40, 1}) = value.at({3, 2}) = std::nan("");
  runStep();
  runStep("mask(#attn.causal<offset = -5>)");
}

TEST_F(TilingTest, PackedMask) {
  ReferenceTensor words({3, kQueries});
  for (double &word : words.elements)
    word = static_cast<int32_t>(random());
  words.at({1, 5}) = 0;
  Capture mask = {"tensor<3x11xi32>", "(k floordiv 32, q)", words};
  runStep("mask(#attn.dense<0>)", {mask}, "", {32, 64, 96});
}

TEST_F(TilingTest, Probabilities) {
  ReferenceTensor words({3, kQueries});
  for (double &word : words.elements)
    word = static_cast<int32_t>(random());
  Rest rest = textOf({{"tensor<3x11xi32>", "(k floordiv 32, q)", words}});
  std::string text =
      "func.func @f(%q: tensor<3x11xf32>, %k: tensor<70x3xf32>, %m: tensor<11xf32>, %l: "
      "tensor<11xf32>, %e: tensor<70x11xf32>" +
      rest.arguments +
      ") -> tensor<70x11xf32> {\n  %i = arith.constant 30 : index\n"
      "  %p = attn.online_probabilities ins(%q, %k, %m, %l : tensor<3x11xf32>, tensor<70x3xf32>, "
      "tensor<11xf32>, tensor<11xf32>) " +
      rest.captures +
      " outs(%e : tensor<70x11xf32>) at(%i, %i) mask(#attn.and<[#attn.causal, #attn.dense<0>]>) "
      "{capture_maps = [" +
      rest.maps + "], scale = 0.5 : f32} -> tensor<70x11xf32>\n  return %p : tensor<70x11xf32>\n}";
  for (auto loop :
       {scf::SCFTilingOptions::LoopType::ForOp, scf::SCFTilingOptions::LoopType::ForallOp}) {
    scf::SCFTilingOptions options = optionsOf(&context, 32, 4);
    options.setLoopType(loop);
    expectSame<OnlineProbabilitiesOp>(text,
                                      {query, key, ReferenceTensor({kQueries}, 1),
                                       ReferenceTensor({kQueries}, 9),
                                       ReferenceTensor({kKeys, kQueries}), words},
                                      options);
  }
}
