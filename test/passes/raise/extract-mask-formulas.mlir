// RUN: attn-opt %s -attn-extract-mask -canonicalize | FileCheck %s

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#m = affine_map<(b, q, k, d, e) -> (b, q, k)>
#mask = affine_map<(b, q, k, d, e) -> (q, k)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#id = affine_map<(b, q, k) -> (b, q, k)>
#ofKey = affine_map<(b, q, k) -> (b, k)>
#qk = affine_map<(q, k) -> (q, k)>
#maps = [#q, #k, #v, #m, #o]

// The graph computes the mask tensor from a formula: a pair is kept if it is causal and its key is not padding.
// CHECK-LABEL: @causal_and_padding(
// CHECK-SAME: %[[PADDING:[a-z0-9]*]]: tensor<2x?xi64>
// CHECK: attn.attention {{.*}} captures(%[[PADDING]] : tensor<2x?xi64>) {{.*}} mask(#attn.and<[#attn.causal, #attn.dense<0>]>)
// CHECK-NOT: score
func.func @causal_and_padding(%x: tensor<2x?x8xf32>, %padding: tensor<2x?xi64>, %n: index) -> tensor<2x?x8xf32> {
  %zero = arith.constant 0 : i64
  %me = tensor.empty(%n, %n) : tensor<2x?x?xi1>
  %mask = linalg.generic {indexing_maps = [#ofKey, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%padding : tensor<2x?xi64>) outs(%me : tensor<2x?x?xi1>) {
  ^bb0(%p: i64, %out: i1):
    %q = linalg.index 1 : index
    %k = linalg.index 2 : index
    %causal = arith.cmpi sle, %k, %q : index
    %token = arith.cmpi ne, %p, %zero : i64
    %keep = arith.andi %causal, %token : i1
    linalg.yield %keep : i1
  } -> tensor<2x?x?xi1>
  %e = tensor.empty(%n) : tensor<2x?x8xf32>
  %o = attn.attention ins(%x, %x, %x : tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>)
      captures(%mask : tensor<2x?x?xi1>) outs(%e : tensor<2x?x8xf32>) mask(#attn.dense<0>)
      {indexing_maps = #maps, scale = 1.0 : f32} -> tensor<2x?x8xf32>
  return %o : tensor<2x?x8xf32>
}

// The mask is a slice of a larger computed mask, so the operands of the formula are sliced too.
// CHECK-LABEL: @part_of_a_mask(
// CHECK-SAME: %{{.*}}: tensor<2x5x8xf32>, %[[TOKENS:[a-z0-9]*]]: tensor<16xi64>
// CHECK: %[[PART:.*]] = tensor.extract_slice %[[TOKENS]][0] [5] [1] : tensor<16xi64> to tensor<5xi64>
// CHECK: attn.attention {{.*}} captures(%[[PART]] : tensor<5xi64>) {{.*}} mask(#attn.and<[#attn.causal<offset = 3>, #attn.dense<0>]>)
func.func @part_of_a_mask(%x: tensor<2x5x8xf32>, %tokens: tensor<16xi64>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0 : i64
  %me = tensor.empty() : tensor<16x16xi1>
  %all = linalg.generic {indexing_maps = [affine_map<(q, k) -> (k)>, #qk], iterator_types = ["parallel", "parallel"]}
      ins(%tokens : tensor<16xi64>) outs(%me : tensor<16x16xi1>) {
  ^bb0(%p: i64, %out: i1):
    %q = linalg.index 0 : index
    %k = linalg.index 1 : index
    %causal = arith.cmpi sle, %k, %q : index
    %token = arith.cmpi ne, %p, %zero : i64
    %keep = arith.andi %causal, %token : i1
    linalg.yield %keep : i1
  } -> tensor<16x16xi1>
  %mask = tensor.extract_slice %all[3, 0] [5, 5] [1, 1] : tensor<16x16xi1> to tensor<5x5xi1>
  %e = tensor.empty() : tensor<2x5x8xf32>
  %o = attn.attention ins(%x, %x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>)
      captures(%mask : tensor<5x5xi1>) outs(%e : tensor<2x5x8xf32>) mask(#attn.dense<0>)
      {indexing_maps = [#q, #k, #v, #mask, #o], scale = 1.0 : f32} -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// No named mask describes the part of the formula that keeps every second key: a tensor has this part alone, so it varies
// with the key only.
// CHECK-LABEL: @causal_of_another(
// CHECK: %[[MASK:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<5xi1>)
// CHECK: attn.attention {{.*}} captures(%[[MASK]] : tensor<5xi1>) {{.*}} mask(#attn.and<[#attn.causal, #attn.dense<0>]>)
func.func @causal_of_another(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %me = tensor.empty() : tensor<5x5xi1>
  %mask = linalg.generic {indexing_maps = [#qk], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<5x5xi1>) {
  ^bb0(%out: i1):
    %q = linalg.index 0 : index
    %k = linalg.index 1 : index
    %causal = arith.cmpi sle, %k, %q : index
    %bit = arith.andi %k, %one : index
    %even = arith.cmpi eq, %bit, %zero : index
    %keep = arith.andi %even, %causal : i1
    linalg.yield %keep : i1
  } -> tensor<5x5xi1>
  %e = tensor.empty() : tensor<2x5x8xf32>
  %o = attn.attention ins(%x, %x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>)
      captures(%mask : tensor<5x5xi1>) outs(%e : tensor<2x5x8xf32>) mask(#attn.dense<0>)
      {indexing_maps = [#q, #k, #v, #mask, #o], scale = 1.0 : f32} -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// The graph adds two computed tensors to the scores. A float mask of 0 and -inf becomes a mask; a bias, the distance
// between query and key, is computed in the region.
// CHECK-LABEL: @distances(
// CHECK-NOT: linalg
// CHECK: attn.attention
// CHECK-NOT: captures
// CHECK-SAME: mask(#attn.causal)
// CHECK: ^bb0(%{{.*}}: index, %[[Q:.*]]: index, %[[K:.*]]: index, %[[S:.*]]: f32):
// CHECK: %[[D:.*]] = arith.subi %[[K]], %[[Q]] : index
// CHECK: arith.sitofp
// CHECK: %[[T:.*]] = arith.addf %[[S]], %{{.*}} : f32
// CHECK: attn.yield %[[T]]
func.func @distances(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %me = tensor.empty() : tensor<5x5xf32>
  %mask, %bias = linalg.generic {indexing_maps = [#qk, #qk], iterator_types = ["parallel", "parallel"]} outs(%me, %me : tensor<5x5xf32>, tensor<5x5xf32>) {
  ^bb0(%out0: f32, %out1: f32):
    %q = linalg.index 0 : index
    %k = linalg.index 1 : index
    %later = arith.cmpi sgt, %k, %q : index
    %fill = arith.select %later, %inf, %zero : f32
    %d = arith.subi %k, %q : index
    %i = arith.index_cast %d : index to i32
    %f = arith.sitofp %i : i32 to f32
    linalg.yield %fill, %f : f32, f32
  } -> (tensor<5x5xf32>, tensor<5x5xf32>)
  %e = tensor.empty() : tensor<2x5x8xf32>
  %o = attn.attention ins(%x, %x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>)
      captures(%bias, %mask : tensor<5x5xf32>, tensor<5x5xf32>) outs(%e : tensor<2x5x8xf32>)
      {indexing_maps = [#q, #k, #v, #mask, #mask, #o], scale = 1.0 : f32} score {
  ^bb0(%b: index, %q: index, %k: index, %s: f32, %d: f32, %m: f32):
    %t = arith.addf %s, %d : f32
    %u = arith.addf %t, %m : f32
    attn.yield %u : f32
  } -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// A bias stays a tensor if its formula calls a function such as exp for each pair, and so does a mask that depends on
// data for each pair.
// CHECK-LABEL: @stays(
// CHECK: %[[BIAS:.*]] = linalg.generic
// CHECK: %[[MASK:.*]] = linalg.generic
// CHECK: attn.attention {{.*}} captures(%[[BIAS]], %[[MASK]] : tensor<5x5xf32>, tensor<5x5xi1>) {{.*}} mask(#attn.dense<1>)
func.func @stays(%x: tensor<2x5x8xf32>, %pairs: tensor<5x5xf32>) -> tensor<2x5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %be = tensor.empty() : tensor<5x5xf32>
  %me = tensor.empty() : tensor<5x5xi1>
  %bias = linalg.generic {indexing_maps = [#qk], iterator_types = ["parallel", "parallel"]} outs(%be : tensor<5x5xf32>) {
  ^bb0(%out: f32):
    %q = linalg.index 0 : index
    %k = linalg.index 1 : index
    %d = arith.subi %k, %q : index
    %i = arith.index_cast %d : index to i32
    %f = arith.sitofp %i : i32 to f32
    %g = math.exp %f : f32
    linalg.yield %g : f32
  } -> tensor<5x5xf32>
  %mask = linalg.generic {indexing_maps = [#qk, #qk], iterator_types = ["parallel", "parallel"]}
      ins(%pairs : tensor<5x5xf32>) outs(%me : tensor<5x5xi1>) {
  ^bb0(%p: f32, %out: i1):
    %keep = arith.cmpf ogt, %p, %zero : f32
    linalg.yield %keep : i1
  } -> tensor<5x5xi1>
  %e = tensor.empty() : tensor<2x5x8xf32>
  %o = attn.attention ins(%x, %x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>)
      captures(%bias, %mask : tensor<5x5xf32>, tensor<5x5xi1>) outs(%e : tensor<2x5x8xf32>) mask(#attn.dense<1>)
      {indexing_maps = [#q, #k, #v, #mask, #mask, #o], scale = 1.0 : f32} score {
  ^bb0(%b: index, %q: index, %k: index, %s: f32, %d: f32, %m: i1):
    %t = arith.addf %s, %d : f32
    attn.yield %t : f32
  } -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// 32-bit sums wrap around in the computed lengths as they do in the graph. A mask does not become lengths if a sum that
// contains the position of the key may wrap.
// CHECK-LABEL: @wraps(
// CHECK-SAME: %[[POSITION:[a-z0-9]*]]: tensor<5xi32>
// CHECK: %[[LENGTHS:.*]] = linalg.generic {{.*}} ins(%[[POSITION]] : tensor<5xi32>)
// CHECK: %[[SUM:.*]] = arith.addi
// CHECK: %[[LOW:.*]] = arith.trunci %[[SUM]] : i64 to i32
// CHECK: %[[WRAPPED:.*]] = arith.extsi %[[LOW]] : i32 to i64
// CHECK: arith.maxsi %[[WRAPPED]], %{{.*}} : i64
// CHECK: attn.attention {{.*}} mask(#attn.lengths<0>)
// CHECK: attn.attention {{.*}} mask(#attn.dense<0>)
func.func @wraps(%x: tensor<2x5x8xf32>, %position: tensor<5xi32>) -> (tensor<2x5x8xf32>, tensor<2x5x8xf32>) {
  %three = arith.constant 3 : i32
  %zero = arith.constant 0 : i32
  %me = tensor.empty() : tensor<5x5xi1>
  %alone = linalg.generic {indexing_maps = [affine_map<(q, k) -> (q)>, #qk], iterator_types = ["parallel", "parallel"]}
      ins(%position : tensor<5xi32>) outs(%me : tensor<5x5xi1>) {
  ^bb0(%p: i32, %out: i1):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i64
    %sum = arith.addi %p, %three : i32
    %wide = arith.extsi %sum : i32 to i64
    %keep = arith.cmpi sle, %ki, %wide : i64
    linalg.yield %keep : i1
  } -> tensor<5x5xi1>
  %together = linalg.generic {indexing_maps = [affine_map<(q, k) -> (q)>, #qk], iterator_types = ["parallel", "parallel"]}
      ins(%position : tensor<5xi32>) outs(%me : tensor<5x5xi1>) {
  ^bb0(%p: i32, %out: i1):
    %k = linalg.index 1 : index
    %ki = arith.index_cast %k : index to i32
    %rest = arith.subi %p, %ki : i32
    %keep = arith.cmpi sge, %rest, %zero : i32
    linalg.yield %keep : i1
  } -> tensor<5x5xi1>
  %e = tensor.empty() : tensor<2x5x8xf32>
  %o = attn.attention ins(%x, %x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>)
      captures(%alone : tensor<5x5xi1>) outs(%e : tensor<2x5x8xf32>) mask(#attn.dense<0>)
      {indexing_maps = [#q, #k, #v, #mask, #o], scale = 1.0 : f32} -> tensor<2x5x8xf32>
  %o2 = attn.attention ins(%x, %x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>)
      captures(%together : tensor<5x5xi1>) outs(%e : tensor<2x5x8xf32>) mask(#attn.dense<0>)
      {indexing_maps = [#q, #k, #v, #mask, #o], scale = 1.0 : f32} -> tensor<2x5x8xf32>
  return %o, %o2 : tensor<2x5x8xf32>, tensor<2x5x8xf32>
}
