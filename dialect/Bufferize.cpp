//===- Bufferize.cpp - bufferization of the ops ----------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// All ops on tensors but attn.test_mask are in destination style, and have one model: an op writes its results to the
// buffers of its outputs. The ops differ only in which outputs they read.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace attn;

namespace {
template <typename OpTy>
struct DestinationStyleModel
    : DstBufferizableOpInterfaceExternalModel<DestinationStyleModel<OpTy>, OpTy> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand, const AnalysisState &) const {
    if (!cast<DestinationStyleOpInterface>(op).isDpsInit(&operand))
      return true;
    if (auto step = dyn_cast<OnlineStepOp>(op))
      return operand.get() != step.getScores() && operand.get() != step.getProbabilities();
    return isa<OnlineMergeOp>(op);
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto dps = cast<DestinationStyleOpInterface>(op);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    SmallVector<Value> operands, outs;
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (isa<TensorType>(value.getType())) {
        FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
        if (failed(buffer))
          return failure();
        value = *buffer;
        if (dps.isDpsInit(&operand))
          outs.push_back(value);
      }
      operands.push_back(value);
    }
    Operation *onBuffers = cloneWithoutRegions(rewriter, op, TypeRange{}, operands);
    for (auto [from, to] : llvm::zip_equal(op->getRegions(), onBuffers->getRegions()))
      rewriter.inlineRegionBefore(from, to, to.begin());
    replaceOpWithBufferizedValues(rewriter, op, outs);
    return success();
  }
};

/// The results of attn.test_mask are scalars, so only its operand becomes a buffer.
struct TestMaskModel : BufferizableOpInterface::ExternalModel<TestMaskModel, TestMaskOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &, const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto test = cast<TestMaskOp>(op);
    FailureOr<Value> words = getBuffer(rewriter, test.getWords(), options, state);
    if (failed(words))
      return failure();
    replaceOpWithNewBufferizedOp<TestMaskOp>(rewriter, op, *words, test.getKeeps());
    return success();
  }
};
} // namespace

void attn::registerBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    AttentionOp::attachInterface<DestinationStyleModel<AttentionOp>>(*context);
    OnlineInitOp::attachInterface<DestinationStyleModel<OnlineInitOp>>(*context);
    OnlineStepOp::attachInterface<DestinationStyleModel<OnlineStepOp>>(*context);
    OnlineProbabilitiesOp::attachInterface<DestinationStyleModel<OnlineProbabilitiesOp>>(*context);
    OnlineMergeOp::attachInterface<DestinationStyleModel<OnlineMergeOp>>(*context);
    OnlineFinishOp::attachInterface<DestinationStyleModel<OnlineFinishOp>>(*context);
    PackOp::attachInterface<DestinationStyleModel<PackOp>>(*context);
    PackMaskOp::attachInterface<DestinationStyleModel<PackMaskOp>>(*context);
    TestMaskOp::attachInterface<TestMaskModel>(*context);
  });
}
