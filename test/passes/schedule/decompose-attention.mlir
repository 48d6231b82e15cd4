// RUN: attn-opt %s -attn-decompose-attention -split-input-file | FileCheck %s

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>


// A row without keys is NaN after the softmax; a select replaces NaN with 0 where the score is -inf. The product with
// the values skips probabilities of 0, so hidden values have no influence.
// CHECK-LABEL: @causal(
// CHECK-SAME: %[[Q:.*]]: tensor<2x?x8xf32>, %[[K:.*]]: tensor<2x?x8xf32>, %[[V:.*]]: tensor<2x?x4xf32>, %[[E:.*]]: tensor<2x?x4xf32>)
// CHECK: %[[S:.*]] = linalg.generic {{.*}} "reduction"]} ins(%[[Q]], %[[K]] :
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[S]] :
// CHECK: %[[SCALED:.*]] = arith.mulf
// CHECK: %[[ROW:.*]] = linalg.index 1
// CHECK: %[[COLUMN:.*]] = linalg.index 2
// CHECK: %[[KEPT:.*]] = arith.cmpi sge
// CHECK: arith.select %[[KEPT]], %[[SCALED]], %{{.*}} : f32
// CHECK: %[[P:.*]] = linalg.softmax dimension(2) ins(%[[T]] :
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%[[T]], %[[P]] :
// CHECK: arith.cmpf oeq
// CHECK: %[[ZERO:.*]] = linalg.fill {{.*}} outs(%[[E]] :
// CHECK: %[[O:.*]] = linalg.generic {{.*}} "reduction"]} ins(%[[W]], %[[V]] : {{.*}}) outs(%[[ZERO]] : {{.*}} attrs = {attn.skips_zeros}
// CHECK: arith.cmpf une
// CHECK: return %[[O]]
func.func @causal(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x4xf32>, %e: tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x4xf32>) outs(%e : tensor<2x?x4xf32>)
      mask(#attn.causal) plan(<unfused, q = 48, k = 128>) {indexing_maps = [#q, #k, #v, #o], scale = 5.0e-01 : f32} -> tensor<2x?x4xf32>
  return %o : tensor<2x?x4xf32>
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#p = affine_map<(b, q, k, d, e) -> (b, q, k)>
#bias = affine_map<(b, q, k, d, e) -> (q, k)>
// Probabilities are a result too. Without a mask, the product skips nothing. With empty_row = nan, an empty row stays
// NaN.
// CHECK-LABEL: @weights(
// CHECK-SAME: %[[C:[^ ]*]]: tensor<6x7xf32>, %[[E:[^ ]*]]: tensor<2x6x4xf32>, %[[F:[^ ]*]]: tensor<2x6x7xf32>)
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[C]] : tensor<2x6x7xf32>, tensor<6x7xf32>)
// CHECK: ^bb0(%[[S:.*]]: f32, %[[BIAS:.*]]: f32, %{{.*}}: f32):
// CHECK: %[[SCALED:.*]] = arith.mulf %[[S]],
// CHECK: arith.addf %[[SCALED]], %[[BIAS]]
// CHECK: %[[P:.*]] = linalg.softmax dimension(2) ins(%[[T]] :
// CHECK-NOT: arith.cmpf
// CHECK: %[[O:.*]] = linalg.generic {{.*}} "reduction"]} ins(%[[P]], %{{.*}} :
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%[[P]] : {{.*}}) outs(%[[F]] :
// CHECK: return %[[O]], %[[W]]
func.func @weights(%q: tensor<2x6x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>, %c: tensor<6x7xf32>, %e: tensor<2x6x4xf32>, %f: tensor<2x6x7xf32>)
    -> (tensor<2x6x4xf32>, tensor<2x6x7xf32>) {
  %o:2 = attn.attention ins(%q, %k, %v : tensor<2x6x8xf32>, tensor<2x7x8xf32>, tensor<2x7x4xf32>) captures(%c : tensor<6x7xf32>)
      outs(%e, %f : tensor<2x6x4xf32>, tensor<2x6x7xf32>) plan(<unfused, q = 16, k = 7>)
      {indexing_maps = [#q, #k, #v, #bias, #o, #p], scale = 5.0e-01 : f32, empty_row = #attn.empty_row<nan>} score {
      ^bb0(%b: index, %i: index, %j: index, %s: f32, %bias: f32):
        %t = arith.addf %s, %bias : f32
        attn.yield %t : f32
      } -> tensor<2x6x4xf32>, tensor<2x6x7xf32>
  return %o#0, %o#1 : tensor<2x6x4xf32>, tensor<2x6x7xf32>
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
// Scores can be -inf without a mask and without a region; a row of such scores is an empty row too.
// CHECK-LABEL: @plain(
// CHECK: %[[P:.*]] = linalg.softmax
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[P]] :
// CHECK: arith.cmpf oeq
// CHECK: linalg.generic {{.*}} "reduction"]} ins(%[[W]], %{{.*}} :
// CHECK-NOT: arith.cmpf
// CHECK: return
func.func @plain(%q: tensor<2x6x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>, %e: tensor<2x6x4xf32>) -> tensor<2x6x4xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x6x8xf32>, tensor<2x7x8xf32>, tensor<2x7x4xf32>) outs(%e : tensor<2x6x4xf32>)
      plan(<unfused, q = 16, k = 7>) {indexing_maps = [#q, #k, #v, #o], scale = 5.0e-01 : f32} -> tensor<2x6x4xf32>
  return %o : tensor<2x6x4xf32>
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
// CHECK-LABEL: @other_schedule(
// CHECK-NEXT: attn.attention
func.func @other_schedule(%q: tensor<2x6x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>, %e: tensor<2x6x4xf32>) -> tensor<2x6x4xf32> {
  %o = attn.attention ins(%q, %k, %v : tensor<2x6x8xf32>, tensor<2x7x8xf32>, tensor<2x7x4xf32>) outs(%e : tensor<2x6x4xf32>)
      plan(<"per-head", q = 16, k = 7>) {indexing_maps = [#q, #k, #v, #o], scale = 5.0e-01 : f32} -> tensor<2x6x4xf32>
  return %o : tensor<2x6x4xf32>
}

// -----

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
// An attention with the schedule whole-scores is decomposed only inside a task.
// CHECK-LABEL: @whole_scores(
// CHECK: attn.attention
// CHECK: scf.forall
// CHECK-NOT: attn.attention
// CHECK: linalg.softmax {{.*}} tensor<1x6x7xf32>
func.func @whole_scores(%q: tensor<2x6x8xf32>, %k: tensor<2x7x8xf32>, %v: tensor<2x7x4xf32>, %e: tensor<2x6x4xf32>,
                        %qt: tensor<1x6x8xf32>, %kt: tensor<1x7x8xf32>, %vt: tensor<1x7x4xf32>) -> (tensor<2x6x4xf32>, tensor<2x6x4xf32>) {
  %whole = attn.attention ins(%q, %k, %v : tensor<2x6x8xf32>, tensor<2x7x8xf32>, tensor<2x7x4xf32>) outs(%e : tensor<2x6x4xf32>)
      plan(<"whole-scores", q = 6, k = 7>) {indexing_maps = [#q, #k, #v, #o], scale = 5.0e-01 : f32} -> tensor<2x6x4xf32>
  %tasks = scf.forall (%b) in (2) shared_outs(%s = %e) -> tensor<2x6x4xf32> {
    %et = tensor.extract_slice %s[%b, 0, 0] [1, 6, 4] [1, 1, 1] : tensor<2x6x4xf32> to tensor<1x6x4xf32>
    %o = attn.attention ins(%qt, %kt, %vt : tensor<1x6x8xf32>, tensor<1x7x8xf32>, tensor<1x7x4xf32>) outs(%et : tensor<1x6x4xf32>)
        plan(<"whole-scores", q = 6, k = 7>) {indexing_maps = [#q, #k, #v, #o], scale = 5.0e-01 : f32} -> tensor<1x6x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %o into %s[%b, 0, 0] [1, 6, 4] [1, 1, 1] : tensor<1x6x4xf32> into tensor<2x6x4xf32>
    }
  }
  return %whole, %tasks : tensor<2x6x4xf32>, tensor<2x6x4xf32>
}

// -----

// The maximum and the sum of a row start with its sink.
// CHECK-LABEL: @sink(
// CHECK-SAME: %[[SINK:arg1]]: tensor<2xf32>
// CHECK-NOT: linalg.softmax
// CHECK: %[[COPY:.*]] = linalg.generic {{.*}} ins(%[[SINK]] : tensor<2xf32>)
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}} outs(%[[COPY]] : tensor<2x5xf32>)
// CHECK: arith.maximumf
// CHECK: %[[P:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[MAX]] : tensor<2x5x5xf32>, tensor<2x5xf32>)
// CHECK: math.exp
// CHECK: %[[START:.*]] = linalg.generic {{.*}} ins(%[[SINK]], %[[MAX]] : tensor<2xf32>, tensor<2x5xf32>)
// CHECK: math.exp
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[P]] : tensor<2x5x5xf32>) outs(%[[START]] : tensor<2x5xf32>)
// CHECK: arith.addf
// CHECK: linalg.generic {{.*}} ins(%[[P]], %[[SUM]] :
// CHECK: arith.divf
func.func @sink(%x: tensor<2x5x8xf32>, %sink: tensor<2xf32>) -> tensor<2x5x8xf32> {
  %e = tensor.empty() : tensor<2x5x8xf32>
  %o = attn.attention ins(%x, %x, %x : tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) sink(%sink : tensor<2xf32>) outs(%e : tensor<2x5x8xf32>)
      plan(<"unfused", q = 8, k = 8>) {indexing_maps = [affine_map<(b, q, k, d, e) -> (b, q, d)>, affine_map<(b, q, k, d, e) -> (b, k, d)>, affine_map<(b, q, k, d, e) -> (b, k, e)>,
      affine_map<(b, q, k, d, e) -> (b)>, affine_map<(b, q, k, d, e) -> (b, q, e)>], scale = 1.0 : f32, empty_row = #attn.empty_row<nan>} -> tensor<2x5x8xf32>
  return %o : tensor<2x5x8xf32>
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
// The products get the register blocks from attn.blocks.
// CHECK-LABEL: @blocks(
// CHECK: attrs = {attn.block = #attn.block<rows = 4, vectors = 3>}
// CHECK: attrs = {attn.block = #attn.block<rows = 6, vectors = 2>, attn.skips_zeros}
func.func @blocks(%x: tensor<256x64xf32>, %e: tensor<256x64xf32>) -> tensor<256x64xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<256x64xf32>, tensor<256x64xf32>, tensor<256x64xf32>) outs(%e : tensor<256x64xf32>)
      mask(#attn.causal) plan(<unfused, q = 48, k = 128>)
      {attn.blocks = {masked = #attn.block<rows = 6, vectors = 2>, scores = #attn.block<rows = 4, vectors = 3>},
       indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<256x64xf32>
  return %o : tensor<256x64xf32>
}
