//===- Passes.td - passes of CPUs ------------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_PASSES_TD
#define ATTN_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def PadRows : Pass<"attn-pad-rows", "::mlir::func::FuncOp"> {
  let summary = "pad the rows of temporaries that would share sets of L1";
  let description = [{
    If the rows of a `memref.alloc` lie a multiple of 4096 bytes apart, rows that are read together may evict each other
    from L1. The pass makes the rows of such a temporary longer by at least a cache line, and replaces the temporary by
    a view without the padding. For the IR before and after, see the header of `codegen/cpu/PadRows.cpp`.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def ContractToVector : Pass<"attn-contract-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lower contractions to register blocks of vectors";
  let description = [{
    Lowers every contraction on buffers, with or without `attn.skips_zeros`, to loops over register blocks. The
    accumulators are vectors that are as long as the target's vector registers, and stay in registers during the
    reduction. The `attn.target` of an enclosing module determines the size of the blocks. If the last access to
    the output before the contraction is a fill or a broadcast, and the sum is not split into parts, the pass erases
    the fill or broadcast, and adds its value to the sums. The code also prefetches rows of later blocks.

    The lanes run along a dimension that is contiguous in the output and in one input. If there is none, the lanes run
    along the dimension of the sum, provided that both inputs are contiguous along it. If that is impossible too, the
    contraction becomes scalar loops, with a remark. For the IR before and after, see the header of
    `codegen/cpu/ContractToVector.cpp`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect",
                           "::mlir::amx::AMXDialect"];
}

def OnlineToVector : Pass<"attn-online-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lower the online softmax to vectors";
  let description = [{
    Lowers `attn.online_init`, `attn.online_step`, `attn.online_probabilities`, `attn.online_merge` and
    `attn.online_finish` on buffers to loops over vectors that are as long as the target's vector registers. Lanes hold
    queries. With the attribute `rows`, lanes hold keys or, in accumulators and outputs, the elements of a row
    (dimension e). If the number of lanes does not divide the size of a dimension, the last vector is masked.
    Exponentials become polynomials, and no op becomes a library call.

    If register blocks have keys in rows and queries in lanes, the probabilities of a step are computed from the
    accumulators of its first product, relative to the maximum of the previous tiles. If that maximum turns out to be
    too small, the products of the tile are stored, and the probabilities are computed again from the stored products.
    For the IR before and after, see the headers of `codegen/cpu/OnlineToVector.cpp` and `codegen/cpu/FusedStep.h`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect",
                           "::mlir::amx::AMXDialect"];
}

def MaskToVector : Pass<"attn-mask-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lower packed masks to vectors";
  let description = [{
    Lowers `attn.pack_mask` and `attn.test_mask` on buffers. For the IR before and after, see the header of
    `codegen/cpu/MaskToVector.cpp`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def SoftmaxToVector : Pass<"attn-softmax-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lower linalg.softmax to vectors";
  let description = [{
    Lowers `linalg.softmax` on f32 buffers to three loops over each row: one finds the maximum, one computes the
    exponentials and their sum, and one scales. If the elements of the last dimension are not adjacent, the code
    processes them one by one. A row that contains NaN or +inf, or only -inf, gives NaN, as the formula does. For the IR
    before and after, see the header of `codegen/cpu/SoftmaxToVector.cpp`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect"];
}

def PackToVector : Pass<"attn-pack-to-vector", "::mlir::func::FuncOp"> {
  let summary = "lower packing and transposition to shuffles";
  let description = [{
    Lowers `attn.pack` and `linalg.transpose` on buffers to loops over L x L blocks that are transposed in registers,
    where L is the number of elements in a vector register of the target. Blocks at the edges are masked. Elements that
    do not have 32 or 64 bits are copied one by one, except transposed 16-bit elements on CPUs with mask registers.
    Panels are padded with zeros. For the IR before and after, see the header of `codegen/cpu/PackToVector.cpp`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def ReassociateSums : Pass<"attn-reassociate-sums", "::mlir::func::FuncOp"> {
  let summary = "allow LLVM to reorder, and so to vectorise, the additions of sums";
  let description = [{
    Sets the fast-math flag `reassoc` on the additions of the reductions of `linalg` ops:

    ```mlir
    %sum = arith.addf %out, %in : f32
    // becomes
    %sum = arith.addf %out, %in fastmath<reassoc> : f32
    ```

    The pass runs after the passes that lower reductions to vectors. The remaining reductions then become plain loops.
  }];
}

def ExpandMath : Pass<"attn-expand-math", "::mlir::func::FuncOp"> {
  let summary = "replace functions of a math library by arithmetic";
  let description = [{
    Rewrites exponentials, logarithms, `math.powf`, `math.tanh`, `math.erf`, `math.sin`, `math.cos`, `math.rsqrt` and
    roundings of scalars and vectors of f32, so that no library call remains. Functions that are instructions on every
    level stay. Any other function is an error, because LLVM might call a library for it. For an example, see the header
    of `codegen/cpu/ExpandMath.cpp`.
  }];
  let options = [Option<"keepFma", "keep-fma", "bool", "false",
                        "Keep math.fma on vectors and scalars, because the machine has instructions for it">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

def ExpandHalves : Pass<"attn-expand-halves", "::mlir::func::FuncOp"> {
  let summary = "compute f16 and bf16 arithmetic in f32";
  let description = [{
    Converts the operands of f16 and bf16 arithmetic on scalars and vectors to f32, and the results back, so that no
    library is called. If the `attn.target` of an enclosing module has the capability `halves`, conversions between f16
    and f32 are instructions. All other conversions of f16 and bf16 become arithmetic on bits. Conversions from and to
    f64 go through f32. For the IR before and after, see the header of `codegen/cpu/ExpandHalves.cpp`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MergeRows : Pass<"attn-merge-rows", "::mlir::func::FuncOp"> {
  let summary = "merge the loops over the rows of a product on buffers";
  let description = [{
    Register blocks have rows of one loop, so they are larger if a product has one loop over rows. IR before and after:
    codegen/cpu/MergeRows.cpp.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect"];
}

def NoteSlowLoops : Pass<"attn-note-slow-loops", "::mlir::func::FuncOp"> {
  let summary = "emit a remark at each op that becomes a slow loop";
  let description = [{
    Emits a remark at three kinds of ops that become slow loops. An op whose body reads memory at indices that are data
    becomes a loop over scalars. An op whose body computes a function in f64, such as a logarithm, becomes a loop over
    vectors with half as many lanes. A sum that compares positions, such as a cumulative sum, takes many steps for each
    element. The pass does not change the IR; the report lists the remarks, with the share of each in the predicted time.
  }];
}

#endif // ATTN_CODEGEN_CPU_PASSES_TD
