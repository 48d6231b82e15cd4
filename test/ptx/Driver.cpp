//===- Driver.cpp - libcuda.so.1 for machines without a GPU ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// This library has the functions of the CUDA driver that attn calls. Kernels run in the emulator of this folder, a
// separate process that shares the memory of the emulated device. Programs find this library through LD_LIBRARY_PATH.
// Environment variables:
//   ATTN_FAKE_EMULATOR    the command that starts the emulator; without it, kernels do nothing
//   ATTN_FAKE_LOG         a file that gets a line for each call
//   ATTN_FAKE_FAIL        "cuMemAlloc_v2:2:3": call 3 of cuMemAlloc_v2 fails with error 2; without ":3", all calls fail
//   ATTN_FAKE_CAPABILITY  the compute capability, 80 by default
//
// Although the addresses of device memory are valid in this process, only the emulator and the functions that copy
// access them. Before and after each allocation there are bytes that no kernel may access. The bytes of new memory are
// 0xff, so its floats are NaN.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

enum Error {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  InvalidDevice = 101,
  InvalidContext = 201,
  IllegalAddress = 700
};

struct Context {
  unsigned long long id;
  bool isAlive = true;
};

struct Module {
  unsigned number;
  std::string image;
};

struct Function {
  const Module *module;
  std::string name;
  int sharedBytes = 48 * 1024;
};

/// A process that runs kernels. It reads requests from a pipe and answers each with a line.
class Emulator {
public:
  bool start(int memory, uintptr_t base, size_t bytes) {
    const char *command = getenv("ATTN_FAKE_EMULATOR");
    if (!command)
      return false;
    int in[2], out[2];
    if (pipe(in) || pipe(out))
      return false;
    child = fork();
    if (child == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      close(in[1]);
      close(out[0]);
      std::string text = std::string("exec ") + command + " " + std::to_string(memory) + " " +
                         std::to_string(base) + " " + std::to_string(bytes);
      execl("/bin/sh", "sh", "-c", text.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    requests = fdopen(in[1], "w");
    answers = fdopen(out[0], "r");
    return true;
  }

  ~Emulator() {
    if (!requests)
      return;
    fclose(requests);
    fclose(answers);
    waitpid(child, nullptr, 0);
  }

  bool isRunning() const { return requests; }

  /// Sends a line, then bytes. Returns the answer.
  std::string ask(const std::string &line, const void *data, size_t bytes) {
    fprintf(requests, "%s\n", line.c_str());
    fwrite(data, 1, bytes, requests);
    fflush(requests);
    char text[65536];
    return fgets(text, sizeof text, answers) ? text : "the emulator ended\n";
  }

private:
  pid_t child = 0;
  FILE *requests = nullptr, *answers = nullptr;
};

struct Device {
  static constexpr size_t kBytes = size_t(1) << 30, kGap = 512, kAlignment = 256;
  static constexpr size_t kConstants =
      1 << 20; ///< bytes at the end of memory, into which the emulator puts constant arrays

  std::mutex mutex;
  char *memory = nullptr;
  size_t used = 0;
  std::map<uintptr_t, size_t> allocations;
  std::map<void *, Context> contexts;
  unsigned numModules = 0;
  Emulator emulator;
  std::map<std::string, int> numCalls;

  Device() {
    int file = memfd_create("device", 0);
    if (file < 0 || ftruncate(file, kBytes))
      abort();
    memory =
        static_cast<char *>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    emulator.start(file, uintptr_t(memory), kBytes);
  }
};

/// Returns the only device. The first call of a driver function creates it, so static objects that the program creates
/// later are destroyed before it.
Device &device() {
  static Device only;
  return only;
}

thread_local void *current;

/// Counts and logs a call of `name`, and returns the error that the call should return.
int begin(const char *name, const std::string &details = "") {
  std::lock_guard<std::mutex> lock(device().mutex);
  int number = ++device().numCalls[name];
  int error = Success;
  if (const char *plan = getenv("ATTN_FAKE_FAIL")) {
    std::string text = plan;
    size_t first = text.find(':'), second = text.find(':', first + 1);
    int call = second == std::string::npos ? 0 : atoi(text.c_str() + second + 1);
    if (text.substr(0, first) == name && (call == 0 || call == number))
      error = atoi(text.c_str() + first + 1);
  }
  if (const char *path = getenv("ATTN_FAKE_LOG"))
    if (FILE *file = fopen(path, "a")) {
      fprintf(file, "%s%s%s%s\n", name, details.empty() ? "" : " ", details.c_str(),
              error ? (" fails with " + std::to_string(error)).c_str() : "");
      fclose(file);
    }
  return error;
}

int allocate(uint64_t *address, size_t bytes) {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  if (bytes == 0)
    return InvalidValue;
  size_t at =
      (d.used + Device::kGap + Device::kAlignment - 1) / Device::kAlignment * Device::kAlignment;
  if (bytes > Device::kBytes || at + bytes + Device::kGap > Device::kBytes - Device::kConstants)
    return OutOfMemory;
  d.used = at + bytes;
  *address = uintptr_t(d.memory + at);
  d.allocations[*address] = bytes;
  memset(d.memory + at, 0xff, bytes);
  return Success;
}

int release(uint64_t address) {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  if (!d.allocations.erase(address))
    return InvalidValue;
  if (d.allocations.empty())
    d.used = 0;
  return Success;
}

bool isInside(uint64_t address, size_t bytes) {
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto after = d.allocations.upper_bound(address);
  if (after == d.allocations.begin())
    return false;
  auto [start, size] = *std::prev(after);
  return address + bytes <= start + size;
}

} // namespace

#define API(name, ...) extern "C" int name(__VA_ARGS__)
#define BEGIN(...)                                                                                 \
  if (int error = begin(__func__, ##__VA_ARGS__))                                                  \
    return error;

API(cuInit, unsigned) {
  BEGIN()
  return Success;
}

API(cuGetErrorName, int error, const char **name) {
  static const std::map<int, const char *> names = {{Success, "CUDA_SUCCESS"},
                                                    {InvalidValue, "CUDA_ERROR_INVALID_VALUE"},
                                                    {OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                    {InvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
                                                    {InvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
                                                    {IllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  auto found = names.find(error);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? InvalidValue : Success;
}

API(cuDeviceGet, int *number, int ordinal) {
  BEGIN()
  *number = ordinal;
  return ordinal == 0 || ordinal == 1 ? Success : InvalidDevice;
}

API(cuDeviceGetName, char *name, int length, int) {
  snprintf(name, length, "emulated GPU");
  return Success;
}

API(cuDeviceGetAttribute, int *value, int attribute, int) {
  BEGIN()
  const char *text = getenv("ATTN_FAKE_CAPABILITY");
  int capability = text ? atoi(text) : 80;
  const char *multiprocessors = getenv("ATTN_FAKE_MULTIPROCESSORS");
  const std::map<int, int> values = {{16, multiprocessors ? atoi(multiprocessors) : 1},
                                     {75, capability / 10},
                                     {76, capability % 10}};
  auto found = values.find(attribute);
  if (found == values.end())
    return InvalidValue;
  *value = found->second;
  return Success;
}

API(cuCtxCreate_v2, void **context, unsigned, int) {
  BEGIN()
  std::lock_guard<std::mutex> lock(device().mutex);
  static unsigned long long numCreated;
  // As in the real driver, a new context may have the address of a destroyed context.
  *context = nullptr;
  for (auto &[address, other] : device().contexts)
    if (!other.isAlive)
      *context = address;
  if (!*context)
    *context = new char;
  device().contexts[*context] = {1000 + ++numCreated};
  current = *context;
  return Success;
}

API(cuCtxDestroy_v2, void *context) {
  BEGIN()
  std::lock_guard<std::mutex> lock(device().mutex);
  device().contexts[context].isAlive = false;
  current = current == context ? nullptr : current;
  return Success;
}

API(cuDevicePrimaryCtxRetain, void **context, int) {
  BEGIN()
  static char primary;
  std::lock_guard<std::mutex> lock(device().mutex);
  *context = &primary;
  if (!device().contexts.count(&primary))
    device().contexts[&primary] = {device().contexts.size() + 1};
  return Success;
}

API(cuDevicePrimaryCtxRelease_v2, int) {
  BEGIN()
  return Success;
}

API(cuCtxSetCurrent, void *context) {
  BEGIN()
  current = context;
  return Success;
}

API(cuCtxGetCurrent, void **context) {
  BEGIN()
  *context = current;
  return Success;
}

API(cuCtxGetDevice, int *number) {
  *number = 0;
  return current ? Success : InvalidContext;
}

API(cuCtxGetId, void *context, unsigned long long *id) {
  std::lock_guard<std::mutex> lock(device().mutex);
  auto found = device().contexts.find(context);
  if (found == device().contexts.end() || !found->second.isAlive)
    return InvalidContext;
  *id = found->second.id;
  return Success;
}

API(cuCtxPushCurrent_v2, void *context) {
  BEGIN()
  std::lock_guard<std::mutex> lock(device().mutex);
  return device().contexts[context].isAlive ? Success : InvalidContext;
}

API(cuCtxPopCurrent_v2, void **context) {
  *context = current;
  return Success;
}

API(cuCtxSynchronize) {
  BEGIN()
  return Success;
}

API(cuModuleLoadData, void **module, const void *image) {
  BEGIN()
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  auto *loaded = new Module{d.numModules++, static_cast<const char *>(image)};
  *module = loaded;
  if (d.emulator.isRunning()) {
    std::string answer = d.emulator.ask("module " + std::to_string(loaded->number) + " " +
                                            std::to_string(loaded->image.size()),
                                        loaded->image.data(), loaded->image.size());
    if (answer != "ok\n") {
      fprintf(stderr, "emulator: %s", answer.c_str());
      return InvalidValue;
    }
  }
  return Success;
}

API(cuModuleUnload, void *module) {
  BEGIN()
  delete static_cast<Module *>(module);
  return Success;
}

API(cuModuleGetFunction, void **function, void *module, const char *name) {
  BEGIN(name)
  auto *loaded = static_cast<Module *>(module);
  if (loaded->image.find(std::string(".entry ") + name + "(") == std::string::npos)
    return InvalidValue;
  *function = new Function{loaded, name};
  return Success;
}

API(cuFuncSetAttribute, void *function, int attribute, int value) {
  BEGIN(std::to_string(attribute) + " " + std::to_string(value))
  static_cast<Function *>(function)->sharedBytes = value;
  return Success;
}

API(cuLaunchKernel, void *function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
    unsigned blockY, unsigned blockZ, unsigned sharedBytes, void *stream, void **arguments,
    void **) {
  auto *kernel = static_cast<Function *>(function);
  BEGIN(kernel->name + " grid " + std::to_string(gridX) + " block " + std::to_string(blockX) +
        " shared " + std::to_string(sharedBytes) + " stream " + std::to_string(uintptr_t(stream)))
  if (gridX == 0 || gridY != 1 || gridZ != 1 || blockX == 0 || blockY != 1 || blockZ != 1 ||
      int(sharedBytes) > kernel->sharedBytes)
    return InvalidValue;
  Device &d = device();
  std::lock_guard<std::mutex> lock(d.mutex);
  if (!d.emulator.isRunning())
    return Success;
  // The sizes of the parameters are in the PTX: ".param .align 8 .b8 name_param_0[392]".
  const std::string &image = kernel->module->image;
  size_t begin = image.find(".entry " + kernel->name + "("), end = image.find(')', begin);
  std::string sizes, data;
  for (size_t at = image.find("_param_", begin); at < end; at = image.find("_param_", at + 1)) {
    size_t bytes = atol(image.c_str() + image.find('[', at) + 1);
    sizes += (sizes.empty() ? "" : ",") + std::to_string(bytes);
    data.append(static_cast<const char *>(*arguments++), bytes);
  }
  std::string line = "launch " + std::to_string(kernel->module->number) + " " + kernel->name + " " +
                     std::to_string(gridX) + " " + std::to_string(blockX) + " " +
                     std::to_string(sharedBytes) + " " + sizes;
  for (auto [address, size] : d.allocations)
    line += " " + std::to_string(address) + ":" + std::to_string(size);
  std::string answer = d.emulator.ask(line, data.data(), data.size());
  if (answer == "ok\n")
    return Success;
  fprintf(stderr, "emulator: %s", answer.c_str());
  return IllegalAddress;
}

/// Writes a tensor map in the format that asynchronous.py reads. Rejects arguments that the real driver rejects.
API(cuTensorMapEncodeTiled, uint64_t *map, int type, unsigned rank, uint64_t address,
    const uint64_t *sizes, const uint64_t *strides, const unsigned *box, const unsigned *steps,
    int interleave, int swizzle, int, int) {
  BEGIN()
  const unsigned elementBytes = type == 0 ? 1 : type == 1 ? 2 : 4;
  constexpr int k128Bytes = 3;
  if (type > 2 || rank < 1 || rank > 5 || address % 16 || uintptr_t(map) % 64 || interleave ||
      swizzle != k128Bytes || box[0] * elementBytes > 128)
    return InvalidValue;
  memset(map, 0, 128);
  map[0] = 0x6174746e;
  map[1] = address;
  map[2] = rank;
  map[3] = elementBytes;
  for (unsigned i = 0; i < rank; ++i) {
    if (sizes[i] == 0 || sizes[i] > uint64_t(1) << 32 || box[i] == 0 || box[i] > 256 ||
        steps[i] != 1 || (i > 0 && (strides[i - 1] % 16 || strides[i - 1] >> 40)))
      return InvalidValue;
    map[4 + i] = (sizes[i] & 0xffffffff) | uint64_t(box[i]) << 32;
    if (i > 0)
      map[9 + i - 1] = strides[i - 1];
  }
  return Success;
}

API(cuMemAlloc_v2, uint64_t *address, size_t bytes) {
  BEGIN(std::to_string(bytes))
  return allocate(address, bytes);
}

API(cuMemFree_v2, uint64_t address) {
  BEGIN()
  return release(address);
}

API(cuMemAllocAsync, uint64_t *address, size_t bytes, void *stream) {
  BEGIN(std::to_string(bytes) + " stream " + std::to_string(uintptr_t(stream)))
  return allocate(address, bytes);
}

API(cuMemFreeAsync, uint64_t address, void *stream) {
  BEGIN("stream " + std::to_string(uintptr_t(stream)))
  return release(address);
}

API(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes) {
  BEGIN()
  if (!isInside(to, bytes))
    return InvalidValue;
  memcpy(reinterpret_cast<void *>(to), from, bytes);
  return Success;
}

API(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, void *stream) {
  BEGIN("stream " + std::to_string(uintptr_t(stream)))
  if (!isInside(to, bytes))
    return InvalidValue;
  memcpy(reinterpret_cast<void *>(to), from, bytes);
  return Success;
}

API(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes) {
  BEGIN()
  if (!isInside(from, bytes))
    return InvalidValue;
  memcpy(to, reinterpret_cast<void *>(from), bytes);
  return Success;
}

API(cuEventCreate, void **event, unsigned) {
  *event = new timespec;
  return Success;
}

API(cuEventDestroy_v2, void *event) {
  delete static_cast<timespec *>(event);
  return Success;
}

API(cuEventRecord, void *event, void *) {
  clock_gettime(CLOCK_MONOTONIC, static_cast<timespec *>(event));
  return Success;
}

API(cuEventSynchronize, void *) { return Success; }

API(cuEventElapsedTime, float *milliseconds, void *first, void *second) {
  auto *from = static_cast<timespec *>(first), *to = static_cast<timespec *>(second);
  *milliseconds =
      float(1e3 * double(to->tv_sec - from->tv_sec) + 1e-6 * double(to->tv_nsec - from->tv_nsec));
  return Success;
}

API(cuStreamCreate, void **stream, unsigned) {
  BEGIN()
  *stream = new char;
  return Success;
}

API(cuStreamSynchronize, void *) {
  BEGIN()
  return Success;
}
