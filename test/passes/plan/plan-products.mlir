// RUN: attn-opt %s -attn-plan-products -split-input-file -verify-diagnostics | FileCheck %s

#x = affine_map<(s, p, j, k) -> (s, k)>
#w = affine_map<(s, p, j, k) -> (p, k, j)>
#o = affine_map<(s, p, j, k) -> (s, p, j)>
#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.target = #v4} {
// A block of the first product has the 64 columns of a panel, and adds its long sums in parts of 192 products. Half of L2
// holds 42 rows, but each panel is read for at least 48. The attributes that the second product already has are kept.
// CHECK-LABEL: @panels
// CHECK: linalg.contract {{.*}} {attn.block = #attn.block<rows = 6, vectors = 4, depth = 192>, attn.task = #attn.task<rows = 48>}
// CHECK: linalg.contract {{.*}} {attn.block = #attn.block<rows = 2, vectors = 1>, attn.task = #attn.task<rows = 8>}
func.func @panels(%x: tensor<?x3072xf32>, %w: tensor<12x3072x64xf32>, %i: tensor<?x12x64xf32>) -> (tensor<?x12x64xf32>, tensor<?x12x64xf32>) {
  %c = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<?x3072xf32>, tensor<12x3072x64xf32>)
      outs(%i : tensor<?x12x64xf32>) -> tensor<?x12x64xf32>
  %d = linalg.contract indexing_maps = [#x, #w, #o] {attn.block = #attn.block<rows = 2, vectors = 1>, attn.task = #attn.task<rows = 8>}
      ins(%x, %w : tensor<?x3072xf32>, tensor<12x3072x64xf32>) outs(%i : tensor<?x12x64xf32>) -> tensor<?x12x64xf32>
  return %c, %d : tensor<?x12x64xf32>, tensor<?x12x64xf32>
}
// The rows of a convolution are output channels. A sum of 40 channels and 9 elements of the kernel is added in parts of 20
// channels. The columns of a task are elements of the image.
// CHECK-LABEL: @convolution
// CHECK: linalg.generic {{.*}}attn.block = #attn.block<rows = 8, vectors = 2, depth = 180>, attn.task = #attn.task<rows = 8, columns = 1536>
func.func @convolution(%x: tensor<1x40x34x34xf32>, %w: tensor<64x40x3x3xf32>, %i: tensor<1x64x32x32xf32>) -> tensor<1x64x32x32xf32> {
  %c = linalg.generic {indexing_maps = [affine_map<(n, o, y, x, c, j, i) -> (n, c, y + j, x + i)>, affine_map<(n, o, y, x, c, j, i) -> (o, c, j, i)>, affine_map<(n, o, y, x, c, j, i) -> (n, o, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x40x34x34xf32>, tensor<64x40x3x3xf32>) outs(%i : tensor<1x64x32x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x64x32x32xf32>
  return %c : tensor<1x64x32x32xf32>
}
// A product without rows and columns: the sum of the products of two vectors.
// CHECK-LABEL: @dot
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 96>
func.func @dot(%x: tensor<64xf32>, %y: tensor<64xf32>, %i: tensor<f32>) -> tensor<f32> {
  %c = linalg.contract indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> (k)>, affine_map<(k) -> ()>]
      ins(%x, %y : tensor<64xf32>, tensor<64xf32>) outs(%i : tensor<f32>) -> tensor<f32>
  return %c : tensor<f32>
}
// The rows of the right operand are not in panels but far apart. A task reads their columns once for all 384 rows: half of
// L2 holds 682 rows of 192 elements, the depth of the block.
// CHECK-LABEL: @far_apart
// CHECK: linalg.contract {{.*}}attn.block = #attn.block<rows = 6, vectors = 4, depth = 192>, attn.task = #attn.task<rows = 384, columns = 192>}
func.func @far_apart(%x: tensor<384x1152xf32>, %w: tensor<1152x1500xf32>, %i: tensor<384x1500xf32>) -> tensor<384x1500xf32> {
  %c = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<384x1152xf32>, tensor<1152x1500xf32>) outs(%i : tensor<384x1500xf32>) -> tensor<384x1500xf32>
  return %c : tensor<384x1500xf32>
}
// A right operand that fits in half of L2 stays there, so that tasks have few rows and all columns.
// CHECK-LABEL: @near
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 96>}
func.func @near(%x: tensor<4096x32xf32>, %w: tensor<32x260xf32>, %i: tensor<4096x260xf32>) -> tensor<4096x260xf32> {
  %c = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<4096x32xf32>, tensor<32x260xf32>) outs(%i : tensor<4096x260xf32>) -> tensor<4096x260xf32>
  return %c : tensor<4096x260xf32>
}
// There are at least 8 tasks, if they then have at least 96 rows.
// CHECK-LABEL: @few_columns
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 102, columns = 192>}
func.func @few_columns(%x: tensor<200x1024xf32>, %w: tensor<1024x1100xf32>, %i: tensor<200x1100xf32>) -> tensor<200x1100xf32> {
  %c = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<200x1024xf32>, tensor<1024x1100xf32>) outs(%i : tensor<200x1100xf32>) -> tensor<200x1100xf32>
  return %c : tensor<200x1100xf32>
}
// One task of 128 rows for each of the 6 panels would leave most of 16 threads idle, so that there are two.
// CHECK-LABEL: @few_tasks
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 66>}
func.func @few_tasks(%x: tensor<128x384xf32>, %w: tensor<6x384x64xf32>, %i: tensor<128x6x64xf32>) -> tensor<128x6x64xf32> {
  %c = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<128x384xf32>, tensor<6x384x64xf32>)
      outs(%i : tensor<128x6x64xf32>) -> tensor<128x6x64xf32>
  return %c : tensor<128x6x64xf32>
}
// The 197 rows become two tasks of at most 102 rows, a multiple of the block's 6, instead of two tasks of 96 rows and
// one task of 5.
// CHECK-LABEL: @rows
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 102>}
func.func @rows(%x: tensor<197x768xf32>, %w: tensor<12x768x64xf32>, %i: tensor<197x12x64xf32>) -> tensor<197x12x64xf32> {
  %c = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<197x768xf32>, tensor<12x768x64xf32>)
      outs(%i : tensor<197x12x64xf32>) -> tensor<197x12x64xf32>
  return %c : tensor<197x12x64xf32>
}
// The rows of a small image are those of both of its loops: 784 rows in eight tasks.
// CHECK-LABEL: @image_rows
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 102>}
func.func @image_rows(%x: tensor<28x28x768xf32>, %w: tensor<12x768x64xf32>, %i: tensor<28x28x12x64xf32>) -> tensor<28x28x12x64xf32> {
  %c = linalg.contract indexing_maps = [affine_map<(y, x, p, j, k) -> (y, x, k)>, affine_map<(y, x, p, j, k) -> (p, k, j)>, affine_map<(y, x, p, j, k) -> (y, x, p, j)>]
      ins(%x, %w : tensor<28x28x768xf32>, tensor<12x768x64xf32>) outs(%i : tensor<28x28x12x64xf32>) -> tensor<28x28x12x64xf32>
  return %c : tensor<28x28x12x64xf32>
}
// A batch of an unknown number of short sequences has tasks of about as many rows as other products. The rows of windows
// do not lie at equal distances, so that a task has the 7 rows of one loop.
// CHECK-LABEL: @short_sequences
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 96>}
func.func @short_sequences(%x: tensor<?x3x64xf32>, %w: tensor<12x64x64xf32>, %i: tensor<?x3x12x64xf32>) -> tensor<?x3x12x64xf32> {
  %c = linalg.contract indexing_maps = [affine_map<(b, s, p, j, k) -> (b, s, k)>, affine_map<(b, s, p, j, k) -> (p, k, j)>, affine_map<(b, s, p, j, k) -> (b, s, p, j)>]
      ins(%x, %w : tensor<?x3x64xf32>, tensor<12x64x64xf32>) outs(%i : tensor<?x3x12x64xf32>) -> tensor<?x3x12x64xf32>
  return %c : tensor<?x3x12x64xf32>
}
// CHECK-LABEL: @windows
// CHECK: linalg.contract {{.*}}attn.task = #attn.task<rows = 7>}
func.func @windows(%x: tensor<4x7x4x7x64xf32>, %w: tensor<64x64xf32>, %i: tensor<4x4x7x7x64xf32>) -> tensor<4x4x7x7x64xf32> {
  %c = linalg.contract indexing_maps = [affine_map<(u, v, y, x, j, k) -> (u, y, v, x, k)>, affine_map<(u, v, y, x, j, k) -> (k, j)>, affine_map<(u, v, y, x, j, k) -> (u, v, y, x, j)>]
      ins(%x, %w : tensor<4x7x4x7x64xf32>, tensor<64x64xf32>) outs(%i : tensor<4x4x7x7x64xf32>) -> tensor<4x4x7x7x64xf32>
  return %c : tensor<4x4x7x7x64xf32>
}
// Half of L2 holds 77 rows; a task has 72, which are whole blocks of 6.
// CHECK-LABEL: @whole_blocks
// CHECK: linalg.contract {{.*}}attn.block = #attn.block<rows = 6, {{.*}}attn.task = #attn.task<rows = 72>}
func.func @whole_blocks(%x: tensor<?x1700xf32>, %w: tensor<12x1700x64xf32>, %i: tensor<?x12x64xf32>) -> tensor<?x12x64xf32> {
  %c = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<?x1700xf32>, tensor<12x1700x64xf32>)
      outs(%i : tensor<?x12x64xf32>) -> tensor<?x12x64xf32>
  return %c : tensor<?x12x64xf32>
}
}

// -----

#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.target = #v4} {
func.func @depth(%a: tensor<8x100xf32>, %b: tensor<100x64xf32>, %c: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @+1 {{expected a depth that divides the sum of 100 products, got 64}}
  %r = linalg.matmul {attn.block = #attn.block<rows = 6, vectors = 4, depth = 64>}
      ins(%a, %b : tensor<8x100xf32>, tensor<100x64xf32>) outs(%c : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}
}

// -----

func.func @block(%a: tensor<8x100xf32>, %b: tensor<100x64xf32>, %c: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @+1 {{expected 1 to 48 rows, at least one vector and a depth of at least 0, got rows = 49, vectors = 4, depth = 0}}
  %r = linalg.matmul {attn.block = #attn.block<rows = 49, vectors = 4>}
      ins(%a, %b : tensor<8x100xf32>, tensor<100x64xf32>) outs(%c : tensor<8x64xf32>) -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// -----

// The products of an attention have queries as columns. Tiles with hidden pairs skip products with zeros, which takes
// more registers. With the schedule whole-scores, scores have a column for each key. A block that the op already has is
// kept.
#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.target = #v4} {
// CHECK-LABEL: @attentions
// CHECK: attn.attention {{.*}}plan(<"per-head", q = 64, k = 128>) {attn.blocks = {scores = #attn.block<rows = 6, vectors = 4>, values = #attn.block<rows = 6, vectors = 4>},
// CHECK: attn.attention {{.*}}plan(<phased, q = 64, k = 128>) {attn.blocks = {masked = #attn.block<rows = 4, vectors = 4>, scores = #attn.block<rows = 6, vectors = 4>, values = #attn.block<rows = 2, vectors = 1>},
// CHECK: attn.attention {{.*}}plan(<"whole-scores", q = 8, k = 128>) {attn.blocks = {masked = #attn.block<rows = 8, vectors = 2, depth = 128>, scores = #attn.block<rows = 6, vectors = 4>},
func.func @attentions(%x: tensor<1024x32xf32>, %e: tensor<1024x32xf32>) -> (tensor<1024x32xf32>, tensor<1024x32xf32>, tensor<1024x32xf32>) {
  %a = attn.attention ins(%x, %x, %x : tensor<1024x32xf32>, tensor<1024x32xf32>, tensor<1024x32xf32>) outs(%e : tensor<1024x32xf32>)
      plan(<"per-head", q = 64, k = 128>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<1024x32xf32>
  %b = attn.attention ins(%x, %x, %x : tensor<1024x32xf32>, tensor<1024x32xf32>, tensor<1024x32xf32>) outs(%e : tensor<1024x32xf32>)
      mask(#attn.causal) plan(<"phased", q = 64, k = 128>)
      {attn.blocks = {values = #attn.block<rows = 2, vectors = 1>}, indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<1024x32xf32>
  %c = attn.attention ins(%x, %x, %x : tensor<1024x32xf32>, tensor<1024x32xf32>, tensor<1024x32xf32>) outs(%e : tensor<1024x32xf32>)
      mask(#attn.causal) plan(<"whole-scores", q = 8, k = 128>) {indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<1024x32xf32>
  return %a, %b, %c : tensor<1024x32xf32>, tensor<1024x32xf32>, tensor<1024x32xf32>
}
}

// -----

#q = affine_map<(q, k, d, e) -> (q, d)>
#k = affine_map<(q, k, d, e) -> (k, d)>
#v = affine_map<(q, k, d, e) -> (k, e)>
#o = affine_map<(q, k, d, e) -> (q, e)>
#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.target = #v4} {
func.func @depth(%x: tensor<100x32xf32>, %e: tensor<100x32xf32>) -> tensor<100x32xf32> {
  // expected-error @+1 {{expected a depth that divides the sum of 32 products, got 5}}
  %a = attn.attention ins(%x, %x, %x : tensor<100x32xf32>, tensor<100x32xf32>, tensor<100x32xf32>) outs(%e : tensor<100x32xf32>)
      plan(<"per-head", q = 64, k = 128>)
      {attn.blocks = {scores = #attn.block<rows = 2, vectors = 1, depth = 5>}, indexing_maps = [#q, #k, #v, #o], scale = 1.0 : f32} -> tensor<100x32xf32>
  return %a : tensor<100x32xf32>
}
}

// -----

// expected-error @+1 {{expected 'attn.blocks' to be a dictionary of #attn.block with the names scores, values and masked, got {keys = #attn.block<rows = 2, vectors = 1>}}}
func.func @names() attributes {attn.blocks = {keys = #attn.block<rows = 2, vectors = 1>}} { return }

// -----

// This target has no tile registers (AMX), which a block of 32 rows needs.
module attributes {attn.target = #attn.cpu<"x86-64-v4-bf16", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|pairs>} {
func.func @no_tiles(%a: tensor<64x100xf32>, %b: tensor<100x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @+1 {{expected a block of at most 8 rows, or of tiles that fit the registers of the machine, got #attn.block<rows = 32, vectors = 2>}}
  %r = linalg.matmul {attn.block = #attn.block<rows = 32, vectors = 2>}
      ins(%a, %b : tensor<64x100xf32>, tensor<100x64xf32>) outs(%c : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
}

// -----

module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>} {
func.func @kernels(%x: tensor<1x40x34x34xf32>, %w: tensor<64x40x3x3xf32>, %i: tensor<1x64x32x32xf32>) -> tensor<1x64x32x32xf32> {
  // expected-error @below {{expected a depth that divides the sum of 360 products, and is a multiple of 9, got 40}}
  %c = linalg.generic {indexing_maps = [affine_map<(n, o, y, x, c, j, i) -> (n, c, y + j, x + i)>, affine_map<(n, o, y, x, c, j, i) -> (o, c, j, i)>, affine_map<(n, o, y, x, c, j, i) -> (n, o, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x40x34x34xf32>, tensor<64x40x3x3xf32>) outs(%i : tensor<1x64x32x32xf32>) attrs = {attn.block = #attn.block<rows = 8, vectors = 2, depth = 40>} {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x64x32x32xf32>
  return %c : tensor<1x64x32x32xf32>
}
}

// -----

module attributes {attn.target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>} {
// Vectors run along channels that are the last dimension of the output. The rows are those of the image, as in a product.
// A part of the sum is one row of the kernel.
// CHECK-LABEL: @channels_last
// CHECK: linalg.conv_2d_nhwc_hwcf {attn.block = #attn.block<rows = 6, vectors = 4, depth = 120>, attn.task = #attn.task<rows = 102>
func.func @channels_last(%x: tensor<1x34x202x40xf32>, %w: tensor<3x3x40x64xf32>, %i: tensor<1x32x200x64xf32>) -> tensor<1x32x200x64xf32> {
  %c = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x34x202x40xf32>, tensor<3x3x40x64xf32>) outs(%i : tensor<1x32x200x64xf32>) -> tensor<1x32x200x64xf32>
  return %c : tensor<1x32x200x64xf32>
}
}
