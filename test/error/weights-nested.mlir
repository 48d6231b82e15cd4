// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/f.so --target=native
// RUN: %python -c "import struct; open(r'%t/w.safetensors', 'wb').write(struct.pack('<Q', 2000000) + b'[' * 2000000)"
// RUN: not attn-run %t/f.so --weights=%t/w.safetensors 2>&1 | FileCheck %s

// CHECK: attn-run: '{{.*}}w.safetensors': header expected '{', got '['
func.func @f(%x: tensor<4xf32>, %w: tensor<4xf32> {attn.weight}) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.add ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
