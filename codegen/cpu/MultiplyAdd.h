//===- MultiplyAdd.h - the instructions of products --------------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// One table lists the instructions that multiply and add, with the element types that they take. Register blocks and
// dot products are lowered in the same way for every row of the table. A new instruction needs a row, but no change to
// these lowerings.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_CPU_MULTIPLYADD_H
#define ATTN_CODEGEN_CPU_MULTIPLYADD_H

#include "dialect/Attn.h"
#include "passes/Product.h"

namespace attn {

/// The multiplication of two tiles of factors, whose products are added to a tile of sums. Instructions.h says which
/// registers hold tiles, and how tiles lie in memory.
struct TileMultiplyAdd {
  /// Loads the tile in `buffer`, a memref of one dimension. The first row starts at `index`, and each further row
  /// starts `stride` elements after the start of the previous row.
  using CreateLoad = mlir::Value (*)(mlir::OpBuilder &builder, mlir::Location loc,
                                     mlir::Value buffer, mlir::Value index, mlir::Value stride);

  /// The tile of sums has `rows` rows and `columns` columns.
  int64_t rows, columns;
  /// The number of groups of products that are added to each sum.
  int64_t steps;
  /// The number of tiles that the registers hold.
  int64_t registers;
  /// The time of a multiplication and of a load or a store, in units of the time of a vector multiply-add.
  double multiplyCost, loadCost;
  mlir::Value (*createZero)(mlir::OpBuilder &builder, mlir::Location loc);
  /// Functions that load the first factor, which has a row for each row of the sums; the second factor, which has a row
  /// for each group of products; and the sums.
  CreateLoad createLoadA, createLoadB, createLoadSums;
  void (*createStore)(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tile,
                      mlir::Value buffer, mlir::Value index, mlir::Value stride);
  mlir::Value (*create)(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b,
                        mlir::Value sums);
};

/// An instruction that multiplies two vectors of factors and adds the products to a vector of sums.
struct MultiplyAdd {
  using GetType = mlir::Type (*)(mlir::MLIRContext *);

  /// The types of the factors and of the sums.
  GetType factor, sum;
  /// The number of products that the instruction adds to each sum. The factors of these products are adjacent in both
  /// operands: a vector of factors has `group` elements for each sum.
  int64_t group;
  /// The capabilities that the CPU must have.
  CpuCapabilities needs;
  /// Whether the CPU multiplies and adds in one instruction. Otherwise the product needs a register before it is added.
  bool isFused;
  /// Returns sums + a * b.
  mlir::Value (*create)(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b,
                        mlir::Value sums);
  /// Rounds `group` vectors of sums to factors, and interleaves them. Null if the group is 1 or the factors are
  /// integers: only probabilities, which are floats, are grouped in registers.
  mlir::Value (*createGroup)(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange rows);
  /// The instruction for tiles of the same types; null if there is none. In a product by tiles, `create` computes the
  /// edges that do not fill a tile.
  const TileMultiplyAdd *tile;

  mlir::Type getSumType(mlir::MLIRContext *context) const { return sum(context); }
  /// Whether the instruction can multiply elements of type `stored`: `stored` is the type of the factors, or a type of
  /// floats or signed integers whose values the type of the factors holds exactly.
  bool takes(mlir::Type stored) const;
  /// Converts `value`, an element that the instruction takes or a vector of them, to factors.
  mlir::Value createFactors(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value) const;
};

/// The instructions of `cpu` for products of these types, the fastest first; none if such products become loops over
/// scalars.
llvm::SmallVector<const MultiplyAdd *> findMultiplyAdds(CpuAttr cpu, const ProductTypes &types);

/// The instruction that adds one product to each sum, so that elements need not be in groups; null if there is none.
const MultiplyAdd *findMultiplyAdd(CpuAttr cpu, const ProductTypes &types);

/// Whether only instructions of the table need `capabilities`.
bool isForProducts(CpuCapabilities capabilities);

/// Whether an instruction that needs one of `capabilities` takes elements of type `stored`.
bool isForFactors(mlir::Type stored, CpuCapabilities capabilities);

/// The bytes of an element in memory.
int64_t getBytes(mlir::Type element);

} // namespace attn

#endif // ATTN_CODEGEN_CPU_MULTIPLYADD_H
