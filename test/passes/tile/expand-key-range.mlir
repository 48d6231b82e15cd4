// RUN: attn-opt %s -attn-expand-key-range -split-input-file | FileCheck %s

// CHECK-DAG: #[[$END:.*]] = affine_map<()[s0, s1, s2] -> (s0 + s1, s2)>
// CHECK-DAG: #[[$FULL:.*]] = affine_map<()[s0, s1] -> (s0 + 1, s1)>
// CHECK-DAG: #[[$STEPS:.*]] = affine_map<()[s0] -> ((s0 floordiv 128) * 128)>
// CHECK-LABEL: @causal(
// CHECK-SAME: %[[Q:.*]]: index, %[[ROWS:.*]]: index, %[[N:.*]]: index)
// CHECK-NEXT: %[[HI:.*]] = affine.min #[[$END]]()[%[[Q]], %[[ROWS]], %[[N]]]
// CHECK-NEXT: %[[FULL:.*]] = affine.min #[[$FULL]]()[%[[Q]], %[[HI]]]
// CHECK-NEXT: %[[FULL_HI:.*]] = affine.apply #[[$STEPS]]()[%[[FULL]]]
// CHECK-NEXT: %[[LO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[FULL_LO:.*]] = arith.constant 0 : index
// CHECK-NEXT: return %[[LO]], %[[FULL_LO]], %[[FULL_HI]], %[[HI]]
func.func @causal(%q: index, %rows: index, %n: index) -> (index, index, index, index) {
  %r:4 = attn.key_range rows(%q, %rows) keys(%n) step 128 mask(#attn.causal)
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}

// -----

// Without a mask, the range of full steps has all keys, except the last ones if they do not fill a step.
// CHECK: #[[$STEPS:.*]] = affine_map<()[s0] -> ((s0 floordiv 128) * 128)>
// CHECK-LABEL: @no_mask(
// CHECK-SAME: %{{.*}}, %[[N:.*]]: index)
// CHECK: %[[FULL_HI:.*]] = affine.apply #[[$STEPS]]()[%[[N]]]
// CHECK: return %{{.*}}, %{{.*}}, %[[FULL_HI]], %[[N]]
func.func @no_mask(%q: index, %rows: index, %n: index) -> (index, index, index, index) {
  %r:4 = attn.key_range rows(%q, %rows) keys(%n) step 128
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}

// -----

// Both ends of the range depend on the queries. A window too narrow for a whole step has one partial range.
// CHECK-DAG: #[[$END:.*]] = affine_map<()[s0, s1, s2] -> (s0 + s1, s2)>
// CHECK-DAG: #[[$BEGIN:.*]] = affine_map<()[s0] -> (s0 - 255, 0)>
// CHECK-DAG: #[[$FULL_BEGIN:.*]] = affine_map<()[s0, s1, s2] -> (s0 + s1 - 256, s2)>
// CHECK-LABEL: @window(
// CHECK-SAME: %[[Q:.*]]: index, %[[ROWS:.*]]: index, %[[N:.*]]: index)
// CHECK: %[[HI:.*]] = affine.min #[[$END]]()[%[[Q]], %[[ROWS]], %[[N]]]
// CHECK: %[[BEGIN:.*]] = affine.max #[[$BEGIN]]()[%[[Q]]]
// CHECK: %[[LO:.*]] = affine.min #{{.*}}()[%[[BEGIN]], %[[HI]]]
// CHECK: %[[FULL_BEGIN:.*]] = affine.max #[[$FULL_BEGIN]]()[%[[Q]], %[[ROWS]], %[[LO]]]
// CHECK: %[[LENGTH:.*]] = affine.max
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[LENGTH]]
// CHECK: %[[FULL_LO:.*]] = arith.select %[[ANY]], %[[FULL_BEGIN]], %[[LO]]
// CHECK: %[[FULL_HI:.*]] = affine.apply #{{.*}}()[%[[FULL_LO]], %[[LENGTH]]]
// CHECK: return %[[LO]], %[[FULL_LO]], %[[FULL_HI]], %[[HI]]
func.func @window(%q: index, %rows: index, %n: index) -> (index, index, index, index) {
  %r:4 = attn.key_range rows(%q, %rows) keys(%n) step 128 mask(#attn.window<left = 255, right = 0>)
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}

// -----

// The greatest length of the rows ends the range; the least length ends the whole steps.
// CHECK-LABEL: @lengths(
// CHECK-SAME: %[[N:[^ ]*]]: index, %[[LEAST:[^ ]*]]: index, %[[GREATEST:[^ ]*]]: index)
// CHECK: affine.min #{{.*}}()[%[[GREATEST]], %[[N]]]
// CHECK: %[[HI:.*]] = affine.max
// CHECK: affine.min #{{.*}}()[%[[LEAST]], %[[HI]]]
func.func @lengths(%b: index, %q: index, %rows: index, %n: index, %least: index, %greatest: index)
    -> (index, index, index, index) {
  %r:4 = attn.key_range batch(%b) rows(%q, %rows) keys(%n) step 128 symbols(%least, %greatest)
      mask(#attn.lengths<0>)
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}

// -----

// A dense mask may hide any pair, so no key is known to be kept by every row.
// CHECK-LABEL: @dense(
// CHECK-SAME: %{{.*}}, %[[N:.*]]: index)
// CHECK-COUNT-3: arith.constant 0 : index
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}}, %[[N]]
func.func @dense(%q: index, %rows: index, %n: index) -> (index, index, index, index) {
  %r:4 = attn.key_range rows(%q, %rows) keys(%n) step 128 mask(#attn.dense<0>)
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}

// -----

// CHECK-LABEL: @constants
// CHECK-NOT: affine
// CHECK: return
func.func @constants() -> (index, index, index, index) {
  %q = arith.constant 96 : index
  %rows = arith.constant 48 : index
  %n = arith.constant 512 : index
  %r:4 = attn.key_range rows(%q, %rows) keys(%n) step 64 mask(#attn.causal)
  return %r#0, %r#1, %r#2, %r#3 : index, index, index, index
}
