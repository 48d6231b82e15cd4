//===- GroupRows.cpp - which ops share tasks of rows ------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//   %h = linalg.contract {attn.task = #attn.task<rows = 96>} ... ins(%x, %w1 : tensor<2x?x64xf32>, tensor<64x128xf32>)
//   %a = linalg.generic ... ins(%h)                                                                     an activation
//   %y = linalg.contract {attn.task = #attn.task<rows = 96>} ... ins(%a, %w2 : tensor<2x?x128xf32>, tensor<128x64xf32>)
// becomes
//   %h = linalg.contract {attn.task = #attn.task<rows = 24, group = 0>} ...
//   %a = linalg.generic {attn.task = #attn.task<rows = 24, group = 0>} ...
//   %y = linalg.contract {attn.task = #attn.task<rows = 24, group = 0>} ...
//
// Ops that compute row by row and read each other's rows can be a group: products with weights, normalisations, and the
// elementwise ops around them. An op that needs several rows, such as an attention, separates groups. A group saves the
// barriers between its ops, and its rows stay in L1 and L2. A group is slower than its ops alone if its weights do not
// stay in L2, because each task reads all of them, or if there are too few tasks. Therefore the pass forms a group only
// if its weights take at most half of L2, and gives each task as few rows as are worth the cost of a task. Products
// that the tasks of an attention compute stay in these tasks.
//
// The pass changes attributes only, so users can edit its result and resume compilation from it.
// Test: test/passes/plan/group-rows.mlir, test/tools/resume.test
//
//===----------------------------------------------------------------------===//

#include "dialect/Attn.h"
#include "passes/Passes.h"
#include "passes/Product.h"
#include "passes/Rows.h"
#include "passes/plan/Planner.h"
#include "passes/plan/TaskRows.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace attn {
#define GEN_PASS_DEF_GROUPROWS
#include "passes/Passes.h.inc"
} // namespace attn

using namespace attn;

/// A task should have at least this number of multiply-adds, which take about five microseconds. In a smaller task,
/// starting the task and waiting at the barrier would take too large a share of the time.
static constexpr int64_t kLeastWork = 1 << 18;
/// A task should have at least this number of rows, if the results for these rows take at most a quarter of the cache.
/// With fewer rows, a task would do too little work for each weight that it reads from L2.
static constexpr int64_t kLeastRows = 24;

/// The ops that the tasks of attentions compute: the producers of the operands of attentions, up to the inputs of
/// products.
static llvm::SmallPtrSet<Operation *, 16> findOpsOfAttentions(func::FuncOp function) {
  llvm::SmallPtrSet<Operation *, 16> found;
  std::function<void(Value)> add = [&](Value value) {
    auto op = value.getDefiningOp<linalg::LinalgOp>();
    if (!op || !found.insert(op).second)
      return;
    for (OpOperand &operand : op->getOpOperands())
      if (!isProduct(op) || op.isDpsInit(&operand))
        add(operand.get());
  };
  function.walk([&](AttentionOp op) {
    if (op.getPlan() && llvm::is_contained({Schedule::PerHead, Schedule::WholeScores},
                                           op.getPlan()->getSchedule()))
      for (Value operand : {op.getQuery(), op.getKey(), op.getValue()})
        add(operand);
  });
  return found;
}

namespace {
/// Follows the rows through a block, op by op, and collects the ops that may share tasks.
class RowFlow {
public:
  explicit RowFlow(llvm::SmallPtrSet<Operation *, 16> excluded) : excluded(std::move(excluded)) {}

  void visit(Operation *op);
  /// The ops that may be a group together, in the order of the block.
  SmallVector<SmallVector<linalg::LinalgOp>> findGroups() const;
  ArrayRef<int64_t> getLoops(Operation *op) const { return states.find(op)->second.rows; }

private:
  /// On a path to this op, some ops may read rows other than those that the op before them computes. `depth` is the
  /// greatest number of such ops on one path. A path between two ops of the same depth has no such op, so all ops on
  /// that path can be in one group.
  struct State {
    int64_t depth = 0;
    /// The loops of an op that run over rows, or the dimensions of the result of a reshape that hold rows. Empty for
    /// other ops.
    Rows rows;
  };

  std::optional<Rows> findLoops(linalg::LinalgOp op) const;
  const State *find(Value value) const {
    auto it = states.find(value.getDefiningOp());
    return it == states.end() ? nullptr : &it->second;
  }
  /// The dimensions of `value` that hold rows; none if no op that computes row by row computes `value`.
  std::optional<Rows> rowsOf(Value value) const;

  llvm::SmallPtrSet<Operation *, 16> excluded;
  llvm::MapVector<Operation *, State> states;
  llvm::EquivalenceClasses<Operation *> classes;
  /// For a value and a depth: the first product of that depth whose left operand is the value, and the rows that it
  /// reads.
  llvm::DenseMap<std::pair<Value, int64_t>, std::pair<Operation *, Rows>> readers;
};
} // namespace

/// Whether `op` only fills the memory that another op adds to.
static bool isInit(linalg::LinalgOp op) {
  if (op.getNumReductionLoops() > 0 || !op->hasOneUse())
    return false;
  auto user = dyn_cast<linalg::LinalgOp>(*op->user_begin());
  return user && user.isDpsInit(&*op->use_begin()) && user.getNumReductionLoops() > 0;
}

std::optional<Rows> RowFlow::rowsOf(Value value) const {
  const State *state = find(value);
  if (!state || state->rows.empty())
    return std::nullopt;
  auto op = value.getDefiningOp<linalg::LinalgOp>();
  return op ? rowsOfLoops(op.getMatchingIndexingMap(op.getDpsInitOperand(0)), state->rows)
            : std::optional(state->rows);
}

std::optional<Rows> RowFlow::findLoops(linalg::LinalgOp op) const {
  if (!canShareRows(op) || excluded.contains(op))
    return std::nullopt;
  if (op.getNumReductionLoops() > 0)
    return findRowLoops(op);
  // An elementwise op has the rows of the producer with the greatest depth.
  std::optional<Rows> found;
  int64_t depth = -1;
  for (OpOperand *input : op.getDpsInputOperands())
    if (std::optional<Rows> rows = rowsOf(input->get()); rows && find(input->get())->depth > depth)
      if (std::optional<Rows> loops = loopsOfRows(op.getMatchingIndexingMap(input), *rows)) {
        found = loops;
        depth = find(input->get())->depth;
      }
  if (found)
    return found;
  Rows loops;
  for (int64_t loop = 0; loop + 1 < op.getNumLoops(); ++loop)
    loops.push_back(loop);
  return loops.empty() ? std::nullopt : std::optional(loops);
}

void RowFlow::visit(Operation *op) {
  State state;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (linalgOp && isInit(linalgOp) &&
      llvm::none_of(op->getOperands(), [&](Value value) { return find(value); }))
    return; // an init is in the group of the op that adds to it
  if (isReshape(op)) {
    if (const State *source = find(op->getOperand(0))) {
      state.depth = source->depth;
      if (std::optional<Rows> rows = rowsOf(op->getOperand(0)))
        state.rows = rowsOfReshape(op, *rows).value_or(Rows());
      if (!state.rows.empty())
        classes.unionSets(op->getOperand(0).getDefiningOp(), op);
      states[op] = state;
    }
    return;
  }
  if (linalgOp)
    state.rows = findLoops(linalgOp).value_or(Rows());
  auto readsOwnRows = [&](OpOperand &operand) {
    return !state.rows.empty() && rowsOf(operand.get()) &&
           rowsOfLoops(linalgOp.getMatchingIndexingMap(&operand), state.rows) ==
               rowsOf(operand.get());
  };
  bool isSource = true;
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands())
      if (const State *producer = find(operand.get())) {
        isSource = false;
        bool reads = inner == op && readsOwnRows(operand);
        state.depth = std::max(state.depth, producer->depth + (reads ? 0 : 1));
      }
  });
  // Ignore constants, empty tensors, and ops on arguments alone that have no rows.
  if (isSource && state.rows.empty())
    return;
  states[op] = state;
  if (state.rows.empty())
    return;
  classes.insert(op);
  for (OpOperand &operand : op->getOpOperands())
    if (const State *producer = find(operand.get());
        producer && producer->depth == state.depth && readsOwnRows(operand))
      classes.unionSets(operand.get().getDefiningOp(), op);
  // Products of the same rows, such as those that compute queries, keys and values, share tasks too, even if the op
  // that computes these rows is in no group.
  if (!isProduct(op))
    return;
  OpOperand *left = linalgOp.getDpsInputOperand(0);
  if (std::optional<Rows> read = rowsOfLoops(linalgOp.getMatchingIndexingMap(left), state.rows)) {
    auto [it, isFirst] = readers.try_emplace({left->get(), state.depth}, op, *read);
    if (!isFirst && it->second.second == *read)
      classes.unionSets(it->second.first, op);
  }
}

SmallVector<SmallVector<linalg::LinalgOp>> RowFlow::findGroups() const {
  llvm::MapVector<Operation *, SmallVector<linalg::LinalgOp>> groups;
  for (auto &[op, state] : states)
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op); linalgOp && !state.rows.empty())
      groups[classes.getLeaderValue(op)].push_back(linalgOp);
  return llvm::map_to_vector(groups, [](auto &entry) { return entry.second; });
}

/// The number of iterations of `op` for each row; none if it is unknown.
static std::optional<int64_t> workPerRow(linalg::LinalgOp op, ArrayRef<int64_t> rows) {
  int64_t work = 1;
  for (auto [loop, size] : llvm::enumerate(op.getStaticLoopRanges())) {
    if (llvm::is_contained(rows, loop))
      continue;
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    work *= size;
  }
  return work;
}

/// The number of rows of a task of `ops`; none if these ops should not be a group.
static std::optional<int64_t> planGroup(int64_t cacheBytes, ArrayRef<linalg::LinalgOp> ops,
                                        const RowFlow &flow) {
  static constexpr int64_t kBytes = 4;
  int64_t work = 0, bytesPerRow = 0, numProducts = 0, numReductions = 0, height = 1;
  int64_t all = ShapedType::kDynamic;
  for (linalg::LinalgOp op : ops) {
    ArrayRef<int64_t> loops = flow.getLoops(op);
    std::optional<int64_t> elements = workPerRow(op, loops);
    if (!elements)
      return std::nullopt;
    numReductions += op.getNumReductionLoops() > 0;
    if (!isProduct(op))
      continue;
    ++numProducts;
    work += *elements;
    all = op.getStaticLoopRanges()[loops.back()];
    if (auto block = op->getAttrOfType<BlockAttr>(AttnDialect::kBlockAttr))
      height = std::max(height, block.getRows());
    int64_t columns = 1;
    auto out = cast<ShapedType>(op->getResult(0).getType());
    std::optional<Rows> dims =
        rowsOfLoops(op.getMatchingIndexingMap(op.getDpsInitOperand(0)), loops);
    for (auto [dim, size] : llvm::enumerate(out.getShape()))
      columns *= llvm::is_contained(*dims, dim) ? 1 : size;
    bytesPerRow += columns * kBytes;
  }
  // A single product and the elementwise ops around it share tasks even without a group.
  if (numProducts == 0 || numReductions < 2 || work * kBytes > cacheBytes / 2)
    return std::nullopt;
  if (work == 0 || bytesPerRow == 0)
    return std::nullopt;
  int64_t rows = std::max<int64_t>(kLeastRows, llvm::divideCeil(kLeastWork, work));
  rows = std::clamp<int64_t>(cacheBytes / 4 / bytesPerRow, 1, rows);
  return divideRows(all, rows, height);
}

namespace {
struct GroupRows : attn::impl::GroupRowsBase<GroupRows> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    PlannerInterface planner = getPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    Block &body = getOperation().getBody().front();
    auto isGrouped = [](Operation &op) {
      auto task = op.getAttrOfType<TaskAttr>(AttnDialect::kTaskAttr);
      return task && task.getGroup();
    };
    if (llvm::any_of(body, isGrouped))
      return;
    RowFlow flow(findOpsOfAttentions(getOperation()));
    for (Operation &op : body)
      flow.visit(&op);
    int64_t number = 0;
    for (ArrayRef<linalg::LinalgOp> ops : flow.findGroups()) {
      std::optional<int64_t> rows = planGroup(planner.getCacheBytes(), ops, flow);
      if (!rows)
        continue;
      auto task = TaskAttr::get(&getContext(), *rows, number++);
      for (linalg::LinalgOp op : ops) {
        op->setAttr(AttnDialect::kTaskAttr, task);
        auto init = op.getDpsInits()[0].getDefiningOp<linalg::LinalgOp>();
        if (init && isInit(init))
          init->setAttr(AttnDialect::kTaskAttr, task);
      }
    }
  }
};
} // namespace
