//===- LowerKernelAbi.cpp - give kernels the ABI of the runtime ------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   func.func @f(%x: memref<?x4xf32> {attn.name = "x", attn.dims = ["n", ""]},
//                %out: memref<?x4xf32> {attn.output, attn.dims = ["n", ""]},
//                %workspace: memref<?xi8>)
//       attributes {attn.kernel = "entry", attn.symbols = [#attn.symbol<"n", 0 to 64>]} {
//     attn.parallel_for @f.rows(%x, %out) count(%n) : memref<?x4xf32>, memref<?x4xf32>
//   }
//   func.func private @f.rows(%i: index, %worker: index, %x: memref<?x4xf32>,
//                             %out: memref<?x4xf32>, %scratch: memref<?xi8> {attn.scratch}) {...}
// ==>
//   func.func @f(%call: !llvm.ptr) {                                    // attn_run_fn
//     %context = llvm.alloca struct<(ptr, descriptor, descriptor)>
//     %x = the descriptor of call->inputs[0], its sizes from call->dims
//     ... store %call, %x, %out to %context
//     llvm.call call->parallel_for(call->pool, @f.rows, %context, %n)
//   }
//   func.func private @f.rows(%context: !llvm.ptr, %i: i64, %worker: i64) {   // attn_task_fn
//     %x = load from %context ...
//     %scratch = call->task_workspace + %worker * call->task_stride {attn.scratch}
//   }
//
// A task with `attn.launch` is a declaration. The attn.parallel_for that names it becomes a call of call->launch with
// the number of the kernel, the count and the context, which begins with call->tiles. attn.count_tiles adds to
// call->tiles[%worker] in a task, and to call->tiles[0] in an entry, because worker 0 runs the entry. Functions with
// attn.kernel = "workspace" and "pack" become attn_workspace_fn and attn_pack_fn. Unrealized casts convert between
// memrefs and descriptors, and between index and i64; the conversion to LLVM resolves them. Other functions stay
// unchanged.
// Test: test/codegen/emit/lower-kernel-abi.mlir
//
//===----------------------------------------------------------------------===//

#include "codegen/Codegen.h"
#include "codegen/emit/Interface.h"
#include "codegen/emit/Passes.h"
#include "dialect/Attn.h"
#include "runtime/attn_kernel.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cstddef>
#include <type_traits>

namespace attn {
#define GEN_PASS_DEF_LOWERKERNELABI
#include "codegen/emit/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// A field of attn_kernel_call: its offset in bytes, and whether it is a pointer. A field that is not a pointer is an
/// int64_t.
struct CallField {
  size_t offset;
  bool isPointer;
};

#define CALL_FIELD(name)                                                                           \
  CallField {                                                                                      \
    offsetof(attn_kernel_call, name), std::is_pointer_v<decltype(attn_kernel_call::name)>          \
  }

/// Creates the LLVM operations that the ABI needs.
struct AbiBuilder : ImplicitLocOpBuilder {
  AbiBuilder(Location loc, Block *block, Block::iterator point, const LLVMTypeConverter &converter)
      : ImplicitLocOpBuilder(loc, block, point), converter(converter) {}

  Type ptr() { return LLVM::LLVMPointerType::get(getContext()); }
  Type i64() { return getI64Type(); }

  /// Casts `value` between its type before and its type after the conversion to LLVM.
  Value cast(Value value, Type type) {
    return value.getType() == type
               ? value
               : UnrealizedConversionCastOp::create(*this, type, value).getResult(0);
  }
  Value toLLVM(Value value) { return cast(value, converter.convertType(value.getType())); }

  Value constant(int64_t value) { return LLVM::ConstantOp::create(*this, i64(), value); }
  Value multiply(Value a, Value b) { return LLVM::MulOp::create(*this, a, b); }

  Value load(Type type, Value pointer) { return LLVM::LoadOp::create(*this, type, pointer); }
  void store(Value value, Value pointer) { LLVM::StoreOp::create(*this, value, pointer); }

  Value field(Type structType, Value base, int32_t index) {
    return LLVM::GEPOp::create(*this, ptr(), structType, base, ArrayRef<LLVM::GEPArg>{0, index});
  }
  /// &base[index] of an array of `type`.
  Value element(Type type, Value base, int32_t index) {
    return LLVM::GEPOp::create(*this, ptr(), type, base, ArrayRef<LLVM::GEPArg>{index});
  }
  /// base + offset bytes.
  Value advance(Value base, Value offset) {
    return LLVM::GEPOp::create(*this, ptr(), getI8Type(), base, ArrayRef<LLVM::GEPArg>{offset});
  }

  Value callField(Value call, CallField field) {
    return load(field.isPointer ? ptr() : i64(), advance(call, constant(field.offset)));
  }

  /// Adds the counts of `op` to the attn_tile_counts of `worker`.
  void countTiles(CountTilesOp op, Value call, Value worker) {
    Value counts = advance(callField(call, CALL_FIELD(tiles)),
                           multiply(worker, constant(sizeof(attn_tile_counts))));
    for (auto [i, count] : llvm::enumerate(op.getOperands())) {
      Value counter = element(i64(), counts, i);
      store(LLVM::AddOp::create(*this, load(i64(), counter), toLLVM(count)), counter);
    }
    op.erase();
  }

  /// The memref of identity layout at `data` whose dynamic sizes are `dynamicSizes`, in order.
  Value buffer(MemRefType type, Value data, ValueRange dynamicSizes) {
    auto descriptor = MemRefDescriptor::poison(*this, getLoc(), converter.convertType(type));
    descriptor.setAllocatedPtr(*this, getLoc(), data);
    descriptor.setAlignedPtr(*this, getLoc(), data);
    descriptor.setConstantOffset(*this, getLoc(), 0);
    Value stride = constant(1);
    for (int64_t i = type.getRank() - 1; i >= 0; --i) {
      Value size = type.isDynamicDim(i) ? dynamicSizes[type.getDynamicDimIndex(i)]
                                        : constant(type.getDimSize(i));
      descriptor.setSize(*this, getLoc(), i, size);
      descriptor.setStride(*this, getLoc(), i, stride);
      stride = multiply(stride, size);
    }
    return cast(descriptor, type);
  }

  const LLVMTypeConverter &converter;
};

struct LowerKernelAbi : attn::impl::LowerKernelAbiBase<LowerKernelAbi> {
  void runOnOperation() override {
    LLVMTypeConverter converter(&getContext());
    this->converter = &converter;
    SymbolTable symbols(getOperation());

    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (auto kind = function->getAttrOfType<StringAttr>(AttnDialect::kKernelAttr);
          kind && kind.getValue() == "entry" && !function.isDeclaration())
        (void)function.insertArgument(0, pointer, DictionaryAttr(), function.getLoc()); // the call

    llvm::SetVector<Operation *> tasks;
    SmallVector<ParallelForOp> loops;
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](ParallelForOp loop) { loops.push_back(loop); });
    for (ParallelForOp loop : loops) {
      auto task = symbols.lookup<func::FuncOp>(loop.getTask());
      if (failed(lowerLoop(loop, task)))
        return signalPassFailure();
      tasks.insert(task);
    }
    for (Operation *task : tasks) {
      if (isLaunched(cast<func::FuncOp>(task)))
        task->erase(); // its code is among the kernels of the level
      else
        lowerTask(cast<func::FuncOp>(task));
    }

    for (auto function : getOperation().getOps<func::FuncOp>()) {
      auto kind = function->getAttrOfType<StringAttr>(AttnDialect::kKernelAttr);
      if (!kind)
        continue;
      if (failed(lowerKernel(function, kind)))
        return signalPassFailure();
      dropAttributes(function);
    }
    dropAttributes(getOperation());
  }

private:
  const LLVMTypeConverter *converter = nullptr;

  AbiBuilder atEntryOf(func::FuncOp function) {
    return AbiBuilder(function.getLoc(), &function.front(), function.front().begin(), *converter);
  }

  /// Removes attn's attributes. The code now contains their information, and tools without attn's dialect must be able
  /// to read the code.
  static void dropAttributes(Operation *op) {
    for (NamedAttribute attribute : llvm::to_vector(op->getDiscardableAttrs()))
      if (isa_and_present<AttnDialect>(attribute.getNameDialect()))
        op->removeDiscardableAttr(attribute.getName());
  }

  /// Whether the last argument is the workspace of the worker.
  static bool usesScratch(func::FuncOp task) {
    unsigned numArguments = task.getNumArguments();
    return task.getArgAttr(numArguments - 1, AttnDialect::kScratchAttr) != nullptr;
  }

  static SmallVector<CountTilesOp> counts(func::FuncOp function) {
    SmallVector<CountTilesOp> ops;
    function.walk([&](CountTilesOp op) { ops.push_back(op); });
    return ops;
  }

  static bool isLaunched(func::FuncOp task) { return task->hasAttr(AttnDialect::kLaunchAttr); }

  static bool needsCall(func::FuncOp task) { return usesScratch(task) || !counts(task).empty(); }

  /// The type of a task's context. It begins with call->tiles for a kernel of a GPU, and with a pointer to the call for
  /// another task that needs the call.
  LLVM::LLVMStructType contextType(func::FuncOp task) {
    return getContextType(*converter, isLaunched(task) || needsCall(task),
                          task.getArgumentTypes().drop_front(2).drop_back(usesScratch(task)));
  }

  /// Gives `function` the signature (types...) -> () and returns its new arguments. The old arguments stay before the
  /// new ones; the caller must replace the uses of the old arguments, and erase these arguments.
  static SmallVector<Value> addArguments(func::FuncOp function, TypeRange types) {
    function->removeAttr(function.getArgAttrsAttrName());
    function.setFunctionType(FunctionType::get(function.getContext(), types, {}));
    SmallVector<Value> added;
    for (Type type : types)
      added.push_back(function.front().addArgument(type, function.getLoc()));
    return added;
  }

  LogicalResult lowerLoop(ParallelForOp loop, func::FuncOp task) {
    auto entry = loop->getParentOfType<func::FuncOp>();
    auto kind = entry->getAttrOfType<StringAttr>(AttnDialect::kKernelAttr);
    if (!kind || kind.getValue() != "entry")
      return loop.emitOpError() << "expected to be in an entry, got '" << entry.getName() << "'";
    Value call = entry.getArgument(0);
    LLVM::LLVMStructType type = contextType(task);

    // Allocate the context in the entry block, because an alloca in a loop around `loop` would grow the stack.
    AbiBuilder top = atEntryOf(entry);
    Value context = LLVM::AllocaOp::create(top, top.ptr(), type, top.constant(1));

    AbiBuilder b(loop.getLoc(), loop->getBlock(), loop->getIterator(), *converter);
    int32_t next = 0;
    if (isLaunched(task))
      b.store(b.callField(call, CALL_FIELD(tiles)), b.field(type, context, next++));
    else if (needsCall(task))
      b.store(call, b.field(type, context, next++));
    for (Value captured : loop.getArgs())
      b.store(b.toLLVM(captured), b.field(type, context, next++));

    if (auto launch = task->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr)) {
      auto signature = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()),
                                                   {b.ptr(), b.i64(), b.i64(), b.ptr()});
      LLVM::CallOp::create(b, signature,
                           ValueRange{b.callField(call, CALL_FIELD(launch)),
                                      b.callField(call, CALL_FIELD(device)),
                                      b.constant(launch.getKernel()), b.toLLVM(loop.getCount()),
                                      context});
      loop.erase();
      return success();
    }
    Value function =
        b.cast(func::ConstantOp::create(b, task.getFunctionType(), task.getSymName()), b.ptr());
    auto signature = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(&getContext()),
                                                 {b.ptr(), b.ptr(), b.ptr(), b.i64()});
    LLVM::CallOp::create(b, signature,
                         ValueRange{b.callField(call, CALL_FIELD(parallel_for)),
                                    b.callField(call, CALL_FIELD(pool)), function, context,
                                    b.toLLVM(loop.getCount())});
    loop.erase();
    return success();
  }

  void lowerTask(func::FuncOp task) {
    bool scratch = usesScratch(task), hasCall = needsCall(task);
    LLVM::LLVMStructType type = contextType(task);
    SmallVector<Value> old(task.getArguments());
    AbiBuilder b = atEntryOf(task);
    SmallVector<Value> arguments = addArguments(task, {b.ptr(), b.i64(), b.i64()});
    Value context = arguments[0], worker = arguments[2];

    for (unsigned i : {0u, 1u})
      old[i].replaceAllUsesWith(b.cast(arguments[1 + i], old[i].getType()));
    Value call = hasCall ? b.load(b.ptr(), b.field(type, context, 0)) : Value();
    int32_t next = hasCall;
    for (Value captured : ArrayRef(old).drop_front(2).drop_back(scratch)) {
      Value loaded = b.load(type.getBody()[next], b.field(type, context, next));
      captured.replaceAllUsesWith(b.cast(loaded, captured.getType()));
      ++next;
    }
    if (scratch) {
      Value stride = b.callField(call, CALL_FIELD(task_stride));
      Value data =
          b.advance(b.callField(call, CALL_FIELD(task_workspace)), b.multiply(worker, stride));
      data.getDefiningOp()->setAttr(AttnDialect::kScratchAttr, UnitAttr::get(&getContext()));
      old.back().replaceAllUsesWith(b.buffer(cast<MemRefType>(old.back().getType()), data, stride));
    }
    for (CountTilesOp op : counts(task))
      AbiBuilder(op.getLoc(), op->getBlock(), op->getIterator(), *converter)
          .countTiles(op, call, worker);
    task.front().eraseArguments(0, old.size());
    // The remaining uses of the task's name are constants of the old function type.
    auto uses = SymbolTable::getSymbolUses(task, getOperation());
    for (SymbolTable::SymbolUse use : *uses)
      if (auto constant = dyn_cast<func::ConstantOp>(use.getUser()))
        constant.getResult().setType(task.getFunctionType());
  }

  LogicalResult lowerKernel(func::FuncOp function, StringAttr kind) {
    if (kind.getValue() == "entry")
      return lowerEntry(function);
    if (kind.getValue() == "workspace")
      return lowerWorkspace(function);
    if (kind.getValue() == "pack")
      return lowerPack(function);
    return function.emitError() << "expected a kernel 'entry', 'workspace' or 'pack', got " << kind;
  }

  LogicalResult lowerEntry(func::FuncOp entry) {
    FailureOr<PackedLayout> layout = packedLayout(entry);
    if (failed(layout))
      return failure();
    AbiBuilder b = atEntryOf(entry);
    Value call = entry.getArgument(0);

    for (CountTilesOp op : counts(entry)) {
      AbiBuilder b(op.getLoc(), op->getBlock(), op->getIterator(), *converter);
      b.countTiles(op, call, b.constant(0));
    }

    llvm::StringMap<Value> sizes;
    if (auto symbols = entry->getAttrOfType<ArrayAttr>(AttnDialect::kSymbolsAttr)) {
      Value dims = b.callField(call, CALL_FIELD(dims));
      for (auto [i, symbol] : llvm::enumerate(symbols.getAsRange<SymbolAttr>()))
        sizes[symbol.getName()] = b.load(b.i64(), b.element(b.i64(), dims, i));
    }
    Value weights = layout->offsets.empty() ? Value() : b.callField(call, CALL_FIELD(weights));
    Value inputs = b.callField(call, CALL_FIELD(inputs)),
          outputs = b.callField(call, CALL_FIELD(outputs));
    int32_t numInputs = 0, numOutputs = 0;
    for (unsigned i = 1; i < entry.getNumArguments(); ++i) {
      BlockArgument argument = entry.getArgument(i);
      auto type = dyn_cast<MemRefType>(argument.getType());
      if (!type || !type.getLayout().isIdentity())
        return entry.emitError() << "expected argument " << i - 1
                                 << " to be a memref of identity layout, got "
                                 << argument.getType();
      SmallVector<Value> dynamicSizes;
      if (auto dims = entry.getArgAttrOfType<ArrayAttr>(i, AttnDialect::kDimsAttr))
        for (StringAttr dim : dims.getAsRange<StringAttr>())
          if (!dim.empty())
            dynamicSizes.push_back(sizes.lookup(dim));
      Value data;
      if (std::optional<int64_t> index = packedIndex(entry, i)) {
        data = b.load(b.ptr(), b.element(b.ptr(), weights, *index));
      } else if (entry.getArgAttr(i, AttnDialect::kOutputAttr)) {
        data = b.load(b.ptr(), b.element(b.ptr(), outputs, numOutputs++));
      } else if (i + 1 == entry.getNumArguments()) {
        data = b.callField(call, CALL_FIELD(workspace));
        // The workspace function defines the real size; views of the workspace do not read the size.
        dynamicSizes = {b.constant(std::numeric_limits<int64_t>::max())};
      } else {
        data = b.load(b.ptr(), b.element(b.ptr(), inputs, numInputs++));
      }
      if (int64_t(dynamicSizes.size()) != int64_t(type.getNumDynamicDims()))
        return entry.emitError() << "expected argument " << i - 1
                                 << " to name its dynamic dimensions, got " << type;
      argument.replaceAllUsesWith(b.buffer(type, data, dynamicSizes));
    }
    entry.front().eraseArguments(1, entry.getNumArguments() - 1);
    entry->removeAttr(entry.getArgAttrsAttrName());
    entry.setFunctionType(FunctionType::get(&getContext(), {b.ptr()}, {}));
    return success();
  }

  LogicalResult lowerWorkspace(func::FuncOp function) {
    SmallVector<Value> old(function.getArguments());
    if (!llvm::all_of(function.getArgumentTypes(), llvm::IsaPred<IndexType>) ||
        function.getNumResults() != 2 ||
        !llvm::all_of(function.getResultTypes(), llvm::IsaPred<IndexType>))
      return function.emitError()
             << "expected a workspace function from indices to two indices, got "
             << function.getFunctionType();
    AbiBuilder b = atEntryOf(function);
    SmallVector<Value> arguments = addArguments(function, {b.ptr(), b.ptr()});
    for (auto [i, size] : llvm::enumerate(old))
      size.replaceAllUsesWith(
          b.cast(b.load(b.i64(), b.element(b.i64(), arguments[0], i)), size.getType()));
    function.front().eraseArguments(0, old.size());
    function.walk([&](func::ReturnOp op) {
      AbiBuilder b(op.getLoc(), op->getBlock(), op->getIterator(), *converter);
      for (auto [i, bytes] : llvm::enumerate(op.getOperands()))
        b.store(b.toLLVM(bytes), b.element(b.i64(), arguments[1], i));
      op->setOperands({});
    });
    return success();
  }

  LogicalResult lowerPack(func::FuncOp function) {
    FailureOr<PackedLayout> layout = packedLayout(function);
    if (failed(layout))
      return failure();
    SmallVector<Value> old(function.getArguments());
    SmallVector<std::optional<int64_t>> packed;
    for (unsigned i = 0; i < old.size(); ++i)
      packed.push_back(packedIndex(function, i));
    AbiBuilder b = atEntryOf(function);
    SmallVector<Value> arguments = addArguments(function, {b.ptr(), b.ptr()});
    int32_t numWeights = 0;
    for (auto [value, index] : llvm::zip_equal(old, packed)) {
      auto type = dyn_cast<MemRefType>(value.getType());
      if (!type || !type.getLayout().isIdentity() || !type.hasStaticShape())
        return function.emitError()
               << "expected static memrefs of identity layout, got " << value.getType();
      Value data = index ? b.advance(arguments[1], b.constant(layout->offsets[*index]))
                         : b.load(b.ptr(), b.element(b.ptr(), arguments[0], numWeights++));
      value.replaceAllUsesWith(b.buffer(type, data, {}));
    }
    function.front().eraseArguments(0, old.size());
    return success();
  }
};
} // namespace
