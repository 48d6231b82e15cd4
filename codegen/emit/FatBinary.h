//===- FatBinary.h - add machine code for GPUs to PTX -------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_FATBINARY_H
#define ATTN_CODEGEN_EMIT_FATBINARY_H

#include "codegen/emit/Interface.h"

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Replaces the PTX of each level for GPUs, a constant of `module`, by a fat binary. A fat binary contains machine code
/// for the GPUs of the level and also the PTX, which CUDA's driver compiles for other GPUs. The PTX of a level whose
/// name ends in a letter, such as sm_90a, runs only on GPUs of that level. CUDA's programs ptxas and fatbinary, which
/// must be on PATH, make the fat binary. Fails if `library` has no level for GPUs.
llvm::Error makeFatBinaries(llvm::Module &module, const LibraryInfo &library);

} // namespace attn

#endif // ATTN_CODEGEN_EMIT_FATBINARY_H
