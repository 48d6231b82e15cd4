//===- SeparateScratch.cpp - temporaries of a task do not overlap -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %scratch = llvm.getelementptr %workspaces[%n] {attn.scratch} : (!llvm.ptr, i64) -> !llvm.ptr, i8
//   %b = llvm.getelementptr %scratch[64] : (!llvm.ptr) -> !llvm.ptr, i8
//   %p = llvm.getelementptr %scratch[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
//   %q = llvm.getelementptr %b[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
//   %x = llvm.load %p : !llvm.ptr -> f32
//   llvm.store %x, %q : f32, !llvm.ptr
// ==>
//   %x = llvm.load %p {alias_scopes = [#scratch_0], noalias_scopes = [#scratch_64]} : !llvm.ptr -> f32
//   llvm.store %x, %q {alias_scopes = [#scratch_64], noalias_scopes = [#scratch_0]} : f32, !llvm.ptr
//
// The temporaries of a task are disjoint parts of one workspace (attn-plan-workspace), but all their addresses have one
// base pointer. With variable indices, LLVM must therefore assume that they may overlap: it would neither keep a sum in
// a register nor vectorise a loop that reads one temporary and writes another. The offset of a temporary identifies it,
// because attn-plan-workspace uses no offset twice in a task. The pass changes only llvm.load and llvm.store. It leaves
// two kinds of these accesses unchanged: accesses to temporaries at offsets that are not constant, and accesses to
// elements of one byte. The GEP of such an element looks like the GEP of a temporary, so its offset does not identify a
// temporary.
// Test: test/codegen/emit/separate-scratch.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/emit/Passes.h"
#include "dialect/Attn.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/MapVector.h"

namespace attn {
#define GEN_PASS_DEF_SEPARATESCRATCH
#include "codegen/emit/Passes.h.inc"
} // namespace attn

using namespace mlir;

/// The offset of the temporary that `address` points into, in the scratch memory of the task. Returns none if `address`
/// does not point into scratch memory, or if the offset is not constant.
static std::optional<int64_t> findTemporary(Value address) {
  std::optional<int64_t> offset = 0;
  while (auto step = address.getDefiningOp<LLVM::GEPOp>()) {
    if (step->hasAttr(attn::AttnDialect::kScratchAttr))
      return offset;
    // Only the step from the scratch memory itself counts. The loop visits this step last.
    auto index = step.getIndices().size() == 1 ? dyn_cast<IntegerAttr>(*step.getIndices().begin())
                                               : IntegerAttr();
    bool isBytes = step.getElemType().isInteger(8);
    offset = !isBytes ? std::optional<int64_t>(0)
             : index  ? std::optional(index.getInt())
                      : std::nullopt;
    address = step.getBase();
  }
  return std::nullopt;
}

/// Whether the elements that `access` loads or stores have at most one byte.
static bool isOfBytes(Operation *access) {
  auto isByte = [](Type type) {
    return getElementTypeOrSelf(type).isIntOrFloat() &&
           getElementTypeOrSelf(type).getIntOrFloatBitWidth() <= 8;
  };
  return llvm::any_of(access->getOperandTypes(), isByte) ||
         llvm::any_of(access->getResultTypes(), isByte);
}

namespace {
struct SeparateScratch : attn::impl::SeparateScratchBase<SeparateScratch> {
  void runOnOperation() override {
    getOperation().walk([&](LLVM::LLVMFuncOp function) { separate(function); });
  }

  void separate(LLVM::LLVMFuncOp function) {
    llvm::MapVector<int64_t, SmallVector<LLVM::AliasAnalysisOpInterface>> accesses;
    function.walk([&](Operation *op) {
      if (!isa<LLVM::LoadOp, LLVM::StoreOp>(op) || isOfBytes(op))
        return;
      auto access = cast<LLVM::AliasAnalysisOpInterface>(op);
      if (std::optional<int64_t> offset = findTemporary(access.getAccessedOperands().front()))
        accesses[*offset].push_back(access);
    });
    if (accesses.size() < 2)
      return;
    Builder builder(&getContext());
    StringAttr name = builder.getStringAttr(function.getName());
    auto domain = LLVM::AliasScopeDomainAttr::get(&getContext(), name, name);
    llvm::MapVector<int64_t, Attribute> scopes;
    for (auto &[offset, list] : accesses) {
      StringAttr id = builder.getStringAttr(function.getName() + ".scratch_" + Twine(offset));
      scopes[offset] = LLVM::AliasScopeAttr::get(&getContext(), id, domain, id);
    }
    for (auto &[offset, list] : accesses) {
      SmallVector<Attribute> others;
      for (auto [other, scope] : scopes)
        if (other != offset)
          others.push_back(scope);
      for (LLVM::AliasAnalysisOpInterface access : list) {
        access.setAliasScopes(builder.getArrayAttr(scopes[offset]));
        access.setNoAliasScopes(builder.getArrayAttr(others));
      }
    }
  }
};
} // namespace
