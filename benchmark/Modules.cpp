//===- Modules.cpp - the MLIR modules of benchmark cases ------------------===//
//
// Part of attn, under Apache-2.0 WITH LLVM-exception.
//
// The functions use type aliases, so that their text is the same for all sizes.
//
//===----------------------------------------------------------------------===//

#include "benchmark/Modules.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace attn::bench;

static constexpr StringLiteral kProduct = R"mlir(
!a = tensor<$Mx$Kxf32>
!b = tensor<$Kx$Nxf32>
!out = tensor<$Mx$Nxf32>
func.func @forward(%a: !a {attn.name = "a"}, %b: !b {attn.name = "b"}) -> !out {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !out
  %z = linalg.fill ins(%zero : f32) outs(%e : !out) -> !out
$product
  return %out : !out
}
)mlir";

static constexpr StringLiteral kPlainProduct = R"mlir(
  %out = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : !a, !b) outs(%z : !out) -> !out
)mlir";

static constexpr StringLiteral kGuardedProduct = R"mlir(
  %out = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, k)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%b, %a : !b, !a) outs(%z : !out) attrs = {attn.skips_zeros} {
  ^bb0(%y: f32, %x: f32, %sum: f32):
    %keep = arith.cmpf une, %y, %zero : f32
    %product = arith.mulf %y, %x : f32
    %more = arith.addf %sum, %product : f32
    %result = arith.select %keep, %more, %sum : f32
    linalg.yield %result : f32
  } -> !out
)mlir";

/// %$Y = %$X %$Y_weight^T + %$Y_bias, over batch and length.
static constexpr StringLiteral kLinear = R"mlir(
  %$Y_e = tensor.empty() : !$Y
  %$Y_zero = arith.constant 0.0 : f32
  %$Y_z = linalg.fill ins(%$Y_zero : f32) outs(%$Y_e : !$Y) -> !$Y
  %$Y_product = linalg.contract
      indexing_maps = [affine_map<(b, s, n, k) -> (b, s, k)>, affine_map<(b, s, n, k) -> (n, k)>,
                       affine_map<(b, s, n, k) -> (b, s, n)>]
      ins(%$X, %$Y_weight : !$X, !$Y_weight) outs(%$Y_z : !$Y) -> !$Y
  %$Y = linalg.generic {
      indexing_maps = [affine_map<(b, s, n) -> (b, s, n)>, affine_map<(b, s, n) -> (n)>,
                       affine_map<(b, s, n) -> (b, s, n)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%$Y_product, %$Y_bias : !$Y, !$Y_bias) outs(%$Y_e : !$Y) {
  ^bb0(%product: f32, %bias: f32, %unused: f32):
    %sum = arith.addf %product, %bias : f32
    linalg.yield %sum : f32
  } -> !$Y
)mlir";

static constexpr StringLiteral kProjection = R"mlir(
!x = tensor<1x$Mx$Kxf32>
!y = tensor<1x$Mx$Nxf32>
!y_weight = tensor<$Nx$Kxf32>
!y_bias = tensor<$Nxf32>
func.func @forward(%x: !x {attn.name = "x"},
                   %y_weight: !y_weight {attn.name = "weight", attn.weight},
                   %y_bias: !y_bias {attn.name = "bias", attn.weight}) -> !y {
$linear
  return %y : !y
}
)mlir";

/// %o = attention of %q, %k, %v.
static constexpr StringLiteral kAttend = R"mlir(
  %o_e = tensor.empty() : !q
  %o = attn.attention ins(%q, %k, %v : !q, !k, !k) outs(%o_e : !q) $mask $plan {
      indexing_maps = [affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>,
                       affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>,
                       affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>,
                       affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>],
      scale = $scale : f32} -> !q
)mlir";

static constexpr StringLiteral kAttention = R"mlir(
!q = tensor<$Bx$Hx$Qx$Dxf32>
!k = tensor<$Bx$Hx$Kx$Dxf32>
func.func @forward(%q: !q {attn.name = "q"}, %k: !k {attn.name = "k"},
                   %v: !k {attn.name = "v"}) -> !q {
$attend
  return %o : !q
}
)mlir";

static constexpr StringLiteral kLayer = R"mlir(
!x = tensor<$Bx$Qx$Cxf32>
!qkv = tensor<$Bx$Qx$Pxf32>
!qkv_weight = tensor<$Px$Cxf32>
!qkv_bias = tensor<$Pxf32>
!parts = tensor<$Bx$Qx3x$Hx$Dxf32>
!heads = tensor<3x$Bx$Hx$Qx$Dxf32>
!q = tensor<$Bx$Hx$Qx$Dxf32>
!k = tensor<$Bx$Hx$Qx$Dxf32>
!rows = tensor<$Bx$Qx$Hx$Dxf32>
!attended = tensor<$Bx$Qx$Cxf32>
!out = tensor<$Bx$Qx$Cxf32>
!out_weight = tensor<$Cx$Cxf32>
!out_bias = tensor<$Cxf32>
func.func @forward(%x: !x {attn.name = "x"},
                   %qkv_weight: !qkv_weight {attn.name = "qkv.weight", attn.weight},
                   %qkv_bias: !qkv_bias {attn.name = "qkv.bias", attn.weight},
                   %out_weight: !out_weight {attn.name = "out.weight", attn.weight},
                   %out_bias: !out_bias {attn.name = "out.bias", attn.weight}) -> !out {
$qkv
  %parts = tensor.expand_shape %qkv [[0], [1], [2, 3, 4]] output_shape [$B, $Q, 3, $H, $D]
      : !qkv into !parts
  %heads_e = tensor.empty() : !heads
  %heads = linalg.transpose ins(%parts : !parts) outs(%heads_e : !heads)
      permutation = [2, 0, 3, 1, 4]
  %q = tensor.extract_slice %heads[0, 0, 0, 0, 0] [1, $B, $H, $Q, $D] [1, 1, 1, 1, 1]
      : !heads to !q
  %k = tensor.extract_slice %heads[1, 0, 0, 0, 0] [1, $B, $H, $Q, $D] [1, 1, 1, 1, 1]
      : !heads to !q
  %v = tensor.extract_slice %heads[2, 0, 0, 0, 0] [1, $B, $H, $Q, $D] [1, 1, 1, 1, 1]
      : !heads to !q
$attend
  %rows_e = tensor.empty() : !rows
  %rows = linalg.transpose ins(%o : !q) outs(%rows_e : !rows) permutation = [0, 2, 1, 3]
  %attended = tensor.collapse_shape %rows [[0], [1], [2, 3]] : !rows into !attended
$out
  return %out : !out
}
)mlir";

using Values = ArrayRef<std::pair<StringRef, std::string>>;

/// Returns `text` with each name replaced by its value, one name after the other.
static std::string fill(std::string text, Values values) {
  for (const auto &[name, value] : values)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), value);
  return text;
}

static std::string linear(StringRef result, StringRef input) {
  return fill(kLinear.str(), {{"$Y", result.str()}, {"$X", input.str()}});
}

static std::string attend(const AttentionShape &shape, StringRef plan) {
  return fill(kAttend.str(), {{"$mask", shape.causal ? "mask(#attn.causal)" : ""},
                              {"$plan", plan.empty() ? "" : ("plan(" + plan + ")").str()},
                              {"$scale", formatv("{0:E8}", shape.getScale())}});
}

std::string attn::bench::writeProduct(const ProductShape &shape, Guard guard) {
  StringRef product = guard == Guard::Zeros ? kGuardedProduct : kPlainProduct;
  return fill(kProduct.str(), {{"$product", product.str()},
                               {"$M", std::to_string(shape.m)},
                               {"$N", std::to_string(shape.n)},
                               {"$K", std::to_string(shape.k)}});
}

std::string attn::bench::writeProjection(const ProductShape &shape) {
  return fill(kProjection.str(), {{"$linear", linear("y", "x")},
                                  {"$M", std::to_string(shape.m)},
                                  {"$N", std::to_string(shape.n)},
                                  {"$K", std::to_string(shape.k)}});
}

std::string attn::bench::writeAttention(const AttentionShape &shape, StringRef plan) {
  return fill(kAttention.str(), {{"$attend", attend(shape, plan)},
                                 {"$B", std::to_string(shape.batch)},
                                 {"$H", std::to_string(shape.heads)},
                                 {"$Q", std::to_string(shape.queries)},
                                 {"$K", std::to_string(shape.keys)},
                                 {"$D", std::to_string(shape.depth)}});
}

std::string attn::bench::writeLayer(const AttentionShape &shape, StringRef plan) {
  int64_t width = shape.heads * shape.depth;
  return fill(kLayer.str(), {{"$qkv", linear("qkv", "x")},
                             {"$attend", attend(shape, plan)},
                             {"$out", linear("out", "attended")},
                             {"$B", std::to_string(shape.batch)},
                             {"$H", std::to_string(shape.heads)},
                             {"$Q", std::to_string(shape.queries)},
                             {"$D", std::to_string(shape.depth)},
                             {"$C", std::to_string(width)},
                             {"$P", std::to_string(3 * width)}});
}
