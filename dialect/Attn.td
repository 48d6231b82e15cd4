//===- Attn.td - the attn dialect ------------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TD
#define ATTN_DIALECT_ATTN_TD

include "mlir/IR/OpBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::attn";
  let summary = "Attention, its masks and its tile-level steps";
  let description = [{
    The dialect has only what MLIR lacks: attention as one operation on tensors, masks as integer
    sets, the steps of the online softmax, packing, and the launch of parallel tasks. Projections,
    elementwise ops and loops stay in upstream dialects.

    In formulas, Q, K and V are the query, the key and the value, D is the head size of Q and K, and
    E is the head size of V. The iteration space of an attention is `(batch..., q, k, d, e)` with any
    number of batch dimensions; the coordinates of a score are `(batch..., q, k)`.

    Passes may rely on the following in functions of the stage `import`: all ops are pure and work on
    ranked tensors; the dimensions of each result of a structured op of linalg are different loops;
    the sizes of an op agree in every call; no index lies outside its tensor. Importers bring linalg
    of other producers, such as torch-mlir, and TOSA into this form, and refuse the rest. The
    pipelines of attn-opt do this for the ops and their results, and trust sizes and indices.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasCanonicalizer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
  let extraClassDeclaration = [{
    /// Module: the version of the dialect that wrote the file. The verifier refuses later versions.
    static constexpr ::llvm::StringLiteral kVersionAttr = "attn.version";
    static constexpr int64_t kVersion = 1;
    /// Before normalisation, the probability of a pair that is not hidden is at least about 2 to this power. A
    /// probability of 0 would hide the pair. Products of smaller probabilities with values would often be denormal
    /// numbers, and operations on such numbers are slow on some machines.
    static constexpr int kLeastProbabilityExponent = -100;
    /// Module: the name of the stage that wrote the module.
    static constexpr ::llvm::StringLiteral kStageAttr = "attn.stage";
    /// The largest size of a tensor or of a workspace in bytes: the size of a program's address space on x86-64.
    static constexpr int64_t kMaxBytes = int64_t(1) << 47;
    /// Module: the machine that its functions are compiled for, such as an #attn.cpu.
    static constexpr ::llvm::StringLiteral kTargetAttr = "attn.target";
    /// Module: the machines to compile for, an array of targets, best first. The stage `plan` removes the attribute.
    static constexpr ::llvm::StringLiteral kTargetsAttr = "attn.targets";
    /// Module: the type that products of f32 may round their factors to, which is bf16. In the module of an ISA level,
    /// a function has the attribute if some of its products round their factors.
    static constexpr ::llvm::StringLiteral kComputeAttr = "attn.compute";
    /// Argument and result: the name that users see.
    static constexpr ::llvm::StringLiteral kNameAttr = "attn.name";
    /// Argument and result: one string for each dimension, a symbol for a dynamic dimension and "" for a static one.
    static constexpr ::llvm::StringLiteral kDimsAttr = "attn.dims";
    /// Argument: unit; the tensor is a weight, set once and not per call.
    static constexpr ::llvm::StringLiteral kWeightAttr = "attn.weight";
    /// Argument: i64, the number of a result of the same type; the tensor is in-out: the caller owns it, and a call
    /// leaves the elements of this result in it. In `bufferize`, where results become buffers, this result gets the
    /// buffer of the argument; from there on the number only says that the function writes to the argument.
    static constexpr ::llvm::StringLiteral kInOutAttr = "attn.in_out";
    /// Argument and result: unit; the elements, which are i8, are unsigned for users. Integer types in the IR have no
    /// sign.
    static constexpr ::llvm::StringLiteral kUnsignedAttr = "attn.unsigned";
    /// Function: its symbols, an array of #attn.symbol.
    static constexpr ::llvm::StringLiteral kSymbolsAttr = "attn.symbols";
    /// Argument: the bound, a size or a symbol; the runtime checks that every element is in [0, bound].
    static constexpr ::llvm::StringLiteral kBoundAttr = "attn.bound";
    static constexpr ::llvm::StringLiteral kBelowAttr = "attn.below";
    /// linalg.generic: unit; the op adds products of its two inputs to its output, except where the first input is 0.
    static constexpr ::llvm::StringLiteral kSkipsZerosAttr = "attn.skips_zeros";

    // The following attributes exist from the stage `plan` on, in the module of an ISA level.

    /// Product: the register block of the product, an #attn.block.
    static constexpr ::llvm::StringLiteral kBlockAttr = "attn.block";
    /// attn.attention and attn.online_step: the register blocks of the products, a dictionary of #attn.block. `scores`
    /// is the block of the products of queries and keys, and `values` is the block of the products of probabilities and
    /// values. For an attention with a mask, `masked` replaces `values` where the mask applies.
    static constexpr ::llvm::StringLiteral kBlocksAttr = "attn.blocks";
    /// attn.online_step on a GPU: which products the step computes, an #attn.overlap. Without the attribute, the step
    /// computes both products of its own tile.
    static constexpr ::llvm::StringLiteral kOverlapAttr = "attn.overlap";
    /// attn.online_step: i64; the number of tiles of keys and of values that are in faster memory, `stages` in the plan.
    static constexpr ::llvm::StringLiteral kStagesAttr = "attn.stages";
    /// Buffer in the shared memory of a GPU: unit; its tiles have the order of elements that wgmma reads.
    static constexpr ::llvm::StringLiteral kSwizzledAttr = "attn.swizzled";
    /// Product, or another op of a group (ops that are computed in the same tasks): the rows of its tasks, an
    /// #attn.task.
    static constexpr ::llvm::StringLiteral kTaskAttr = "attn.task";
    /// Attention: unit; the calls with one query compute it instead of the attention in the other branch of its scf.if.
    static constexpr ::llvm::StringLiteral kOneQueryAttr = "attn.one_query";
    /// Function: its role for the runtime, "entry", "workspace" or "pack".
    static constexpr ::llvm::StringLiteral kKernelAttr = "attn.kernel";
    /// Argument of an entry: i64; the argument takes the result of @<function>.pack that has this number.
    static constexpr ::llvm::StringLiteral kPackedAttr = "attn.packed";
    /// Argument: unit; a buffer that the function writes.
    static constexpr ::llvm::StringLiteral kOutputAttr = "attn.output";
    /// Last argument of a task: unit; the argument is the workspace of the worker that runs the task, a memref<?xi8>
    /// or, in the LLVM dialect, a pointer.
    static constexpr ::llvm::StringLiteral kScratchAttr = "attn.scratch";
    /// Task of a module for GPUs: its threads and its shared memory, an #attn.launch.
    static constexpr ::llvm::StringLiteral kLaunchAttr = "attn.launch";
    /// Workspace function: the formulas of the sizes that it returns, as text for people.
    static constexpr ::llvm::StringLiteral kTextAttr = "attn.text";
    /// Entry: a dictionary of what was fused and how (docs/report.md). Module: a dictionary of the findings of passes,
    /// such as attentions that `raise` left unfused, extra work, and slow loops.
    static constexpr ::llvm::StringLiteral kReportAttr = "attn.report";
    /// Entry: the schedules of its attentions, in order.
    static constexpr ::llvm::StringLiteral kSchedulesAttr = "attn.schedules";
  }];
}

#endif // ATTN_DIALECT_ATTN_TD
