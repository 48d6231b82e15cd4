// RUN: attn-import %s | FileCheck %s

// Linalg of other producers comes into the form of attn's own. A result that nothing reads disappears, here the
// positions of the maxima. A dimension that is written at index 0 is no dimension of the op.

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: %[[X:.*]]: tensor<7x5xf32>
// CHECK: %[[M:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<7x5xf32>) outs(%{{.*}} : tensor<7xf32>)
// CHECK: arith.maximumf
// CHECK-NOT: arith.select
// CHECK: %[[Z:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1]] : tensor<7x1xf32> into tensor<7xf32>
// CHECK: %[[S:.*]] = linalg.generic {{.*}} outs(%[[Z]] : tensor<7xf32>)
// CHECK: tensor.expand_shape %[[S]] {{\[\[}}0, 1]] output_shape [7, 1] : tensor<7xf32> into tensor<7x1xf32>
func.func @softmax(%x: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i64
  %e = tensor.empty() : tensor<7x5xf32>
  %e0 = tensor.empty() : tensor<7xf32>
  %e1 = tensor.empty() : tensor<7xi64>
  %e2 = tensor.empty() : tensor<7x1xf32>
  %f0 = linalg.fill ins(%low : f32) outs(%e0 : tensor<7xf32>) -> tensor<7xf32>
  %f1 = linalg.fill ins(%none : i64) outs(%e1 : tensor<7xi64>) -> tensor<7xi64>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<7x1xf32>) -> tensor<7x1xf32>
  %m:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                         iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<7x5xf32>) outs(%f0, %f1 : tensor<7xf32>, tensor<7xi64>) {
  ^bb0(%a: f32, %max: f32, %at: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %n = arith.maximumf %a, %max : f32
    %c = arith.cmpf ogt, %a, %max : f32
    %p = arith.select %c, %here, %at : i64
    linalg.yield %n, %p : f32, i64
  } -> (tensor<7xf32>, tensor<7xi64>)
  %d = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %m#0 : tensor<7x5xf32>, tensor<7xf32>) outs(%e : tensor<7x5xf32>) {
  ^bb0(%a: f32, %max: f32, %o: f32):
    %s = arith.subf %a, %max : f32
    %p = math.exp %s : f32
    linalg.yield %p : f32
  } -> tensor<7x5xf32>
  %l = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%d : tensor<7x5xf32>) outs(%f2 : tensor<7x1xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %n = arith.addf %a, %sum : f32
    linalg.yield %n : f32
  } -> tensor<7x1xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%d, %l : tensor<7x5xf32>, tensor<7x1xf32>) outs(%e : tensor<7x5xf32>) {
  ^bb0(%a: f32, %sum: f32, %o: f32):
    %n = arith.divf %a, %sum : f32
    linalg.yield %n : f32
  } -> tensor<7x5xf32>
  return %q : tensor<7x5xf32>
}

// A reshape between static types is a collapse, an expansion, or both.
// CHECK-LABEL: func.func @reshape
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1]] : tensor<6x5xf32> into tensor<30xf32>
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1]] output_shape [15, 2] : tensor<30xf32> into tensor<15x2xf32>
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1, 2]] output_shape [6, 1, 5] : tensor<6x5xf32> into tensor<6x1x5xf32>
func.func @reshape(%x: tensor<6x5xf32>) -> (tensor<15x2xf32>, tensor<6x1x5xf32>) {
  %a = arith.constant dense<[15, 2]> : tensor<2xi64>
  %b = arith.constant dense<[6, 1, 5]> : tensor<3xi64>
  %0 = tensor.reshape %x(%a) : (tensor<6x5xf32>, tensor<2xi64>) -> tensor<15x2xf32>
  %1 = tensor.reshape %x(%b) : (tensor<6x5xf32>, tensor<3xi64>) -> tensor<6x1x5xf32>
  return %0, %1 : tensor<15x2xf32>, tensor<6x1x5xf32>
}

// Assertions on sizes are conditions of a call: the sizes of %x and %y are equal, and %x has at least 3 rows. The greater
// one of two equal sizes is this size.
// CHECK-LABEL: func.func @assertions
// CHECK-SAME: {attn.dims = ["arg0.0", "arg0.1"], {{.*}} {attn.dims = ["arg0.0", "arg0.1"]
// CHECK-SAME: attn.symbols = [#attn.symbol<"arg0.0", 3 to 2147483647>, #attn.symbol<"arg0.1", 0 to 2147483647>]
// CHECK-NOT: cf.assert
func.func @assertions(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : i64
  %xm = tensor.dim %x, %0 : tensor<?x?xf32>
  %xn = tensor.dim %x, %1 : tensor<?x?xf32>
  %ym = tensor.dim %y, %0 : tensor<?x?xf32>
  %yn = tensor.dim %y, %1 : tensor<?x?xf32>
  %m = arith.cmpi eq, %xm, %ym : index
  %n = arith.cmpi eq, %xn, %yn : index
  %both = arith.andi %m, %n : i1
  cf.assert %both, "expected equal sizes"
  %xi = arith.index_cast %xm : index to i64
  %few = arith.cmpi sge, %xi, %3 : i64
  cf.assert %few, "expected at least 3 rows"
  %max = arith.maxui %xn, %yn : index
  %e = tensor.empty(%xm, %max) : tensor<?x?xf32>
  %r = linalg.add ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// Assertions that each index lies in a table become the bound of the argument, which each call checks.
// CHECK-LABEL: func.func @embedding
// CHECK-SAME: %{{.*}}: tensor<3xi64> {attn.bound = 9 : i64
// CHECK-NOT: cf.assert
func.func @embedding(%ids: tensor<3xi64>, %table: tensor<10x4xf32>) -> tensor<3x4xf32> {
  %0 = arith.constant 0 : i64
  %10 = arith.constant 10 : i64
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%id: i64, %o: f32):
    %less = arith.cmpi slt, %id, %10 : i64
    cf.assert %less, "index must be smaller than dim size"
    %more = arith.cmpi sge, %id, %0 : i64
    cf.assert %more, "index must be larger or equal to 0"
    %i = arith.index_cast %id : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %table[%i, %j] : tensor<10x4xf32>
    linalg.yield %v : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// A reshape without elements is an empty tensor.
// CHECK-LABEL: func.func @no_elements
// CHECK: tensor.empty() : tensor<5x0xf32>
func.func @no_elements(%x: tensor<0x3xf32>) -> tensor<5x0xf32> {
  %s = arith.constant dense<[5, 0]> : tensor<2xi64>
  %0 = tensor.reshape %x(%s) : (tensor<0x3xf32>, tensor<2xi64>) -> tensor<5x0xf32>
  return %0 : tensor<5x0xf32>
}
