// RUN: attn-opt %s -attn-note-extra-work -split-input-file -verify-diagnostics

// Each case has the buffers that result if an earlier pass breaks a rule against extra work.

#rows = affine_map<(s, n, k) -> (s, k)>
#panel = affine_map<(s, n, k) -> (k, n)>
#out = affine_map<(s, n, k) -> (s, n)>
#maps = [#rows, #panel, #out]

// A layer without extra work: keys are projected once for each head, queries once for each tile; every temporary is
// read; products for full and partial tiles read the same buffers at one location; the bias is the init of a product.
func.func @layer(%x: memref<96x64xf32>, %w: memref<2x64x32xf32>, %b: memref<32xf32>, %out: memref<2x96x32xf32> {attn.output}) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c96 = arith.constant 96 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%h) in (2) {
    %wh = memref.subview %w[%h, 0, 0] [1, 64, 32] [1, 1, 1] : memref<2x64x32xf32> to memref<64x32xf32, strided<[32, 1], offset: ?>>
    %k = memref.alloc() : memref<96x32xf32>
    linalg.broadcast ins(%b : memref<32xf32>) outs(%k : memref<96x32xf32>) dimensions = [0]
    linalg.contract indexing_maps = #maps ins(%x, %wh : memref<96x64xf32>, memref<64x32xf32, strided<[32, 1], offset: ?>>) outs(%k : memref<96x32xf32>)
    scf.for %i = %c0 to %c96 step %c32 {
      %xi = memref.subview %x[%i, 0] [32, 64] [1, 1] : memref<96x64xf32> to memref<32x64xf32, strided<[64, 1], offset: ?>>
      %q = memref.alloc() : memref<32x32xf32>
      linalg.fill ins(%zero : f32) outs(%q : memref<32x32xf32>)
      linalg.contract indexing_maps = #maps ins(%xi, %wh : memref<32x64xf32, strided<[64, 1], offset: ?>>, memref<64x32xf32, strided<[32, 1], offset: ?>>) outs(%q : memref<32x32xf32>)
      %o = memref.subview %out[%h, %i, 0] [1, 32, 32] [1, 1, 1] : memref<2x96x32xf32> to memref<32x32xf32, strided<[32, 1], offset: ?>>
      linalg.fill ins(%zero : f32) outs(%o : memref<32x32xf32, strided<[32, 1], offset: ?>>)
      scf.for %j = %c0 to %c64 step %c32 {
        %kj = memref.subview %k[%j, 0] [32, 32] [1, 1] : memref<96x32xf32> to memref<32x32xf32, strided<[32, 1], offset: ?>>
        linalg.contract indexing_maps = #maps ins(%q, %kj : memref<32x32xf32>, memref<32x32xf32, strided<[32, 1], offset: ?>>) outs(%o : memref<32x32xf32, strided<[32, 1], offset: ?>>) loc(#step)
      }
      %kj = memref.subview %k[64, 0] [32, 32] [1, 1] : memref<96x32xf32> to memref<32x32xf32, strided<[32, 1], offset: 2048>>
      linalg.contract indexing_maps = #maps ins(%q, %kj : memref<32x32xf32>, memref<32x32xf32, strided<[32, 1], offset: 2048>>) outs(%o : memref<32x32xf32, strided<[32, 1], offset: ?>>) loc(#step)
    }
  }
  return
}
#step = loc("layer.py":7:9)

// -----

// A producer that was fused elsewhere stays because a memref.dim uses it, but nothing reads its elements.
#maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>]
func.func @unread(%x: memref<?x64xf32>, %w: memref<64x32xf32>) -> index {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %s = memref.dim %x, %c0 : memref<?x64xf32>
  // expected-remark@+1 {{extra work: writes a buffer that nothing reads}}
  %q = memref.alloc(%s) : memref<?x32xf32>
  linalg.fill ins(%zero : f32) outs(%q : memref<?x32xf32>)
  linalg.contract indexing_maps = #maps ins(%x, %w : memref<?x64xf32>, memref<64x32xf32>) outs(%q : memref<?x32xf32>)
  %n = memref.dim %q, %c0 : memref<?x32xf32>
  return %n : index
}

// -----

// Two products have the same fill as init, so every task must copy the fill for one of them.
func.func @merged_fills(%k: memref<2x8x4xf32> {attn.output}, %v: memref<2x8x4xf32> {attn.output}) {
  %zero = arith.constant 0.0 : f32
  scf.forall (%h) in (2) {
    %kh = memref.subview %k[%h, 0, 0] [1, 8, 4] [1, 1, 1] : memref<2x8x4xf32> to memref<8x4xf32, strided<[4, 1], offset: ?>>
    %vh = memref.subview %v[%h, 0, 0] [1, 8, 4] [1, 1, 1] : memref<2x8x4xf32> to memref<8x4xf32, strided<[4, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%kh : memref<8x4xf32, strided<[4, 1], offset: ?>>)
    // expected-remark@+1 {{extra work: copies 8 x 4 elements of 'f32'}}
    memref.copy %kh, %vh : memref<8x4xf32, strided<[4, 1], offset: ?>> to memref<8x4xf32, strided<[4, 1], offset: ?>>
  }
  return
}

// -----

// Adding this bias needs a separate pass over memory.
#maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>]
#id = affine_map<(s, n) -> (s, n)>
func.func @bias(%x: memref<8x64xf32>, %w: memref<64x32xf32>, %b: memref<32xf32>, %out: memref<8x32xf32> {attn.output}) {
  %zero = arith.constant 0.0 : f32
  %p = memref.alloc() : memref<8x32xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<8x32xf32>)
  linalg.contract indexing_maps = #maps ins(%x, %w : memref<8x64xf32>, memref<64x32xf32>) outs(%p : memref<8x32xf32>)
  // expected-remark@+1 {{extra work: adds a bias to a product in a separate loop}}
  linalg.generic {indexing_maps = [#id, affine_map<(s, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %b : memref<8x32xf32>, memref<32xf32>) outs(%out : memref<8x32xf32>) {
  ^bb0(%product: f32, %bias: f32, %o: f32):
    %sum = arith.addf %product, %bias : f32
    linalg.yield %sum : f32
  }
  return
}

// -----

// No remark: the bias cannot be the init of the product, because another op reads the product without the bias.
#maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>]
#id = affine_map<(s, n) -> (s, n)>
func.func @no_bias(%x: memref<8x64xf32>, %w: memref<64x32xf32>, %b: memref<32xf32>, %out: memref<8x32xf32> {attn.output}, %sums: memref<8x32xf32> {attn.output}) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%out : memref<8x32xf32>)
  linalg.contract indexing_maps = #maps ins(%x, %w : memref<8x64xf32>, memref<64x32xf32>) outs(%out : memref<8x32xf32>)
  linalg.generic {indexing_maps = [#id, affine_map<(s, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%out, %b : memref<8x32xf32>, memref<32xf32>) outs(%sums : memref<8x32xf32>) {
  ^bb0(%product: f32, %bias: f32, %o: f32):
    %sum = arith.addf %product, %bias : f32
    linalg.yield %sum : f32
  }
  linalg.exp ins(%out : memref<8x32xf32>) outs(%out : memref<8x32xf32>)
  return
}

// -----

// Every tile of queries computes the projection of all keys.
#maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>]
func.func @repeated(%x: memref<2x8x64xf32>, %w: memref<64x32xf32>, %out: memref<2x8x32xf32> {attn.output}) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%b) in (2) {
    %xb = memref.subview %x[%b, 0, 0] [1, 8, 64] [1, 1, 1] : memref<2x8x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    scf.for %i = %c0 to %c8 step %c2 {
      %k = memref.alloc() : memref<8x32xf32>
      linalg.fill ins(%zero : f32) outs(%k : memref<8x32xf32>)
      // expected-remark@+1 {{extra work: a product that every iteration of its loop repeats}}
      linalg.contract indexing_maps = #maps ins(%xb, %w : memref<8x64xf32, strided<[64, 1], offset: ?>>, memref<64x32xf32>) outs(%k : memref<8x32xf32>)
      %ki = memref.subview %k[%i, 0] [2, 32] [1, 1] : memref<8x32xf32> to memref<2x32xf32, strided<[32, 1], offset: ?>>
      %o = memref.subview %out[%b, %i, 0] [1, 2, 32] [1, 1, 1] : memref<2x8x32xf32> to memref<2x32xf32, strided<[32, 1], offset: ?>>
      linalg.exp ins(%ki : memref<2x32xf32, strided<[32, 1], offset: ?>>) outs(%o : memref<2x32xf32, strided<[32, 1], offset: ?>>)
    }
  }
  return
}

// -----

// No remark: the loop writes an operand of the product, so the product is different in each iteration.
#maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (k, n)>, affine_map<(s, n, k) -> (s, n)>]
func.func @rewritten(%x: memref<32x8x64xf32>, %w: memref<64x32xf32>, %out: memref<8x32xf32> {attn.output}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %y = memref.alloc() : memref<8x64xf32>
  scf.for %b = %c0 to %c32 step %c1 {
    %xb = memref.subview %x[%b, 0, 0] [1, 8, 64] [1, 1, 1] : memref<32x8x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    linalg.exp ins(%xb : memref<8x64xf32, strided<[64, 1], offset: ?>>) outs(%y : memref<8x64xf32>)
    linalg.contract indexing_maps = #maps ins(%y, %w : memref<8x64xf32>, memref<64x32xf32>) outs(%out : memref<8x32xf32>)
  }
  return
}

// -----

// A producer with another use, here a cache of keys, is computed in a phase of its own and again where it was fused.
// The projection of queries has the same location but reads another part of the weight, so it gets no remark.
#maps = [affine_map<(s, n, k) -> (s, k)>, affine_map<(s, n, k) -> (n, k)>, affine_map<(s, n, k) -> (s, n)>]
func.func @two_phases(%x: memref<2x8x64xf32>, %w: memref<96x64xf32>, %cache: memref<2x8x32xf32> {attn.output}, %out: memref<2x8x32xf32> {attn.output}) {
  %zero = arith.constant 0.0 : f32
  %wk = memref.subview %w[0, 0] [32, 64] [1, 1] : memref<96x64xf32> to memref<32x64xf32, strided<[64, 1]>>
  %wq = memref.subview %w[32, 0] [32, 64] [1, 1] : memref<96x64xf32> to memref<32x64xf32, strided<[64, 1], offset: 2048>>
  scf.forall (%b) in (2) {
    %xb = memref.subview %x[%b, 0, 0] [1, 8, 64] [1, 1, 1] : memref<2x8x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    %k = memref.subview %cache[%b, 0, 0] [1, 8, 32] [1, 1, 1] : memref<2x8x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%k : memref<8x32xf32, strided<[32, 1], offset: ?>>)
    linalg.contract indexing_maps = #maps ins(%xb, %wk : memref<8x64xf32, strided<[64, 1], offset: ?>>, memref<32x64xf32, strided<[64, 1]>>) outs(%k : memref<8x32xf32, strided<[32, 1], offset: ?>>) loc(unknown)
  }
  scf.forall (%b) in (2) {
    %xb = memref.subview %x[%b, 0, 0] [1, 8, 64] [1, 1, 1] : memref<2x8x64xf32> to memref<8x64xf32, strided<[64, 1], offset: ?>>
    %q = memref.subview %out[%b, 0, 0] [1, 8, 32] [1, 1, 1] : memref<2x8x32xf32> to memref<8x32xf32, strided<[32, 1], offset: ?>>
    linalg.fill ins(%zero : f32) outs(%q : memref<8x32xf32, strided<[32, 1], offset: ?>>)
    linalg.contract indexing_maps = #maps ins(%xb, %wq : memref<8x64xf32, strided<[64, 1], offset: ?>>, memref<32x64xf32, strided<[64, 1], offset: 2048>>) outs(%q : memref<8x32xf32, strided<[32, 1], offset: ?>>) loc(unknown)
    %k = memref.alloc() : memref<8x32xf32>
    linalg.fill ins(%zero : f32) outs(%k : memref<8x32xf32>)
    // expected-remark@unknown {{extra work: a product that an earlier phase computes too}}
    linalg.contract indexing_maps = #maps ins(%xb, %wk : memref<8x64xf32, strided<[64, 1], offset: ?>>, memref<32x64xf32, strided<[64, 1]>>) outs(%k : memref<8x32xf32>) loc(unknown)
    linalg.add ins(%q, %k : memref<8x32xf32, strided<[32, 1], offset: ?>>, memref<8x32xf32>) outs(%q : memref<8x32xf32, strided<[32, 1], offset: ?>>)
  }
  return
}
