//===- WeightsTest.cpp - matched by name, checked, shared -----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

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
  EXPECT_EQ(attn_weights_create(forward.get(), nullptr, nullptr, 2, &packed), ATTN_ERROR_USAGE);
  EXPECT_EQ(attn_weights_create(nullptr, nullptr, nullptr, 0, &packed), ATTN_ERROR_USAGE);
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

#if defined __x86_64__

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
