//===- main.cpp - load a compiled layer and call it -------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   cpp-app X.npy OUT.npy LAYER.so...
//
// For each library, the program calls the first function with X, and prints the largest difference
// between the output and OUT. It works for every layer that has one input, one output and weights.
// It reads the weights from the .safetensors file beside the library.
//
//===----------------------------------------------------------------------===//

#include "npy.h"

#include <attn.hpp>

#include <cstdio>

namespace rt = attn::rt;

static Tensor call(attn_function *layer, const attn_weights *weights, Tensor x) {
  DLTensor input = x.view();
  const DLTensor *inputs[] = {&input};
  attn_argument result = {};
  result.size = sizeof result;
  rt::check(attn_function_argument(layer, ATTN_OUTPUT, 0, &result));
  Tensor out{std::vector<int64_t>(result.rank), {}};
  rt::check(attn_output_shape(layer, inputs, 1, 0, out.shape.data()));
  out.data.resize(Tensor::count(out.shape));

  DLTensor output = out.view();
  const DLTensor *outputs[] = {&output};
  rt::check(attn_call(layer, weights, inputs, 1, outputs, 1, nullptr));
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
      std::string weightsPath = path.substr(0, path.rfind('.')) + ".safetensors";
      rt::Library library = rt::loadLibrary(path.c_str());
      rt::Function layer =
          rt::createFunction(library, attn_library_function_name(library.get(), 0));
      rt::Weights weights = rt::loadWeights(layer, weightsPath.c_str());
      std::printf("%s with code for %s: largest error %.1e\n",
                  path.substr(path.rfind('/') + 1).c_str(), attn_function_level(layer.get()),
                  maxError(call(layer.get(), weights.get(), x), expected));
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cpp-app: %s\n", error.what());
    return 1;
  }
}
