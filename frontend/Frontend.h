//===- Frontend.h - import model files as MLIR modules -----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_FRONTEND_FRONTEND_H
#define ATTN_FRONTEND_FRONTEND_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>
#include <vector>

namespace attn {

/// A weight. Its bytes are dense, row-major and little-endian; a boolean takes one byte. Tied weights share
/// one buffer if the file stores their elements in this form.
struct NamedTensor {
  std::string name;
  mlir::Type elementType;
  llvm::SmallVector<int64_t> shape;
  std::shared_ptr<const llvm::MemoryBuffer> bytes;
};

/// A module of the stage `import`, and the data of the arguments that are marked attn.weight, in the order of the
/// arguments. A .mlir file has no such data, so `weights` is then empty.
struct Model {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<NamedTensor> weights;
};

/// Loads the dialects that importers use into `context`.
void loadFrontendDialects(mlir::MLIRContext &context);

/// Imports the file `path`, whose suffix selects the format, and verifies the module. An error is one line, which
/// starts with the path. The line in the user's source follows if it is known. `names` are the names of all arguments
/// of the only function, in order, instead of those in a .mlir file; empty to keep these. A .pt2 file keeps its names,
/// so with such a file, names are an error.
llvm::Expected<Model> importFile(llvm::StringRef path, mlir::MLIRContext &context,
                                 llvm::ArrayRef<std::string> names = {});

/// The importers, one function per format. They report errors without the path.
llvm::Expected<Model> importPt2(llvm::StringRef path, mlir::MLIRContext &context,
                                llvm::ArrayRef<std::string> names);
llvm::Expected<Model> importMlir(llvm::StringRef path, mlir::MLIRContext &context,
                                 llvm::ArrayRef<std::string> names);

/// Prints docs/ops.md, the list of the ops that a .pt2 file may contain.
void printOps(llvm::raw_ostream &stream);

} // namespace attn

#endif // ATTN_FRONTEND_FRONTEND_H
