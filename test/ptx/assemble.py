"""assemble.py PTXAS FOLDER [FILE...]: assembles the kernels of attention.py and of the models FILE with NVIDIA's assembler.

Prints a table of the registers of a thread, its spilled bytes, the shared memory of a block and the instructions that
multiply matrices. Attentions of 16-bit elements with heads of at most 128 must not spill.
"""
import pathlib
import re
import subprocess
import sys

import attention

LEVELS = {"sm_80": "sm_80"}


def compile_model(path, folder):
    """The PTX of each level, and the shared memory of each kernel."""
    command = ["attnc", path, f"--target={','.join(LEVELS)}", "-o", folder / "kernel.so", f"--dump-stages={folder / 'stages'}"]
    subprocess.run(command, check=True, capture_output=True)
    manifest = (folder / "kernel.json").read_text()
    shared = {name: int(size) for name, size in re.findall(r'"name": "(\w+_\d+)",\s+"threads": \d+,\s+"shared": (\d+)', manifest)}
    return {level: next((folder / "stages").glob(f"*-emit.{level}.ptx")).read_text() for level in LEVELS}, shared


def assemble(ptxas, name, text, level, shared, may_spill):
    process = subprocess.run([ptxas, "-v", f"-arch={LEVELS[level]}", "-o", "/dev/null", "-"], input=text, capture_output=True, text=True)
    assert process.returncode == 0, f"{name}: {process.stderr}"
    assert "warning" not in process.stderr, f"{name}: {process.stderr}"
    for entry in re.split(r"Compiling entry function", process.stderr)[1:]:
        kernel = re.search(r"'(\w+)'", entry)[1]
        spills = int(re.search(r"(\d+) bytes spill stores", entry)[1])
        registers = int(re.search(r"Used (\d+) registers", entry)[1])
        body = text[text.index(f".entry {kernel}("):].split("\n}\n")[0]
        print(f"{name:42} {kernel:28} {level:7} {registers:3} registers {spills:4} spilled {shared[kernel]:6} shared "
              f"{body.count('mma.sync'):4} mma", flush=True)
        assert may_spill or spills == 0, f"{name}: {kernel} spills {spills} bytes"


def main():
    ptxas, folder, models = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    files = [(pathlib.Path(model), True) for model in models]
    for shape, variant, element in attention.get_combinations(everything=False):
        files.append((attention.write(folder, shape, variant, element), element == "f32" or shape[2] > 128))
    for path, may_spill in files:
        kernels, shared = compile_model(path, folder)
        for level, text in kernels.items():
            assemble(ptxas, path.stem, text, level, shared, may_spill)


main()
