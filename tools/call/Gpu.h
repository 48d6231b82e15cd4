//===- Gpu.h - memory and time of an NVIDIA GPU -----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Wraps the few functions of the CUDA driver that attn-call and attn-run need. The driver is opened at run time.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_CALL_GPU_H
#define ATTN_TOOLS_CALL_GPU_H

#include "tools/call/Failure.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace attn {

/// One GPU, whose primary context is current on this thread as long as the object lives.
class Gpu {
public:
  Gpu() = default;
  Gpu(const Gpu &) = delete;
  ~Gpu();

  /// Opens the driver, and makes the context of device `number` current.
  Failure open(int number);
  bool isOpen() const { return context != nullptr; }
  const std::string &getName() const { return name; }
  int getNumMultiprocessors() const { return numMultiprocessors; }
  /// The compute capability, such as 90 for 9.0.
  int getCapability() const { return capability; }

  /// Waits for all work. Reports the errors of kernels, too.
  Failure synchronize() const;
  Failure copyIn(uint64_t to, const void *from, size_t bytes) const;
  Failure copyOut(void *to, uint64_t from, size_t bytes) const;

  /// Measures how long the work between start() and stop() took on the device.
  class Timer {
  public:
    Timer() = default;
    Timer(const Timer &) = delete;
    ~Timer();
    Failure start();
    Failure stop();
    /// Waits for the end of the work.
    Failure getMilliseconds(double &milliseconds) const;

  private:
    void *events[2] = {};
  };

private:
  int device = 0;
  int numMultiprocessors = 0, capability = 0;
  void *context = nullptr;
  std::string name;
};

/// A kernel with one parameter, a struct.
class GpuKernel {
public:
  GpuKernel() = default;
  GpuKernel(const GpuKernel &) = delete;
  ~GpuKernel();

  /// Loads the kernel `name` from PTX.
  Failure load(const char *ptx, const char *name);
  Failure launch(unsigned blocks, unsigned threads, unsigned sharedBytes,
                 const void *argument) const;

private:
  void *module = nullptr, *function = nullptr;
};

/// Memory of the current context.
class GpuMemory {
public:
  GpuMemory() = default;
  GpuMemory(GpuMemory &&other) : address(other.address) { other.address = 0; }
  ~GpuMemory();

  /// Allocates at least one byte.
  Failure allocate(size_t bytes);
  uint64_t get() const { return address; }
  void *data() const { return reinterpret_cast<void *>(address); }

private:
  uint64_t address = 0;
};

} // namespace attn

#endif // ATTN_TOOLS_CALL_GPU_H
