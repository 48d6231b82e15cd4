//===- Weights.h - the data of parameters and buffers ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_PT2_WEIGHTS_H
#define ATTN_FRONTEND_PT2_WEIGHTS_H

#include "frontend/Frontend.h"
#include "frontend/pt2/Archive.h"
#include "frontend/pt2/Graph.h"

namespace attn::pt2 {

/// Loads tensors from data/weights and data/constants by their names in the module.
class Weights {
public:
  static llvm::Expected<Weights> open(const Archive &archive);

  /// Loads the tensor `name` in row-major order, whatever its strides in the file. Its type must be `meta`, the type in
  /// the graph.
  llvm::Expected<NamedTensor> load(llvm::StringRef name, const TensorMeta &meta,
                                   mlir::MLIRContext &context);

private:
  explicit Weights(const Archive &archive) : archive(archive) {}

  const Archive &archive;
  std::map<std::string, Payload> payloads; // paths within the archive
  llvm::StringMap<std::shared_ptr<const llvm::MemoryBuffer>> loaded;
};

/// The least and the greatest element of a tensor of integers. Returns none for other tensors, and without elements.
std::optional<std::pair<int64_t, int64_t>> endsOf(const NamedTensor &tensor);

} // namespace attn::pt2

#endif // ATTN_FRONTEND_PT2_WEIGHTS_H
