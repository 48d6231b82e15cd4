//===- Arguments.cpp - the tensors of a call ------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/Arguments.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <unistd.h>

using namespace attn;

Failure attn::toFailure(attn_status status) {
  return status == ATTN_OK ? Failure() : Failure{attn_last_error()};
}

static DLTensor toTensor(Array &array) {
  DLTensor tensor = {};
  tensor.data = array.data.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = array.shape.size();
  tensor.dtype = {array.code, array.bits, 1};
  tensor.shape = array.shape.data();
  return tensor;
}

Failure attn::getArgument(const attn_function *function, attn_role role, int32_t index,
                          attn_argument &argument) {
  argument = {};
  argument.size = sizeof(argument);
  return toFailure(attn_function_argument(function, role, index, &argument));
}

std::vector<int32_t> attn::getInOut(const attn_function *function) {
  std::vector<int32_t> inOut;
  for (int32_t i = 0; i < attn_function_num_arguments(function, ATTN_INPUT); ++i) {
    attn_argument argument;
    if (!getArgument(function, ATTN_INPUT, i, argument) && argument.in_out)
      inOut.push_back(i);
  }
  return inOut;
}

Arguments::Arguments(std::vector<Array> &inputs, std::vector<Array> &results,
                     const std::vector<int32_t> &inOut)
    : numInputs(inputs.size()) {
  size_t numOutputs = results.size() - inOut.size();
  for (Array &input : inputs)
    tensors.push_back(toTensor(input));
  for (size_t i = 0; i < numOutputs; ++i)
    tensors.push_back(toTensor(results[i]));
  for (size_t i = 0; i < inOut.size(); ++i)
    if (size_t(inOut[i]) < numInputs)
      tensors[inOut[i]] = toTensor(results[numOutputs + i]);
  for (DLTensor &tensor : tensors)
    pointers.push_back(&tensor);
}

/// Reads argument `index` of the signature into `argument`, and sets the element type of `array` to that of the
/// argument.
static Failure describe(const attn_function *function, attn_role role, int32_t index, Array &array,
                        attn_argument &argument) {
  if (Failure failure = getArgument(function, role, index, argument))
    return failure;
  array.code = argument.dtype.code;
  array.bits = argument.dtype.bits;
  return {};
}

/// Allocates the elements and sets them to zero.
static Failure allocate(Array &array) {
  int64_t bytes = array.bits / 8;
  for (int64_t size : array.shape)
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
      return refuse("expected sizes of less than 2^63 bytes");
  int64_t memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  if (bytes > memory)
    return refuse(
        "expected tensors that fit into the %lld bytes of this machine's memory, got %lld bytes",
        (long long)memory, (long long)bytes);
  array.data.resize(bytes);
  return {};
}

Failure attn::parseDims(const std::vector<std::string> &dims, DimSizes &sizes) {
  for (const std::string &dim : dims) {
    size_t equals = dim.find('=');
    int64_t size;
    if (equals == dim.npos || !parseInteger(std::string_view(dim).substr(equals + 1), size))
      return refuse("expected --dim=name=n, got '%s'", dim.c_str());
    sizes[dim.substr(0, equals)] = size;
  }
  return {};
}

/// Parses each "name=n" of `dims`; the names must be dynamic dimensions of `function`.
static Failure parseDimsOf(const attn_function *function, const std::vector<std::string> &dims,
                           DimSizes &sizes) {
  if (Failure failure = parseDims(dims, sizes))
    return failure;
  std::set<std::string> symbols;
  for (int32_t i = 0; i < attn_function_num_symbols(function); ++i) {
    attn_dim symbol;
    if (Failure failure = toFailure(attn_function_symbol(function, i, &symbol)))
      return failure;
    symbols.insert(symbol.symbol);
  }
  for (const auto &[name, size] : sizes)
    if (!symbols.count(name))
      return refuse("expected --dim of a dynamic dimension, got '%s'", name.c_str());
  return {};
}

/// An array has at most so many different random elements, and repeats them if it has more, because drawing 100 million
/// elements takes seconds. The number is a prime, so that rows do not repeat at equal places.
static constexpr int64_t kMostDrawn = 1048583;

Failure attn::makeRandomInputs(const attn_function *function, const std::vector<std::string> &dims,
                               std::vector<Array> &inputs) {
  DimSizes sizes;
  if (Failure failure = parseDimsOf(function, dims, sizes))
    return failure;
  inputs.assign(attn_function_num_arguments(function, ATTN_INPUT), Array());
  std::mt19937 generator(0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Array &array = inputs[i];
    attn_argument argument;
    if (Failure failure = describe(function, ATTN_INPUT, i, array, argument))
      return failure;
    for (int32_t axis = 0; axis < argument.rank; ++axis) {
      attn_dim dim;
      if (Failure failure = toFailure(attn_function_dim(function, ATTN_INPUT, i, axis, &dim)))
        return failure;
      if (dim.symbol && !sizes.count(dim.symbol))
        return refuse("expected --dim=%s=n for random inputs", dim.symbol);
      int64_t size = dim.symbol ? sizes[dim.symbol] : dim.min;
      if (size < dim.min || size > dim.max)
        return refuse("expected --dim=%s in [%lld, %lld], got %lld", dim.symbol, (long long)dim.min,
                      (long long)dim.max, (long long)size);
      array.shape.push_back(size);
    }
    if (Failure failure = allocate(array))
      return failure;
    // Elements of masks are 0 or 1; lengths and indices may have any value up to their bound. A bound that is computed
    // from sizes is not known here, but allows 0.
    int64_t most = !argument.bounded ? 1 : argument.bound.max;
    int64_t least = argument.below.symbol ? 0 : std::max<int64_t>(0, -argument.below.max);
    if (argument.bounded && argument.bound.symbol) {
      auto size = sizes.find(argument.bound.symbol);
      most = size == sizes.end() ? least : size->second;
    }
    most = std::max(most, least);
    std::normal_distribution<float> normal;
    char *data = array.data.data();
    int64_t drawn = std::min(array.getNumElements(), kMostDrawn);
    for (int64_t e = 0; e < drawn; ++e) {
      if (array.code == kDLFloat && array.bits == 64)
        reinterpret_cast<double *>(data)[e] = normal(generator);
      else if (array.code == kDLFloat && array.bits == 32)
        reinterpret_cast<float *>(data)[e] = normal(generator);
      else if (array.code == kDLFloat)
        reinterpret_cast<uint16_t *>(data)[e] = toHalf(normal(generator));
      else if (array.code == kDLBfloat)
        reinterpret_cast<uint16_t *>(data)[e] = toBFloat(normal(generator));
      else {
        uint64_t integer = uint64_t(least) + generator() % (uint64_t(most - least) + 1);
        memcpy(data + e * (array.bits / 8), &integer, array.bits / 8);
      }
    }
    int64_t period = drawn * (array.bits / 8);
    for (int64_t byte = period, end = int64_t(array.data.size()); byte < end; byte += period)
      memcpy(data + byte, data, std::min(period, end - byte));
  }
  return {};
}

Failure attn::makeResults(const attn_function *function, std::vector<Array> &inputs,
                          std::vector<Array> &results) {
  std::vector<Array> none;
  Arguments arguments(inputs, none, {});
  results.assign(attn_function_num_arguments(function, ATTN_OUTPUT), Array());
  for (size_t i = 0; i < results.size(); ++i) {
    attn_argument argument;
    if (Failure failure = describe(function, ATTN_OUTPUT, i, results[i], argument))
      return failure;
    results[i].shape.resize(argument.rank);
    if (Failure failure = toFailure(attn_output_shape(
            function, arguments.getInputs(), arguments.getNumInputs(), i, results[i].shape.data())))
      return failure;
    if (Failure failure = allocate(results[i]))
      return failure;
  }
  // If there are too few inputs, the call reports the error.
  for (int32_t i : getInOut(function))
    results.push_back(size_t(i) < inputs.size() ? inputs[i] : Array());
  return {};
}
