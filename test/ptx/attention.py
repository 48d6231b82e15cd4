"""attention.py FOLDER FIRST COUNT [all]: compares attentions on an emulated GPU with the reference in float64.
attention.py FOLDER long
attention.py FOLDER plans [--write]
attention.py FOLDER stages

A combination consists of a shape, a mask or score region, an element type, and the compute capability of the GPU. The
first shape is combined with each mask and type. Other shapes are combined with each mask and one type, the slowest ones
only with every second mask. With "all", all combinations are made. The script runs every COUNT-th combination, from
FIRST on. With "long", it runs a few long shapes in bf16, each with one mask, at the capability 9.0. attn-run calls each function three times and compares
the bits of the results; in each call, asynchronous copies and products end at different times (emulator.py).

With "stages", it edits the number of stages in the plans of a few long shapes. The results have the same bits for each
number. With "plans", it compiles each combination without running it, and compares its schedule and its tiles with those in
attention.txt; --write writes that file.
"""
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import table

ATTENTION = """
#q = affine_map<(b, h, q, k, d, e) -> (b, h, q, d)>
#k = affine_map<(b, h, q, k, d, e) -> (b, {kh}, k, d)>
#v = affine_map<(b, h, q, k, d, e) -> (b, {kh}, k, e)>
#o = affine_map<(b, h, q, k, d, e) -> (b, h, q, e)>
#n = affine_map<(b, h, q, k, d, e) -> (b)>
#m = affine_map<(b, h, q, k, d, e) -> (b, q, k)>
#s = affine_map<(b, h, q, k, d, e) -> (h)>
#sink = affine_map<(b, h, q, k, d, e) -> (h, q)>
func.func @attention(%q: tensor<?x2x?x{d}x{t}> {{attn.name = "q"}}, %k: tensor<?x{keyheads}x?x{d}x{t}> {{attn.name = "k"}},
                     %v: tensor<?x{keyheads}x?x{e}x{t}> {{attn.name = "v"}}{arguments}) -> tensor<?x2x?x{e}x{t}> {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x2x?x{d}x{t}>
  %n = tensor.dim %q, %c2 : tensor<?x2x?x{d}x{t}>
  %empty = tensor.empty(%b, %n) : tensor<?x2x?x{e}x{t}>
  %o = attn.attention ins(%q, %k, %v : tensor<?x2x?x{d}x{t}>, tensor<?x{keyheads}x?x{d}x{t}>, tensor<?x{keyheads}x?x{e}x{t}>)
    {captures} outs(%empty : tensor<?x2x?x{e}x{t}>) {mask}
    {{indexing_maps = [#q, #k, #v, {maps}#o], scale = 0.2 : f32}} {score} -> tensor<?x2x?x{e}x{t}>
  return %o : tensor<?x2x?x{e}x{t}>
}}
"""
INDICES = "%ib: index, %ih: index, %iq: index, %ik: index, %s: f32"
# A variant has arguments of the function, captures, their maps, a mask, and a score region.
LENGTHS = ', %lengths: tensor<?xi32> {attn.name = "lengths"}'
DENSE = ', %mask: tensor<?x?x?xi1> {attn.name = "mask"}'
BIAS = ', %bias: tensor<?x?x?xf32> {attn.name = "bias"}'
VARIANTS = {
    "plain": ("", "", "", "", ""),
    "causal": ("", "", "", "mask(#attn.causal)", ""),
    "causal-offset": ("", "", "", "mask(#attn.causal<offset = 7>)", ""),
    "window": ("", "", "", "mask(#attn.window<left = 20, right = 9>)", ""),
    "lengths": (LENGTHS, "captures(%lengths : tensor<?xi32>)", "#n, ", "mask(#attn.lengths<0>)", ""),
    "dense": (DENSE, "captures(%mask : tensor<?x?x?xi1>)", "#m, ", "mask(#attn.dense<0>)", ""),
    "causal-lengths": (LENGTHS, "captures(%lengths : tensor<?xi32>)", "#n, ",
                       "mask(#attn.and<[#attn.causal, #attn.lengths<0>]>)", ""),
    "softcap": ("", "", "", "", f"""score {{
      ^bb0({INDICES}):
        %c = math.tanh %s : f32
        attn.yield %c : f32
      }}"""),
    "alibi": (', %slopes: tensor<2xf32> {attn.name = "slopes"}', "captures(%slopes : tensor<2xf32>)", "#s, ",
              "mask(#attn.causal)", f"""score {{
      ^bb0({INDICES}, %slope: f32):
        %distance = arith.subi %ik, %iq : index
        %i = arith.index_cast %distance : index to i32
        %f = arith.sitofp %i : i32 to f32
        %bias = arith.mulf %f, %slope : f32
        %c = arith.addf %s, %bias : f32
        attn.yield %c : f32
      }}"""),
    "bias": (BIAS, "captures(%bias : tensor<?x?x?xf32>)", "#m, ", "", f"""score {{
      ^bb0({INDICES}, %more: f32):
        %c = arith.addf %s, %more : f32
        attn.yield %c : f32
      }}"""),
}
TYPES = {"bf16": 2e-2, "f16": 3e-3, "f32": 2e-5}
# The numbers of queries and keys, the head sizes of queries and values, and the number of heads of keys.
SHAPES = [(70, 130, 64, 64, 2), (20, 50, 96, 72, 1), (33, 200, 40, 24, 1), (1, 77, 128, 128, 2), (150, 40, 20, 9, 2), (64, 64, 256, 256, 1)]
# With these shapes, there are several tiles of keys, and for most shapes several tiles of queries, at the level sm_90a.
LONG_SHAPES = {"plain": (130, 400, 64, 64, 2), "causal": (250, 270, 64, 128, 1), "window": (140, 300, 128, 64, 2), "dense": (129, 300, 64, 64, 1),
               "bias": (130, 390, 64, 64, 2), "lengths": (64, 400, 72, 64, 1), "alibi": (64, 300, 128, 128, 1)}
CAPABILITIES = (80, 90)  # of the levels sm_80 and sm_90a


def get_combinations(everything):
    """Returns (shape, variant, element type, capability). Without `everything`, each has only one capability."""
    combinations = [(shape, variant, element, 80 if element == "f32" or (i + j + l) % 2 else 90)
                    for i, shape in enumerate(SHAPES) for j, variant in enumerate(VARIANTS)
                    for l, element in enumerate(TYPES)
                    if i == 0 or (i + j + l) % 3 == 0 and (shape[2] < 256 or j % 2) or everything]
    if everything:
        combinations += [(shape, variant, element, 170 - capability) for shape, variant, element, capability in combinations]
    return combinations


def get_long_combinations():
    return [(shape, variant, "bf16", 90) for variant, shape in LONG_SHAPES.items()]


def write(folder, shape, variant, element):
    """Writes the module of a combination, and returns its path."""
    queries, keys, d, e, key_heads = shape
    arguments, captures, maps, mask, score = VARIANTS[variant]
    path = folder / f"{variant}-{element}-{queries}x{keys}x{d}x{e}-{key_heads}.mlir"
    path.write_text(ATTENTION.format(d=d, e=e, t=element, keyheads=key_heads, kh="h" if key_heads == 2 else "0", arguments=arguments,
                                     captures=captures, maps=maps, mask=mask, score=score))
    return path


def plan(path, capability):
    """Compiles a combination. Returns its schedule and its tiles."""
    level = {80: "sm_80", 90: "sm_90a"}[capability]
    report = subprocess.run(["attnc", path, f"--target={level}", "-o", path.with_suffix(".so"), "--opt-report"],
                            capture_output=True, text=True, check=True).stdout
    return re.search(r"schedule (.*)", report)[1]


def compare_stages(folder, variant):
    """Runs an attention with each number of stages up to that of its plan, compares the results with those of the planned
    tiles, and the bits of the results with each other."""
    queries, keys, *rest = LONG_SHAPES[variant]
    path = write(folder, (queries, keys, *rest), variant, "bf16")
    stages, library = folder / variant, path.with_suffix(".so")
    subprocess.run(["attnc", path, "--target=sm_90a", f"--dump-stages={stages}", "-o", library], check=True)
    text = (stages / "4-plan.mlir").read_text()
    most = int(re.search(r"stages = (\d)", text)[1])
    command = ["attn-run", library, "--device=cuda", "--dim=q.0=1", f"--dim=q.2={queries}", f"--dim=k.2={keys}"]
    run = lambda *options: subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL,
                                          env={**os.environ, "ATTN_FAKE_CAPABILITY": "90"})
    run(f"--output-dir={stages}")
    results = []
    for number in range(2, most + 1):
        edited = folder / f"{variant}-{number}.mlir"
        # Tiles of 16 keys pass through each place in shared memory several times.
        edited.write_text(re.sub(r"k = \d+, stages = \d", f"k = 16, stages = {number}", text))
        subprocess.run(["attnc", edited, "--from=plan", "-o", library], check=True)
        run(f"--output-dir={folder}", f"--expect={stages}/0.npy", f"--tolerance={TYPES['bf16']}")
        results.append((folder / "0.npy").read_bytes())
        if len(set(results)) != 1:
            sys.exit(f"{variant}: other results with {number} stages")
    print(f"{variant}: the same results with 2 to {most} stages")


def main():
    folder = pathlib.Path(sys.argv[1])
    if sys.argv[2] == "stages":
        for variant in ("plain", "causal", "window"):
            compare_stages(folder, variant)
        return
    if sys.argv[2] == "plans":
        found = {}
        for shape, variant, element, capability in get_combinations(False) + get_long_combinations():
            path = write(folder, shape, variant, element)
            found[f"{path.stem}-at-{capability}"] = plan(path, capability)
        sys.exit(table.compare(HERE / "attention.txt", found, write="--write" in sys.argv) > 0)
    if sys.argv[2] == "long":
        combinations = get_long_combinations()
    else:
        first, count = map(int, sys.argv[2:4])
        combinations = get_combinations("all" in sys.argv)[first::count]
    for shape, variant, element, capability in combinations:
        path = write(folder, shape, variant, element)
        dims = ["--dim=q.0=1", f"--dim=q.2={shape[0]}", f"--dim=k.2={shape[1]}"]
        result = subprocess.run(["attn-run", path, "--device=cuda", "--reference", f"--tolerance={TYPES[element]}", *dims],
                                capture_output=True, text=True, env={**os.environ, "ATTN_FAKE_CAPABILITY": str(capability)})
        if result.returncode:
            sys.exit(f"{path.stem} at {capability}: {result.stderr}")
        print(path.stem, "at", capability, result.stdout.splitlines()[-1], flush=True)
    print(len(combinations), "combinations are right")


if __name__ == "__main__":
    main()
