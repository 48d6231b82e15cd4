//===- Kernel.cpp - compile MLIR text to a callable kernel ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Kernel.h"
#include "driver/Compile.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <random>

using namespace llvm;
using namespace attn;
using namespace attn::bench;

static constexpr size_t kAlignment = 64;

static Error check(attn_status status) {
  return status == ATTN_OK ? Error::success() : createStringError(attn_last_error());
}

Expected<std::unique_ptr<Kernel>> Kernel::create(StringRef module, const Target &target,
                                                 attn_pool *pool, const Kernel *twin) {
  SmallString<128> folder;
  if (std::error_code error = sys::fs::createUniqueDirectory("attn-bench", folder))
    return createStringError("cannot create a temporary folder: " + error.message());
  llvm::scope_exit cleanUp([&] { sys::fs::remove_directories(folder); });

  CompileOptions options;
  options.input = (folder + "/kernel.mlir").str();
  options.output = (folder + "/kernel.so").str();
  options.targets = {&target};
  std::error_code error;
  raw_fd_ostream file(options.input, error);
  if (error)
    return createStringError("cannot write '" + options.input + "': " + error.message());
  file << module;
  file.close();
  Expected<CompileReport> report = compile(options);
  if (!report)
    return report.takeError();

  auto kernel = std::make_unique<Kernel>();
  kernel->pool = pool;
  if (Error error = kernel->load(options.output, target))
    return error;
  kernel->groups = twin ? twin->groups : std::make_shared<std::array<Group, 3>>();
  if (!twin)
    for (attn_role role : {ATTN_INPUT, ATTN_OUTPUT, ATTN_WEIGHT})
      if (Error error = kernel->makeTensors(role, (*kernel->groups)[role]))
        return error;
  if (Error error = kernel->packWeights())
    return error;
  if (Error error = check(kernel->call()))
    return error;
  return kernel;
}

Error Kernel::load(const std::string &path, const Target &target) {
  attn_library *loaded = nullptr;
  if (Error error = check(attn_library_load(path.c_str(), &loaded)))
    return error;
  rt::Library library(loaded); // may be released early: a function keeps the library alive
  attn_function_options options = {};
  options.size = sizeof options;
  options.level = target.level.data();
  attn_function *created = nullptr;
  if (Error error = check(attn_function_create(loaded, "forward", &options, &created)))
    return error;
  function.reset(created);
  return Error::success();
}

Error Kernel::makeTensors(attn_role role, Group &group) {
  std::mt19937 generator(role);
  std::normal_distribution<float> normal;
  for (int32_t i = 0; i < attn_function_num_arguments(function.get(), role); ++i) {
    attn_argument argument = {};
    argument.size = sizeof(argument);
    if (Error error = check(attn_function_argument(function.get(), role, i, &argument)))
      return error;
    Tensor tensor;
    tensor.name = argument.name;
    for (int32_t axis = 0; axis < argument.rank; ++axis) {
      attn_dim dim;
      if (Error error = check(attn_function_dim(function.get(), role, i, axis, &dim)))
        return error;
      tensor.shape.push_back(dim.min);
      tensor.numElements *= dim.min;
    }
    size_t bytes = alignTo(tensor.numElements * sizeof(float), kAlignment);
    tensor.data.reset(static_cast<float *>(std::aligned_alloc(kAlignment, bytes)));
    // Scale the weights so that their products with the inputs are as large as the inputs. Scores then have the range
    // that they have in real layers.
    float scale = role == ATTN_WEIGHT ? 1 / std::sqrt(float(tensor.shape.back())) : 1;
    std::generate_n(tensor.data.get(), tensor.numElements,
                    [&] { return scale * normal(generator); });
    group.tensors.push_back(std::move(tensor));
  }
  for (Tensor &tensor : group.tensors)
    group.views.push_back({tensor.data.get(),
                           {kDLCPU, 0},
                           int32_t(tensor.shape.size()),
                           {kDLFloat, 32, 1},
                           tensor.shape.data(),
                           /*strides=*/nullptr,
                           /*byte_offset=*/0});
  for (DLTensor &view : group.views)
    group.pointers.push_back(&view);
  return Error::success();
}

Error Kernel::packWeights() {
  const Group &group = (*groups)[ATTN_WEIGHT];
  if (group.tensors.empty())
    return Error::success();
  SmallVector<const char *> names;
  for (const Tensor &tensor : group.tensors)
    names.push_back(tensor.name.c_str());
  attn_weights *created = nullptr;
  if (Error error = check(attn_weights_create(function.get(), names.data(), group.pointers.data(),
                                              names.size(), &created)))
    return error;
  weights.reset(created);
  return Error::success();
}

attn_status Kernel::call() {
  const auto &inputs = (*groups)[ATTN_INPUT].pointers, &outputs = (*groups)[ATTN_OUTPUT].pointers;
  attn_call_options options = {};
  options.size = sizeof(options);
  options.pool = pool;
  options.parallel_for = pool ? attn_pool_parallel_for : nullptr;
  return attn_call(function.get(), weights.get(), inputs.data(), inputs.size(), outputs.data(),
                   outputs.size(), &options);
}

SmallVector<const float *> Kernel::getArguments() const {
  SmallVector<const float *> arguments;
  for (attn_role role : {ATTN_INPUT, ATTN_WEIGHT})
    for (const Tensor &tensor : (*groups)[role].tensors)
      arguments.push_back(tensor.data.get());
  return arguments;
}

ArrayRef<float> Kernel::getResult() const {
  const Tensor &result = (*groups)[ATTN_OUTPUT].tensors.front();
  return {result.data.get(), size_t(result.numElements)};
}
