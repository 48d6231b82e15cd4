//===- Fixture.h - tensors, and a valid call of forward -------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_FIXTURE_H
#define ATTN_TEST_FIXTURE_H

#include "attn.hpp"
// Included after attn.hpp, to test that this order compiles. The runtime itself is built with the structs that attn.h
// declares.
#include <dlpack/dlpack.h>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#if defined __SANITIZE_THREAD__
constexpr bool underThreadSanitizer = true;
#else
constexpr bool underThreadSanitizer = false;
#endif
#if defined __SANITIZE_ADDRESS__
constexpr bool underSanitizer = true;
#else
constexpr bool underSanitizer = underThreadSanitizer;
#endif

extern "C" const struct attn_library_info *attn_query_kernel(void);

template <typename T> constexpr DLDataType dtypeOf() {
  return {uint8_t(std::is_floating_point_v<T> ? kDLFloat : kDLInt), sizeof(T) * 8, 1};
}

/// A compact tensor that owns its elements.
template <typename T> struct Tensor {
  std::vector<int64_t> shape;
  std::vector<T> elements;
  DLTensor dl;

  explicit Tensor(std::vector<int64_t> dims, T value = T())
      : shape(std::move(dims)),
        elements(std::accumulate(shape.begin(), shape.end(), size_t(1), std::multiplies<>()),
                 value),
        dl{elements.data(),
           {kDLCPU, 0},
           int(shape.size()),
           dtypeOf<T>(),
           shape.data(),
           nullptr,
           0} {}
  Tensor(const Tensor &) = delete;
};

using attn::rt::Function, attn::rt::Library, attn::rt::Pool, attn::rt::Weights;

inline Library linkedLibrary() {
  attn_library *library = nullptr;
  EXPECT_EQ(attn_library_from_query(attn_query_kernel, &library), ATTN_OK) << attn_last_error();
  return Library(library);
}

inline Function createFunction(attn_library *library, const char *name,
                               const char *level = nullptr) {
  attn_function *function = nullptr;
  attn_function_options options = {sizeof options, level, {}};
  EXPECT_EQ(attn_function_create(library, name, &options, &function), ATTN_OK) << attn_last_error();
  return Function(function);
}

inline Weights createWeights(const attn_function *function) {
  Tensor<float> scale({4}), bias({4});
  scale.elements = {1, 2, 3, 4};
  bias.elements = {5, 6, 7, 8};
  // The order differs from the signature.
  const char *names[] = {"bias", "scale"};
  const DLTensor *tensors[] = {&bias.dl, &scale.dl};
  attn_weights *weights = nullptr;
  EXPECT_EQ(attn_weights_create(function, names, tensors, 2, &weights), ATTN_OK)
      << attn_last_error();
  return Weights(weights);
}

inline Pool createPool(int64_t workers) {
  attn_pool *pool = nullptr;
  EXPECT_EQ(attn_pool_create(workers, &pool), ATTN_OK) << attn_last_error();
  return Pool(pool);
}

constexpr float untouched = -77;

/// Arguments of forward that pass every check.
struct ForwardArguments {
  Tensor<float> x, residual;
  Tensor<int32_t> lengths;
  Tensor<float> y, total;
  std::vector<const DLTensor *> inputs{&x.dl, &residual.dl, &lengths.dl}, outputs{&y.dl, &total.dl};

  explicit ForwardArguments(int64_t batch = 3, int64_t rows = 5)
      : x({batch, rows, 4}), residual({batch, rows, 4}, 0.5f), lengths({batch}),
        y({batch, rows, 4}, untouched), total({batch}, untouched) {
    std::iota(x.elements.begin(), x.elements.end(), 1.0f);
    for (int64_t b = 0; b < batch; ++b)
      lengths.elements[b] = int32_t(b % (rows + 1));
  }

  attn_status call(attn_function *function, const attn_weights *weights,
                   const attn_call_options *options = nullptr) {
    return attn_call(function, weights, inputs.data(), int32_t(inputs.size()), outputs.data(),
                     int32_t(outputs.size()), options);
  }

  void expectResult() const {
    int64_t batch = x.shape[0], rows = x.shape[1];
    for (int64_t b = 0; b < batch; ++b) {
      float sum = 0;
      for (int64_t i = 0; i < rows * 4; ++i) {
        int64_t at = b * rows * 4 + i, c = i % 4;
        float expected =
            i / 4 < lengths.elements[b] ? x.elements[at] * float(c + 1) + float(c + 5) + 0.5f : 0;
        ASSERT_EQ(y.elements[at], expected) << "batch " << b << " element " << i;
        sum += expected;
      }
      ASSERT_EQ(total.elements[b], sum) << "batch " << b;
    }
  }

  void expectUntouched() const {
    for (float element : y.elements)
      ASSERT_EQ(element, untouched);
    for (float element : total.elements)
      ASSERT_EQ(element, untouched);
  }
};

/// A test of `forward`, with its weights and arguments.
struct ForwardTest : testing::Test, ForwardArguments {
  Library library = linkedLibrary();
  Function forward = createFunction(library.get(), "forward");
  Weights weights = createWeights(forward.get());

  /// Checks that the call fails with this message and writes no output.
  void expectRefused(attn_status status, const std::string &message,
                     const attn_call_options *options = nullptr) {
    EXPECT_EQ(call(forward.get(), weights.get(), options), status);
    EXPECT_EQ(attn_last_error(), message);
    expectUntouched();
  }
};

#endif // ATTN_TEST_FIXTURE_H
