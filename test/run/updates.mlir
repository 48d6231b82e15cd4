// Several tasks write to an in-out argument, and later ops read its new elements.
// RUN: attn-run %s --entry=rows --reference
// RUN: attn-run %s --entry=read_on --dim=n=200 --reference
// RUN: attn-run %s --entry=product --reference

#q = affine_map<(i, j, k) -> (i, k)>
#k = affine_map<(i, j, k) -> (k, j)>
#s = affine_map<(i, j, k) -> (i, j)>

func.func @rows(%x: tensor<200x8xf32>, %state: tensor<200x8xf32> {attn.in_out = 0}) -> tensor<200x8xf32> {
  %e = tensor.empty() : tensor<200x8xf32>
  %new = linalg.add ins(%x, %state : tensor<200x8xf32>, tensor<200x8xf32>) outs(%e : tensor<200x8xf32>) -> tensor<200x8xf32>
  return %new : tensor<200x8xf32>
}

// Another result reads the old elements of %state and the new elements.
func.func @read_on(%x: tensor<?x8xf32> {attn.name = "x", attn.dims = ["n", ""]},
                   %state: tensor<?x8xf32> {attn.name = "state", attn.in_out = 0, attn.dims = ["n", ""]})
    -> (tensor<?x8xf32>, tensor<?x8xf32>) attributes {attn.symbols = [#attn.symbol<"n", 0 to 512>]} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %a = linalg.exp ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %new = linalg.add ins(%a, %state : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = linalg.mul ins(%new, %state : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %new, %y : tensor<?x8xf32>, tensor<?x8xf32>
}

// Each new element depends on a whole row and a whole column of old elements.
func.func @product(%state: tensor<200x200xf32> {attn.in_out = 0}) -> tensor<200x200xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<200x200xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<200x200xf32>) -> tensor<200x200xf32>
  %new = linalg.contract indexing_maps = [#q, #k, #s] ins(%state, %state : tensor<200x200xf32>, tensor<200x200xf32>)
    outs(%f : tensor<200x200xf32>) -> tensor<200x200xf32>
  return %new : tensor<200x200xf32>
}
