// RUN: attn-opt %s --pass-pipeline='builtin.module(func.func(attn-contract-to-vector),canonicalize,cse)' \
// RUN:   -verify-diagnostics | FileCheck %s

#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>} {

// The rows of a convolution are output channels, and its vectors run along the last dimension of the image. The image is
// read where the kernel is, without a copy of its windows: the next output row y is 2 rows of 34 elements further, the
// next row j of the kernel 34 elements, and the next channel 9 rows.
// CHECK-LABEL: @convolution
// CHECK-DAG:     %[[Y:.*]] = arith.constant 68 : index
// CHECK-DAG:     %[[J:.*]] = arith.constant 34 : index
// CHECK-DAG:     %[[C:.*]] = arith.constant 306 : index
// CHECK:         scf.for %[[AT_Y:.*]] = %c0 to %c4 step %c1 {
// CHECK:           %[[ROW:.*]] = arith.muli %[[AT_Y]], %[[Y]]
// CHECK:           scf.for %{{.*}} = %c0 to %c16 step %c8 {
// CHECK:             %{{.*}}:16 = scf.for %[[AT_C:.*]] = %c0 to %c8 step %c1
// CHECK:               %[[PLANE:.*]] = arith.muli %[[AT_C]], %[[C]]
// CHECK:               %[[FIRST:.*]] = arith.addi %[[ROW]], %[[PLANE]]
// CHECK:               scf.for %[[AT_J:.*]] = %c0 to %c3 step %c1
// CHECK:                 %[[DOWN:.*]] = arith.muli %[[AT_J]], %[[J]]
// CHECK:                 %[[LINE:.*]] = arith.addi %[[FIRST]], %[[DOWN]]
// CHECK:                 scf.for %[[AT_I:.*]] = %c0 to %c3 step %c1
// CHECK:                   %[[PIXEL:.*]] = arith.addi %[[LINE]], %[[AT_I]]
// CHECK:                   vector.load %{{.*}}[%[[PIXEL]]]
// CHECK:                   vector.load
// CHECK-COUNT-16:          vector.fma
// CHECK-NOT:               vector.fma
// CHECK:             vector.store
func.func @convolution(%x: memref<1x8x9x34xf32>, %w: memref<16x8x3x3xf32>, %o: memref<1x16x4x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%o : memref<1x16x4x32xf32>)
  linalg.generic {indexing_maps = [affine_map<(n, o, y, x, c, j, i) -> (n, c, y * 2 + j, x + i)>, affine_map<(n, o, y, x, c, j, i) -> (o, c, j, i)>, affine_map<(n, o, y, x, c, j, i) -> (n, o, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<1x8x9x34xf32>, memref<16x8x3x3xf32>) outs(%o : memref<1x16x4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  return
}

// The accumulators, 8 rows by 3 vectors, start from the value of the fill. An iteration does two steps of k, and
// prefetches a part of the next 8 rows: 8 elements for each step.
// CHECK-LABEL: @contract
// CHECK-DAG:     %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG:     %[[C7:.*]] = arith.constant 7 : index
// CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG:     %[[C512:.*]] = arith.constant 512 : index
// CHECK-NOT:     linalg
// CHECK:         scf.for %{{.*}} to %{{.*}} step %[[C8]] {
// CHECK:           %[[ACC:.*]]:24 = scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %[[C2]] iter_args(%{{.*}} = %[[ZERO]],
// CHECK:             %[[AT:.*]] = arith.addi %{{.*}}, %[[K]]
// CHECK:             %[[PART:.*]] = arith.muli %[[K]], %[[C7]]
// CHECK:             %[[NEXT:.*]] = arith.addi %[[AT]], %[[C512]]
// CHECK:             %[[LINE:.*]] = arith.addi %[[NEXT]], %[[PART]]
// CHECK:             memref.prefetch %[[A:.*]][%[[LINE]]], read
// CHECK-COUNT-3:     vector.load
// CHECK:             memref.load %[[A]]
// CHECK:             vector.broadcast %{{.*}} : f32 to vector<16xf32>
// CHECK-COUNT-48:    vector.fma %{{.*}} : vector<16xf32>
// CHECK-NOT:         vector.fma
// CHECK:             scf.yield
// CHECK-COUNT-24:  vector.store %[[ACC]]#
// CHECK-NOT:       vector.store
// CHECK:         return
func.func @contract(%a: memref<128x64xf32>, %b: memref<64x48xf32>, %c: memref<128x48xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<128x48xf32>)
  linalg.contract indexing_maps = [#mk, #kn, #mn]
    ins(%a, %b : memref<128x64xf32>, memref<64x48xf32>) outs(%c : memref<128x48xf32>)
  return
}

// If the rows are not adjacent, each iteration prefetches a part of another row.
// CHECK-LABEL: @rows_apart
// CHECK:         iter_args
// CHECK:           %[[TURN:.*]] = arith.remui %{{.*}}, %c8
// CHECK:           %[[ROW:.*]] = arith.addi %[[TURN]], %c8
// CHECK:           arith.muli %[[ROW]], %c256
// CHECK:           memref.prefetch {{.*}}locality<3>
// CHECK-NOT:       memref.prefetch {{.*}}locality<3>
// CHECK:           scf.yield
func.func @rows_apart(%a: memref<128x64xf32, strided<[256, 1]>>, %b: memref<64x48xf32>, %c: memref<128x48xf32>) {
  linalg.contract indexing_maps = [#mk, #kn, #mn]
    ins(%a, %b : memref<128x64xf32, strided<[256, 1]>>, memref<64x48xf32>) outs(%c : memref<128x48xf32>)
  return
}

// Without a fill, the output is added after the loop, because a sum in parts has a smaller rounding error than one long
// chain. The order of the inputs and the layout of the scalar input do not matter: here the first input has the
// dimension n, and the second is read along its columns. Blocks of 8 rows prefetch cache lines of the block after the
// next; even blocks prefetch those of even steps, odd blocks those of odd steps.
// CHECK-LABEL: @accumulate
// CHECK-DAG:      %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK:          %{{.*}}:24 = scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]],
// CHECK:            %[[BLOCK:.*]] = arith.divui %{{.*}}, %c8
// CHECK:            %[[PARITY:.*]] = arith.remui %[[BLOCK]], %c2
// CHECK:            %[[AHEAD:.*]] = arith.addi %{{.*}}, %c23
// CHECK:            %[[STEP:.*]] = arith.muli %[[PARITY]], %c256
// CHECK:            %[[NEXT:.*]] = arith.addi %[[AHEAD]], %[[STEP]]
// CHECK:            memref.prefetch %{{.*}}[%[[NEXT]]], {{.*}}locality<3>
// CHECK-NOT:        memref.prefetch {{.*}}locality<3>
// CHECK:            memref.prefetch {{.*}}locality<2>
// CHECK-NOT:        memref.prefetch
// CHECK:            scf.yield
// CHECK-COUNT-24: vector.load
// CHECK-COUNT-24: vector.store
func.func @accumulate(%p: memref<128x48xf32>, %v: memref<128x64xf32, strided<[256, 1], offset: ?>>, %o: memref<64x48xf32>) {
  linalg.contract indexing_maps = [#kn, #km, #mn]
    ins(%p, %v : memref<128x48xf32>, memref<128x64xf32, strided<[256, 1], offset: ?>>) outs(%o : memref<64x48xf32>)
  return
}

// A bias is also added after the loop. Its four vectors are the same for every row.
// CHECK-LABEL: @bias
// CHECK-SAME:    %[[BIAS:[a-z0-9]*]]: memref<64xf32>
// CHECK:         %[[ROW:.*]] = memref.reinterpret_cast %[[BIAS]]
// CHECK:         %{{.*}}:24 = scf.for
// CHECK:           scf.yield
// CHECK-COUNT-4: vector.load %[[ROW]]
// CHECK-NOT:     vector.load
// CHECK:         vector.store
func.func @bias(%bias: memref<64xf32>, %a: memref<12x32xf32>, %b: memref<32x64xf32>, %c: memref<12x64xf32>) {
  linalg.broadcast ins(%bias : memref<64xf32>) outs(%c : memref<12x64xf32>) dimensions = [0]
  linalg.matmul ins(%a, %b : memref<12x32xf32>, memref<32x64xf32>) outs(%c : memref<12x64xf32>)
  return
}

// A body that skips zeros adds no product with a zero of the first input. Its loop, which does one step per iteration,
// prefetches the next rows too.
// CHECK-LABEL: @guarded
// CHECK-SAME:    %[[V:[a-z0-9]*]]: memref<?x64xf32>
// CHECK:         %[[ROWS:.*]] = memref.reinterpret_cast %[[V]]
// CHECK:         scf.for {{.*}} iter_args
// CHECK:           memref.prefetch %[[ROWS]]
// CHECK-NOT:       memref.prefetch
// CHECK:           %[[P:.*]] = vector.load
// CHECK:           %[[KEEP:.*]] = arith.cmpf une, %[[P]], %{{.*}} : vector<16xf32>
// CHECK:           %[[SUM:.*]] = vector.fma %{{.*}}, %[[P]], %[[ACC:.*]] : vector<16xf32>
// CHECK:           arith.select %[[KEEP]], %[[SUM]], %[[ACC]] : vector<16xi1>, vector<16xf32>
func.func @guarded(%v: memref<?x64xf32>, %p: memref<?x48xf32>, %o: memref<64x48xf32>) {
  linalg.generic {indexing_maps = [#kn, #km, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %v : memref<?x48xf32>, memref<?x64xf32>) outs(%o : memref<64x48xf32>)
      attrs = {attn.skips_zeros} {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %zero = arith.constant 0.0 : f32
    %keep = arith.cmpf une, %x, %zero : f32
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %z, %product : f32
    %result = arith.select %keep, %sum, %z : f32
    linalg.yield %result : f32
  }
  return
}

// 17 rows are two blocks of 8 and one row; 37 columns are two vectors and a vector of 5 lanes. There is no other code.
// CHECK-LABEL: @static_edges
// CHECK:         %[[MASK:.*]] = vector.constant_mask [5] : vector<16xi1>
// CHECK:         scf.for
// CHECK:           %{{.*}}:24 = scf.for
// CHECK-COUNT-2:     vector.load
// CHECK:             vector.maskedload %{{.*}}[%{{.*}}], %[[MASK]]
// CHECK:         %{{.*}}:3 = scf.for
// CHECK-NOT:     scf.for
// CHECK-COUNT-2: vector.store
// CHECK:         vector.maskedstore %{{.*}}[%{{.*}}], %[[MASK]]
// CHECK:         return
func.func @static_edges(%a: memref<17x64xf32>, %b: memref<64x37xf32>, %c: memref<17x37xf32>) {
  linalg.matmul ins(%a, %b : memref<17x64xf32>, memref<64x37xf32>) outs(%c : memref<17x37xf32>)
  return
}

// If the sizes are unknown, the last rows are computed in blocks of 3 rows and then of one row, and the last columns
// in blocks of two vectors and then of one vector. Blocks of two vectors or one have two sums for each vector at every
// height, so that equal rows give equal sums.
// CHECK-LABEL: @dynamic_edges
// CHECK:         scf.for %{{.*}} step %c64
// CHECK:           %{{.*}}:24 = scf.for
// CHECK:           %{{.*}}:12 = scf.for
// CHECK:           %{{.*}}:4 = scf.for
// CHECK:         scf.for %{{.*}} step %c32
// CHECK:           %{{.*}}:24 = scf.for
// CHECK:           %{{.*}}:12 = scf.for
// CHECK:           %{{.*}}:4 = scf.for
// CHECK:         scf.for %{{.*}} step %c16
// CHECK:           %[[MASK:.*]] = vector.create_mask %{{.*}} : vector<16xi1>
// CHECK:           %{{.*}}:12 = scf.for
// CHECK:             vector.maskedload %{{.*}}[%{{.*}}], %[[MASK]]
// CHECK:           %{{.*}}:6 = scf.for
// CHECK:           %{{.*}}:2 = scf.for
// CHECK-NOT:     scf.for
func.func @dynamic_edges(%a: memref<?x64xf32>, %b: memref<64x?xf32>, %c: memref<?x?xf32>) {
  linalg.matmul ins(%a, %b : memref<?x64xf32>, memref<64x?xf32>) outs(%c : memref<?x?xf32>)
  return
}

// A tile of at most 48 columns has the block of a whole tile. Its tail has blocks of two vectors, then of one.
// CHECK-LABEL: @bounded_columns
// CHECK:         scf.for %{{.*}} = %c0 to %[[WHOLE:.*]] step %c48
// CHECK:           %{{.*}}:24 = scf.for
// CHECK:         scf.for %{{.*}} = %[[WHOLE]] to %[[PAIRS:.*]] step %c32
// CHECK:           %{{.*}}:16 = scf.for
// CHECK:         scf.for %{{.*}} = %[[PAIRS]] to %{{.*}} step %c16
// CHECK:           vector.create_mask
// CHECK:           %{{.*}}:16 = scf.for
func.func @bounded_columns(%left: index, %a: memref<128x64xf32>, %b: memref<64x48xf32>, %c: memref<128x48xf32>) {
  %n = affine.min affine_map<()[s0] -> (s0, 48)>()[%left]
  %bn = memref.subview %b[0, 0] [64, %n] [1, 1] : memref<64x48xf32> to memref<64x?xf32, strided<[48, 1]>>
  %cn = memref.subview %c[0, 0] [128, %n] [1, 1] : memref<128x48xf32> to memref<128x?xf32, strided<[48, 1]>>
  linalg.matmul ins(%a, %bn : memref<128x64xf32>, memref<64x?xf32, strided<[48, 1]>>)
      outs(%cn : memref<128x?xf32, strided<[48, 1]>>)
  return
}

// If 512 is divided into tiles of 48, all sizes of tiles are multiples of 16, so there are no masks, and all blocks
// have 8 rows. The sizes are also multiples of 16 if a tile begins at a multiple of 96, here the number of the task
// times 96.
// CHECK-LABEL: @multiples
// CHECK-NOT:     vector.create_mask
// CHECK:         scf.for
// CHECK:           scf.for %{{.*}} = %c0 to %[[SIZE:.*]] step %c8
// CHECK:             %{{.*}}:24 = scf.for
// CHECK:           scf.for %{{.*}} to %{{.*}} step %c32
// CHECK:             scf.for %{{.*}} = %c0 to %[[SIZE]] step %c8
// CHECK:           scf.for %{{.*}} to %[[SIZE]] step %c16
// CHECK:             scf.for %{{.*}} = %c0 to %[[SIZE]] step %c8
// CHECK-NOT:         vector.maskedload
// CHECK-NOT:         scf.for %{{.*}} step %c4
// CHECK:         return
func.func @multiples(%task: index, %a: memref<512x64xf32>, %b: memref<64x512xf32>, %c: memref<512x512xf32>) {
  %c0 = arith.constant 0 : index
  %c48 = arith.constant 48 : index
  %c512 = arith.constant 512 : index
  scf.for %i = %c0 to %c512 step %c48 {
    %m = affine.min affine_map<(d0) -> (-d0 + 512, 48)>(%i)
    %am = memref.subview %a[%i, 0] [%m, 64] [1, 1] : memref<512x64xf32> to memref<?x64xf32, strided<[64, 1], offset: ?>>
    %bm = memref.subview %b[0, %i] [64, %m] [1, 1] : memref<64x512xf32> to memref<64x?xf32, strided<[512, 1], offset: ?>>
    %cm = memref.subview %c[%i, %i] [%m, %m] [1, 1] : memref<512x512xf32> to memref<?x?xf32, strided<[512, 1], offset: ?>>
    linalg.matmul ins(%am, %bm : memref<?x64xf32, strided<[64, 1], offset: ?>>, memref<64x?xf32, strided<[512, 1], offset: ?>>)
        outs(%cm : memref<?x?xf32, strided<[512, 1], offset: ?>>)
  }
  %c96 = arith.constant 96 : index
  %begin = arith.muli %task, %c96 : index
  %m = affine.min affine_map<()[s0] -> (-s0 + 512, 96)>()[%begin]
  %am = memref.subview %a[%begin, 0] [%m, 64] [1, 1] : memref<512x64xf32> to memref<?x64xf32, strided<[64, 1], offset: ?>>
  %b0 = memref.subview %b[0, 0] [64, 48] [1, 1] : memref<64x512xf32> to memref<64x48xf32, strided<[512, 1]>>
  %cm = memref.subview %c[%begin, 0] [%m, 48] [1, 1] : memref<512x512xf32> to memref<?x48xf32, strided<[512, 1], offset: ?>>
  linalg.matmul ins(%am, %b0 : memref<?x64xf32, strided<[64, 1], offset: ?>>, memref<64x48xf32, strided<[512, 1]>>)
      outs(%cm : memref<?x48xf32, strided<[512, 1], offset: ?>>)
  return
}

// If 512 is divided into tiles of 40, only 8 is known to divide the size of the last tile: rows form whole blocks, but
// columns need a mask. A size that a loop carries has no known divisor.
// CHECK-LABEL: @not_multiples
// CHECK:         scf.for %{{.*}} to %{{.*}} step %c40
// CHECK-NOT:       scf.for {{.*}} step %c4 {
// CHECK:           vector.create_mask
// CHECK:         scf.for {{.*}} iter_args(%[[SIZE:.*]] = %{{.*}}) -> (index)
// CHECK:           scf.for %{{.*}} to %[[SIZE]] step %c1 {
// CHECK:         return
func.func @not_multiples(%a: memref<512x64xf32>, %b: memref<64x512xf32>, %c: memref<512x512xf32>) -> index {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %c40 = arith.constant 40 : index
  %c48 = arith.constant 48 : index
  %c512 = arith.constant 512 : index
  scf.for %i = %c0 to %c512 step %c40 {
    %m = affine.min affine_map<(d0) -> (-d0 + 512, 40)>(%i)
    %am = memref.subview %a[%i, 0] [%m, 64] [1, 1] : memref<512x64xf32> to memref<?x64xf32, strided<[64, 1], offset: ?>>
    %bm = memref.subview %b[0, %i] [64, %m] [1, 1] : memref<64x512xf32> to memref<64x?xf32, strided<[512, 1], offset: ?>>
    %cm = memref.subview %c[%i, %i] [%m, %m] [1, 1] : memref<512x512xf32> to memref<?x?xf32, strided<[512, 1], offset: ?>>
    linalg.matmul ins(%am, %bm : memref<?x64xf32, strided<[64, 1], offset: ?>>, memref<64x?xf32, strided<[512, 1], offset: ?>>)
        outs(%cm : memref<?x?xf32, strided<[512, 1], offset: ?>>)
  }
  %last = scf.for %i = %c0 to %c512 step %c48 iter_args(%m = %c5) -> (index) {
    %am = memref.subview %a[0, 0] [%m, 64] [1, 1] : memref<512x64xf32> to memref<?x64xf32, strided<[64, 1]>>
    %b0 = memref.subview %b[0, 0] [64, 48] [1, 1] : memref<64x512xf32> to memref<64x48xf32, strided<[512, 1]>>
    %cm = memref.subview %c[0, 0] [%m, 48] [1, 1] : memref<512x512xf32> to memref<?x48xf32, strided<[512, 1]>>
    linalg.matmul ins(%am, %b0 : memref<?x64xf32, strided<[64, 1]>>, memref<64x48xf32, strided<[512, 1]>>)
        outs(%cm : memref<?x48xf32, strided<[512, 1]>>)
    scf.yield %i : index
  }
  return %last : index
}

// The loop over panels is outside. The loops over all reductions are inside, and carry the accumulators in registers. A
// dimension of size 1 has no loop.
// CHECK-LABEL: @panels_and_reductions
// CHECK-DAG:     %[[C12:.*]] = arith.constant 12 : index
// CHECK:         scf.for %{{.*}} to %[[C12]] step
// CHECK:           scf.for
// CHECK:             %{{.*}}:24 = scf.for
// CHECK:               %{{.*}}:24 = scf.for
// CHECK:                 scf.yield
// CHECK:               scf.yield
// CHECK:             vector.store
func.func @panels_and_reductions(%a: memref<1x36x3x768xf32>, %w: memref<12x3x768x64xf32>, %c: memref<1x36x12x64xf32>) {
  linalg.contract indexing_maps = [affine_map<(u, m, p, n, j, k) -> (u, m, j, k)>, affine_map<(u, m, p, n, j, k) -> (p, j, k, n)>,
                                   affine_map<(u, m, p, n, j, k) -> (u, m, p, n)>]
    ins(%a, %w : memref<1x36x3x768xf32>, memref<12x3x768x64xf32>) outs(%c : memref<1x36x12x64xf32>)
  return
}

// The left operand has a single row. Registers suffice for a second sum of each vector, for the odd steps.
// CHECK-LABEL: @one_row
// CHECK:         %[[SUMS:.*]]:8 = scf.for %{{.*}} = %c0 to %c96 step %c2 iter_args(%[[EVEN:[^ ]*]] = %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ODD:[^ ]*]] =
// CHECK:           vector.fma %{{.*}}, %{{.*}}, %[[EVEN]]
// CHECK:           vector.fma %{{.*}}, %{{.*}}, %[[ODD]]
// CHECK:         arith.addf %[[SUMS]]#0, %[[SUMS]]#4
func.func @one_row(%a: memref<96xf32>, %b: memref<96x64xf32>, %c: memref<64xf32>) {
  linalg.contract indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (k, n)>, affine_map<(n, k) -> (n)>]
    ins(%a, %b : memref<96xf32>, memref<96x64xf32>) outs(%c : memref<64xf32>)
  return
}

// With fewer rows than a block, there are no next rows to prefetch. Each vector of the other argument is used only
// once, so each of the two steps of an iteration prefetches the vectors of a later step.
// CHECK-LABEL: @few_rows
// CHECK-SAME:    %[[B:[^:]*]]: memref<96x64xf32>
// CHECK:         %[[VECTORS:.*]] = memref.reinterpret_cast %[[B]]
// CHECK-COUNT-8: memref.prefetch %[[VECTORS]]
// CHECK-NOT:     memref.prefetch
// CHECK:         return
func.func @few_rows(%a: memref<3x96xf32>, %b: memref<96x64xf32>, %c: memref<3x64xf32>) {
  linalg.matmul ins(%a, %b : memref<3x96xf32>, memref<96x64xf32>) outs(%c : memref<3x64xf32>)
  return
}

// The fill stays if an op between the fill and the product reads the output.
// CHECK-LABEL: @fill_is_read
// CHECK:         linalg.fill
// CHECK:         memref.copy
// CHECK:         scf.for
func.func @fill_is_read(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>, %d: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  memref.copy %c, %d : memref<8x16xf32> to memref<8x16xf32>
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  return
}

// The broadcast stays if its source changes between the broadcast and the product.
// CHECK-LABEL: @bias_changes
// CHECK:         linalg.broadcast
// CHECK:         memref.store
// CHECK:         scf.for
func.func @bias_changes(%bias: memref<16xf32>, %x: f32, %a: memref<8x8xf32>, %b: memref<8x16xf32>) -> memref<8x16xf32> {
  %c0 = arith.constant 0 : index
  %c = memref.alloc() : memref<8x16xf32>
  linalg.broadcast ins(%bias : memref<16xf32>) outs(%c : memref<8x16xf32>) dimensions = [0]
  memref.store %x, %bias[%c0] : memref<16xf32>
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  return %c : memref<8x16xf32>
}

// The fill is removed even if an op between it and the product accesses another buffer: the fills of two outputs may
// precede both products.
// CHECK-LABEL: @two_fills
// CHECK-NOT:     linalg
// CHECK:         return
func.func @two_fills(%a: memref<8x8xf32>, %b: memref<8x16xf32>, %c: memref<8x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<8x16xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<8x16xf32>)
  linalg.fill ins(%zero : f32) outs(%s : memref<8x16xf32>)
  linalg.matmul ins(%a, %b : memref<8x8xf32>, memref<8x16xf32>) outs(%c : memref<8x16xf32>)
  linalg.matmul ins(%a, %c : memref<8x8xf32>, memref<8x16xf32>) outs(%s : memref<8x16xf32>)
  return
}

// A long sum is split: the output is filled first, and each part of 192 products is added to it. The rows of a part are
// adjacent. The next part, 192 * 64 elements, is prefetched to L2, one cache line per iteration; the offset is at most
// that of the last 96 lines.
// CHECK-LABEL: @long_sum
// CHECK-SAME:    %{{[^:]*}}: memref<12x3072xf32>, %[[B:[^:]*]]: memref<3072x64xf32>
// CHECK-DAG:     %[[LAST:.*]] = arith.constant 10752 : index
// CHECK:         linalg.fill
// CHECK:         %[[PANEL:.*]] = memref.reinterpret_cast %[[B]]
// CHECK:         scf.for %{{.*}} = %c0 to %c3072 step %c192
// CHECK:           scf.for %[[ROW:.*]] = %c0 to %c12 step %c6
// CHECK:             %{{.*}}:24 = scf.for %{{.*}} = %c0 to %c192 step %c2
// CHECK:               arith.divui %[[ROW]], %c6
// CHECK:               arith.minui %{{.*}}, %[[LAST]]
// CHECK:               memref.prefetch %[[PANEL]][%{{.*}}], read, locality<2>
// CHECK-NOT:           memref.prefetch
// CHECK:             arith.addf
func.func @long_sum(%a: memref<12x3072xf32>, %b: memref<3072x64xf32>, %c: memref<12x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<12x64xf32>)
  linalg.matmul ins(%a, %b : memref<12x3072xf32>, memref<3072x64xf32>) outs(%c : memref<12x64xf32>)
  return
}

// Neither input is contiguous along n, but both are contiguous along k: lanes run along k. Each inner loop multiplies 4
// rows of %b with the 3 rows of %a. Then, for each row of %a, 30 shuffles add up the lanes of 16 sums. The 40 columns
// are two vectors and a half: the last has 8 products.
// CHECK-LABEL: @dot_products
// CHECK-SAME:    %[[A:[^:]*]]: memref<3x64xf32>
// CHECK:         scf.for %{{.*}} = %c0 to %c32 step %c16
// CHECK-COUNT-4:   %{{.*}}:12 = scf.for %{{.*}} = %c0 to %c64 step %c16
// CHECK-COUNT-30:  vector.shuffle
// CHECK:           vector.store
// CHECK-COUNT-60:  vector.shuffle
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c16
// CHECK-COUNT-3: vector.maskedstore
func.func @dot_products(%a: memref<3x64xf32>, %b: memref<40x64xf32>, %c: memref<3x40xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<3x40xf32>)
  linalg.contract indexing_maps = [#mk, #nk, #mn]
    ins(%a, %b : memref<3x64xf32>, memref<40x64xf32>) outs(%c : memref<3x40xf32>)
  return
}

// If the number of rows is unknown, the last row is read again instead of rows beyond the end.
// CHECK-LABEL: @unknown_dot_products
// CHECK:         %[[LAST:.*]] = arith.subi %{{.*}}, %c1
// CHECK-COUNT-16: arith.minui %{{.*}}, %[[LAST]]
func.func @unknown_dot_products(%a: memref<3x64xf32>, %b: memref<?x64xf32>, %c: memref<3x?xf32>) {
  linalg.contract indexing_maps = [#mk, #nk, #mn]
    ins(%a, %b : memref<3x64xf32>, memref<?x64xf32>) outs(%c : memref<3x?xf32>)
  return
}

// The output has a single element, as for one query and one key.
// CHECK-LABEL: @dot_product
// CHECK:         %[[SUM:.*]] = scf.for %{{.*}} = %c0 to %c64 step %c16
// CHECK:         vector.reduction <add>, %[[SUM]]
// CHECK:         vector.maskedstore
func.func @dot_product(%a: memref<1x64xf32>, %b: memref<1x64xf32>, %c: memref<1x1xf32>) {
  linalg.contract indexing_maps = [#mk, #nk, #mn]
    ins(%a, %b : memref<1x64xf32>, memref<1x64xf32>) outs(%c : memref<1x1xf32>)
  return
}

// The sum of 5 products ends within a vector.
// CHECK-LABEL: @short_dot_products
// CHECK:         vector.constant_mask [5]
// CHECK-COUNT-17: vector.maskedload
func.func @short_dot_products(%a: memref<3x5xf32>, %b: memref<16x5xf32>, %c: memref<3x16xf32>) {
  linalg.contract indexing_maps = [#mk, #nk, #mn]
    ins(%a, %b : memref<3x5xf32>, memref<16x5xf32>) outs(%c : memref<3x16xf32>)
  return
}

// No input is contiguous along n, and the first input is not contiguous along k, so there are no vectors.
// CHECK-LABEL: @no_lanes
// CHECK-NOT:     vector
// CHECK:         arith.mulf %{{.*}} : f32
func.func @no_lanes(%a: memref<8x16xf32>, %b: memref<32x8xf32>, %c: memref<16x32xf32>) {
  // expected-remark @below {{contraction becomes scalar loops: expected a dimension whose elements are adjacent in the output and in one input, or a sum over adjacent elements of both inputs}}
  linalg.contract indexing_maps = [#km, #nk, #mn]
    ins(%a, %b : memref<8x16xf32>, memref<32x8xf32>) outs(%c : memref<16x32xf32>)
  return
}

// The pass changes neither an op with another body nor an op without a reduction.
// CHECK-LABEL: @not_ours
// CHECK:         linalg.generic
// CHECK:         linalg.mul
func.func @not_ours(%x: memref<8x8xf32>, %y: memref<8x8xf32>) {
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %product = arith.mulf %p, %q : f32
    %max = arith.maximumf %z, %product : f32
    linalg.yield %max : f32
  }
  linalg.mul ins(%x, %x : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>)
  return
}
}
