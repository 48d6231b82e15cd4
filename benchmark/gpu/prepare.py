"""prepare.py FOLDER [--small]: makes a folder of programs that test and measure attn's code on a machine with a GPU.

The folder contains attn-call, libraries with code for CPUs and GPUs, and run.py, which needs only Python; PyTorch, if it
is there, is measured beside attn. Copy the folder to the machine, and run `python3 run.py` there; report.py prints the
tables of results.json, which run.py writes. prepare.py needs attnc on PATH. With --small, the folder has a few small
cases of each kind, which an emulated GPU can run.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

from variants import variants, with_ptx

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "test" / "ptx"))
import attention

LEVELS = {80: "sm_80", 90: "sm_90a"}  # by compute capability
CPU_LEVELS = "x86-64-amx,x86-64-v4-bf16,x86-64-v4,x86-64-v3"
WORKERS = (1, 2, 4, 8, 16)
LENGTHS = (512, 2048, 8192, 16384)
WINDOW_LENGTHS = (2048, 16384)  # PyTorch takes several seconds to compile its kernel for a length

PRODUCT = """
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#o = affine_map<(m, n, k) -> (m, n)>
func.func @project(%x: tensor<{m}x{k}xbf16> {{attn.name = "x"}}, %w: tensor<{n}x{k}xbf16> {{attn.name = "w"}}) -> tensor<{m}x{n}xbf16> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}x{n}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %p = linalg.contract indexing_maps = [#x, #w, #o] ins(%x, %w : tensor<{m}x{k}xbf16>, tensor<{n}x{k}xbf16>)
    outs(%init : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %out = tensor.empty() : tensor<{m}x{n}xbf16>
  %r = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}}
    ins(%p : tensor<{m}x{n}xf32>) outs(%out : tensor<{m}x{n}xbf16>) {{
  ^bb0(%a: f32, %b: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  }} -> tensor<{m}x{n}xbf16>
  return %r : tensor<{m}x{n}xbf16>
}}
"""

# Each head of keys has `groups` heads of queries.
DECODE = """
#q = affine_map<(h, g, q, k, d, e) -> (h, g, q, d)>
#k = affine_map<(h, g, q, k, d, e) -> (h, k, d)>
#v = affine_map<(h, g, q, k, d, e) -> (h, k, e)>
#o = affine_map<(h, g, q, k, d, e) -> (h, g, q, e)>
func.func @decode(%q: tensor<{heads}x{groups}x1x{d}xbf16> {{attn.name = "q"}}, %k: tensor<{heads}x{keys}x{d}xbf16> {{attn.name = "k"}},
                  %v: tensor<{heads}x{keys}x{d}xbf16> {{attn.name = "v"}}) -> tensor<{heads}x{groups}x1x{d}xbf16> {{
  %empty = tensor.empty() : tensor<{heads}x{groups}x1x{d}xbf16>
  %o = attn.attention ins(%q, %k, %v : tensor<{heads}x{groups}x1x{d}xbf16>, tensor<{heads}x{keys}x{d}xbf16>, tensor<{heads}x{keys}x{d}xbf16>)
    outs(%empty : tensor<{heads}x{groups}x1x{d}xbf16>) {{indexing_maps = [#q, #k, #v, #o], scale = 0.2 : f32}} -> tensor<{heads}x{groups}x1x{d}xbf16>
  return %o : tensor<{heads}x{groups}x1x{d}xbf16>
}}
"""


class Folder:
    def __init__(self, path, small):
        self.path, self.small, self.steps = path, small, []
        self.libraries = path / "libraries"
        self.libraries.mkdir(parents=True, exist_ok=True)

    def compile(self, model, name, target, *options):
        library = self.libraries / f"{name}.so"
        subprocess.run(["attnc", model, "-o", library, f"--target={target}", *options], check=True)
        for suffix in (".h", ".json"):
            library.with_suffix(suffix).unlink()
        return library.name

    def compile_text(self, text, name, target, *options):
        model = self.libraries / f"{name}.mlir"
        model.write_text(text)
        library = self.compile(model, name, target, *options)
        model.unlink()
        return library

    def add(self, kind, name, **fields):
        """Adds a step. run.py runs the steps in order until its time is over."""
        self.steps.append({"kind": kind, "name": name, **fields})


def any_heads(size, mask):
    """An attention of bf16 with any batch, number of heads and length."""
    text = attention.ATTENTION.format(d=size, e=size, t="bf16", keyheads=2, kh="h", arguments="", captures="", maps="",
                                      mask=mask, score="")
    return (text.replace("x2x", "x?x").replace("tensor.empty(%b, %n)", "tensor.empty(%b, %h, %n)")
            .replace("%c2 = ", "%c1 = arith.constant 1 : index\n  %c2 = ")
            .replace("%n = ", f"%h = tensor.dim %q, %c1 : tensor<?x?x?x{size}xbf16>\n  %n = "))


def row_of(library, size, mask, length, small):
    """16k tokens and a width of 2048, as in the tables of FlashAttention-3."""
    batch, heads = (1, 1) if small else (16384 // length, 2048 // size)
    pairs = {"causal": length**2 / 2, "window": sum(min(i + 1, 1024) for i in range(length))}.get(mask, length**2)
    return {"library": library, "size": size, "mask": mask, "batch": batch, "heads": heads, "length": length,
            "gflop": 4 * batch * heads * pairs * size / 1e9,
            "dims": {"q.0": batch, "q.1": heads, "q.2": length, "k.2": length}}


def add_attentions(folder):
    """The rows of the table, the masks, and what parts of the kernel cost."""
    for mask, text in MASKS.items():
        for size in (64,) if folder.small else (64, 128):
            library = folder.compile_text(any_heads(size, text), f"attention-{size}-{mask}", ",".join(LEVELS.values()))
            for length in (128,) if folder.small else WINDOW_LENGTHS if mask == "window" else LENGTHS:
                folder.add("attention", f"{mask} {size} x {length}", **row_of(library, size, mask, length, folder.small))


MASKS = {"full": "", "causal": "mask(#attn.causal)", "window": "mask(#attn.window<left = 1023, right = 0>)"}
# Other tiles in the plans of variants: queries, keys and stages, by size of a head and mask.
TILES = {(64, "full"): ((128, 128, 4), (192, 96, 4), (192, 112, 4)),
         (64, "causal"): ((128, 128, 4), (192, 80, 4), (192, 128, 4)),
         (128, "full"): ((128, 112, 2), (128, 160, 2)),
         (128, "causal"): ((128, 96, 3), (128, 112, 2))}


def with_plan(plan, queries, keys, stages):
    """The IR after the stage `plan`, with other tiles."""
    plan = re.sub(r"q = \d+, k = \d+, stages = \d", f"q = {queries}, k = {keys}, stages = {stages}", plan)
    return re.sub(r"(scores = #attn.block<rows = 16, vectors = )\d+", rf"\g<1>{keys // 8}", plan)


def make_variants(folder, size, mask):
    """The libraries of all variants for heads of one size, and the names of those that compute the attention."""
    name, stages = f"variant-{size}-{mask}", folder.path / "stages"
    libraries = {"base": folder.compile_text(any_heads(size, MASKS[mask]), name, "sm_90a", f"--dump-stages={stages}")}
    right = []
    module, plan = (stages / "9-emit.ll").read_text(), (stages / "4-plan.mlir").read_text()
    texts = []  # the name of a variant, whether it is right, and the text and stage from which it is compiled
    for variant, is_right, ptx in variants((stages / "9-emit.sm_90a.ptx").read_text()) if mask == "full" else ():
        if not folder.small or variant in ("poly3", "no-copy"):
            texts.append((variant, is_right, with_ptx(module, ptx), "emit"))
    planned = tuple(map(int, re.search(r"q = (\d+), k = (\d+), stages = (\d)", plan).groups()))
    fewer_stages = [(*planned[:2], number) for number in range(2, planned[2])]
    for tile in fewer_stages if folder.small else TILES[size, mask]:
        if tile != planned:
            texts.append(("{}x{}x{}".format(*tile), True, with_plan(plan, *tile), "plan"))
    for variant, is_right, text, stage in texts:
        file = stages / (variant + (".ll" if stage == "emit" else ".mlir"))
        file.write_text(text)
        libraries[variant] = f"{name}-{variant}.so"
        subprocess.run(["attnc", file, f"--from={stage}", "-o", folder.libraries / libraries[variant]], check=True)
        right += [variant] * is_right
    shutil.rmtree(stages)
    for left_over in (*folder.libraries.glob("variant*.h"), *folder.libraries.glob("variant*.json")):
        left_over.unlink()
    return libraries, right


def add_variants(folder, lengths):
    """Variants of the code, and other tiles in the plan. Those of one row run in turns, in several rounds."""
    for length in lengths:
        for (size, mask), (libraries, right) in folder.variants.items():
            folder.add("variants", f"{mask} {size} x {length}", libraries=libraries, right=right, rounds=1 if folder.small else 2,
                       **row_of(libraries["base"], size, mask, length, folder.small))


def add_profiles(folder):
    """What Nsight Compute says about the kernels that have variants."""
    for (size, mask), (libraries, _) in folder.variants.items():
        folder.add("profile", f"{mask}-{size}", **row_of(libraries["base"], size, "full", 2048, folder.small))


def add_decode(folder):
    """One query of 32 heads and 8 heads of keys; keys and values are larger than the L2 cache."""
    if folder.small:
        return
    for keys in (32768, 131072):
        library = folder.compile_text(DECODE.format(heads=8, groups=4, keys=keys, d=128), f"decode-{keys}", ",".join(LEVELS.values()))
        folder.add("decode", f"{keys} keys", library=library, keys=keys, dims={}, gflop=4 * 32 * keys * 128 / 1e9, megabytes=2 * 8 * keys * 256 / 1e6)


def add_projections(folder):
    for m, n, k in ((64, 64, 64),) if folder.small else ((4096, 4096, 4096), (8192, 8192, 8192), (2048, 8192, 2048)):
        library = folder.compile_text(PRODUCT.format(m=m, n=n, k=k), f"projection-{m}-{n}-{k}", ",".join(LEVELS.values()))
        folder.add("projection", f"{m} x {n} x {k}", library=library, shape=[m, n, k], dims={}, gflop=2 * m * n * k / 1e9)


def add_cpu(folder):
    """Whole layers on the CPU of the machine, with several numbers of threads."""
    for model in ("mha",) if folder.small else ("mha-197", "vit"):
        library = folder.compile(ROOT / "examples" / "models" / f"{model}.pt2", f"cpu-{model}", CPU_LEVELS, "--embed-weights")
        for workers in WORKERS[:1] if folder.small else WORKERS:
            folder.add("cpu", f"{model}, {workers} threads", library=library, dims={}, workers=workers)


def add_tests(folder):
    combinations = attention.get_combinations(everything=False)
    cases = []
    for shape, variant, element, capability in combinations[:2] if folder.small else combinations:
        path = attention.write(folder.libraries, shape, variant, element)
        library = folder.compile(path, path.stem, f"x86-64-v3,{LEVELS[capability]}")
        path.unlink()
        cases.append({"name": path.stem, "library": library, "tolerance": 2 * attention.TYPES[element],
                      "dims": {"q.0": 1 if folder.small else 2, "q.2": shape[0], "k.2": shape[1]}})
    for size in () if folder.small else (64, 128):  # each block runs several tasks
        library = folder.compile_text(any_heads(size, ""), f"many-{size}", "x86-64-v3,sm_90a")
        cases.append({"name": f"many tasks, heads of {size}", "library": library, "tolerance": 2 * attention.TYPES["bf16"],
                      "dims": {"q.0": 64, "q.1": 8, "q.2": 130, "k.2": 260}})
    for model in () if folder.small else ("mha", "mha-197", "vit"):
        library = folder.compile(ROOT / "examples" / "models" / f"{model}.pt2", model, f"x86-64-v3,{','.join(LEVELS.values())}", "--embed-weights")
        cases.append({"name": model, "library": library, "tolerance": 1e-4, "dims": {}})
    folder.add("test", "results", cases=cases)
    folder.add("memcheck", "memory", cases=cases)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    folder = Folder(options.folder, options.small)
    build = folder.path / "build"
    # The program needs only the C library of the machine with the GPU, in the version of this machine or a later one.
    subprocess.run(["cmake", "-S", ROOT / "tools" / "call", "-B", build, "-DCMAKE_BUILD_TYPE=Release",
                    "-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(build / "attn-call", folder.path)
    shutil.rmtree(build)
    folder.variants = {key: make_variants(folder, *key) for key in ([(64, "full")] if folder.small else TILES)}
    # Code that is wrong, or does not end, has no speed. Then comes what decides, and what takes long comes last.
    add_tests(folder)
    add_variants(folder, (128,) if folder.small else (512, 2048))
    for add in (add_profiles, add_attentions, add_decode, add_projections, add_cpu):
        add(folder)
    if not folder.small:
        add_variants(folder, (16384,))
    folder.steps.sort(key=lambda step: step["kind"] == "memcheck")
    (folder.path / "plan.json").write_text(json.dumps(folder.steps, indent=1))
    shutil.copy(HERE / "run.py", folder.path)
    megabytes = sum(path.stat().st_size for path in folder.path.rglob("*") if path.is_file()) / 1e6
    print(f"{len(folder.steps)} steps, {megabytes:.0f} MB in {folder.path}")


if __name__ == "__main__":
    main()
