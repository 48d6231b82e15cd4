//===- TilePipeline.cpp - tiles that other warps copy ----------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "codegen/gpu/TilePipeline.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn;

/// LLVM's numbers for two address spaces: the shared memory of a block of threads, and the shared memory of a cluster
/// of blocks, which TMA expects.
static constexpr unsigned kSharedOfBlock = 3, kSharedOfCluster = 7;

static SharedTile makeTile(Value operand, int64_t rows) {
  auto type = cast<MemRefType>(operand.getType());
  return {rows, type.getDimSize(1), type.getElementType(), /*isSwizzled=*/true};
}

static Value allocateBarriers(ThreadBuilder &top, int64_t count) {
  auto type = MemRefType::get({count}, top.getI64Type(), MemRefLayoutAttrInterface(),
                              sharedSpace(top.getContext()));
  return memref::AllocaOp::create(top, type);
}

TilePipeline::TilePipeline(ThreadBuilder &top, Value operand, int64_t rows, int64_t stages)
    : tile(makeTile(operand, rows)), stages(stages), tiles(tile.allocate(top, stages)),
      full(allocateBarriers(top, stages)), empty(allocateBarriers(top, stages)) {}

/// The address `bytes` bytes after the first element of `buffer`, which is in shared memory.
static Value addressOf(ThreadBuilder &b, Value buffer, Value bytes) {
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, buffer);
  Value number = arith::IndexCastOp::create(b, b.getI64Type(), b.add(address, bytes));
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kSharedOfBlock);
  return LLVM::IntToPtrOp::create(b, pointer, number);
}

Value TilePipeline::barrier(ThreadBuilder &b, Value barriers, Value stage) const {
  return addressOf(b, barriers, b.multiply(stage, sizeof(int64_t)));
}

Value TilePipeline::createTurn(ThreadBuilder &top) {
  // 32 bits, which take one register
  Value turn = memref::AllocaOp::create(top, MemRefType::get({}, top.getI32Type()));
  memref::StoreOp::create(top, top.i32(0), turn, ValueRange{});
  return turn;
}

static Value toIndex(ThreadBuilder &b, Value number) {
  return arith::IndexCastUIOp::create(b, b.getIndexType(), number);
}

static void addOne(ThreadBuilder &b, Value turn) {
  Value number = memref::LoadOp::create(b, turn, ValueRange{});
  memref::StoreOp::create(b, arith::AddIOp::create(b, number, b.i32(1)), turn, ValueRange{});
}

Value TilePipeline::stageOf(ThreadBuilder &b, Value turn) const {
  Value number = memref::LoadOp::create(b, turn, ValueRange{});
  return toIndex(b, arith::RemUIOp::create(b, number, b.i32(stages)));
}

void TilePipeline::initialize(ThreadBuilder &b, int64_t warps) const {
  for (int64_t stage = 0; stage < stages; ++stage) {
    NVVM::MBarrierInitOp::create(b, barrier(b, full, b.constant(stage)), b.i32(1), Value());
    NVVM::MBarrierInitOp::create(b, barrier(b, empty, b.constant(stage)), b.i32(warps), Value());
  }
}

void TilePipeline::waitFor(ThreadBuilder &b, Value barriers, Value turn, int64_t add) const {
  Value number = memref::LoadOp::create(b, turn, ValueRange{});
  Value place = barrier(b, barriers, stageOf(b, turn));
  Value round = arith::DivUIOp::create(b, number, b.i32(stages));
  Value phase = arith::AndIOp::create(b, arith::AddIOp::create(b, round, b.i32(add)), b.i32(1));
  // The instruction waits for a limited time, and returns whether the phase is over.
  auto loop = scf::WhileOp::create(b, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&loop.getBefore());
  Value isOver = NVVM::MBarrierTryWaitOp::create(b, b.getI1Type(), place, phase, /*ticks=*/Value());
  Value isRunning =
      arith::XOrIOp::create(b, isOver, arith::ConstantOp::create(b, b.getBoolAttr(true)));
  scf::ConditionOp::create(b, isRunning, ValueRange());
  b.createBlock(&loop.getAfter());
  scf::YieldOp::create(b);
}

void TilePipeline::produce(ThreadBuilder &b, Value turn, Value map,
                           ArrayRef<Value> coordinates) const {
  // A new barrier is in phase 0, and the previous phase counts as over. The first wait for each stage therefore ends at
  // once.
  waitFor(b, empty, turn, /*add=*/1);
  Value stage = stageOf(b, turn), arrival = barrier(b, full, stage);
  int64_t blocks = tile.pitch() / kSwizzledColumns;
  int64_t blockBytes = tile.rows * kSwizzledColumns * tile.element.getIntOrFloatBitWidth() / 8;
  NVVM::MBarrierArriveExpectTxOp::create(b, /*res=*/Type(), arrival, b.i32(blocks * blockBytes),
                                         NVVM::MemScopeKind::CTA, /*relaxed=*/false,
                                         /*predicate=*/Value());
  auto clusterPointer = LLVM::LLVMPointerType::get(b.getContext(), kSharedOfCluster);
  for (int64_t block = 0; block < blocks; ++block) {
    Value bytes = b.add(b.multiply(stage, blocks * blockBytes), block * blockBytes);
    Value target = LLVM::AddrSpaceCastOp::create(b, clusterPointer, addressOf(b, tiles, bytes));
    // The innermost dimension comes first.
    SmallVector<Value> box;
    for (auto [i, coordinate] : llvm::enumerate(llvm::reverse(coordinates)))
      box.push_back(b.toI32(i == 0 ? b.add(coordinate, block * kSwizzledColumns) : coordinate));
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, target, map, box, arrival, /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(),
        /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
        /*group=*/NVVM::CTAGroupKindAttr(), /*predicate=*/Value());
  }
  addOne(b, turn);
}

void TilePipeline::wait(ThreadBuilder &b, Value turn) const { waitFor(b, full, turn, /*add=*/0); }

Value TilePipeline::view(ThreadBuilder &b, Value turn, OpFoldResult rows) const {
  return tile.view(b, tiles, stageOf(b, turn), rows);
}

void TilePipeline::release(ThreadBuilder &b, Value turn) const {
  Value stage = stageOf(b, turn);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.lane(), b.constant(0));
  auto first = scf::IfOp::create(b, isFirst);
  ThreadBuilder in(b.getLoc(), OpBuilder::atBlockBegin(first.thenBlock()));
  NVVM::MBarrierArriveOp::create(in, in.getI64Type(), barrier(in, empty, stage), /*count=*/Value());
  addOne(b, turn);
}
