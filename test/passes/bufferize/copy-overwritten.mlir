// RUN: attn-opt %s -attn-copy-overwritten -split-input-file | FileCheck %s

// Rows of an in-out argument are written in place; ops that read the argument before the write need no copy.
// CHECK-LABEL: @rows
// CHECK-SAME: %[[K:[a-z0-9]*]]: tensor<1x8xf32>, %[[CACHE:[a-z0-9]*]]: tensor<64x8xf32>
// CHECK-NOT: linalg.copy
// CHECK: %[[BEFORE:.*]] = linalg.exp ins(%[[CACHE]]
// CHECK-NEXT: %[[NEW:.*]] = tensor.insert_slice %[[K]] into %[[CACHE]]
// CHECK-NEXT: %[[AFTER:.*]] = linalg.exp ins(%[[NEW]]
// CHECK-NEXT: return %[[BEFORE]], %[[NEW]], %[[AFTER]]
func.func @rows(%k: tensor<1x8xf32>, %cache: tensor<64x8xf32> {attn.in_out = 1}, %p: index, %e: tensor<64x8xf32>, %f: tensor<64x8xf32>)
    -> (tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>) {
  %before = linalg.exp ins(%cache : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) -> tensor<64x8xf32>
  %new = tensor.insert_slice %k into %cache[%p, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
  %after = linalg.exp ins(%new : tensor<64x8xf32>) outs(%f : tensor<64x8xf32>) -> tensor<64x8xf32>
  return %before, %new, %after : tensor<64x8xf32>, tensor<64x8xf32>, tensor<64x8xf32>
}

// -----

// An argument that is read or returned after the write is copied before the write; if only a part is read, only this
// part is copied.
// CHECK-LABEL: @read_after
// CHECK-SAME: %[[K:[a-z0-9]*]]: tensor<1x8xf32>, %[[CACHE:[a-z0-9]*]]: tensor<?x8xf32>
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[CACHE]]
// CHECK: %[[OLD_PART:.*]] = linalg.copy ins(%[[PART]]
// CHECK: %[[OLD:.*]] = linalg.copy ins(%[[CACHE]]
// CHECK: %[[NEW:.*]] = tensor.insert_slice %[[K]] into %[[CACHE]]
// CHECK: linalg.exp ins(%[[OLD_PART]]
// CHECK: return %{{.*}}, %[[NEW]], %[[OLD]]
func.func @read_after(%k: tensor<1x8xf32>, %cache: tensor<?x8xf32> {attn.in_out = 1}, %p: index, %e: tensor<1x8xf32>)
    -> (tensor<1x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %part = tensor.extract_slice %cache[0, 0] [1, 8] [1, 1] : tensor<?x8xf32> to tensor<1x8xf32>
  %new = tensor.insert_slice %k into %cache[%p, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<?x8xf32>
  %after = linalg.exp ins(%part : tensor<1x8xf32>) outs(%e : tensor<1x8xf32>) -> tensor<1x8xf32>
  return %after, %new, %cache : tensor<1x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// The op that writes to the argument reads another part of the argument, which is copied first.
// CHECK-LABEL: @shifted
// CHECK-SAME: %[[CACHE:[a-z0-9]*]]: tensor<64x8xf32>
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[CACHE]]
// CHECK: %[[OLD:.*]] = linalg.copy ins(%[[PART]]
// CHECK: tensor.insert_slice %[[OLD]] into %[[CACHE]]
func.func @shifted(%cache: tensor<64x8xf32> {attn.in_out = 0}) -> tensor<64x8xf32> {
  %part = tensor.extract_slice %cache[1, 0] [63, 8] [1, 1] : tensor<64x8xf32> to tensor<63x8xf32>
  %new = tensor.insert_slice %part into %cache[0, 0] [63, 8] [1, 1] : tensor<63x8xf32> into tensor<64x8xf32>
  return %new : tensor<64x8xf32>
}

// -----

// Two ops write through a view, the first of them in a loop. The result of the first op is read before and after
// the second write: only the later read needs a copy.
// CHECK-LABEL: @loop_of_view
// CHECK-SAME: %[[CACHE:[a-z0-9]*]]: tensor<4x16x8xf32>
// CHECK-NOT: linalg.copy
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[CACHE]]
// CHECK: %[[LOOP:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[FLAT]])
// CHECK: linalg.exp ins(%[[LOOP]]
// CHECK: %[[COPY:.*]] = linalg.copy ins(%[[LOOP]]
// CHECK: %[[SECOND:.*]] = tensor.insert_slice %{{.*}} into %[[LOOP]]
// CHECK: linalg.log ins(%[[COPY]]
// CHECK: tensor.expand_shape %[[SECOND]]
func.func @loop_of_view(%cache: tensor<4x16x8xf32> {attn.in_out = 2}, %k: tensor<1x8xf32>, %n: index, %e: tensor<64x8xf32>, %f: tensor<64x8xf32>)
    -> (tensor<64x8xf32>, tensor<64x8xf32>, tensor<4x16x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %flat = tensor.collapse_shape %cache [[0, 1], [2]] : tensor<4x16x8xf32> into tensor<64x8xf32>
  %loop = scf.for %i = %c0 to %n step %c1 iter_args(%sofar = %flat) -> tensor<64x8xf32> {
    %next = tensor.insert_slice %k into %sofar[%i, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
    scf.yield %next : tensor<64x8xf32>
  }
  %before = linalg.exp ins(%loop : tensor<64x8xf32>) outs(%e : tensor<64x8xf32>) -> tensor<64x8xf32>
  %second = tensor.insert_slice %k into %loop[%n, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<64x8xf32>
  %after = linalg.log ins(%loop : tensor<64x8xf32>) outs(%f : tensor<64x8xf32>) -> tensor<64x8xf32>
  %new = tensor.expand_shape %second [[0, 1], [2]] output_shape [4, 16, 8] : tensor<64x8xf32> into tensor<4x16x8xf32>
  return %before, %after, %new : tensor<64x8xf32>, tensor<64x8xf32>, tensor<4x16x8xf32>
}

// -----

// A result that the graph computes in an empty tensor is computed in its in-out argument; the op reads a copy of the
// argument.
// CHECK-LABEL: @computed
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<8xf32> {attn.in_out = 0 : i64}, %[[B:[a-z0-9]*]]: tensor<8xf32> {attn.in_out = 1 : i64}
// CHECK: %[[OLD:.*]] = linalg.copy ins(%[[A]]
// CHECK: %[[X:.*]] = linalg.exp ins(%[[OLD]] : {{.*}}) outs(%[[A]]
// CHECK: %[[Y:.*]] = linalg.exp ins(%[[X]] : {{.*}}) outs(%[[B]]
// CHECK: return %[[X]], %[[Y]]
func.func @computed(%a: tensor<8xf32> {attn.in_out = 0}, %b: tensor<8xf32> {attn.in_out = 1}) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %f = tensor.empty() : tensor<8xf32>
  %x = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.exp ins(%x : tensor<8xf32>) outs(%f : tensor<8xf32>) -> tensor<8xf32>
  return %x, %y : tensor<8xf32>, tensor<8xf32>
}

// -----

// Results that the tasks of a loop compute in an empty tensor are computed in the in-out argument too.
// CHECK-LABEL: @tasks
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<200x8xf32>
// CHECK: %[[OLD:.*]] = linalg.copy ins(%[[A]]
// CHECK: scf.forall {{.*}} shared_outs(%[[OUT:.*]] = %[[A]])
// CHECK: tensor.extract_slice %[[OLD]]
func.func @tasks(%a: tensor<200x8xf32> {attn.in_out = 0}) -> tensor<200x8xf32> {
  %e = tensor.empty() : tensor<200x8xf32>
  %new = scf.forall (%i) = (0) to (200) step (100) shared_outs(%out = %e) -> tensor<200x8xf32> {
    %part = tensor.extract_slice %a[%i, 0] [100, 8] [1, 1] : tensor<200x8xf32> to tensor<100x8xf32>
    %place = tensor.extract_slice %out[%i, 0] [100, 8] [1, 1] : tensor<200x8xf32> to tensor<100x8xf32>
    %x = linalg.exp ins(%part : tensor<100x8xf32>) outs(%place : tensor<100x8xf32>) -> tensor<100x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %x into %out[%i, 0] [100, 8] [1, 1] : tensor<100x8xf32> into tensor<200x8xf32>
    }
  }
  return %new : tensor<200x8xf32>
}

// -----

// If another result is computed in the same memory, the result is copied to its in-out argument before the return.
// CHECK-LABEL: @computed_twice
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<8xf32> {attn.in_out = 0 : i64}
// CHECK: %[[X:.*]] = linalg.exp
// CHECK: linalg.log ins(%[[X]]
// CHECK: %[[COPY:.*]] = linalg.copy ins(%[[X]] : {{.*}}) outs(%[[A]]
// CHECK: return %[[COPY]]
func.func @computed_twice(%a: tensor<8xf32> {attn.in_out = 0}) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %x = linalg.exp ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %y = linalg.log ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  return %x, %y : tensor<8xf32>, tensor<8xf32>
}

// -----

// A graph that swaps two arguments copies one of them first.
// CHECK-LABEL: @swapped
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<8xf32> {attn.in_out = 0 : i64}, %[[B:[a-z0-9]*]]: tensor<8xf32> {attn.in_out = 1 : i64}
// CHECK: %[[OLD:.*]] = linalg.copy ins(%[[B]]
// CHECK: %[[Y:.*]] = linalg.copy ins(%[[A]] : {{.*}}) outs(%[[B]]
// CHECK: %[[X:.*]] = linalg.copy ins(%[[OLD]] : {{.*}}) outs(%[[A]]
// CHECK: return %[[X]], %[[Y]]
func.func @swapped(%a: tensor<8xf32> {attn.in_out = 0}, %b: tensor<8xf32> {attn.in_out = 1}) -> (tensor<8xf32>, tensor<8xf32>) {
  return %b, %a : tensor<8xf32>, tensor<8xf32>
}
