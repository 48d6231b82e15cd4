//===- Interface.h - the description of a library ----------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The tables inside a library, its manifest and its header are written from one description, LibraryInfo. The
// description is made from the module before lowering or, when emission resumes from LLVM IR, from the manifest in this
// LLVM IR.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_EMIT_INTERFACE_H
#define ATTN_CODEGEN_EMIT_INTERFACE_H

#include "dialect/Formula.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace attn {

/// An element type: its names in attn, safetensors, numpy and C, and its numbers in DLPack.
struct DataType {
  llvm::StringLiteral name, safetensors, npy, c;
  uint8_t code, bits;

  /// Null if no DataType represents the type.
  static const DataType *get(mlir::Type type);
  static const DataType *get(llvm::StringRef name);
  static llvm::ArrayRef<DataType> all();
  unsigned bytes() const { return bits / 8; }
};

/// The size of a dimension. It is static or, if `symbol` is not -1, the value of symbol number `symbol`.
struct DimInfo {
  int64_t size = 0;
  int32_t symbol = -1;
};

struct TensorInfo {
  std::string name;
  const DataType *type;
  std::vector<DimInfo> shape;
  std::optional<DimInfo> bound = std::nullopt; ///< every element lies in [-below, bound]
  DimInfo below = {};                          ///< its number may be negative
  bool inOut = false;                          ///< an input that the function writes to as well
};

struct SymbolInfo {
  std::string name;
  int64_t min, max;
  /// Computes the symbol from the sizes of inputs. Absent if the symbol is the size of an input's dimension.
  std::optional<Formula> formula = std::nullopt;
};

/// A tensor from which a kernel copies boxes, as in attn_tensor_map_info.
struct TensorMapInfo {
  int64_t offset, rank, dim, rows, bytes;
};

/// A task that runs on a GPU, as in attn_kernel_info.
struct KernelInfo {
  std::string name;
  int64_t threads, shared, context;
  int64_t blocks = 0; ///< as in attn_kernel_info
  std::vector<TensorMapInfo> maps = {};
};

struct VariantInfo {
  std::string level;
  std::vector<std::string> features; ///< features that the code needs, as the runtime names them
  std::string workspace, report, schedules;
  int64_t packedBytes = 0;
  uint64_t packedHash = 0;
  /// The type to which products of f32 round their factors. Empty if factors are not rounded.
  std::string compute = {};
  std::vector<KernelInfo> kernels = {}; ///< empty in a variant for CPUs
  /// The offset of each packed tensor that the entry reads, and the end of the last one.
  std::vector<int64_t> packedOffsets = {};
};

struct FunctionInfo {
  std::string name;
  std::vector<TensorInfo> inputs, outputs, weights;
  std::vector<SymbolInfo> symbols; ///< sizes of inputs come before formulas
  std::vector<VariantInfo> variants;

  llvm::ArrayRef<SymbolInfo> inputSymbols() const {
    return llvm::ArrayRef(symbols).take_until(
        [](const SymbolInfo &symbol) { return symbol.formula.has_value(); });
  }
  /// The number of the symbol `name`, or -1 if the function has no such symbol.
  int32_t findSymbol(llvm::StringRef name) const;
  /// The number or the name of the symbol.
  std::string nameOf(DimInfo dim) const;
  /// The least element that a tensor with a bound may hold: "0", "-8" or "-x.1".
  std::string leastOf(const TensorInfo &tensor) const;
};

struct LibraryInfo {
  std::string name, compiler;
  std::vector<FunctionInfo> functions;
};

/// Where the packed tensors of a function lie in the memory that attn_pack_fn fills.
struct PackedLayout {
  llvm::SmallVector<int64_t> offsets;
  int64_t bytes = 0;
};

/// The number of argument `i` among the packed tensors of `function`, or none if the argument is not a packed tensor.
/// In an entry, which a call runs, packed tensors have the attribute attn.packed. In a pack function, which packs the
/// weights before the first call, the packed tensors are all arguments that are not weights.
std::optional<int64_t> packedIndex(mlir::func::FuncOp function, unsigned i);

/// The layout of the packed tensors among the arguments of `function`. The layout of an entry is the
/// beginning of the layout of its pack function.
mlir::FailureOr<PackedLayout> packedLayout(mlir::func::FuncOp function);

/// Describes the functions that `module` declares. The nested modules of `module`, one for each level, hold the code of
/// these functions.
mlir::FailureOr<LibraryInfo> describe(mlir::ModuleOp module, llvm::StringRef libraryName);

std::string writeManifest(const LibraryInfo &library);
llvm::Expected<LibraryInfo> readManifest(llvm::StringRef json);

/// The text of a header for C and C++. It has a typed function, which calls attn_call, for each function of the
/// library.
std::string writeHeader(const LibraryInfo &library);

/// `name` as a C identifier. Underscores replace the characters that an identifier cannot hold. If `name` is empty or
/// begins with a digit, an underscore is added in front.
std::string toIdentifier(llvm::StringRef name);

} // namespace attn

#endif // ATTN_CODEGEN_EMIT_INTERFACE_H
