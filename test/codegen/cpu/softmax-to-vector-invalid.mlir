// RUN: attn-opt %s -attn-softmax-to-vector -split-input-file -verify-diagnostics

func.func @no_target(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  // expected-error@+1 {{expected a module with attn.target, got none}}
  linalg.softmax dimension(1) ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  return
}

// -----

#v3 = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma>
module attributes {attn.target = #v3} {
func.func @double(%x: memref<4x8xf64>, %y: memref<4x8xf64>) {
  // expected-error@+1 {{expected buffers of f32, got 'memref<4x8xf64>'}}
  linalg.softmax dimension(1) ins(%x : memref<4x8xf64>) outs(%y : memref<4x8xf64>)
  return
}
}
