"""slice_writes.py COUNT SEED: prints a module that writes COUNT slices of a tensor one after the other.

The slices are rows of a copy of an argument, or of an empty tensor whose rows are all written. Their values are
arguments, views, elementwise ops and products, computed just before the write or before all writes. Later ops may
overwrite the whole tensor and read one of the values again.
"""
import random
import sys

count, rng = int(sys.argv[1]), random.Random(sys.argv[2])
empty, early = rng.random() < 0.5, rng.random() < 0.5
rows = count if empty else count + 3
places = rng.sample(range(rows), count)
row, whole = "tensor<1x8xf32>", f"tensor<{rows}x8xf32>"
print(f"""func.func @forward(%x: {whole}, %w: tensor<8x8xf32>) -> ({whole}, {row}) {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {row}
  %z = linalg.fill ins(%zero : f32) outs(%e : {row}) -> {row}""")
values, writes, names = [], [], []
previous = "%start" if empty or rng.random() < 0.5 else "%x"
if previous == "%start":
    print(f"  %start = tensor.empty() : {whole}" if empty else
          f"  %other = tensor.empty() : {whole}\n  %start = linalg.exp ins(%x : {whole}) outs(%other : {whole}) -> {whole}")
for i, place in enumerate(places):
    lines = [f"  %x{i} = tensor.extract_slice %x[{rng.randrange(rows)}, 0] [1, 8] [1, 1] : {whole} to {row}"]
    value = rng.choice(["view", "tanh", "product", "shared"])
    if value == "view":
        name = f"%x{i}"
    elif value == "tanh":
        name = f"%v{i}"
        lines.append(f"  {name} = linalg.tanh ins(%x{i} : {row}) outs(%e : {row}) -> {row}")
    elif value == "product":
        name = f"%v{i}"
        lines.append(f"  {name} = linalg.matmul ins(%x{i}, %w : {row}, tensor<8x8xf32>) outs(%z : {row}) -> {row}")
    else:
        name = "%z"
    values += lines if early else []
    writes += ([] if early else lines) + [
        f"  %y{i} = tensor.insert_slice {name} into {previous}[{place}, 0] [1, 8] [1, 1] : {row} into {whole}"]
    previous = f"%y{i}"
    names.append(name)
print("\n".join(values + writes))
if rng.random() < 0.5:
    print(f"  %over = linalg.matmul ins(%x, %w : {whole}, tensor<8x8xf32>) outs({previous} : {whole}) -> {whole}")
    previous = "%over"
print(f"""  %part = tensor.extract_slice {previous}[{rng.randrange(rows)}, 0] [1, 8] [1, 1] : {whole} to {row}
  %again = linalg.add ins({rng.choice(names)}, %part : {row}, {row}) outs(%e : {row}) -> {row}
  return {previous}, %again : {whole}, {row}
}}""")
