//===- attn.hpp - attn.h for C++17: unique pointers, exceptions -*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   namespace rt = attn::rt;
//   rt::Library library = rt::loadLibrary("layer.so");
//   rt::Function layer = rt::createFunction(library, "forward");
//   rt::Weights weights = rt::loadWeights(layer, "layer.safetensors");
//   rt::check(layer_forward(layer.get(), weights.get(), x, out, nullptr)); // of layer.h
//
// Use attn.h for everything else. If exceptions are disabled, this header declares only Library, Function, Weights and
// Pool.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_HPP
#define ATTN_HPP

#include <attn.h>

#include <memory>

namespace attn::rt {

/// The deleter of a std::unique_ptr that calls `release`.
template <auto release> struct Release {
  template <typename T> void operator()(T *object) const { release(object); }
};
using Library = std::unique_ptr<attn_library, Release<attn_library_release>>;
using Function = std::unique_ptr<attn_function, Release<attn_function_release>>;
using Weights = std::unique_ptr<attn_weights, Release<attn_weights_release>>;
using Pool = std::unique_ptr<attn_pool, Release<attn_pool_release>>;

} // namespace attn::rt

#ifdef __cpp_exceptions
#include <stdexcept>

namespace attn::rt {

/// A failed call of attn.h; what() is the message of attn_last_error().
class Error : public std::runtime_error {
public:
  explicit Error(attn_status refusal) : std::runtime_error(attn_last_error()), status(refusal) {}
  attn_status status;
};

/// Throws an Error unless `status` is ATTN_OK.
inline void check(attn_status status) {
  if (status != ATTN_OK)
    throw Error(status);
}

inline Library loadLibrary(const char *path) {
  attn_library *library;
  check(attn_library_load(path, &library));
  return Library(library);
}

/// Opens a library that is linked into the program. `query` is its attn_query_<library>.
inline Library openLibrary(attn_query_fn query) {
  attn_library *library;
  check(attn_library_from_query(query, &library));
  return Library(library);
}

/// `level` is an ISA level such as "x86-64-v3". If it is null, attn_function_create() selects the level.
inline Function createFunction(const Library &library, const char *name,
                               const char *level = nullptr) {
  attn_function_options options = {};
  options.size = sizeof options;
  options.level = level;
  attn_function *function;
  check(attn_function_create(library.get(), name, &options, &function));
  return Function(function);
}

/// Packs the weights of a safetensors file.
inline Weights loadWeights(const Function &function, const char *path) {
  attn_weights *weights;
  check(attn_weights_load(function.get(), path, &weights));
  return Weights(weights);
}

/// `workers` counts the calling thread; 0 means the number of CPUs that this process may use.
inline Pool createPool(int64_t workers = 0) {
  attn_pool *pool;
  check(attn_pool_create(workers, &pool));
  return Pool(pool);
}

inline Pool createPool(const attn_pool_options &options) {
  attn_pool *pool;
  check(attn_pool_create_with(&options, &pool));
  return Pool(pool);
}

} // namespace attn::rt
#endif // __cpp_exceptions

#endif // ATTN_HPP
