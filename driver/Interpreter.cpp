//===- Interpreter.cpp - interpret a module on tensors ---------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// Test: test/reference/StagesTest.cpp
//
//===----------------------------------------------------------------------===//

#include "driver/Interpreter.h"
#include "dialect/Scalars.h"
#include "passes/Product.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace attn;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

namespace {
class Interpreter {
public:
  /// Runs a function and returns its results.
  ReferenceResults call(func::FuncOp function, ArrayRef<ReferenceTensor> arguments);

private:
  /// Runs the ops before the terminator.
  LogicalResult run(Block &block);
  LogicalResult run(Operation *op);

  ReferenceTensor elementwise(Operation *op, const ScalarFunction &compute);
  ReferenceResults linalg(linalg::LinalgOp op);
  ReferenceTensor softmax(linalg::SoftmaxOp op);
  ReferenceTensor concat(tensor::ConcatOp op);
  LogicalResult loop(scf::ForOp op);
  LogicalResult branch(scf::IfOp op);
  LogicalResult tasks(scf::ForallOp op);

  const ReferenceTensor &get(Value value) { return values.at(value); }
  SmallVector<ReferenceTensor> getAll(ValueRange range) {
    return llvm::map_to_vector(range, [&](Value value) { return get(value); });
  }
  LogicalResult set(Value value, ReferenceTensor tensor) {
    values[value] = std::move(tensor);
    return success();
  }
  LogicalResult setAll(ValueRange range, ReferenceResults results) {
    if (failed(results))
      return failure();
    for (auto [value, result] : llvm::zip_equal(range, *results))
      values[value] = std::move(result);
    return success();
  }

  int64_t integer(OpFoldResult value) {
    if (auto constant = getConstantIntValue(value))
      return *constant;
    return static_cast<int64_t>(get(cast<Value>(value)).elements[0]);
  }
  SmallVector<int64_t> integers(ArrayRef<OpFoldResult> range) {
    return llvm::map_to_vector(range, [&](OpFoldResult value) { return integer(value); });
  }
  SmallVector<int64_t> integers(ValueRange range) {
    return llvm::map_to_vector(range, [&](Value value) { return integer(value); });
  }
  ReferenceTensor number(double value) { return ReferenceTensor({}, value); }

  /// Returns the elements of `source` in another shape.
  ReferenceTensor reshaped(Value source, ArrayRef<int64_t> shape) {
    ReferenceTensor result = get(source);
    result.shape = llvm::to_vector(shape);
    return result;
  }

  /// Calls `function` with the index of each element of a slice, in order.
  void forEachOf(OffsetSizeAndStrideOpInterface slice,
                 llvm::function_ref<void(ArrayRef<int64_t>)> function);
  ReferenceTensor extracted(tensor::ExtractSliceOp op);
  template <typename OpTy> void insert(OpTy op, ReferenceTensor &into);

  ReferenceValues values;
};
} // namespace

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Computes a scalar op, on scalars or on each element of tensors.
ReferenceTensor Interpreter::elementwise(Operation *op, const ScalarFunction &compute) {
  ReferenceTensor result;
  for (Value operand : op->getOperands())
    if (isa<TensorType>(operand.getType()))
      result = get(operand);
  for (auto [i, element] : llvm::enumerate(result.elements)) {
    SmallVector<double> operands;
    for (Value operand : op->getOperands())
      operands.push_back(get(operand).elements[isa<TensorType>(operand.getType()) ? i : 0]);
    element = compute(operands);
  }
  return result;
}

static ReferenceTensor constant(DenseElementsAttr attribute) {
  ReferenceTensor result(attribute.getType().getShape());
  for (auto [element, value] : llvm::zip_equal(result.elements, attribute.getValues<Attribute>()))
    element = toDouble(value);
  return result;
}

/// For each loop of `map`, which is a projected permutation, returns how far the position in `tensor` advances if the
/// loop advances by one.
static SmallVector<int64_t> stepsOf(AffineMap map, const ReferenceTensor &tensor) {
  SmallVector<int64_t> steps(map.getNumDims());
  int64_t step = 1;
  for (unsigned i = map.getNumResults(); i-- > 0; step *= tensor.shape[i])
    if (auto dim = dyn_cast<AffineDimExpr>(map.getResult(i)))
      steps[dim.getPosition()] = step;
  return steps;
}

/// Adds the products of elements of two tensors to `out`. Products take most of the time of a model, so it would be too
/// slow to run the body of the op for each product.
static void addProducts(ArrayRef<AffineMap> maps, ArrayRef<int64_t> sizes, const ReferenceTensor &a,
                        const ReferenceTensor &b, ReferenceTensor &out) {
  SmallVector<int64_t> ofA = stepsOf(maps[0], a), ofB = stepsOf(maps[1], b),
                       ofOut = stepsOf(maps[2], out);
  auto run = [&](auto &run, size_t loop, const double *x, const double *y, double *sum) -> void {
    bool isLast = loop + 1 == sizes.size();
    for (int64_t i = 0; i < sizes[loop]; ++i, x += ofA[loop], y += ofB[loop], sum += ofOut[loop])
      if (isLast)
        *sum += *x * *y;
      else
        run(run, loop + 1, x, y, sum);
  };
  run(run, 0, a.elements.data(), b.elements.data(), out.elements.data());
}

ReferenceResults Interpreter::linalg(linalg::LinalgOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<ReferenceTensor> operands = getAll(op->getOperands());
  SmallVector<int64_t> sizes =
      loopSizes(maps, llvm::map_to_vector(operands, [](const ReferenceTensor &operand) {
                  return ArrayRef(operand.shape);
                }));
  bool isPermuted = llvm::all_of(
      maps, [](AffineMap map) { return map.isProjectedPermutation(/*allowZeroInResults=*/true); });
  // Sums of types other than f32 and f64 are rounded or wrap around, so the body of the op computes them.
  if (isProduct(op) && isPermuted && !sizes.empty() &&
      isa<Float32Type, Float64Type>(ProductTypes::get(op).sum)) {
    addProducts(maps, sizes, operands[0], operands[1], operands[2]);
    return ReferenceResults(SmallVector<ReferenceTensor>{std::move(operands[2])});
  }
  auto elementOf = [&](Value tensor) -> ScalarFunction {
    return [read = &get(tensor)](ArrayRef<double> coordinates) {
      SmallVector<int64_t> at(coordinates.begin(), coordinates.end());
      for (auto [coordinate, size] : llvm::zip_equal(at, read->shape))
        if (coordinate < 0 || coordinate >= size)
          return std::numeric_limits<double>::quiet_NaN();
      return read->at(at);
    };
  };
  FailureOr<ScalarBlock> body = ScalarBlock::get(
      *op.getBlock(), op.getNumLoops(), [&](Value value) { return get(value).elements[0]; },
      elementOf);
  if (failed(body))
    return failure();
  auto outs = MutableArrayRef(operands).drop_front(op.getNumDpsInputs());
  ArrayRef<AffineMap> outMaps = ArrayRef(maps).drop_front(op.getNumDpsInputs());
  SmallVector<double> inputs;
  forEachIndex(sizes, [&](ArrayRef<int64_t> point) {
    inputs.clear();
    for (auto [operand, map] : llvm::zip_equal(operands, maps))
      inputs.push_back(operand.at(map, point));
    inputs.append(point.begin(), point.end());
    for (auto [out, map, element] : llvm::zip_equal(outs, outMaps, (*body)(inputs)))
      out.at(map, point) = element;
  });
  return llvm::to_vector(outs);
}

ReferenceTensor Interpreter::softmax(linalg::SoftmaxOp op) {
  ReferenceTensor result = get(op.getInput());
  SmallVector<int64_t> rows = result.shape;
  int64_t dim = op.getDimension(), size = std::exchange(rows[dim], 1);
  forEachIndex(rows, [&](ArrayRef<int64_t> row) {
    SmallVector<int64_t> at(row);
    auto forEachElement = [&](llvm::function_ref<void(double &)> function) {
      for (at[dim] = 0; at[dim] < size; ++at[dim])
        function(result.at(at));
    };
    double max = -std::numeric_limits<double>::infinity(), sum = 0;
    forEachElement([&](double &x) { max = std::max(max, x); });
    forEachElement([&](double &x) { sum += x = std::exp(x - max); });
    forEachElement([&](double &x) { x /= sum; });
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

void Interpreter::forEachOf(OffsetSizeAndStrideOpInterface slice,
                            llvm::function_ref<void(ArrayRef<int64_t>)> function) {
  SmallVector<int64_t> offsets = integers(slice.getMixedOffsets());
  SmallVector<int64_t> strides = integers(slice.getMixedStrides());
  forEachIndex(integers(slice.getMixedSizes()), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at(index);
    for (auto [i, offset, stride] : llvm::zip_equal(at, offsets, strides))
      i = offset + i * stride;
    function(at);
  });
}

ReferenceTensor Interpreter::extracted(tensor::ExtractSliceOp op) {
  ReferenceTensor result;
  const ReferenceTensor &source = get(op.getSource());
  result.elements.clear();
  forEachOf(op, [&](ArrayRef<int64_t> at) { result.elements.push_back(source.at(at)); });
  llvm::SmallBitVector dropped = op.getDroppedDims();
  for (auto [dim, size] : llvm::enumerate(integers(op.getMixedSizes())))
    if (!dropped.test(dim))
      result.shape.push_back(size);
  return result;
}

template <typename OpTy> void Interpreter::insert(OpTy op, ReferenceTensor &into) {
  const double *next = get(op.getSource()).elements.data();
  forEachOf(op, [&](ArrayRef<int64_t> at) { into.at(at) = *next++; });
}

ReferenceTensor Interpreter::concat(tensor::ConcatOp op) {
  int64_t dim = op.getDim(), start = 0;
  SmallVector<ReferenceTensor> parts = getAll(op.getInputs());
  SmallVector<int64_t> shape = parts[0].shape;
  shape[dim] = 0;
  for (const ReferenceTensor &part : parts)
    shape[dim] += part.shape[dim];
  ReferenceTensor result(shape);
  for (const ReferenceTensor &part : parts) {
    forEachIndex(part.shape, [&](ArrayRef<int64_t> index) {
      SmallVector<int64_t> at(index);
      at[dim] += start;
      result.at(at) = part.at(index);
    });
    start += part.shape[dim];
  }
  return result;
}

static SmallVector<int64_t> collapse(ArrayRef<int64_t> shape,
                                     ArrayRef<ReassociationIndices> groups) {
  SmallVector<int64_t> result;
  for (const ReassociationIndices &group : groups) {
    result.push_back(1);
    for (int64_t dim : group)
      result.back() *= shape[dim];
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult Interpreter::loop(scf::ForOp op) {
  int64_t to = integer(op.getUpperBound()), step = integer(op.getStep());
  (void)setAll(op.getRegionIterArgs(), getAll(op.getInitArgs()));
  for (int64_t i = integer(op.getLowerBound()); i < to; i += step) {
    (void)set(op.getInductionVar(), number(i));
    if (failed(run(*op.getBody())))
      return failure();
    (void)setAll(op.getRegionIterArgs(), getAll(op.getYieldedValues()));
  }
  return setAll(op.getResults(), getAll(op.getRegionIterArgs()));
}

LogicalResult Interpreter::branch(scf::IfOp op) {
  Region &taken = integer(op.getCondition()) ? op.getThenRegion() : op.getElseRegion();
  if (taken.empty())
    return success();
  if (failed(run(taken.front())))
    return failure();
  return setAll(op.getResults(), getAll(taken.front().getTerminator()->getOperands()));
}

/// Runs all tasks, each on the values that the shared tensors had before the first task.
LogicalResult Interpreter::tasks(scf::ForallOp op) {
  SmallVector<int64_t> from = integers(op.getMixedLowerBound()),
                       to = integers(op.getMixedUpperBound());
  SmallVector<int64_t> steps = integers(op.getMixedStep()), counts;
  for (auto [lower, upper, step] : llvm::zip_equal(from, to, steps))
    counts.push_back(upper <= lower ? 0 : llvm::divideCeilSigned(upper - lower, step));
  SmallVector<ReferenceTensor> results = getAll(op.getOutputs());
  (void)setAll(op.getRegionIterArgs(), getAll(op.getOutputs()));
  LogicalResult status = success();
  forEachIndex(counts, [&](ArrayRef<int64_t> index) {
    for (auto [i, variable] : llvm::enumerate(op.getInductionVars()))
      (void)set(variable, number(from[i] + index[i] * steps[i]));
    if (failed(status) || failed(status = run(*op.getBody())))
      return;
    for (Operation &yielding : op.getTerminator().getYieldingOps()) {
      auto slice = cast<tensor::ParallelInsertSliceOp>(yielding);
      insert(slice, results[cast<BlockArgument>(slice.getDest()).getArgNumber() - op.getRank()]);
    }
  });
  return failed(status) ? failure() : setAll(op.getResults(), std::move(results));
}

LogicalResult Interpreter::run(Operation *op) {
  if (ScalarFunction compute = getScalarFunction(op))
    return set(op->getResult(0), elementwise(op, compute));
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<AttentionOp, KeyRangeOp, OnlineInitOp, OnlineStepOp, OnlineProbabilitiesOp,
            OnlineMergeOp, OnlineFinishOp, PackMaskOp, TestMaskOp, PackOp>(
          [&](auto op) { return setAll(op->getResults(), evaluate(op, values)); })
      .Case([&](linalg::LinalgOp op) { return setAll(op->getResults(), linalg(op)); })
      .Case([&](linalg::SoftmaxOp op) { return set(op->getResult(0), softmax(op)); })
      .Case([&](tensor::EmptyOp op) {
        return set(op, ReferenceTensor(integers(op.getMixedSizes()), kNaN));
      })
      .Case([&](tensor::DimOp op) {
        return set(op, number(get(op.getSource()).shape[integer(op.getDimension())]));
      })
      .Case([&](tensor::ExtractOp op) {
        return set(op, number(get(op.getTensor()).at(integers(op.getIndices()))));
      })
      .Case([&](tensor::FromElementsOp op) {
        ReferenceTensor result(op.getType().getShape());
        for (auto [element, value] : llvm::zip_equal(result.elements, op.getElements()))
          element = get(value).elements[0];
        return set(op, std::move(result));
      })
      .Case([&](tensor::ExtractSliceOp op) { return set(op, extracted(op)); })
      .Case([&](tensor::InsertSliceOp op) {
        ReferenceTensor result = get(op.getDest());
        insert(op, result);
        return set(op, std::move(result));
      })
      .Case([&](tensor::ExpandShapeOp op) {
        return set(op, reshaped(op.getSrc(), integers(op.getMixedOutputShape())));
      })
      .Case([&](tensor::CollapseShapeOp op) {
        return set(op, reshaped(op.getSrc(),
                                collapse(get(op.getSrc()).shape, op.getReassociationIndices())));
      })
      .Case([&](tensor::CastOp op) { return set(op, ReferenceTensor(get(op.getSource()))); })
      .Case([&](tensor::ConcatOp op) { return set(op, concat(op)); })
      .Case([](CountTilesOp) { return success(); })
      .Case([&](scf::ForOp op) { return loop(op); })
      .Case([&](scf::IfOp op) { return branch(op); })
      .Case([&](scf::ForallOp op) { return tasks(op); })
      .Case([&](arith::ConstantOp op) -> LogicalResult {
        auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
        return elements ? set(op, constant(elements)) : reportUnknown(op);
      })
      .Default([](Operation *op) { return reportUnknown(op); });
}

LogicalResult Interpreter::run(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(run(&op)))
      return failure();
  return success();
}

ReferenceResults Interpreter::call(func::FuncOp function, ArrayRef<ReferenceTensor> arguments) {
  Block &block = function.getBody().front();
  (void)setAll(block.getArguments(), llvm::to_vector(arguments));
  if (failed(run(block)))
    return failure();
  return getAll(block.getTerminator()->getOperands());
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Calls `function`. An argument is an input, a weight, or a packed weight. Packed weights are the results of the
/// function `<function>.pack` in the same module.
static ReferenceResults call(func::FuncOp function, ArrayRef<ReferenceTensor> inputs,
                             const llvm::StringMap<ReferenceTensor> &weights) {
  auto pack = function->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(
      (function.getName() + ".pack").str());
  SmallVector<ReferenceTensor> packed, arguments;
  if (pack) {
    ReferenceResults results = call(pack, {}, weights);
    if (failed(results))
      return failure();
    packed = std::move(*results);
  }
  auto fits = [&](unsigned i, const ReferenceTensor &tensor) -> LogicalResult {
    auto type = dyn_cast<ShapedType>(function.getArgument(i).getType());
    if (!type || (type.getRank() == int64_t(tensor.shape.size()) &&
                  llvm::all_of_zip(type.getShape(), tensor.shape, [](int64_t size, int64_t given) {
                    return ShapedType::isDynamic(size) || size == given;
                  })))
      return success();
    return function.emitError() << "expected argument " << i << " of type " << type
                                << ", got one of sizes [" << tensor.shape << "]";
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto name = function.getArgAttrOfType<StringAttr>(i, AttnDialect::kNameAttr);
    if (auto slot = function.getArgAttrOfType<IntegerAttr>(i, AttnDialect::kPackedAttr)) {
      arguments.push_back(packed[slot.getInt()]);
    } else if (function.getArgAttr(i, AttnDialect::kWeightAttr)) {
      auto weight = weights.find(name.getValue());
      if (weight == weights.end())
        return function.emitError() << "expected a weight " << name << ", got none";
      arguments.push_back(weight->second);
    } else if (inputs.empty()) {
      return function.emitError() << "expected an input for argument " << i << ", got none";
    } else {
      arguments.push_back(inputs.front());
      inputs = inputs.drop_front();
    }
    if (failed(fits(i, arguments.back())))
      return failure();
  }
  return Interpreter().call(function, arguments);
}

func::FuncOp attn::findEntry(ModuleOp module, StringRef entry) {
  func::FuncOp function;
  module.walk([&](func::FuncOp candidate) {
    if (candidate.getName() != entry || candidate.isDeclaration())
      return WalkResult::advance();
    function = candidate;
    return WalkResult::interrupt();
  });
  return function;
}

ReferenceResults attn::interpret(ModuleOp module, StringRef entry, ArrayRef<ReferenceTensor> inputs,
                                 const llvm::StringMap<ReferenceTensor> &weights) {
  func::FuncOp function = findEntry(module, entry);
  if (!function)
    return module.emitError() << "expected a function '" << entry << "', got none";
  return call(function, inputs, weights);
}
