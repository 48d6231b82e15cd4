//===- GroupedRows.cpp - rows of factors in groups --------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/GroupedRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

GroupedRows::GroupedRows(OpBuilder &builder, Location loc, Value buffer,
                         const MultiplyAdd &instruction)
    : view(StridedView::create(builder, loc, buffer, builder.getMultiDimIdentityMap(3))),
      instruction(instruction) {}

void GroupedRows::store(OpBuilder &builder, Location loc, Value first, const Lanes &columns,
                        ValueRange rows) const {
  SmallVector<Value> group(rows);
  group.resize(instruction.group, floatConstant(builder, loc, rows.front().getType(), 0));
  Value number = builder.createOrFold<arith::DivUIOp>(
      loc, first, arith::ConstantIndexOp::create(builder, loc, instruction.group).getResult());
  Value index = arith::ConstantIndexOp::create(builder, loc, 0);
  index = view.advance(builder, loc, index, 0, number);
  index = view.advance(builder, loc, index, 1, columns.offset);
  columns.ofGroups(builder, loc, instruction.group)
      .store(builder, loc, instruction.createGroup(builder, loc, group), view.row, index);
}
