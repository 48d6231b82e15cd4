//===- attn-bench-call.cpp - the cost of a call without its kernel ---------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Measures a function of six inputs and two outputs of rank 4 with a kernel that does nothing. So the time of a call is
// the time to check its arguments, to begin a use of the packed weights, and to get a workspace. It should be at most
// one microsecond with all checks.
//
//===----------------------------------------------------------------------===//

#include "runtime/attn.h"
#include "runtime/attn_kernel.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kInputs = 6, kOutputs = 2, kArguments = kInputs + kOutputs;
constexpr int64_t kSizes[] = {2, 12, 8, 16}; // batch and length are symbols

void run(const attn_kernel_call *) {}
void workspace(const int64_t *dims, int64_t bytes[2]) {
  bytes[0] = 64 * dims[1];
  bytes[1] = 4096;
}
void pack(const void *const *, void *) {}

const attn_dim_info kShape[] = {{0, 0, 0}, {12, -1, 0}, {0, 1, 0}, {16, -1, 0}};
const attn_dim_info kWeightShape[] = {{16, -1, 0}};
constexpr attn_tensor_info tensor(const char *name) {
  return {name, kShape, 4, kDLFloat, 32, 0, 0, {}};
}
const attn_tensor_info kTensors[] = {tensor("a"), tensor("b"), tensor("c"), tensor("d"),
                                     tensor("e"), tensor("f"), tensor("g"), tensor("h")};
const attn_tensor_info kWeight = {"w", kWeightShape, 1, kDLFloat, 32, 0, 0, {}};
const attn_symbol_info kSymbols[] = {{"batch", 0, 64, nullptr, 0, 0},
                                     {"length", 0, 4096, nullptr, 0, 0}};
const int64_t kPackedOffsets[] = {0, 64};
const attn_variant_info kVariant = {
#if defined __x86_64__
    "x86-64",
#else
    "aarch64",
#endif
    "",       run, workspace, pack, 64, 1, "", "", "", kDLCPU, 0, nullptr, nullptr, kPackedOffsets, 1, 0};
const attn_function_info kFunction = {
    "f",      kInputs,  kOutputs,  1,      2, 1, 0, kTensors, kTensors + kInputs,
    &kWeight, kSymbols, &kVariant, nullptr};
const attn_library_info kLibrary = {
    ATTN_ABI_VERSION, sizeof(attn_library_info), "call", "attn", "{}", 1, 0, &kFunction};

void check(attn_status status) {
  if (status == ATTN_OK)
    return;
  std::fprintf(stderr, "attn-bench-call: %s\n", attn_last_error());
  std::exit(1);
}

void callFunction(benchmark::State &state, bool ownWorkspace, bool skipChecks) {
  attn_library *library;
  attn_function *function;
  attn_weights *weights;
  check(attn_library_from_query([] { return &kLibrary; }, &library));
  check(attn_function_create(library, "f", nullptr, &function));
  std::vector<float> w(16);
  int64_t shape[] = {kSizes[0], kSizes[1], kSizes[2], kSizes[3]}, width = 16;
  DLTensor weight = {w.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &width, nullptr, 0};
  const DLTensor *weightTensors[] = {&weight};
  const char *names[] = {"w"};
  check(attn_weights_create(function, names, weightTensors, 1, &weights));

  std::vector<std::vector<float>> data(kArguments, std::vector<float>(2 * 12 * 8 * 16));
  std::vector<DLTensor> tensors;
  for (std::vector<float> &elements : data)
    tensors.push_back({elements.data(), {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, nullptr, 0});
  std::vector<const DLTensor *> arguments;
  for (const DLTensor &argument : tensors)
    arguments.push_back(&argument);

  attn_workspace size = {};
  size.size = sizeof size;
  check(attn_workspace_size(function, arguments.data(), kInputs, 1, &size));
  void *memory = std::aligned_alloc(ATTN_ALIGNMENT, size.total);
  attn_call_options options = {};
  options.size = sizeof options;
  options.workspace = ownWorkspace ? memory : nullptr;
  options.workspace_bytes = ownWorkspace ? size.total : 0;
  options.skip_checks = skipChecks;
  for (auto _ : state)
    check(attn_call(function, weights, arguments.data(), kInputs, arguments.data() + kInputs,
                    kOutputs, &options));
  std::free(memory);
  attn_weights_release(weights);
  attn_function_release(function);
  attn_library_release(library);
}

} // namespace

BENCHMARK_CAPTURE(callFunction, all_checks, false, false);
BENCHMARK_CAPTURE(callFunction, all_checks_callers_workspace, true, false);
BENCHMARK_CAPTURE(callFunction, no_checks_callers_workspace, true, true);
BENCHMARK_MAIN();
