// RUN: attn-opt %s -canonicalize | FileCheck %s

// Queries 96 to 143 need the keys [0, 144). All of them keep the first 97 keys, of which 64 fill a whole step.
// CHECK-LABEL: @causal
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[C144:.*]] = arith.constant 144 : index
// CHECK: return %[[C0]], %[[C0]], %[[C64]], %[[C144]]
func.func @causal(%b: index) -> (index, index, index, index) {
  %q = arith.constant 96 : index
  %rows = arith.constant 48 : index
  %n = arith.constant 512 : index
  %r:4 = attn.key_range batch(%b) rows(%q, %rows) keys(%n) step 64 mask(#attn.causal)
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}

// CHECK-LABEL: @no_mask
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C96:.*]] = arith.constant 96 : index
// CHECK-DAG: %[[C100:.*]] = arith.constant 100 : index
// CHECK: return %[[C0]], %[[C0]], %[[C96]], %[[C100]]
func.func @no_mask(%q: index, %rows: index) -> (index, index, index, index) {
  %n = arith.constant 100 : index
  %r:4 = attn.key_range rows(%q, %rows) keys(%n) step 32
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}

// The rows have lengths 5 to 21. These give the range, although the position of the tile is unknown.
// CHECK-LABEL: @lengths
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C21:.*]] = arith.constant 21 : index
// CHECK: return %[[C0]], %[[C0]], %[[C4]], %[[C21]]
func.func @lengths(%q: index, %rows: index) -> (index, index, index, index) {
  %n = arith.constant 100 : index
  %least = arith.constant 5 : index
  %greatest = arith.constant 21 : index
  %r:4 = attn.key_range rows(%q, %rows) keys(%n) step 4 symbols(%least, %greatest) mask(#attn.lengths<0>)
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}

// The window of every query begins after the last key.
// CHECK-LABEL: @empty
// CHECK: %[[C10:.*]] = arith.constant 10 : index
// CHECK: return %[[C10]], %[[C10]], %[[C10]], %[[C10]]
func.func @empty() -> (index, index, index, index) {
  %q = arith.constant 96 : index
  %rows = arith.constant 8 : index
  %n = arith.constant 10 : index
  %r:4 = attn.key_range rows(%q, %rows) keys(%n) step 4 mask(#attn.window<left = 3, right = 0>)
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}

// CHECK-LABEL: @unknown_query
// CHECK: attn.key_range
func.func @unknown_query(%q: index, %rows: index) -> (index, index, index, index) {
  %n = arith.constant 100 : index
  %r:4 = attn.key_range rows(%q, %rows) keys(%n) step 32 mask(#attn.causal)
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}
