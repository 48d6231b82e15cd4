// RUN: attn-opt %s -canonicalize -split-input-file | FileCheck %s

// The attribute #attn.causal loads the dialect attn, which defines the patterns that are tested here. The patterns make
// the size %c1 static. The slices have two dimensions of size 1. Their types keep the first dimension and drop the
// last.
// CHECK-LABEL: @read(
// CHECK: %[[P:.*]] = tensor.extract_slice %{{.*}}[%{{.*}}, 0, 3] [1, %{{.*}}, 1] {{.*}} to tensor<1x?xf32>
// CHECK: tensor.cast %[[P]] : tensor<1x?xf32> to tensor<?x?xf32>
func.func @read(%x: tensor<6x?x4xf32>, %i: index, %n: index) -> tensor<?x?xf32> attributes {mask = #attn.causal} {
  %c1 = arith.constant 1 : index
  %p = tensor.extract_slice %x[%i, 0, 3] [%c1, %n, 1] [1, 1, 1] : tensor<6x?x4xf32> to tensor<?x?xf32>
  return %p : tensor<?x?xf32>
}

// -----

// The constant offset is folded first. Meanwhile the size %c1 is still an operand, so its dimension is dynamic.
// CHECK-LABEL: @read_at_constant_offset(
// CHECK: %[[P:.*]] = tensor.extract_slice %{{.*}}[0, 0, %{{.*}}] [16, 1, 1] {{.*}} : tensor<16x1x3xf32> to tensor<16x1xf32>
// CHECK: tensor.cast %[[P]] : tensor<16x1xf32> to tensor<16x?xf32>
func.func @read_at_constant_offset(%x: tensor<16x1x3xf32>, %i: index) -> tensor<16x?xf32> attributes {mask = #attn.causal} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = tensor.extract_slice %x[%c0, 0, %i] [16, %c1, 1] [1, 1, 1] : tensor<16x1x3xf32> to tensor<16x?xf32>
  return %p : tensor<16x?xf32>
}

// -----

// CHECK-LABEL: @read_with_unit_dims(
// CHECK: tensor.extract_slice %{{.*}}[0, 0, 0, %{{.*}}] [1, %{{.*}}, 1, 1] {{.*}} : tensor<4x?x5x6xf32> to tensor<1x?x1xf32>
func.func @read_with_unit_dims(%x: tensor<4x?x5x6xf32>, %i: index, %n: index) -> tensor<1x?x?xf32> attributes {mask = #attn.causal} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = tensor.extract_slice %x[%c0, 0, 0, %i] [1, %n, %c1, 1] [1, 1, 1, 1] : tensor<4x?x5x6xf32> to tensor<1x?x?xf32>
  return %p : tensor<1x?x?xf32>
}

// -----

// CHECK-LABEL: @written(
// CHECK: %[[P:.*]] = tensor.cast %{{.*}} : tensor<?x?xf32> to tensor<1x?xf32>
// CHECK: tensor.insert_slice %[[P]] into %{{.*}}[%{{.*}}, 0, 3] [1, %{{.*}}, 1]
func.func @written(%x: tensor<6x?x4xf32>, %p: tensor<?x?xf32>, %i: index, %n: index) -> tensor<6x?x4xf32> attributes {mask = #attn.causal} {
  %c1 = arith.constant 1 : index
  %y = tensor.insert_slice %p into %x[%i, 0, 3] [%c1, %n, 1] [1, 1, 1] : tensor<?x?xf32> into tensor<6x?x4xf32>
  return %y : tensor<6x?x4xf32>
}

// -----

// CHECK-LABEL: @written_in_parallel(
// CHECK: scf.forall
// CHECK: %[[P:.*]] = tensor.cast %{{.*}} : tensor<?x?xf32> to tensor<1x?xf32>
// CHECK: scf.forall.in_parallel
// CHECK-NEXT: tensor.parallel_insert_slice %[[P]] into %{{.*}}[%{{.*}}, 0, 3] [1, %{{.*}}, 1]
func.func @written_in_parallel(%x: tensor<6x?x4xf32>, %p: tensor<?x?xf32>, %n: index) -> tensor<6x?x4xf32> attributes {mask = #attn.causal} {
  %c1 = arith.constant 1 : index
  %y = scf.forall (%i) in (6) shared_outs(%out = %x) -> (tensor<6x?x4xf32>) {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %out[%i, 0, 3] [%c1, %n, 1] [1, 1, 1] : tensor<?x?xf32> into tensor<6x?x4xf32>
    }
  }
  return %y : tensor<6x?x4xf32>
}
