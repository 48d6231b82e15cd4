"""decode.py FOLDER [all]: checks attentions of few queries whose keys are divided into parts.

The results are compared with float64 at every ISA level that this CPU supports, and must have the same bits with three
threads as with one. With "all", every kind of attention is combined with every number of queries.
"""
import itertools
import pathlib
import subprocess
import sys

from levels import RUN, find_levels

TOLERANCE = {"f32": 2e-6, "f16": 2e-3, "bf16": 1.5e-2}

# Keys and values have 3 heads. A tile contains several queries of one head.
ATTENTION = """
#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, h, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, h, k, e)>
#s = affine_map<(b, h, q, k, d, e) -> (h, q)>
#n = affine_map<(b, h, q, k, d, e) -> (b)>
#i = affine_map<(b, h, q, k, d, e) -> (h, q, k)>
#m = affine_map<(b, h, q, k, d, e) -> (b, k)>
#o = affine_map<(b, h, q, k, d, e) -> {out}>
func.func @f(%q: tensor<2x3x{q}x{d}x{t}>, %k: tensor<2x3x{k}x{d}x{t}> {{attn.name = "k"}}, %v: tensor<2x3x{k}x{e}x{t}>{inputs}) -> {result} {{
  %e = tensor.empty() : {result}
  %o = attn.attention ins(%q, %k, %v : tensor<2x3x{q}x{d}x{t}>, tensor<2x3x{k}x{d}x{t}>, tensor<2x3x{k}x{e}x{t}>)
    {captures} outs(%e : {result}) {mask} plan(<"decode", q = {tile}, k = {step}, part = {part}>)
    {{indexing_maps = [#q, #k, #v, {maps}#o], scale = 0.3 : f32}} {score} -> {result}
  return %o : {result}
}}"""

BIAS = """score {
^bb0(%bi: index, %hi: index, %qi: index, %ki: index, %score: f32, %bias: f32):
  %x = arith.addf %score, %bias : f32
  attn.yield %x : f32
}"""

# Each kind of attention has additional arguments, captures, their maps, a mask and a score region.
KINDS = {
    "plain": ("", "", "", "", ""),
    "causal": ("", "", "", "mask(#attn.causal<offset = 9>)", ""),
    "window": ("", "", "", "mask(#attn.window<left = 20, right = 3>)", ""),
    "lengths": (", %n: tensor<2xi64>", "captures(%n : tensor<2xi64>)", "#n, ", "mask(#attn.lengths<0>)", ""),
    "padding": (', %m: tensor<2x?xi1>', "captures(%m : tensor<2x?xi1>)", "#m, ", "mask(#attn.dense<0>)", ""),
    "bias": (", %i: tensor<3x{q}x?xf32>", "captures(%i : tensor<3x{q}x?xf32>)", "#i, ", "", BIAS),
    "sink": (", %s: tensor<3x{q}x{t}>", "sink(%s : tensor<3x{q}x{t}>)", "#s, ", "", ""),
}


def run(folder, levels, name, text, tolerance, options):
    path = folder / "decode.mlir"
    path.write_text(text)
    for level in levels:
        outputs = []
        for threads in (1, 3):
            result = subprocess.run([*RUN, path, "--reference", f"--level={level}", f"--tolerance={tolerance}",
                                     f"--threads={threads}", f"--output-dir={folder}", *options],
                                    capture_output=True, text=True)
            if result.returncode:
                break
            outputs.append((folder / "0.npy").read_bytes())
        if "expected a level that this CPU runs" in result.stderr:
            continue
        if result.returncode:
            sys.exit(f"{name} at {level}: {result.stdout}{result.stderr}")
        if outputs[0] != outputs[1]:
            sys.exit(f"{name} at {level}: expected the bits of one thread with three threads")


def main(folder, is_all):
    folder.mkdir(parents=True, exist_ok=True)
    problems = list(itertools.product(TOLERANCE, KINDS, [(1, 1), (4, 4), (7, 3)]))
    levels = find_levels(folder)
    count = 0
    for i, (t, kind, (q, tile)) in enumerate(problems):
        # Without "all", each kind has a different number of queries for each element type.
        if not is_all and i % 3 != i // 21:
            continue
        inputs, captures, maps, mask, score = KINDS[kind]
        d, e = [(16, 16), (12, 7), (1, 40), (33, 16)][i % 4]
        step, part = [(16, 16), (8, 32), (37, 64), (64, 32), (48, 48)][i % 5]
        is_transposed = i % 7 == 0
        shape = f"2x3x{e}x{q}" if is_transposed else f"2x3x{q}x{e}"
        is_open = i % 2 or "?" in inputs
        keys = "?" if is_open else (33, 64, 150)[i % 3]
        values = dict(q=q, k=keys, d=d, e=e, t=t, tile=tile, step=step, part=part)
        text = ATTENTION.format(out="(b, h, e, q)" if is_transposed else "(b, h, q, e)", result=f"tensor<{shape}x{t}>",
                                inputs=inputs.format(**values), captures=captures.format(**values), maps=maps, mask=mask,
                                score=score, **values)
        # attn-run draws lengths of at least 1.
        sizes = (0, 1, 32, 33, 100)[kind == "lengths":] if is_all else (0, 33, 100)[i % 2 or kind == "lengths":]
        for size in sizes if is_open else (keys,):
            run(folder, levels, f"{kind} {values}, {size} keys", text, TOLERANCE[t], [f"--dim=k.2={size}"] if is_open else [])
            count += 1
    print(count, "problems right")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), "all" in sys.argv[2:])
