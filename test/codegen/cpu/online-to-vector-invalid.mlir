// RUN: attn-opt %s -attn-online-to-vector -split-input-file -verify-diagnostics

// expected-error@+1 {{expected a module with attn.target, got none}}
func.func @no_target(%m: memref<8xf32>, %l: memref<8xf32>, %a: memref<4x8xf32>) {
  attn.online_init outs(%m, %l, %a : memref<8xf32>, memref<8xf32>, memref<4x8xf32>)
  return
}

// -----

#v3 = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>
module attributes {attn.target = #v3} {
func.func @half(%m: memref<8xf16>, %l: memref<8xf16>, %a: memref<4x8xf16>) {
  // expected-error@+1 {{expected buffers of f32 with a contiguous last dimension, got 'memref<4x8xf16>'}}
  attn.online_init outs(%m, %l, %a : memref<8xf16>, memref<8xf16>, memref<4x8xf16>)
  return
}
}

// -----

#v3 = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>
module attributes {attn.target = #v3} {
func.func @strided_queries(%m: memref<8xf32>, %l: memref<8xf32>, %a: memref<4x8xf32, strided<[1, 4]>>) {
  // expected-error@+1 {{expected buffers of f32 with a contiguous last dimension, got 'memref<4x8xf32, strided<[1, 4]>>'}}
  attn.online_init outs(%m, %l, %a : memref<8xf32>, memref<8xf32>, memref<4x8xf32, strided<[1, 4]>>)
  return
}
}

// -----

#v3 = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>
module attributes {attn.target = #v3} {
func.func @double_keys(%q: memref<4x8xf32>, %k: memref<16x4xf64>, %s: memref<16x8xf32>, %m: memref<8xf32>, %l: memref<8xf32>, %a: memref<4x8xf32>, %i: index) {
  // expected-error@+1 {{expected strided buffers of f32, f16 or bf16, got 'memref<16x4xf64>'}}
  attn.online_step ins(%q, %k, %k : memref<4x8xf32>, memref<16x4xf64>, memref<16x4xf64>)
    outs(%s, %m, %l, %a : memref<16x8xf32>, memref<8xf32>, memref<8xf32>, memref<4x8xf32>) at(%i, %i) {capture_maps = [], scale = 1.0 : f32}
  return
}
}

// -----

#v3 = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>
module attributes {attn.target = #v3} {
func.func @no_pairs(%q: memref<2x8x2xbf16>, %k: memref<16x4xbf16>, %v: memref<8x4x2xbf16>, %s: memref<16x8xf32>, %m: memref<8xf32>, %l: memref<8xf32>, %a: memref<4x8xf32>, %p: memref<8x8x2xbf16>, %i: index) {
  // expected-error@+1 {{expected probabilities in groups that an instruction of x86-64-v3 adds, got 2 elements of 'bf16'}}
  attn.online_step ins(%q, %k, %v : memref<2x8x2xbf16>, memref<16x4xbf16>, memref<8x4x2xbf16>)
    outs(%s, %m, %l, %a : memref<16x8xf32>, memref<8xf32>, memref<8xf32>, memref<4x8xf32>) probabilities(%p : memref<8x8x2xbf16>) at(%i, %i) {capture_maps = [], scale = 1.0 : f32}
  return
}
}

// -----

#v3 = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>
module attributes {attn.target = #v3} {
func.func @strided_parts(%ms: memref<2x8xf32, strided<[1, 2]>>, %as: memref<2x4x8xf32>, %m: memref<8xf32>, %l: memref<8xf32>, %a: memref<4x8xf32>) {
  // expected-error@+1 {{expected buffers of f32 with a contiguous last dimension, got 'memref<2x8xf32, strided<[1, 2]>>'}}
  attn.online_merge ins(%ms, %ms, %as : memref<2x8xf32, strided<[1, 2]>>, memref<2x8xf32, strided<[1, 2]>>, memref<2x4x8xf32>)
    outs(%m, %l, %a : memref<8xf32>, memref<8xf32>, memref<4x8xf32>) {scale = 1.0 : f32}
  return
}
}

// -----

#v4 = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.target = #v4} {
func.func @packed_rows(%q: memref<2x4xf32>, %k: memref<32x4xf32>, %w: memref<1x2xi32>, %s: memref<2x32xf32>, %m: memref<2xf32>, %a: memref<2x4xf32>, %i: index) {
  // expected-error@+1 {{expected no packed mask with queries in rows, got a capture at affine_map<(d0, d1) -> (d0 floordiv 32, d1)>}}
  attn.online_step rows ins(%q, %k, %k : memref<2x4xf32>, memref<32x4xf32>, memref<32x4xf32>) captures(%w : memref<1x2xi32>)
    outs(%s, %m, %m, %a : memref<2x32xf32>, memref<2xf32>, memref<2xf32>, memref<2x4xf32>) at(%i, %i) mask(#attn.dense<0>) {capture_maps = [affine_map<(k, q) -> (k floordiv 32, q)>], scale = 1.0 : f32}
  return
}
}
