//===- main.cpp - call a layer that is linked in ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   find-package X.npy OUT.npy [LEVEL]
//
// Calls the layer with X through its own header, with the code for LEVEL if one is given, and prints
// the largest error of the output against OUT.
//
//===----------------------------------------------------------------------===//

#include "mha.h"
#include "npy.h"
#include "safetensors.h"

#include <cstdio>

static void check(attn_status status) {
  if (status != ATTN_OK)
    throw std::runtime_error(attn_last_error());
}

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: find-package X.npy OUT.npy [LEVEL]\n");
    return 1;
  }
  attn_library *library = nullptr;
  attn_function *layer = nullptr;
  attn_weights *weights = nullptr;
  int exitCode = 0;
  try {
    Tensor x = readNpy(argv[1]), expected = readNpy(argv[2]);
    Tensor out = expected;
    if (x.shape != std::vector<int64_t>{2, 14, 64} || out.shape != x.shape)
      throw std::runtime_error("expected X and OUT of shape 2 x 14 x 64");

    check(attn_library_from_query(attn_query_mha, &library));
    attn_function_options options = {};
    options.size = sizeof options;
    options.level = argc > 3 ? argv[3] : nullptr;
    check(attn_function_create(library, "forward", &options, &layer));
    NamedTensors named(SafetensorsReader(WEIGHTS).read());
    check(attn_weights_create(layer, named.names(), named.tensors(), named.count(), &weights));

    check(mha_forward(layer, weights, x.data.data(), out.data.data(), nullptr));
    std::printf("code for %s: largest error %.1e\n", attn_function_level(layer),
                maxError(out, expected));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "find-package: %s\n", error.what());
    exitCode = 1;
  }
  attn_weights_release(weights);
  attn_function_release(layer);
  attn_library_release(library);
  return exitCode;
}
