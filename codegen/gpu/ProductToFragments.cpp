//===- ProductToFragments.cpp - lower matrix products of tasks -------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func private @f.project(...) attributes {attn.launch = #attn.launch<threads = 128>} {
//     linalg.contract {attn.block = #attn.block<rows = 32, vectors = 8>}
//         ins(%x, %w : memref<1x?x768xf16>, memref<1x64x768xf16>) outs(%y : memref<1x1x?x64xf32>)
// becomes
//   for each 64 rows and 128 columns of %y:
//     copy the first 64 columns of %x and %w to shared memory
//     scf.for %k = 0 to 768 step 64 {
//       wait for the copies, copy the tiles at %k + 64
//       %sums += nvvm.mma.sync of the tiles           // each warp: 32 rows and 64 columns
//     }
//     %y += %sums
//
// The blocks of the four warps form two rows and two columns or, if the warps multiply together (WarpgroupMultiply.h),
// four rows. Apart from loops with one iteration, a product must have one loop over rows, one over columns and one over
// the terms of the sum. Any other product remains unchanged, and DistributeLoops lets one thread compute each element
// of its output.
// Test: test/codegen/gpu/product-to-fragments.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/MatrixMultiply.h"
#include "codegen/gpu/Passes.h"
#include "codegen/gpu/TileCopies.h"
#include "codegen/gpu/WarpgroupMultiply.h"
#include "passes/Product.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_PRODUCTTOFRAGMENTS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

namespace {
/// An operand as a matrix. `rows` and `columns` are its two dimensions that can have more than one element.
struct Matrix {
  Value buffer;
  unsigned rows = 0, columns = 0;

  /// The part of `numRows` x `numColumns` elements from (row, column) on. It may end beyond the buffer.
  Value part(ThreadBuilder &b, Value row, Value column, int64_t numRows, int64_t numColumns) const;
  Value size(ThreadBuilder &b, unsigned dim) const { return memref::DimOp::create(b, buffer, dim); }
};

/// A product of two matrices of one element type, with the loops m, n and k.
struct Product {
  static std::optional<Product> match(linalg::LinalgOp op);

  linalg::LinalgOp op;
  Matrix left;          // (m, k)
  Matrix right;         // (n, k) or (k, n)
  Matrix out;           // (m, n) or (n, m)
  bool isRightInRows;   // whether `right` is (k, n)
  bool isOutTransposed; // whether `out` is (n, m)
};

class Lowering {
public:
  Lowering(func::FuncOp function, const Product &product)
      : product(product), threads(getThreads(function)),
        top(function.getLoc(), OpBuilder::atBlockBegin(&function.front())),
        b(product.op->getLoc(), product.op),
        element(getElementTypeOrSelf(product.left.buffer.getType())),
        multiply(*MatrixMultiply::get(element)) {
    auto planned = product.op->getAttrOfType<BlockAttr>(AttnDialect::kBlockAttr);
    rows = planned ? planned.getRows() : 2 * kMatrixRows;
    vectors = planned ? llvm::alignTo(planned.getVectors(), 2) : 8;
    depth = 8 * multiply.chunk();
    auto gpu = dyn_cast_if_present<GpuAttr>(getTarget(function));
    isByWarpgroups =
        multipliesByWarpgroups(gpu, element, threads / kWarp, rows, vectors * kMatrixColumns);
    warpRows = rowsOfWarps(isByWarpgroups);
    leftTile = {warpRows * rows, depth, element, isByWarpgroups};
    columns = threads / kWarp / warpRows * vectors * kMatrixColumns;
    rightTile = product.isRightInRows ? SharedTile{depth, columns, element, isByWarpgroups}
                                      : SharedTile{columns, depth, element, isByWarpgroups};
  }

  void run();

private:
  void runTile(ThreadBuilder &b, Value row, Value column);
  void copyTiles(ThreadBuilder &b, Value row, Value column, Value k, Value stage);
  void addProducts(ThreadBuilder &b, Value stage);
  void store(ThreadBuilder &b, Value row, Value column);
  int64_t blocks() const { return rows / kMatrixRows; }
  Value warpRow(ThreadBuilder &b) { return b.multiply(b.remainder(b.warp(), warpRows), rows); }
  Value warpColumn(ThreadBuilder &b) {
    return b.multiply(b.divide(b.warp(), warpRows), vectors * kMatrixColumns);
  }
  /// The place of an accumulator's element in the memory of a lane.
  int64_t place(int64_t block, int64_t column, int64_t i) const {
    return (block * vectors + column) * 4 + i;
  }

  Product product;
  int64_t threads;
  ThreadBuilder top, b;
  Type element;
  MatrixMultiply multiply;
  bool isByWarpgroups;
  int64_t rows, vectors;            // of the block of a warp
  int64_t warpRows, columns, depth; // of a tile: rows of warps, columns, products in each sum
  SharedTile leftTile, rightTile;
  Value leftTiles, rightTiles, sums, numRows, numColumns, numProducts;
};
} // namespace

Value Matrix::part(ThreadBuilder &b, Value row, Value column, int64_t numRows,
                   int64_t numColumns) const {
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
      sizes(type.getRank(), b.getIndexAttr(1)), strides(type.getRank(), b.getIndexAttr(1));
  offsets[rows] = row;
  offsets[columns] = column;
  sizes[rows] = b.getIndexAttr(numRows);
  sizes[columns] = b.getIndexAttr(numColumns);
  MemRefType part = memref::SubViewOp::inferRankReducedResultType({numRows, numColumns}, type,
                                                                  offsets, sizes, strides);
  return memref::SubViewOp::create(b, part, buffer, offsets, sizes, strides);
}

std::optional<Product> Product::match(linalg::LinalgOp op) {
  if (!isProduct(op) || !op.hasPureBufferSemantics())
    return std::nullopt;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  auto map = [&](unsigned operand) {
    return op.getMatchingIndexingMap(&op->getOpOperand(operand));
  };
  AffineMap left = map(0), right = map(1), out = map(2);
  SmallVector<unsigned> m, n, k;
  for (unsigned loop = 0; loop < ranges.size(); ++loop) {
    if (ranges[loop] == 1)
      continue;
    bool isOfLeft = left.isFunctionOfDim(loop), isOfRight = right.isFunctionOfDim(loop),
         isOfOut = out.isFunctionOfDim(loop);
    if (isOfLeft && isOfOut && !isOfRight)
      m.push_back(loop);
    else if (isOfRight && isOfOut && !isOfLeft)
      n.push_back(loop);
    else if (isOfLeft && isOfRight && !isOfOut)
      k.push_back(loop);
    else
      return std::nullopt;
  }
  if (m.size() != 1 || n.size() != 1 || k.size() != 1)
    return std::nullopt;
  auto matrix = [&](unsigned operand, unsigned first, unsigned second) -> std::optional<Matrix> {
    AffineMap of = map(operand);
    if (!of.isProjectedPermutation())
      return std::nullopt;
    Matrix result{op->getOperand(operand)};
    auto position = [&](unsigned loop) {
      return of.getResultPosition(getAffineDimExpr(loop, op.getContext()));
    };
    result.rows = *position(first);
    result.columns = *position(second);
    // The dimension of rows must come first, so that a view of a part of the matrix has rows and columns in this order.
    if (result.rows > result.columns)
      return std::nullopt;
    return result;
  };
  Product product{op, {}, {}, {}, false, false};
  std::optional<Matrix> l = matrix(0, m[0], k[0]), r = matrix(1, n[0], k[0]),
                        o = matrix(2, m[0], n[0]);
  if (!r) {
    r = matrix(1, k[0], n[0]);
    product.isRightInRows = true;
  }
  if (!o) {
    o = matrix(2, n[0], m[0]);
    product.isOutTransposed = true;
  }
  Type type = getElementTypeOrSelf(op->getOperand(0).getType());
  if (!l || !r || !o || type != getElementTypeOrSelf(op->getOperand(1).getType()) ||
      !getElementTypeOrSelf(op->getOperand(2).getType()).isF32() || !MatrixMultiply::get(type))
    return std::nullopt;
  product.left = *l;
  product.right = *r;
  product.out = *o;
  return product;
}

void Lowering::copyTiles(ThreadBuilder &b, Value row, Value column, Value k, Value stage) {
  auto copy = [&](const Matrix &matrix, const SharedTile &tile, Value tiles, Value first,
                  Value second, Value firstEnd, Value secondEnd) {
    Value part = matrix.part(b, first, second, tile.rows, tile.columns);
    auto type = cast<MemRefType>(matrix.buffer.getType());
    int64_t length = type.getDimSize(matrix.columns);
    bool isAligned = hasAlignedRows(matrix.buffer) && matrix.columns + 1 == type.getRank() &&
                     !ShapedType::isDynamic(length) && length % tile.chunk() == 0;
    tile.copy(b, part, b.subtract(firstEnd, first), b.subtract(secondEnd, second), isAligned, tiles,
              stage, threads);
  };
  copy(product.left, leftTile, leftTiles, row, k, numRows, numProducts);
  if (product.isRightInRows)
    copy(product.right, rightTile, rightTiles, k, column, numProducts, numColumns);
  else
    copy(product.right, rightTile, rightTiles, column, k, numColumns, numProducts);
  NVVM::CpAsyncCommitGroupOp::create(b);
}

void Lowering::addProducts(ThreadBuilder &b, Value stage) {
  Value left = leftTile.view(b, leftTiles, stage, b.getIndexAttr(leftTile.rows)),
        right = rightTile.view(b, rightTiles, stage, b.getIndexAttr(rightTile.rows));
  SmallVector<SmallVector<Accumulator>> accumulators(blocks(), SmallVector<Accumulator>(vectors));
  for (int64_t block = 0; block < blocks(); ++block)
    for (int64_t column = 0; column < vectors; ++column)
      for (int64_t i = 0; i < 4; ++i)
        accumulators[block][column][i] =
            memref::LoadOp::create(b, sums, b.constant(place(block, column, i)));
  if (isByWarpgroups) {
    using Right = WarpgroupMultiply::Right;
    WarpgroupMultiply wide(element);
    Value first = b.constant(0);
    wide.multiply(b, wide.describeRows(b, left, first, depth),
                  product.isRightInRows ? wide.describeColumns(b, right, depth)
                                        : wide.describeRows(b, right, first, depth),
                  product.isRightInRows ? Right::Columns : Right::Rows, /*clears=*/false,
                  accumulators[0]);
  }
  for (int64_t k = 0; k < depth && !isByWarpgroups; k += multiply.depth()) {
    SmallVector<Factor> ofRows;
    for (int64_t block = 0; block < blocks(); ++block)
      ofRows.push_back(multiply.loadLeft(b, left, b.add(warpRow(b), block * kMatrixRows), k));
    for (int64_t column = 0; column < vectors; column += 2) {
      Value first = b.add(warpColumn(b), column * kMatrixColumns);
      auto factors = product.isRightInRows ? multiply.loadRightRows(b, right, b.constant(k), first,
                                                                    /*isBesideLoaded=*/true)
                                           : multiply.loadRight(b, right, first, k);
      for (int64_t half : {0, 1})
        for (int64_t block = 0; block < blocks(); ++block)
          multiply.multiply(b, ofRows[block], factors[half], accumulators[block][column + half]);
    }
  }
  for (int64_t block = 0; block < blocks(); ++block)
    for (int64_t column = 0; column < vectors; ++column)
      for (int64_t i = 0; i < 4; ++i)
        memref::StoreOp::create(b, accumulators[block][column][i], sums,
                                b.constant(place(block, column, i)));
}

void Lowering::store(ThreadBuilder &b, Value row, Value column) {
  Value lane = b.lane();
  Value firstRow = b.add(b.add(row, warpRow(b)), b.divide(lane, 4)),
        firstColumn = b.add(b.add(column, warpColumn(b)), b.multiply(b.remainder(lane, 4), 2));
  Value buffer = product.out.buffer;
  int64_t rank = cast<MemRefType>(buffer.getType()).getRank();
  for (int64_t block = 0; block < blocks(); ++block)
    for (int64_t half : {0, 1}) {
      Value r = b.add(firstRow, block * kMatrixRows + 8 * half);
      auto rowExists = scf::IfOp::create(b, b.isLess(r, numRows));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(rowExists.thenBlock());
      for (int64_t tile = 0; tile < vectors; ++tile)
        for (int64_t odd : {0, 1}) {
          Value c = b.add(firstColumn, tile * kMatrixColumns + odd);
          auto exists = scf::IfOp::create(b, b.isLess(c, numColumns));
          OpBuilder::InsertionGuard inner(b);
          b.setInsertionPointToStart(exists.thenBlock());
          SmallVector<Value> indices(rank, b.constant(0));
          indices[product.out.rows] = product.isOutTransposed ? c : r;
          indices[product.out.columns] = product.isOutTransposed ? r : c;
          Value sum =
              memref::LoadOp::create(b, sums, b.constant(place(block, tile, 2 * half + odd)));
          Value before = memref::LoadOp::create(b, buffer, indices);
          memref::StoreOp::create(b, arith::AddFOp::create(b, before, sum), buffer, indices);
        }
    }
}

void Lowering::runTile(ThreadBuilder &b, Value row, Value column) {
  Value zero = b.f32(0), first = b.constant(0);
  for (int64_t i = 0; i < place(blocks(), 0, 0); ++i)
    memref::StoreOp::create(b, zero, sums, b.constant(i));
  copyTiles(b, row, column, first, first);
  auto loop = scf::ForOp::create(b, first, numProducts, b.constant(depth), ValueRange{first});
  ThreadBuilder in(b.getLoc(), OpBuilder::atBlockBegin(loop.getBody()));
  waitForCopies(in, isByWarpgroups);
  Value stage = loop.getRegionIterArg(0), other = in.subtract(in.constant(1), stage);
  copyTiles(in, row, column, in.add(loop.getInductionVar(), depth), other);
  addProducts(in, stage);
  scf::YieldOp::create(in, other);
  waitForCopies(b, isByWarpgroups);
  store(b, row, column);
}

void Lowering::run() {
  // The tiles have no padding that must be cleared, because their numbers of columns are multiples of 16. Copies set
  // rows and columns beyond the end of a matrix to zero.
  leftTiles = leftTile.allocate(top, 2);
  rightTiles = rightTile.allocate(top, 2);
  sums = memref::AllocaOp::create(top, MemRefType::get({place(blocks(), 0, 0)}, top.getF32Type()));
  numRows = product.left.size(b, product.left.rows);
  numProducts = product.left.size(b, product.left.columns);
  numColumns =
      product.right.size(b, product.isRightInRows ? product.right.columns : product.right.rows);
  Value zero = b.constant(0);
  auto ofRows = scf::ForOp::create(b, zero, numRows, b.constant(leftTile.rows));
  ThreadBuilder inRows(b.getLoc(), OpBuilder::atBlockBegin(ofRows.getBody()));
  auto ofColumns = scf::ForOp::create(inRows, zero, numColumns, inRows.constant(columns));
  ThreadBuilder in(b.getLoc(), OpBuilder::atBlockBegin(ofColumns.getBody()));
  runTile(in, ofRows.getInductionVar(), ofColumns.getInductionVar());
  gpu::BarrierOp::create(b); // later ops may read all elements
  product.op->erase();
}

namespace {
struct ProductToFragments : attn::impl::ProductToFragmentsBase<ProductToFragments> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    auto launch = function->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
    if (function.isDeclaration() || !launch || launch.getThreads() != kWarpsOfProduct * kWarp)
      return;
    SmallVector<Product> products;
    function.walk([&](linalg::LinalgOp op) {
      if (std::optional<Product> product = Product::match(op))
        products.push_back(*product);
    });
    for (const Product &product : products)
      Lowering(function, product).run();
  }
};
} // namespace
