//===- OutlineKernels.cpp - turn tasks into kernels of a GPU ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func private @f.attend(%index: index, %worker: index, %n: index, %x: memref<?x64xf16>)
//       attributes {attn.launch = #attn.launch<threads = 128, shared = 27648>} {...}
// becomes
//   func.func private @f.attend(index, index, index, memref<?x64xf16>)
//       attributes {attn.launch = #attn.launch<threads = 128, shared = 27648, arguments = 72>}
//   gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
//     llvm.mlir.global external @shared() {addr_space = 3} : !llvm.array<0 x i8>     dynamic shared memory
//     llvm.func @f_attend_0(%context: !llvm.ptr {llvm.byval = !llvm.struct<(ptr, i64, struct<(ptr, ptr, i64, ..)>)>})
//         attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128>} {
//       %index = nvvm.read.ptx.sreg.ctaid.x
//       %n, %x = the fields of %context ...
//
// The first parameter of a kernel is the struct of captured values, which LowerKernelAbi also passes to tasks on CPUs.
// Its first field points to the counts of tiles of the call. Each tensor map is a further parameter. Each block of
// threads runs one task, or, if #attn.launch has `blocks`, several. The declaration stays for attn.parallel_for, which
// LowerKernelAbi lowers to a launch. In a
// kernel with producers (ProduceTiles.cpp), gpu.barrier becomes a barrier of all threads but the producers.
//
//   attn.count_tiles run(%run) skipped(%skipped)
// becomes
//   %adds = whether this is thread 0 of the block, and the pointer to the counts is not null
//   llvm.inline_asm "@$0 red.global.add.u64 [$1], $2;" %adds, %counts, %run        the same for the count of %skipped
// Test: test/codegen/gpu/outline-kernels.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"
#include "codegen/gpu/Gpu.h"
#include "codegen/gpu/Passes.h"
#include "codegen/gpu/Threads.h"
#include "runtime/attn_kernel.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "codegen/gpu/Passes.h.inc"
} // namespace attn

using namespace attn;

/// Shared memory is address space 3 of LLVM's NVPTX.
static constexpr unsigned kSharedSpace = 3;
/// Swizzled tiles (TileCopies.h) begin at multiples of 1024 bytes.
static constexpr uint64_t kSharedAlignment = 1024;
/// The largest size in bytes of the parameters of a kernel in PTX 8.0.
static constexpr int64_t kMostArguments = 4352;

/// The size and the alignment of a tensor map in bytes.
static constexpr int64_t kMapBytes = 128, kMapAlignment = 64;

namespace {
struct OutlineKernels : attn::impl::OutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    ModuleOp level = getOperation();
    auto gpu = dyn_cast_if_present<GpuAttr>(getTarget(level));
    if (!gpu)
      return;
    llvm::Expected<const Target *> target = cast<CodegenInterface>(gpu).getDescription();
    if (!target) {
      level.emitError(llvm::toString(target.takeError()));
      return signalPassFailure();
    }
    OpBuilder builder = OpBuilder::atBlockEnd(level.getBody());
    StringRef ptx = static_cast<const GpuTarget &>(**target).ptx;
    Attribute chip = NVVM::NVVMTargetAttr::get(&getContext(), /*optLevel=*/3, (*target)->triple,
                                               (*target)->level, ptx);
    auto kernels =
        gpu::GPUModuleOp::create(builder, level.getLoc(), "kernels", builder.getArrayAttr(chip));
    OpBuilder inside = OpBuilder::atBlockBegin(kernels.getBody());
    auto bytes = LLVM::LLVMArrayType::get(inside.getI8Type(), 0);
    shared = LLVM::GlobalOp::create(inside, level.getLoc(), bytes, /*isConstant=*/false,
                                    LLVM::Linkage::External, "shared", Attribute(),
                                    /*alignment=*/kSharedAlignment, kSharedSpace);
    int64_t number = 0;
    for (func::FuncOp task : llvm::to_vector(level.getOps<func::FuncOp>())) {
      auto launch = task->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
      if (!launch || task.isDeclaration())
        continue;
      SmallVector<Attribute> maps;
      int64_t arguments = outline(inside, task, launch, number, maps);
      int64_t bytes = arguments + int64_t(maps.size()) * kMapBytes;
      if (bytes > kMostArguments || maps.size() > ATTN_TENSOR_MAPS) {
        task.emitError() << "expected a task that needs at most " << kMostArguments
                         << " bytes of arguments and " << ATTN_TENSOR_MAPS << " tensor maps, got "
                         << bytes << " bytes and " << maps.size() << " tensor maps";
        return signalPassFailure();
      }
      task->setAttr(AttnDialect::kLaunchAttr,
                    LaunchAttr::get(&getContext(), launch.getThreads(), launch.getProducers(),
                                    launch.getBlocks(), launch.getShared(), number++, arguments,
                                    maps.empty() ? ArrayAttr() : builder.getArrayAttr(maps)));
    }
    if (number == 0)
      return kernels.erase();
    copyGlobals(level, kernels);
  }

  /// Copies the constant arrays that kernels read into the module of kernels.
  static void copyGlobals(ModuleOp level, gpu::GPUModuleOp kernels) {
    SymbolTable globals(level), copies(kernels);
    OpBuilder builder = OpBuilder::atBlockBegin(kernels.getBody());
    kernels.walk([&](memref::GetGlobalOp use) {
      if (!copies.lookup(use.getName()))
        copies.insert(builder.clone(*globals.lookup(use.getName())));
    });
  }

  /// Moves the body of `task` to a kernel, and returns the size in bytes of the struct of captured values.
  int64_t outline(OpBuilder &builder, func::FuncOp task, LaunchAttr launch, int64_t number,
                  SmallVectorImpl<Attribute> &maps) {
    LLVMTypeConverter converter(&getContext());
    converter.addTypeAttributeConversion(
        [](BaseMemRefType, gpu::AddressSpaceAttr space) -> Attribute {
          unsigned number = space.getValue() == gpu::AddressSpace::Workgroup ? kSharedSpace : 0;
          return IntegerAttr::get(IntegerType::get(space.getContext(), 64), number);
        });
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    LLVM::LLVMStructType context =
        getContextType(converter, /*hasPointer=*/true, task.getArgumentTypes().drop_front(2));
    SmallVector<nvgpu::TmaCreateDescriptorOp> boxes;
    task.walk([&](nvgpu::TmaCreateDescriptorOp op) { boxes.push_back(op); });
    DataLayout layout(getOperation());
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()),
                                            SmallVector<Type>(1 + boxes.size(), pointer));
    auto kernel = LLVM::LLVMFuncOp::create(builder, task.getLoc(),
                                           getKernelName(task.getName(), number), type);
    kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
    kernel->setAttr(
        NVVM::NVVMDialect::getMaxntidAttrName(),
        builder.getDenseI32ArrayAttr({int32_t(launch.getThreads() + launch.getProducers()), 1, 1}));
    // Require only one block of threads per multiprocessor: NVIDIA's assembler otherwise spills a few registers of some
    // kernels, to make room for more blocks.
    kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(1));
    // f32 arithmetic that flushes subnormal numbers to zero takes fewer instructions.
    kernel.setPassthroughAttr(builder.getArrayAttr(
        {builder.getStrArrayAttr({"denormal-fp-math-f32", "preserve-sign,preserve-sign"})}));
    kernel.setArgAttr(0, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(context));
    auto map = LLVM::LLVMArrayType::get(builder.getI8Type(), kMapBytes);
    for (size_t i = 0; i < boxes.size(); ++i) {
      kernel.setArgAttr(1 + i, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(map));
      kernel.setArgAttr(1 + i, LLVM::LLVMDialect::getAlignAttrName(),
                        builder.getI64IntegerAttr(kMapAlignment));
    }
    for (size_t i = 0; i < 1 + boxes.size(); ++i)
      kernel.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(), builder.getUnitAttr());

    kernel.getBody().takeBody(task.getBody());
    Block &entry = kernel.getBody().front();
    Value given = entry.addArgument(pointer, task.getLoc());
    for (nvgpu::TmaCreateDescriptorOp box : boxes) {
      maps.push_back(describe(box, context, layout));
      OpBuilder at(box);
      Value parameter = entry.addArgument(pointer, task.getLoc());
      box.replaceAllUsesWith(
          UnrealizedConversionCastOp::create(at, box.getLoc(), box.getType(), parameter)
              .getResult(0));
      Operation *tensor = box.getTensor().getDefiningOp();
      box.erase();
      if (tensor->use_empty())
        tensor->erase();
    }
    ThreadBuilder b(task.getLoc(), OpBuilder::atBlockBegin(&entry));
    auto load = [&](int32_t i) -> Value {
      Value place = LLVM::GEPOp::create(b, pointer, context, given, ArrayRef<LLVM::GEPArg>{0, i});
      return LLVM::LoadOp::create(b, context.getBody()[i], place);
    };
    entry.getArgument(0).replaceAllUsesWith(gpu::BlockIdOp::create(b, gpu::Dimension::x));
    // Field 0 has the counts, and field i has argument i + 1 of the task, after the index and the worker.
    for (unsigned i = 1; i < context.getBody().size(); ++i) {
      BlockArgument argument = entry.getArgument(1 + i);
      if (argument.use_empty())
        continue;
      Value value = load(i);
      if (value.getType() != argument.getType())
        value = UnrealizedConversionCastOp::create(b, argument.getType(), value).getResult(0);
      argument.replaceAllUsesWith(value);
    }
    entry.eraseArguments(0, entry.getNumArguments() - 1 - boxes.size());
    SmallVector<CountTilesOp> counts;
    kernel.walk([&](CountTilesOp op) { counts.push_back(op); });
    Value tiles = counts.empty() ? Value() : load(0);
    for (CountTilesOp op : counts)
      lower(op, tiles);
    kernel.walk([&](Operation *op) {
      if (auto memory = dyn_cast<gpu::DynamicSharedMemoryOp>(op)) {
        ImplicitLocOpBuilder b(op->getLoc(), op);
        auto descriptor = MemRefDescriptor::fromStaticShape(
            b, b.getLoc(), converter, MemRefType::Builder(memory.getType()).setShape({0}),
            LLVM::AddressOfOp::create(b, shared));
        memory.replaceAllUsesWith(
            UnrealizedConversionCastOp::create(b, memory.getType(), Value(descriptor))
                .getResult(0));
        op->erase();
      } else if (isa<gpu::BarrierOp>(op) && launch.getProducers()) {
        ImplicitLocOpBuilder b(op->getLoc(), op);
        auto i32 = [&](int64_t value) -> Value {
          return LLVM::ConstantOp::create(b, b.getI32IntegerAttr(value));
        };
        NVVM::BarrierOp::create(b, TypeRange(), i32(kConsumerBarrier), i32(launch.getThreads()),
                                NVVM::BarrierReductionAttr(), Value());
        op->erase();
      } else if (isa<func::ReturnOp>(op)) {
        OpBuilder end(op);
        LLVM::ReturnOp::create(end, op->getLoc(), ValueRange{});
        op->erase();
      }
    });
    return layout.getTypeSize(context);
  }

  /// Adds the counts of `op` to the counts of the call at `tiles`, which is null if the call does not count. The
  /// instructions have a predicate, because NVIDIA's assembler spills registers of some kernels if there is a branch.
  static void lower(CountTilesOp op, Value tiles) {
    ThreadBuilder b(op.getLoc(), op);
    Value null = LLVM::ZeroOp::create(b, tiles.getType());
    Value counts = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, tiles, null);
    Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, b.thread(), b.constant(0));
    Value adds = arith::AndIOp::create(b, isFirst, counts);
    for (auto [i, count] : llvm::enumerate(op.getOperands())) {
      if (isConstantIntValue(count, 0))
        continue;
      Value counter = LLVM::GEPOp::create(b, tiles.getType(), b.getI64Type(), tiles,
                                          ArrayRef<LLVM::GEPArg>{int32_t(i)});
      Value added = arith::IndexCastOp::create(b, b.getI64Type(), count);
      createAssembly(b, TypeRange(), {adds, counter, added}, "@$0 red.global.add.u64 [$1], $2;",
                     "b,l,l");
    }
    op.erase();
  }

  /// The attribute that describes the tensor map of `op`. Its tensor is an argument of the task; `context` is the type
  /// of the struct of captured values.
  static Attribute describe(nvgpu::TmaCreateDescriptorOp op, LLVM::LLVMStructType context,
                            const DataLayout &layout) {
    auto tensor = cast<BlockArgument>(op.getTensor().getDefiningOp<memref::CastOp>().getSource());
    auto type = cast<MemRefType>(tensor.getType());
    int64_t offset = 0, dim = 0;
    for (auto [i, field] : llvm::enumerate(context.getBody())) {
      offset = llvm::alignTo(offset, layout.getTypeABIAlignment(field));
      if (i + 1 == tensor.getArgNumber())
        break;
      offset += layout.getTypeSize(field);
    }
    SmallVector<int64_t> box = llvm::map_to_vector(
        op.getBoxDimensions(), [](Value size) { return *getConstantIntValue(size); });
    while (box[dim] == 1 && dim + 2 < type.getRank())
      ++dim;
    return TensorMapAttr::get(op.getContext(), offset, type.getRank(), dim, box[dim],
                              type.getElementTypeBitWidth() / 8);
  }

  LLVM::GlobalOp shared; ///< the beginning of dynamic shared memory
};
} // namespace
