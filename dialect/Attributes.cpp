//===- Attributes.cpp - verifiers and helpers of attributes ----------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"

using namespace mlir;
using namespace attn;

#include "dialect/TargetInterface.cpp.inc"

LogicalResult CpuAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef level,
                              unsigned vector, unsigned registers, unsigned spare, unsigned l1,
                              unsigned l2, CpuCapabilities has, PipelinesAttr pipelines) {
  if (!llvm::isPowerOf2_32(vector) || vector < 32)
    return emitError() << "expected vectors of a power of two of at least 32 bits, got " << vector;
  if (registers < 8 || spare > registers - 8)
    return emitError() << "expected at least 8 registers that are not spare, got " << registers
                       << " with " << spare << " spare";
  return success();
}

LogicalResult PipelinesAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                    unsigned multiplies, unsigned loads, unsigned stores,
                                    unsigned latency, unsigned exponential) {
  if (multiplies == 0 || loads == 0 || stores == 0)
    return emitError() << "expected at least one multiply-add, load and store in a cycle, got "
                       << multiplies << ", " << loads << " and " << stores;
  return success();
}

TargetInterface attn::getTarget(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetInterface>(AttnDialect::kTargetAttr))
      return target;
  return nullptr;
}

CpuAttr attn::getCpu(Operation *op) { return dyn_cast_if_present<CpuAttr>(getTarget(op)); }

void attn::addLocation(Operation *op, StringAttr part, Location from) {
  // The location of the op itself comes first, because readers of a fused location use its first location.
  op->setLoc(FusedLoc::get(op->getContext(), {op->getLoc(), NameLoc::get(part, from)}));
}

Location attn::locationOf(Operation *op, StringAttr part) {
  Location found = op->getLoc();
  found->walk([&](Location loc) {
    auto named = dyn_cast<NameLoc>(loc);
    if (!named || named.getName() != part)
      return WalkResult::advance();
    found = named.getChildLoc();
    return WalkResult::interrupt();
  });
  return found;
}

LogicalResult PlanAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                               Schedule schedule, int64_t q, int64_t k, int64_t group, int64_t part,
                               bool transposes, int64_t stages) {
  if (q < 1 || k < 1)
    return emitError() << "expected tiles of at least one query and one key, got q = " << q
                       << ", k = " << k;
  if (group < 1 || !llvm::isPowerOf2_64(group))
    return emitError() << "expected a group that is a power of two, got " << group;
  bool isDecode = schedule == Schedule::Decode;
  if (part < 0)
    return emitError() << "expected a part of at least 0 keys, got part = " << part;
  if (part > 0 && !isDecode)
    return emitError() << "expected parts with the schedule decode only, got part = " << part
                       << " with " << stringifySchedule(schedule);
  if (isDecode && group != 1)
    return emitError() << "expected a group of 1 with the schedule decode, got group = " << group;
  bool hasTiles = schedule == Schedule::PerHead || schedule == Schedule::Phased;
  if (transposes && (group == 1 || !hasTiles))
    return emitError() << "expected a group of more than 1 and the schedule per-head or phased "
                          "with transposes = true, got group = "
                       << group << " and " << stringifySchedule(schedule);
  if (stages != 0 && (stages < kLeastStages || stages > kMostStages))
    return emitError() << "expected " << kLeastStages << " to " << kMostStages
                       << " stages, or 0, got stages = " << stages;
  if (stages != 0 && (group != 1 || (schedule != Schedule::Phased && !isDecode)))
    return emitError()
           << "expected a group of 1 and the schedule phased or decode with stages, got group = "
           << group << " and " << stringifySchedule(schedule);
  return success();
}

LogicalResult TensorMapAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                    int64_t offset, int64_t rank, int64_t dim, int64_t rows,
                                    int64_t bytes) {
  static constexpr int64_t kMostDims = 5, kMostRows = 256;
  if (offset < 0 || rank < 2 || rank > kMostDims || dim < 0 || dim + 1 >= rank)
    return emitError() << "expected a tensor of 2 to " << kMostDims
                       << " dimensions and a dimension before the last, got offset = " << offset
                       << ", rank = " << rank << ", dim = " << dim;
  if (rows < 1 || rows > kMostRows || (bytes != 1 && bytes != 2 && bytes != 4))
    return emitError() << "expected 1 to " << kMostRows
                       << " rows of elements of 1, 2 or 4 bytes, got rows = " << rows
                       << ", bytes = " << bytes;
  return success();
}

LogicalResult LaunchAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                 int64_t threads, int64_t producers, int64_t blocks, int64_t shared,
                                 int64_t, int64_t, ArrayAttr) {
  if (threads < 32 || threads > 1024 || threads % 32 != 0)
    return emitError() << "expected 32 to 1024 threads in warps of 32, got " << threads;
  if (producers < 0 || threads + producers > 1024 || producers % 32 != 0)
    return emitError() << "expected at most 1024 threads in warps of 32, got producers = "
                       << producers << " beside " << threads;
  if (blocks < 0 || blocks > 32)
    return emitError() << "expected 0 to 32 blocks of a multiprocessor, got blocks = " << blocks;
  if (shared < 0)
    return emitError() << "expected a size of at least 0 bytes, got shared = " << shared;
  return success();
}

LogicalResult BlockAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t rows,
                                int64_t vectors, int64_t depth) {
  if (rows < 1 || rows > 48 || vectors < 1 || depth < 0)
    return emitError()
           << "expected 1 to 48 rows, at least one vector and a depth of at least 0, got rows = "
           << rows << ", vectors = " << vectors << ", depth = " << depth;
  return success();
}

LogicalResult TaskAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t rows,
                               std::optional<int64_t> group, int64_t columns) {
  static constexpr int64_t kMost = 1 << 20;
  if (rows < 1 || rows > kMost)
    return emitError() << "expected a task of 1 to " << kMost << " rows, got rows = " << rows;
  if (columns < 0 || (columns > 0 && group))
    return emitError()
           << "expected at least 0 columns, and 0 columns in a group, got columns = "
           << columns;
  if (group && *group < 0)
    return emitError() << "expected the number of a group to be at least 0, got group = " << *group;
  return success();
}

LogicalResult SymbolAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef name,
                                 int64_t min, int64_t max) {
  if (name.empty())
    return emitError() << "expected a name";
  if (min < 0 || max < min)
    return emitError() << "expected a range of sizes, got " << min << " to " << max;
  return success();
}
