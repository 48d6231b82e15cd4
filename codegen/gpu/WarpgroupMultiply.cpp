//===- WarpgroupMultiply.cpp - multiply matrices with four warps -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A 64-bit number describes a factor in shared memory to wgmma (PTX manual, "matrix descriptor"), in units of 16 bytes:
// - bits 0 to 13: the address of the factor;
// - bits 16 to 29: the distance between blocks of 64 columns, for a factor that is transposed;
// - bits 32 to 45: the distance between groups of 8 rows;
// - bits 62 and 63: 1, for swizzling by 128 bytes.
//
// MLIR's nvvm.wgmma.mma_async does not accept a left factor in registers, so the instructions are inline assembly. One
// statement issues all instructions of a product. If nothing overlaps with the product, the same statement also waits
// for it, so that LLVM cannot use accumulators whose products still run.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/WarpgroupMultiply.h"
#include "codegen/gpu/TileCopies.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;

/// The bytes of a row of 64 columns of a swizzled tile, the bytes of 8 such rows, and the unit of addresses and
/// distances.
static constexpr int64_t kRowBytes = 128, kGroupBytes = 8 * kRowBytes, kUnit = 16;
/// The address of a factor is given in units, modulo this number.
static constexpr int64_t kMostUnits = 1 << 14;

/// A multiprocessor has 65536 registers, which is 512 times the number of threads of a warpgroup. setmaxnreg takes
/// multiples of 8. A producer needs about 32 registers, and a thread has at most 255.
static constexpr int64_t kRegisters = 512, kRegisterUnit = 8, kLeastRegisters = 32,
                         kMostRegisters = 255;

/// The sum of the registers of one thread of each warpgroup of a block with `warpgroups` consumers.
static int64_t countRegisters(int64_t warpgroups) {
  return llvm::alignDown(kRegisters / (warpgroups + 1), kRegisterUnit) * (warpgroups + 1);
}

int64_t attn::countConsumerRegisters(int64_t warpgroups) {
  if (warpgroups == 1)
    return kMostRegisters;
  return llvm::alignDown((countRegisters(warpgroups) - kLeastRegisters) / warpgroups,
                         kRegisterUnit);
}

int64_t attn::countProducerRegisters(int64_t warpgroups) {
  return countRegisters(warpgroups) - warpgroups * countConsumerRegisters(warpgroups);
}

bool attn::multipliesByWarpgroups(GpuAttr gpu, Type element, int64_t warps, int64_t rows,
                                  int64_t columns) {
  return gpu && gpu.can(GpuCapabilities::Warpgroups) && element.getIntOrFloatBitWidth() == 16 &&
         warps % kWarpgroupWarps == 0 && rows == kMatrixRows && columns <= kWarpgroupColumns;
}

Value WarpgroupMultiply::describe(ThreadBuilder &b, Value tile, Value offset) const {
  auto type = cast<MemRefType>(tile.getType());
  int64_t blockBytes = type.getDimSize(0) * kRowBytes;
  auto metadata = memref::ExtractStridedMetadataOp::create(b, tile);
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, tile);
  address = b.add(b.add(address, b.multiply(metadata.getOffset(), 2)), offset);
  Value units = b.toI32(b.remainder(b.divide(address, kUnit), kMostUnits));
  Value low = arith::OrIOp::create(b, units, b.i32(blockBytes / kUnit << 16));
  return createOpaque(b, low); // all descriptions of a tile are `low` plus constants
}

/// The description of a factor that begins `bytes` bytes after the factor whose description has the lower half `low`.
static Value createDescription(ThreadBuilder &b, Value low, int64_t bytes) {
  static constexpr uint64_t kHigh = uint64_t(kGroupBytes / kUnit) << 32 | uint64_t(1) << 62;
  Value moved = b.createOrFold<arith::AddIOp>(low, b.i32(bytes / kUnit));
  Value high = arith::ConstantOp::create(b, b.getI64IntegerAttr(int64_t(kHigh)));
  return arith::OrIOp::create(b, arith::ExtUIOp::create(b, b.getI64Type(), moved), high);
}

Factor WarpgroupMultiply::describeRows(ThreadBuilder &b, Value tile, Value row,
                                       int64_t depth) const {
  int64_t blockBytes = cast<MemRefType>(tile.getType()).getDimSize(0) * kRowBytes;
  Factor factors;
  Value first = describe(b, tile, b.multiply(row, kRowBytes));
  for (int64_t column = 0; column < depth; column += kDepth)
    factors.push_back(createDescription(
        b, first, column / kSwizzledColumns * blockBytes + column % kSwizzledColumns * 2));
  return factors;
}

Factor WarpgroupMultiply::describeColumns(ThreadBuilder &b, Value tile, int64_t depth) const {
  Factor factors;
  Value first = describe(b, tile, b.constant(0));
  for (int64_t row = 0; row < depth; row += kDepth)
    factors.push_back(createDescription(b, first, row * kRowBytes));
  return factors;
}

/// The names of the operands [first, first + count) of inline assembly.
static std::string operandNames(int64_t first, int64_t count) {
  std::string names;
  for (int64_t i = 0; i < count; ++i)
    names += (i ? ", $" : "$") + std::to_string(first + i);
  return names;
}

/// Emits inline assembly with the results `sums`. Its operands are `before`, in the same registers as the results, and
/// `others`.
static void createProducts(ThreadBuilder &b, const std::string &text, ArrayRef<Value> before,
                           ArrayRef<Value> others, MutableArrayRef<Accumulator> sums) {
  int64_t count = int64_t(sums.size()) * 4;
  std::string constraints = "=f";
  for (int64_t i = 1; i < count; ++i)
    constraints += ",=f";
  for (int64_t i = 0; i < int64_t(before.size()); ++i)
    constraints += "," + std::to_string(i);
  for (Value other : others)
    constraints += other.getType().isInteger(64) ? ",l" : ",r";
  SmallVector<Value> operands(before);
  llvm::append_range(operands, others);
  auto results =
      LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(count, b.getF32Type()));
  Value result = createAssembly(b, results, operands, text, constraints).getResult(0);
  for (auto [i, accumulator] : llvm::enumerate(sums))
    for (auto [j, sum] : llvm::enumerate(accumulator))
      sum = LLVM::ExtractValueOp::create(b, result, int64_t(4 * i + j));
}

static SmallVector<Value> flatten(ArrayRef<Accumulator> sums) {
  SmallVector<Value> values;
  for (const Accumulator &accumulator : sums)
    values.append(accumulator.begin(), accumulator.end());
  return values;
}

/// Emits one instruction for each right factor and the left factor with the same number. A left factor takes
/// `registers` operands of `left`.
static void createMultiply(ThreadBuilder &b, Type element, ArrayRef<Value> left, int64_t registers,
                           ArrayRef<Value> right, WarpgroupMultiply::Right order, bool clears,
                           bool waits, MutableArrayRef<Accumulator> sums) {
  int64_t count = int64_t(sums.size()) * 4, firstLeft = clears ? count : 2 * count;
  int64_t firstRight = firstLeft + int64_t(left.size());
  bool isInRegisters = registers > 1;
  StringRef type = element.isBF16() ? "bf16" : "f16";
  std::string text = "wgmma.fence.sync.aligned;\n";
  for (int64_t i = 0; i < int64_t(right.size()); ++i) {
    std::string factor = operandNames(firstLeft + i * registers, registers);
    text += llvm::formatv("wgmma.mma_async.sync.aligned.m64n{0}k16.f32.{1}.{1} {{{2}}, {3}, ${4}, "
                          "{5}, 1, 1, {6}{7};\n",
                          sums.size() * kMatrixColumns, type, operandNames(0, count),
                          isInRegisters ? "{" + factor + "}" : factor, firstRight + i,
                          clears && i == 0 ? 0 : 1, isInRegisters ? "" : "0, ",
                          order == WarpgroupMultiply::Right::Rows ? 0 : 1);
  }
  text += "wgmma.commit_group.sync.aligned;";
  if (waits)
    text += "\nwgmma.wait_group.sync.aligned 0;";
  SmallVector<Value> others(left);
  llvm::append_range(others, right);
  createProducts(b, text, clears ? SmallVector<Value>() : flatten(sums), others, sums);
}

/// The left factors, in registers of type i32.
static SmallVector<Value> toRegisters(ThreadBuilder &b, ArrayRef<Factor> left) {
  SmallVector<Value> registers;
  for (const Factor &factor : left)
    for (Value value : factor)
      registers.push_back(value.getType().isInteger()
                              ? value
                              : LLVM::BitcastOp::create(b, b.getI32Type(), value).getResult());
  return registers;
}

void WarpgroupMultiply::multiply(ThreadBuilder &b, const Factor &left, const Factor &right,
                                 Right order, bool clears,
                                 MutableArrayRef<Accumulator> sums) const {
  createMultiply(b, element, left, /*registers=*/1, right, order, clears, /*waits=*/true, sums);
}

void WarpgroupMultiply::multiply(ThreadBuilder &b, ArrayRef<Factor> left, const Factor &right,
                                 Right order, MutableArrayRef<Accumulator> sums) const {
  createMultiply(b, element, toRegisters(b, left), int64_t(left.front().size()), right, order,
                 /*clears=*/false, /*waits=*/true, sums);
}

void WarpgroupMultiply::start(ThreadBuilder &b, const Factor &left, const Factor &right,
                              Right order, bool clears, MutableArrayRef<Accumulator> sums) const {
  createMultiply(b, element, left, /*registers=*/1, right, order, clears, /*waits=*/false, sums);
}

void WarpgroupMultiply::start(ThreadBuilder &b, ArrayRef<Factor> left, const Factor &right,
                              Right order, MutableArrayRef<Accumulator> sums) const {
  createMultiply(b, element, toRegisters(b, left), int64_t(left.front().size()), right, order,
                 /*clears=*/false, /*waits=*/false, sums);
}

void WarpgroupMultiply::wait(ThreadBuilder &b, int64_t running, MutableArrayRef<Accumulator> sums) {
  createProducts(b, "wgmma.wait_group.sync.aligned " + std::to_string(running) + ";", flatten(sums),
                 {}, sums);
}

void attn::showToWarpgroups(ThreadBuilder &b) {
  NVVM::FenceProxyOp::create(
      b, NVVM::ProxyKindAttr::get(b.getContext(), NVVM::ProxyKind::async_shared),
      NVVM::SharedSpaceAttr::get(b.getContext(), NVVM::SharedSpace::shared_cta));
}
