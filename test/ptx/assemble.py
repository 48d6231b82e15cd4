"""assemble.py PTXAS FOLDER [--write] [FILE...]: assembles the kernels of attention.py and of the models FILE with NVIDIA's assembler.

GPUs of the capabilities 10.0 and 12.0 run the code of sm_80, so that of the models and of one shape is assembled for
them too. The assembler must not serialise asynchronous products. Of its messages C7510 to C7519 about such products, only
C7517 is allowed: it reports a wait that the assembler added beside a wait of the code.

registers.txt has the registers of a thread, its spilled bytes, the shared memory of a block and the number of
instructions that multiply matrices, for the version of the assembler that scripts/versions.txt pins. With this version,
the numbers must be those of the file, and attentions of 16-bit elements with head sizes of at most 128 must not spill,
unless they have a packed mask, or tiles of 192 queries without a mask: on an H100, these are faster than smaller tiles
that spill nothing. Other versions allocate registers in other ways. --write writes the file.
"""
import json
import pathlib
import re
import subprocess
import sys

import attention
import table

HERE = pathlib.Path(__file__).resolve().parent
LEVELS = {80: "sm_80", 90: "sm_90a"}  # by capability
LATER = ("sm_100", "sm_120")  # GPUs that run the code of sm_80


def compile_model(path, folder, levels):
    """Returns the PTX and the shared memory of each kernel, by level."""
    command = ["attnc", path, f"--target={','.join(levels)}", "-o", folder / "kernel.so", f"--dump-stages={folder / 'stages'}"]
    subprocess.run(command, check=True, capture_output=True)
    manifest = json.loads((folder / "kernel.json").read_text())
    shared = {variant["level"]: {kernel["name"]: kernel["shared"] for kernel in variant["kernels"]}
              for variant in manifest["functions"][0]["levels"]}
    return {level: (next((folder / "stages").glob(f"*-emit.{level}.ptx")).read_text(), shared[level]) for level in levels}


def is_pinned(ptxas):
    """Whether the assembler has the version of scripts/versions.txt, of which only the first two numbers are compared."""
    pinned = re.search(r"^nvidia-cuda-nvcc==(\d+\.\d+)", (HERE.parent.parent / "scripts" / "versions.txt").read_text(), re.M)[1]
    return f"release {pinned}," in subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout


def assemble(ptxas, name, text, level, shared, may_spill, found):
    process = subprocess.run([ptxas, "-v", f"-arch={level}", "-o", "/dev/null", "-"], input=text, capture_output=True, text=True)
    assert process.returncode == 0, f"{name}: {process.stderr}"
    assert "warning" not in process.stderr, f"{name}: {process.stderr}"
    assert not re.search(r"C751[0-689]", process.stderr), f"{name}: {process.stderr}"
    for entry in re.split(r"Compiling entry function", process.stderr)[1:]:
        kernel = re.search(r"'(\w+)'", entry)[1]
        spills = int(re.search(r"(\d+) bytes spill stores", entry)[1])
        registers = int(re.search(r"Used (\d+) registers", entry)[1])
        body = text[text.index(f".entry {kernel}("):].split("\n}\n")[0]
        found[f"{name}:{kernel}:{level}"] = (f"{registers} registers, {spills} spilled bytes, {shared[kernel]} bytes shared, "
                                             f"{len(re.findall('mma.sync|mma_async', body))} matrix products")
        assert may_spill or spills == 0, f"{name}: {kernel} spills {spills} bytes"


def main():
    write = "--write" in sys.argv
    ptxas, folder, *models = (argument for argument in sys.argv[1:] if argument != "--write")
    folder, found, pinned = pathlib.Path(folder), {}, is_pinned(ptxas)
    files = [(pathlib.Path(model), LEVELS.values(), True) for model in models]
    on_later = [path for path, *_ in files]
    combinations = attention.get_combinations(everything=False) + attention.get_long_combinations()
    for shape, variant, element, capability in combinations:
        path = attention.write(folder, shape, variant, element)
        may_spill = not pinned or element == "f32" or shape[2] > 128 or variant == "dense" or (variant == "plain" and shape[2] == 64 and capability == 90)
        files.append((path, [LEVELS[capability]], may_spill))
        if shape == attention.SHAPES[0]:
            on_later.append(path)
    for path, levels, may_spill in files:
        for level, (text, shared) in compile_model(path, folder, levels).items():
            assemble(ptxas, path.stem, text, level, shared, may_spill, found)
            for later in LATER if level == "sm_80" and path in on_later else ():
                assemble(ptxas, path.stem, text, later, shared, may_spill, found)
    if pinned and table.compare(HERE / "registers.txt", found, write=write):
        sys.exit(1)


main()
