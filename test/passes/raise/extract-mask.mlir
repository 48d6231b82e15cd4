// RUN: attn-opt %s -attn-extract-mask -canonicalize | FileCheck %s

#q = affine_map<(b, q, k, d, e) -> (b, q, d)>
#k = affine_map<(b, q, k, d, e) -> (b, k, d)>
#v = affine_map<(b, q, k, d, e) -> (b, k, e)>
#o = affine_map<(b, q, k, d, e) -> (b, q, e)>
#bk = affine_map<(b, q, k, d, e) -> (b, 0, k)>
#qk = affine_map<(b, q, k, d, e) -> (q, k)>
#b = affine_map<(b, q, k, d, e) -> (b)>

// Two fills with -inf become masks: one depends on positions, the other on an integer tensor in which 0 hides a key.
// The region is then empty, so it is removed.
// CHECK-LABEL: @causal_and_padding(
// CHECK: attn.attention {{.*}} captures(%{{.*}} : tensor<2x1x9xi64>)
// CHECK-SAME: mask(#attn.and<[#attn.causal, #attn.dense<0>]>)
// CHECK-NOT: score
func.func @causal_and_padding(%x: tensor<2x9x8xf32>, %c0: tensor<2x1x9xi64>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<2x1x9xi64>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #bk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i64):
        %inf = arith.constant 0xFF800000 : f32
        %zero = arith.constant 0 : i64
        %hidden = arith.cmpi eq, %e0, %zero : i64
        %t = arith.select %hidden, %inf, %s : f32
        %kept = arith.cmpi sle, %k, %q : index
        %u = arith.select %kept, %t, %inf : f32
        attn.yield %u : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// |k - q| <= 3 keeps the pairs of a window.
// CHECK-LABEL: @distance(
// CHECK: mask(#attn.window<left = 3, right = 3>)
// CHECK-NOT: score
func.func @distance(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %inf = arith.constant 0xFF800000 : f32
        %three = arith.constant 3 : i64
        %qi = arith.index_cast %q : index to i64
        %ki = arith.index_cast %k : index to i64
        %diff = arith.subi %ki, %qi : i64
        %distance = math.absi %diff : i64
        %hidden = arith.cmpi sgt, %distance, %three : i64
        %t = arith.select %hidden, %inf, %s : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// The region is that of masked_fill(tril(ones, diagonal=2) == 0, -inf).
// CHECK-LABEL: @tril_compared_with_zero(
// CHECK: mask(#attn.causal<offset = 2>)
// CHECK-NOT: score
func.func @tril_compared_with_zero(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %inf = arith.constant 0xFF800000 : f32
        %one = arith.constant 1.0 : f32
        %zero = arith.constant 0.0 : f32
        %two = arith.constant 2 : i64
        %qi = arith.index_cast %q : index to i64
        %ki = arith.index_cast %k : index to i64
        %diff = arith.subi %ki, %qi : i64
        %lower = arith.cmpi sle, %diff, %two : i64
        %tril = arith.select %lower, %one, %zero : f32
        %hidden = arith.cmpf oeq, %tril, %zero : f32
        %t = arith.select %hidden, %inf, %s : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// With a single query, its coordinate is folded to 0, and the mask compares the key with a constant.
// CHECK-LABEL: @single_query(
// CHECK: mask(#attn.causal<offset = 3>)
// CHECK-NOT: score
func.func @single_query(%q: tensor<2x1x8xf32>, %x: tensor<2x9x8xf32>, %out: tensor<2x1x8xf32>) -> tensor<2x1x8xf32> {
  %o = attn.attention ins(%q, %x, %x : tensor<2x1x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x1x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %i: index, %k: index, %s: f32):
        %inf = arith.constant 0xFF800000 : f32
        %three = arith.constant 3 : index
        %hidden = arith.cmpi sgt, %k, %three : index
        %t = arith.select %hidden, %inf, %s : f32
        attn.yield %t : f32
      } -> tensor<2x1x8xf32>
  return %o : tensor<2x1x8xf32>
}

// Boolean masks: inverted, widened to i32 and compared with 0, and combined with a causal mask by tril.
// CHECK-LABEL: @booleans(
// CHECK: mask(#attn.and<[#attn.causal, #attn.dense<2>, #attn.dense<1, keeps = zero>, #attn.dense<0>]>)
// CHECK-NOT: score
func.func @booleans(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi1>, %c1: tensor<9x9xi1>, %c2: tensor<9x9xi1>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0, %c1, %c2 : tensor<9x9xi1>, tensor<9x9xi1>, tensor<9x9xi1>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #qk, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i1, %e1: i1, %e2: i1):
        %inf = arith.constant 0xFF800000 : f32
        %true = arith.constant true
        %false = arith.constant false
        %zero = arith.constant 0 : i32
        %not = arith.xori %e0, %true : i1
        %t = arith.select %not, %inf, %s : f32
        %wide = arith.extui %e1 : i1 to i32
        %kept = arith.cmpi eq, %wide, %zero : i32
        %u = arith.select %kept, %t, %inf : f32
        %lower = arith.cmpi sge, %q, %k : index
        %tril = arith.select %lower, %e2, %false : i1
        %v = arith.select %tril, %u, %inf : f32
        attn.yield %v : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// Two bounds make a window: a pair is hidden if it is beyond either bound.
// CHECK-LABEL: @window(
// CHECK: mask(#attn.window<left = 3, right = 0>)
// CHECK-NOT: score
func.func @window(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %inf = arith.constant 0xFF800000 : f32
        %three = arith.constant 3 : index
        %ahead = arith.cmpi sgt, %k, %q : index
        %reach = arith.addi %k, %three : index
        %behind = arith.cmpi slt, %reach, %q : index
        %hidden = arith.ori %ahead, %behind : i1
        %t = arith.select %hidden, %inf, %s : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// An unused captured operand is removed, so #attn.lengths gets the new number of its operand.
// CHECK-LABEL: @lengths(
// CHECK: captures(%{{.*}} : tensor<2xi32>)
// CHECK-SAME: mask(#attn.lengths<0>)
// CHECK-NOT: score
func.func @lengths(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xf32>, %c1: tensor<2xi32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0, %c1 : tensor<9x9xf32>, tensor<2xi32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #b, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: f32, %e1: i32):
        %inf = arith.constant 0xFF800000 : f32
        %ki = arith.index_cast %k : index to i32
        %kept = arith.cmpi slt, %ki, %e1 : i32
        %t = arith.select %kept, %s, %inf : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// A mask of -inf and 0 is added to the scores.
// CHECK-LABEL: @added(
// CHECK: mask(#attn.causal)
// CHECK-NOT: score
func.func @added(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %inf = arith.constant 0xFF800000 : f32
        %zero = arith.constant 0.0 : f32
        %hidden = arith.cmpi sgt, %k, %q : index
        %mask = arith.select %hidden, %inf, %zero : f32
        %t = arith.addf %s, %mask : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// The bias, which is added before the mask fills, stays in the region.
// CHECK-LABEL: @bias_below_mask(
// CHECK: captures(%{{.*}} : tensor<9x9xf32>)
// CHECK-SAME: mask(#attn.causal)
// CHECK: ^bb0({{.*}}, %[[S:.*]]: f32, %[[BIAS:.*]]: f32):
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[BIAS]]
// CHECK-NEXT: attn.yield %[[T]]
func.func @bias_below_mask(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: f32):
        %inf = arith.constant 0xFF800000 : f32
        %t = arith.addf %s, %e0 : f32
        %hidden = arith.cmpi sgt, %k, %q : index
        %u = arith.select %hidden, %inf, %t : f32
        attn.yield %u : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// The number of keys of each query is computed from a position for each batch item and the position of the query.
// CHECK-LABEL: @positions(
// CHECK-SAME: %[[POSITION:arg1]]: tensor<2xi32>
// CHECK: %[[LENGTHS:.*]] = linalg.generic {{.*}} ins(%[[POSITION]] : tensor<2xi32>) outs(%{{.*}} : tensor<2x9xi64>)
// CHECK: ^bb0(%[[P:.*]]: i32, %{{.*}}: i64):
// CHECK: arith.extsi %[[P]]
// CHECK: linalg.index 1
// CHECK: arith.maxsi
// CHECK: attn.attention {{.*}} captures(%[[LENGTHS]] : tensor<2x9xi64>) {{.*}} mask(#attn.lengths<0>)
// CHECK-NOT: arith.select
// CHECK: return
func.func @positions(%x: tensor<2x9x8xf32>, %c0: tensor<2xi32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<2xi32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #b, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i32):
        %low = arith.constant 0xFF800000 : f32
        %position = arith.index_cast %e0 : i32 to index
        %last = arith.addi %position, %q : index
        %hidden = arith.cmpi sgt, %k, %last : index
        %t = arith.select %hidden, %low, %s : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// A fill with the least float becomes a mask if every row keeps a pair: here, each query keeps its own key.
// CHECK-LABEL: @least_fill(
// CHECK: mask(#attn.causal)
// CHECK-NOT: arith.select
// CHECK: return
func.func @least_fill(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %zero = arith.constant 0.0 : f32
        %low = arith.constant 0xFF7FFFFF : f32
        %hidden = arith.cmpi sgt, %k, %q : index
        %fill = arith.select %hidden, %low, %zero : f32
        %t = arith.addf %s, %fill : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// The first row keeps no pair, so its result is the average of the values: the mask has a fill.
// CHECK-LABEL: @least_fill_of_row(
// CHECK: mask(#attn.causal<offset = -1>) {fill = -3.40282347E+38 : f32
// CHECK-NOT: score
func.func @least_fill_of_row(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %low = arith.constant 0xFF7FFFFF : f32
        %hidden = arith.cmpi sge, %k, %q : index
        %t = arith.select %hidden, %low, %s : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// The bias may hold the least float too, and so hide the pairs that the fill keeps: the mask has a fill.
// CHECK-LABEL: @least_fill_of_bias(
// CHECK: mask(#attn.causal) {fill = -3.40282347E+38 : f32
// CHECK: score
// CHECK-NOT: arith.select
// CHECK: attn.yield
func.func @least_fill_of_bias(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: f32):
        %low = arith.constant 0xFF7FFFFF : f32
        %hidden = arith.cmpi sgt, %k, %q : index
        %t = arith.addf %s, %e0 : f32
        %u = arith.select %hidden, %low, %t : f32
        attn.yield %u : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// No named mask describes the whole condition, so a row may keep no pair: the mask has a fill.
// CHECK-LABEL: @least_fill_of_more(
// CHECK: mask(#attn.and<[#attn.causal, #attn.dense<0>]>) {fill = -3.40282347E+38 : f32
// CHECK-NOT: score
func.func @least_fill_of_more(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xi32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i32):
        %low = arith.constant 0xFF7FFFFF : f32
        %three = arith.constant 3 : i32
        %later = arith.cmpi sgt, %k, %q : index
        %more = arith.cmpi sgt, %e0, %three : i32
        %hidden = arith.ori %later, %more : i1
        %t = arith.select %hidden, %low, %s : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// With a fill far above the least float, a filled score may exceed another score of its row.
// CHECK-LABEL: @finite_fill(
// CHECK: mask(#attn.causal) {fill = -1.000000e+09 : f32
// CHECK-NOT: score
func.func @finite_fill(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %low = arith.constant -1.0e9 : f32
        %hidden = arith.cmpi sgt, %k, %q : index
        %t = arith.select %hidden, %low, %s : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// A number computed from a condition is added: 0 at kept pairs, and -1e4 at hidden pairs. A bound of the other scores is
// known, since they are a softcap of the product.
// CHECK-LABEL: @added_fill(
// CHECK: mask(#attn.causal) {added, fill = -1.000000e+04 : f32
// CHECK: arith.mulf
// CHECK-NEXT: attn.yield
func.func @added_fill(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %cap = arith.constant 30.0 : f32
        %low = arith.constant -1.0e4 : f32
        %one = arith.constant 1.0 : f32
        %tanh = math.tanh %s : f32
        %capped = arith.mulf %tanh, %cap : f32
        %keep = arith.cmpi sge, %q, %k : index
        %float = arith.uitofp %keep : i1 to f32
        %hide = arith.subf %one, %float : f32
        %fill = arith.mulf %hide, %low : f32
        %t = arith.addf %capped, %fill : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// The negative of the fill is subtracted. The condition has two parts, multiplied as integers.
// CHECK-LABEL: @subtracted_fill(
// CHECK: linalg.generic
// CHECK: attn.attention {{.*}} mask(#attn.dense<0>) {added, fill = -1.000000e+04 : f32
// CHECK-NOT: score
func.func @subtracted_fill(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi1>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xi1>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i1):
        %high = arith.constant 1.0e4 : f32
        %one = arith.constant 1 : i64
        %before = arith.cmpi sge, %q, %k : index
        %left = arith.extui %before : i1 to i64
        %right = arith.extui %e0 : i1 to i64
        %both = arith.muli %left, %right : i64
        %hide = arith.subi %one, %both : i64
        %float = arith.sitofp %hide : i64 to f32
        %fill = arith.mulf %float, %high : f32
        %t = arith.subf %s, %fill : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// The mask states the whole condition of a sum, also a part that varies with the query alone.
// CHECK-LABEL: @added_for_some_queries(
// CHECK: %[[KEEP:.*]] = linalg.generic
// CHECK: attn.attention {{.*}} captures(%[[KEEP]] : tensor<9x9xi1>) {{.*}} mask(#attn.dense<0>) {added, fill = -1.000000e+04 : f32
// CHECK-NOT: score
func.func @added_for_some_queries(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %low = arith.constant -1.0e4 : f32
        %zero = arith.constant 0.0 : f32
        %three = arith.constant 3 : index
        %later = arith.cmpi ne, %q, %three : index
        %before = arith.cmpi sle, %k, %q : index
        %keep = arith.andi %later, %before : i1
        %fill = arith.select %keep, %zero, %low : f32
        %t = arith.addf %s, %fill : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// Not these: a captured bias has no known bound, two fills that are added may hide a pair twice, usual scores may exceed
// 100, an integer of the caller may be other than 0 and 1, and the mask cannot state all of a condition that reads the
// score.
// CHECK-LABEL: @added_to_bias(
// CHECK-NOT: mask(
// CHECK-LABEL: @added_twice(
// CHECK-NOT: mask(
// CHECK-LABEL: @added_small_fill(
// CHECK-NOT: mask(
// CHECK-LABEL: @added_integer(
// CHECK-NOT: mask(
// CHECK-LABEL: @added_to_threshold(
// CHECK-NOT: mask(
func.func @added_to_bias(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: f32):
        %low = arith.constant -1.0e4 : f32
        %zero = arith.constant 0.0 : f32
        %ahead = arith.cmpi sgt, %k, %q : index
        %fill = arith.select %ahead, %low, %zero : f32
        %u = arith.addf %s, %e0 : f32
        %t = arith.addf %u, %fill : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

func.func @added_twice(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi1>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xi1>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i1):
        %low = arith.constant -1.0e4 : f32
        %zero = arith.constant 0.0 : f32
        %ahead = arith.cmpi sgt, %k, %q : index
        %fill = arith.select %ahead, %low, %zero : f32
        %second = arith.select %e0, %zero, %low : f32
        %u = arith.addf %s, %second : f32
        %t = arith.addf %u, %fill : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

func.func @added_small_fill(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %low = arith.constant -100.0 : f32
        %zero = arith.constant 0.0 : f32
        %ahead = arith.cmpi sgt, %k, %q : index
        %fill = arith.select %ahead, %low, %zero : f32
        %t = arith.addf %s, %fill : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

func.func @added_integer(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi64>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xi64>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i64):
        %low = arith.constant -1.0e4 : f32
        %one = arith.constant 1 : i64
        %hide = arith.subi %one, %e0 : i64
        %float = arith.sitofp %hide : i64 to f32
        %fill = arith.mulf %float, %low : f32
        %t = arith.addf %s, %fill : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

func.func @added_to_threshold(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %low = arith.constant -1.0e4 : f32
        %zero = arith.constant 0.0 : f32
        %small = arith.cmpf olt, %s, %zero : f32
        %ahead = arith.cmpi sgt, %k, %q : index
        %hide = arith.ori %small, %ahead : i1
        %fill = arith.select %hide, %low, %zero : f32
        %t = arith.addf %s, %fill : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// A small fill may exceed other scores of many rows, so it stays a score.
// CHECK-LABEL: @small_fill(
// CHECK-NOT: mask(
// CHECK: arith.select
// CHECK: arith.select
func.func @small_fill(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi1>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xi1>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i1):
        %inner = arith.constant -1.0 : f32
        %outer = arith.constant -2.0 : f32
        %ahead = arith.cmpi sgt, %k, %q : index
        %t = arith.select %ahead, %inner, %s : f32
        %u = arith.select %e0, %t, %outer : f32
        attn.yield %u : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// Two fills of one value are one mask.
// CHECK-LABEL: @equal_fills(
// CHECK: mask(#attn.and<[#attn.causal, #attn.dense<0>]>) {fill = -1.000000e+04 : f32
// CHECK-NOT: score
func.func @equal_fills(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi1>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xi1>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i1):
        %inner = arith.constant -1.0e4 : f32
        %outer = arith.constant -1.0e4 : f32
        %ahead = arith.cmpi sgt, %k, %q : index
        %t = arith.select %ahead, %inner, %s : f32
        %u = arith.select %e0, %t, %outer : f32
        attn.yield %u : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// A pair that the outer fill hides has its score, even if the inner fill, which stays in the region, hides it too.
// CHECK-LABEL: @fill_above_mask(
// CHECK: mask(#attn.dense<0>) {fill = -1.000000e+04 : f32
// CHECK: score
// CHECK: arith.select
func.func @fill_above_mask(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi1>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xi1>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i1):
        %inner = arith.constant 0xFF800000 : f32
        %outer = arith.constant -1.0e4 : f32
        %ahead = arith.cmpi sgt, %k, %q : index
        %t = arith.select %ahead, %inner, %s : f32
        %u = arith.select %e0, %t, %outer : f32
        attn.yield %u : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// The mask hides pairs, and the fill stays in the region.
// CHECK-LABEL: @fill_below_mask(
// CHECK: mask(#attn.dense<0>) {indexing_maps
// CHECK: score
// CHECK: arith.select
func.func @fill_below_mask(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi1>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xi1>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i1):
        %inner = arith.constant -1.0e4 : f32
        %outer = arith.constant 0xFF800000 : f32
        %ahead = arith.cmpi sgt, %k, %q : index
        %t = arith.select %ahead, %inner, %s : f32
        %u = arith.select %e0, %t, %outer : f32
        attn.yield %u : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// Hidden pairs have a fill already, so a fill in the region stays there.
// CHECK-LABEL: @two_fills(
// CHECK: mask(#attn.causal) {fill = -1.000000e+09 : f32
// CHECK: score
// CHECK: arith.select
func.func @two_fills(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi1>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xi1>) outs(%out : tensor<2x9x8xf32>)
      mask(#attn.causal) {fill = -1.0e9 : f32, indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i1):
        %inf = arith.constant 0xFF800000 : f32
        %t = arith.select %e0, %s, %inf : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// A call may give any length to a fill: a number below 0 keeps no pair, so the lengths are clamped.
// CHECK-LABEL: @filled_lengths(
// CHECK: linalg.generic
// CHECK: arith.maxsi
// CHECK: mask(#attn.lengths<0>) {fill = -1.000000e+09 : f32
func.func @filled_lengths(%x: tensor<2x9x8xf32>, %c0: tensor<2xi64>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<2xi64>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #b, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i64):
        %low = arith.constant -1.0e9 : f32
        %ki = arith.index_cast %k : index to i64
        %kept = arith.cmpi slt, %ki, %e0 : i64
        %t = arith.select %kept, %s, %low : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// No mask: the bias, which is added after the fill, may be infinite, and -inf + inf is NaN.
// CHECK-LABEL: @bias_above_mask(
// CHECK-NOT: mask(
// CHECK: arith.select
// CHECK: attn.yield
func.func @bias_above_mask(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: f32):
        %inf = arith.constant 0xFF800000 : f32
        %hidden = arith.cmpi sgt, %k, %q : index
        %t = arith.select %hidden, %inf, %s : f32
        %u = arith.addf %t, %e0 : f32
        attn.yield %u : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// A pair is hidden if both conditions hold, so the kept pairs are not those of a conjunction of named masks. They become
// a boolean tensor over the loops that the conditions name.
// CHECK-LABEL: @either_keeps(
// CHECK-SAME: %[[MASK:arg1]]: tensor<9x9xi1>
// CHECK: %[[KEEP:.*]] = linalg.generic {{.*}} ins(%[[MASK]] : tensor<9x9xi1>) outs(%{{.*}} : tensor<9x9xi1>)
// CHECK: linalg.index 0
// CHECK: linalg.index 1
// CHECK: %[[HIDDEN:.*]] = arith.andi
// CHECK: %[[KEPT:.*]] = arith.cmpi eq, %[[HIDDEN]], %false
// CHECK: linalg.yield %[[KEPT]]
// CHECK: attn.attention {{.*}} captures(%[[KEEP]] : tensor<9x9xi1>) {{.*}} mask(#attn.dense<0>)
// CHECK-NOT: score
func.func @either_keeps(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xi1>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9x9xi1>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i1):
        %inf = arith.constant 0xFF800000 : f32
        %ahead = arith.cmpi sgt, %k, %q : index
        %hidden = arith.andi %ahead, %e0 : i1
        %t = arith.select %hidden, %inf, %s : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// Documents, a causal mask and a mask that the caller gives: the causal bound stays a named mask, and one tensor has the
// two other conditions.
// CHECK-LABEL: @documents(
// CHECK-SAME: %[[GIVEN:arg1]]: tensor<9x9xi1>, %[[IDS:arg2]]: tensor<2x9xi64>
// CHECK: %[[KEEP:.*]] = linalg.generic {{.*}} ins(%[[GIVEN]], %[[IDS]], %[[IDS]] : {{.*}}) outs(%{{.*}} : tensor<2x9x9xi1>)
// CHECK: ^bb0(%[[G:.*]]: i1, %[[A:.*]]: i64, %[[B:.*]]: i64, %{{.*}}: i1):
// CHECK-NEXT: %[[SAME:.*]] = arith.cmpi eq, %[[A]], %[[B]]
// CHECK-NEXT: %[[ALL:.*]] = arith.andi %[[SAME]], %[[G]]
// CHECK-NEXT: linalg.yield %[[ALL]]
// CHECK: attn.attention {{.*}} captures(%[[KEEP]] : tensor<2x9x9xi1>) {{.*}} mask(#attn.and<[#attn.causal, #attn.dense<0>]>)
// CHECK-NOT: score
func.func @documents(%x: tensor<2x9x8xf32>, %given: tensor<9x9xi1>, %ids: tensor<2x9xi64>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%given, %ids, %ids : tensor<9x9xi1>, tensor<2x9xi64>, tensor<2x9xi64>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, affine_map<(b, q, k, d, e) -> (b, q)>, affine_map<(b, q, k, d, e) -> (b, k)>, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i1, %e1: i64, %e2: i64):
        %inf = arith.constant 0xFF800000 : f32
        %zero = arith.constant 0.0 : f32
        %same = arith.cmpi eq, %e1, %e2 : i64
        %mask = arith.select %same, %zero, %inf : f32
        %t = arith.addf %s, %mask : f32
        %u = arith.select %e0, %t, %inf : f32
        %ahead = arith.cmpi sgt, %k, %q : index
        %v = arith.select %ahead, %inf, %u : f32
        attn.yield %v : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// A threshold of the scores stays in the region; the mask states the other part of the condition too.
// CHECK-LABEL: @threshold(
// CHECK: %[[KEEP:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<9xi1>)
// CHECK: mask(#attn.dense<1>)
// CHECK: score
// CHECK: arith.cmpf
// CHECK: arith.select
func.func @threshold(%x: tensor<2x9x8xf32>, %c0: tensor<9xi64>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<9xi64>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, affine_map<(b, q, k, d, e) -> (k)>, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i64):
        %inf = arith.constant 0xFF800000 : f32
        %zero = arith.constant 0.0 : f32
        %three = arith.constant 3 : i64
        %large = arith.cmpf ogt, %s, %zero : f32
        %valid = arith.cmpi eq, %e0, %three : i64
        %kept = arith.andi %large, %valid : i1
        %t = arith.select %kept, %s, %inf : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// No window: #attn.window needs an upper bound of the key too.
// CHECK-LABEL: @keys_from_the_query_on(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<9x9xi1>)
// CHECK: mask(#attn.dense<0>)
// CHECK-NOT: score
func.func @keys_from_the_query_on(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %inf = arith.constant 0xFF800000 : f32
        %hidden = arith.cmpi slt, %k, %q : index
        %t = arith.select %hidden, %inf, %s : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// A tensor for all pairs would be too large, so the region tests each pair.
// CHECK-LABEL: @too_many_pairs(
// CHECK-NOT: mask(
// CHECK: score
// CHECK: arith.select
func.func @too_many_pairs(%x: tensor<2x20000x8xf32>, %out: tensor<2x20000x8xf32>) -> tensor<2x20000x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x20000x8xf32>, tensor<2x20000x8xf32>, tensor<2x20000x8xf32>) outs(%out : tensor<2x20000x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %inf = arith.constant 0xFF800000 : f32
        %hidden = arith.cmpi slt, %k, %q : index
        %t = arith.select %hidden, %inf, %s : f32
        attn.yield %t : f32
      } -> tensor<2x20000x8xf32>
  return %o : tensor<2x20000x8xf32>
}

// #attn.dense does not test the operands: one comparison is with 1 instead of 0; the other one is true for NaN, which
// #attn.dense counts as nonzero. One tensor states both tests.
// CHECK-LABEL: @other_tests(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x9x9xi1>)
// CHECK: captures(%{{.*}} : tensor<2x9x9xi1>)
// CHECK-SAME: mask(#attn.dense<0>)
// CHECK-NOT: score
func.func @other_tests(%x: tensor<2x9x8xf32>, %c0: tensor<9x9xf32>, %c1: tensor<2x1x9xi64>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0, %c1 : tensor<9x9xf32>, tensor<2x1x9xi64>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #qk, #bk, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: f32, %e1: i64):
        %inf = arith.constant 0xFF800000 : f32
        %zero = arith.constant 0.0 : f32
        %one = arith.constant 1 : i64
        %a = arith.cmpf ueq, %e0, %zero : f32
        %t = arith.select %a, %inf, %s : f32
        %c = arith.cmpi eq, %e1, %one : i64
        %u = arith.select %c, %t, %inf : f32
        attn.yield %u : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// The tensor holds the last kept key of each batch item, so the lengths are its elements plus 1.
// CHECK-LABEL: @length_off_by_one(
// CHECK: %[[LENGTHS:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2xi64>)
// CHECK: mask(#attn.lengths<0>)
// CHECK-NOT: arith.select
func.func @length_off_by_one(%x: tensor<2x9x8xf32>, %c0: tensor<2xi32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) captures(%c0 : tensor<2xi32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #b, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32, %e0: i32):
        %inf = arith.constant 0xFF800000 : f32
        %ki = arith.index_cast %k : index to i32
        %kept = arith.cmpi sle, %ki, %e0 : i32
        %t = arith.select %kept, %s, %inf : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// With head size 0, every score is an empty sum, 0, so the region that yields 0 for kept pairs is removed.
// CHECK-LABEL: @uniform(
// CHECK: attn.attention ins(%{{.*}} : tensor<9x0xf32>, {{.*}} mask(#attn.causal)
// CHECK-NOT: score
func.func @uniform(%z: tensor<9x0xf32>, %x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%z, %z, %x : tensor<9x0xf32>, tensor<9x0xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [affine_map<(b, q, k, d, e) -> (q, d)>, affine_map<(b, q, k, d, e) -> (k, d)>, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %inf = arith.constant 0xFF800000 : f32
        %zero = arith.constant 0.0 : f32
        %hidden = arith.cmpi sgt, %k, %q : index
        %t = arith.select %hidden, %inf, %zero : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// Conditions that hold at every coordinate hide nothing, so they need no mask.
// CHECK-LABEL: @always(
// CHECK: attn.attention
// CHECK-NOT: mask(
// CHECK-NOT: score
// CHECK: return
func.func @always(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %inf = arith.constant 0xFF800000 : f32
        %zero = arith.constant 0 : index
        %most = arith.constant 8 : index
        %first = arith.cmpi sge, %q, %zero : index
        %last = arith.cmpi sle, %k, %most : index
        %kept = arith.andi %first, %last : i1
        %t = arith.select %kept, %s, %inf : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}

// The condition hides only the last key.
// CHECK-LABEL: @not_always(
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<i64>)
// CHECK: mask(#attn.lengths<0>)
func.func @not_always(%x: tensor<2x9x8xf32>, %out: tensor<2x9x8xf32>) -> tensor<2x9x8xf32> {
  %o = attn.attention ins(%x, %x, %x : tensor<2x9x8xf32>, tensor<2x9x8xf32>, tensor<2x9x8xf32>) outs(%out : tensor<2x9x8xf32>)
      {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} score {
      ^bb0(%b: index, %q: index, %k: index, %s: f32):
        %inf = arith.constant 0xFF800000 : f32
        %most = arith.constant 7 : index
        %kept = arith.cmpi sle, %k, %most : index
        %t = arith.select %kept, %s, %inf : f32
        attn.yield %t : f32
      } -> tensor<2x9x8xf32>
  return %o : tensor<2x9x8xf32>
}
