//===- Target.h - the levels that attn compiles for --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// An ISA level ("level" for short), such as x86-64-v3, is a set of instructions of an architecture. Each level has one
// description, a file in the folder of its family, such as codegen/cpu/targets/. Until the stage emit, passes read the
// properties of a level only from its attribute. dialect/Target.td names the interfaces of these attributes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_TARGET_H
#define ATTN_CODEGEN_TARGET_H

#include "dialect/Attn.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

namespace attn {

/// A level that users can select.
struct Target {
  /// The name that users pass to --target and --level, and that a compiled library lists.
  llvm::StringLiteral level;
  /// The target triple of the code. The triple of a level for CPUs is also that of the compiled library.
  llvm::StringLiteral triple;
  /// LLVM's names of the features that the level adds to its architecture. A CPU that lacks one of these features
  /// cannot run the code.
  llvm::ArrayRef<llvm::StringLiteral> features;
  /// Creates the target attribute of a module of this level.
  TargetInterface (*makeAttr)(const Target &, mlir::MLIRContext *);

  TargetInterface getAttr(mlir::MLIRContext *context) const { return makeAttr(*this, context); }
  /// Whether the code is for `architecture`, a triple or the first component of a triple.
  bool isOf(llvm::StringRef architecture) const;
  /// Whether the code runs on a GPU. A library for CPUs of any architecture can contain such code.
  bool isForGpu() const;
  /// Whether the CPU that runs the compiler can run code of this level.
  bool runsHere() const;
};

/// Levels whose attributes are of one class, such as CpuAttr, and therefore have the same interfaces.
struct TargetFamily {
  /// Within an architecture, better levels come first.
  llvm::ArrayRef<const Target *> targets;
  /// Registers the interfaces of the attributes, and the dialect of the attributes unless it is attn's own.
  void (*registerInterfaces)(mlir::DialectRegistry &registry);
  /// Adds the passes of the family to the end of a stage (CodegenInterface::addPasses).
  void (*addPasses)(llvm::StringRef stage, mlir::OpPassManager &manager);
};

/// All families. The families of attn itself come before the families that addFamily() added.
llvm::ArrayRef<const TargetFamily *> getFamilies();

/// Adds a family. Must be called before the first context is created.
void addFamily(const TargetFamily &family);

/// Calls registerInterfaces() of all families.
void registerTargets(mlir::DialectRegistry &registry);

/// The levels of all families.
llvm::SmallVector<const Target *> getTargets();

/// Returns the target in `targets` whose level is `level`, or an error that lists the levels of all `targets`.
llvm::Expected<const Target *> lookupTarget(llvm::ArrayRef<const Target *> targets,
                                            llvm::StringRef level);

/// Parses a list such as "x86-64,x86-64-v3". "native" means the best level that this CPU runs, "all" means every level
/// of this CPU's architecture, and "all:x86_64" means every level of the architecture x86_64. (Target triples use the
/// same names of architectures.) The levels for CPUs must be of one architecture. The result holds each level once, in
/// the order of getTargets(): of attn's own levels, those for CPUs come before those for GPUs, and within an
/// architecture, better levels come first.
llvm::Expected<llvm::SmallVector<const Target *>> parseTargets(llvm::StringRef list);

} // namespace attn

#endif // ATTN_CODEGEN_TARGET_H
