//===- Attributes.td - machines, plans, launches and symbols ---------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTRIBUTES_TD
#define ATTN_DIALECT_ATTRIBUTES_TD

include "dialect/Attn.td"
include "dialect/Target.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Attn_Attr<string cppName, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Attn_Dialect, cppName, traits> {
  let mnemonic = attrMnemonic;
}

def Attn_CpuCapabilities : I32BitEnum<"CpuCapabilities", "what single instructions of a CPU can do", [
    I32BitEnumCaseNone<"None", "none">,
    I32BitEnumCaseBit<"FMA", 0, "fma">,       // a * b + c, rounded once
    I32BitEnumCaseBit<"Masks", 1, "masks">,   // select the lanes of an instruction by a mask register
    I32BitEnumCaseBit<"Scale", 2, "scale">,   // p * 2^n, and x - floor(x)
    I32BitEnumCaseBit<"Halves", 3, "halves">, // convert vectors between f16 and f32
    I32BitEnumCaseBit<"Pairs", 4, "pairs">,   // add the products of two pairs of bf16 to an f32
    I32BitEnumCaseBit<"Tiles", 5, "tiles">,   // multiply tiles of bf16, and add the products to a tile of f32
    I32BitEnumCaseBit<"Widening", 6, "widening">, // multiply vectors of f16, and add the products to f32
    I32BitEnumCaseBit<"Matrices", 7, "matrices">  // multiply matrices of bf16 that are in vector registers
  ]> {
  let cppNamespace = "::attn";
}

def Attn_PipelinesAttr : Attn_Attr<"Pipelines", "pipelines"> {
  let summary = "the speed of the instructions of a CPU";
  let description = [{
    The cost model derives the time of a plan from these numbers. In one cycle, a core starts `multiplies` multiply-adds
    of full vectors, `loads` loads and `stores` stores of vectors. `latency` is the number of cycles after which a
    multiply-add can add to the result of the previous one. The exponentials of a vector, with the subtraction of the
    maximum before them and the addition to the sum after them, take the time of `exponential` multiply-adds.

    ```mlir
    #attn.pipelines<multiplies = 4, loads = 3, stores = 2, latency = 2, exponential = 22>
    ```
  }];
  let parameters = (ins
    "unsigned":$multiplies,
    "unsigned":$loads,
    "unsigned":$stores,
    "unsigned":$latency,
    "unsigned":$exponential);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let builders = [
    /// The numbers of Zen 4 with vectors of 512 bits, as measured.
    AttrBuilder<(ins), [{ return $_get($_ctxt, 1, 2, 1, 4, 8); }]>
  ];
}

def Attn_CpuAttr : Attn_Attr<"Cpu", "cpu", [DeclareAttrInterfaceMethods<Attn_TargetInterface>]> {
  let summary = "the properties of the CPU that a module is compiled for";
  let description = [{
    The attribute holds all properties of a CPU that passes use. Passes derive tile sizes and register blocks from these
    properties and never from the name of a CPU, so a stage file describes its machine completely. `level` names the ISA
    level, a set of instruction-set extensions such as x86-64-v3. `attn-run --level` selects a level; the code generator
    looks up the instruction set by this name.

    `vector` is the length of a vector register in bits, and `registers` is the number of vector registers. A register
    block leaves `spare` registers free for the register allocator. `l1` and `l2` are the sizes of the caches of one
    core in bytes. Predictions use `pipelines`, the speed of the instructions, which is by default that of Zen 4. `has`
    lists the instructions of the CPU that attn uses:

    * `fma`: multiply and add with one rounding;
    * `masks`: compare vectors into mask registers, which select the lanes of other instructions;
    * `scale`: compute p * 2^n, and x - floor(x);
    * `halves`: convert vectors between f16 and f32;
    * `pairs`: multiply vectors of bf16, and add the products of adjacent elements to f32;
    * `tiles`: multiply tiles of bf16, and add the products to a tile of f32;
    * `widening`: multiply vectors of f16, and add the products to f32;
    * `matrices`: multiply matrices of bf16 in vector registers, and add the products to a matrix of f32.

    ```mlir
    module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768,
                                               l2 = 1048576, has = fma|masks|scale>} {}
    ```
  }];
  let parameters = (ins
    StringRefParameter<"name of the level">:$level,
    "unsigned":$vector,
    "unsigned":$registers,
    DefaultValuedParameter<"unsigned", "0">:$spare,
    "unsigned":$l1,
    "unsigned":$l2,
    DefaultValuedParameter<"::attn::CpuCapabilities", "::attn::CpuCapabilities::None">:$has,
    DefaultValuedParameter<"::attn::PipelinesAttr", "::attn::PipelinesAttr::get($_ctxt)">:$pipelines);
  let assemblyFormat = [{
    `<` $level `,` struct($vector, $registers, $spare, $l1, $l2, $has, $pipelines) `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool can(::attn::CpuCapabilities what) const { return bitEnumContainsAll(getHas(), what); }
    /// The number of elements of `type` in a vector register.
    unsigned getLanes(::mlir::Type type) const { return getVector() / type.getIntOrFloatBitWidth(); }
    /// The number of f32 elements in a vector register. Accumulators and scores are of f32.
    unsigned getLanes() const { return getVector() / 32; }
  }];
}

def Attn_GpuCapabilities : I32BitEnum<"GpuCapabilities", "what single instructions of a GPU can do", [
    I32BitEnumCaseNone<"None", "none">,
    I32BitEnumCaseBit<"Copies", 0, "copies">,  // copy from global to shared memory while the thread continues
    I32BitEnumCaseBit<"Matrices", 1, "matrices">,    // one warp multiplies matrices
    I32BitEnumCaseBit<"Warpgroups", 2, "warpgroups"> // four warps together multiply matrices
  ]> {
  let cppNamespace = "::attn";
}

def Attn_GpuAttr : Attn_Attr<"Gpu", "gpu", [DeclareAttrInterfaceMethods<Attn_TargetInterface>]> {
  let summary = "the properties of the GPU that a module is compiled for";
  let description = [{
    The attribute holds all properties of a GPU that passes use. The planner derives tiles and threads from these
    properties. `level` names the architecture, such as sm_80; the code generator looks up the instruction set by this
    name.

    `shared` is the largest number of bytes of shared memory that one block of threads can have, and `registers` is the
    number of 32-bit registers of a multiprocessor. `has` lists the instructions of the GPU that attn uses:

    * `copies`: a thread copies 16 bytes from global to shared memory asynchronously;
    * `matrices`: one warp multiplies matrices in its registers, of 16-bit floats or of f32 rounded to tf32;
    * `warpgroups`: four warps together multiply matrices of 16-bit floats; at least the right matrix is in shared
      memory.

    ```mlir
    module attributes {attn.target = #attn.gpu<"sm_80", shared = 101376, registers = 65536, has = copies|matrices>} {}
    ```
  }];
  let parameters = (ins
    StringRefParameter<"name of the level">:$level,
    "unsigned":$shared,
    "unsigned":$registers,
    DefaultValuedParameter<"::attn::GpuCapabilities", "::attn::GpuCapabilities::None">:$has);
  let assemblyFormat = [{ `<` $level `,` struct($shared, $registers, $has) `>` }];
  let extraClassDeclaration = [{
    bool can(::attn::GpuCapabilities what) const { return bitEnumContainsAll(getHas(), what); }
  }];
}

def Attn_TensorMapAttr : Attn_Attr<"TensorMap", "tensor_map"> {
  let summary = "a tensor from which a kernel copies boxes";
  let description = [{
    A tensor map tells a GPU the address, sizes and strides of a tensor, and the size of the box that one instruction
    copies from the tensor. The runtime makes the map before a launch. The tensor has `rank` dimensions and elements of
    `bytes` bytes; it is the memref whose descriptor is at byte `offset` of the arguments of the task. A box has `rows`
    elements in dimension `dim`, 128 bytes in the last dimension, and one element in the others.

    ```mlir
    #attn.tensor_map<offset = 8, rank = 4, dim = 2, rows = 128, bytes = 2>
    ```
  }];
  let parameters = (ins "int64_t":$offset, "int64_t":$rank, "int64_t":$dim, "int64_t":$rows, "int64_t":$bytes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Attn_LaunchAttr : Attn_Attr<"Launch", "launch"> {
  let summary = "the threads and the shared memory of the block that runs a task on a GPU";
  let description = [{
    The attribute is on a task function of a module for GPUs. A block of `threads` threads, in warps of 32, runs one
    task and has `shared` bytes of shared memory. `producers` additional threads, numbered after these, only copy to
    shared memory. If `blocks` is not 0, a block runs several tasks, one after the other: the first argument of the
    task is then the number of the block, the last one the number of tasks, and the runtime launches at most `blocks`
    blocks for each multiprocessor. In the stage `emit`, `kernel` is the number of the task among the kernels of the
    module, `arguments` is the size of its arguments in bytes, and `maps` are the tensor maps that follow the
    arguments.

    ```mlir
    #attn.launch<threads = 256, producers = 128, shared = 81920>
    ```
  }];
  let parameters = (ins "int64_t":$threads, DefaultValuedParameter<"int64_t", "0">:$producers,
                        DefaultValuedParameter<"int64_t", "0">:$blocks,
                        DefaultValuedParameter<"int64_t", "0">:$shared,
                        DefaultValuedParameter<"int64_t", "0">:$kernel,
                        DefaultValuedParameter<"int64_t", "0">:$arguments,
                        OptionalParameter<"::mlir::ArrayAttr">:$maps);
  let builders = [AttrBuilder<(ins "int64_t":$threads, CArg<"int64_t", "0">:$producers,
                                  CArg<"int64_t", "0">:$blocks, CArg<"int64_t", "0">:$shared,
                                  CArg<"int64_t", "0">:$kernel, CArg<"int64_t", "0">:$arguments,
                                  CArg<"::mlir::ArrayAttr", "{}">:$maps), [{
    return $_get($_ctxt, threads, producers, blocks, shared, kernel, arguments, maps);
  }]>];
  let skipDefaultBuilders = 1;
  let assemblyFormat = [{ `<` struct($threads, $producers, $blocks, $shared, $kernel, $arguments, $maps) `>` }];
  let genVerifyDecl = 1;
}

def Attn_Schedule : I32Enum<"Schedule", "how an attention becomes loops", [
    I32EnumCase<"PerHead", 0, "per-head">,
    I32EnumCase<"Phased", 1, "phased">,
    I32EnumCase<"WholeScores", 2, "whole-scores">,
    I32EnumCase<"Unfused", 3, "unfused">,
    I32EnumCase<"Decode", 4, "decode">]> {
  let cppNamespace = "::attn";
}

def Attn_PlanAttr : Attn_Attr<"Plan", "plan"> {
  let summary = "how one attention is scheduled and tiled";
  let description = [{
    `attn-plan` writes the plan, the stages `schedule` and `tile` read it, and users can edit it in
    between. `q` and `k` are the sizes of a query tile and of a key tile.

    With a `group` of g > 1, products use an instruction of the machine that adds the products of g adjacent elements.
    These elements have the type of keys and values, and probabilities are rounded to this type. With a group of 1,
    elements are converted to the type of the scores before they are multiplied.

    With `transposes`, the loop over keys transposes the values of each `attn.online_step` to `(e, k / g, g)`, the
    layout that instructions for tiles read.

    `stages` is for machines on which tiles are copied to faster memory ahead of the steps that read them, and only for
    the schedules phased and decode. It is the number of tiles of keys, and of values, in this memory: 2 to 4. If the
    threads that compute also copy the tiles, two of them are used. On such machines, `stages` is not 0, each
    `attn.online_step` reads queries, keys and values in their own type without an op that packs them first, and the
    steps have `rows`: queries are the first dimension of scores and accumulators.

    * `per-head`: a task projects the keys and values of one head and computes the attention of its queries, tile by
      tile;
    * `phased`: projections are phases of their own; then a task computes the attention of each tile of queries;
    * `whole-scores`: tasks are those of `per-head`; all scores of a tile of few queries stay in the cache, and one
      softmax follows; `k` is not used;
    * `decode`: projections are phases of their own; a task computes the attention of a tile of few queries to `part`
      keys, or to all keys if `part` is 0, with keys in the lanes of vectors; then the parts are merged in the order of
      the keys. Only this schedule uses `part`;
    * `unfused`: three passes with the scores in memory; `q` and `k` are not used.

    ```mlir
    #attn.plan<"per-head", q = 48, k = 128>
    #attn.plan<"per-head", q = 48, k = 128, group = 2>
    #attn.plan<"per-head", q = 64, k = 128, group = 2, transposes = true>
    #attn.plan<"decode", q = 4, k = 512, part = 1024>
    #attn.plan<phased, q = 128, k = 64, stages = 2>
    ```
  }];
  let parameters = (ins EnumParameter<Attn_Schedule>:$schedule, "int64_t":$q, "int64_t":$k,
                        DefaultValuedParameter<"int64_t", "1">:$group,
                        DefaultValuedParameter<"int64_t", "0">:$part,
                        DefaultValuedParameter<"bool", "false">:$transposes,
                        DefaultValuedParameter<"int64_t", "0">:$stages);
  let builders = [AttrBuilder<(ins "::attn::Schedule":$schedule, "int64_t":$q, "int64_t":$k,
                                  CArg<"int64_t", "1">:$group, CArg<"int64_t", "0">:$part,
                                  CArg<"bool", "false">:$transposes, CArg<"int64_t", "0">:$stages), [{
    return $_get($_ctxt, schedule, q, k, group, part, transposes, stages);
  }]>];
  let skipDefaultBuilders = 1;
  let assemblyFormat = [{ `<` $schedule `,` struct($q, $k, $group, $part, $transposes, $stages) `>` }];
  let extraClassDeclaration = [{
    /// The least and the largest number of stages of a plan that has stages.
    static constexpr int64_t kLeastStages = 2, kMostStages = 4;
  }];
  let genVerifyDecl = 1;
}

def Attn_BlockAttr : Attn_Attr<"Block", "block"> {
  let summary = "the register block of one product";
  let description = [{
    `attn-plan-products` writes the block as `attn.block` on each product, code generation reads it, and users can edit
    it in between. `rows` x `vectors` accumulators, each a vector, stay in registers while `depth` products are added to
    each of them; a longer sum is computed in parts of `depth` products. A `depth` of 0 stands for the whole sum. On
    machines with instructions that multiply tiles, a block of more than 8 rows consists of tiles, and `rows` is a
    multiple of the rows of a tile.

    ```mlir
    #attn.block<rows = 6, vectors = 4, depth = 192>
    ```
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$vectors, DefaultValuedParameter<"int64_t", "0">:$depth);
  let assemblyFormat = [{ `<` struct($rows, $vectors, $depth) `>` }];
  let genVerifyDecl = 1;
}

def Attn_TaskAttr : Attn_Attr<"Task", "task"> {
  let summary = "the rows of a task, and the group of ops that the task computes";
  let description = [{
    `attn-plan-products` and `attn-group-rows` write the attribute as `attn.task`, the `schedule` stage reads it, and
    users can edit it in between. A task of a product without a group computes `rows` rows of one panel of columns; if
    `columns` is not 0, it computes only this number of columns of the panel. All ops with the same `group` share their
    tasks: a task computes `rows` rows of each of these ops, with all columns, one op after the other. `rows` is at most
    2^20. All rows of a task are in one batch item: the last task of a batch item has the remaining rows. On a CPU, a
    product whose batch items have fewer rows has tasks of several whole batch items. If the channels are not the last
    dimension of the output of a convolution, its rows are output channels, and its columns are elements of the image, of
    which the innermost dimensions come first, and images of the batch last.

    ```mlir
    #attn.task<rows = 96>
    #attn.task<rows = 64, columns = 128>
    #attn.task<rows = 24, group = 0>
    ```
  }];
  let parameters = (ins "int64_t":$rows, OptionalParameter<"std::optional<int64_t>">:$group,
                        DefaultValuedParameter<"int64_t", "0">:$columns);
  let builders = [AttrBuilder<(ins "int64_t":$rows, "std::optional<int64_t>":$group, CArg<"int64_t", "0">:$columns), [{
    return $_get($_ctxt, rows, group, columns);
  }]>];
  let skipDefaultBuilders = 1;
  let assemblyFormat = [{ `<` struct($rows, $group, $columns) `>` }];
  let genVerifyDecl = 1;
}

def Attn_SymbolAttr : Attn_Attr<"Symbol", "symbol"> {
  let summary = "a size that is known only at the call, with its range";
  let description = [{
    A symbol is named after the first argument and axis that have this size, unless the model file names it. Both ends
    of the range are inclusive; a call with a size outside the range is refused.

    The symbols that are dimensions of inputs come first. The name of any other symbol is a formula of symbols before
    it, which computes a size, or a condition on such symbols, which is 1 if it holds and 0 otherwise:

    ```mlir
    #attn.symbol<"x.1", 0 to 4096>
    #attn.symbol<"2*x.1 + 1", 0 to 8193>
    #attn.symbol<"x.1 != 64", 1 to 1>
    ```
  }];
  let parameters = (ins StringRefParameter<"name">:$name, "int64_t":$min, "int64_t":$max);
  let assemblyFormat = [{ `<` $name `,` $min `to` $max `>` }];
  let genVerifyDecl = 1;
}

def Attn_Overlap : I32Enum<"Overlap", "which products a step on a GPU computes", [
    I32EnumCase<"Begin", 0, "begin">,
    I32EnumCase<"Middle", 1, "middle">,
    I32EnumCase<"End", 2, "end">]> {
  let cppNamespace = "::attn";
}
def Attn_OverlapAttr : EnumAttr<Attn_Dialect, Attn_Overlap, "overlap"> {
  let description = [{
    If the products of one tile overlap with the softmax of another tile, an `attn.online_step` computes the products of
    the queries with its keys (`begin`), the products of the probabilities with the values of the previous tile (`end`),
    or both products (`middle`).
  }];
  let assemblyFormat = "`<` $value `>`";
}

def Attn_EmptyRow : I32Enum<"EmptyRow", "the output of a query that keeps no key", [
    I32EnumCase<"Zero", 0, "zero">,
    I32EnumCase<"NaN", 1, "nan">]> {
  let cppNamespace = "::attn";
}
def Attn_EmptyRowAttr : EnumAttr<Attn_Dialect, Attn_EmptyRow, "empty_row"> {
  let assemblyFormat = "`<` $value `>`";
}

#endif // ATTN_DIALECT_ATTRIBUTES_TD
