"""scores.py DIR: compares attentions with float64, at every level of this CPU. Scores are huge, tiny or equal.

Most queries and keys are small integers times powers of two. Their scores are exact in f32 in any order of summation,
and the only error left is that of the softmax, so the tolerance is tight however large the scores are.
"""
import array, json, math, pathlib, random, struct, subprocess, sys

from levels import RUN, TARGETS

FLOAT_MAX = struct.unpack("f", b"\xff\xff\x7f\x7f")[0]
MODULE = """func.func @forward(%q: tensor<{S}x{D}xf32> {{attn.name = "q"}}, %k: tensor<{K}x{D}xf32> {{attn.name = "k"}},
                   %v: tensor<{K}x4xf32> {{attn.name = "v"}}) -> (tensor<{S}x4xf32> {{attn.name = "out"}}) {{
  %e = tensor.empty() : tensor<{S}x4xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<{S}x{D}xf32>, tensor<{K}x{D}xf32>, tensor<{K}x4xf32>) outs(%e : tensor<{S}x4xf32>)
    {{indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>,
                      affine_map<(q, k, d, e) -> (k, e)>, affine_map<(q, k, d, e) -> (q, e)>], scale = {scale} : f32}}
    -> tensor<{S}x4xf32>
  return %o : tensor<{S}x4xf32>
}}
"""
LEVELS = []  # the ISA levels of the compiled libraries
rng = random.Random(1)


def save(path, rows):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows)}, {len(rows[0])}), }}\n".encode()
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header
                     + array.array("f", [x for row in rows for x in row]).tobytes())


def attend(q, k, v, scale):
    rows = []
    for query in q:
        scores = [scale * sum(map(float.__mul__, query, key)) for key in k]
        powers = [math.exp(s - max(scores)) for s in scores]
        total = sum(powers)
        rows.append([sum(p / total * value[e] for p, value in zip(powers, v)) for e in range(4)])
    return rows


def integers(rows, columns, factor=1.0):
    return [[rng.randint(-8, 8) * factor for _ in range(columns)] for _ in range(rows)]


def one_hot(value, rows, columns=4):
    return [[value] + [0.0] * (columns - 1) for _ in range(rows)]


def normal(rows, factor=1.0):
    return [[struct.unpack("f", struct.pack("f", rng.gauss(0, 1)))[0] * factor for _ in range(4)] for _ in range(rows)]


def module(S, K, D, scale, cases):
    for schedule in ["per-head", "whole-scores"]:
        folder = pathlib.Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "m.mlir").write_text(MODULE.format(S=S, K=K, D=D, scale=f"{scale:.9e}"))
        subprocess.run(["attnc", folder / "m.mlir", "-o", folder / "m.so", TARGETS, f"--schedule={schedule}"], check=True)
        manifest = json.loads((folder / "m.json").read_text())
        LEVELS[:] = [level["level"] for level in manifest["functions"][0]["levels"]]
        for name, (q, k, v) in cases.items():
            for file, rows in zip(["q", "k", "v", "want"], [q, k, v, attend(q, k, v, scale)]):
                save(folder / f"{file}.npy", rows)
            for level in LEVELS:
                done = subprocess.run([*RUN, folder / "m.so", f"--level={level}", "--tolerance=1e-6",
                                       f"--expect={folder / 'want.npy'}"]
                                      + [f"--input={folder / n}.npy" for n in "qkv"], capture_output=True, text=True)
                if done.returncode and "a level that this CPU runs" not in done.stderr:
                    sys.exit(f"{name}, {schedule}, {level}: {done.stderr.strip()}")
    print(f"D = {D}, scale {scale:g}: {', '.join(cases)}")


# The 64 keys repeat, so equal keys lie in the first tile and in later tiles, in full register blocks and in tails.
few = integers(64, 64)
keys = few + few + few + few[:7]
module(50, len(keys), 64, 0.125, {
    f"equal keys at scores of {8 * 8 * 64 / 8 * 2.0**power:g}": (integers(50, 64, 2.0**power), keys, normal(len(keys)))
    for power in [-4, 0, 4, 11, 20]})

some = normal(200)
module(33, 200, 4, 1.0, {
    "all the largest float": (one_hot(1.0, 33), one_hot(FLOAT_MAX, 200), some),
    "all the lowest float": (one_hot(1.0, 33), one_hot(-FLOAT_MAX, 200), some),
    "one the largest float": (one_hot(1.0, 33), one_hot(0.0, 150) + one_hot(FLOAT_MAX, 1) + one_hot(0.0, 49), some),
    "one zero": (one_hot(1.0, 33), one_hot(-FLOAT_MAX, 150) + one_hot(0.0, 1) + one_hot(-FLOAT_MAX, 49), some),
    # The maximum grows from tile to tile, but by too little for the kernel to compute a tile again.
    "values of 2^80": (one_hot(1.0, 33), [[k / 16, 0.0, 0.0, 0.0] for k in range(200)], normal(200, 2.0**80)),
})
module(9, 20, 4, 2.0**127, {"a huge scale": (integers(9, 4, 2.0**-66), integers(20, 4, 2.0**-66), some[:20])})
module(9, 200, 4, 2.0**66, {
    "queries that no scale fits": (integers(9, 4, 2.0**66), integers(200, 4, 2.0**-132), some)})


def equal_keys(K, D):
    """Checks that equal keys have equal probabilities, in full tiles and in tails, although scores are rounded.

    Scores are so large that an error of one unit in the last place changes a probability by several percent. The values
    are the identity matrix, so the outputs are the probabilities.
    """
    S = 20
    folder = pathlib.Path(sys.argv[1])
    (folder / "e.mlir").write_text(f"""func.func @forward(%q: tensor<{S}x{D}xf32>, %k: tensor<{K}x{D}xf32>, %v: tensor<{K}x{K}xf32>) -> tensor<{S}x{K}xf32> {{
  %e = tensor.empty() : tensor<{S}x{K}xf32>
  %o = attn.attention ins(%q, %k, %v : tensor<{S}x{D}xf32>, tensor<{K}x{D}xf32>, tensor<{K}x{K}xf32>) outs(%e : tensor<{S}x{K}xf32>)
    {{indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>,
                      affine_map<(q, k, d, e) -> (q, e)>], scale = 1.25e-01 : f32}} -> tensor<{S}x{K}xf32>
  return %o : tensor<{S}x{K}xf32>
}}
""")
    subprocess.run(["attnc", folder / "e.mlir", "-o", folder / "e.so", TARGETS, "--schedule=per-head"], check=True)
    few = [[rng.gauss(0, 1) for _ in range(D)] for _ in range(K // 4)]
    save(folder / "q.npy", [[rng.gauss(0, 3e4) for _ in range(D)] for _ in range(S)])
    save(folder / "k.npy", [few[k % len(few)] for k in range(K)])
    save(folder / "v.npy", [[float(k == e) for e in range(K)] for k in range(K)])
    for level in LEVELS:
        done = subprocess.run([*RUN, folder / "e.so", f"--level={level}", "--output-dir", folder]
                              + [f"--input={folder / n}.npy" for n in "qkv"], capture_output=True, text=True)
        if "a level that this CPU runs" in done.stderr:
            continue
        done.check_returncode()
        p = array.array("f", (folder / "0.npy").read_bytes()[-4 * S * K:])
        for row, k in ((row, k) for row in range(S) for k in range(len(few), K)):
            first, later = p[row * K + k % len(few)], p[row * K + k]
            # The tolerance is not 0, because a later tile may rescale the output that earlier keys contributed to.
            if abs(first - later) > 1e-6:
                sys.exit(f"{K} keys, D = {D}, {level}: {first} of key {k % len(few)}, {later} of its equal {k}")
    print(f"{K} keys, D = {D}: equal")


def returned_probabilities():
    """Checks that returned probabilities add up to 1 for a large head size.

    The kernel computes the scores twice: first for the maximum and the sum, then for the probabilities. Both results
    must be equal, because one unit in the last place of a score changes a probability by about a tenth here.
    """
    S, K, D = 20, 150, 256
    folder = pathlib.Path(sys.argv[1])
    (folder / "p.mlir").write_text(f"""func.func @forward(%q: tensor<{S}x{D}xf32>, %k: tensor<{K}x{D}xf32>) -> tensor<{S}x{K}xf32> {{
  %e = tensor.empty() : tensor<{S}x{D}xf32>
  %f = tensor.empty() : tensor<{S}x{K}xf32>
  %o:2 = attn.attention ins(%q, %k, %k : tensor<{S}x{D}xf32>, tensor<{K}x{D}xf32>, tensor<{K}x{D}xf32>)
    outs(%e, %f : tensor<{S}x{D}xf32>, tensor<{S}x{K}xf32>)
    {{indexing_maps = [affine_map<(q, k, d, e) -> (q, d)>, affine_map<(q, k, d, e) -> (k, d)>, affine_map<(q, k, d, e) -> (k, e)>,
                      affine_map<(q, k, d, e) -> (q, e)>, affine_map<(q, k, d, e) -> (q, k)>], scale = 6.25e-02 : f32}}
    -> tensor<{S}x{D}xf32>, tensor<{S}x{K}xf32>
  return %o#1 : tensor<{S}x{K}xf32>
}}
""")
    subprocess.run(["attnc", folder / "p.mlir", "-o", folder / "p.so", TARGETS, "--schedule=per-head"],
                   check=True)
    draw = lambda rows, size: [[rng.gauss(0, size) for _ in range(D)] for _ in range(rows)]
    few = draw(50, 1)
    save(folder / "q.npy", draw(S, 3e4))
    save(folder / "k.npy", few + few + few)
    subprocess.run([*RUN, folder / "p.so", f"--input={folder / 'q.npy'}", f"--input={folder / 'k.npy'}", "--output-dir",
                    folder], check=True, stdout=subprocess.DEVNULL)
    values = array.array("f", (folder / "0.npy").read_bytes()[-4 * S * K:])
    furthest = max(abs(sum(values[row * K:(row + 1) * K]) - 1) for row in range(S))
    print(f"returned probabilities add up to 1{'' if furthest < 1e-6 else f' within {furthest:.1e} only'}")


for K, D in [(130, 64), (131, 64), (129, 96), (258, 80)]:
    equal_keys(K, D)
returned_probabilities()
