//===- Emit.h - LLVM IR, objects and libraries --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The last stage. What it compiles is LLVM IR before optimisation, complete with the tables of the
// library; resuming from its text gives the same bytes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_EMIT_H
#define ATTN_CODEGEN_EMIT_EMIT_H

#include "codegen/emit/Safetensors.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"

#include <string>

namespace attn {

/// What to write.
enum class OutputKind { Shared, Archive, Object, Assembly, LLVMIR, MLIR };

/// As the suffix of `path` says: .so .a .o .s .ll .mlir.
llvm::Expected<OutputKind> getOutputKind(llvm::StringRef path);

/// The sanitizer whose checks are compiled into every memory access; the program that loads the library runs it.
enum class Sanitizer { None, Address, Thread };

struct EmitOptions {
  /// Beside .so, .a and .o go the header (.h), the manifest (.json) and, where there are weights,
  /// their data (.safetensors).
  std::string output;
  /// What the import read. May be empty: users then bring their own.
  llvm::ArrayRef<Weight> weights;
  Sanitizer sanitizer = Sanitizer::None;
};

/// Makes what both tools and passes need known to the context: the translations to LLVM IR.
void registerEmission(mlir::DialectRegistry &registry);

/// Writes `module` with its locations: the text that a compilation resumes from.
llvm::Error emitMLIR(mlir::ModuleOp module, llvm::StringRef path);

/// LLVM IR and the context that owns its types.
struct LLVMModule {
  LLVMModule() = default;
  LLVMModule(LLVMModule &&) = default;
  LLVMModule &operator=(LLVMModule &&) = delete; // would destroy the context before its module

  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

/// Lowers `module`, which holds what `vectorize` left, to LLVM IR. The library exports
/// attn_query_<library> and holds the weights in `embedded`, all or none. The module is LLVM dialect
/// afterwards. Errors of passes go to the diagnostic handler, the Error then says only that there
/// were some.
llvm::Expected<LLVMModule> lowerToLLVMIR(mlir::ModuleOp module, llvm::StringRef library,
                                         llvm::ArrayRef<Weight> embedded = {});

/// Reads the text of such LLVM IR.
llvm::Expected<LLVMModule> parseLLVMIR(llvm::MemoryBufferRef text);

/// Compiles such LLVM IR and writes the kind of file that `options.output` names, except MLIR. All files are
/// written completely, or none is.
llvm::Error emitLLVMIR(LLVMModule ir, const EmitOptions &options);

} // namespace attn

#endif // ATTN_CODEGEN_EMIT_EMIT_H
