// RUN: attn-opt %s -attn-online-to-vector -canonicalize -cse | FileCheck %s

#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>

// A step without a mask: three vectors of queries, each with four keys at a time. Scores are not scaled: the scale is
// part of the factor of the exponent. If the maximum is large, the exponent is (score - max) * factor, otherwise score
// * factor - max * factor.
module attributes {attn.target = #v4} {
// CHECK-LABEL: @update
// CHECK-DAG:   %[[FACTOR:.*]] = arith.constant dense<0.180336878> : vector<16xf32>
// CHECK-DAG:   %[[MINUS_FACTOR:.*]] = arith.constant dense<-0.180336878> : vector<16xf32>
// CHECK-DAG:   %[[LARGE:.*]] = arith.constant dense<22713.0469> : vector<16xf32>
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK:       scf.for %[[Q:.*]] = %c0 to %c48 step %c16
// CHECK:         scf.for %{{.*}} = %c0 to %c128 step %c4 iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-NOT:       arith.mulf
// CHECK:           scf.yield
// CHECK:         %[[SIZE:.*]] = math.absf %[[MAX:.*]] :
// CHECK:         %[[IS_LARGE:.*]] = arith.cmpf uge, %[[SIZE]], %[[LARGE]]
// CHECK:         %[[OFFSET:.*]] = arith.mulf %[[MAX]], %[[MINUS_FACTOR]]
// CHECK:         %[[SUBTRACTED:.*]] = arith.select %[[IS_LARGE]], %[[MAX]], %[[ZERO]]
// CHECK:         %[[ADDED:.*]] = arith.select %[[IS_LARGE]], %[[ZERO]], %[[OFFSET]]
// CHECK:         scf.for %{{.*}} = %c0 to %c128 step %c4 iter_args({{.*}}) -> (vector<16xf32>)
// CHECK-COUNT-4:   vector.load
// CHECK:           %[[DIFFERENCE:.*]] = arith.subf %{{.*}}, %[[SUBTRACTED]]
// CHECK:           llvm.intr.fma(%[[DIFFERENCE]], %[[FACTOR]], %[[ADDED]])
// CHECK-COUNT-4:   vector.store
// CHECK:         vector.reduction <or>
// CHECK:         scf.if
// CHECK:           scf.for %{{.*}} = %c0 to %c64 step %c4
// CHECK-NOT:   vector.masked
func.func @update(%query: memref<64x48xf32>, %key: memref<128x64xf32>, %s: memref<128x48xf32>, %m: memref<48xf32>, %l: memref<48xf32>, %a: memref<64x48xf32>,
                  %q0: index, %k0: index) {
  attn.online_step ins(%query, %key, %key : memref<64x48xf32>, memref<128x64xf32>, memref<128x64xf32>)
    outs(%s, %m, %l, %a : memref<128x48xf32>, memref<48xf32>, memref<48xf32>, memref<64x48xf32>)
    at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  return
}

// The accumulators of the product of query and key become probabilities; one multiply-add with the offset of the query
// gives an exponent. Scores are not stored; probabilities are stored four at a time, as soon as they are computed. Only
// if max is -inf or large, or if the sums turn out too large, does the loop store the scores and update the tile as
// above. The product starts from zero in both cases, so that it has the same bits.
// CHECK-LABEL: @fast
// CHECK-SAME:    %[[KEYS:[^:]*]]: memref<96x64xf32>, %{{[^:]*}}: memref<64x48xf32>, %[[S:[^:]*]]: memref<96x48xf32>, %[[M:[^:]*]]: memref<48xf32>, %[[L:[^:]*]]: memref<48xf32>
// CHECK-DAG:   %[[FACTOR:.*]] = arith.constant dense<0.180336878> : vector<16xf32>
// CHECK-DAG:   %[[LARGE:.*]] = arith.constant dense<22713.0469> : vector<16xf32>
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-DAG:   %[[BIG:.*]] = arith.constant dense<0x49800000> : vector<16xf32>
// CHECK-DAG:   %[[SUMS:.*]] = memref.alloca() {alignment = 64 : i64} : memref<48xf32>
// CHECK-DAG:   %[[GROWS:.*]] = memref.alloca() : memref<i1>
// CHECK:       memref.store %false, %[[GROWS]]
// CHECK:       %[[NEEDS:.*]] = scf.for
// CHECK:         arith.cmpf uge, %{{.*}}, %[[LARGE]]
// CHECK:       %[[GREW:.*]] = memref.load %[[GROWS]]
// CHECK:       %[[FIRST:.*]] = arith.ori %[[NEEDS]], %[[GREW]]
// CHECK:       scf.while (%[[EXACT:.*]] = %[[FIRST]])
// CHECK:         %[[SCORES:.*]] = memref.reinterpret_cast %[[S]]
// CHECK:         %[[MAX:.*]] = vector.load %[[M]]
// CHECK:         %[[OFFSET:.*]] = arith.mulf %[[MAX]],
// CHECK:         scf.for %{{.*}} = %c0 to %c96 step %c8 iter_args
// CHECK:           %[[PRODUCT:.*]]:24 = scf.for {{.*}} iter_args({{.*}} = %[[ZERO]],
// CHECK-NOT:         vector.store
// CHECK:             scf.yield
// CHECK:           %{{.*}}:3 = scf.if %[[EXACT]]
// CHECK-COUNT-24:    vector.store %[[PRODUCT]]#{{.*}}, %[[SCORES]]
// CHECK-NOT:         vector.store
// CHECK:           } else {
// CHECK:             llvm.intr.fma(%[[PRODUCT]]#0, %[[FACTOR]], %[[OFFSET]])
// CHECK-COUNT-20:    vector.fma
// CHECK-NOT:         vector.fma
// CHECK-COUNT-4:     vector.store %{{.*}}, %[[SCORES]]
// CHECK-COUNT-20:    vector.fma
// CHECK-NOT:         vector.fma
// INDEX is the position of the next store: it follows one row of three vectors and one vector of the next row.
// CHECK:             %[[INDEX:.*]] = arith.addi %{{.*}}, %c64
// CHECK:             vector.store %{{.*}}, %[[SCORES]][%[[INDEX]]]
// CHECK-COUNT-3:     vector.store %{{.*}}, %[[SCORES]]
// CHECK-COUNT-20:    vector.fma
// CHECK-COUNT-4:     vector.store %{{.*}}, %[[SCORES]]
// CHECK-COUNT-20:    vector.fma
// CHECK-COUNT-4:     vector.store %{{.*}}, %[[SCORES]]
// CHECK-COUNT-20:    vector.fma
// CHECK-COUNT-4:     vector.store %{{.*}}, %[[SCORES]]
// CHECK-COUNT-20:    vector.fma
// CHECK-COUNT-4:     vector.store %{{.*}}, %[[SCORES]]
// CHECK-NOT:         {{vector.fma|vector.store}}
// CHECK:             scf.yield
// CHECK-COUNT-3: vector.store %{{.*}}, %[[SUMS]]
// CHECK:         %[[AGAIN:.*]] = scf.if %[[EXACT]]
// CHECK:           arith.cmpf ogt
// CHECK:           memref.store %{{.*}}, %[[GROWS]]
// CHECK-NEXT:      scf.yield %false
// CHECK-NEXT:    } else {
// CHECK:           %[[ISBIG:.*]] = scf.for
// CHECK:             arith.cmpf uge, %{{.*}}, %[[BIG]]
// CHECK:           scf.if %[[ISBIG]] {
// CHECK-NEXT:      } else {
// CHECK:             vector.store %{{.*}}, %[[L]]
// CHECK:           scf.yield %[[ISBIG]]
// CHECK:         scf.condition(%[[AGAIN]])
func.func @fast(%keys: memref<96x64xf32>, %queries: memref<64x48xf32>, %s: memref<96x48xf32>, %m: memref<48xf32>,
                %l: memref<48xf32>, %a: memref<64x48xf32>, %q0: index, %k0: index) {
  attn.online_step ins(%queries, %keys, %keys : memref<64x48xf32>, memref<96x64xf32>, memref<96x64xf32>)
    outs(%s, %m, %l, %a : memref<96x48xf32>, memref<48xf32>, memref<48xf32>, memref<64x48xf32>)
    at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  return
}

// A sum of 256 products has two accumulators, so registers suffice for blocks of 4 rows instead of 8. No partial sum is
// stored.
// CHECK-LABEL: @fast_long_heads
// CHECK:       scf.while
// CHECK:         scf.for %{{.*}} = %c0 to %c96 step %c4 iter_args
// CHECK:           %[[SUMS:.*]]:24 = scf.for %{{.*}} = %c0 to %c256 step %c2 iter_args(%[[EVEN:[^ ]*]] = %[[ZERO:[^ ]*]], {{.*}}, %[[ODD:[^ ]*]] = %[[ZERO]], {{.*}}, {{.*}}, {{.*}}, {{.*}}, {{.*}}, {{.*}}, {{.*}}, {{.*}}, {{.*}}, {{.*}}, {{.*}}) ->
// CHECK:             vector.fma %{{.*}}, %{{.*}}, %[[EVEN]]
// CHECK:             vector.fma %{{.*}}, %{{.*}}, %[[ODD]]
// CHECK-NOT:       vector.store
// CHECK:           arith.addf %[[SUMS]]#0, %[[SUMS]]#12
func.func @fast_long_heads(%keys: memref<96x256xf32>, %queries: memref<256x48xf32>, %s: memref<96x48xf32>, %m: memref<48xf32>,
                           %l: memref<48xf32>, %a: memref<256x48xf32>, %q0: index, %k0: index) {
  attn.online_step ins(%queries, %keys, %keys : memref<256x48xf32>, memref<96x256xf32>, memref<96x256xf32>)
    outs(%s, %m, %l, %a : memref<96x48xf32>, memref<48xf32>, memref<48xf32>, memref<256x48xf32>)
    at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  return
}

// With a mask, -inf replaces the scores of hidden pairs before the maximum is subtracted, and their probability is 0.
// CHECK-LABEL: @fast_causal
// CHECK-DAG:   %[[HIDDEN:.*]] = arith.constant dense<0xFF800000> : vector<16xf32>
// CHECK:       scf.while (%[[EXACT:.*]] = %
// CHECK-NOT:     arith.negf
// CHECK:         scf.if %[[EXACT]]
// CHECK:         } else {
// CHECK:           arith.select %{{.*}}, %{{.*}}, %[[HIDDEN]]
// CHECK:           arith.subf
// CHECK:           arith.cmpf oeq, %{{.*}}, %[[HIDDEN]]
// CHECK:           arith.select
// CHECK:         scf.if %[[EXACT]]
func.func @fast_causal(%keys: memref<96x64xf32>, %queries: memref<64x48xf32>, %s: memref<96x48xf32>, %m: memref<48xf32>,
                       %l: memref<48xf32>, %a: memref<64x48xf32>, %q0: index, %k0: index) {
  attn.online_step ins(%queries, %keys, %keys : memref<64x48xf32>, memref<96x64xf32>, memref<96x64xf32>)
    outs(%s, %m, %l, %a : memref<96x48xf32>, memref<48xf32>, memref<48xf32>, memref<64x48xf32>)
    at(%q0, %k0) mask(#attn.causal) {capture_maps = [], scale = 1.250000e-01 : f32}
  return
}

// With a single key, the product and the update are not fused: scores are stored, then updated. The second product of a
// masked step skips probabilities of 0.
// CHECK-LABEL: @single_key
// CHECK-NOT:   scf.while
// CHECK:       vector.fma
// CHECK:       math.absf
// CHECK:       arith.cmpf une
// CHECK:       arith.cmpf une, %[[P:.*]], %{{.*}} : vector<16xf32>
// CHECK:       %[[SUM:.*]] = vector.fma %{{.*}}, %[[P]], %[[ACC:.*]] : vector<16xf32>
// CHECK:       arith.select %{{.*}}, %[[SUM]], %[[ACC]]
// CHECK:       return
func.func @single_key(%query: memref<64x48xf32>, %key: memref<1x64xf32>, %s: memref<1x48xf32>, %m: memref<48xf32>,
                      %l: memref<48xf32>, %a: memref<64x48xf32>, %q0: index, %k0: index) {
  attn.online_step ins(%query, %key, %key : memref<64x48xf32>, memref<1x64xf32>, memref<1x64xf32>)
    outs(%s, %m, %l, %a : memref<1x48xf32>, memref<48xf32>, memref<48xf32>, memref<64x48xf32>)
    at(%q0, %k0) mask(#attn.causal) {capture_maps = [], scale = 1.250000e-01 : f32}
  return
}

// With one query, one key and one element, no dimension fills lanes. The packed queries keep the stride of their panel,
// 16.
// CHECK-LABEL: @single_pair
// CHECK:       return
func.func @single_pair(%query: memref<1x1xf32, strided<[16, 16]>>, %key: memref<1x1xf32>, %s: memref<1x1xf32, strided<[16, 1]>>,
                       %m: memref<1xf32>, %l: memref<1xf32>, %a: memref<1x1xf32, strided<[16, 1]>>, %q0: index, %k0: index) {
  attn.online_step ins(%query, %key, %key : memref<1x1xf32, strided<[16, 16]>>, memref<1x1xf32>, memref<1x1xf32>)
    outs(%s, %m, %l, %a : memref<1x1xf32, strided<[16, 1]>>, memref<1xf32>, memref<1xf32>, memref<1x1xf32, strided<[16, 1]>>)
    at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  return
}

// In a loop over keys, each block of eight keys prefetches eight rows, a cache line per step. The first six blocks
// prefetch rows of the output of the loop, the next six those of the queries that are packed next. Later blocks
// prefetch the last rows again.
// CHECK-LABEL: @edges
// CHECK:       scf.for
// CHECK:         scf.for {{.*}} step %c8
// CHECK:           scf.for %[[STEP:.*]] = %c0 to %c32 step %c2
// CHECK:             %[[PAIR:.*]] = arith.divui %[[STEP]], %c2
// CHECK:             %[[BLOCK:.*]] = arith.divui %{{.*}}, %c8
// CHECK:             %[[GROUP:.*]] = arith.minui %[[BLOCK]], %c11
// CHECK:             memref.extract_aligned_pointer_as_index
// CHECK:             %[[OUT_ROW:.*]] = llvm.getelementptr
// CHECK:             memref.extract_aligned_pointer_as_index
// CHECK:             arith.addi %{{.*}}, %c48
// CHECK:             %[[NEXT_ROW:.*]] = llvm.getelementptr
// CHECK:             %[[IS_NEXT:.*]] = arith.cmpi uge, %[[GROUP]], %c6
// CHECK:             %[[ROW:.*]] = arith.select %[[IS_NEXT]], %[[NEXT_ROW]], %[[OUT_ROW]] : !llvm.ptr
// CHECK:             %[[BYTES:.*]] = arith.muli %[[PAIR]], %c64
// CHECK:             %[[LINE:.*]] = llvm.getelementptr %[[ROW]]
// CHECK:             "llvm.intr.prefetch"(%[[LINE]]) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
// CHECK-NOT:         llvm.intr.prefetch
// CHECK:             scf.yield
func.func @edges(%queries: memref<192x32xf32>, %keys: memref<?x32xf32>, %packed: memref<1x32x48xf32>,
    %s: memref<96x48xf32>, %m: memref<48xf32>, %l: memref<48xf32>, %a: memref<32x48xf32>,
    %out: memref<192x32xf32>, %q0: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  %tile_of_queries = memref.subview %queries[%q0, 0] [48, 32] [1, 1] : memref<192x32xf32> to memref<48x32xf32, strided<[32, 1], offset: ?>>
  %tile_of_outs = memref.subview %out[%q0, 0] [48, 32] [1, 1] : memref<192x32xf32> to memref<48x32xf32, strided<[32, 1], offset: ?>>
  attn.pack ins(%tile_of_queries : memref<48x32xf32, strided<[32, 1], offset: ?>>) outs(%packed : memref<1x32x48xf32>)
  %panel = memref.subview %packed[0, 0, 0] [1, 32, 48] [1, 1, 1] : memref<1x32x48xf32> to memref<32x48xf32>
  scf.for %k0 = %c0 to %n step %c96 {
    %tile = memref.subview %keys[%k0, 0] [96, 32] [1, 1] : memref<?x32xf32> to memref<96x32xf32, strided<[32, 1], offset: ?>>
    attn.online_step ins(%panel, %tile, %tile : memref<32x48xf32>, memref<96x32xf32, strided<[32, 1], offset: ?>>, memref<96x32xf32, strided<[32, 1], offset: ?>>)
      outs(%s, %m, %l, %a : memref<96x48xf32>, memref<48xf32>, memref<48xf32>, memref<32x48xf32>)
      at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  }
  attn.online_finish ins(%l, %a : memref<48xf32>, memref<32x48xf32>) outs(%tile_of_outs : memref<48x32xf32, strided<[32, 1], offset: ?>>)
  return
}

// Keys and values of all heads do not fit in L2. Each of 11 tiles of queries prefetches 47 rows of keys and of values
// of the next head, which begins 512 rows further: six blocks for the next queries, then six for the keys, then six for
// the values.
// CHECK-LABEL: @next_head
// CHECK:       scf.for %[[K0:.*]] = %c0
// CHECK:         %[[TILE:.*]] = arith.divui %{{.*}}, %c48
// CHECK:         %[[SHARE:.*]] = arith.muli %[[TILE]], %c47
// CHECK:         %[[BEHIND:.*]] = arith.addi %[[SHARE]], %c512
// CHECK:         %[[FIRST:.*]] = arith.subi %[[BEHIND]], %[[K0]]
// CHECK:         scf.for {{.*}} step %c8
// CHECK:           scf.for
// CHECK:             %[[GROUP:.*]] = arith.minui %{{.*}}, %c17
// CHECK:             %[[QUERIES:.*]] = llvm.getelementptr
// CHECK:             arith.addi %[[FIRST]]
// CHECK:             %[[KEYS:.*]] = llvm.getelementptr
// CHECK:             %[[IS_KEY:.*]] = arith.cmpi uge, %[[GROUP]], %c6
// CHECK:             arith.select %[[IS_KEY]], %[[KEYS]], %[[QUERIES]] : !llvm.ptr
// CHECK:             arith.addi %[[FIRST]]
// CHECK:             arith.cmpi uge, %[[GROUP]], %c12
// CHECK:             arith.select {{.*}} : !llvm.ptr
// CHECK:             llvm.intr.prefetch
// CHECK-NOT:         llvm.intr.prefetch
// CHECK:             scf.yield
func.func @next_head(%queries: memref<24x512x32xf32>, %keys: memref<24x512x32xf32>, %values: memref<24x512x32xf32>, %packed: memref<1x32x48xf32>,
    %s: memref<96x48xf32>, %m: memref<48xf32>, %l: memref<48xf32>, %a: memref<32x48xf32>, %h: index, %q0: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  %tile_of_queries = memref.subview %queries[%h, %q0, 0] [1, 48, 32] [1, 1, 1] : memref<24x512x32xf32> to memref<48x32xf32, strided<[32, 1], offset: ?>>
  attn.pack ins(%tile_of_queries : memref<48x32xf32, strided<[32, 1], offset: ?>>) outs(%packed : memref<1x32x48xf32>)
  %panel = memref.subview %packed[0, 0, 0] [1, 32, 48] [1, 1, 1] : memref<1x32x48xf32> to memref<32x48xf32>
  scf.for %k0 = %c0 to %n step %c96 {
    %tile = memref.subview %keys[%h, %k0, 0] [1, 96, 32] [1, 1, 1] : memref<24x512x32xf32> to memref<96x32xf32, strided<[32, 1], offset: ?>>
    %values_tile = memref.subview %values[%h, %k0, 0] [1, 96, 32] [1, 1, 1] : memref<24x512x32xf32> to memref<96x32xf32, strided<[32, 1], offset: ?>>
    attn.online_step ins(%panel, %tile, %values_tile : memref<32x48xf32>, memref<96x32xf32, strided<[32, 1], offset: ?>>, memref<96x32xf32, strided<[32, 1], offset: ?>>)
      outs(%s, %m, %l, %a : memref<96x48xf32>, memref<48xf32>, memref<48xf32>, memref<32x48xf32>)
      at(%h, %q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  }
  return
}

// The keys and values of all heads fit in L2, so those of the next head are not prefetched.
// CHECK-LABEL: @few_heads
// CHECK:       arith.minui %{{.*}}, %c5
// CHECK-NOT:   arith.select {{.*}} : !llvm.ptr
// CHECK:       return
func.func @few_heads(%queries: memref<4x512x32xf32>, %keys: memref<4x512x32xf32>, %values: memref<4x512x32xf32>, %packed: memref<1x32x48xf32>,
    %s: memref<96x48xf32>, %m: memref<48xf32>, %l: memref<48xf32>, %a: memref<32x48xf32>, %h: index, %q0: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  %tile_of_queries = memref.subview %queries[%h, %q0, 0] [1, 48, 32] [1, 1, 1] : memref<4x512x32xf32> to memref<48x32xf32, strided<[32, 1], offset: ?>>
  attn.pack ins(%tile_of_queries : memref<48x32xf32, strided<[32, 1], offset: ?>>) outs(%packed : memref<1x32x48xf32>)
  %panel = memref.subview %packed[0, 0, 0] [1, 32, 48] [1, 1, 1] : memref<1x32x48xf32> to memref<32x48xf32>
  scf.for %k0 = %c0 to %n step %c96 {
    %tile = memref.subview %keys[%h, %k0, 0] [1, 96, 32] [1, 1, 1] : memref<4x512x32xf32> to memref<96x32xf32, strided<[32, 1], offset: ?>>
    %values_tile = memref.subview %values[%h, %k0, 0] [1, 96, 32] [1, 1, 1] : memref<4x512x32xf32> to memref<96x32xf32, strided<[32, 1], offset: ?>>
    attn.online_step ins(%panel, %tile, %values_tile : memref<32x48xf32>, memref<96x32xf32, strided<[32, 1], offset: ?>>, memref<96x32xf32, strided<[32, 1], offset: ?>>)
      outs(%s, %m, %l, %a : memref<96x48xf32>, memref<48xf32>, memref<48xf32>, memref<32x48xf32>)
      at(%h, %q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  }
  return
}

// No other tile of queries reads the keys, so each block prefetches the keys of the next tile, and the values of its
// own keys.
// CHECK-LABEL: @single_tile
// CHECK:         scf.for %[[KEY:.*]] = %c0 to %c96 step %c8
// CHECK:           scf.for
// CHECK:             arith.addi %[[KEY]], %c96
// CHECK-COUNT-3:     llvm.intr.prefetch
// CHECK-NOT:         llvm.intr.prefetch
// CHECK:             vector.fma
// CHECK:             scf.yield
func.func @single_tile(%queries: memref<48x32xf32>, %keys: memref<?x32xf32>, %values: memref<?x32xf32>, %packed: memref<1x32x48xf32>,
    %s: memref<96x48xf32>, %m: memref<48xf32>, %l: memref<48xf32>, %a: memref<32x48xf32>,
    %out: memref<48x32xf32>, %q0: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  attn.pack ins(%queries : memref<48x32xf32>) outs(%packed : memref<1x32x48xf32>)
  %panel = memref.subview %packed[0, 0, 0] [1, 32, 48] [1, 1, 1] : memref<1x32x48xf32> to memref<32x48xf32>
  scf.for %k0 = %c0 to %n step %c96 {
    %tile = memref.subview %keys[%k0, 0] [96, 32] [1, 1] : memref<?x32xf32> to memref<96x32xf32, strided<[32, 1], offset: ?>>
    %values_tile = memref.subview %values[%k0, 0] [96, 32] [1, 1] : memref<?x32xf32> to memref<96x32xf32, strided<[32, 1], offset: ?>>
    attn.online_step ins(%panel, %tile, %values_tile : memref<32x48xf32>, memref<96x32xf32, strided<[32, 1], offset: ?>>, memref<96x32xf32, strided<[32, 1], offset: ?>>)
      outs(%s, %m, %l, %a : memref<96x48xf32>, memref<48xf32>, memref<48xf32>, memref<32x48xf32>)
      at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  }
  attn.online_finish ins(%l, %a : memref<48xf32>, memref<32x48xf32>) outs(%out : memref<48x32xf32>)
  return
}

// There is no other tile of keys either, so the same prefetches reach the keys of the next head.
// CHECK-LABEL: @single_tile_of_keys
// CHECK:       scf.for %[[KEY:.*]] = %c0 to %c96 step %c8
// CHECK:         scf.for %{{.*}} = %c0 to %c32 step %c2
// CHECK:           arith.addi %[[KEY]], %c96
// CHECK-COUNT-3:   llvm.intr.prefetch
// CHECK-NOT:       llvm.intr.prefetch
// CHECK:           vector.fma
// CHECK:           scf.yield
// CHECK:         scf.if
func.func @single_tile_of_keys(%queries: memref<48x32xf32>, %keys: memref<96x32xf32>, %values: memref<96x32xf32>,
    %out: memref<48x32xf32>, %packed: memref<1x32x48xf32>, %s: memref<96x48xf32>, %m: memref<48xf32>,
    %l: memref<48xf32>, %a: memref<32x48xf32>, %q0: index) {
  %k0 = arith.constant 0 : index
  attn.pack ins(%queries : memref<48x32xf32>) outs(%packed : memref<1x32x48xf32>)
  %panel = memref.subview %packed[0, 0, 0] [1, 32, 48] [1, 1, 1] : memref<1x32x48xf32> to memref<32x48xf32>
  attn.online_step ins(%panel, %keys, %values : memref<32x48xf32>, memref<96x32xf32>, memref<96x32xf32>)
    outs(%s, %m, %l, %a : memref<96x48xf32>, memref<48xf32>, memref<48xf32>, memref<32x48xf32>)
    at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32}
  attn.online_finish ins(%l, %a : memref<48xf32>, memref<32x48xf32>) outs(%out : memref<48x32xf32>)
  return
}

// CHECK-LABEL: @init
// CHECK:       scf.for %{{.*}} = %c0 to %c48 step %c16
// CHECK:         vector.store %[[LOWEST:.*]], %{{.*}} : memref<48xf32>
// CHECK:         vector.store %[[ZERO:.*]], %{{.*}} : memref<48xf32>
// CHECK:         scf.for
// CHECK-COUNT-4:   vector.store %[[ZERO]], %{{.*}} : memref<64x48xf32>
func.func @init(%m: memref<48xf32>, %l: memref<48xf32>, %a: memref<64x48xf32>) {
  attn.online_init outs(%m, %l, %a : memref<48xf32>, memref<48xf32>, memref<64x48xf32>)
  return
}

// The merge of the states of two vectors of queries. The factor of a part is exp(its maximum - greatest maximum): 0 for
// a part without keys, or 1 if no part has keys. The state is rescaled, then parts are added in order, four rows of acc
// at a time.
// CHECK-LABEL: @merge
// CHECK-SAME:    %[[MS:[^:]*]]: memref<?x32xf32>, %[[LS:[^:]*]]: memref<?x32xf32>, %[[AS:[^:]*]]: memref<?x64x32xf32>,
// CHECK-SAME:    %[[M:[^:]*]]: memref<32xf32>, %[[L:[^:]*]]: memref<32xf32>, %[[A:[^:]*]]: memref<64x32xf32>
// CHECK-DAG:   %[[FACTOR:.*]] = arith.constant dense<0.180336878> : vector<16xf32>
// CHECK-DAG:   %[[LOWEST:.*]] = arith.constant dense<0xFF800000> : vector<16xf32>
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-DAG:   %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<16xf32>
// CHECK:       scf.for %[[Q:.*]] = %c0 to %c32 step %c16
// CHECK:         %[[PARTS:.*]] = memref.dim %[[MS]], %c0
// CHECK:         %[[OLD:.*]] = vector.load %[[M]][%[[Q]]]
// CHECK:         %[[MAX:.*]] = scf.for %{{.*}} = %c0 to %[[PARTS]] step %c1 iter_args(%{{.*}} = %[[OLD]])
// CHECK:         %[[NONE:.*]] = arith.cmpf oeq, %[[MAX]], %[[LOWEST]]
// CHECK:         %[[NO_KEYS:.*]] = arith.select %[[NONE]], %[[ONE]], %[[ZERO]]
// CHECK:         %[[STATE:.*]] = arith.select %{{.*}}, %[[NO_KEYS]], %{{.*}}
// CHECK:         vector.store %[[MAX]], %[[M]][%[[Q]]]
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c4
// CHECK:           arith.mulf %{{.*}}, %[[STATE]]
// CHECK:         %[[START:.*]] = arith.mulf %[[STATE]], %{{.*}}
// CHECK:         %[[SUM:.*]] = scf.for %[[N:.*]] = %c0 to %[[PARTS]] step %c1 iter_args(%[[CARRIED:.*]] = %[[START]])
// CHECK:           %[[PART:.*]] = arith.select %{{.*}}, %[[NO_KEYS]], %{{.*}}
// CHECK:           scf.for %[[E:.*]] = %c0 to %c64 step %c4
// CHECK:             %[[ROW:.*]] = vector.load %[[A]][%[[E]], %[[Q]]]
// CHECK:             %[[PART_ROW:.*]] = vector.load %[[AS]][%[[N]], %[[E]], %[[Q]]]
// CHECK:             vector.fma %[[PART]], %[[PART_ROW]], %[[ROW]]
// CHECK:           %[[PART_SUM:.*]] = vector.load %[[LS]][%[[N]], %[[Q]]]
// CHECK:           vector.fma %[[PART]], %[[PART_SUM]], %[[CARRIED]]
// CHECK:         vector.store %[[SUM]], %[[L]][%[[Q]]]
func.func @merge(%ms: memref<?x32xf32>, %ls: memref<?x32xf32>, %as: memref<?x64x32xf32>, %m: memref<32xf32>, %l: memref<32xf32>, %a: memref<64x32xf32>) {
  attn.online_merge ins(%ms, %ls, %as : memref<?x32xf32>, memref<?x32xf32>, memref<?x64x32xf32>)
    outs(%m, %l, %a : memref<32xf32>, memref<32xf32>, memref<64x32xf32>) {scale = 1.250000e-01 : f32}
  return
}

// A tail of static size: the one full vector has no loop, and the two queries after it have a constant mask.
// CHECK-LABEL: @remainder
// CHECK:       vector.store %{{.*}}[%c0] : memref<18xf32>
// CHECK:       vector.constant_mask [2] : vector<16xi1>
// CHECK:       vector.maskedstore %{{.*}}[%c16]
// CHECK-NOT:   scf.if
func.func @remainder(%m: memref<18xf32>, %l: memref<18xf32>, %a: memref<4x18xf32>) {
  attn.online_init outs(%m, %l, %a : memref<18xf32>, memref<18xf32>, memref<4x18xf32>)
  return
}

// Dynamic sizes: after a loop over full vectors comes a vector with a mask that is computed at run time.
// CHECK-LABEL: @dynamic
// CHECK:       scf.for
// CHECK:         vector.store
// CHECK:       scf.if
// CHECK:         vector.create_mask %{{.*}} : vector<16xi1>
// CHECK:         vector.maskedstore
func.func @dynamic(%m: memref<?xf32>, %l: memref<?xf32>, %a: memref<?x?xf32, strided<[48, 1], offset: ?>>) {
  attn.online_init outs(%m, %l, %a : memref<?xf32>, memref<?xf32>, memref<?x?xf32, strided<[48, 1], offset: ?>>)
  return
}

// Pairs are hidden before the maximum is computed. Lanes are compared with a 32-bit bound.
// CHECK-LABEL: @causal
// CHECK-DAG:   %[[LANES:.*]] = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi32>
// CHECK-DAG:   %[[HIDDEN:.*]] = arith.constant dense<0xFF800000> : vector<16xf32>
// CHECK:       scf.for
// CHECK:         scf.for
// CHECK:           arith.maxsi
// CHECK:           arith.minsi
// CHECK:           %[[KEPT:.*]] = arith.cmpi sle, %{{.*}}, %[[LANES]] : vector<16xi32>
// CHECK:           arith.select %[[KEPT]], %{{.*}}, %[[HIDDEN]]
// CHECK:           arith.cmpf ogt
// CHECK:         scf.for
// CHECK:           %[[ISHIDDEN:.*]] = arith.cmpf oeq, %{{.*}}, %[[HIDDEN]]
// CHECK:           arith.select %[[ISHIDDEN]], %{{.*}}, %{{.*}}
func.func @causal(%query: memref<64x32xf32>, %key: memref<64x64xf32>, %s: memref<64x32xf32>, %m: memref<32xf32>, %l: memref<32xf32>, %a: memref<64x32xf32>,
                  %q0: index, %k0: index) {
  attn.online_step ins(%query, %key, %key : memref<64x32xf32>, memref<64x64xf32>, memref<64x64xf32>)
    outs(%s, %m, %l, %a : memref<64x32xf32>, memref<32xf32>, memref<32xf32>, memref<64x32xf32>)
    at(%q0, %k0) mask(#attn.causal) {capture_maps = [], scale = 1.250000e-01 : f32}
  return
}

// A length that is the same for every query and key is read once and compared as a scalar.
// CHECK-LABEL: @lengths
// CHECK:       scf.for
// CHECK:         memref.load %{{.*}}[] : memref<i32>
// CHECK:         scf.for
// CHECK-NOT:       memref<i32>
// CHECK:           %[[KEPT:.*]] = arith.cmpi sge, %{{.*}} : index
// CHECK:           vector.broadcast %[[KEPT]] : i1 to vector<16xi1>
// CHECK:         scf.for
func.func @lengths(%query: memref<64x32xf32>, %key: memref<64x64xf32>, %s: memref<64x32xf32>, %m: memref<32xf32>, %l: memref<32xf32>, %a: memref<64x32xf32>,
                   %n: memref<i32>, %q0: index, %k0: index) {
  attn.online_step ins(%query, %key, %key : memref<64x32xf32>, memref<64x64xf32>, memref<64x64xf32>)
    captures(%n : memref<i32>)
    outs(%s, %m, %l, %a : memref<64x32xf32>, memref<32xf32>, memref<32xf32>, memref<64x32xf32>)
    at(%q0, %k0) mask(#attn.lengths<0>) {capture_maps = [affine_map<(k, q) -> ()>], scale = 1.250000e-01 : f32}
  return
}

// The region gets the scaled score. A slope stays a scalar until it is multiplied by a vector; a bias is read as rows.
// CHECK-LABEL: @region
// CHECK-DAG:   %[[SCALE:.*]] = arith.constant dense<1.250000e-01> : vector<16xf32>
// CHECK-DAG:   arith.constant dense<1.44269502> : vector<16xf32>
// CHECK:       scf.for
// CHECK:         %[[SLOPE:.*]] = memref.load %{{.*}}[] : memref<f32>
// CHECK:         scf.for
// CHECK:           arith.mulf %{{.*}}, %[[SCALE]]
// CHECK:           %[[BIAS:.*]] = vector.load %{{.*}} : memref<64x32xf32>
// CHECK:           arith.subi %{{.*}} : vector<16xindex>
// CHECK:           arith.sitofp %{{.*}} : vector<16xi64> to vector<16xf32>
// CHECK:           vector.broadcast %[[SLOPE]] : f32 to vector<16xf32>
// CHECK:           arith.addf %{{.*}}, %[[BIAS]]
func.func @region(%query: memref<64x32xf32>, %key: memref<64x64xf32>, %s: memref<64x32xf32>, %m: memref<32xf32>, %l: memref<32xf32>, %a: memref<64x32xf32>,
                  %slope: memref<f32>, %bias: memref<64x32xf32>, %q0: index, %k0: index) {
  attn.online_step ins(%query, %key, %key : memref<64x32xf32>, memref<64x64xf32>, memref<64x64xf32>)
    captures(%slope, %bias : memref<f32>, memref<64x32xf32>)
    outs(%s, %m, %l, %a : memref<64x32xf32>, memref<32xf32>, memref<32xf32>, memref<64x32xf32>)
    at(%q0, %k0)
    {capture_maps = [affine_map<(k, q) -> ()>, affine_map<(k, q) -> (k, q)>], scale = 1.250000e-01 : f32} score {
  ^bb0(%q: index, %k: index, %score: f32, %c0: f32, %c1: f32):
    %distance = arith.subi %k, %q : index
    %i = arith.index_cast %distance : index to i64
    %f = arith.sitofp %i : i64 to f32
    %t = arith.mulf %f, %c0 : f32
    %u = arith.addf %score, %t : f32
    %r = arith.addf %u, %c1 : f32
    attn.yield %r : f32
  }
  return
}

// Booleans are bytes in memory, so lanes are read one by one, not as a vector of bits.
// CHECK-LABEL: @boolean
// CHECK-COUNT-16: memref.load %{{.*}} : memref<64x16xi1>
// CHECK:       vector.from_elements {{.*}} : vector<16xi8>
// CHECK:       arith.cmpi ne, {{.*}} : vector<16xi8>
// CHECK-NOT:   vector<16xi1>, memref
func.func @boolean(%query: memref<64x16xf32>, %key: memref<64x64xf32>, %s: memref<64x16xf32>, %m: memref<16xf32>, %l: memref<16xf32>, %a: memref<64x16xf32>,
                   %keep: memref<64x16xi1>, %q0: index, %k0: index) {
  attn.online_step ins(%query, %key, %key : memref<64x16xf32>, memref<64x64xf32>, memref<64x64xf32>)
    captures(%keep : memref<64x16xi1>)
    outs(%s, %m, %l, %a : memref<64x16xf32>, memref<16xf32>, memref<16xf32>, memref<64x16xf32>)
    at(%q0, %k0) mask(#attn.dense<0>) {capture_maps = [affine_map<(k, q) -> (k, q)>], scale = 1.250000e-01 : f32}
  return
}

// Probabilities are computed from the final state; in an empty row they have the value of `empty_row`.
// CHECK-LABEL: @probabilities
// CHECK-DAG:   %[[NAN:.*]] = arith.constant dense<0x7FC00000> : vector<16xf32>
// CHECK:       arith.divf
// CHECK:       arith.select %{{.*}}, %[[NAN]]
// CHECK:       scf.for
// CHECK-COUNT-4: vector.store
func.func @probabilities(%query: memref<64x16xf32>, %key: memref<64x64xf32>, %s: memref<64x16xf32>, %m: memref<16xf32>, %l: memref<16xf32>, %q0: index, %k0: index) {
  attn.online_probabilities ins(%query, %key, %m, %l : memref<64x16xf32>, memref<64x64xf32>, memref<16xf32>, memref<16xf32>) outs(%s : memref<64x16xf32>)
    at(%q0, %k0) {capture_maps = [], scale = 1.250000e-01 : f32, empty_row = #attn.empty_row<nan>}
  return
}

// Blocks of 16 x 16 are transposed by 64 shuffles, with one division for all 16 rows. The last two queries are a block
// of which only two rows are stored.
// CHECK-LABEL: @finish
// CHECK:       scf.for %{{.*}} = %c0 to %c64 step %c16
// CHECK:         arith.divf {{.*}} : vector<16xf32>
// CHECK-NOT:     arith.divf
// CHECK-COUNT-64: vector.shuffle
// CHECK-COUNT-16: vector.store
// CHECK:         vector.maskedload
// CHECK:         arith.divf
// CHECK-COUNT-22: vector.shuffle
// CHECK-COUNT-2: vector.store
// CHECK-NOT:     vector.store
func.func @finish(%l: memref<18xf32>, %a: memref<64x18xf32>, %o: memref<18x64xf32, strided<[768, 1], offset: ?>>) {
  attn.online_finish ins(%l, %a : memref<18xf32>, memref<64x18xf32>)
    outs(%o : memref<18x64xf32, strided<[768, 1], offset: ?>>)
  return
}
}
