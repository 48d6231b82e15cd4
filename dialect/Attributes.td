//===- Attributes.td - machine, plan, symbols ------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTRIBUTES_TD
#define ATTN_DIALECT_ATTRIBUTES_TD

include "dialect/Attn.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Attn_Attr<string cppName, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Attn_Dialect, cppName, traits> {
  let mnemonic = attrMnemonic;
}

def Attn_TargetAttr : Attn_Attr<"Target", "target"> {
  let summary = "the machine a module is compiled for, as values";
  let description = [{
    What passes need to know of a machine, never its name: tile sizes and register blocks follow from
    these numbers, so a stage file states its own machine. `level` is the name users force with
    `--level`; the code generator looks up instruction sets by it.

    ```mlir
    module attributes {attn.target = #attn.target<"x86-64-v4", lanes = 16, registers = 32,
                                                   fma = true, l1 = 32768, l2 = 1048576, scalef = true>} {}
    ```
  }];
  let parameters = (ins
    StringRefParameter<"name of the level">:$level,
    "unsigned":$lanes,      // f32 lanes of a vector register
    "unsigned":$registers,  // vector registers
    "bool":$fma,            // multiply-add is one instruction
    "unsigned":$l1,         // bytes
    "unsigned":$l2,         // bytes, of one core
    DefaultValuedParameter<"bool", "false">:$scalef,  // so are p * 2^n and x - floor(x), vscalefps and vreduceps
    DefaultValuedParameter<"bool", "false">:$halves); // so are the conversions of f16 and f32
  let assemblyFormat = [{ `<` $level `,` struct($lanes, $registers, $fma, $l1, $l2, $scalef, $halves) `>` }];
  let genVerifyDecl = 1;
}

def Attn_Schedule : I32Enum<"Schedule", "how an attention becomes loops", [
    I32EnumCase<"PerHead", 0, "per-head">,
    I32EnumCase<"Phased", 1, "phased">,
    I32EnumCase<"WholeScores", 2, "whole-scores">,
    I32EnumCase<"Unfused", 3, "unfused">]> {
  let cppNamespace = "::attn";
}

def Attn_PlanAttr : Attn_Attr<"Plan", "plan"> {
  let summary = "how one attention is scheduled and tiled";
  let description = [{
    Written by `attn-plan`, read by the `schedule` and `tile` stages, editable in between.
    `q` and `k` are the sizes of a query tile and of a key tile.

    * `per-head`: a task projects the keys and values of one head and attends its queries, tile by tile;
    * `phased`: projections in phases of their own, then a task for each tile of queries;
    * `whole-scores`: tasks as per-head; the scores of a tile of few queries stay in the cache, and one softmax
      follows; `k` is not used;
    * `unfused`: scores in memory, three passes; neither is used.

    ```mlir
    #attn.plan<"per-head", q = 48, k = 128>
    ```
  }];
  let parameters = (ins EnumParameter<Attn_Schedule>:$schedule, "int64_t":$q, "int64_t":$k);
  let assemblyFormat = [{ `<` $schedule `,` struct($q, $k) `>` }];
  let genVerifyDecl = 1;
}

def Attn_SymbolAttr : Attn_Attr<"Symbol", "symbol"> {
  let summary = "a dimension known at the call only, with its range";
  let description = [{
    Named after the first argument and axis that carry it unless the file has a better name.
    Both ends are inclusive; a call outside is refused.

    One that no input carries comes after those and is named by a formula of them, a size or a condition, whose
    value is 1 where it holds:

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

def Attn_EmptyRow : I32Enum<"EmptyRow", "what a query without a key gives", [
    I32EnumCase<"Zero", 0, "zero">,
    I32EnumCase<"NaN", 1, "nan">]> {
  let cppNamespace = "::attn";
}
def Attn_EmptyRowAttr : EnumAttr<Attn_Dialect, Attn_EmptyRow, "empty_row"> {
  let assemblyFormat = "`<` $value `>`";
}

#endif // ATTN_DIALECT_ATTRIBUTES_TD
