//===- Ops.td - attention, ops on tiles, packing, parallel tasks -----------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// A label such as A1 or R2 names a constraint in this file, its check in the verifier (Ops.cpp), and the tests of this
// check in test/dialect/<op>-invalid.mlir.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_OPS_TD
#define ATTN_DIALECT_OPS_TD

include "dialect/Masks.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Attn_Op<string mnemonic, list<Trait> traits = []> : Op<Attn_Dialect, mnemonic, traits>;

def Attn_Shaped : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef], "ranked tensor or strided memref">;

// On tensors a destination-style op is pure; on memrefs it reads its inputs and updates its outputs.
class Attn_DpsOp<string mnemonic, list<Trait> traits = []> : Attn_Op<mnemonic, traits # [
    DestinationStyleOpInterface, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  code dpsDecl = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutsMutable(); }
  }];
  let extraClassDeclaration = dpsDecl;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Attn_AttentionOp : Attn_DpsOp<"attention", [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition",
      "generateResultTileValue", "getIterationDomainTileFromResultTile"]>]> {
  let summary = "softmax(score(scale * Q K^T)) V over the kept pairs";
  let description = [{
    For every batch coordinate and every query q, the op computes, over the keys k that the mask keeps:

        s[q,k] = score(batch..., q, k, scale * sum_d Q[q,d] * K[k,d], captured...)
        p[q,k] = exp(s[q,k] - max_k s) / sum_k exp(s[q,k] - max_k s)
        out[q,e] = sum_k p[q,k] * V[k,e]          probabilities[q,k] = p[q,k], 0 where the pair is not kept

    The optional second output, `probabilities`, holds the probabilities p. Captured operands are additional tensors
    that the score region or the mask reads, at (batch..., q, k) only. A `sink` is one more score of each query, for a
    key without a value: it counts in the maximum and in the sum by which p is divided, and so takes a share of the
    probability.

    A pair that is not kept has no influence, whatever Q, K, V and the captured operands contain for it. A NaN in a kept
    pair gives NaN in its row; probabilities of pairs that are not kept are then 0 or NaN. The scores of a query are the
    scores of its kept pairs and the sink. If a query has no score, or only scores of -inf, it is an empty row, and all
    elements of its outputs are 0 or NaN, as `empty_row` says. If there is no key at all, out is the empty sum, 0.

    `indexing_maps` has one map from the iteration space (batch..., q, k, d, e) to each operand: query, key, value, the
    captured operands, the sink if there is one, out, and the probabilities if they are returned. If the key lacks a
    batch dimension, the queries along this dimension share their keys, as in grouped-query attention. If D is 0, all
    scores are 0.

    The score region computes on scalars: its arguments are the coordinates (batch..., q, k) as absolute indices, the
    scaled score in the accumulator type, and one element of each captured operand. Without a region, the scaled score
    is the score. If the op is a tile of a larger attention, `at` has the origin of the tile, one index for each of
    (batch..., q, k). Tiling changes the origin and never the region.

    With `state`, the op does not divide by the sum. It returns the state of the online softmax over its keys: acc, max
    and sum. max[q] is the greatest score of a kept pair, or -inf if no pair is kept:

        p[q,k] = exp(s[q,k] - max[q])     sum[q] = sum_k p[q,k]     acc[q,e] = sum_k p[q,k] * V[k,e]

    An op with `state` has no sink and no `empty_row`. `attn.online_merge` with the scale 1 merges the states of
    disjoint sets of keys.

    With a `fill`, which is a finite number, all pairs are kept: the score of a pair that the mask hides is the fill, and
    its value counts. A probability of less than 2^-80 times the largest of its row may become 0. The probability of a
    hidden pair is that small if a score of its row is larger than the fill by 56, which is more than 80 ln(2). Loops
    skip the hidden pairs of such rows. If the fill is `added`, the score of a hidden pair is the sum of the score that
    the region yields and the fill. If it is also `bounded`, the last captured operand has for each query a number that
    is not below the magnitude of any score of its hidden pairs, or NaN.

    Constraints:
    * (A1) there is one indexing map for each of query, key, value, captured operands, sink and outputs; all maps have
      the same dimensions, at least q, k, d and e, and each map has as many results as its operand has dimensions;
    * (A2) every map is a projected permutation in which results may also be the constant 0; a captured operand may be
      read at `k floordiv 32` instead of k: this operand holds words of i32 that `attn.pack_mask` wrote, and its element
      at a pair is bit k mod 32 of a word, an i1;
    * (A3) the map of the query has q and d, but neither k nor e; the map of the key has k and d, but neither q nor e;
      the map of the value has k and e, but neither q nor d;
    * (A4) the map of out has every batch dimension, q and e, but neither k nor d; the map of the probabilities has
      every batch dimension, q and k, but neither d nor e;
    * (A5) maps of captured operands have neither d nor e; the map of the sink has none of k, d and e;
    * (A6) static sizes agree wherever two operands share a dimension, and a dimension read at 0 has size 1;
    * (A7) query, key, value, sink and outputs are floats; the accumulator type is a float at least as wide as each of
      them;
    * (A8) the region's arguments are the indices, the score and the captured elements; the region yields a score;
    * (A9) region ops are pure, elementwise scalar ops;
    * (A10) the mask names captured operands that exist; the symbols of its sets, such as lengths, are integers
      that do not vary with k;
    * (A11) the origin, if there is one, has one index for each of (batch..., q, k);
    * (A12) there are one or two outputs. With `state`, there are three outputs of the accumulator type, and neither a
      sink nor `empty_row`; the maps of max and sum have every batch dimension and q; if there is a plan, its schedule
      is decode, and acc is (batch..., q, e);
    * (A13) if the plan has a group of more than 1, query, key and value have one element type, the sizes of d and e are
      static, and the group divides the size of d;
    * (A14) a `fill` is a finite number; an op with a fill has a mask, but no `state`; only a fill is `added`, and
      only such a fill is `bounded`, by floats that do not vary with k.

    ```mlir
    %o = attn.attention ins(%q, %k, %v : tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>, tensor<2x8x?x64xf32>)
        outs(%e : tensor<2x8x?x64xf32>) mask(#attn.causal) {
        indexing_maps = [affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>,
                         affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>,
                         affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>,
                         affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>],
        scale = 1.250000e-01 : f32} -> tensor<2x8x?x64xf32>
    ```
  }];
  let arguments = (ins Attn_Shaped:$query, Attn_Shaped:$key, Attn_Shaped:$value,
                       Variadic<Attn_Shaped>:$captures, Optional<Attn_Shaped>:$sink,
                       Variadic<Attn_Shaped>:$outs, Variadic<Index>:$origin,
                       OptionalAttr<Attn_MaskInterface>:$mask, OptionalAttr<Attn_PlanAttr>:$plan,
                       AffineMapArrayAttr:$indexing_maps, F32Attr:$scale,
                       DefaultValuedAttr<Attn_EmptyRowAttr, "::attn::EmptyRow::Zero">:$empty_row,
                       OptionalAttr<TypeAttrOf<AnyFloat>>:$acc_type, UnitAttr:$state, OptionalAttr<F32Attr>:$fill,
                       UnitAttr:$added, UnitAttr:$bounded);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$score);
  let assemblyFormat = [{
    `ins` `(` $query `,` $key `,` $value `:` type($query) `,` type($key) `,` type($value) `)`
    (`captures` `(` $captures^ `:` type($captures) `)`)? (`sink` `(` $sink^ `:` type($sink) `)`)?
    (`state` $state^)? `outs` `(` $outs `:` type($outs) `)` (`at` `(` $origin^ `)`)?
    (`mask` `(` $mask^ `)`)? (`plan` `(` $plan^ `)`)? attr-dict
    (`score` $score^)? (`->` type($results)^)?
  }];
  let hasCanonicalizer = 1;
  let extraClassDeclaration = dpsDecl # [{
    /// The number of operands that are read: query, key, value, captured operands and the sink.
    unsigned getNumInputs() { return 3 + getCaptures().size() + (getSink() ? 1 : 0); }

    /// The map of operand i, in the order query, key, value, captures..., sink, outs...
    ::mlir::AffineMap getMap(unsigned i) {
      return ::llvm::cast<::mlir::AffineMapAttr>(getIndexingMaps()[i]).getValue();
    }
    ::mlir::AffineMap getQueryMap() { return getMap(0); }
    ::mlir::AffineMap getKeyMap() { return getMap(1); }
    ::mlir::AffineMap getValueMap() { return getMap(2); }
    ::mlir::AffineMap getCaptureMap(unsigned i) { return getMap(3 + i); }
    ::mlir::AffineMap getSinkMap() { return getMap(3 + getCaptures().size()); }
    ::mlir::AffineMap getOutMap(unsigned i = 0) { return getMap(getNumInputs() + i); }

    /// The number of batch dimensions, and the positions of the other dimensions in the iteration space.
    unsigned getNumBatch() { return getQueryMap().getNumDims() - 4; }
    unsigned getQDim() { return getNumBatch(); }
    unsigned getKDim() { return getNumBatch() + 1; }
    unsigned getDDim() { return getNumBatch() + 2; }
    unsigned getEDim() { return getNumBatch() + 3; }

    /// The size of loop `dim`; kDynamic if it is known only at the call.
    int64_t getStaticSize(unsigned dim);

    bool returnsProbabilities() { return getOuts().size() == 2; }
    /// Multiplies the scale by `factor`. Fails if f32 cannot hold the product as a normal number or, with a wider
    /// accumulator, cannot hold it exactly.
    ::llvm::LogicalResult scaleBy(double factor);
    /// The type of scores, sums and states: `acc_type` or, without this attribute, f32.
    ::mlir::FloatType getAccumulatorType() {
      return getAccType() ? *getAccType() : ::mlir::Float32Type::get(getContext());
    }
  }];
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, Terminator]> {
  let summary = "the score of a pair";
  let description = [{
    Ends the score region of `attn.attention`, `attn.online_step` or `attn.online_probabilities`.
  }];
  let arguments = (ins AnyFloat:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

//===----------------------------------------------------------------------===//
// Ops on tiles
//===----------------------------------------------------------------------===//

def Attn_KeyRangeOp : Attn_Op<"key_range", [Pure, AttrSizedOperandSegments]> {
  let summary = "the range of keys that a tile of queries needs, and the range that all its queries keep";
  let description = [{
    The tile has the queries `[q, q + rows)` and the keys `[0, keys)`, in absolute coordinates. The op computes bounds
    with these properties:

    * `[lo, hi)` contains every key that some query of the tile keeps;
    * every pair with a key in `[full_lo, full_hi)` is kept, and `full_hi - full_lo` is a multiple of `step`;
    * `lo <= full_lo <= full_hi <= hi`.

    Without a mask, every pair is kept. `batch` has one coordinate for each batch dimension. `symbols` has two operands
    for each symbol of the mask's sets: the least and the greatest value of the symbol over the rows of the tile. If the
    op finds no `step` adjacent keys that all queries keep, full_lo = full_hi = lo.

    Constraints: (R1) `symbols` has two operands, least and greatest, for each symbol of the mask; (R2) the step is
    positive.

    ```mlir
    %lo, %full_lo, %full_hi, %hi = attn.key_range batch(%b, %h) rows(%q0, %tq) keys(%n) step 128
        mask(#attn.causal)
    ```
  }];
  let arguments = (ins Variadic<Index>:$batch, Index:$q, Index:$rows, Index:$keys,
                       Variadic<Index>:$symbols, I64Attr:$step, OptionalAttr<Attn_MaskInterface>:$mask);
  let results = (outs Index:$lo, Index:$full_lo, Index:$full_hi, Index:$hi);
  let assemblyFormat = [{
    (`batch` `(` $batch^ `)`)? `rows` `(` $q `,` $rows `)` `keys` `(` $keys `)` `step` $step
    (`symbols` `(` $symbols^ `)`)? (`mask` `(` $mask^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

// The ops below are the steps of the online softmax on tiles. They share a layout: 2-D tiles with queries in the last
// dimension, scores `(k, q)` and accumulator `(e, q)`, so that the lanes of a vector hold neighbouring queries with the
// same key, and no sum crosses lanes. With `rows`, q comes before k, d or e in each operand that has q. Steps have
// `rows` in the schedule decode, which is for few queries, and in plans with `stages`; the lanes then hold
// neighbouring keys, or neighbouring elements of e.
class Attn_StepOp<string mnemonic, list<Trait> traits = []> : Attn_DpsOp<mnemonic, traits>;

def Attn_OnlineInitOp : Attn_StepOp<"online_init"> {
  let summary = "the state of the online softmax before the first key";
  let description = [{
    Initializes the state of each query: max[q] = -inf, sum[q] = 0, acc[e,q] = 0. With `rows`, acc is (q, e).

    Constraint (I1): max (q), sum (q) and acc (e, q) have one float type and agreeing sizes.

    ```mlir
    %m, %l, %a = attn.online_init outs(%m0, %l0, %a0 : tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>)
        -> tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>
    ```
  }];
  let arguments = (ins Attn_Shaped:$max, Attn_Shaped:$sum, Attn_Shaped:$acc, UnitAttr:$rows);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    (`rows` $rows^)? `outs` `(` $max `,` $sum `,` $acc `:` type($max) `,` type($sum) `,` type($acc) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return {getOperation(), 0, 3}; }
  }];
}

// The base of the ops that compute the probabilities of a tile: attn.online_step and attn.online_probabilities.
class Attn_ScoreOp<string mnemonic, list<Trait> traits = []> : Attn_StepOp<mnemonic, traits # [AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<TilingInterface, [
      "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>]> {
  code scoreDecl = [{
    /// The `unit` of attn.online_step: `max` holds the maximum score divided by this factor.
    float getUnit();
    /// The map of captured tile i, over (k, q).
    ::mlir::AffineMap getCaptureMap(unsigned i) {
      return ::llvm::cast<::mlir::AffineMapAttr>(getCaptureMaps()[i]).getValue();
    }
    unsigned getNumBatch() { return getOrigin().size() - 2; }
  }];
  let hasCanonicalizer = 1;
}

def Attn_OnlineStepOp : Attn_ScoreOp<"online_step", [DeclareOpInterfaceMethods<PartialReductionOpInterface, [
    "generateInitialTensorForPartialReduction", "tileToPartialReduction", "mergeReductions",
    "getPartialResultTilePosition"]>]> {
  let summary = "the online softmax over one more tile of keys, as one op";
  let description = [{
    With query `(d, q)`, key `(k, d)`, value `(k, e)` and the state max `(q)`, sum `(q)`, acc `(e, q)`, the op computes:

        s[k,q] = score(..., scale * sum_d K[k,d] * Q[d,q])      kept pairs only
        m = max(unit * max[q], max_k s[k,q])      p[k,q] = exp(s[k,q] - m)      a = exp(unit * max[q] - m)
        max[q] = m / unit     sum[q] = a * sum[q] + sum_k p[k,q]     acc[e,q] = a * acc[e,q] + sum_k V[k,e] * p[k,q]

    Where m is -inf, p is 0 and a is 1. `unit` is `scale` if the op has no region and the scale lies in [2^-126, 2^126];
    otherwise `unit` is 1. If `unit` is `scale`, the pair with the greatest score has the greatest product, and max
    holds this product without the scale.

    `scores (k, q)` is scratch: its contents are not read, and are not specified afterwards. Captured tiles are read
    through `capture_maps` over (k, q). A pair that is not kept has no influence, whatever its key, value and captured
    elements contain.

    With the operand `probabilities`, which is scratch too, p is rounded to the element type of this operand before it
    is multiplied by the values; `sum` adds the values of p before this rounding. For instructions that add g products
    at once, operands are in groups of g along the dimension that a product sums over, as `attn.pack group(g)` writes
    them: query `(d / g, q, g)`, value `(k / g, e, g)` or, with `transposed`, `(e, k / g, g)`, and probabilities
    `(k / g, q, g)`. Elements beyond the last k or d are 0. The key is never in groups.

    With `rows`, the operands are query `(q, d)`, scores `(q, k)` and acc `(q, e)`; there are no groups.

    The operands of `prefetch` are tensors `(n, m)` that the next step probably reads. Their rows are loaded into the
    caches while this step computes. This hint does not change the result.

    The loops of TilingInterface are (k, q), the dimensions of `capture_maps`. A loop over k carries the state from tile
    to tile. PartialReductionOpInterface splits the keys into parts with a state each, and merges these states with
    `attn.online_merge`; the parts may be computed in parallel. With a packed mask, keys are split at whole words only.
    The tiles of a step have no `prefetch`, because the hint is for the step that follows all tiles. Steps with
    `probabilities` are not tiled.

    Constraints: (S1) scores, max, sum and acc have one float type and agreeing sizes; (S2) the sizes of query, key and
    value agree with these sizes; (S3) each captured tile has one capture map over (k, q), with as many results as the
    tile has dimensions; the words of a packed mask, whose first bit is the first key, have the map (k floordiv 32, q);
    (S4) the region satisfies A8 and A9 of attn.attention; (S5) the origin has one index for each of (batch..., q, k);
    (S6) the mask satisfies A10 of attn.attention; (S7) operands of `prefetch` have two dimensions; (S8) probabilities
    have the element type of the value; query, value and probabilities are all in groups of one size, a power of two, or
    none of the three is in groups; only a value in groups is transposed; a step with `rows` has no groups.

    ```mlir
    %r:4 = attn.online_step ins(%q, %k, %v : tensor<64x48xf32>, tensor<128x64xf32>, tensor<128x64xf32>)
        outs(%s, %m, %l, %a : tensor<128x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>)
        at(%b, %h, %q0, %k0) mask(#attn.causal) {capture_maps = [], scale = 1.250000e-01 : f32}
        -> tensor<128x48xf32>, tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>
    ```
  }];
  let arguments = (ins Attn_Shaped:$query, Attn_Shaped:$key, Attn_Shaped:$value,
                       Variadic<Attn_Shaped>:$captures, Attn_Shaped:$scores, Attn_Shaped:$max, Attn_Shaped:$sum,
                       Attn_Shaped:$acc, Optional<Attn_Shaped>:$probabilities, Variadic<Index>:$origin,
                       Variadic<Attn_Shaped>:$prefetch, OptionalAttr<Attn_MaskInterface>:$mask,
                       AffineMapArrayAttr:$capture_maps, F32Attr:$scale, UnitAttr:$rows, UnitAttr:$transposed);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$score);
  let assemblyFormat = [{
    (`rows` $rows^)? (`transposed` $transposed^)?
    `ins` `(` $query `,` $key `,` $value `:` type($query) `,` type($key) `,` type($value) `)`
    (`captures` `(` $captures^ `:` type($captures) `)`)?
    `outs` `(` $scores `,` $max `,` $sum `,` $acc `:` type($scores) `,` type($max) `,` type($sum) `,` type($acc) `)`
    (`probabilities` `(` $probabilities^ `:` type($probabilities) `)`)?
    `at` `(` $origin `)` (`prefetch` `(` $prefetch^ `:` type($prefetch) `)`)? (`mask` `(` $mask^ `)`)? attr-dict
    (`score` $score^)? (`->` type($results)^)?
  }];
  let extraClassDeclaration = scoreDecl # [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return {getOperation(), getODSOperandIndexAndLength(4).first, getProbabilities() ? 5u : 4u};
    }
    /// The number of elements in each group of the operands; 1 if they are not in groups.
    int64_t getGroup();
  }];
}

def Attn_OnlineProbabilitiesOp : Attn_ScoreOp<"online_probabilities"> {
  let summary = "the probabilities of a tile, from the final state";
  let description = [{
    An attention that returns its probabilities computes them in a second pass over the keys, with this op. The query,
    the key, s[k,q] and unit are as in `attn.online_step`:

        probabilities[k,q] = exp(s[k,q] - unit * max[q]) / sum[q]      0 where a pair is not kept, `empty_row` where sum[q] is 0

    With `rows`, the query is `(q, d)` and probabilities are `(q, k)`.

    The loops of TilingInterface are (k, q), and both are parallel.

    Constraints: (W1) max (q), sum (q) and probabilities (k, q) have one float type and agreeing sizes; (W2) the sizes
    of query and key agree with these sizes; (W3) to (W6) are (S3) to (S6) of `attn.online_step`.

    ```mlir
    %p = attn.online_probabilities ins(%q, %k, %m, %l : tensor<64x48xf32>, tensor<128x64xf32>, tensor<48xf32>, tensor<48xf32>)
        outs(%e : tensor<128x48xf32>) at(%b, %h, %q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
        -> tensor<128x48xf32>
    ```
  }];
  let arguments = (ins Attn_Shaped:$query, Attn_Shaped:$key, Attn_Shaped:$max, Attn_Shaped:$sum,
                       Variadic<Attn_Shaped>:$captures, Attn_Shaped:$probabilities, Variadic<Index>:$origin,
                       OptionalAttr<Attn_MaskInterface>:$mask, AffineMapArrayAttr:$capture_maps, F32Attr:$scale,
                       DefaultValuedAttr<Attn_EmptyRowAttr, "::attn::EmptyRow::Zero">:$empty_row, UnitAttr:$rows);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region AnyRegion:$score);
  let assemblyFormat = [{
    (`rows` $rows^)? `ins` `(` $query `,` $key `,` $max `,` $sum `:` type($query) `,` type($key) `,` type($max) `,` type($sum) `)`
    (`captures` `(` $captures^ `:` type($captures) `)`)?
    `outs` `(` $probabilities `:` type($probabilities) `)` `at` `(` $origin `)` (`mask` `(` $mask^ `)`)? attr-dict
    (`score` $score^)? (`->` type($results)^)?
  }];
  let extraClassDeclaration = scoreDecl # [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getProbabilitiesMutable(); }
  }];
}

def Attn_OnlineMergeOp : Attn_StepOp<"online_merge"> {
  let summary = "merge the states of disjoint sets of keys into one state";
  let description = [{
    Adds the states of several parts of the keys to the state in max, sum and acc. Part n has the state part_max[n],
    part_sum[n] and part_acc[n], and no two parts have a key in common:

        m = max(max[q], max_n part_max[n,q])     a = exp(scale * (max[q] - m))     b[n] = exp(scale * (part_max[n,q] - m))
        max[q] = m
        sum[q] = a * sum[q] + b[0] * part_sum[0,q] + b[1] * part_sum[1,q] + ...
        acc[e,q] = a * acc[e,q] + b[0] * part_acc[0,e,q] + b[1] * part_acc[1,e,q] + ...

    Where m is -inf, a and b are 1. The sums are added from left to right, so the result does not depend on which thread
    computed a part, or when. A part without a kept pair has a maximum of -inf and sums of 0, and changes nothing. A sum
    or an accumulator that is NaN stays NaN, whatever the maximum is.

    `scale` is the `unit` of the `attn.online_step` that computed the parts. With `rows`, part_acc is (n, q, e) and acc
    is (q, e).

    Parts are the first dimension, so that in a parallel loop over parts, the `attn.online_step` of each task writes
    contiguous slices. In the schedule decode, the initial state in max, sum and acc is the state after the sink or,
    without a sink, the state from `attn.online_init`.

    Constraints: (G1) the states have one float type and agreeing sizes: part_max (n, q), part_sum (n, q),
    part_acc (n, e, q), max (q), sum (q) and acc (e, q); (G2) the scale lies in [2^-126, 2^126].

    ```mlir
    %r:3 = attn.online_merge ins(%ms, %ls, %as : tensor<4x48xf32>, tensor<4x48xf32>, tensor<4x64x48xf32>)
        outs(%m, %l, %a : tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>) {scale = 1.250000e-01 : f32}
        -> tensor<48xf32>, tensor<48xf32>, tensor<64x48xf32>
    ```
  }];
  let arguments = (ins Attn_Shaped:$part_max, Attn_Shaped:$part_sum, Attn_Shaped:$part_acc,
                       Attn_Shaped:$max, Attn_Shaped:$sum, Attn_Shaped:$acc, F32Attr:$scale, UnitAttr:$rows);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    (`rows` $rows^)? `ins` `(` $part_max `,` $part_sum `,` $part_acc `:` type($part_max) `,` type($part_sum) `,` type($part_acc) `)`
    `outs` `(` $max `,` $sum `,` $acc `:` type($max) `,` type($sum) `,` type($acc) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return {getOperation(), 3, 3}; }
  }];
}

def Attn_OnlineFinishOp : Attn_StepOp<"online_finish"> {
  let summary = "the output of a tile of queries";
  let description = [{
    Computes out[q,e] = acc[e,q] / sum[q], or `empty_row` where sum[q] is 0. With `rows`, acc is (q, e).

    Constraint (F1): sum (q) and acc (e, q) have one float type; out (q, e) has agreeing sizes and a float type.

    ```mlir
    %o = attn.online_finish ins(%l, %a : tensor<48xf32>, tensor<64x48xf32>) outs(%e : tensor<48x64xf32>)
        -> tensor<48x64xf32>
    ```
  }];
  let arguments = (ins Attn_Shaped:$sum, Attn_Shaped:$acc, Attn_Shaped:$out,
                       DefaultValuedAttr<Attn_EmptyRowAttr, "::attn::EmptyRow::Zero">:$empty_row, UnitAttr:$rows);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    (`rows` $rows^)? `ins` `(` $sum `,` $acc `:` type($sum) `,` type($acc) `)` `outs` `(` $out `:` type($out) `)` attr-dict
    (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutMutable(); }
  }];
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

def Attn_PackOp : Attn_DpsOp<"pack"> {
  let summary = "copy a tensor to panels that a register block reads row by row";
  let description = [{
    Copies `source (batch..., n, k)` to `out (batch..., panel, k, w)`, where w is the static width of a panel:

        out[..., p, i, j] = source[..., p * w + j, i]        0 where p * w + j >= n

    With `from_rows`, the source is `(batch..., k, n)`, and the op does not transpose it:

        out[..., p, i, j] = source[..., i, p * w + j]        0 where p * w + j >= n

    With `scale`, every element is multiplied by this factor. If the output has a narrower float type, elements are then
    rounded to this type. The op packs weights, and the tiles of queries, values and captured operands. If the source
    depends on weights alone, the op runs when the weights are set, not in each call.

    With `group(g)`, for instructions that add g products at once, g elements along k stay together. The output is
    `(batch..., panel, k / g rounded up, w, g)`, and elements beyond k are zero:

        out[..., p, i, j, l] = source[..., p * w + j, g * i + l]

    Constraints: (P1) out has one dimension more than the source, or two more with a group; both have the same element
    type, or out has a narrower float type; batch and k sizes agree; (P2) the width is static and positive; (P3) the
    number of panels is n / w, rounded up; (P4) with `scale`, elements are floats; (P5) the group is a power of two and,
    if it is more than 1, the size of the innermost dimension of out.

    ```mlir
    %p = attn.pack ins(%w : tensor<12x64x768xf32>) outs(%e : tensor<12x1x768x64xf32>) -> tensor<12x1x768x64xf32>
    %q = attn.pack group(2) ins(%v : tensor<64x768xbf16>) outs(%f : tensor<1x384x64x2xbf16>) -> tensor<1x384x64x2xbf16>
    ```
  }];
  let arguments = (ins Attn_Shaped:$source, Variadic<Attn_Shaped>:$outs, UnitAttr:$from_rows,
                       DefaultValuedAttr<I64Attr, "1">:$group, OptionalAttr<F32Attr>:$scale);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    (`from_rows` $from_rows^)? (`group` `(` $group^ `)`)? (`scale` `(` $scale^ `)`)? `ins` `(` $source `:` type($source) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict (`->` type($results)^)?
  }];
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Dense masks
//===----------------------------------------------------------------------===//

def Attn_PackMaskOp : Attn_DpsOp<"pack_mask", [DeclareOpInterfaceMethods<TilingInterface, [
    "getLoopIteratorTypes", "getIterationDomain", "getTiledImplementation", "getResultTilePosition"]>]> {
  let summary = "one bit for each pair of a query and a key";
  let description = [{
    Packs `mask (batch..., q, k)` into `words (batch..., ceil(k / 32), q)`: bit i of words[..., w, q] is 1 if element
    [..., q, 32 * w + i] of the mask exists and is not zero. NaN is not zero.

    The bits of a word belong to 32 keys and one query. So neighbouring words, which are loaded as one vector, belong to
    the same keys and to neighbouring queries.

    Constraints: (M1) the mask holds integers or floats and has at least the dimensions q and k; (M2) `words` holds i32,
    has the rank of the mask, and has sizes that agree with the mask's.

    ```mlir
    %w = attn.pack_mask ins(%mask : tensor<2x1x512x500xi1>) outs(%e : tensor<2x1x16x512xi32>) -> tensor<2x1x16x512xi32>
    ```
  }];
  let arguments = (ins Attn_Shaped:$source, Attn_Shaped:$words);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    `ins` `(` $source `:` type($source) `)` `outs` `(` $words `:` type($words) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getWordsMutable(); }
  }];
}

def Attn_TestMaskOp : Attn_Op<"test_mask", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "which words of a tile of a packed mask keep any pair, and whether the tile keeps all pairs";
  let description = [{
    `words (w, q)` hold the bits of 32 * w keys and of q queries, as `attn.pack_mask` writes them. A bit of 1 keeps its
    pair or, with `keeps zero`, hides it. Rows of words outside `[begin, end)` keep no pair; if no pair is kept, begin
    is w and end is 0. `all` is true if every bit keeps its pair. Bits beyond the last key are tested like all other
    bits.

    ```mlir
    %begin, %end, %all = attn.test_mask %words keeps nonzero : tensor<2x48xi32>
    ```
  }];
  let arguments = (ins Attn_Shaped:$words, Attn_PolarityAttr:$keeps);
  let results = (outs Index:$begin, Index:$end, I1:$all);
  let assemblyFormat = [{ $words `keeps` `` $keeps attr-dict `:` type($words) }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Parallel tasks
//===----------------------------------------------------------------------===//

def Attn_ParallelForOp : Attn_Op<"parallel_for", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a task function for every index below a count";
  let description = [{
    Calls `task(index, worker, args...)` for each index in [0, count), in any order and on any worker. The calls go
    through the function `parallel_for`, if the caller of the compiled function passes one to the runtime; otherwise
    they run on the calling thread. `worker` is the number of the worker, and selects the slice of the workspace that
    belongs to it.

    Constraint (L1): the callee is a function without results whose first two arguments are indices and whose other
    arguments have the types of `args`. One more argument, a memref<?xi8> with `attn.scratch`, may follow; it is the
    workspace of the worker, and is not one of `args`.

    ```mlir
    attn.parallel_for @layer.attend(%x, %out) count(%n) : memref<512x768xf32>, memref<512x768xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$task, Index:$count, Variadic<AnyType>:$args);
  let assemblyFormat = [{ $task `(` $args `)` `count` `(` $count `)` attr-dict (`:` type($args)^)? }];
}

def Attn_CountTilesOp : Attn_Op<"count_tiles", [MemoryEffects<[MemWrite]>]> {
  let summary = "count the tiles that a loop over keys ran and skipped, for the statistics of the call";
  let description = [{
    Adds `run`, the number of tiles of queries by keys whose scores are computed, and `skipped`, the number of tiles
    that the mask leaves out, to the counts of the current worker.

    ```mlir
    attn.count_tiles run(%run) skipped(%skipped)
    ```
  }];
  let arguments = (ins Index:$run, Index:$skipped);
  let assemblyFormat = [{ `run` `(` $run `)` `skipped` `(` $skipped `)` attr-dict }];
}

def Attn_AfterScoresOp : Attn_Op<"after_scores", [NoTerminator, SingleBlock, RecursiveMemoryEffects]> {
  let summary = "code that runs as soon as the next op, an attn.online_step, has computed its scores";
  let description = [{
    The next op must be a step that computes scores: not one with the attribute `attn.overlap = #attn.overlap<end>`. A
    step reads its keys only for its scores, so `attn-gpu-produce-tiles` puts the code that releases the tile of keys
    here. `attn-gpu-online-to-fragments` moves the code into the code of the step, before the softmax.

    ```mlir
    attn.after_scores { nvvm.mbarrier.arrive %empty : !llvm.ptr<3> -> i64 }
    attn.online_step ...
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{ $body attr-dict }];
  let hasVerifier = 1;
}

#endif // ATTN_DIALECT_OPS_TD
