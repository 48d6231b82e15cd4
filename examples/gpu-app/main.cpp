//===- main.cpp - call a compiled layer on a GPU ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   gpu-app X.npy OUT.npy LAYER.so
//
// Calls the first function of the library on the first GPU with X, and prints the largest difference between the output
// and OUT. Reads the weights from the .safetensors file beside the library. The program owns the context, the stream
// and the memory, and creates them with CUDA's driver API. If cuda.h is not installed, the program declares the
// functions that it uses.
//
//===----------------------------------------------------------------------===//

#include "npy.h"

#include <attn.hpp>

#include <cstdio>
#include <stdexcept>

#if __has_include(<cuda.h>)
#include <cuda.h>
#else
extern "C" {
typedef int CUresult, CUdevice;
typedef void *CUcontext, *CUstream;
typedef unsigned long long CUdeviceptr;
CUresult cuInit(unsigned);
CUresult cuDeviceGet(CUdevice *, int);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuStreamCreate(CUstream *, unsigned);
CUresult cuStreamSynchronize(CUstream);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuGetErrorName(CUresult, const char **);
}
#define cuMemAlloc cuMemAlloc_v2
#define cuMemcpyHtoD cuMemcpyHtoD_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2
#endif

namespace rt = attn::rt;

static void check(CUresult result) {
  const char *name = "an unknown error";
  if (int(result) != 0) {
    cuGetErrorName(result, &name);
    throw std::runtime_error(std::string("the CUDA driver returned ") + name);
  }
}

/// Allocates a tensor in GPU memory, with the shape of `tensor`. A program with many calls should reuse this memory.
static DLTensor onDevice(Tensor &tensor) {
  CUdeviceptr memory;
  check(cuMemAlloc(&memory, tensor.data.size() * sizeof(float)));
  DLTensor view = tensor.view();
  view.device = {kDLCUDA, 0};
  view.data = reinterpret_cast<void *>(memory);
  return view;
}

static CUdeviceptr addressOf(const DLTensor &tensor) {
  return reinterpret_cast<CUdeviceptr>(tensor.data);
}

static void run(Tensor x, const Tensor &expected, const std::string &path) {
  CUdevice device;
  CUcontext context;
  CUstream stream;
  check(cuInit(0));
  check(cuDeviceGet(&device, 0));
  check(cuDevicePrimaryCtxRetain(&context, device));
  check(cuCtxSetCurrent(context));
  check(cuStreamCreate(&stream, 0));

  rt::Library library = rt::loadLibrary(path.c_str());
  attn_function_options options = {sizeof options, nullptr, {kDLCUDA, 0}};
  attn_function *created = nullptr;
  rt::check(attn_function_create(library.get(), attn_library_function_name(library.get(), 0),
                                 &options, &created));
  rt::Function layer(created);
  std::string weightsPath = path.substr(0, path.rfind('.')) + ".safetensors";
  rt::Weights weights = rt::loadWeights(layer, weightsPath.c_str());

  DLTensor input = onDevice(x);
  const DLTensor *inputs[] = {&input};
  Tensor out{expected.shape, std::vector<float>(expected.data.size())};
  rt::check(attn_output_shape(layer.get(), inputs, 1, 0, out.shape.data()));
  DLTensor output = onDevice(out);
  const DLTensor *outputs[] = {&output};

  check(cuMemcpyHtoD(addressOf(input), x.data.data(), x.data.size() * sizeof(float)));
  attn_call_options call = {};
  call.size = sizeof call;
  call.stream = stream;
  rt::check(attn_call(layer.get(), weights.get(), inputs, 1, outputs, 1, &call));
  check(cuStreamSynchronize(stream)); // attn_call may return before the kernels have finished
  check(cuMemcpyDtoH(out.data.data(), addressOf(output), out.data.size() * sizeof(float)));
  std::printf("%s on a GPU with code for %s: largest error %.1e\n",
              path.substr(path.rfind('/') + 1).c_str(), attn_function_level(layer.get()),
              maxError(out, expected));
}

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: gpu-app X.npy OUT.npy LAYER.so\n");
    return 1;
  }
  try {
    run(readNpy(argv[1]), readNpy(argv[2]), argv[3]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "gpu-app: %s\n", error.what());
    return 1;
  }
}
