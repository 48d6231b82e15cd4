//===- Loops.td - a family of machines without vectors, for tests ----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_TARGET_LOOPS_TD
#define ATTN_TEST_TARGET_LOOPS_TD

include "codegen/Codegen.td"
include "dialect/Target.td"
include "passes/plan/Planner.td"
include "mlir/IR/AttrTypeBase.td"

def Loops_Dialect : Dialect {
  let name = "loops";
  let cppNamespace = "::loops";
  let useDefaultAttributePrinterParser = 1;
}

def Loops_TargetAttr : AttrDef<Loops_Dialect, "Target", [
    DeclareAttrInterfaceMethods<Attn_TargetInterface>, DeclareAttrInterfaceMethods<Attn_PlannerInterface>,
    DeclareAttrInterfaceMethods<Attn_CodegenInterface>]> {
  let mnemonic = "target";
  let summary = "a machine that runs one operation on one element at a time";
  let parameters = (ins StringRefParameter<"name of the level">:$level);
  let assemblyFormat = "`<` $level `>`";
}

#endif // ATTN_TEST_TARGET_LOOPS_TD
