//===- TargetPasses.h - the passes of the target of a module -----*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_TARGETPASSES_H
#define ATTN_CODEGEN_TARGETPASSES_H

#include "mlir/Pass/Pass.h"

namespace attn {

/// Creates a pass on the module of a level. The pass runs the passes that the target attribute of the module adds to
/// the end of `stage` (CodegenInterface::addPasses). On the command line, an option of the pass sets the stage.
std::unique_ptr<mlir::Pass> createTargetPasses(llvm::StringRef stage = "");

} // namespace attn

#endif // ATTN_CODEGEN_TARGETPASSES_H
