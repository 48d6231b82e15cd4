//===- tensor.h - a float32 tensor in memory ---------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef EXAMPLE_TENSOR_H
#define EXAMPLE_TENSOR_H

#include <attn.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> data;

  static int64_t count(const std::vector<int64_t> &shape) {
    int64_t product = 1;
    for (int64_t size : shape)
      if (size < 0 || __builtin_mul_overflow(product, size, &product))
        throw std::runtime_error("expected a shape that fits into memory");
    return product;
  }

  /// Returns a view of this tensor for the runtime. The view points to the tensor's data and shape.
  DLTensor view() {
    return {data.data(),
            {kDLCPU, 0},
            int32_t(shape.size()),
            {kDLFloat, 32, 1},
            shape.data(),
            nullptr,
            0};
  }
};

/// Reads a tensor of `shape` from the current position of `file`.
inline Tensor readElements(std::ifstream &file, std::vector<int64_t> shape,
                           const std::string &path) {
  std::streamoff begin = file.tellg();
  int64_t count = Tensor::count(shape), left = file.seekg(0, std::ios::end).tellg() - begin;
  if (left / int64_t(sizeof(float)) < count)
    throw std::runtime_error(path + ": expected " + std::to_string(count) + " elements, got fewer");
  Tensor tensor{std::move(shape), std::vector<float>(count)};
  file.seekg(begin).read(reinterpret_cast<char *>(tensor.data.data()), count * sizeof(float));
  return tensor;
}

/// Returns the largest difference, or NaN if a difference is NaN.
inline double maxError(const Tensor &got, const Tensor &expected) {
  if (got.shape != expected.shape)
    throw std::runtime_error("expected an output with the shape of the reference, got another shape");
  double worst = 0;
  for (size_t i = 0; i < got.data.size(); ++i) {
    double error = std::fabs(double(got.data[i]) - expected.data[i]);
    if (!(error <= worst))
      worst = error;
    if (std::isnan(error))
      break;
  }
  return worst;
}

#endif // EXAMPLE_TENSOR_H
