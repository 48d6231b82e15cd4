"""prepare.py FOLDER: makes a folder of programs that test and measure attn's code on a machine with an NVIDIA GPU.

The folder contains attn-call, libraries with code for CPUs and GPUs, and run.py, which needs only Python. Copy the
folder to the machine with the GPU, and run `python3 run.py` there. prepare.py needs attnc on PATH.
"""
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "test" / "ptx"))
import attention

LEVELS = {80: "sm_80", 90: "sm_90a"}  # by compute capability


def compile_model(model, library, levels=tuple(LEVELS.values())):
    """Compiles a model for GPUs, and for one level of CPUs, which computes the expected results."""
    subprocess.run(["attnc", model, "-o", library, f"--target=x86-64-v3,{','.join(levels)}"], check=True)
    for suffix in (".h", ".json"):
        library.with_suffix(suffix).unlink()


def main():
    folder = pathlib.Path(sys.argv[1])
    libraries = folder / "libraries"
    libraries.mkdir(parents=True, exist_ok=True)
    build = folder / "build"
    # The program needs only the C library of the machine with the GPU, in the version of this machine or a later one.
    subprocess.run(["cmake", "-S", ROOT / "tools" / "call", "-B", build, "-DCMAKE_BUILD_TYPE=Release",
                    "-DCMAKE_EXE_LINKER_FLAGS=-static-libstdc++ -static-libgcc"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
    shutil.copy(build / "attn-call", folder)
    shutil.rmtree(build)

    tests = []
    for shape, variant, element, capability in attention.get_combinations(everything=False):
        path = attention.write(libraries, shape, variant, element)
        compile_model(path, path.with_suffix(".so"), [LEVELS[capability]])
        tests.append({"library": path.stem + ".so", "dims": {"q.0": 2, "q.2": shape[0], "k.2": shape[1]},
                      "tolerance": 2 * attention.TYPES[element]})
        path.unlink()
    for model in ("mha", "mha-197", "vit"):
        compile_model(ROOT / "examples" / "models" / f"{model}.pt2", libraries / f"{model}.so")
        tests.append({"library": f"{model}.so", "dims": {}, "tolerance": 1e-4})

    benchmarks = []
    for size in (64, 128):
        for causal in (False, True):
            name = f"attention-{size}{'-causal' if causal else ''}"
            text = attention.ATTENTION.format(d=size, e=size, t="bf16", keyheads=2, kh="h", arguments="", captures="", maps="",
                                              mask="mask(#attn.causal)" if causal else "", score="")
            # Make the number of heads dynamic.
            (libraries / f"{name}.mlir").write_text(text.replace("x2x", "x?x").replace("tensor.empty(%b, %n)", "tensor.empty(%b, %h, %n)")
                                                    .replace("%c2 = ", "%c1 = arith.constant 1 : index\n  %c2 = ")
                                                    .replace("%n = ", f"%h = tensor.dim %q, %c1 : tensor<?x?x?x{size}xbf16>\n  %n = "))
            compile_model(libraries / f"{name}.mlir", libraries / f"{name}.so")
            (libraries / f"{name}.mlir").unlink()
            # 16k tokens and a width of 2048, as in the tables of FlashAttention-3.
            for length in (512, 1024, 2048, 4096, 8192, 16384):
                benchmarks.append({"library": f"{name}.so", "batch": 16384 // length, "heads": 2048 // size, "length": length,
                                   "size": size, "causal": causal})
    (folder / "plan.json").write_text(json.dumps({"tests": tests, "benchmarks": benchmarks}, indent=1))
    shutil.copy(HERE / "run.py", folder)
    print(f"{len(tests)} tests and {len(benchmarks)} benchmarks in {folder}")


main()
