//===- Passes.td - the passes of each stage from raise to bufferize --------===//
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

def FillInits : Pass<"attn-fill-inits", "::mlir::func::FuncOp"> {
  let summary = "use a linalg.fill as the init of every reduction that starts from equal elements";
  let description = [{
    If the init of a reduction is an `arith.constant` with equal elements, or a `linalg.generic` that yields a scalar, a
    `linalg.fill` replaces the init. IR before and after: passes/raise/FillInits.cpp.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FoldUniform : Pass<"attn-fold-uniform", "::mlir::func::FuncOp"> {
  let summary = "replace integer tensors that are computed from positions and have equal elements with constants";
  let description = [{
    Computes the elements of integer and boolean tensors that depend on no argument, with MLIR's own folders. A linalg
    op whose result has equal elements becomes an `arith.constant`. IR before and after: passes/raise/FoldUniform.cpp.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def FoldGathers : Pass<"attn-fold-gathers", "::mlir::func::FuncOp"> {
  let summary = "replace a tensor.extract at the loop coordinates of a linalg.generic with an operand of the op";
  let description = [{
    If the body of a `linalg.generic` has a `tensor.extract` whose indices are coordinates of the loops, the tensor
    becomes an operand of the `linalg.generic`. The indices may come from tensors of positions, and may be clamped to
    limits that no index exceeds. Equal sizes must be the same SSA value, so `attn-unify-dims` and CSE run first. IR
    before and after: passes/raise/FoldGathers.cpp.
  }];
}

def RaiseSoftmax : Pass<"attn-raise-softmax", "::mlir::func::FuncOp"> {
  let summary = "replace linalg ops that together compute a softmax with linalg.softmax";
  let description = [{
    exp(s - max(s)) / sum(exp(s - max(s))), with the maximum and the sum along one dimension, becomes `linalg.softmax`,
    and so do exp(log_softmax(s)), exp(s - logsumexp(s)), and the same with exp2 or a constant factor of s.
    IR before and after: passes/raise/RaiseSoftmax.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def SplitMergedBatch : Pass<"attn-split-merged-batch", "::mlir::func::FuncOp"> {
  let summary = "move reshapes of merged batch dimensions past the products, the softmax and the elementwise ops";
  let description = [{
    A reshape that splits the batch dimension of scores moves before the product that computes the scores. A reshape
    that merges batch dimensions of probabilities moves behind the product that reads the probabilities. Both kinds of
    reshapes also move past the softmax and past the elementwise ops around it. Where a split and a merge meet, they
    cancel out, so the products keep their batch dimensions. IR before and after: passes/raise/SplitMergedBatch.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def MergeGrids : Pass<"attn-merge-grids", "::mlir::func::FuncOp"> {
  let summary = "compute elementwise ops on split dimensions, whose result is merged again, on merged dimensions";
  let description = [{
    Elementwise ops between a `tensor.expand_shape` and a `tensor.collapse_shape` that undoes it become ops on the
    dimensions before the split. IR before and after: passes/raise/MergeGrids.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def MergeValues : Pass<"attn-merge-values", "::mlir::func::FuncOp"> {
  let summary = "multiply the probabilities of one softmax with all their values at once";
  let description = [{
    Several products that read the probabilities of one softmax become one product with the concatenated values, and
    slices of its result. IR before and after: passes/raise/MergeValues.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def RowsAfterValues : Pass<"attn-rows-after-values", "::mlir::func::FuncOp"> {
  let summary = "move ops on whole rows of probabilities behind the product with the values";
  let description = [{
    An elementwise op that multiplies or divides each row of probabilities by a number, or sets rows to 0, moves behind
    the product that reads its result. IR before and after: passes/raise/RowsAfterValues.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def RaiseAttention : Pass<"attn-raise-attention", "::mlir::func::FuncOp"> {
  let summary = "replace a linalg.softmax and the products around it with attn.attention";
  let description = [{
    Each `linalg.softmax` whose probabilities multiply values, and whose scores are computed from a product of a query
    and a key, becomes an `attn.attention`; the elementwise ops between the product and the softmax become its score
    region. If the pass cannot prove that the graph has this form, the graph stays as it is, and a remark at the softmax
    says why. There is no remark if the probabilities reach neither a product nor a result of the function.

    A `tensor.dim` of the scores would count as a use of the scores. So `resolve-shaped-type-result-dims` runs first;
    after this pass, no op reads the sizes of results. IR before and after: passes/raise/RaiseAttention.cpp.
  }];
  let dependentDialects = ["::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def FoldScale : Pass<"attn-fold-scale", "::mlir::func::FuncOp"> {
  let summary = "move constant factors of the query and key of an attn.attention into its scale";
  let description = [{
    A constant that multiplies or divides the query or the key becomes part of `scale`, as long as f32 can hold the
    product. IR before and after: passes/raise/FoldScale.cpp.
  }];
}

def ExtractMask : Pass<"attn-extract-mask", "::mlir::func::FuncOp"> {
  let summary = "move fills of the score region of an attn.attention, and computed mask tensors, to the mask";
  let description = [{
    The condition of a `select(hidden, -inf, score)` at the end of the score region says which pairs are kept, and so
    does a captured operand that the mask tests. The pass splits each of these conditions into parts that must all hold.
    A part becomes a named mask that states it, a test of a captured element or, if it does not depend on the scores,
    an element of a boolean tensor that the pass computes. A finite number of at most -1000 in place of -inf, or added
    to the score, becomes the `fill` of the attention. IR before and after: passes/raise/ExtractMask.cpp.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// lint: the rules of docs/lint.md; they warn and do not change the module
//===----------------------------------------------------------------------===//

def LintDroppedMask : Pass<"attn-lint-dropped-mask", "::mlir::func::FuncOp"> {
  let summary = "warn about ops that mask scores and whose results nothing reads";
  let description = [{
    Warns about an op that fills the scores of a softmax, or adds to them, if the function drops the result. The pass
    reads the imported module, because later passes remove the dropped ops. Example: passes/lint/DroppedMask.cpp.
  }];
}

def LintSoftmaxAxis : Pass<"attn-lint-softmax-axis", "::mlir::func::FuncOp"> {
  let summary = "warn about a linalg.softmax over a dimension that no product with its probabilities sums over";
  let description = [{
    Warns if the probabilities multiply values in one product or several, and none of these products sums over the
    dimension of the softmax. The pass reads the imported module. Example: passes/lint/SoftmaxAxis.cpp.
  }];
}

def LintUnusedProbabilities : Pass<"attn-lint-unused-probabilities", "::mlir::func::FuncOp"> {
  let summary = "warn about probabilities that multiply no values, and about dropped ops on probabilities";
  let description = [{
    Warns about a softmax of scores if its probabilities multiply no values although the graph has values, and about ops
    on probabilities if the function drops their results. The pass reads the imported module, because later passes
    remove the dropped ops. Example: passes/lint/UnusedProbabilities.cpp.
  }];
}

def LintScale : Pass<"attn-lint-scale", "::mlir::func::FuncOp"> {
  let summary = "warn about an attn.attention whose scale is the root of a size, or 1 over the root of the model width";
  let description = [{
    Compares the `scale` of every attention with the roots of the head size and of the width of the model. The pass
    reads the module after `attn-fold-scale`. Example: passes/lint/Scale.cpp.
  }];
}

def LintEmptyRow : Pass<"attn-lint-empty-row", "::mlir::func::FuncOp"> {
  let summary = "warn about an attn.attention whose mask can hide every key of a query and thus make its output NaN";
  let description = [{
    Warns about attentions with `empty_row = nan` and without a sink, unless every query is proved to keep a key. The
    pass reads the module after `attn-extract-mask`. It does not read weights, so it does not warn about masks that are
    computed from weights alone. Example: passes/lint/EmptyRow.cpp.
  }];
}

//===----------------------------------------------------------------------===//
// simplify
//===----------------------------------------------------------------------===//

def UnifyDims : Pass<"attn-unify-dims", "::mlir::func::FuncOp"> {
  let summary = "read each size that has a symbol from the first argument with this symbol";
  let description = [{
    A `tensor.dim` of a size with a symbol is replaced with a `tensor.dim` of the first argument whose `attn.dims` has
    the symbol, so that equal sizes are one value. IR before and after: passes/simplify/UnifyDims.cpp.
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def FoldBiasIntoInit : Pass<"attn-fold-bias-into-init", "::mlir::func::FuncOp"> {
  let summary = "make a bias that is added to a linalg contraction the init of the contraction";
  let description = [{
    A bias that is added to a contraction which starts from zero becomes the init of the contraction. The addition may
    be the start of a longer elementwise body, and the body may widen the bias. IR before and after:
    passes/simplify/FoldBiasIntoInit.cpp.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def FuseElementwise : Pass<"attn-fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "fuse chains of elementwise linalg ops into one linalg.generic";
  let description = [{
    Fuses an elementwise op into the reader of its result, if there is only one reader, and if this reader is
    elementwise too and reads each element once. IR before and after: passes/simplify/FuseElementwise.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect"];
}

def HoistViews : Pass<"attn-hoist-views", "::mlir::func::FuncOp"> {
  let summary = "turn views of the results of linalg ops into views of their operands";
  let description = [{
    A transposition, an expanded or collapsed shape, or a slice of the result of a structured op becomes a change of the
    loops of this op, and a view of each operand that has these loops. A packed projection becomes one contraction for
    each part of its weights, with a result that is laid out head by head. Attention and elementwise ops then read their
    operands in the order of their own loops. IR before and after: passes/simplify/HoistViews.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FoldTransposes : Pass<"attn-fold-transposes", "::mlir::func::FuncOp"> {
  let summary = "fold a linalg.transpose of an operand or output of attn.attention into its indexing map";
  let description = [{
    The transposition of an output folds only if no other op reads the output. IR before and after:
    passes/simplify/FoldTransposes.cpp.
  }];
}

def TransposeCaptures : Pass<"attn-transpose-captures", "::mlir::func::FuncOp"> {
  let summary = "transpose captured operands of attn.attention that products compute into the order of the scores";
  let description = [{
    Runs before attn-hoist-views, which moves the transposition into the product. IR before and after:
    passes/simplify/TransposeCaptures.cpp.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def MultiplyBeforeGather : Pass<"attn-multiply-before-gather", "::mlir::func::FuncOp"> {
  let summary = "multiply by a table before gathering, in place of multiplying by rows gathered from it";
  let description = [{
    Applies if the table has few rows, and the product has fewer rows than a row of the table has elements. IR before
    and after: passes/simplify/MultiplyBeforeGather.cpp.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def DecomposeConcat : Pass<"attn-decompose-concat", "::mlir::func::FuncOp"> {
  let summary = "replace tensor.concat with insertions, so that its operands are written in place";
  let description = [{
    `tensor.concat` becomes insertions into one `tensor.empty`, which bufferization turns into subviews. IR before and
    after: passes/simplify/DecomposeConcat.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::tensor::TensorDialect"];
}

def GroupsToQueries : Pass<"attn-groups-to-queries", "::mlir::func::FuncOp"> {
  let summary = "turn the heads that share the keys of a single query into the queries of an attn.attention";
  let description = [{
    If there is one query, the dimension of query groups (the heads that share keys) and the dimension of queries are
    swapped in the indexing maps of an attention, unless the mask depends on one of these coordinates, or a single head
    of keys has more than a few groups. IR before and after: passes/simplify/GroupsToQueries.cpp.
  }];
}

def UnshareInits : Pass<"attn-unshare-inits", "::mlir::func::FuncOp"> {
  let summary = "give every destination-style op and loop an init of its own";
  let description = [{
    An op computes its result in the memory of its init. If several ops share a `linalg.fill`, `linalg.broadcast` or
    `tensor.empty` as init, each of them gets one of its own. A `linalg.copy` copies any other init that is an argument
    or has other uses, if the op reads the elements of the init; on CPUs, code generation starts the sums of a
    contraction from the source of the copy. IR before and after: passes/simplify/UnshareInits.cpp.
  }];
}

//===----------------------------------------------------------------------===//
// plan
//===----------------------------------------------------------------------===//

def BoundLengths : Pass<"attn-bound-lengths", "::mlir::func::FuncOp"> {
  let summary = "bound the argument that a #attn.lengths mask captures by the number of keys";
  let description = [{
    An argument that `#attn.lengths` captures gets the number of keys as its `attn.bound`, and the runtime refuses
    lengths beyond this bound. IR before and after: passes/plan/BoundLengths.cpp.
  }];
}

def CloneTargets : Pass<"attn-clone-targets", "::mlir::ModuleOp"> {
  let summary = "clone the functions of a module into one nested module for each ISA level";
  let description = [{
    For each target in `attn.targets` of the module, the pass creates a nested module that has this target as
    `attn.target` and copies of all functions, unless the code would be the same as the code for a later target. Only
    declarations stay in the outer module. IR before and after: passes/plan/CloneTargets.cpp.
  }];
}

def RoundFactors : Pass<"attn-round-factors", "::mlir::func::FuncOp"> {
  let summary = "round the factors of products of f32 to the type of attn.compute";
  let description = [{
    Applies to products and attentions of f32 in a module with `attn.compute`, if the machine multiplies factors of this
    type faster. IR before and after: passes/plan/RoundFactors.cpp.
  }];
  let options = [Option<"schedule", "schedule", "std::string", [{""}],
                        "The schedule of every attention; if empty, the one that is predicted to be fastest">];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OneQuery : Pass<"attn-one-query", "::mlir::func::FuncOp"> {
  let summary = "give an attn.attention with any number of queries a second form for calls with one query";
  let description = [{
    The second form gets a plan of its own. Functions that also compute products stay unchanged. IR before and after:
    passes/plan/OneQuery.cpp.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"];
}

def PadDepth : Pass<"attn-pad-depth", "::mlir::func::FuncOp"> {
  let summary = "replace the query and key of an attn.attention of head size 0 with zeros of head size 1";
  let description = [{
    Tiling takes slices of query and key, and no slice of a dimension of size 0 is valid. IR before and after:
    passes/plan/PadDepth.cpp.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def Plan : Pass<"attn-plan", "::mlir::func::FuncOp"> {
  let summary = "write the plan attribute of every attn.attention";
  let description = [{
    The plan is the one that the planner of the machine predicts to be fastest, among the schedules that the option
    allows. Without the option, the schedule `unfused` is used only if there is no other. An attention that has a plan
    keeps it. IR before and after: passes/plan/Plan.cpp.
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", [{""}],
           "The schedule of every attention; if empty, the one that is predicted to be fastest">,
    Option<"workers", "workers", "int64_t", "0",
           "The number of threads that will compute the tasks; 0 if it is unknown">];
}

def JoinHeads : Pass<"attn-join-heads", "::mlir::func::FuncOp"> {
  let summary = "compute queries, keys and values of a phased attention with one product each for all heads";
  let description = [{
    Applies if the head size is not a multiple of the lanes: the columns of one head then leave lanes empty, but the
    columns of all heads together fill the vectors. IR before and after: passes/plan/JoinHeads.cpp.
  }];
  let dependentDialects = ["::attn::AttnDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def PlanProducts : Pass<"attn-plan-products", "::mlir::func::FuncOp"> {
  let summary = "write the register block and the rows of a task of every product";
  let description = [{
    The pass writes the attributes `attn.block` and `attn.task` unless a product already has them. IR before and
    after: passes/plan/PlanProducts.cpp.
  }];
  let dependentDialects = ["::attn::AttnDialect"];
}

def GroupRows : Pass<"attn-group-rows", "::mlir::func::FuncOp"> {
  let summary = "group the ops that compute row by row and share tasks of rows";
  let description = [{
    The ops of a group get the same `attn.task`, which has the number of the group. The weights of a group take at most
    half of L2. A function that already has a group stays unchanged. IR before and after: passes/plan/GroupRows.cpp.
  }];
  let dependentDialects = ["::attn::AttnDialect"];
}

def CopyRows : Pass<"attn-copy-rows", "::mlir::func::FuncOp"> {
  let summary = "let products read copies of arguments whose rows would share sets of the cache";
  let description = [{
    The copies are temporaries, whose rows can have another distance. IR before and after: passes/plan/CopyRows.cpp.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def FillInRegion : Pass<"attn-fill-in-region", "::mlir::func::FuncOp"> {
  let summary = "move the fill of an attention whose plan computes all pairs into the score region";
  let description = [{
    Other plans keep the `fill`, and their loops over keys skip the pairs that the mask hides. IR before and after:
    passes/plan/FillInRegion.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect"];
}

def PackMasks : Pass<"attn-pack-masks", "::mlir::func::FuncOp"> {
  let summary = "pack dense masks of attentions into one bit for each pair";
  let description = [{
    An `attn.pack_mask` packs the mask once for all heads and attentions that read it. IR before and after:
    passes/plan/PackMasks.cpp.
  }];
  let dependentDialects = ["::attn::AttnDialect", "::mlir::affine::AffineDialect", "::mlir::tensor::TensorDialect"];
}

def PackOperands : Pass<"attn-pack-operands", "::mlir::func::FuncOp"> {
  let summary = "pack or transpose operands of contractions, so that their rows are contiguous along the output";
  let description = [{
    A weight is packed into panels (`attn.pack`); another operand is transposed (`linalg.transpose`), unless its rows
    are already contiguous. IR before and after: passes/plan/PackOperands.cpp.
  }];
  let dependentDialects = ["::attn::AttnDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OutlineWeights : Pass<"attn-outline-weights", "::mlir::ModuleOp"> {
  let summary = "move the ops that depend on weights alone to a function that runs when weights are set";
  let description = [{
    For every function `<name>` with weights, the pass adds a function `<name>.pack`, which computes from weights alone.
    `<name>` takes the results of `<name>.pack` in place of the weights, as read-only arguments with `attn.packed`. IR
    before and after: passes/plan/OutlineWeights.cpp.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// schedule
//===----------------------------------------------------------------------===//

def DecomposeAttention : Pass<"attn-decompose-attention", "::mlir::func::FuncOp"> {
  let summary = "lower attn.attention to linalg ops that hold all scores in memory";
  let description = [{
    Applies to the schedule `unfused` outside of tasks and to the schedule `whole-scores` inside a task. The attention
    becomes a contraction of query and key, an elementwise op for scale, score region and mask, a softmax, and a
    contraction with the values. IR before and after: passes/schedule/DecomposeAttention.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def PerHead : Pass<"attn-per-head", "::mlir::func::FuncOp"> {
  let summary = "tile attn.attention into tasks that compute the projections and the attention of one head";
  let description = [{
    Applies to the schedules `per-head` and `whole-scores`. The producers of the keys and values of a head move into
    the `scf.forall` over heads; inside it, a loop over query tiles computes the projection and the attention of each
    query tile. IR before and after: passes/schedule/PerHead.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def Decode : Pass<"attn-decode", "::mlir::func::FuncOp"> {
  let summary = "tile attn.attention into tasks of few queries and a part of the keys";
  let description = [{
    Applies to the schedule `decode`. If the keys are divided into parts, a task computes the state of a query tile over
    one part, and tasks of a second `scf.forall` merge the states of the parts in order. IR before and after:
    passes/schedule/Decode.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def BoundFills : Pass<"attn-bound-fills", "::mlir::func::FuncOp"> {
  let summary = "compute bounds of the scores of attentions whose fill is added";
  let description = [{
    A captured operand gets, for each query, a bound of the magnitude of its scores. Loops over keys compare the sum of
    this bound and the fill with the greatest kept score. IR before and after: passes/schedule/BoundFills.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def Phased : Pass<"attn-phased", "::mlir::func::FuncOp"> {
  let summary = "tile attn.attention into tasks of one tile of queries";
  let description = [{
    Applies to the schedule `phased`. Projections stay outside the `scf.forall`; `attn-phases` tiles them. IR before and
    after: passes/schedule/Phased.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def RowGroups : Pass<"attn-row-groups", "::mlir::func::FuncOp"> {
  let summary = "tile each group of ops into tasks of rows";
  let description = [{
    The ops with the same group in `attn.task` become one `scf.forall` over tiles of rows. IR before and after:
    passes/schedule/RowGroups.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def Phases : Pass<"attn-phases", "::mlir::func::FuncOp"> {
  let summary = "tile the ops outside attention into tasks";
  let description = [{
    Every `attn.pack_mask`, and every linalg op but `linalg.fill`, that has rows and is not yet in a task becomes an
    `scf.forall` over tiles of its output, together with the producers whose elements are each needed by one task only.
    IR before and after: passes/schedule/Phases.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// tile
//===----------------------------------------------------------------------===//

def TileKeys : Pass<"attn-tile-keys", "::mlir::func::FuncOp"> {
  let summary = "lower the attn.attention of a query tile to loops of attn.online_step over keys";
  let description = [{
    The loops visit the keys that `attn.key_range` gives for the tile: keys before the full range, whole tiles of keys
    in the full range, where every pair is kept, and keys after the full range. IR before and after:
    passes/tile/TileKeys.cpp.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ExpandKeyRange : Pass<"attn-expand-key-range"> {
  let summary = "replace attn.key_range with affine and arith ops that compute the key ranges of query tiles";
  let description = [{
    The results of every `attn.key_range` become affine functions of its operands, which follow from the sets of its
    mask. Bounds that depend on no operand become constants.

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

def WriteParts : Pass<"attn-write-parts", "::mlir::func::FuncOp"> {
  let summary = "write the parts of 16 or more insertions to one buffer";
  let description = [{
    The time to analyse such a chain grows with the cube of its length. IR before and after:
    passes/bufferize/WriteParts.cpp.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
}

def CopyInserted : Pass<"attn-copy-inserted", "::mlir::func::FuncOp"> {
  let summary = "copy each inserted tensor that no op computes for the insertion alone";
  let description = [{
    The copy is then the op that computes the source, and empty-tensor elimination lets it write directly to the place
    of the insertion. IR before and after: passes/bufferize/CopyInserted.cpp.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def CopyOverwritten : Pass<"attn-copy-overwritten", "::mlir::func::FuncOp"> {
  let summary = "write the results of in-out arguments in place, and copy elements that are read after the write";
  let description = [{
    The result of an argument with `attn.in_out` is computed in the memory of the argument or copied there at the end.
    Ops that read the old elements later read a `linalg.copy`. IR before and after:
    passes/bufferize/CopyOverwritten.cpp.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OutParams : Pass<"attn-out-params", "::mlir::func::FuncOp"> {
  let summary = "turn the results of functions into buffers that the caller passes";
  let description = [{
    Each result becomes a memref argument with `attn.output`, or the memref of its in-out argument, to which a
    `bufferization.materialize_in_destination` writes. IR before and after: passes/bufferize/OutParams.cpp.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::tensor::TensorDialect"];
}

def VerifyBuffers : Pass<"attn-verify-buffers", "::mlir::ModuleOp"> {
  let summary = "refuse bufferized functions that write to inputs, call functions or return buffers";
  let description = [{
    Checks, after bufferization, that no op writes, directly or through views, loops and selects, to the memory of an
    argument that is neither an output nor in-out; that there is no call; and that no function returns a buffer.
    Each violation is an error at the source location. The pass changes nothing. Reasons:
    passes/bufferize/VerifyBuffers.cpp.
  }];
}

def NoteExtraWork : Pass<"attn-note-extra-work", "::mlir::func::FuncOp"> {
  let summary = "remark on copies, on buffers that are never read and on work done twice in bufferized functions";
  let description = [{
    Gives a remark at the source location of each copy, of each buffer that nothing reads, of each product that is
    computed twice, and of each bias that is added in a separate loop. The compiled code is correct, but slower than it
    should be. The pass changes nothing. Causes: passes/bufferize/NoteExtraWork.cpp.
  }];
}

def KeepUnitDims : Pass<"attn-keep-unit-dims", "::mlir::func::FuncOp"> {
  let summary = "rewrite each memref.subview that drops some dimensions of size 1 and keeps others";
  let description = [{
    Such a view becomes a `memref.subview` that keeps all dimensions, and a `memref.reinterpret_cast` of this view,
    because later passes guess which dimensions were dropped. IR before and after: passes/bufferize/KeepUnitDims.cpp.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def LowerCopies : Pass<"attn-lower-copies", "::mlir::func::FuncOp"> {
  let summary = "replace memref.copy with linalg.copy";
  let description = [{
    LLVM lowers `memref.copy` to a library call, which compiled code must not make; a linalg op becomes a loop. IR
    before and after: passes/bufferize/LowerCopies.cpp.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def PlanWorkspace : Pass<"attn-plan-workspace", "::mlir::ModuleOp"> {
  let summary = "replace each memref.alloc with a slice of a planned workspace";
  let description = [{
    Temporaries of the call become slices of the workspace argument; temporaries of a task become slices of the
    workspace of its worker. A function `<name>.workspace` computes the sizes of both workspaces from the symbols. IR
    before and after: passes/bufferize/PlanWorkspace.cpp.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def OutlineTasks : Pass<"attn-outline-tasks", "::mlir::ModuleOp"> {
  let summary = "outline the body of every scf.forall to a function, which an attn.parallel_for calls";
  let description = [{
    IR before and after: passes/bufferize/OutlineTasks.cpp.
  }];
  let dependentDialects = ["::attn::AttnDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect"];
}

def OutlineRepeated : Pass<"attn-outline-repeated", "::mlir::ModuleOp"> {
  let summary = "outline ops that a kernel repeats to a function, which it calls";
  let description = [{
    Small layers of a model, which are no tasks, are compiled once. IR before and after:
    passes/bufferize/OutlineRepeated.cpp.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def ShareTasks : Pass<"attn-share-tasks", "::mlir::ModuleOp"> {
  let summary = "merge equal functions that attn.parallel_for calls into one";
  let description = [{
    Tasks that differ only in their arguments are compiled once. IR before and after:
    passes/bufferize/ShareTasks.cpp.
  }];
}

//===----------------------------------------------------------------------===//
// every stage
//===----------------------------------------------------------------------===//

def MarkStage : Pass<"attn-mark-stage", "::mlir::ModuleOp"> {
  let summary = "set attn.stage of the module to the name of the stage that ends here";
  let description = [{
    `attnc --from` reads `attn.stage`. IR before and after: passes/MarkStage.cpp.
  }];
  let dependentDialects = ["::attn::AttnDialect"];
  let options = [Option<"stage", "stage", "std::string", /*default=*/"", "The name of the stage">];
}

#endif // ATTN_PASSES_PASSES_TD
