//===- Passes.td - passes of the vectorize stage ---------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_PASSES_TD
#define ATTN_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def ContractToVector : Pass<"attn-contract-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lower contractions to register blocks of vectors";
  let description = [{
    Lowers every f32 contraction on buffers, plain or guarded, to loops over register blocks: accumulators are
    vectors of exactly the target's lanes that live in registers for the whole reduction. The block follows from
    the `attn.target` of an enclosing module. A fill or broadcast into the output becomes the start of the
    sum; while a block is computed, the rows of the next are asked for. A contraction without a
    dimension that is contiguous in the output and one input becomes scalar loops, with a remark.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def OnlineToVector : Pass<"attn-online-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lower the online softmax to vectors with queries in lanes";
  let description = [{
    Lowers `attn.online_init`, `attn.online_update`, `attn.online_weights` and `attn.online_finish` on buffers to
    loops over vectors of exactly the target's lanes, with masks where the lanes do not divide the queries.
    Exponentials are polynomials; nothing becomes a call. A contraction that computes the scores of an update just
    before becomes a part of it: weights are made of its accumulators, relative to the maximum so far, and only
    where that turns out to be too small is the tile computed as it stands.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect"];
}

def SoftmaxToVector : Pass<"attn-softmax-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lower linalg.softmax to vectors";
  let description = [{
    Lowers `linalg.softmax` on f32 buffers to three passes over each row: maximum, exponentials and their sum, scaling.
    Where the elements of the last dimension lie apart it takes them one by one. A row that holds NaN or +inf, or nothing but -inf, gives NaN, as the
    formula says.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect"];
}

def PackToVector : Pass<"attn-pack-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lower packing and transposition to shuffles";
  let description = [{
    Lowers `attn.pack` and `linalg.transpose` on buffers to loops over L x L blocks that are transposed in
    registers, L the target's lanes; edges and element types other than f32 are copied by element. Panels are
    padded with zeros.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def ReassociateSums : Pass<"attn-reassociate-sums", "::mlir::func::FuncOp"> {
  let summary = "let LLVM add up in vectors what is a sum";
  let description = [{
    Marks the additions by which a `linalg` op reduces as free to be reassociated. For reductions that no pass has
    lowered to vectors, right before they become plain loops.
  }];
}

def ExpandMath : Pass<"attn-expand-math", "::mlir::func::FuncOp"> {
  let summary = "replace functions of a math library by arithmetic";
  let description = [{
    Rewrites exponentials, logarithms, `math.powf`, `math.tanh`, `math.erf`, `math.sin`, `math.cos`, `math.rsqrt` and
    roundings of f32, scalars or vectors, so that no call remains. Functions that are instructions everywhere stay; any
    other is refused.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def ExpandHalves : Pass<"attn-expand-halves", "::mlir::func::FuncOp"> {
  let summary = "Compute on f16 and bf16 in f32";
  let description = [{
    Converts the operands of arithmetic on f16 and bf16, scalars and vectors, to f32 and its results back, so that no
    library is called. Where the `attn.target` of an enclosing module says `halves`, the conversions of f16 are
    instructions. Those of bf16, and of f16 elsewhere, become integer arithmetic. f64 is converted through f32.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def NoteSlowLoops : Pass<"attn-note-slow-loops", "::mlir::func::FuncOp"> {
  let summary = "a remark at each op that becomes a slow loop";
  let description = [{
    Of the ops that are left to plain loops, those whose bodies read memory at indices that are data become loops over
    scalars, and those that call a function that is computed in f64 have half the lanes. Changes nothing; the report
    lists the remarks.
  }];
}

#endif // ATTN_CODEGEN_CPU_PASSES_TD
