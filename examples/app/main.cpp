//===- main.cpp - call a compiled attention layer ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   attn-example X.npy OUT.npy LAYER.so...
//
// A layer takes one input [batch, length, width]: examples/multi_head_attention.py.
// For each library: the largest error of its output against OUT.npy, and its speed on one core.
// Needs the runtime of attn and nothing else; the weights are read from the .safetensors file
// beside the library.
//
//===----------------------------------------------------------------------===//

#include "npy.h"
#include "peak.h"
#include "safetensors.h"

#include <cmath>
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

static Weights pack(const attn_function *function, std::map<std::string, Tensor> tensors) {
  std::vector<const char *> names;
  std::vector<DLTensor> views;
  std::vector<const DLTensor *> pointers;
  for (auto &[name, tensor] : tensors) {
    names.push_back(name.c_str());
    views.push_back(tensor.view());
  }
  for (const DLTensor &view : views)
    pointers.push_back(&view);
  attn_weights *weights;
  check(attn_weights_create(function, names.data(), pointers.data(), int32_t(names.size()),
                            &weights));
  return Weights(weights);
}

/// The largest difference, or NaN if there is a NaN.
static double maxError(const Tensor &got, const Tensor &expected) {
  if (got.shape != expected.shape)
    throw std::runtime_error("expected an output of the shape of the reference, got another");
  double worst = 0;
  for (size_t i = 0; i < got.data.size(); ++i) {
    double error = std::fabs(double(got.data[i]) - expected.data[i]);
    if (!(error <= worst))
      worst = error;
    if (std::isnan(error))
      break;
  }
  return worst;
}

static void run(const std::string &path, Tensor x, const Tensor &expected) {
  Library library = load(path);
  Function layer = create(library.get());
  std::string stem = path.substr(0, path.rfind('.'));
  Weights weights = pack(layer.get(), SafetensorsReader(stem + ".safetensors").read());

  DLTensor input = x.view();
  const DLTensor *inputs[] = {&input};
  attn_argument info = {};
  info.size = sizeof info;
  check(attn_function_argument(layer.get(), ATTN_OUTPUT, 0, &info));
  Tensor out{std::vector<int64_t>(info.rank), {}};
  check(attn_output_shape(layer.get(), inputs, 1, 0, out.shape.data()));
  out.data.resize(Tensor::count(out.shape));
  DLTensor output = out.view();
  const DLTensor *outputs[] = {&output};
  auto call = [&] { check(attn_call(layer.get(), weights.get(), inputs, 1, outputs, 1, nullptr)); };

  call();
  double error = maxError(out, expected);

  // The clock of a core changes with what runs beside it, so its peak is measured in between.
  double best = INFINITY, peak = 0, end = seconds() + 0.5;
  do {
    peak = std::max(peak, measurePeak(5));
    for (double pause = seconds() + 0.02; seconds() < pause;) {
      double start = seconds();
      call();
      best = std::min(best, seconds() - start);
    }
  } while (seconds() < end);

  // Four projections of [B S, C] by [C, C]; the scores and their product with V.
  double b = double(x.shape[0]), s = double(x.shape[1]), c = double(x.shape[2]);
  double flops = 8 * b * s * c * c + 4 * b * s * s * c;
  std::printf(
      "%-24s %s  max error %.1e  %8.4f ms  %6.1f GFLOP/s  %3.0f%% of the FMA peak, %.0f GFLOP/s\n",
      path.substr(path.rfind('/') + 1).c_str(), attn_function_level(layer.get()), error, best * 1e3,
      flops / best * 1e-9, 100 * flops / best / peak, peak * 1e-9);
}

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: attn-example X.npy OUT.npy LAYER.so...\n");
    return 1;
  }
  try {
    Tensor x = readNpy(argv[1]), expected = readNpy(argv[2]);
    if (x.shape.size() != 3)
      throw std::runtime_error("expected an input of [batch, length, width]");
    for (int i = 3; i < argc; ++i)
      run(argv[i], x, expected);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "attn-example: %s\n", error.what());
    return 1;
  }
}
