//===- Target.h - the ISA levels that attn compiles for ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// An ISA level ("level" for short) is a set of instructions of an architecture, such as x86-64-v3.
// Each level is one description in codegen/cpu/targets/. Only those files and the list in Target.cpp
// name an instruction set: passes read the numbers of #attn.target, and emission reads the other
// fields below. There are two exceptions: Exp2.cpp emits AVX-512 instructions if `scalef` is set, and
// LowerToLLVM.cpp sets an option for x86.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_TARGET_H
#define ATTN_CODEGEN_TARGET_H

#include "dialect/Attn.h"

#include "llvm/Support/Error.h"

namespace attn {

/// An ISA level: the instructions that its code may use, and the numbers that passes need.
struct Target {
  /// The name in --target, in --level and in the tables of a library.
  llvm::StringLiteral level;
  llvm::StringLiteral triple;
  /// LLVM's name of the CPU, which defines the available instructions and the scheduling model.
  llvm::StringLiteral cpu;
  /// LLVM's names of the features that the level adds to its architecture. A CPU that lacks one of
  /// them cannot run the code.
  llvm::ArrayRef<llvm::StringLiteral> features;
  /// Width in bits of the vectors that code uses.
  unsigned vectorBits;
  /// The remaining fields are those of #attn.target.
  unsigned lanes, registers;
  bool fma;
  unsigned l1, l2;
  bool scalef, halves;

  TargetAttr getAttr(mlir::MLIRContext *context) const;
  /// Whether the CPU that runs the compiler can run code of this level.
  bool runsHere() const;
};

/// All targets; within an architecture, the best level comes first.
llvm::ArrayRef<const Target *> getTargets();

/// The target named `level`, or an error that lists the known levels.
llvm::Expected<const Target *> lookupTarget(llvm::StringRef level);

/// Parses a list such as "x86-64,x86-64-v3". "native" is the best level that this CPU runs, "all"
/// means every level of this CPU's architecture, and "all:x86_64" every level of the architecture
/// with that name in target triples. The result holds each level once, best first.
llvm::Expected<llvm::SmallVector<const Target *>> parseTargets(llvm::StringRef list);

} // namespace attn

#endif // ATTN_CODEGEN_TARGET_H
