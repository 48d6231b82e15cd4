//===- Target.cpp - the levels that attn compiles for ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/Target.h"
#include "runtime/cpu.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace attn;

bool Target::isOf(llvm::StringRef architecture) const {
  return llvm::Triple(triple).getArch() == llvm::Triple(architecture).getArch();
}

bool Target::isForGpu() const { return llvm::Triple(triple).isGPU(); }

bool Target::runsHere() const {
  // LLVM finds out only some of the features of Arm's CPUs, and the runtime must accept the level anyway.
  size_t length;
  return isOf(llvm::sys::getProcessTriple()) &&
         !attnrt_cpu_lacks(llvm::join(features, " ").c_str(), &length);
}

llvm::Expected<const Target *> attn::lookupTarget(llvm::ArrayRef<const Target *> targets,
                                                  llvm::StringRef level) {
  llvm::SmallVector<llvm::StringRef> levels;
  for (const Target *target : targets) {
    if (target->level == level)
      return target;
    levels.push_back(target->level);
  }
  return llvm::createStringError("expected a target level of " + llvm::join(levels, ", ") +
                                 ", got '" + level + "'");
}
