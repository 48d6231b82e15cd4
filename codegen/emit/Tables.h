//===- Tables.h - the constants that describe a library ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_TABLES_H
#define ATTN_CODEGEN_EMIT_TABLES_H

#include "codegen/emit/Interface.h"
#include "codegen/emit/Safetensors.h"

#include "llvm/IR/Module.h"

namespace attn {

/// Adds the tables of attn_kernel.h and the exported function attn_query_<library>, which returns them. All other
/// symbols become internal. The code of function f for level l is @f.l, @f.workspace.l and @f.pack.l. `embedded` holds
/// all weights or none.
void addTables(llvm::Module &module, const LibraryInfo &library, llvm::ArrayRef<Weight> embedded);

/// The description of the library whose tables `module` holds.
llvm::Expected<LibraryInfo> readTables(const llvm::Module &module);

/// The name of the function that returns the tables of a library.
std::string queryName(llvm::StringRef libraryName);

} // namespace attn

#endif // ATTN_CODEGEN_EMIT_TABLES_H
