//===- Planner.td - the plans that a family of machines makes --------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PASSES_PLAN_PLANNER_TD
#define ATTN_PASSES_PLAN_PLANNER_TD

include "mlir/IR/OpBase.td"

def Attn_PlannerInterface : AttrInterface<"PlannerInterface"> {
  let cppNamespace = "::attn";
  let description = [{
    The decisions of the stage `plan` that depend on the machine. A target attribute gets this interface as an external
    model. Every method is a pure function of the attribute and the arguments.
  }];
  let methods =
      [InterfaceMethod<[{
        All candidate plans for `shape`, the fastest first; there is at least one if `only` is not set. If `only` is
        set, all plans have this schedule, and there is none if the target does not support the schedule.
      }],
                       "::llvm::SmallVector<::attn::Prediction>", "predictPlans",
                       (ins "const ::attn::AttentionShape &":$shape,
                           "::std::optional<::attn::Schedule>":$only)>,
       InterfaceMethod<[{
        The predicted time of an attention with the projections before it, in multiply-adds of one full vector.
      }],
                       "double", "predictPlan",
                       (ins "const ::attn::AttentionShape &":$shape, "::attn::PlanAttr":$plan)>,
       InterfaceMethod<[{
        The time that predictPlan() predicts, if `workers` threads compute the tasks; none on a machine without threads, such as a GPU.
      }],
                       "::std::optional<double>", "predictPlanOfWorkers",
                       (ins "const ::attn::AttentionShape &":$shape, "::attn::PlanAttr":$plan,
                           "int64_t":$workers), [{}], [{
        return ::std::nullopt;
      }]>,
       InterfaceMethod<[{
        The register block of a product, which code generation reads from `attn.block` or `attn.blocks`; null if the
        product needs none.
      }],
                       "::mlir::Attribute", "planProduct",
                       (ins "const ::attn::ProductShape &":$shape)>,
       InterfaceMethod<[{
        The rows and columns of a product that one task computes; 0 columns stand for all columns of a panel. `block` is
        the result of planProduct(), or what a user wrote in its place; it may be null.
      }],
                       "::attn::TaskSize", "planTask",
                       (ins "const ::attn::ProductShape &":$shape, "::attn::BlockAttr":$block)>,
       InterfaceMethod<[{
        Whether the rows of a task may be those of several loops, such as the rows and columns of an image with few
        elements in each row.
      }],
                       "bool", "mergesRows", (ins), [{}], [{
        return false;
      }]>,
       InterfaceMethod<[{
        Whether an attention whose number of queries is known only at the call gets a second plan for one query.
      }],
                       "bool", "separatesOneQuery", (ins), [{}], [{
        return false;
      }]>,
       InterfaceMethod<[{
        Whether the machine has enough registers for `block`, which a user may have written, in a product of `shape`.
      }],
                       "bool", "hasRegisters",
                       (ins "const ::attn::ProductShape &":$shape, "::attn::BlockAttr":$block), [{}], [{
        return true;
      }]>,
       InterfaceMethod<[{
        The `mapping` of the loop over the tasks of an attention, with one attribute for each of its `rank` dimensions.
        If it is null, a loop with one task may be replaced by the body of this task.
      }],
                       "::mlir::ArrayAttr", "mapTasks", (ins "int64_t":$rank), [{}], [{
        return nullptr;
      }]>,
       InterfaceMethod<[{
        The number of columns of a product that are computed together: the lanes of a vector. A row whose length is not
        a multiple of this number leaves some lanes empty.
      }],
                       "int64_t", "getLanes">,
       InterfaceMethod<[{
        The size in bytes of the cache that a task does not share with other tasks.
      }],
                       "int64_t", "getCacheBytes">,
       InterfaceMethod<[{
        Whether a product is slower if the rows of its left operand lie `bytes` bytes apart, because the rows of a
        register block share sets of the cache.
      }],
                       "bool", "sharesCacheSets", (ins "int64_t":$bytes), [{}], [{
        return false;
      }]>,
       InterfaceMethod<[{
        The panels that the weight of a product with a known number of columns is packed into. A width of 0 means that
        products read their operands without packing.
      }],
                       "::attn::Panel", "choosePanel", (ins "const ::attn::ProductShape &":$shape)>,
       InterfaceMethod<[{
        Whether the machine has an instruction for factors of `type`, which is narrower than f32, that is faster than
        its instruction for f32 in sums of `depth` products. An unknown depth is kDynamic.
      }],
                       "bool", "multipliesFaster", (ins "::mlir::Type":$type, "int64_t":$depth), [{}], [{
        return false;
      }]>,
       InterfaceMethod<[{
        Whether an attention of f32 is predicted to be faster if its queries, keys and values are rounded to `type`
        first. If `only` is set, the attention has this schedule.
      }],
                       "bool", "isFasterRounded",
                       (ins "const ::attn::AttentionShape &":$shape, "::mlir::Type":$type,
                           "::std::optional<::attn::Schedule>":$only), [{}], [{
        return false;
      }]>,
       InterfaceMethod<[{
        Whether the code for `graph`, a module before the stage `plan`, is the same for this target as for `other`, a
        target that requires fewer features of the machine. A library with code for `other` then needs no code for this
        target.
      }],
                       "bool", "makesSameCode",
                       (ins "::attn::TargetInterface":$other, "::mlir::ModuleOp":$graph), [{}], [{
        return false;
      }]>];
}

#endif // ATTN_PASSES_PLAN_PLANNER_TD
