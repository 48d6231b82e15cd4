// RUN: attn-opt %s -attn-write-parts | FileCheck %s

// Sixteen parts of a tensor: each is written to one buffer, which first gets the elements of the tensor.
// CHECK-LABEL: @parts(
// CHECK-SAME:    %[[A:.*]]: tensor<16x4xf32>, %[[B:.*]]: tensor<4xf32>
// CHECK:         %[[M:.*]] = memref.alloc() : memref<16x4xf32>
// CHECK-NEXT:    bufferization.materialize_in_destination %[[A]] in restrict writable %[[M]]
// CHECK-NEXT:    %[[FIRST:.*]] = memref.subview %[[M]][0, 0] [1, 4] [1, 1] : memref<16x4xf32> to memref<4xf32, strided<[1]>>
// CHECK-NEXT:    bufferization.materialize_in_destination %[[B]] in restrict writable %[[FIRST]]
// CHECK:         memref.subview %[[M]][15, 0]
// CHECK:         %[[T:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK-NEXT:    return %[[T]]
func.func @parts(%a: tensor<16x4xf32>, %b: tensor<4xf32>) -> tensor<16x4xf32> {
  %0 = tensor.insert_slice %b into %a[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %1 = tensor.insert_slice %b into %0[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %2 = tensor.insert_slice %b into %1[2, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %3 = tensor.insert_slice %b into %2[3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %4 = tensor.insert_slice %b into %3[4, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %5 = tensor.insert_slice %b into %4[5, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %6 = tensor.insert_slice %b into %5[6, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %7 = tensor.insert_slice %b into %6[7, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %8 = tensor.insert_slice %b into %7[8, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %9 = tensor.insert_slice %b into %8[9, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %10 = tensor.insert_slice %b into %9[10, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %11 = tensor.insert_slice %b into %10[11, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %12 = tensor.insert_slice %b into %11[12, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %13 = tensor.insert_slice %b into %12[13, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %14 = tensor.insert_slice %b into %13[14, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %15 = tensor.insert_slice %b into %14[15, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  return %15 : tensor<16x4xf32>
}

// An empty tensor has no elements to write.
// CHECK-LABEL: @empty(
// CHECK:         %[[M:.*]] = memref.alloc()
// CHECK-NEXT:    memref.subview %[[M]]
func.func @empty(%b: tensor<4xf32>) -> tensor<16x4xf32> {
  %e = bufferization.alloc_tensor() : tensor<16x4xf32>
  %0 = tensor.insert_slice %b into %e[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %1 = tensor.insert_slice %b into %0[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %2 = tensor.insert_slice %b into %1[2, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %3 = tensor.insert_slice %b into %2[3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %4 = tensor.insert_slice %b into %3[4, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %5 = tensor.insert_slice %b into %4[5, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %6 = tensor.insert_slice %b into %5[6, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %7 = tensor.insert_slice %b into %6[7, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %8 = tensor.insert_slice %b into %7[8, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %9 = tensor.insert_slice %b into %8[9, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %10 = tensor.insert_slice %b into %9[10, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %11 = tensor.insert_slice %b into %10[11, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %12 = tensor.insert_slice %b into %11[12, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %13 = tensor.insert_slice %b into %12[13, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %14 = tensor.insert_slice %b into %13[14, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %15 = tensor.insert_slice %b into %14[15, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  return %15 : tensor<16x4xf32>
}

// Fewer parts, and parts of which two are in the same place, stay as they are.
// CHECK-LABEL: @few(
// CHECK-NOT:     memref
// CHECK-LABEL: @same_place(
// CHECK-NOT:     memref
func.func @few(%a: tensor<16x4xf32>, %b: tensor<4xf32>) -> tensor<16x4xf32> {
  %0 = tensor.insert_slice %b into %a[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %1 = tensor.insert_slice %b into %0[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %2 = tensor.insert_slice %b into %1[2, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %3 = tensor.insert_slice %b into %2[3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %4 = tensor.insert_slice %b into %3[4, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %5 = tensor.insert_slice %b into %4[5, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %6 = tensor.insert_slice %b into %5[6, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %7 = tensor.insert_slice %b into %6[7, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %8 = tensor.insert_slice %b into %7[8, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %9 = tensor.insert_slice %b into %8[9, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %10 = tensor.insert_slice %b into %9[10, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %11 = tensor.insert_slice %b into %10[11, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %12 = tensor.insert_slice %b into %11[12, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %13 = tensor.insert_slice %b into %12[13, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %14 = tensor.insert_slice %b into %13[14, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  return %14 : tensor<16x4xf32>
}

func.func @same_place(%a: tensor<16x4xf32>, %b: tensor<4xf32>) -> tensor<16x4xf32> {
  %0 = tensor.insert_slice %b into %a[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %1 = tensor.insert_slice %b into %0[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %2 = tensor.insert_slice %b into %1[2, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %3 = tensor.insert_slice %b into %2[3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %4 = tensor.insert_slice %b into %3[4, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %5 = tensor.insert_slice %b into %4[5, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %6 = tensor.insert_slice %b into %5[6, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %7 = tensor.insert_slice %b into %6[7, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %8 = tensor.insert_slice %b into %7[8, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %9 = tensor.insert_slice %b into %8[9, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %10 = tensor.insert_slice %b into %9[10, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %11 = tensor.insert_slice %b into %10[11, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %12 = tensor.insert_slice %b into %11[12, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %13 = tensor.insert_slice %b into %12[13, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %14 = tensor.insert_slice %b into %13[14, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %15 = tensor.insert_slice %b into %14[15, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %16 = tensor.insert_slice %b into %15[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  return %16 : tensor<16x4xf32>
}

// The last insertion has a place that is known only at the call.
// CHECK-LABEL: @unknown_place(
// CHECK-NOT:     memref
func.func @unknown_place(%a: tensor<16x4xf32>, %b: tensor<4xf32>, %i: index) -> tensor<16x4xf32> {
  %0 = tensor.insert_slice %b into %a[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %1 = tensor.insert_slice %b into %0[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %2 = tensor.insert_slice %b into %1[2, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %3 = tensor.insert_slice %b into %2[3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %4 = tensor.insert_slice %b into %3[4, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %5 = tensor.insert_slice %b into %4[5, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %6 = tensor.insert_slice %b into %5[6, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %7 = tensor.insert_slice %b into %6[7, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %8 = tensor.insert_slice %b into %7[8, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %9 = tensor.insert_slice %b into %8[9, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %10 = tensor.insert_slice %b into %9[10, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %11 = tensor.insert_slice %b into %10[11, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %12 = tensor.insert_slice %b into %11[12, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %13 = tensor.insert_slice %b into %12[13, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %14 = tensor.insert_slice %b into %13[14, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %15 = tensor.insert_slice %b into %14[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  return %15 : tensor<16x4xf32>
}

// Two strided parts have no element in common, although both cover all rows.
// CHECK-LABEL: @strided(
// CHECK:         memref.subview %{{.*}}[1, 0] [8, 1] [2, 1]
// CHECK-NOT:     insert_slice
// CHECK:         return
func.func @strided(%a: tensor<16x8xf32>, %b: tensor<8xf32>) -> tensor<16x8xf32> {
  %0 = tensor.insert_slice %b into %a[0, 0] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %1 = tensor.insert_slice %b into %0[1, 0] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %2 = tensor.insert_slice %b into %1[0, 1] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %3 = tensor.insert_slice %b into %2[1, 1] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %4 = tensor.insert_slice %b into %3[0, 2] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %5 = tensor.insert_slice %b into %4[1, 2] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %6 = tensor.insert_slice %b into %5[0, 3] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %7 = tensor.insert_slice %b into %6[1, 3] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %8 = tensor.insert_slice %b into %7[0, 4] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %9 = tensor.insert_slice %b into %8[1, 4] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %10 = tensor.insert_slice %b into %9[0, 5] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %11 = tensor.insert_slice %b into %10[1, 5] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %12 = tensor.insert_slice %b into %11[0, 6] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %13 = tensor.insert_slice %b into %12[1, 6] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %14 = tensor.insert_slice %b into %13[0, 7] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  %15 = tensor.insert_slice %b into %14[1, 7] [8, 1] [2, 1] : tensor<8xf32> into tensor<16x8xf32>
  return %15 : tensor<16x8xf32>
}

// If the tensor is the buffer of a result, the parts are written to this buffer.
// CHECK-LABEL: @result(
// CHECK-SAME:    %[[B:.*]]: tensor<4xf32>, %[[OUT:.*]]: memref<16x4xf32>
// CHECK:         %[[EXP:.*]] = linalg.exp
// CHECK:         %[[FIRST:.*]] = memref.subview %[[OUT]][0, 0]
// CHECK-NEXT:    bufferization.materialize_in_destination %[[EXP]] in restrict writable %[[FIRST]]
// CHECK-NOT:     memref.alloc
// CHECK:         %[[T:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK-NEXT:    bufferization.materialize_in_destination %[[T]] in restrict writable %[[OUT]]
func.func @result(%b: tensor<4xf32>, %out: memref<16x4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %exp = linalg.exp ins(%b : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %start = bufferization.to_tensor %out restrict writable : memref<16x4xf32> to tensor<16x4xf32>
  %0 = tensor.insert_slice %exp into %start[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %1 = tensor.insert_slice %b into %0[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %2 = tensor.insert_slice %b into %1[2, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %3 = tensor.insert_slice %b into %2[3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %4 = tensor.insert_slice %b into %3[4, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %5 = tensor.insert_slice %b into %4[5, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %6 = tensor.insert_slice %b into %5[6, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %7 = tensor.insert_slice %b into %6[7, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %8 = tensor.insert_slice %b into %7[8, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %9 = tensor.insert_slice %b into %8[9, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %10 = tensor.insert_slice %b into %9[10, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %11 = tensor.insert_slice %b into %10[11, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %12 = tensor.insert_slice %b into %11[12, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %13 = tensor.insert_slice %b into %12[13, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %14 = tensor.insert_slice %b into %13[14, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  %15 = tensor.insert_slice %b into %14[15, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
  bufferization.materialize_in_destination %15 in restrict writable %out : (tensor<16x4xf32>, memref<16x4xf32>) -> ()
  return
}

// A chain in a loop stays as it is.
// CHECK-LABEL: @loop(
// CHECK-NOT:     memref.alloc
// CHECK:         scf.yield
func.func @loop(%a: tensor<16x4xf32>, %b: tensor<4xf32>, %n: index) -> tensor<16x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %a) -> tensor<16x4xf32> {
    %0 = tensor.insert_slice %b into %s[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %1 = tensor.insert_slice %b into %0[1, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %2 = tensor.insert_slice %b into %1[2, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %3 = tensor.insert_slice %b into %2[3, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %4 = tensor.insert_slice %b into %3[4, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %5 = tensor.insert_slice %b into %4[5, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %6 = tensor.insert_slice %b into %5[6, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %7 = tensor.insert_slice %b into %6[7, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %8 = tensor.insert_slice %b into %7[8, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %9 = tensor.insert_slice %b into %8[9, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %10 = tensor.insert_slice %b into %9[10, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %11 = tensor.insert_slice %b into %10[11, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %12 = tensor.insert_slice %b into %11[12, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %13 = tensor.insert_slice %b into %12[13, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %14 = tensor.insert_slice %b into %13[14, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    %15 = tensor.insert_slice %b into %14[15, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<16x4xf32>
    scf.yield %15 : tensor<16x4xf32>
  }
  return %r : tensor<16x4xf32>
}
