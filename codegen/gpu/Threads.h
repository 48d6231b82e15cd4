//===- Threads.h - helpers for code that runs on threads ----------*- C++ -*-===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_THREADS_H
#define ATTN_CODEGEN_GPU_THREADS_H

#include "dialect/Attn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

/// The number of threads of a warp.
inline constexpr int64_t kWarp = 32;

/// The numbers of the barriers of a block of threads. All threads wait at barrier 0. The consumers, which are all
/// threads except those that only copy, wait at barrier 1. Each warpgroup of consumers has a barrier for votes, with a
/// number from 2 on.
inline constexpr int64_t kConsumerBarrier = 1, kFirstWarpgroupBarrier = 2;

/// A builder with short forms for index arithmetic, for constants, and for the numbers of the thread, its lane and its
/// warp. The functions f32(), i32(), toI32() and isLess() return an f32, an i32 or an i1; all others return an index.
struct ThreadBuilder : mlir::ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  mlir::Value constant(int64_t value) { return mlir::arith::ConstantIndexOp::create(*this, value); }
  mlir::Value f32(double value) {
    return mlir::arith::ConstantOp::create(*this, getF32FloatAttr(value));
  }
  mlir::Value i32(int64_t value) {
    return mlir::arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  mlir::Value toI32(mlir::Value index) {
    return mlir::arith::IndexCastOp::create(*this, getI32Type(), index);
  }
  mlir::Value add(mlir::Value a, mlir::Value b) { return createOrFold<mlir::arith::AddIOp>(a, b); }
  mlir::Value add(mlir::Value a, int64_t b) { return b == 0 ? a : add(a, constant(b)); }
  mlir::Value subtract(mlir::Value a, mlir::Value b) {
    return createOrFold<mlir::arith::SubIOp>(a, b);
  }
  mlir::Value multiply(mlir::Value a, int64_t b) {
    return b == 1 ? a : createOrFold<mlir::arith::MulIOp>(a, constant(b));
  }
  mlir::Value divide(mlir::Value a, int64_t b) {
    return b == 1 ? a : createOrFold<mlir::arith::DivUIOp>(a, constant(b));
  }
  mlir::Value remainder(mlir::Value a, int64_t b) {
    return createOrFold<mlir::arith::RemUIOp>(a, constant(b));
  }
  mlir::Value min(mlir::Value a, mlir::Value b) { return createOrFold<mlir::arith::MinSIOp>(a, b); }
  mlir::Value max(mlir::Value a, mlir::Value b) { return createOrFold<mlir::arith::MaxSIOp>(a, b); }
  mlir::Value isLess(mlir::Value a, mlir::Value b) {
    return mlir::arith::CmpIOp::create(*this, mlir::arith::CmpIPredicate::slt, a, b);
  }
  mlir::Value toValue(mlir::OpFoldResult size) {
    return mlir::getValueOrCreateConstantIndexOp(*this, getLoc(), size);
  }

  /// The number of this thread in its block.
  mlir::Value thread() { return mlir::gpu::ThreadIdOp::create(*this, mlir::gpu::Dimension::x); }
  mlir::Value lane() { return remainder(thread(), kWarp); }
  mlir::Value warp() { return divide(thread(), kWarp); }
};

/// Inline assembly with side effects.
inline mlir::LLVM::InlineAsmOp createAssembly(ThreadBuilder &b, mlir::TypeRange results,
                                              mlir::ValueRange operands, llvm::StringRef text,
                                              llvm::StringRef constraints) {
  auto dialect = mlir::LLVM::AsmDialectAttr::get(b.getContext(), mlir::LLVM::AsmDialect::AD_ATT);
  return mlir::LLVM::InlineAsmOp::create(b, results, operands, text, constraints,
                                         /*has_side_effects=*/true, /*is_align_stack=*/false,
                                         mlir::LLVM::TailCallKind::None, dialect,
                                         /*operand_attrs=*/mlir::ArrayAttr());
}

/// 2^x for an f32 `x`.
inline mlir::Value createExp2(ThreadBuilder &b, mlir::Value x) {
  return mlir::LLVM::CallIntrinsicOp::create(b, b.getF32Type(),
                                             b.getStringAttr("llvm.nvvm.ex2.approx.ftz.f32"),
                                             mlir::ValueRange{x})
      .getResult(0);
}

/// Whether `x`, an f32, is -inf.
inline mlir::Value createIsLowest(ThreadBuilder &b, mlir::Value x) {
  return mlir::arith::CmpFOp::create(b, mlir::arith::CmpFPredicate::OEQ, x,
                                     b.f32(-std::numeric_limits<double>::infinity()));
}

/// Copies the i32 `value` with an instruction that LLVM cannot move out of a loop. Otherwise, LLVM would compute all
/// addresses that depend on the value before the loop, and these addresses would take more registers than a thread has.
inline mlir::Value createOpaque(ThreadBuilder &b, mlir::Value value) {
  return createAssembly(b, b.getI32Type(), value, "mov.b32 $0, $1;", "=r,r").getResult(0);
}

/// Memory that the threads of a block share.
inline mlir::Attribute sharedSpace(mlir::MLIRContext *context) {
  return mlir::gpu::AddressSpaceAttr::get(context, mlir::gpu::AddressSpace::Workgroup);
}
/// The registers of all threads of a block: each thread holds some elements of a buffer in this space.
inline mlir::Attribute registerSpace(mlir::MLIRContext *context) {
  return mlir::gpu::AddressSpaceAttr::get(context, mlir::gpu::AddressSpace::Private);
}
inline bool isIn(mlir::Value buffer, mlir::Attribute space) {
  return mlir::cast<mlir::MemRefType>(buffer.getType()).getMemorySpace() == space;
}

/// Whether `function` is a task that threads of a GPU run.
inline bool isTaskOfThreads(mlir::func::FuncOp function) {
  return !function.isDeclaration() && function->hasAttr(AttnDialect::kLaunchAttr);
}

/// The number of threads that run the task `function`, without producers.
inline int64_t getThreads(mlir::func::FuncOp function) {
  return function->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr).getThreads();
}

} // namespace attn

#endif // ATTN_CODEGEN_GPU_THREADS_H
