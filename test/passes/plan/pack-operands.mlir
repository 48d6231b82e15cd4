// RUN: attn-opt %s -attn-pack-operands -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-DAG: #[[$X:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d2)>
// CHECK-DAG: #[[$PANELS:.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d2, d3)>
// CHECK-DAG: #[[$OUT:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[$X2:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$ROWS:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$OUT2:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>

#target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
#x = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (n, k)>
#out = affine_map<(s, n, k) -> (s, n)>
#id = affine_map<(s, n) -> (s, n)>
module attributes {attn.target = #target} {
  // CHECK-LABEL: @panels(
  // CHECK-SAME: %[[X:.*]]: tensor<?x768xf32>, %[[W:.*]]: tensor<768x768xf32> {attn.weight}, %[[I:.*]]: tensor<?x768xf32>)
  // CHECK: %[[P:.*]] = attn.pack ins(%[[W]] : tensor<768x768xf32>) outs(%{{.*}} : tensor<12x768x64xf32>)
  // CHECK: %[[I3:.*]] = tensor.expand_shape %[[I]] {{\[}}[0], [1, 2]] {{.*}} : tensor<?x768xf32> into tensor<?x12x64xf32>
  // CHECK: %[[C:.*]] = linalg.contract indexing_maps = [#[[$X]], #[[$PANELS]], #[[$OUT]]] ins(%[[X]], %[[P]] : {{.*}}) outs(%[[I3]] :
  // CHECK: tensor.collapse_shape %[[C]] {{\[}}[0], [1, 2]] : tensor<?x12x64xf32> into tensor<?x768xf32>
  func.func @panels(%x: tensor<?x768xf32>, %w: tensor<768x768xf32> {attn.weight}, %i: tensor<?x768xf32>) -> tensor<?x768xf32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %w : tensor<?x768xf32>, tensor<768x768xf32>) outs(%i : tensor<?x768xf32>) -> tensor<?x768xf32>
    return %c : tensor<?x768xf32>
  }

  // A weight of few columns is one panel.
  // CHECK-LABEL: @one_panel(
  // CHECK-SAME: %[[X:.*]]: tensor<?x768xf32>, %[[W:.*]]: tensor<48x768xf32> {attn.weight}, %[[I:.*]]: tensor<?x48xf32>)
  // CHECK: %[[P:.*]] = attn.pack ins(%[[W]] : tensor<48x768xf32>) outs(%{{.*}} : tensor<1x768x48xf32>)
  // CHECK: %[[P2:.*]] = tensor.collapse_shape %[[P]] {{\[}}[0, 1], [2]]
  // CHECK: linalg.contract indexing_maps = [#[[$X2]], #[[$ROWS]], #[[$OUT2]]] ins(%[[X]], %[[P2]] : {{.*}}) outs(%[[I]] :
  func.func @one_panel(%x: tensor<?x768xf32>, %w: tensor<48x768xf32> {attn.weight}, %i: tensor<?x48xf32>) -> tensor<?x48xf32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %w : tensor<?x768xf32>, tensor<48x768xf32>) outs(%i : tensor<?x48xf32>) -> tensor<?x48xf32>
    return %c : tensor<?x48xf32>
  }

  // @heads: the rows of a head, which are not adjacent, become contiguous. @weight_rows: a weight (k, n) is packed from
  // its rows.
  // CHECK-LABEL: @heads(
  // CHECK-NOT: attn.pack
  // CHECK: %[[P:.*]] = linalg.transpose ins(%{{.*}} : tensor<64x4x16xf32>) outs(%{{.*}} : tensor<4x64x16xf32>) permutation = [1, 0, 2]
  // CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[P]] : tensor<?x64xf32>, tensor<4x64x16xf32>)
  // CHECK-LABEL: @weight_rows(
  // CHECK: %[[P:.*]] = attn.pack from_rows ins(%{{.*}} : tensor<64x768xf32>) outs(%{{.*}} : tensor<12x64x64xf32>)
  // CHECK: linalg.contract {{.*}} ins(%{{.*}}, %[[P]] : tensor<?x64xf32>, tensor<12x64x64xf32>)
  func.func @heads(%x: tensor<?x64xf32>, %w: tensor<64x4x16xf32> {attn.weight}, %i: tensor<4x?x16xf32>) -> tensor<4x?x16xf32> {
    %c = linalg.contract indexing_maps = [affine_map<(h, s, n, k) -> (s, k)>, affine_map<(h, s, n, k) -> (k, h, n)>, affine_map<(h, s, n, k) -> (h, s, n)>]
        ins(%x, %w : tensor<?x64xf32>, tensor<64x4x16xf32>) outs(%i : tensor<4x?x16xf32>) -> tensor<4x?x16xf32>
    return %c : tensor<4x?x16xf32>
  }

  func.func @weight_rows(%x: tensor<?x64xf32>, %w: tensor<64x768xf32> {attn.weight}, %i: tensor<?x768xf32>) -> tensor<?x768xf32> {
    %c = linalg.contract indexing_maps = [#x, affine_map<(s, n, k) -> (k, n)>, #out] ins(%x, %w : tensor<?x64xf32>, tensor<64x768xf32>) outs(%i : tensor<?x768xf32>) -> tensor<?x768xf32>
    return %c : tensor<?x768xf32>
  }

  // A weight without columns is not packed.
  // CHECK-LABEL: @no_columns(
  // CHECK-NOT: attn.pack
  // CHECK: return
  func.func @no_columns(%x: tensor<2x4xf32>, %w: tensor<0x4xf32> {attn.weight}, %i: tensor<2x0xf32>) -> tensor<2x0xf32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %w : tensor<2x4xf32>, tensor<0x4xf32>) outs(%i : tensor<2x0xf32>) -> tensor<2x0xf32>
    return %c : tensor<2x0xf32>
  }

  // Packing keeps the element type of a weight.
  // CHECK-LABEL: @half(
  // CHECK: attn.pack ins(%{{.*}} : tensor<48x768xbf16>) outs(%{{.*}} : tensor<1x768x48xbf16>)
  func.func @half(%x: tensor<?x768xf32>, %w: tensor<48x768xbf16> {attn.weight}, %i: tensor<?x48xf32>) -> tensor<?x48xf32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %w : tensor<?x768xf32>, tensor<48x768xbf16>) outs(%i : tensor<?x48xf32>) -> tensor<?x48xf32>
    return %c : tensor<?x48xf32>
  }

  // CHECK-LABEL: @unsigned(
  // CHECK: linalg.contract {{.*}} {cast = #linalg.type_fn<cast_unsigned>, note} {{.*}} outs(%{{.*}} : tensor<?x48xi32>)
  func.func @unsigned(%x: tensor<?x768xi8>, %w: tensor<48x768xi8> {attn.weight}, %i: tensor<?x48xi32>) -> tensor<?x48xi32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] {cast = #linalg.type_fn<cast_unsigned>, note}
        ins(%x, %w : tensor<?x768xi8>, tensor<48x768xi8>) outs(%i : tensor<?x48xi32>) -> tensor<?x48xi32>
    return %c : tensor<?x48xi32>
  }

  // A generic op that adds products of its inputs becomes a contraction; an op that applies absf to a factor stays.
  // CHECK-LABEL: @bodies(
  // CHECK: linalg.contract
  // CHECK: linalg.generic
  // CHECK: math.absf
  // CHECK-NOT: linalg.contract
  func.func @bodies(%x: tensor<?x768xf32>, %w: tensor<48x768xf32> {attn.weight}, %i: tensor<?x48xf32>) -> (tensor<?x48xf32>, tensor<?x48xf32>) {
    %c = linalg.generic {indexing_maps = [#x, #w, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<?x768xf32>, tensor<48x768xf32>) outs(%i : tensor<?x48xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    } -> tensor<?x48xf32>
    %d = linalg.generic {indexing_maps = [#x, #w, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %w : tensor<?x768xf32>, tensor<48x768xf32>) outs(%i : tensor<?x48xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %f = math.absf %a : f32
      %p = arith.mulf %f, %b : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
    } -> tensor<?x48xf32>
    return %c, %d : tensor<?x48xf32>, tensor<?x48xf32>
  }

  // An operand that is not a weight is transposed.
  // CHECK-LABEL: @input(
  // CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>, %[[Y:.*]]: tensor<?x64xf32>
  // CHECK: %[[T:.*]] = linalg.transpose ins(%[[Y]] : tensor<?x64xf32>) outs(%{{.*}} : tensor<64x?xf32>) permutation = [1, 0]
  // CHECK: linalg.contract indexing_maps = [#[[$X2]], #[[$ROWS]], #[[$OUT2]]] ins(%[[X]], %[[T]] :
  func.func @input(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>, %i: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %y : tensor<?x64xf32>, tensor<?x64xf32>) outs(%i : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %c : tensor<?x?xf32>
  }

  // CHECK-LABEL: @rows(
  // CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>, %[[Y:.*]]: tensor<64x?xf32>
  // CHECK-NOT: linalg.transpose
  // CHECK: linalg.contract {{.*}} ins(%[[X]], %[[Y]] :
  func.func @rows(%x: tensor<?x64xf32>, %y: tensor<64x?xf32>, %i: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %c = linalg.contract indexing_maps = [#x, affine_map<(s, n, k) -> (k, n)>, #out] ins(%x, %y : tensor<?x64xf32>, tensor<64x?xf32>) outs(%i : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %c : tensor<?x?xf32>
  }

  // The operand that has the columns becomes the second one: the loops over tasks divide the rows of the first.
  // CHECK-LABEL: @swapped(
  // CHECK-SAME: %[[Y:.*]]: tensor<64x?xf32>, %[[X:.*]]: tensor<?x64xf32>
  // CHECK: linalg.contract {{.*}} ins(%[[X]], %[[Y]] :
  func.func @swapped(%y: tensor<64x?xf32>, %x: tensor<?x64xf32>, %i: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %c = linalg.contract indexing_maps = [affine_map<(s, n, k) -> (k, n)>, #x, #out] ins(%y, %x : tensor<64x?xf32>, tensor<?x64xf32>) outs(%i : tensor<?x?xf32>) -> tensor<?x?xf32>
    return %c : tensor<?x?xf32>
  }

  // The init and the epilogue of the product get the dimension of panels too.
  // CHECK-LABEL: @epilogue(
  // CHECK-SAME: %[[B:[^ ]*]]: tensor<512xf32> {attn.weight}, %[[R:[^ ]*]]: tensor<96x512xf32>)
  // CHECK: %[[B2:.*]] = tensor.expand_shape %[[B]] {{.*}} into tensor<8x64xf32>
  // CHECK: %[[I:.*]] = linalg.generic {{.*}} ins(%[[B2]] : tensor<8x64xf32>) outs(%{{.*}} : tensor<96x8x64xf32>)
  // CHECK: %[[C:.*]] = linalg.contract {{.*}} outs(%[[I]] : tensor<96x8x64xf32>)
  // CHECK: %[[R3:.*]] = tensor.expand_shape %[[R]] {{.*}} into tensor<96x8x64xf32>
  // CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[C]], %[[R3]] :
  // CHECK: tensor.collapse_shape %[[S]] {{.*}} into tensor<96x512xf32>
  func.func @epilogue(%x: tensor<96x512xf32>, %w: tensor<512x512xf32> {attn.weight}, %b: tensor<512xf32> {attn.weight}, %r: tensor<96x512xf32>) -> tensor<96x512xf32> {
    %e = tensor.empty() : tensor<96x512xf32>
    %i = linalg.broadcast ins(%b : tensor<512xf32>) outs(%e : tensor<96x512xf32>) dimensions = [0]
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %w : tensor<96x512xf32>, tensor<512x512xf32>) outs(%i : tensor<96x512xf32>) -> tensor<96x512xf32>
    %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%c, %r : tensor<96x512xf32>, tensor<96x512xf32>) outs(%e : tensor<96x512xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %sum = arith.addf %p, %q : f32
      linalg.yield %sum : f32
    } -> tensor<96x512xf32>
    return %s : tensor<96x512xf32>
  }
}

// -----

// expected-error@+1 {{expected 'attn.target' on an enclosing module}}
func.func @no_target() {
  return
}

// -----

// A reshape of a value that another op reads too stays. Expanding the producer of the value would create a new reshape
// for the other op, and the pass would not terminate.
// CHECK-LABEL: @shared(
// CHECK: %[[A:.*]] = linalg.generic
// CHECK: tensor.expand_shape %[[A]]
// CHECK: linalg.generic {{.*}} ins(%[[A]],
#target = #attn.cpu<"x86-64-v4", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks>
module attributes {attn.target = #target} {
  func.func @shared() -> tensor<1x1xi64> {
    %zero = arith.constant 0 : i64
    %e = tensor.empty() : tensor<1xi64>
    %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<1xi64>) {
    ^bb0(%o: i64):
      linalg.yield %zero : i64
    } -> tensor<1xi64>
    %v = tensor.expand_shape %a [[0, 1]] output_shape [1, 1] : tensor<1xi64> into tensor<1x1xi64>
    %f = tensor.empty() : tensor<1x1xi64>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%a, %v : tensor<1xi64>, tensor<1x1xi64>) outs(%f : tensor<1x1xi64>) {
    ^bb0(%x: i64, %y: i64, %o: i64):
      %s = arith.subi %x, %y : i64
      linalg.yield %s : i64
    } -> tensor<1x1xi64>
    return %r : tensor<1x1xi64>
  }
}

// -----

// The target has instructions that add the products of pairs of bf16, so the weight is packed in pairs and the other
// operand is viewed in pairs. Sums of an odd number of products, and factors of two types, do not use pairs.
#pairs = #attn.cpu<"x86-64-v4-bf16", vector = 512, registers = 32, spare = 1, l1 = 32768, l2 = 1048576, has = fma|masks|pairs>
#x = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (n, k)>
#out = affine_map<(s, n, k) -> (s, n)>
module attributes {attn.target = #pairs} {
  // CHECK-LABEL: @pairs(
  // CHECK-SAME: %[[X:.*]]: tensor<?x768xbf16>, %[[W:.*]]: tensor<768x768xbf16>
  // CHECK: %[[P:.*]] = attn.pack group(2) ins(%[[W]] : {{.*}}) outs(%{{.*}} : tensor<12x384x64x2xbf16>)
  // CHECK: %[[X3:.*]] = tensor.expand_shape %[[X]] {{\[}}[0], [1, 2]] {{.*}} into tensor<?x384x2xbf16>
  // CHECK: linalg.contract {{.*}} ins(%[[X3]], %[[P]] : tensor<?x384x2xbf16>, tensor<12x384x64x2xbf16>) outs(%{{.*}} : tensor<?x12x64xf32>)
  func.func @pairs(%x: tensor<?x768xbf16>, %w: tensor<768x768xbf16> {attn.weight}, %i: tensor<?x768xf32>) -> tensor<?x768xf32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %w : tensor<?x768xbf16>, tensor<768x768xbf16>) outs(%i : tensor<?x768xf32>) -> tensor<?x768xf32>
    return %c : tensor<?x768xf32>
  }

  // CHECK-LABEL: @one_panel_of_pairs(
  // CHECK: attn.pack from_rows group(2) {{.*}} outs(%{{.*}} : tensor<1x384x48x2xbf16>)
  // CHECK: linalg.contract {{.*}} ins(%{{.*}} : tensor<?x384x2xbf16>, tensor<384x48x2xbf16>) outs(%{{.*}} : tensor<?x48xf32>)
  func.func @one_panel_of_pairs(%x: tensor<?x768xbf16>, %w: tensor<768x48xbf16> {attn.weight}, %i: tensor<?x48xf32>) -> tensor<?x48xf32> {
    %c = linalg.contract indexing_maps = [#x, affine_map<(s, n, k) -> (k, n)>, #out] ins(%x, %w : tensor<?x768xbf16>, tensor<768x48xbf16>) outs(%i : tensor<?x48xf32>) -> tensor<?x48xf32>
    return %c : tensor<?x48xf32>
  }

  // CHECK-LABEL: @odd(
  // CHECK: attn.pack ins(%{{.*}} : tensor<48x7xbf16>) outs(%{{.*}} : tensor<1x7x48xbf16>)
  func.func @odd(%x: tensor<?x7xbf16>, %w: tensor<48x7xbf16> {attn.weight}, %i: tensor<?x48xf32>) -> tensor<?x48xf32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %w : tensor<?x7xbf16>, tensor<48x7xbf16>) outs(%i : tensor<?x48xf32>) -> tensor<?x48xf32>
    return %c : tensor<?x48xf32>
  }

  // CHECK-LABEL: @two_types(
  // CHECK: attn.pack ins(%{{.*}} : tensor<48x8xbf16>) outs(%{{.*}} : tensor<1x8x48xbf16>)
  func.func @two_types(%x: tensor<?x8xf32>, %w: tensor<48x8xbf16> {attn.weight}, %i: tensor<?x48xf32>) -> tensor<?x48xf32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %w : tensor<?x8xf32>, tensor<48x8xbf16>) outs(%i : tensor<?x48xf32>) -> tensor<?x48xf32>
    return %c : tensor<?x48xf32>
  }
}

// -----

// With 16 registers of 8 lanes, the best register block is three vectors wide. 24 columns divide 768, and 16 divide 1024.
#target = #attn.cpu<"x86-64-v3", vector = 256, registers = 16, l1 = 32768, l2 = 262144, has = fma|masks>
#x = affine_map<(s, n, k) -> (s, k)>
#w = affine_map<(s, n, k) -> (n, k)>
#out = affine_map<(s, n, k) -> (s, n)>
module attributes {attn.target = #target} {
  // CHECK-LABEL: @three_vectors(
  // CHECK: attn.pack ins({{.*}} : tensor<768x64xf32>) outs(%{{.*}} : tensor<32x64x24xf32>)
  func.func @three_vectors(%x: tensor<?x64xf32>, %w: tensor<768x64xf32> {attn.weight}, %i: tensor<?x768xf32>) -> tensor<?x768xf32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %w : tensor<?x64xf32>, tensor<768x64xf32>) outs(%i : tensor<?x768xf32>) -> tensor<?x768xf32>
    return %c : tensor<?x768xf32>
  }
  // CHECK-LABEL: @two_vectors(
  // CHECK: attn.pack ins({{.*}} : tensor<1024x64xf32>) outs(%{{.*}} : tensor<64x64x16xf32>)
  func.func @two_vectors(%x: tensor<?x64xf32>, %w: tensor<1024x64xf32> {attn.weight}, %i: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
    %c = linalg.contract indexing_maps = [#x, #w, #out] ins(%x, %w : tensor<?x64xf32>, tensor<1024x64xf32>) outs(%i : tensor<?x1024xf32>) -> tensor<?x1024xf32>
    return %c : tensor<?x1024xf32>
  }
}
