//===- Kernel.h - MLIR text as something to call ----------------*- C++ -*-===//
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
  std::unique_ptr<float, rt::Release<std::free>>
      data; ///< aligned to a cache line, as other libraries' tensors are
};

/// What the user of a compiled library has: a function, packed weights, arguments.
class Kernel {
public:
  /// Compiles @forward, whose tensors are f32 of static shapes, for `target`, loads it, makes random
  /// arguments, unless those of a `twin` serve it, and calls it once. `pool` may be null.
  static llvm::Expected<std::unique_ptr<Kernel>> create(llvm::StringRef module,
                                                        const Target &target, attn_pool *pool,
                                                        const Kernel *twin = nullptr);

  /// Cannot fail: it did not the first time.
  attn_status call();

  /// Inputs, then weights.
  llvm::SmallVector<const float *> getArguments() const;
  llvm::ArrayRef<float> getResult() const;

private:
  /// The tensors of a role, and as the runtime takes them.
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
