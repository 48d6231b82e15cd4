//===- main.cpp - load a compiled layer and call it -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   cpp-app X.npy OUT.npy LAYER.so...
//
// For each library: calls its function with X and prints the largest error of the output against
// OUT. Works for every layer of one input; the weights are read from the .safetensors file beside
// the library.
//
//===----------------------------------------------------------------------===//

#include "npy.h"
#include "safetensors.h"

#include <cstdio>
#include <memory>

static void check(attn_status status) {
  if (status != ATTN_OK)
    throw std::runtime_error(attn_last_error());
}

namespace {
template <auto release> struct Release {
  template <class T> void operator()(T *object) const { release(object); }
};
using Library = std::unique_ptr<attn_library, Release<attn_library_release>>;
using Function = std::unique_ptr<attn_function, Release<attn_function_release>>;
using Weights = std::unique_ptr<attn_weights, Release<attn_weights_release>>;
} // namespace

static Library load(const std::string &path) {
  attn_library *library;
  check(attn_library_load(path.c_str(), &library));
  return Library(library);
}

static Function create(attn_library *library) {
  attn_function *function;
  check(attn_function_create(library, attn_library_function_name(library, 0), nullptr, &function));
  return Function(function);
}

static Weights pack(const attn_function *function, const std::string &path) {
  NamedTensors named(SafetensorsReader(path).read());
  attn_weights *weights;
  check(attn_weights_create(function, named.names(), named.tensors(), named.count(), &weights));
  return Weights(weights);
}

static Tensor call(attn_function *layer, const attn_weights *weights, Tensor x) {
  DLTensor input = x.view();
  const DLTensor *inputs[] = {&input};
  attn_argument result = {};
  result.size = sizeof result;
  check(attn_function_argument(layer, ATTN_OUTPUT, 0, &result));
  Tensor out{std::vector<int64_t>(result.rank), {}};
  check(attn_output_shape(layer, inputs, 1, 0, out.shape.data()));
  out.data.resize(Tensor::count(out.shape));

  DLTensor output = out.view();
  const DLTensor *outputs[] = {&output};
  check(attn_call(layer, weights, inputs, 1, outputs, 1, nullptr));
  return out;
}

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: cpp-app X.npy OUT.npy LAYER.so...\n");
    return 1;
  }
  try {
    Tensor x = readNpy(argv[1]), expected = readNpy(argv[2]);
    for (int i = 3; i < argc; ++i) {
      std::string path = argv[i];
      Library library = load(path);
      Function layer = create(library.get());
      Weights weights = pack(layer.get(), path.substr(0, path.rfind('.')) + ".safetensors");
      std::printf("%s with code for %s: largest error %.1e\n",
                  path.substr(path.rfind('/') + 1).c_str(), attn_function_level(layer.get()),
                  maxError(call(layer.get(), weights.get(), x), expected));
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cpp-app: %s\n", error.what());
    return 1;
  }
}
