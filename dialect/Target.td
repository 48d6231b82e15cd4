//===- Target.td - what a module is compiled for ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A family of machines, such as CPUs, is an attribute with this interface. The attribute has two more interfaces:
// PlannerInterface (passes/plan/Planner.td) plans attentions and products; CodegenInterface (codegen/Codegen.td) adds
// passes and moves code into a library. The attribute gets these two as external models, so the dialect does not depend
// on passes or codegen.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_TARGET_TD
#define ATTN_DIALECT_TARGET_TD

include "mlir/IR/OpBase.td"

def Attn_TargetInterface : AttrInterface<"TargetInterface"> {
  let cppNamespace = "::attn";
  let description = [{ A machine that a module can be compiled for. }];
  let methods = [
    InterfaceMethod<[{
        The name of the set of instructions that code may use, such as "x86-64-v3". Modules and compiled functions are
        named after this set, and users select the target by this name.
      }], "::llvm::StringRef", "getLevel">
  ];
}

#endif // ATTN_DIALECT_TARGET_TD
