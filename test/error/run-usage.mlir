// attn-run prints one line and writes nothing for each command that it cannot carry out.
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: attnc %s -o f.so --target=native
// RUN: not attn-run f.so --entry=f --dim=n 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not attn-run f.so --entry=f --output-dir=out 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not attn-run f.so --entry=f --dim=n=4611686018427387904 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not attn-run f.so --entry=f --dim=n=4 --benchmark=long 2>&1 | FileCheck %s --check-prefix=SECONDS
// RUN: attn-run f.so --entry=f --dim=n=4 --output-dir=four
// RUN: attn-run f.so --entry=f --dim=n=5 --output-dir=five
// RUN: not attn-run f.so --entry=f --dim=n=5 --expect=four/0.npy 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not attn-run f.so --entry=f --dim=n=4 --expect=four/0.npy --expect=four/0.npy 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: %python %S/npy.py nan.npy '<f4' 4 nan
// RUN: not attn-run f.so --entry=f --dim=n=4 --expect=nan.npy 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not env TMPDIR=/nowhere attn-run %s --entry=f --dim=n=4 2>&1 | FileCheck %s --check-prefix=TEMPORARY
// RUN: not ls out

// FORM: attn-run: expected --dim=name=n, got 'n'
// SIZE: attn-run: expected --dim=n=n for random inputs
// HUGE: attn-run: expected sizes of less than 2^63 bytes
// SECONDS: attn-run: expected seconds, got 'long'
// SHAPE: attn-run: expected output 0 of shape [4] as in 'four/0.npy', got [5]
// MANY: attn-run: expected --expect at most 1 times, got it 2 times
// VALUE: attn-run: expected nan at element 0 of output 0, got {{[0-9.]+}}
// TEMPORARY: attn-run: cannot create a temporary folder: No such file or directory

// With --reference, the reference interpreter reads its weights from the same file as the call.
// RUN: %python %S/hostile_safetensors.py .
// RUN: not attn-run %s --entry=g --reference --weights=array.safetensors 2>&1 | FileCheck %s --check-prefix=ARRAY
// RUN: not attn-run %s --entry=g --reference --weights=missing.safetensors 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not attn-run %s --entry=g --reference --weights=dtype.safetensors 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: not attn-run %s --entry=g --reference --weights=sizes.safetensors 2>&1 | FileCheck %s --check-prefix=SIZES
// RUN: not attn-run %s --entry=g --reference --weights=outside.safetensors 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// ARRAY: attn-run: 'array.safetensors': expected a JSON object as header
// MISSING: attn-run: 'missing.safetensors': expected dtype, shape and data_offsets of 'w'
// DTYPE: attn-run: 'dtype.safetensors': expected a known dtype of 'w', got F8_E4M3
// SIZES: attn-run: 'sizes.safetensors': expected sizes in the shape of 'w'
// OUTSIDE: attn-run: 'outside.safetensors': expected 16 bytes of 'w' inside the file
func.func @f(%x: tensor<?xf32> {attn.dims = ["n"]}) -> tensor<?xf32> attributes {attn.symbols = [#attn.symbol<"n", 0 to 9223372036854775807>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}
func.func @g(%x: tensor<4xf32>, %w: tensor<4xf32> {attn.weight, attn.name = "w"}) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.add ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
