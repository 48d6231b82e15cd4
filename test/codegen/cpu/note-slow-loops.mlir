// RUN: attn-opt %s -attn-note-slow-loops -verify-diagnostics

#id = affine_map<(i) -> (i)>
func.func @f(%x: memref<8xf32>, %index: memref<8xindex>, %y: memref<8xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%index : memref<8xindex>) outs(%y : memref<8xf32>) {
  ^bb0(%i: index, %out: f32):
    // expected-remark @+1 {{loop over scalars: reads memory at indices that are data}}
    %e = memref.load %x[%i] : memref<8xf32>
    linalg.yield %e : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    // expected-remark @+1 {{loop in f64: computes math.log}}
    %e = math.log %a : f32
    linalg.yield %e : f32
  }
  // The exponential is computed in f32, so this loop gets no remark.
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %out: f32):
    %e = math.exp %a : f32
    linalg.yield %e : f32
  }
  return
}
