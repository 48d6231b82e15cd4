//===- WeightsTest.cpp - matched by name, checked, swapped ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include <atomic>
#include <cmath>
#include <thread>

namespace {

struct WeightsTest : ForwardTest {
  Tensor<float> scale{{4}, 1.0f}, bias{{4}, 2.0f};
  std::vector<const char *> names{"scale", "bias"};
  std::vector<const DLTensor *> tensors{&scale.dl, &bias.dl};

  void expectPackRefused(attn_status status, const std::string &message) {
    attn_weights *packed = nullptr;
    EXPECT_EQ(attn_weights_create(forward.get(), names.data(), tensors.data(),
                                  int32_t(names.size()), &packed),
              status);
    EXPECT_EQ(attn_last_error(), message);
    EXPECT_EQ(packed, nullptr);
  }
};

// Packed tensors with equal bytes are in memory once, as long as a handle uses them.
TEST_F(WeightsTest, EqualTensorsAreShared) {
  int64_t before = attn_packed_bytes();
  auto pack = [&] {
    attn_weights *packed = nullptr;
    EXPECT_EQ(attn_weights_create(forward.get(), names.data(), tensors.data(), 2, &packed), ATTN_OK);
    return Weights(packed);
  };
  Weights first = pack();
  EXPECT_EQ(attn_packed_bytes() - before, 32);
  Weights second = pack();
  EXPECT_EQ(attn_packed_bytes() - before, 32);
  scale.elements[0] = 5;
  Weights other = pack();
  EXPECT_EQ(attn_packed_bytes() - before, 64);
  first.reset();
  EXPECT_EQ(attn_packed_bytes() - before, 64);
  second.reset();
  EXPECT_EQ(attn_packed_bytes() - before, 32);
  other.reset();
  EXPECT_EQ(attn_packed_bytes(), before);
}

TEST_F(WeightsTest, Missing) {
  names.pop_back();
  expectPackRefused(ATTN_ERROR_COUNT, "forward: weight 'bias' expected a tensor, got none");
}

TEST_F(WeightsTest, Renamed) {
  names[0] = "gain";
  expectPackRefused(ATTN_ERROR_NAME, "forward: expected weights of this function, got 'gain'");
}

TEST_F(WeightsTest, Twice) {
  names[1] = "scale";
  expectPackRefused(ATTN_ERROR_NAME, "forward: weight 'scale' expected once, got twice");
}

TEST_F(WeightsTest, Misshapen) {
  bias.shape[0] = 5;
  expectPackRefused(ATTN_ERROR_SHAPE,
                    "forward: weight 'bias' expected size 4 in dimension 0, got 5");
}

TEST_F(WeightsTest, Mistyped) {
  scale.dl.dtype.bits = 16;
  expectPackRefused(ATTN_ERROR_DTYPE, "forward: weight 'scale' expected float32, got float16");
}

TEST_F(WeightsTest, Strided) {
  int64_t stride = 2;
  scale.dl.strides = &stride;
  expectPackRefused(ATTN_ERROR_STRIDE, "forward: weight 'scale' expected stride 1 in dimension 0 "
                                       "(compact row-major), got 2");
}

TEST_F(WeightsTest, NullTensor) {
  tensors[1] = nullptr;
  expectPackRefused(ATTN_ERROR_NULL, "forward: weight 1 expected a name and a tensor, got null");
}

TEST_F(WeightsTest, NullArguments) {
  attn_weights *packed = nullptr;
  attn_weights_info info = {};
  auto expectUsage = [](attn_status status, const char *message) {
    EXPECT_EQ(status, ATTN_ERROR_USAGE);
    EXPECT_STREQ(attn_last_error(), message);
  };
  expectUsage(attn_weights_create(forward.get(), nullptr, nullptr, 2, &packed),
              "attn_weights_create: expected a function, names, tensors and a place for the "
              "weights, got null");
  expectUsage(attn_weights_create_embedded(nullptr, &packed),
              "attn_weights_create_embedded: expected a function and a place for the weights, got "
              "null");
  expectUsage(attn_weights_load(forward.get(), nullptr, &packed),
              "attn_weights_load: expected a function, a path and a place for the weights, got "
              "null");
  expectUsage(
      attn_weights_map(forward.get(), nullptr, &packed),
      "attn_weights_map: expected a function, a path and a place for the weights, got null");
  expectUsage(attn_weights_save(nullptr, "file"),
              "attn_weights_save: expected weights and a path, got null");
  expectUsage(
      attn_weights_describe(nullptr, &info),
      "attn_weights_describe: expected weights and a place for their description, got null");
  EXPECT_EQ(packed, nullptr);
}

TEST_F(WeightsTest, FunctionWithout) {
  Function halve = createFunction(library.get(), "halve");
  attn_weights *packed = nullptr;
  EXPECT_EQ(attn_weights_create(halve.get(), nullptr, nullptr, 0, &packed), ATTN_ERROR_WEIGHTS);
  EXPECT_STREQ(attn_last_error(), "halve: expected a function with weights, got one without");
}

TEST_F(WeightsTest, CallWithout) {
  weights.reset();
  expectRefused(ATTN_ERROR_WEIGHTS, "forward: expected weights, got null");
}

TEST_F(WeightsTest, CallWithUnexpected) {
  Function halve = createFunction(library.get(), "halve");
  EXPECT_EQ(attn_call(halve.get(), weights.get(), nullptr, 0, nullptr, 0, nullptr),
            ATTN_ERROR_WEIGHTS);
  EXPECT_STREQ(attn_last_error(), "halve: expected no weights, got those of 'forward'");
}

TEST_F(WeightsTest, Embedded) {
  attn_weights *created = nullptr;
  ASSERT_EQ(attn_weights_create_embedded(forward.get(), &created), ATTN_OK) << attn_last_error();
  weights.reset(created);
  ASSERT_EQ(call(forward.get(), weights.get()), ATTN_OK) << attn_last_error();
  expectResult();
}

TEST_F(WeightsTest, NotEmbedded) {
  Function other = createFunction(library.get(), "bounded_weights");
  attn_weights *created = nullptr;
  EXPECT_EQ(attn_weights_create_embedded(other.get(), &created), ATTN_ERROR_WEIGHTS);
  EXPECT_STREQ(attn_last_error(), "bounded_weights: expected a library with weights in it (attnc "
                                  "--embed-weights), got one without");
  EXPECT_EQ(created, nullptr);
}

TEST_F(WeightsTest, EmbeddedOutOfBounds) {
  Function other = createFunction(library.get(), "bounded_embedded");
  attn_weights *created = nullptr;
  EXPECT_EQ(attn_weights_create_embedded(other.get(), &created), ATTN_ERROR_VALUE);
  EXPECT_STREQ(attn_last_error(),
               "bounded_embedded: weight 'table' expected values in [0, 9], got 10 at element 2");
}

TEST_F(WeightsTest, Described) {
  attn_weights_info info = {};
  EXPECT_EQ(attn_weights_describe(weights.get(), &info), ATTN_ERROR_USAGE);
  info.size = sizeof info;
  ASSERT_EQ(attn_weights_describe(weights.get(), &info), ATTN_OK) << attn_last_error();
  EXPECT_EQ(info.bytes, 32);
  EXPECT_EQ(info.mapped, 0);
  attn_weights *created = nullptr;
  const char *names[] = {"bias", "scale"};
  ASSERT_EQ(attn_weights_create(forward.get(), names, tensors.data(), 2, &created), ATTN_OK);
  attn_weights_info other = info;
  ASSERT_EQ(attn_weights_describe(Weights(created).get(), &other), ATTN_OK);
  EXPECT_NE(other.source_hash, info.source_hash);
}

/// Returns weights with which forward computes residual + value in the rows within the lengths.
Weights constantWeights(const attn_function *function, float value) {
  Tensor<float> scale({4}, 0), bias({4}, value);
  const char *names[] = {"scale", "bias"};
  const DLTensor *tensors[] = {&scale.dl, &bias.dl};
  attn_weights *weights = nullptr;
  EXPECT_EQ(attn_weights_create(function, names, tensors, 2, &weights), ATTN_OK);
  return Weights(weights);
}

/// Returns the value of constantWeights with which all rows of the output were computed, or NaN if rows differ.
float valueOf(const ForwardArguments &arguments) {
  float value = arguments.y.elements[5 * 4] - 0.5f; // row 0 of batch 1, whose length is 1
  int64_t rows = arguments.x.shape[1];
  for (int64_t i = 0; i < int64_t(arguments.y.elements.size()); ++i) {
    bool kept = i / 4 % rows < arguments.lengths.elements[i / 4 / rows];
    if (arguments.y.elements[i] != (kept ? value + 0.5f : 0))
      return NAN;
  }
  return value;
}

TEST_F(WeightsTest, Swapped) {
  Weights one = constantWeights(forward.get(), 1), two = constantWeights(forward.get(), 2);
  for (float expected : {2, 1, 2}) {
    ASSERT_EQ(attn_weights_swap(one.get(), two.get()), ATTN_OK) << attn_last_error();
    ASSERT_EQ(call(forward.get(), one.get()), ATTN_OK) << attn_last_error();
    EXPECT_EQ(valueOf(*this), expected);
    ASSERT_EQ(call(forward.get(), two.get()), ATTN_OK) << attn_last_error();
    EXPECT_EQ(valueOf(*this), 3 - expected);
  }
}

TEST_F(WeightsTest, SwapRefused) {
  EXPECT_EQ(attn_weights_swap(weights.get(), nullptr), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(),
               "attn_weights_swap: expected two different handles of weights, got null");
  EXPECT_EQ(attn_weights_swap(weights.get(), weights.get()), ATTN_ERROR_USAGE);
  EXPECT_STREQ(attn_last_error(),
               "attn_weights_swap: expected two different handles of weights, got one twice");
}

// Each call reads one set of weights, and no set that attn_weights_swap has handed back: the test releases such a set
// at once.
TEST_F(WeightsTest, SwappedWhileCalled) {
  Weights shared = constantWeights(forward.get(), 0);
  constexpr int numCallers = 8, numSwaps = 200;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> calls{0}, wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < numCallers; ++t)
    callers.emplace_back([&] {
      ForwardArguments own;
      for (float last = 0; !stop; ++calls) {
        bool ok = own.call(forward.get(), shared.get()) == ATTN_OK;
        float value = valueOf(own);
        // `value` is the number of the swap. Later calls of a thread must read weights of the same or a later swap.
        wrong += !ok || !(value >= last);
        last = value;
      }
    });
  for (int swap = 1; swap <= numSwaps; ++swap) {
    Weights next = constantWeights(forward.get(), float(swap));
    ASSERT_EQ(attn_weights_swap(shared.get(), next.get()), ATTN_OK) << attn_last_error();
  }
  while (calls < numCallers)
    std::this_thread::yield();
  stop = true;
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(wrong, 0);
}

#if defined __x86_64__

TEST_F(WeightsTest, SwapOfAnotherLayout) {
  if (!__builtin_cpu_supports("x86-64-v2"))
    GTEST_SKIP() << "needs two levels";
  Function high = createFunction(library.get(), "forward", "x86-64-v2");
  Function low = createFunction(library.get(), "forward", "x86-64");
  Weights mine = createWeights(high.get()), its = createWeights(low.get());
  EXPECT_EQ(attn_weights_swap(mine.get(), its.get()), ATTN_ERROR_WEIGHTS);
  EXPECT_STREQ(attn_last_error(),
               "attn_weights_swap: expected weights packed for 'forward' at level "
               "x86-64-v2, got those for 'forward' at x86-64");
}

TEST_F(WeightsTest, OfAnotherLayout) {
  if (!__builtin_cpu_supports("x86-64-v2"))
    GTEST_SKIP() << "needs two levels";
  Function high = createFunction(library.get(), "forward", "x86-64-v2");
  Function low = createFunction(library.get(), "forward", "x86-64");
  weights = createWeights(low.get());
  EXPECT_EQ(call(high.get(), weights.get()), ATTN_ERROR_WEIGHTS);
  EXPECT_STREQ(attn_last_error(), "forward: expected weights packed for 'forward' at level "
                                  "x86-64-v2, got those for 'forward' at x86-64");
  expectUntouched();
}

TEST_F(WeightsTest, OfAnotherLevelWithTheSameLayout) {
  if (!__builtin_cpu_supports("x86-64-v3"))
    GTEST_SKIP() << "needs two levels";
  weights = createWeights(createFunction(library.get(), "forward", "x86-64-v2").get());
  Function high = createFunction(library.get(), "forward", "x86-64-v3");
  ASSERT_EQ(call(high.get(), weights.get()), ATTN_OK) << attn_last_error();
  expectResult();
}

#endif // __x86_64__

} // namespace
