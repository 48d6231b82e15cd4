// RUN: attn-opt %s -attn-copy-inserted | FileCheck %s

// An argument, a view, and a value with another use are copied. A value whose only use is its insertion is not copied:
// the pass moves the previous insertion ahead of the op that computes the value.
// CHECK-LABEL: @parts
// CHECK-SAME:  %[[A:[^:]*]]: tensor<2x4xf32>
// CHECK:       %[[E:.*]] = bufferization.alloc_tensor() : tensor<2x16xf32>
// CHECK:       %[[COPY:.*]] = linalg.copy ins(%[[A]] :
// CHECK:       %[[I0:.*]] = tensor.insert_slice %[[COPY]] into %[[E]]
// CHECK:       %[[COMPUTED:.*]] = linalg.exp
// CHECK-NEXT:  %[[I1:.*]] = tensor.insert_slice %[[COMPUTED]] into %[[I0]]
// CHECK:       %[[SHARED:.*]] = linalg.log
// CHECK:       %[[COPY2:.*]] = linalg.copy ins(%[[SHARED]] :
// CHECK:       %[[I2:.*]] = tensor.insert_slice %[[COPY2]] into %[[I1]]
// CHECK:       %[[VIEW:.*]] = tensor.collapse_shape
// CHECK:       %[[COPY3:.*]] = linalg.copy ins(%[[VIEW]] :
// CHECK:       tensor.insert_slice %[[COPY3]] into %[[I2]]
func.func @parts(%a: tensor<2x4xf32>, %e: tensor<2x4xf32>, %c: tensor<2x2x2xf32>) -> (tensor<2x16xf32>, tensor<2x4xf32>) {
  %whole = tensor.empty() : tensor<2x16xf32>
  %computed = linalg.exp ins(%a : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %shared = linalg.log ins(%a : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %view = tensor.collapse_shape %c [[0], [1, 2]] : tensor<2x2x2xf32> into tensor<2x4xf32>
  %0 = tensor.insert_slice %a into %whole[0, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<2x16xf32>
  %1 = tensor.insert_slice %computed into %0[0, 4] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<2x16xf32>
  %2 = tensor.insert_slice %shared into %1[0, 8] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<2x16xf32>
  %3 = tensor.insert_slice %view into %2[0, 12] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<2x16xf32>
  return %3, %shared : tensor<2x16xf32>, tensor<2x4xf32>
}

// A value that is computed in the slice into which it is inserted needs no copy.
// CHECK-LABEL: @put_back
// CHECK-NOT:   linalg.copy
// CHECK:       return
func.func @put_back(%a: tensor<4xf32>, %e: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>) {
  %part = tensor.extract_slice %e[0, 0] [1, 4] [1, 1] : tensor<2x4xf32> to tensor<4xf32>
  %y = linalg.exp ins(%a : tensor<4xf32>) outs(%part : tensor<4xf32>) -> tensor<4xf32>
  %r = tensor.insert_slice %y into %e[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
  return %r, %y : tensor<2x4xf32>, tensor<4xf32>
}

// Only one of two branches runs, so neither needs a copy because the other one fills the same tensor.
// CHECK-LABEL: @branches
// CHECK-NOT:   linalg.copy
// CHECK:       return
func.func @branches(%a: tensor<4xf32>, %is_part: i1, %out: memref<2x4xf32>, %whole: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %t = bufferization.to_tensor %out restrict writable : memref<2x4xf32> to tensor<2x4xf32>
  %r = scf.if %is_part -> (tensor<2x4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %y = linalg.exp ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    %all = tensor.insert_slice %y into %t[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
    scf.yield %all : tensor<2x4xf32>
  } else {
    %y = linalg.exp ins(%whole : tensor<2x4xf32>) outs(%t : tensor<2x4xf32>) -> tensor<2x4xf32>
    scf.yield %y : tensor<2x4xf32>
  }
  return %r : tensor<2x4xf32>
}

// The whole tensor becomes allocated memory. A slice that covers a whole empty tensor is replaced by that tensor.
// CHECK-LABEL: @place
// CHECK:       %[[WHOLE:.*]] = bufferization.alloc_tensor() : tensor<8x4xf32>
// CHECK:       %[[PART:.*]] = tensor.empty() : tensor<4x4xf32>
// CHECK:       %[[Y:.*]] = linalg.exp {{.*}} outs(%[[PART]] :
// CHECK:       tensor.insert_slice %[[Y]] into %[[WHOLE]]
func.func @place(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %whole = tensor.empty() : tensor<8x4xf32>
  %empty = tensor.empty() : tensor<4x4xf32>
  %part = tensor.extract_slice %empty[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> to tensor<4x4xf32>
  %y = linalg.exp ins(%a : tensor<4x4xf32>) outs(%part : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = tensor.insert_slice %y into %whole[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<8x4xf32>
  %1 = tensor.insert_slice %b into %0[4, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// A part that gets a dimension of size 1 before its insertion is not copied, even if its length is dynamic.
// CHECK-LABEL: @unit_dimension
// CHECK-NOT:   linalg.copy
// CHECK:       %[[WHOLE:.*]] = bufferization.alloc_tensor(%[[N:.*]]) : tensor<1x?x8xf32>
// CHECK:       %[[PART:.*]] = tensor.empty(%[[N]]) : tensor<?x4xf32>
// CHECK:       %[[Y:.*]] = linalg.exp {{.*}} outs(%[[PART]] :
// CHECK-NEXT:  %[[I0:.*]] = tensor.insert_slice %[[Y]] into %[[WHOLE]][0, 0, 0] [1, %[[N]], 4] [1, 1, 1] : tensor<?x4xf32> into tensor<1x?x8xf32>
// CHECK-NOT:   linalg.copy
// CHECK:       tensor.insert_slice %{{.*}} into %[[I0]][0, 0, 4] [1, %[[N]], 4] [1, 1, 1] : tensor<?x4xf32> into tensor<1x?x8xf32>
func.func @unit_dimension(%a: tensor<?x4xf32>, %n: index) -> tensor<1x?x8xf32> {
  %whole = tensor.empty(%n) : tensor<1x?x8xf32>
  %empty0 = tensor.empty(%n) : tensor<1x?x4xf32>
  %part0 = tensor.extract_slice %empty0[0, 0, 0] [1, %n, 4] [1, 1, 1] : tensor<1x?x4xf32> to tensor<?x4xf32>
  %y0 = linalg.exp ins(%a : tensor<?x4xf32>) outs(%part0 : tensor<?x4xf32>) -> tensor<?x4xf32>
  %back0 = tensor.insert_slice %y0 into %empty0[0, 0, 0] [1, %n, 4] [1, 1, 1] : tensor<?x4xf32> into tensor<1x?x4xf32>
  %empty1 = tensor.empty(%n) : tensor<1x?x4xf32>
  %part1 = tensor.extract_slice %empty1[0, 0, 0] [1, %n, 4] [1, 1, 1] : tensor<1x?x4xf32> to tensor<?x4xf32>
  %y1 = linalg.log ins(%a : tensor<?x4xf32>) outs(%part1 : tensor<?x4xf32>) -> tensor<?x4xf32>
  %back1 = tensor.insert_slice %y1 into %empty1[0, 0, 0] [1, %n, 4] [1, 1, 1] : tensor<?x4xf32> into tensor<1x?x4xf32>
  %0 = tensor.insert_slice %back0 into %whole[0, 0, 0] [1, %n, 4] [1, 1, 1] : tensor<1x?x4xf32> into tensor<1x?x8xf32>
  %1 = tensor.insert_slice %back1 into %0[0, 0, 4] [1, %n, 4] [1, 1, 1] : tensor<1x?x4xf32> into tensor<1x?x8xf32>
  return %1 : tensor<1x?x8xf32>
}

// If a reshape collapses the dimensions of a slice, a slice of half rows is copied, and a slice of whole rows is not.
// CHECK-LABEL: @in_a_row
// CHECK-SAME:  %[[A:[^:]*]]: tensor<4x6xf32>
// CHECK:       %[[HALVES:.*]] = tensor.extract_slice %[[A]][0, 3]
// CHECK:       %[[COPY:.*]] = linalg.copy ins(%[[HALVES]] :
// CHECK:       tensor.collapse_shape %[[COPY]]
// CHECK:       %[[ROWS:.*]] = tensor.extract_slice %[[A]][2, 0]
// CHECK:       tensor.collapse_shape %[[ROWS]]
func.func @in_a_row(%a: tensor<4x6xf32>) -> (tensor<12xf32>, tensor<12xf32>) {
  %halves = tensor.extract_slice %a[0, 3] [4, 3] [1, 1] : tensor<4x6xf32> to tensor<4x3xf32>
  %0 = tensor.collapse_shape %halves [[0, 1]] : tensor<4x3xf32> into tensor<12xf32>
  %rows = tensor.extract_slice %a[2, 0] [2, 6] [1, 1] : tensor<4x6xf32> to tensor<2x6xf32>
  %1 = tensor.collapse_shape %rows [[0, 1]] : tensor<2x6xf32> into tensor<12xf32>
  return %0, %1 : tensor<12xf32>, tensor<12xf32>
}
