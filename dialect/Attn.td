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

    Letters: B batch, H heads, S length, Q K V query, key and value, D head size of Q and K, E head
    size of V, m row maximum, l row sum. An iteration space is always `(batch..., q, k, d, e)` with
    any number of batch dimensions; the scalar coordinates of a score are `(batch..., q, k)`.
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
    /// Module: the version of the dialect that wrote the file. Newer files are refused.
    static constexpr ::llvm::StringLiteral kVersionAttr = "attn.version";
    static constexpr int64_t kVersion = 1;
    /// The probability of a pair that is not hidden is at least about two to this power before it is normalised. A
    /// probability of 0 would hide the pair, and products of smaller probabilities with values would often be denormal
    /// numbers, for which some machines take two hundred cycles.
    static constexpr int kLeastProbabilityExponent = -100;
    /// Module: the name of the stage that wrote it.
    static constexpr ::llvm::StringLiteral kStageAttr = "attn.stage";
    /// The most bytes of a tensor or of a workspace: as many as a program can address on x86-64.
    static constexpr int64_t kMaxBytes = int64_t(1) << 47;
    /// Module: the machine that its functions are compiled for, such as an #attn.cpu.
    static constexpr ::llvm::StringLiteral kTargetAttr = "attn.target";
    /// Module: the machines to compile for, an array of targets, best first. The stage `plan` removes the attribute.
    static constexpr ::llvm::StringLiteral kTargetsAttr = "attn.targets";
    /// Module: the type that products of f32 may round their factors to, which is bf16. In the module of an ISA level,
    /// a function has the attribute if some of its products round their factors.
    static constexpr ::llvm::StringLiteral kComputeAttr = "attn.compute";
    /// Argument and result: its name for users.
    static constexpr ::llvm::StringLiteral kNameAttr = "attn.name";
    /// Argument and result: one string for each axis, the symbol of a dynamic dimension or "" for a static one.
    static constexpr ::llvm::StringLiteral kDimsAttr = "attn.dims";
    /// Argument: unit; the tensor is a weight, set once and not per call.
    static constexpr ::llvm::StringLiteral kWeightAttr = "attn.weight";
    /// Argument: i64, the number of a result of the same type; the tensor is in-out: the caller owns it, and a call
    /// leaves the elements of this result in it. In `bufferize`, where results become buffers, this result gets the
    /// buffer of the argument; from there on the number only says that the function writes to the argument.
    static constexpr ::llvm::StringLiteral kInOutAttr = "attn.in_out";
    /// Argument and result: unit; the elements, i8, are unsigned to users. Types in the IR have no sign.
    static constexpr ::llvm::StringLiteral kUnsignedAttr = "attn.unsigned";
    /// Function: its symbols, an array of #attn.symbol.
    static constexpr ::llvm::StringLiteral kSymbolsAttr = "attn.symbols";
    /// Input: a size or a symbol; every element must be in [0, bound]. The runtime checks this.
    static constexpr ::llvm::StringLiteral kBoundAttr = "attn.bound";
    /// linalg.generic: unit; the op adds products of its two inputs to its output, except where the first input is 0.
    static constexpr ::llvm::StringLiteral kSkipsZerosAttr = "attn.skips_zeros";

    // From plan on, in the module of an ISA level:

    /// Product: the register block that code generation uses for it, an #attn.block.
    static constexpr ::llvm::StringLiteral kBlockAttr = "attn.block";
    /// Attention, or a step of one: the register blocks of its products, a dictionary of #attn.block. `scores` is the
    /// block of the products of queries and keys. `values` is the block of the products of probabilities and values;
    /// an attention has `masked` as well, for tiles in which some probabilities are 0.
    static constexpr ::llvm::StringLiteral kBlocksAttr = "attn.blocks";
    /// attn.online_step on a GPU: which products the step computes, an #attn.overlap. Without the attribute, the step
    /// computes both products of its own tile.
    static constexpr ::llvm::StringLiteral kOverlapAttr = "attn.overlap";
    /// Buffer in the shared memory of a GPU: unit; its tiles have the order of elements that wgmma reads.
    static constexpr ::llvm::StringLiteral kSwizzledAttr = "attn.swizzled";
    /// Product, or another op of a group (ops that are computed in the same tasks): the rows of its tasks, an
    /// #attn.task.
    static constexpr ::llvm::StringLiteral kTaskAttr = "attn.task";
    /// Function: its role for the runtime, "entry", "workspace" or "pack".
    static constexpr ::llvm::StringLiteral kKernelAttr = "attn.kernel";
    /// Argument of an entry: i64; the argument takes the result of @<function>.pack that has this number.
    static constexpr ::llvm::StringLiteral kPackedAttr = "attn.packed";
    /// Argument: unit; a buffer that the function writes.
    static constexpr ::llvm::StringLiteral kOutputAttr = "attn.output";
    /// Last argument of a task, memref<?xi8>, and in the LLVM dialect the pointer to it: unit; the workspace of the
    /// worker that runs the task.
    static constexpr ::llvm::StringLiteral kScratchAttr = "attn.scratch";
    /// Task of a module for GPUs: its threads and its shared memory, an #attn.launch.
    static constexpr ::llvm::StringLiteral kLaunchAttr = "attn.launch";
    /// Workspace function: the formula of its size, as text for people to read.
    static constexpr ::llvm::StringLiteral kTextAttr = "attn.text";
    /// Entry: a dictionary of what was fused and how (docs/report.md). Module: the attentions that `raise` left
    /// unfused, and the extra work and slow loops that later stages found.
    static constexpr ::llvm::StringLiteral kReportAttr = "attn.report";
    /// Entry: the schedules of its attentions, in order.
    static constexpr ::llvm::StringLiteral kSchedulesAttr = "attn.schedules";
  }];
}

#endif // ATTN_DIALECT_ATTN_TD
