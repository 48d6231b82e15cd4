//===- Passes.td - passes for GPUs -----------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A task is a unit of parallel work, such as the attention of one tile of queries. On a GPU, one block of threads runs
// a task, and each task function becomes a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CODEGEN_GPU_PASSES_TD
#define ATTN_CODEGEN_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def SplitSoftmax : Pass<"attn-gpu-split-softmax", "::mlir::func::FuncOp"> {
  let summary = "split each softmax outside of attention into maxima, sums and elementwise ops";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/SplitSoftmax.cpp`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::linalg::LinalgDialect"];
}

def OrderKeys : Pass<"attn-gpu-order-keys", "::mlir::func::FuncOp"> {
  let summary = "transpose keys and values that are stored column by column";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/OrderKeys.cpp`.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def OrderTasks : Pass<"attn-gpu-order-tasks", "::mlir::func::FuncOp"> {
  let summary = "start the tasks of a masked attention in descending order of numbers of keys";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/OrderTasks.cpp`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect"];
}

def PlaceTemporaries : Pass<"attn-gpu-place-temporaries", "::mlir::func::FuncOp"> {
  let summary = "decide which temporaries of a task lie in registers and which in shared memory";
  let description = [{
    The states of online softmaxes lie in registers, except states into which other states are merged. So do the
    scratch buffers of steps. All other temporaries of a task lie in memory that its threads share. For the
    IR before and after, see the header of `codegen/gpu/PlaceTemporaries.cpp`.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect"];
}

def LaunchOps : Pass<"attn-gpu-launch-ops", "::mlir::func::FuncOp"> {
  let summary = "wrap each op outside of tasks in a task of its own";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/LaunchOps.cpp`.
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def AssignThreads : Pass<"attn-gpu-assign-threads", "::mlir::ModuleOp"> {
  let summary = "choose the number of threads that run each task";
  let description = [{
    Writes `attn.launch` on the functions that `attn.parallel_for` calls. For the IR before and after, see the header of
    `codegen/gpu/AssignThreads.cpp`.
  }];
}

def ProduceTiles : Pass<"attn-gpu-produce-tiles", "::mlir::ModuleOp"> {
  let summary = "copy the tiles of attention steps to shared memory with separate warps";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/ProduceTiles.cpp`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::nvgpu::NVGPUDialect", "::mlir::scf::SCFDialect"];
}

def StageTiles : Pass<"attn-gpu-stage-tiles", "::mlir::func::FuncOp"> {
  let summary = "copy the tiles of attention steps to shared memory, one step before they are used";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/StageTiles.cpp`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::nvgpu::NVGPUDialect", "::mlir::scf::SCFDialect"];
}

def OnlineToFragments : Pass<"attn-gpu-online-to-fragments", "::mlir::func::FuncOp"> {
  let summary = "lower the online softmax to mma.sync or wgmma";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/OnlineToFragments.cpp`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::nvgpu::NVGPUDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def MergeToThreads : Pass<"attn-gpu-merge-to-threads", "::mlir::func::FuncOp"> {
  let summary = "lower the merge of states of online softmaxes to loops";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/MergeToThreads.cpp`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ProductToFragments : Pass<"attn-gpu-product-to-fragments", "::mlir::func::FuncOp"> {
  let summary = "lower matrix products to mma.sync or wgmma";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/ProductToFragments.cpp`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::nvgpu::NVGPUDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def MaskToThreads : Pass<"attn-gpu-mask-to-threads", "::mlir::func::FuncOp"> {
  let summary = "lower packed masks to loops over their words";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/MaskToThreads.cpp`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"];
}

def DistributeLoops : Pass<"attn-gpu-distribute-loops", "::mlir::func::FuncOp"> {
  let summary = "split elementwise ops and sums among the threads of a task";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/DistributeLoops.cpp`.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def AssignShared : Pass<"attn-gpu-assign-shared", "::mlir::ModuleOp"> {
  let summary = "assign an offset in shared memory to each buffer";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/AssignShared.cpp`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect"];
}

def OutlineKernels : Pass<"attn-gpu-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "move the tasks of a level to a module of kernels";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/OutlineKernels.cpp`.
  }];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

def MathToIntrinsics : Pass<"attn-gpu-math-to-intrinsics", "::mlir::gpu::GPUModuleOp"> {
  let summary = "lower sqrt, fma, max and similar functions to intrinsics of LLVM";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/MathToIntrinsics.cpp`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def EmbedKernels : Pass<"attn-gpu-embed-kernels", "::mlir::ModuleOp"> {
  let summary = "compile kernels to PTX, and store the PTX as a constant of the library";
  let description = [{
    For the IR before and after, see the header of `codegen/gpu/EmbedKernels.cpp`.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // ATTN_CODEGEN_GPU_PASSES_TD
