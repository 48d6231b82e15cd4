//===- Target.h - the machines that attn compiles for ------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A target level is one description in codegen/cpu/targets/. Only those files and the list in
// Target.cpp name an instruction set: passes see the numbers of #attn.target, emission the strings
// below.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_TARGET_H
#define ATTN_CODEGEN_TARGET_H

#include "dialect/Attn.h"

#include "llvm/Support/Error.h"

namespace attn {

/// A level of an architecture: what code for it may use and what passes need to know.
struct Target {
  /// What users call it, as in --target, --level and the tables of a library.
  llvm::StringLiteral level;
  llvm::StringLiteral triple;
  /// LLVM's name: the instructions that are there and the CPU to schedule for.
  llvm::StringLiteral cpu;
  /// LLVM's names of what the level adds to its architecture. A CPU that lacks one cannot run the
  /// code.
  llvm::ArrayRef<llvm::StringLiteral> features;
  /// Width in bits of the vectors that code uses.
  unsigned vectorBits;
  /// The values of #attn.target.
  unsigned lanes, registers;
  bool fma;
  unsigned l1, l2;
  bool scalef, halves;

  TargetAttr getAttr(mlir::MLIRContext *context) const;
  /// Whether the CPU that runs the compiler can run its code.
  bool runsHere() const;
};

/// Every target, the better ones of an architecture first.
llvm::ArrayRef<const Target *> getTargets();

/// The target of that name, or an error that says which there are.
llvm::Expected<const Target *> lookupTarget(llvm::StringRef level);

/// Reads a list such as "x86-64,x86-64-v3". "native" is the best level that this CPU runs, "all"
/// every level of this CPU's architecture, "all:x86_64" of the architecture that triples call so.
/// The result holds each level once, best first.
llvm::Expected<llvm::SmallVector<const Target *>> parseTargets(llvm::StringRef list);

} // namespace attn

#endif // ATTN_CODEGEN_TARGET_H
