//===- GpuTest.cpp - functions for GPUs ------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The GPU driver is test/ptx/Driver.cpp, which records the calls; kernels do nothing. GpuTestWithout.NoDriver runs
// without that driver.
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"
#include "attn_kernel.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <unistd.h>

namespace {

/// The argument of kernel scale_0.
struct Context {
  const void *x;
  void *y;
  const void *weights;
  int64_t size;
};

int64_t taskCount = 3;

void run(const attn_kernel_call *call) {
  Context context = {call->inputs[0], call->outputs[0], call->weights[0], call->dims[0]};
  call->launch(call->device, 0, taskCount, &context);
}
void computeWorkspace(const int64_t *, int64_t bytes[2]) { bytes[0] = 100, bytes[1] = 0; }
void pack(const void *const *weights, void *packed) {
  std::copy_n(static_cast<const float *>(weights[0]), 4, static_cast<float *>(packed));
}

const int64_t packedOffsets[] = {0, 64};
const attn_dim_info shape = {0, 0, 0}, four = {4, -1, 0};
const attn_tensor_info x = {"x", &shape, 1, kDLFloat, 32, 0, 0, {}},
                       y = {"y", &shape, 1, kDLFloat, 32, 0, 0, {}},
                       w = {"w", &four, 1, kDLFloat, 32, 0, 0, {}};
const attn_symbol_info symbol = {"x.0", 0, 100, nullptr, 0, 0};
const attn_kernel_info kernel = {"scale_0", 64, 2048, sizeof(Context), 0, 0, nullptr};
const attn_variant_info variants[] = {
    {"sm_90a", "sm_90a", run, computeWorkspace, pack, 64, 1, "100", "", "", kDLCUDA, 1, &kernel,
     ".visible .entry scale_0(...)", packedOffsets, 1, 0},
    {"sm_80", "sm_80", run, computeWorkspace, pack, 64, 1, "100", "", "", kDLCUDA, 1, &kernel,
     ".visible .entry scale_0(...)", packedOffsets, 1, 0},
    {"any", "", run, computeWorkspace, pack, 64, 1, "100", "", "", kDLCPU, 0, nullptr, nullptr, packedOffsets, 1, 0},
};
/// The argument of kernel box_0. It contains the memref descriptor of the input, from which the kernel copies 16 rows
/// at a time.
struct BoxContext {
  int64_t size;
  const void *allocated, *aligned;
  int64_t offset, sizes[2], strides[2];
};

int64_t tasksOfBox = 1;
void runBox(const attn_kernel_call *call) {
  int64_t size = call->dims[0];
  BoxContext context = {size, nullptr, call->inputs[0], 0, {size, 64}, {64, 1}};
  call->launch(call->device, 0, tasksOfBox, &context);
}
void needNoWorkspace(const int64_t *, int64_t bytes[2]) { bytes[0] = bytes[1] = 0; }

const attn_tensor_map_info box = {offsetof(BoxContext, allocated), 2, 0, 16, 2};
const attn_kernel_info boxKernel = {"box_0", 128, 2048, sizeof(BoxContext), 1, /*blocks=*/1, &box};
const attn_dim_info rows[] = {{0, 0, 0}, {64, -1, 0}}, three = {3, -1, 0};
const attn_tensor_info boxes = {"boxes", rows, 2, kDLFloat, 16, 0, 0, {}},
                       inputsOfBox[] = {boxes, {"lengths", &three, 1, kDLInt, 32, 1, 0, {0, 0, 0}}};
const attn_symbol_info rowsOfBox = {"boxes.0", 0, 100, nullptr, 0, 0};
const attn_variant_info boxVariant = {
    "sm_90a", "sm_90a", runBox, needNoWorkspace, nullptr, 0,          0,
    "0",      "",       "",     kDLCUDA,         1,       &boxKernel, ".visible .entry box_0(...)", nullptr, 0, {}};

const attn_function_info functions[] = {
    {"scale", 1, 1, 1, 1, 3, 0, &x, &y, &w, &symbol, variants, nullptr},
    {"on_cpu", 1, 1, 1, 1, 1, 0, &x, &y, &w, &symbol, &variants[2], nullptr},
    {"box", 2, 0, 0, 1, 1, 0, inputsOfBox, nullptr, nullptr, &rowsOfBox, &boxVariant, nullptr},
};
const attn_library_info library = {ATTN_ABI_VERSION, sizeof(library), "gpu", "attn", "{}", 3, 0,
                                   functions};

const attn_library_info *query() { return &library; }

template <typename F> F find(const char *name) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  return driver ? reinterpret_cast<F>(dlsym(driver, name)) : nullptr;
}

class GpuTest : public testing::Test {
protected:
  void SetUp() override {
    if (!find<void *>("cuInit"))
      GTEST_SKIP() << "needs the driver of test/ptx";
    for (const char *name : {"ATTN_FAKE_FAIL", "ATTN_FAKE_CAPABILITY"})
      unsetenv(name);
    taskCount = 3;
    log = testing::TempDir() + "gpu-test-" + std::to_string(getpid());
    setenv("ATTN_FAKE_LOG", log.c_str(), 1);
    int (*create)(void **, unsigned, int) = find<int (*)(void **, unsigned, int)>("cuCtxCreate_v2");
    ASSERT_EQ(create(&context, 0, 0), 0);
    attn_library *opened = nullptr;
    ASSERT_EQ(attn_library_from_query(query, &opened), ATTN_OK);
    gpuLibrary.reset(opened);
    resetLog();
  }
  void TearDown() override {
    unsetenv("ATTN_FAKE_LOG");
    unsetenv("ATTN_FAKE_FAIL");
    unlink(log.c_str());
  }

  attn_status create(Function &function, const char *level = nullptr,
                     DLDevice device = {kDLCUDA, 0}, const char *name = "scale") {
    attn_function *created = nullptr;
    attn_function_options options = {sizeof options, level, device};
    attn_status status = attn_function_create(gpuLibrary.get(), name, &options, &created);
    function.reset(created);
    return status;
  }

  Weights pack(const attn_function *function) {
    Tensor<float> tensor({4}, 1);
    const char *names[] = {"w"};
    const DLTensor *tensors[] = {&tensor.dl};
    attn_weights *weights = nullptr;
    EXPECT_EQ(attn_weights_create(function, names, tensors, 1, &weights), ATTN_OK);
    return Weights(weights);
  }

  attn_status call(attn_function *function, attn_weights *weights,
                   attn_call_options options = attn_call_options()) {
    options.size = sizeof options;
    const DLTensor *in = &input.dl, *out = &output.dl;
    return attn_call(function, weights, &in, 1, &out, 1, &options);
  }

  /// Returns the calls of the driver since the log was last reset: their names, or with `withDetails` whole lines.
  /// Resets the log.
  std::vector<std::string> calls(bool withDetails = false) {
    std::ifstream file(log);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
      lines.push_back(withDetails ? line : line.substr(0, line.find(' ')));
    resetLog();
    return lines;
  }
  void resetLog() { std::ofstream(log, std::ios::trunc); }
  void fail(const char *plan) { setenv("ATTN_FAKE_FAIL", plan, 1); }
  void expectError(attn_status status, attn_status expected, const char *message) {
    EXPECT_EQ(status, expected);
    EXPECT_STREQ(attn_last_error(), message);
  }

  /// A tensor of the device. The runtime never reads its memory.
  struct OnDevice : Tensor<float> {
    alignas(16) float memory[8] = {};
    explicit OnDevice(int number) : Tensor<float>({4}) {
      dl.device = {kDLCUDA, number};
      dl.data = memory;
    }
  };

  std::string log;
  void *context = nullptr;
  Library gpuLibrary;
  OnDevice input{0}, output{0};
};

using Names = std::vector<std::string>;

TEST(GpuTestWithout, NoDriver) {
  if (find<void *>("cuInit"))
    GTEST_SKIP() << "needs a machine without a driver";
  attn_library *opened = nullptr;
  ASSERT_EQ(attn_library_from_query(query, &opened), ATTN_OK);
  Library holder(opened);
  attn_function *created = nullptr;
  attn_function_options options = {sizeof options, nullptr, {kDLCUDA, 0}};
  EXPECT_EQ(attn_function_create(opened, "scale", &options, &created), ATTN_ERROR_DRIVER);
  EXPECT_EQ(std::string(attn_last_error()).find("scale: expected a GPU driver, got: "), 0u);
  options.device = {};
  EXPECT_EQ(attn_function_create(opened, "scale", &options, &created), ATTN_OK); // on the CPU
  EXPECT_STREQ(attn_function_level(created), "any");
  attn_function_release(created);
}

TEST_F(GpuTest, LoadsOnceAndLaunchesOnTheStream) {
  Function function;
  ASSERT_EQ(create(function), ATTN_OK) << attn_last_error();
  EXPECT_STREQ(attn_function_level(function.get()), "sm_80");
  Weights weights = pack(function.get());
  calls();
  attn_call_options options = {};
  options.stream = reinterpret_cast<void *>(7);
  ASSERT_EQ(call(function.get(), weights.get(), options), ATTN_OK) << attn_last_error();
  EXPECT_EQ(calls(), (Names{"cuCtxGetCurrent", "cuDeviceGetAttribute", "cuModuleLoadData",
                            "cuModuleGetFunction", "cuFuncSetAttribute", "cuMemAlloc_v2",
                            "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuMemAllocAsync",
                            "cuLaunchKernel", "cuMemFreeAsync"}));
  ASSERT_EQ(call(function.get(), weights.get(), options), ATTN_OK);
  EXPECT_EQ(calls(/*withDetails=*/true),
            (Names{"cuCtxGetCurrent", "cuMemAllocAsync 128 stream 7",
                   "cuLaunchKernel scale_0 grid 3 block 64 shared 2048 stream 7",
                   "cuMemFreeAsync stream 7"}));
  alignas(64) char workspace[128];
  options.workspace = workspace;
  options.workspace_bytes = sizeof workspace;
  ASSERT_EQ(call(function.get(), weights.get(), options), ATTN_OK);
  EXPECT_EQ(calls(), (Names{"cuCtxGetCurrent", "cuLaunchKernel"}));
  weights.reset();
  EXPECT_EQ(calls(), (Names{"cuCtxPushCurrent_v2", "cuMemFree_v2"}));
  function.reset();
  gpuLibrary.reset();
  EXPECT_EQ(calls(), (Names{"cuCtxPushCurrent_v2", "cuModuleUnload"}));
}

TEST_F(GpuTest, TwoContexts) {
  Function function;
  ASSERT_EQ(create(function), ATTN_OK);
  Weights weights = pack(function.get());
  ASSERT_EQ(call(function.get(), weights.get()), ATTN_OK);
  auto createContext = find<int (*)(void **, unsigned, int)>("cuCtxCreate_v2");
  auto destroyContext = find<int (*)(void *)>("cuCtxDestroy_v2");
  auto setCurrent = find<int (*)(void *)>("cuCtxSetCurrent");
  void *other = nullptr;
  ASSERT_EQ(createContext(&other, 0, 0), 0);
  calls();
  ASSERT_EQ(call(function.get(), weights.get()), ATTN_OK);
  Names names = calls();
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuModuleLoadData"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuMemcpyHtoDAsync_v2"), 1);
  ASSERT_EQ(setCurrent(context), 0);
  calls();
  ASSERT_EQ(call(function.get(), weights.get()), ATTN_OK);
  names = calls();
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuModuleLoadData"), 0);
  // The driver frees the modules and the memory of a context that is destroyed. The runtime must not free them again: a
  // new context may have the same address.
  ASSERT_EQ(destroyContext(other), 0);
  void *next = nullptr;
  ASSERT_EQ(createContext(&next, 0, 0), 0);
  ASSERT_EQ(next, other);
  calls();
  weights.reset();
  function.reset();
  gpuLibrary.reset();
  names = calls();
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuMemFree_v2"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuModuleUnload"), 1);
}

TEST_F(GpuTest, TensorsElsewhere) {
  Function function;
  ASSERT_EQ(create(function), ATTN_OK);
  Weights weights = pack(function.get());
  input.dl.device = {kDLCPU, 0};
  expectError(call(function.get(), weights.get()), ATTN_ERROR_DEVICE,
              "scale: argument 'x' expected device type 2 (CUDA), got 1");
  input.dl.device = {kDLCUDA, 1};
  expectError(call(function.get(), weights.get()), ATTN_ERROR_DEVICE,
              "scale: argument 'x' expected device 0, got 1");
  input.dl.device = {kDLCUDA, 0};
  input.dl.byte_offset = 4;
  EXPECT_EQ(call(function.get(), weights.get()), ATTN_ERROR_ALIGNMENT);
  Function onCpu;
  ASSERT_EQ(create(onCpu, nullptr, {}), ATTN_OK);
  input.dl.byte_offset = 0;
  expectError(call(onCpu.get(), weights.get()), ATTN_ERROR_DEVICE,
              "scale: argument 'x' expected device type 1 (CPU), got 2");
}

TEST_F(GpuTest, Levels) {
  Function function;
  setenv("ATTN_FAKE_CAPABILITY", "90", 1);
  ASSERT_EQ(create(function), ATTN_OK);
  EXPECT_STREQ(attn_function_level(function.get()), "sm_90a");
  setenv("ATTN_FAKE_CAPABILITY", "120", 1); // code for sm_90a, with a letter, runs on no later GPU
  ASSERT_EQ(create(function), ATTN_OK);
  EXPECT_STREQ(attn_function_level(function.get()), "sm_80");
  setenv("ATTN_FAKE_CAPABILITY", "75", 1);
  expectError(create(function), ATTN_ERROR_LEVEL,
              "scale: expected a GPU that runs one of sm_90a, sm_80, any, got one without sm_80");
  expectError(create(function, "sm_80", {}), ATTN_ERROR_LEVEL,
              "scale: level expected a level that this GPU runs, got 'sm_80', which needs sm_80");
  expectError(create(function, "any"), ATTN_ERROR_LEVEL,
              "scale: level expected a level for a GPU, got 'any'");
  expectError(create(function, nullptr, {kDLCUDA, 0}, "on_cpu"), ATTN_ERROR_LEVEL,
              "on_cpu: expected a level for a GPU among any, got none");
  unsetenv("ATTN_FAKE_CAPABILITY");
  EXPECT_EQ(create(function, "sm_80", {}), ATTN_OK);
  expectError(create(function, nullptr, {kDLCUDA, 5}), ATTN_ERROR_DRIVER,
              "scale: expected the driver to describe the device, got CUDA_ERROR_INVALID_DEVICE");
}

TEST_F(GpuTest, ErrorsOfTheDriver) {
  Function function;
  ASSERT_EQ(create(function), ATTN_OK);
  Weights weights = pack(function.get());
  static const std::pair<const char *, const char *> kErrors[] = {
      {"cuCtxGetCurrent:201", "describe the current context, got CUDA_ERROR_INVALID_CONTEXT"},
      {"cuModuleLoadData:2", "load the kernels, got CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuModuleGetFunction:1", "find a kernel, got CUDA_ERROR_INVALID_VALUE"},
      {"cuFuncSetAttribute:1", "give a kernel its shared memory, got CUDA_ERROR_INVALID_VALUE"},
      {"cuMemAlloc_v2:2", "copy the weights to the device, got CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuMemcpyHtoDAsync_v2:1", "copy the weights to the device, got CUDA_ERROR_INVALID_VALUE"},
      {"cuStreamSynchronize:700", "copy the weights to the device, got CUDA_ERROR_ILLEGAL_ADDRESS"},
      {"cuMemAllocAsync:2", "allocate the workspace, got CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuLaunchKernel:700", "launch a kernel, got CUDA_ERROR_ILLEGAL_ADDRESS"},
      {"cuMemFreeAsync:12345", "free the workspace, got an error without a name"},
  };
  for (auto [plan, message] : kErrors) {
    fail(plan);
    EXPECT_EQ(call(function.get(), weights.get()), ATTN_ERROR_DRIVER);
    EXPECT_EQ(attn_last_error(), std::string("scale: expected the driver to ") + message);
  }
  unsetenv("ATTN_FAKE_FAIL");
  EXPECT_EQ(call(function.get(), weights.get()), ATTN_OK) << attn_last_error();
}

TEST_F(GpuTest, ContextOfAnotherDevice) {
  Function function;
  ASSERT_EQ(create(function, nullptr, {kDLCUDA, 1}), ATTN_OK);
  Weights weights = pack(function.get());
  input.dl.device = output.dl.device = {kDLCUDA, 1};
  expectError(call(function.get(), weights.get()), ATTN_ERROR_DEVICE,
              "scale: expected a current context of device 1, got 0");
}

TEST_F(GpuTest, NoContext) {
  Function function;
  ASSERT_EQ(create(function), ATTN_OK);
  Weights weights = pack(function.get());
  ASSERT_EQ(find<int (*)(void *)>("cuCtxSetCurrent")(nullptr), 0);
  expectError(call(function.get(), weights.get()), ATTN_ERROR_DEVICE,
              "scale: expected a current CUDA context on the calling thread, got none");
}

TEST_F(GpuTest, TasksAndOptions) {
  Function function;
  ASSERT_EQ(create(function), ATTN_OK);
  Weights weights = pack(function.get());
  taskCount = int64_t(1) << 31;
  expectError(call(function.get(), weights.get()), ATTN_ERROR_SHAPE,
              "scale: expected at most 2147483647 tasks, got 2147483648");
  taskCount = 0;
  calls();
  EXPECT_EQ(call(function.get(), weights.get()), ATTN_OK);
  Names names = calls();
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuLaunchKernel"), 0);
  attn_call_options options = {};
  options.workers = 2;
  expectError(call(function.get(), weights.get(), options), ATTN_ERROR_USAGE,
              "scale: expected no parallel_for, pool or workers for a GPU, got at least one");
  Function onCpu;
  ASSERT_EQ(create(onCpu, "any", {}), ATTN_OK);
  options = {};
  for (void *attn_call_options::*member :
       {&attn_call_options::stream, &attn_call_options::range_errors,
        &attn_call_options::tile_counts}) {
    options = {};
    options.*member = &options;
    expectError(
        call(onCpu.get(), weights.get(), options), ATTN_ERROR_USAGE,
        "scale: expected null stream, range_errors and tile_counts for a CPU, got one that is not "
        "null");
  }
}

/// A call of the function "box".
struct BoxCall {
  alignas(64) char memory[4096], lengthsMemory[64];
  int64_t shape[2] = {20, 64}, three = 3;
  DLTensor boxes = {memory, {kDLCUDA, 0}, 2, {kDLFloat, 16, 1}, shape, nullptr, 0};
  DLTensor lengths = {lengthsMemory, {kDLCUDA, 0}, 1, {kDLInt, 32, 1}, &three, nullptr, 0};

  attn_status run(attn_function *function, void *rangeErrors = nullptr) {
    attn_call_options options = {};
    options.size = sizeof options;
    options.range_errors = rangeErrors;
    const DLTensor *inputs[] = {&boxes, &lengths};
    return attn_call(function, nullptr, inputs, 2, nullptr, 0, &options);
  }
};

TEST_F(GpuTest, BlocksThatRunSeveralTasks) {
  setenv("ATTN_FAKE_CAPABILITY", "90", 1);
  setenv("ATTN_FAKE_MULTIPROCESSORS", "3", 1);
  Function function;
  ASSERT_EQ(create(function, nullptr, {kDLCUDA, 0}, "box"), ATTN_OK) << attn_last_error();
  BoxCall box;
  for (auto [tasks, blocks] : {std::pair(2, 2), std::pair(3, 3), std::pair(7, 3)}) {
    tasksOfBox = tasks;
    calls();
    ASSERT_EQ(box.run(function.get()), ATTN_OK) << attn_last_error();
    EXPECT_EQ(calls(/*withDetails=*/true).back(), "cuLaunchKernel box_0 grid " +
                                                      std::to_string(blocks) +
                                                      " block 128 shared 2048 stream 0");
  }
  tasksOfBox = 1;
  unsetenv("ATTN_FAKE_MULTIPROCESSORS");
}

TEST_F(GpuTest, TensorMaps) {
  setenv("ATTN_FAKE_CAPABILITY", "90", 1);
  Function function;
  ASSERT_EQ(create(function, nullptr, {kDLCUDA, 0}, "box"), ATTN_OK) << attn_last_error();
  BoxCall box;
  fail("cuTensorMapEncodeTiled:1");
  expectError(box.run(function.get()), ATTN_ERROR_DRIVER,
              "box: expected the driver to describe a tensor, got CUDA_ERROR_INVALID_VALUE");
  unsetenv("ATTN_FAKE_FAIL");
  calls();
  ASSERT_EQ(box.run(function.get()), ATTN_OK) << attn_last_error();
  EXPECT_EQ(calls(), (Names{"cuCtxGetCurrent", "cuTensorMapEncodeTiled", "cuLaunchKernel"}));
  ASSERT_EQ(box.run(function.get()), ATTN_OK); // the runtime keeps the tensor map
  EXPECT_EQ(calls(), (Names{"cuCtxGetCurrent", "cuLaunchKernel"}));
  box.shape[0] = 10;
  ASSERT_EQ(box.run(function.get()), ATTN_OK);
  EXPECT_EQ(calls(), (Names{"cuCtxGetCurrent", "cuTensorMapEncodeTiled", "cuLaunchKernel"}));
  box.boxes.data = box.memory + 64;
  ASSERT_EQ(box.run(function.get()), ATTN_OK);
  EXPECT_EQ(calls(), (Names{"cuCtxGetCurrent", "cuTensorMapEncodeTiled", "cuLaunchKernel"}));
  box.shape[0] = 0; // an empty tensor needs no map; the driver would refuse to make one
  ASSERT_EQ(box.run(function.get()), ATTN_OK);
  EXPECT_EQ(calls(), (Names{"cuCtxGetCurrent", "cuLaunchKernel"}));
}

TEST_F(GpuTest, RangeErrors) {
  setenv("ATTN_FAKE_CAPABILITY", "90", 1);
  Function function;
  ASSERT_EQ(create(function, nullptr, {kDLCUDA, 0}, "box"), ATTN_OK);
  BoxCall box;
  uint32_t word = 0;
  ASSERT_EQ(box.run(function.get()), ATTN_OK);
  calls();
  fail("cuModuleLoadData:2");
  expectError(box.run(function.get(), &word), ATTN_ERROR_DRIVER,
              "box: expected the driver to load the check of ranges, got CUDA_ERROR_OUT_OF_MEMORY");
  fail("cuModuleGetFunction:1");
  expectError(box.run(function.get(), &word), ATTN_ERROR_DRIVER,
              "box: expected the driver to find the check of ranges, got CUDA_ERROR_INVALID_VALUE");
  unsetenv("ATTN_FAKE_FAIL");
  calls();
  ASSERT_EQ(box.run(function.get(), &word), ATTN_OK) << attn_last_error();
  EXPECT_EQ(calls(/*withDetails=*/true),
            (Names{"cuCtxGetCurrent", "cuModuleLoadData", "cuModuleGetFunction attn_check",
                   "cuLaunchKernel attn_check grid 1 block 256 shared 0 stream 0",
                   "cuLaunchKernel box_0 grid 1 block 128 shared 2048 stream 0"}));
  ASSERT_EQ(box.run(function.get(), &word), ATTN_OK);
  Names names = calls();
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuModuleLoadData"), 0);
  function.reset();
  gpuLibrary.reset();
  names = calls();
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuModuleUnload"), 2);
}

} // namespace
