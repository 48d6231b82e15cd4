//===- Target.cpp - the list of targets ------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/Target.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace attn;

namespace attn::targets {
extern const Target x86_64, x86_64_v3, x86_64_v4;
} // namespace attn::targets

llvm::ArrayRef<const Target *> attn::getTargets() {
  static const Target *const kTargets[] = {&targets::x86_64_v4, &targets::x86_64_v3,
                                           &targets::x86_64};
  return kTargets;
}

TargetAttr Target::getAttr(mlir::MLIRContext *context) const {
  return TargetAttr::get(context, level, lanes, registers, fma, l1, l2, scalef, halves);
}

/// `architecture` is a target triple, or the first component of one.
static bool isOf(const Target &target, llvm::StringRef architecture) {
  return llvm::Triple(target.triple).getArch() == llvm::Triple(architecture).getArch();
}

bool Target::runsHere() const {
  static const llvm::StringMap<bool> kHostFeatures = llvm::sys::getHostCPUFeatures();
  return isOf(*this, llvm::sys::getProcessTriple()) &&
         llvm::all_of(features,
                      [](llvm::StringRef feature) { return kHostFeatures.lookup(feature); });
}

llvm::Expected<const Target *> attn::lookupTarget(llvm::StringRef level) {
  llvm::SmallVector<llvm::StringRef> levels;
  for (const Target *target : getTargets()) {
    if (target->level == level)
      return target;
    levels.push_back(target->level);
  }
  return llvm::createStringError("expected a target level of " + llvm::join(levels, ", ") +
                                 ", got '" + level + "'");
}

llvm::Expected<llvm::SmallVector<const Target *>> attn::parseTargets(llvm::StringRef list) {
  llvm::SmallPtrSet<const Target *, 4> chosen;
  for (llvm::StringRef name : llvm::split(list, ',')) {
    if (name == "native") {
      const auto *best =
          llvm::find_if(getTargets(), [](const Target *target) { return target->runsHere(); });
      if (best == getTargets().end())
        return llvm::createStringError("expected a CPU that some target level fits, got '" +
                                       llvm::sys::getHostCPUName() + "'");
      chosen.insert(*best);
    } else if (name == "all" || name.starts_with("all:")) {
      std::string architecture =
          name == "all" ? llvm::sys::getProcessTriple() : name.drop_front(4).str();
      auto levels = llvm::make_filter_range(
          getTargets(), [&](const Target *target) { return isOf(*target, architecture); });
      if (levels.empty())
        return llvm::createStringError("expected an architecture that has levels, got '" +
                                       architecture + "'");
      chosen.insert_range(levels);
    } else {
      llvm::Expected<const Target *> target = lookupTarget(name);
      if (!target)
        return target.takeError();
      chosen.insert(*target);
    }
  }
  llvm::SmallVector<const Target *> result;
  llvm::copy_if(getTargets(), std::back_inserter(result),
                [&](const Target *target) { return chosen.contains(target); });
  llvm::StringRef triple = result.front()->triple;
  for (const Target *target : result)
    if (target->triple != triple)
      return llvm::createStringError("expected levels of one architecture, got '" + list + "'");
  return result;
}
