//===- Masks.td - every named mask -----------------------------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A mask states which pairs (batch..., q, k) are kept, as a union of integer sets. The symbols of these sets are
// elements of captured operands, which are additional operands of the op that has the mask. Loop bounds, the test
// inside a tile, the proof that no row is empty, and the reference all derive from these sets. A new mask is one def
// here and, in Masks.cpp, kept() and remap().
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_MASKS_TD
#define ATTN_DIALECT_MASKS_TD

include "dialect/Attributes.td"

def Attn_MaskInterface : AttrInterface<"MaskInterface"> {
  let cppNamespace = "::attn";
  let description = [{ Which pairs of a query and a key are kept. }];
  let methods = [
    InterfaceMethod<[{
        The kept pairs as a list of sets: a pair is kept if one of the sets contains it. The dimensions of each
        set are the `numBatch` batch coordinates, then q, then k.
      }], "::llvm::SmallVector<::attn::KeptSet>", "kept", (ins "unsigned":$numBatch)>,
    InterfaceMethod<[{
        The same mask after captured operand `i` has become captured operand `captures[i]`.
      }], "::attn::MaskInterface", "remap", (ins "::llvm::ArrayRef<unsigned>":$captures)>
  ];
}

class Attn_Mask<string cppName, string attrMnemonic>
    : Attn_Attr<cppName, attrMnemonic, [DeclareAttrInterfaceMethods<Attn_MaskInterface>]>;

def Attn_CausalAttr : Attn_Mask<"Causal", "causal"> {
  let summary = "query q keeps key k when k <= q + offset";
  let description = [{
    `offset` is 0 for self-attention. If keys are cached, `offset` is the number of keys before the first query.

    ```mlir
    #attn.causal
    #attn.causal<offset = 3>
    ```
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "0">:$offset);
  let assemblyFormat = [{ (`<` struct($offset)^ `>`)? }];
  let genVerifyDecl = 1;
}

def Attn_WindowAttr : Attn_Mask<"Window", "window"> {
  let summary = "query q keeps key k when q + offset - left <= k <= q + offset + right";
  let description = [{
    `left` and `right` are the numbers of keys that are kept before and after the query's own key, q + offset.

    ```mlir
    #attn.window<left = 255, right = 0>
    ```
  }];
  let parameters = (ins "int64_t":$left, "int64_t":$right, DefaultValuedParameter<"int64_t", "0">:$offset);
  let assemblyFormat = [{ `<` struct($left, $right, $offset) `>` }];
  let genVerifyDecl = 1;
}

def Attn_LengthsAttr : Attn_Mask<"Lengths", "lengths"> {
  let summary = "key k is kept when k < n, where n is an element of a captured operand";
  let description = [{
    The captured operand holds integers, the lengths n. The map of the operand selects the length for a query, usually
    by the batch.
    If the operand is an argument with `attn.bound`, the runtime refuses lengths outside [0, number of keys] before the
    call.

    ```mlir
    #attn.lengths<0>   // the first captured operand
    ```
  }];
  let parameters = (ins "unsigned":$capture);
  let assemblyFormat = [{ `<` $capture `>` }];
}

def Attn_Polarity : I32Enum<"Polarity", "which elements of a dense mask keep their pair", [
    I32EnumCase<"Nonzero", 0, "nonzero">,
    I32EnumCase<"Zero", 1, "zero">]> {
  let cppNamespace = "::attn";
}

def Attn_PolarityAttr : EnumAttr<Attn_Dialect, Attn_Polarity, "polarity">;

def Attn_PolarityParameter : EnumParameter<Attn_Polarity> {
  let defaultValue = "::attn::Polarity::Nonzero";
}

def Attn_DenseAttr : Attn_Mask<"Dense", "dense"> {
  let summary = "a pair is kept when its element of a captured operand is nonzero, or zero with `keeps = zero`";
  let description = [{
    The elements of the captured operand may be booleans, integers or floats; the map of the operand may broadcast the
    operand along any dimension. A NaN counts as nonzero.

    ```mlir
    #attn.dense<0>                 // true keeps
    #attn.dense<0, keeps = zero>   // true hides
    ```
  }];
  let parameters = (ins "unsigned":$capture,
                        Attn_PolarityParameter:$keeps);
  let assemblyFormat = [{ `<` $capture (`,` struct($keeps)^)? `>` }];
}

def Attn_AndAttr : Attn_Mask<"And", "and"> {
  let summary = "a pair is kept when every one of the masks keeps it";
  let description = [{
    ```mlir
    #attn.and<[#attn.causal, #attn.lengths<0>]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::Attribute">:$masks);
  let assemblyFormat = [{ `<` custom<Masks>($masks) `>` }];
  let genVerifyDecl = 1;
}

#endif // ATTN_DIALECT_MASKS_TD
