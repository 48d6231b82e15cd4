//===- Emit.h - LLVM IR, objects and libraries --------------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The last stage. It lowers a module to unoptimised LLVM IR, which includes the tables of the library (Tables.h), and
// compiles this LLVM IR. A compilation that resumes from the text of the LLVM IR writes the same bytes.
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

/// The kind of file to write.
enum class OutputKind { Shared, Archive, Object, Assembly, LLVMIR, MLIR };

/// Returns the kind of file that the suffix of `path` means: .so, .a, .o, .s, .ll or .mlir.
llvm::Expected<OutputKind> getOutputKind(llvm::StringRef path);

/// The sanitizer whose checks of memory accesses are compiled into the code. The program that loads the library
/// provides the sanitizer's runtime.
enum class Sanitizer { None, Address, Thread };

struct EmitOptions {
  /// The path of the output. The header (.h), the manifest (.json) and, if there are weights, their
  /// data (.safetensors) are written beside .so, .a and .o files.
  std::string output;
  /// The weights that the stage `import` read. May be empty: users then supply their own.
  llvm::ArrayRef<Weight> weights;
  Sanitizer sanitizer = Sanitizer::None;
  bool cubin = false; ///< add machine code for GPUs (FatBinary.h)
};

/// Registers the translations to LLVM IR, which tools and passes need.
void registerEmission(mlir::DialectRegistry &registry);

/// Writes the text of `module`, including locations. A compilation can resume from this text.
llvm::Error emitMLIR(mlir::ModuleOp module, llvm::StringRef path);

/// LLVM IR and the context that owns its types.
struct LLVMModule {
  LLVMModule() = default;
  LLVMModule(LLVMModule &&) = default;
  LLVMModule &operator=(LLVMModule &&) = delete; // would destroy the context before its module

  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

/// Lowers `module`, the result of `vectorize`, to LLVM IR. The library exports attn_query_<library> and
/// contains the weights in `embedded`, which holds all weights or none. Afterwards the module is in the
/// LLVM dialect. Errors of passes go to the diagnostic handler; the returned Error then only says that
/// the lowering failed.
llvm::Expected<LLVMModule> lowerToLLVMIR(mlir::ModuleOp module, llvm::StringRef library,
                                         llvm::ArrayRef<Weight> embedded = {});

/// Parses the text of LLVM IR that lowerToLLVMIR() made.
llvm::Expected<LLVMModule> parseLLVMIR(llvm::MemoryBufferRef text);

/// Compiles LLVM IR that lowerToLLVMIR() made, and writes the kind of file that `options.output` names, except
/// MLIR. Either all files are written completely, or none is.
llvm::Error emitLLVMIR(LLVMModule ir, const EmitOptions &options);

} // namespace attn

#endif // ATTN_CODEGEN_EMIT_EMIT_H
