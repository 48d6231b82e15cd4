// A transform op of MLIR splits the keys of a step into 4 parts. The mask keeps no pair of the last part. The results
// of the compiled parts agree with those of the whole step, and have the same bits for any number of threads.
// RUN: rm -rf %t && mkdir %t
// RUN: attnc %s -o %t/whole.so --dump-stages=%t/stages
// RUN: attn-run %s --reference --output-dir=%t/whole
// RUN: attn-opt %t/stages/6-tile.mlir -transform-preload-library=transform-library-paths=%S/Inputs/split-keys.mlir \
// RUN:   -transform-interpreter -o %t/parts.mlir
// RUN: FileCheck %s --input-file=%t/parts.mlir
// RUN: attnc --from=tile %t/parts.mlir -o %t/parts.so
// RUN: attn-run %t/parts.so --expect=%t/whole/0.npy --level=x86-64
// RUN: attn-run %t/parts.so --expect=%t/whole/0.npy --output-dir=%t/1
// RUN: attn-run %t/parts.so --expect=%t/whole/0.npy --output-dir=%t/3 --threads=3
// RUN: cmp %t/1/0.npy %t/3/0.npy

// CHECK: scf.forall (%{{.*}}) in (4)
// CHECK:   scf.for %{{.*}} step %c32
// CHECK:     attn.online_step
// CHECK: attn.online_merge
func.func @attend(%q: tensor<16x20xf32> {attn.name = "q"}, %k: tensor<300x16xf32> {attn.name = "k"}, %v: tensor<300x24xf32> {attn.name = "v"})
    -> (tensor<20x24xf32> {attn.name = "out"}) {
  %zero = arith.constant 0 : index
  %first = arith.constant 200 : index
  %s = tensor.empty() : tensor<300x20xf32>
  %m = tensor.empty() : tensor<20xf32>
  %l = tensor.empty() : tensor<20xf32>
  %a = tensor.empty() : tensor<24x20xf32>
  %o = tensor.empty() : tensor<20x24xf32>
  %i:3 = attn.online_init outs(%m, %l, %a : tensor<20xf32>, tensor<20xf32>, tensor<24x20xf32>)
    -> tensor<20xf32>, tensor<20xf32>, tensor<24x20xf32>
  %r:4 = attn.online_step ins(%q, %k, %v : tensor<16x20xf32>, tensor<300x16xf32>, tensor<300x24xf32>)
    outs(%s, %i#0, %i#1, %i#2 : tensor<300x20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<24x20xf32>)
    at(%first, %zero) mask(#attn.causal) {capture_maps = [], scale = 2.500000e-01 : f32}
    -> tensor<300x20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<24x20xf32>
  %f = attn.online_finish ins(%r#2, %r#3 : tensor<20xf32>, tensor<24x20xf32>) outs(%o : tensor<20x24xf32>) -> tensor<20x24xf32>
  return %f : tensor<20x24xf32>
}
