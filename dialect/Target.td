//===- Target.td - what a module is compiled for ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A family of machines, such as CPUs, is an attribute with this interface. Two more interfaces of the same attribute
// hold what the family decides: PlannerInterface (passes/plan/Planner.td) the plans of attentions and products,
// CodegenInterface (codegen/Codegen.td) the passes from tiles to the machine, and the code that becomes a library. They
// are external models, so the dialect depends on neither.
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
        The name of the instructions that code may use, such as "x86-64-v3". Modules and compiled functions are named
        after it, and users select it by this name.
      }], "::llvm::StringRef", "getLevel">
  ];
}

#endif // ATTN_DIALECT_TARGET_TD
