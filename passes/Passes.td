//===- Passes.td - every pass, in running order ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PASSES_TD
#define ATTN_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// raise
//===----------------------------------------------------------------------===//

def FoldUniform : Pass<"attn-fold-uniform", "::mlir::func::FuncOp"> {
  let summary = "integers computed from positions that are the same everywhere become constants";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def FoldGathers : Pass<"attn-fold-gathers", "::mlir::func::FuncOp"> {
  let summary = "a gather at the coordinates of the loops is a read";
  let description = [{
    A `tensor.extract` in the body of a `linalg.generic` whose indices are the coordinates of loops, perhaps through
    tensors that count and clamps that change nothing, becomes an operand. Sizes must be one value where they are
    equal (`attn-unify-dims` and CSE first).
  }];
}

def RaiseSoftmax : Pass<"attn-raise-softmax", "::mlir::func::FuncOp"> {
  let summary = "find softmax where the graph spells it out";
  let description = [{
    exp(s - max(s)) / sum(exp(s - max(s))), the maximum and the sum along one dimension, becomes `linalg.softmax`.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def SplitMergedBatch : Pass<"attn-split-merged-batch", "::mlir::func::FuncOp"> {
  let summary = "products of matrices keep the batch dimensions that the graph merges for them";
  let description = [{
    A reshape that splits the batch dimension of scores, or merges batch dimensions of what a softmax gave, moves
    over the product that computes or reads them, over the softmax, and over the elementwise ops before and after
    it. Pairs of such reshapes vanish.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def RaiseAttention : Pass<"attn-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "find attention in a linalg graph";
  let description = [{
    Each `linalg.softmax` whose weights multiply values, and whose scores rest on a product of a query and a key,
    becomes an `attn.attention`; what is computed elementwise between the two becomes its score region. Where
    that cannot be shown the graph stays as it is, and a remark at the softmax says why.

    Sizes must not be asked of results (`resolve-shaped-type-result-dims` first): a `tensor.dim` of the scores
    is a use of them.
  }];
  let dependentDialects = ["::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def FoldScale : Pass<"attn-fold-scale", "::mlir::func::FuncOp"> {
  let summary = "constant factors of query and key become the scale";
  let description = [{
    A constant that multiplies or divides the query or the key goes into `scale`, as long as f32 holds it.
  }];
}

def ExtractMask : Pass<"attn-extract-mask", "::mlir::func::FuncOp"> {
  let summary = "fills with -inf that end a score region, and masks that the graph computes, become named masks";
  let description = [{
    A score region that ends in `select(hidden, -inf, score)` says which pairs are kept, and so does a captured
    operand that the mask tests. Where the condition is a conjunction of comparisons that a named mask states, or
    tests of a captured element for zero, it becomes the `mask`; other conditions stay.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// lint, the rules of docs/lint.md: warnings, and the module stays as it is
//===----------------------------------------------------------------------===//

def LintDroppedMask : Pass<"attn-lint-dropped-mask", "::mlir::func::FuncOp"> {
  let summary = "warn of masked scores that nothing reads";
  let description = [{
    A fill or a sum with the scores of a softmax whose result the function drops. Reads a module as imported:
    later the dropped ops are gone.
  }];
}

def LintSoftmaxAxis : Pass<"attn-lint-softmax-axis", "::mlir::func::FuncOp"> {
  let summary = "warn of a softmax along another dimension than the values are summed over";
  let description = [{
    Weights of scores that multiply values in one product or several, none of which sums over the dimension of
    the softmax. Reads a module as imported.
  }];
}

def LintUnusedWeights : Pass<"attn-lint-unused-weights", "::mlir::func::FuncOp"> {
  let summary = "warn of weights that multiply no values, and of what is made of weights and dropped";
  let description = [{
    The softmax of scores that no product reads although there are values for it, and ops on weights whose results
    the function drops. Reads a module as imported: later the dropped ops are gone.
  }];
}

def LintScale : Pass<"attn-lint-scale", "::mlir::func::FuncOp"> {
  let summary = "warn of scores scaled by the root of a size, or by that of the width of all heads";
  let description = [{
    Compares the `scale` of every attention with what the head size and the width of the model make of it. Reads a
    module after `attn-fold-scale`.
  }];
}

def LintEmptyRow : Pass<"attn-lint-empty-row", "::mlir::func::FuncOp"> {
  let summary = "warn of masks that can hide every key of a query, where that gives NaN";
  let description = [{
    Attentions with `empty_row = nan` whose mask is not proved to leave every query a key. Reads a module after
    `attn-extract-mask`. What a mask of the module's own data hides is not known here, and not warned of.
  }];
}

//===----------------------------------------------------------------------===//
// simplify
//===----------------------------------------------------------------------===//

def UnifyDims : Pass<"attn-unify-dims", "::mlir::func::FuncOp"> {
  let summary = "one value for each symbolic size";
  let description = [{
    Sizes are asked of the first argument whose `attn.dims` has the symbol.
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def FoldBiasIntoInit : Pass<"attn-fold-bias-into-init", "::mlir::func::FuncOp"> {
  let summary = "a contraction starts from its bias";
  let description = [{
    A bias added to a `contract` from zero, be it at the start of a longer elementwise body or widened there,
    becomes the init of the `contract`.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def FuseElementwise : Pass<"attn-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "elementwise ops in a row become one";
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect"];
}

def HoistViews : Pass<"attn-hoist-views", "::mlir::func::FuncOp"> {
  let summary = "views of a product become views of its operands";
  let description = [{
    Transpositions, expanded and collapsed shapes and slices of the result of a structured op rename, split,
    merge and narrow its loops; the operands that have the loop follow. A packed projection becomes one
    head-major contraction for each part, over its part of the weights. Attention and elementwise ops get what
    they read in their own order.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FoldTransposes : Pass<"attn-fold-transposes", "::mlir::func::FuncOp"> {
  let summary = "attention reads and writes through its maps";
  let description = [{
    A `linalg.transpose` of an operand or of an output of `attn.attention` becomes its indexing map.
  }];
}

def DecomposeConcat : Pass<"attn-decompose-concat", "::mlir::func::FuncOp"> {
  let summary = "concatenated results are written in place";
  let description = [{
    `tensor.concat` becomes insertions into one `tensor.empty`, which bufferization turns into subviews.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def GroupsToQueries : Pass<"attn-groups-to-queries", "::mlir::func::FuncOp"> {
  let summary = "heads that share the keys of a single query become its queries";
  let description = [{
    Where there is one query, the dimension of query groups and that of queries change places in the indexing maps
    of an attention, unless its mask reads either coordinate.
  }];
}

def UnshareInits : Pass<"attn-unshare-inits", "::mlir::func::FuncOp"> {
  let summary = "every result starts from an init of its own";
  let description = [{
    An op computes in place of its init. A `linalg.fill`, `linalg.broadcast` or `tensor.empty` that several ops would
    compute in place of is repeated for each of them; an argument, or a value with other uses, is copied first by a
    `linalg.copy`, of which a contraction makes the values that its sums start from.
  }];
}

//===----------------------------------------------------------------------===//
// plan
//===----------------------------------------------------------------------===//

def BoundLengths : Pass<"attn-bound-lengths", "::mlir::func::FuncOp"> {
  let summary = "lengths of a mask are no more than the keys";
  let description = [{
    An argument that `#attn.lengths` captures gets `attn.bound`, the number of keys, which the runtime checks.
  }];
}

def CloneTargets : Pass<"attn-clone-targets", "::mlir::ModuleOp"> {
  let summary = "make one nested module for each target level";
}

def PadDepth : Pass<"attn-pad-depth", "::mlir::func::FuncOp"> {
  let summary = "give query and key of head size 0 one element of zeros";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def Plan : Pass<"attn-plan", "::mlir::func::FuncOp"> {
  let summary = "write the plan of every attention";
  let options = [
    Option<"schedule", "schedule", "std::string", [{""}],
           "How attentions become loops; the fastest by prediction unless given">];
}

def PackOperands : Pass<"attn-pack-operands", "::mlir::func::FuncOp"> {
  let summary = "give every contraction an operand whose rows are contiguous along the output's";
  let dependentDialects = ["::attn::AttnDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OutlineWeights : Pass<"attn-outline-weights", "::mlir::ModuleOp"> {
  let summary = "move what depends on weights alone to a function that runs when weights are set";
  let description = [{
    Every function with weights gets a second one, `<name>.pack`, that computes from weights alone, and takes its results
    in place of the weights, as read-only arguments with `attn.packed`.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// schedule
//===----------------------------------------------------------------------===//

def DecomposeAttention : Pass<"attn-decompose-attention", "::mlir::func::FuncOp"> {
  let summary = "the unfused schedule: scores in memory, three passes";
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def PerHead : Pass<"attn-per-head", "::mlir::func::FuncOp"> {
  let summary = "the per-head schedule: a task projects and attends one head";
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def Phased : Pass<"attn-phased", "::mlir::func::FuncOp"> {
  let summary = "the phased schedule: a task attends a tile of queries";
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def Phases : Pass<"attn-phases", "::mlir::func::FuncOp"> {
  let summary = "tasks for what stands outside attention";
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// tile
//===----------------------------------------------------------------------===//

def TileKeys : Pass<"attn-tile-keys", "::mlir::func::FuncOp"> {
  let summary = "turn the attention of a query tile into loops over keys";
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def DecomposeSteps : Pass<"attn-decompose-steps", "::mlir::func::FuncOp"> {
  let summary = "a step as product, update, product";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect"];
}

def ExpandKeyRange : Pass<"attn-expand-key-range"> {
  let summary = "compute the key ranges of query tiles with affine and arith operations";
  let description = [{
    Replaces every `attn.key_range` by affine functions of its operands, derived from the sets of its mask.
    Bounds that do not depend on the tile become constants.

    ```mlir
    %r:4 = attn.key_range rows(%q, %rows) keys(%n) step 128 mask(#attn.causal)
    // becomes lo = full_lo = 0 and
    %hi = affine.min affine_map<()[s0, s1, s2] -> (s0 + s1, s2)>()[%q, %rows, %n]
    %full = affine.min affine_map<()[s0, s1] -> (s0 + 1, s1)>()[%q, %hi]
    %full_hi = affine.apply affine_map<()[s0] -> ((s0 floordiv 128) * 128)>()[%full]
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect"];
}

//===----------------------------------------------------------------------===//
// bufferize
//===----------------------------------------------------------------------===//

def CopyInserted : Pass<"attn-copy-inserted", "::mlir::func::FuncOp"> {
  let summary = "copy what is inserted and was not computed for its place";
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def CopyOverwritten : Pass<"attn-copy-overwritten", "::mlir::func::FuncOp"> {
  let summary = "write in-out arguments in place, and copy before what is read later";
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OutParams : Pass<"attn-out-params", "::mlir::func::FuncOp"> {
  let summary = "turn results into buffers of the caller";
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"];
}

def VerifyBuffers : Pass<"attn-verify-buffers", "::mlir::ModuleOp"> {
  let summary = "refuse writes to inputs, calls and returned buffers";
  let description = [{
    Checks, after bufferization, that no op writes to memory of an argument that is not an output, through views,
    loops and choices; that there is no call; and that no function returns a buffer. Each violation is an error at the
    source location. Nothing is changed.
  }];
}

def NoteExtraWork : Pass<"attn-note-extra-work", "::mlir::func::FuncOp"> {
  let summary = "remark on copies, buffers that are never read and work done twice";
  let description = [{
    A remark at the source location of each copy, of each buffer that nothing reads, of each product that is computed
    twice, and of each bias that is added in a pass of its own. The result is right and takes longer than it should.
    Nothing is changed.
  }];
}

def KeepUnitDims : Pass<"attn-keep-unit-dims", "::mlir::func::FuncOp"> {
  let summary = "write views that keep some dimensions of size 1 and drop others as casts of the whole part";
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def LowerCopies : Pass<"attn-lower-copies", "::mlir::func::FuncOp"> {
  let summary = "turn the copies that bufferization inserted into linalg ops";
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def PlanWorkspace : Pass<"attn-plan-workspace", "::mlir::ModuleOp"> {
  let summary = "make every temporary a slice of a planned workspace";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def OutlineTasks : Pass<"attn-outline-tasks", "::mlir::ModuleOp"> {
  let summary = "make the body of every scf.forall a function";
  let dependentDialects = ["::attn::AttnDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def ShareTasks : Pass<"attn-share-tasks", "::mlir::ModuleOp"> {
  let summary = "compile tasks that differ in their arguments alone once";
}

//===----------------------------------------------------------------------===//
// every stage
//===----------------------------------------------------------------------===//

def MarkStage : Pass<"attn-mark-stage", "::mlir::ModuleOp"> {
  let summary = "note the stage that the module has been through";
  let description = [{
    Sets `attn.stage`, which `attnc --from` reads.
  }];
  let dependentDialects = ["::attn::AttnDialect"];
  let options = [Option<"stage", "stage", "std::string", /*default=*/"", "Its name">];
}

#endif // ATTN_PASSES_PASSES_TD
