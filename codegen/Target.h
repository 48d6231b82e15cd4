//===- Target.h - the levels that attn compiles for --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// An ISA level ("level" for short) is a set of instructions of an architecture, such as x86-64-v3. Each level is one
// description in the folder of its family, such as codegen/cpu/targets/. Passes read the properties of a level only
// from its attribute, which has the interfaces of dialect/Target.td.
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
  /// The name in --target, in --level and in the tables of a library.
  llvm::StringLiteral level;
  /// The target triple of the code: that of the library, or that of a GPU.
  llvm::StringLiteral triple;
  /// LLVM's names of the features that the level adds to its architecture. A CPU that lacks one of
  /// them cannot run the code.
  llvm::ArrayRef<llvm::StringLiteral> features;
  /// Makes the attribute that modules of this level have.
  TargetInterface (*makeAttr)(const Target &, mlir::MLIRContext *);

  TargetInterface getAttr(mlir::MLIRContext *context) const { return makeAttr(*this, context); }
  /// Whether the code is for `architecture`, a triple or the first component of a triple.
  bool isOf(llvm::StringRef architecture) const;
  /// Whether the code runs on a GPU. A library for CPUs of any architecture can contain such code.
  bool isForGpu() const;
  /// Whether the CPU that runs the compiler can run code of this level.
  bool runsHere() const;
};

/// Levels that share an attribute and its interfaces.
struct TargetFamily {
  /// Within an architecture, the best level comes first.
  llvm::ArrayRef<const Target *> targets;
  /// Registers the attribute and its interfaces.
  void (*registerInterfaces)(mlir::DialectRegistry &registry);
  /// Adds the passes of the family to the end of a stage (CodegenInterface::addPasses).
  void (*addPasses)(llvm::StringRef stage, mlir::OpPassManager &manager);
};

/// All families. Those of attn itself come before those that addFamily() added.
llvm::ArrayRef<const TargetFamily *> getFamilies();

/// Adds a family. Must be called before the first context is created.
void addFamily(const TargetFamily &family);

/// Registers the attributes of all families, and their interfaces, in `registry`.
void registerTargets(mlir::DialectRegistry &registry);

/// The levels of all families.
llvm::SmallVector<const Target *> getTargets();

/// The target named `level` of `targets`, or an error that lists their levels.
llvm::Expected<const Target *> lookupTarget(llvm::ArrayRef<const Target *> targets,
                                            llvm::StringRef level);

/// Parses a list such as "x86-64,x86-64-v3". "native" means the best level that this CPU runs, "all" means every level
/// of this CPU's architecture, and "all:x86_64" means every level of the architecture that target triples name x86_64.
/// The result holds each level once, best first.
llvm::Expected<llvm::SmallVector<const Target *>> parseTargets(llvm::StringRef list);

} // namespace attn

#endif // ATTN_CODEGEN_TARGET_H
