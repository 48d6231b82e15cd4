//===- Codegen.td - the code that a family of machines makes ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CODEGEN_TD
#define ATTN_CODEGEN_CODEGEN_TD

include "mlir/IR/OpBase.td"

def Attn_CodegenInterface : AttrInterface<"CodegenInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    How a module becomes code of one machine. A target attribute has this interface, mostly as an external model.
  }];
  let methods = [
    InterfaceMethod<[{
        Adds the passes of this machine to the end of `stage`. They run on the module of a level. Those of `bufferize`
        cut temporaries out of a workspace and make functions of tasks; those of `vectorize` leave nothing but
        what the lowering to LLVM accepts.
      }], "void", "addPasses", (ins "::llvm::StringRef":$stage, "::mlir::OpPassManager &":$manager)>,
    InterfaceMethod<[{
        The description of the level, or an error if the family has no level of this name: a stage file may contain any
        name.
      }], "::llvm::Expected<const ::attn::Target *>", "getDescription">,
    InterfaceMethod<[{
        Moves the code of `level`, the module of a level after `vectorize`, into `library`, and names each function
        <function>.<level>.
      }], "::llvm::LogicalResult", "embed", (ins "::mlir::ModuleOp":$level, "::mlir::ModuleOp":$library)>
  ];
}

#endif // ATTN_CODEGEN_CODEGEN_TD
