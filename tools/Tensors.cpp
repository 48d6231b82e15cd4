//===- Tensors.cpp - the tensors of a call --------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/Tensors.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <random>
#include <unistd.h>

using namespace llvm;
using namespace attn;

Error attn::toError(attn_status status) {
  return status == ATTN_OK ? Error::success() : createStringError(attn_last_error());
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

SmallVector<int32_t> attn::getInOut(const attn_function *function) {
  SmallVector<int32_t> inOut;
  for (int32_t i = 0; i < attn_function_num_arguments(function, ATTN_INPUT); ++i) {
    attn_argument argument = {};
    argument.size = sizeof(argument);
    if (attn_function_argument(function, ATTN_INPUT, i, &argument) == ATTN_OK && argument.in_out)
      inOut.push_back(i);
  }
  return inOut;
}

Arguments::Arguments(MutableArrayRef<Array> inputs, MutableArrayRef<Array> results,
                     ArrayRef<int32_t> inOut)
    : numInputs(inputs.size()) {
  append_range(tensors, map_range(inputs, toTensor));
  append_range(tensors, map_range(results.drop_back(inOut.size()), toTensor));
  for (auto [i, result] : zip_equal(inOut, results.take_back(inOut.size())))
    if (size_t(i) < numInputs)
      tensors[i] = toTensor(result);
  for (DLTensor &tensor : tensors)
    pointers.push_back(&tensor);
}

/// Gives `argument` of the signature, and sets the element type of `array`.
static Error describe(const attn_function *function, attn_role role, int32_t index, Array &array,
                      attn_argument &argument) {
  argument = {};
  argument.size = sizeof(argument);
  if (Error error = toError(attn_function_argument(function, role, index, &argument)))
    return error;
  array.code = argument.dtype.code;
  array.bits = argument.dtype.bits;
  return Error::success();
}

/// Allocates the elements and sets them to zero.
static Error allocate(Array &array) {
  int64_t bytes = array.bits / 8;
  for (int64_t size : array.shape)
    if (size < 0 || MulOverflow(bytes, size, bytes))
      return createStringError("expected sizes of less than 2^63 bytes");
  int64_t memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  if (bytes > memory)
    return createStringError(formatv("expected tensors that fit into the {0} bytes of this machine's memory, got {1} bytes",
                                     memory, bytes));
  array.data.resize(bytes);
  return Error::success();
}

Expected<StringMap<int64_t>> attn::parseDims(ArrayRef<std::string> dims) {
  StringMap<int64_t> sizes;
  for (StringRef dim : dims) {
    auto [name, value] = dim.split('=');
    if (value.getAsInteger(10, sizes[name]))
      return createStringError("expected --dim=name=n, got '" + dim + "'");
  }
  return sizes;
}

/// Parses each "name=n" of `dims`; the names must be dynamic dimensions of `function`.
static Expected<StringMap<int64_t>> parseDimsOf(const attn_function *function,
                                                ArrayRef<std::string> dims) {
  Expected<StringMap<int64_t>> sizes = parseDims(dims);
  if (!sizes)
    return sizes;
  StringSet<> symbols;
  for (int32_t i = 0; i < attn_function_num_symbols(function); ++i) {
    attn_dim symbol;
    if (Error error = toError(attn_function_symbol(function, i, &symbol)))
      return error;
    symbols.insert(symbol.symbol);
  }
  for (StringRef name : sizes->keys())
    if (!symbols.contains(name))
      return createStringError("expected --dim of a dynamic dimension, got '" + name + "'");
  return sizes;
}

/// The bits of the nearest f16 or bf16, ties to even.
static uint16_t round(float value, const fltSemantics &type) {
  APFloat half(value);
  bool losesInfo;
  half.convert(type, APFloat::rmNearestTiesToEven, &losesInfo);
  return half.bitcastToAPInt().getZExtValue();
}

Expected<std::vector<Array>> attn::makeRandomInputs(const attn_function *function,
                                                    ArrayRef<std::string> dims) {
  Expected<StringMap<int64_t>> sizes = parseDimsOf(function, dims);
  if (!sizes)
    return sizes.takeError();
  std::vector<Array> inputs(attn_function_num_arguments(function, ATTN_INPUT));
  std::mt19937 generator(0);
  for (auto [i, array] : enumerate(inputs)) {
    attn_argument argument;
    if (Error error = describe(function, ATTN_INPUT, i, array, argument))
      return error;
    for (int32_t axis = 0; axis < argument.rank; ++axis) {
      attn_dim dim;
      if (Error error = toError(attn_function_dim(function, ATTN_INPUT, i, axis, &dim)))
        return error;
      if (dim.symbol && !sizes->contains(dim.symbol))
        return createStringError("expected --dim=" + Twine(dim.symbol) + "=n for random inputs");
      int64_t size = dim.symbol ? sizes->lookup(dim.symbol) : dim.min;
      if (size < dim.min || size > dim.max)
        return createStringError(formatv("expected --dim={0} in [{1}, {2}], got {3}", dim.symbol,
                                         dim.min, dim.max, size));
      array.shape.push_back(size);
    }
    if (Error error = allocate(array))
      return error;
    std::normal_distribution<float> normal;
    for (int64_t e = 0; e < array.getNumElements(); ++e) {
      if (array.code == kDLFloat && array.bits == 64)
        reinterpret_cast<double *>(array.data.data())[e] = normal(generator);
      else if (array.code == kDLFloat && array.bits == 32)
        reinterpret_cast<float *>(array.data.data())[e] = normal(generator);
      else if (array.code == kDLFloat || array.code == kDLBfloat)
        reinterpret_cast<uint16_t *>(array.data.data())[e] =
            round(normal(generator),
                  array.code == kDLFloat ? APFloat::IEEEhalf() : APFloat::BFloat());
      else // masks, lengths: ones and zeros
        array.data[e * (array.bits / 8)] = generator() & 1;
    }
  }
  return inputs;
}

Expected<std::vector<Array>> attn::makeResults(const attn_function *function,
                                               MutableArrayRef<Array> inputs) {
  Arguments arguments(inputs, {}, {});
  std::vector<Array> outputs(attn_function_num_arguments(function, ATTN_OUTPUT));
  for (auto [i, array] : enumerate(outputs)) {
    attn_argument argument;
    if (Error error = describe(function, ATTN_OUTPUT, i, array, argument))
      return error;
    array.shape.resize(argument.rank);
    if (Error error = toError(attn_output_shape(function, arguments.inputs().data(),
                                                arguments.inputs().size(), i, array.shape.data())))
      return error;
    if (Error error = allocate(array))
      return error;
  }
  // If there are too few inputs, the call reports it.
  for (int32_t i : getInOut(function))
    outputs.push_back(size_t(i) < inputs.size() ? inputs[i] : Array());
  return outputs;
}
