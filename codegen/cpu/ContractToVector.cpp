//===- ContractToVector.cpp - contractions in register blocks --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   linalg.fill ins(%zero : f32) outs(%c : memref<128x48xf32>)
//   linalg.contract indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (k, n), (m, n, k) -> (m, n)]
//     ins(%a, %b : memref<128x64xf32>, memref<64x48xf32>) outs(%c : memref<128x48xf32>)
// becomes, with vectors of 16 lanes and a register block of 8 rows by 3 vectors,
//   scf.for %i = %c0 to %c128 step %c8 {
//     %acc:24 = scf.for %k = %c0 to %c64 step %c2 iter_args(...) -> (vector<16xf32>, ...) {
//       %b0 = vector.load %brow[...] : vector<16xf32>                     // one row of B, three vectors
//       ...
//       %e = memref.load %arow[...]                                       // one element of A for each row
//       %s = vector.broadcast %e : f32 to vector<16xf32>
//       %f = vector.fma %s, %b0, %acc0 : vector<16xf32>
//       ...
//     }
//     vector.store %acc#0, %crow[...]                                     // 24 stores
//   }
//
// Contraction.h defines the roles of the loops. If the last access to the output before the contraction is a fill, the
// accumulators start from the value of the fill. Otherwise they start from zero, and the initial value is added after
// the last product: the source of a broadcast, if the last access is a broadcast into the output, or else the output
// itself. A long sum is split into parts, which are added to the output one after the other; a fill or a broadcast then
// stays. With `attn.skips_zeros`, a product whose first factor is zero is not added, even if its second factor is NaN
// or infinite.
//
// On a CPU that multiplies tiles, a block consists of tiles (amx.tile_mulf in place of vector.fma) if its rows are
// whole tiles, its tiles fit in the tile registers, and tiles can be loaded from the operands directly. Blocks of
// vectors compute the rows, columns and products that do not fill a tile.
//
// A convolution is computed in the same way, without a copy of its windows: the lanes run along the last dimension of
// the output, the rows along output channels or, if these are the last dimension, along the image, and the sum runs over
// input channels and the kernel. The image is read at sums of loops, such as y + j, and each of the two loops has a
// stride in the image.
//
// If Contraction.h finds no loop for the lanes, the lanes run along the sum, provided that both inputs are contiguous
// along the sum (DotProducts.h). If this is impossible too, the contraction becomes scalar loops, with a remark. The
// same happens if its operands are not strided memrefs that are read at sums of loops, or if no
// instruction of the CPU takes its element types (MultiplyAdd.h). The pass does not change other ops.
// Test: test/codegen/cpu/contract-to-vector.mlir, test/codegen/cpu/tiles.mlir, test/tiles/tiles.test
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/ContractToVector.h"
#include "codegen/cpu/DotProducts.h"
#include "codegen/cpu/Passes.h"
#include "codegen/cpu/RegisterBlockLowering.h"
#include "dialect/Finding.h"
#include "passes/Product.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_CONTRACTTOVECTOR
#include "codegen/cpu/Passes.h.inc"
} // namespace attn

using namespace attn;

LogicalResult attn::lowerContraction(RewriterBase &rewriter, const Contraction &contraction,
                                     Start start, CpuAttr cpu) {
  rewriter.setInsertionPoint(contraction.op);
  if (contraction.roles) {
    createContraction(rewriter, contraction, start, cpu);
  } else if (std::optional<DotProducts> products = DotProducts::match(contraction)) {
    createDotProducts(rewriter, *products, start, cpu);
  } else {
    start.writer = nullptr; // the loops add to the output
    emitFinding(contraction.op->getLoc(), Finding::SlowLoop)
        << "contraction becomes scalar loops: expected a dimension whose elements are "
           "adjacent in the output and in one input, or a sum over adjacent elements of both inputs";
    if (failed(linalg::linalgOpToLoops(rewriter, contraction.op)))
      return failure();
  }
  rewriter.eraseOp(contraction.op);
  if (start.writer)
    rewriter.eraseOp(start.writer);
  return success();
}

namespace {
struct ContractToVector : attn::impl::ContractToVectorBase<ContractToVector> {
  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> products;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics() && (isProductOrConvolution(op) || skipsZeros(op)))
        products.push_back(op);
    });
    if (products.empty())
      return;
    CpuAttr cpu = getCpu(getOperation());
    if (!cpu) {
      getOperation().emitError() << "expected '" << AttnDialect::kTargetAttr
                                 << "' on an enclosing module";
      return signalPassFailure();
    }
    SmallVector<Contraction> contractions;
    for (linalg::LinalgOp op : products)
      if (std::optional<Contraction> contraction = Contraction::match(op, cpu))
        contractions.push_back(*contraction);
      else
        emitFinding(op.getLoc(), Finding::SlowLoop)
            << "contraction becomes scalar loops: expected strided buffers of types that "
               "an instruction of "
            << cpu.getLevel() << " multiplies and adds, got " << op->getOperandTypes();

    // Find all starts before creating any loop, because findStart() recognises linalg ops but not their loops.
    auto &aliases = getAnalysis<AliasAnalysis>();
    SmallVector<Start> starts;
    for (Contraction &contraction : contractions)
      starts.push_back(contraction.getSplit(cpu) ? Start::ofOutput(contraction)
                                                 : findStart(contraction, aliases));
    IRRewriter rewriter(&getContext());
    for (auto [contraction, start] : llvm::zip_equal(contractions, starts))
      if (failed(lowerContraction(rewriter, contraction, start, cpu)))
        return signalPassFailure();
  }
};
} // namespace
