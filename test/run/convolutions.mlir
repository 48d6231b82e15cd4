// RUN: attn-run %s --reference --tolerance=1e-5 --entry=strided
// RUN: attn-run %s --reference --tolerance=1e-5 --entry=channels_last
// RUN: attn-run %s --reference --tolerance=1e-5 --entry=depthwise_last
// RUN: attn-run %s --reference --tolerance=1e-5 --entry=unknown --dim=x.0=2 --dim=w.0=5
// RUN: attn-run %s --reference --tolerance=1e-5 --entry=no_channels
// RUN: attn-run %s --reference --tolerance=1e-5 --entry=no_images

// Named convolutions in several layouts, with sizes that are known at the call, and with sizes of 0.
#image = affine_map<(n, o, y, x, c, j, i) -> (n, c, y + j, x + i)>
#kernel = affine_map<(n, o, y, x, c, j, i) -> (o, c, j, i)>
#out = affine_map<(n, o, y, x, c, j, i) -> (n, o, y, x)>
func.func @strided(%x: tensor<2x5x17x40xf32>, %w: tensor<9x5x3x3xf32>) -> tensor<2x9x8x19xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x9x8x19xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x9x8x19xf32>) -> tensor<2x9x8x19xf32>
  %c = linalg.conv_2d_nchw_fchw {strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<2x5x17x40xf32>, tensor<9x5x3x3xf32>) outs(%i : tensor<2x9x8x19xf32>) -> tensor<2x9x8x19xf32>
  return %c : tensor<2x9x8x19xf32>
}
func.func @channels_last(%x: tensor<2x9x21x40xf32>, %w: tensor<3x3x40x24xf32>) -> tensor<2x7x19x24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x7x19x24xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x7x19x24xf32>) -> tensor<2x7x19x24xf32>
  %c = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<2x9x21x40xf32>, tensor<3x3x40x24xf32>) outs(%i : tensor<2x7x19x24xf32>) -> tensor<2x7x19x24xf32>
  return %c : tensor<2x7x19x24xf32>
}
func.func @depthwise_last(%x: tensor<1x9x21x40xf32>, %w: tensor<3x3x40xf32>) -> tensor<1x7x19x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x7x19x40xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x7x19x40xf32>) -> tensor<1x7x19x40xf32>
  %c = linalg.depthwise_conv_2d_nhwc_hwc ins(%x, %w : tensor<1x9x21x40xf32>, tensor<3x3x40xf32>) outs(%i : tensor<1x7x19x40xf32>) -> tensor<1x7x19x40xf32>
  return %c : tensor<1x7x19x40xf32>
}
func.func @unknown(%x: tensor<?x5x11x19xf32> {attn.name = "x"}, %w: tensor<?x5x3x3xf32> {attn.name = "w"}) -> tensor<?x?x9x17xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x5x11x19xf32>
  %o = tensor.dim %w, %c0 : tensor<?x5x3x3xf32>
  %e = tensor.empty(%n, %o) : tensor<?x?x9x17xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x9x17xf32>) -> tensor<?x?x9x17xf32>
  %c = linalg.generic {indexing_maps = [#image, #kernel, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<?x5x11x19xf32>, tensor<?x5x3x3xf32>) outs(%i : tensor<?x?x9x17xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x?x9x17xf32>
  return %c : tensor<?x?x9x17xf32>
}
func.func @no_channels(%x: tensor<2x0x5x6xf32>, %w: tensor<9x0x3x3xf32>) -> tensor<2x9x3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x9x3x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x9x3x4xf32>) -> tensor<2x9x3x4xf32>
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<2x0x5x6xf32>, tensor<9x0x3x3xf32>) outs(%i : tensor<2x9x3x4xf32>) -> tensor<2x9x3x4xf32>
  return %c : tensor<2x9x3x4xf32>
}
func.func @no_images(%x: tensor<0x5x5x6xf32>, %w: tensor<9x5x3x3xf32>) -> tensor<0x9x3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<0x9x3x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<0x9x3x4xf32>) -> tensor<0x9x3x4xf32>
  %c = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<0x5x5x6xf32>, tensor<9x5x3x3xf32>) outs(%i : tensor<0x9x3x4xf32>) -> tensor<0x9x3x4xf32>
  return %c : tensor<0x9x3x4xf32>
}
