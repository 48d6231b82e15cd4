func.func @f(%x: tensor<2x3xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<2x3xf32>) outs(%y : tensor<2xf32>) dimensions = [k]
  return %0 : tensor<2xf32>
}
