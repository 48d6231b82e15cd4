// RUN: attn-opt %s -attn-plan-workspace -canonicalize -cse -split-input-file -verify-diagnostics | FileCheck %s

func.func @forward(%x: memref<?x768xf32> {attn.dims = ["x.0", ""]}, %out: memref<?x768xf32> {attn.dims = ["x.0", ""], attn.output})
    attributes {attn.symbols = [#attn.symbol<"x.0", 0 to 4096>]} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x768xf32>
  %a = memref.alloc(%n) : memref<?x768xf32>
  linalg.exp ins(%x : memref<?x768xf32>) outs(%a : memref<?x768xf32>)
  %b = memref.alloc() : memref<10xf32>
  linalg.fill ins(%zero : f32) outs(%b : memref<10xf32>)
  %c = memref.alloc() : memref<3xindex>
  linalg.fill ins(%c0 : index) outs(%c : memref<3xindex>)
  scf.forall (%h) in (12) {
    %k = memref.alloc(%n) : memref<?x64xf32>
    linalg.fill ins(%zero : f32) outs(%k : memref<?x64xf32>)
    %v = memref.alloc(%n) : memref<?x64xf32>
    linalg.exp ins(%k : memref<?x64xf32>) outs(%v : memref<?x64xf32>)
  }
  scf.forall (%h) in (12) {
    %t = memref.alloc() : memref<48x48xf32>
    linalg.fill ins(%zero : f32) outs(%t : memref<48x48xf32>)
  }
  linalg.exp ins(%a : memref<?x768xf32>) outs(%out : memref<?x768xf32>)
  return
}

// -----

func.func @tail(%x: memref<?x?x64xf32> {attn.dims = ["b", "s", ""]}) attributes {attn.symbols = [#attn.symbol<"b", 0 to 8>, #attn.symbol<"s", 0 to 4096>]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c48 = arith.constant 48 : index
  %zero = arith.constant 0.0 : f32
  %b = memref.dim %x, %c0 : memref<?x?x64xf32>
  %s = memref.dim %x, %c1 : memref<?x?x64xf32>
  %p = memref.alloc(%b, %s) : memref<?x?x3xf32>
  linalg.fill ins(%zero : f32) outs(%p : memref<?x?x3xf32>)
  scf.forall (%i) in (%b) {
    scf.for %q = %c0 to %s step %c48 {
      %rows = affine.min affine_map<(q)[s] -> (48, s - q)>(%q)[%s]
      %t = memref.alloc(%rows) : memref<?x64xf32>
      linalg.fill ins(%zero : f32) outs(%t : memref<?x64xf32>)
      %rest = affine.apply affine_map<(q)[s] -> (s - q)>(%q)[%s]
      %u = memref.alloc(%rest) : memref<?xbf16>
      %z = arith.constant 0.0 : bf16
      linalg.fill ins(%z : bf16) outs(%u : memref<?xbf16>)
    }
  }
  return
}

// -----

func.func @forward.pack(%w: memref<64x64xf32> {attn.weight}, %p: memref<64x64xf32> {attn.output}) attributes {attn.kernel = "pack"} {
  %t = memref.alloc() : memref<64x64xf32>
  linalg.exp ins(%w : memref<64x64xf32>) outs(%t : memref<64x64xf32>)
  linalg.exp ins(%t : memref<64x64xf32>) outs(%p : memref<64x64xf32>)
  return
}

// -----

func.func @nothing() {
  return
}

// -----

func.func @unbounded(%n: index) {
  // expected-error@+1 {{expected a size that the function's symbols bound, got 'memref<?xf32>'}}
  %a = memref.alloc(%n) : memref<?xf32>
  return
}

// -----

func.func @unbounded.pack(%n: index) attributes {attn.kernel = "pack"} {
  // expected-error@+1 {{expected weights of static shape, got 'memref<?xf32>'}}
  %a = memref.alloc(%n) : memref<?xf32>
  return
}
