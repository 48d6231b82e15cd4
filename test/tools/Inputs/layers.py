"""layers.py N: prints a model of N linear layers of 8 x 64."""
import sys

count = int(sys.argv[1])
layer = "tensor<8x64xf32>"
weights = ", ".join(f'%w{i}: tensor<64x64xf32> {{attn.name = "w{i}"}}, %b{i}: tensor<64xf32> {{attn.name = "b{i}"}}'
                    for i in range(count))
print("#x = affine_map<(m, n, k) -> (m, k)>\n#w = affine_map<(m, n, k) -> (n, k)>\n#o = affine_map<(m, n, k) -> (m, n)>")
print(f'func.func @forward(%x0: {layer} {{attn.name = "x"}}, {weights}) -> {layer} {{')
for i in range(count):
    print(f"""  %e{i} = tensor.empty() : {layer}
  %i{i} = linalg.broadcast ins(%b{i} : tensor<64xf32>) outs(%e{i} : {layer}) dimensions = [0]
  %x{i + 1} = linalg.contract indexing_maps = [#x, #w, #o] ins(%x{i}, %w{i} : {layer}, tensor<64x64xf32>) outs(%i{i} : {layer}) -> {layer}""")
print(f"  return %x{count} : {layer}\n}}")
