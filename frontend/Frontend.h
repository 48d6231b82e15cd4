//===- Frontend.h - files people have -> MLIR modules ------------*- C++ -*-===//
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

/// A weight: dense, row-major, little-endian; a boolean is one byte. Tied weights share their
/// bytes.
struct NamedTensor {
  std::string name;
  mlir::Type elementType;
  llvm::SmallVector<int64_t> shape;
  std::shared_ptr<const llvm::MemoryBuffer> bytes;
};

/// A module in import form, and the data of the arguments that are marked attn.weight, in their
/// order.
struct Model {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<NamedTensor> weights;
};

/// Makes `context` ready for what importers create.
void loadFrontendDialects(mlir::MLIRContext &context);

/// Imports `path`, whose suffix says the format. The module is verified; an error is one line that
/// starts with the path and, where the user's source is known, its line.
llvm::Expected<Model> importFile(llvm::StringRef path, mlir::MLIRContext &context);

/// The formats, each one function: what stands at `path` -> module. They report errors without the
/// path.
llvm::Expected<Model> importPt2(llvm::StringRef path, mlir::MLIRContext &context);
llvm::Expected<Model> importMlir(llvm::StringRef path, mlir::MLIRContext &context);

/// Prints docs/ops.md: what of each front door's ops attn knows.
void printOps(llvm::raw_ostream &stream);

} // namespace attn

#endif // ATTN_FRONTEND_FRONTEND_H
