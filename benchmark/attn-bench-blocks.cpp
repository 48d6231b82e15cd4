//===- attn-bench-blocks.cpp - register blocks ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Measures one product with operands that stay in the caches. The cases cover every width of register blocks that attn
// uses for the target, a width that is not a multiple of the lanes, and a number of rows that is not a multiple of the
// block's rows. The result is an upper bound of the speed of all other kernels. Guarded products skip factors that are
// zero; OpenBLAS does not skip any.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Modules.h"
#include "benchmark/Table.h"
#include "benchmark/Unfused.h"
#include "codegen/cpu/RegisterBlocks.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"

using namespace attn;
using namespace attn::bench;

static llvm::Error run(Table &table) {
  mlir::MLIRContext context;
  context.loadDialect<AttnDialect>();
  auto cpu = mlir::cast<CpuAttr>(table.getCpu().getAttr(&context));
  int64_t lanes = cpu.getLanes();
  auto f32 = mlir::Float32Type::get(&context);
  const MultiplyAdd &instruction = *findMultiplyAdd(cpu, {f32, f32, f32});
  for (Guard guard : {Guard::None, Guard::Zeros}) {
    bool guarded = guard == Guard::Zeros;
    for (int64_t columns : {lanes, 2 * lanes, 3 * lanes, 4 * lanes, 6 * lanes, 2 * lanes + 5})
      // 480 rows are whole blocks of eight, six or four rows; 483 leave a tail of three rows.
      for (int64_t rows : {480, 483}) {
        // A depth of 128 is typical of attention. A register block then reads 128 rows of the second operand, which
        // fit in L1. The first operand has so many rows that the cost of the call hardly counts.
        bench::ProductShape shape = {rows, columns, 128};
        RegisterBlock block = chooseRegisterBlock(cpu, instruction, columns, guarded);
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
