//===- Kernel.h - compile MLIR text to a callable kernel --------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_BENCHMARK_KERNEL_H
#define ATTN_BENCHMARK_KERNEL_H

#include "codegen/Target.h"
#include "runtime/attn.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace attn::bench {

/// A dense tensor of f32.
struct Tensor {
  std::string name;
  llvm::SmallVector<int64_t> shape;
  int64_t numElements = 1;
  /// Aligned to a cache line, as the tensors of other libraries are.
  std::unique_ptr<float, rt::Release<std::free>> data;
};

/// The objects that a user of a compiled library holds: a function, packed weights, arguments.
class Kernel {
public:
  /// Compiles @forward, whose tensors must be of f32 and have static shapes, for `target`, loads the code and calls it
  /// once. The call uses the arguments of `twin` or, if `twin` is null, random arguments. `pool` may be null.
  static llvm::Expected<std::unique_ptr<Kernel>> create(llvm::StringRef module,
                                                        const Target &target, attn_pool *pool,
                                                        const Kernel *twin = nullptr);

  /// Calls the function again. This should not fail, because the first call succeeded.
  attn_status call();

  /// Returns pointers to the elements of the inputs, then of the weights.
  llvm::SmallVector<const float *> getArguments() const;
  llvm::ArrayRef<float> getResult() const;

private:
  /// Tensors with one attn_role, and the views of them that are passed to the runtime.
  struct Group {
    std::vector<Tensor> tensors;
    std::vector<DLTensor> views;
    std::vector<const DLTensor *> pointers;
  };

  llvm::Error load(const std::string &path, const Target &target);
  llvm::Error makeTensors(attn_role role, Group &group);
  llvm::Error packWeights();

  rt::Function function;
  rt::Weights weights;
  attn_pool *pool = nullptr;
  std::shared_ptr<std::array<Group, 3>> groups; ///< one for each attn_role
};

} // namespace attn::bench

#endif // ATTN_BENCHMARK_KERNEL_H
