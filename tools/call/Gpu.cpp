//===- Gpu.cpp - memory and time of an NVIDIA GPU -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "tools/call/Gpu.h"

#include <algorithm>
#include <dlfcn.h>

using namespace attn;

// The functions of the driver, by the names of their symbols.
#define DRIVER_FUNCTIONS(X)                                                                        \
  X(init, "cuInit", (unsigned))                                                                    \
  X(errorName, "cuGetErrorName", (int, const char **))                                             \
  X(deviceGet, "cuDeviceGet", (int *, int))                                                        \
  X(deviceName, "cuDeviceGetName", (char *, int, int))                                             \
  X(attribute, "cuDeviceGetAttribute", (int *, int, int))                                          \
  X(retain, "cuDevicePrimaryCtxRetain", (void **, int))                                            \
  X(releaseContext, "cuDevicePrimaryCtxRelease_v2", (int))                                         \
  X(setCurrent, "cuCtxSetCurrent", (void *))                                                       \
  X(synchronize, "cuCtxSynchronize", ())                                                           \
  X(load, "cuModuleLoadData", (void **, const void *))                                             \
  X(unload, "cuModuleUnload", (void *))                                                            \
  X(getFunction, "cuModuleGetFunction", (void **, void *, const char *))                           \
  X(launch, "cuLaunchKernel",                                                                      \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,         \
     void **, void **))                                                                            \
  X(allocate, "cuMemAlloc_v2", (uint64_t *, size_t))                                               \
  X(release, "cuMemFree_v2", (uint64_t))                                                           \
  X(copyIn, "cuMemcpyHtoD_v2", (uint64_t, const void *, size_t))                                   \
  X(copyOut, "cuMemcpyDtoH_v2", (void *, uint64_t, size_t))                                        \
  X(createEvent, "cuEventCreate", (void **, unsigned))                                             \
  X(destroyEvent, "cuEventDestroy_v2", (void *))                                                   \
  X(record, "cuEventRecord", (void *, void *))                                                     \
  X(waitForEvent, "cuEventSynchronize", (void *))                                                  \
  X(elapsed, "cuEventElapsedTime", (float *, void *, void *))

namespace {
struct Driver {
#define DECLARE(member, symbol, parameters) int(*member) parameters = nullptr;
  DRIVER_FUNCTIONS(DECLARE)
#undef DECLARE

  Failure open() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return refuse("expected a GPU driver, got: %s", dlerror());
    const char *missing = nullptr;
    auto find = [&](const char *symbol) {
      void *found = dlsym(library, symbol);
      missing = found ? missing : symbol;
      return found;
    };
#define FIND(member, symbol, parameters) *reinterpret_cast<void **>(&member) = find(symbol);
    DRIVER_FUNCTIONS(FIND)
#undef FIND
    if (missing)
      return refuse("expected a GPU driver with '%s', got one without", missing);
    return {};
  }

  Failure check(const char *action, int error) const {
    if (!error)
      return {};
    const char *name = nullptr;
    if (errorName(error, &name) || !name)
      name = "an error without a name";
    return refuse("expected the GPU driver to %s, got %s", action, name);
  }
};
} // namespace

static Driver cu;

Failure Gpu::open(int number) {
  if (Failure failure = cu.open())
    return failure;
  int error = cu.init(0);
  if (!error)
    error = cu.deviceGet(&device, number);
  char text[256] = "";
  if (!error)
    error = cu.deviceName(text, sizeof text, device);
  name = text;
  // The driver's numbers for the attributes.
  static constexpr int kMultiprocessorCount = 16, kCapabilityMajor = 75, kCapabilityMinor = 76;
  int major = 0, minor = 0;
  if (!error)
    error = cu.attribute(&numMultiprocessors, kMultiprocessorCount, device);
  if (!error)
    error = cu.attribute(&major, kCapabilityMajor, device);
  if (!error)
    error = cu.attribute(&minor, kCapabilityMinor, device);
  capability = 10 * major + minor;
  if (!error)
    error = cu.retain(&context, device);
  if (!error)
    error = cu.setCurrent(context);
  return cu.check("open the device", error);
}

Gpu::~Gpu() {
  if (context)
    cu.releaseContext(device);
}

Failure Gpu::synchronize() const { return cu.check("run the kernels", cu.synchronize()); }

Failure Gpu::copyIn(uint64_t to, const void *from, size_t bytes) const {
  return bytes ? cu.check("copy to the device", cu.copyIn(to, from, bytes)) : Failure();
}

Failure Gpu::copyOut(void *to, uint64_t from, size_t bytes) const {
  return bytes ? cu.check("copy from the device", cu.copyOut(to, from, bytes)) : Failure();
}

GpuKernel::~GpuKernel() {
  if (module)
    cu.unload(module);
}

Failure GpuKernel::load(const char *ptx, const char *name) {
  int error = cu.load(&module, ptx);
  if (!error)
    error = cu.getFunction(&function, module, name);
  return cu.check("load a kernel", error);
}

Failure GpuKernel::launch(unsigned blocks, unsigned threads, unsigned sharedBytes,
                          const void *argument) const {
  void *arguments[] = {const_cast<void *>(argument)};
  return cu.check("launch a kernel", cu.launch(function, blocks, 1, 1, threads, 1, 1, sharedBytes,
                                               nullptr, arguments, nullptr));
}

Gpu::Timer::~Timer() {
  for (void *event : events)
    if (event)
      cu.destroyEvent(event);
}

Failure Gpu::Timer::start() {
  int error = 0;
  for (void *&event : events)
    if (!event && !error)
      error = cu.createEvent(&event, 0);
  return cu.check("record an event", error ? error : cu.record(events[0], nullptr));
}

Failure Gpu::Timer::stop() { return cu.check("record an event", cu.record(events[1], nullptr)); }

Failure Gpu::Timer::getMilliseconds(double &milliseconds) const {
  float elapsed = 0;
  int error = cu.waitForEvent(events[1]);
  if (!error)
    error = cu.elapsed(&elapsed, events[0], events[1]);
  milliseconds = elapsed;
  return cu.check("measure time", error);
}

GpuMemory::~GpuMemory() {
  if (address)
    cu.release(address);
}

Failure GpuMemory::allocate(size_t bytes) {
  return cu.check("allocate memory", cu.allocate(&address, std::max<size_t>(bytes, 1)));
}
