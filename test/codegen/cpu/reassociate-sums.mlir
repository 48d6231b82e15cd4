// RUN: attn-opt %s -attn-reassociate-sums | FileCheck %s

#x = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Only the addition to the sum may be reassociated, not the additions that compute a term.
// CHECK-LABEL: @squares
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc> : f32
func.func @squares(%x: memref<4x?xf32>, %sums: memref<4xf32>) {
  linalg.generic {indexing_maps = [#x, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x?xf32>) outs(%sums : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %c1 = arith.constant 1.0 : f32
    %shifted = arith.addf %in, %c1 : f32
    %square = arith.mulf %shifted, %shifted : f32
    %sum = arith.addf %out, %square : f32
    linalg.yield %sum : f32
  }
  return
}

// This is the example in the header of codegen/cpu/ReassociateSums.cpp.
// CHECK-LABEL: @sum
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc> : f32
func.func @sum(%x: memref<4x?xf32>, %sums: memref<4xf32>) {
  linalg.generic {indexing_maps = [#x, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x?xf32>) outs(%sums : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  return
}

// A sum that skips zeros keeps its order.
// CHECK-LABEL: @guarded
// CHECK-NOT: fastmath
func.func @guarded(%x: memref<4x?xf32>, %sums: memref<4xf32>) {
  linalg.generic {indexing_maps = [#x, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x?xf32>) outs(%sums : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %zero = arith.constant 0.0 : f32
    %sum = arith.addf %out, %in : f32
    %keep = arith.cmpf une, %in, %zero : f32
    %result = arith.select %keep, %sum, %out : f32
    linalg.yield %result : f32
  }
  return
}

// An addition for each element is not a sum over elements, and neither is a maximum.
// CHECK-LABEL: @elementwise
// CHECK-NOT: fastmath
func.func @elementwise(%x: memref<4x?xf32>, %y: memref<4x?xf32>, %max: memref<4xf32>) {
  linalg.generic {indexing_maps = [#x, #x], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x?xf32>) outs(%y : memref<4x?xf32>) {
  ^bb0(%in: f32, %out: f32):
    %sum = arith.addf %out, %in : f32
    linalg.yield %sum : f32
  }
  linalg.generic {indexing_maps = [#x, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x?xf32>) outs(%max : memref<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %greatest = arith.maximumf %out, %in : f32
    linalg.yield %greatest : f32
  }
  return
}
