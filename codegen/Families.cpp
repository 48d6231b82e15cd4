//===- Families.cpp - the list of families and their levels ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/Target.h"
#include "codegen/cpu/Cpu.h"
#include "codegen/gpu/Gpu.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"

using namespace attn;

static std::vector<const TargetFamily *> &families() {
  static std::vector<const TargetFamily *> list = {&kCpuFamily, &kGpuFamily};
  return list;
}

llvm::ArrayRef<const TargetFamily *> attn::getFamilies() { return families(); }

void attn::addFamily(const TargetFamily &family) { families().push_back(&family); }

void attn::registerTargets(mlir::DialectRegistry &registry) {
  for (const TargetFamily *family : getFamilies())
    family->registerInterfaces(registry);
}

llvm::SmallVector<const Target *> attn::getTargets() {
  llvm::SmallVector<const Target *> targets;
  for (const TargetFamily *family : getFamilies())
    llvm::append_range(targets, family->targets);
  return targets;
}

llvm::Expected<llvm::SmallVector<const Target *>> attn::parseTargets(llvm::StringRef list) {
  llvm::SmallVector<const Target *> known = getTargets();
  llvm::SmallPtrSet<const Target *, 4> chosen;
  for (llvm::StringRef name : llvm::split(list, ',')) {
    if (name == "native") {
      const auto *best =
          llvm::find_if(known, [](const Target *target) { return target->runsHere(); });
      if (best == known.end())
        return llvm::createStringError("expected a CPU that runs code of a target level, got '" +
                                       llvm::sys::getHostCPUName() + "'");
      chosen.insert(*best);
    } else if (name == "all" || name.starts_with("all:")) {
      std::string architecture =
          name == "all" ? llvm::sys::getProcessTriple() : name.drop_front(4).str();
      auto levels = llvm::make_filter_range(
          known, [&](const Target *target) { return target->isOf(architecture); });
      if (levels.empty()) {
        llvm::SetVector<llvm::StringRef> names;
        for (const Target *target : known)
          names.insert(llvm::StringRef(target->triple).split('-').first);
        return llvm::createStringError("expected an architecture of " + llvm::join(names, ", ") +
                                       ", got '" + architecture + "'");
      }
      chosen.insert_range(levels);
    } else {
      llvm::Expected<const Target *> target = lookupTarget(known, name);
      if (!target)
        return target.takeError();
      chosen.insert(*target);
    }
  }
  llvm::SmallVector<const Target *> result;
  llvm::copy_if(known, std::back_inserter(result),
                [&](const Target *target) { return chosen.contains(target); });
  auto cpus = llvm::make_filter_range(result, [](const Target *target) { return !target->isForGpu(); });
  for (const Target *target : cpus)
    if (target->triple != (*cpus.begin())->triple)
      return llvm::createStringError("expected levels of one architecture, got '" + list + "'");
  return result;
}
