//===- attn-bench-blocks.cpp - register blocks ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// One product whose operands stay in the caches, for every width of the register blocks that the
// target picks, a width that is no multiple of its lanes, and a number of rows that is none of the
// block's. The bound of everything else. OpenBLAS guards nothing.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Modules.h"
#include "benchmark/Table.h"
#include "benchmark/Unfused.h"
#include "passes/plan/RegisterBlocks.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;
using namespace attn::bench;

static llvm::Error run(Table &table) {
  mlir::MLIRContext context;
  context.loadDialect<AttnDialect>();
  TargetAttr target = table.getTarget().getAttr(&context);
  int64_t lanes = target.getLanes();
  for (Guard guard : {Guard::None, Guard::Zeros}) {
    bool guarded = guard == Guard::Zeros;
    for (int64_t columns : {lanes, 2 * lanes, 3 * lanes, 4 * lanes, 6 * lanes, 2 * lanes + 5})
      // Whole blocks of eight, six and four rows; three rows more.
      for (int64_t rows : {480, 483}) {
        // A row of the second operand for each step of a depth that attention has: 128 of them fit
        // the first cache. Rows enough to pay for the call.
        ProductShape shape = {rows, columns, 128};
        RegisterBlock block = chooseRegisterBlock(target, columns, guarded);
        table.add({llvm::formatv("{0}_{1}x{2}/{3}", guarded ? "guarded" : "plain", block.rows,
                                 block.vectors * lanes, shape.getName()),
                   shape.getFlop(), writeProduct(shape, guard),
                   [shape](llvm::ArrayRef<const float *> arguments, float *result) {
                     multiply(shape, arguments[0], arguments[1], result);
                   }});
      }
  }
  return table.measure();
}

int main(int argc, char **argv) { return benchMain(argc, argv, run); }
