//===- Codegen.td - targets that generate code -----------------------------===//
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
    How the module of a level becomes machine code. Target attributes implement this interface, most of them through
    an external model.
  }];
  let methods = [
    InterfaceMethod<[{
        Adds the passes of this target to the end of `stage`. They run on the module of a level. The passes of
        `bufferize` place temporaries in a workspace and outline each task into a function. The passes of `vectorize`
        leave only ops that the lowering to LLVM accepts.
      }], "void", "addPasses", (ins "::llvm::StringRef":$stage, "::mlir::OpPassManager &":$manager)>,
    InterfaceMethod<[{
        Returns the description of the level, or an error if the family has no level of this name: the IR of a stage
        file that a user edited may name any level.
      }], "::llvm::Expected<const ::attn::Target *>", "getDescription">,
    InterfaceMethod<[{
        Moves the code of `level`, the module of a level after `vectorize`, into `library`, and names each function
        <function>.<level>.
      }], "::llvm::LogicalResult", "embed", (ins "::mlir::ModuleOp":$level, "::mlir::ModuleOp":$library)>
  ];
}

#endif // ATTN_CODEGEN_CODEGEN_TD
