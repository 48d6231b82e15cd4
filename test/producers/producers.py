"""producers.py [--write] [SPELLING...]: compiles and runs the files that other tools wrote, and compares a table.

Each folder of cases/ has one model in several spellings: exports of attention modules by torch 2.15 (model.pt2), by
torch-mlir 20261001 (linalg with torch's core decompositions, with aten ops, with the weights as constants; TOSA), and by
torch.onnx (opset 23 and 17). Their outputs must be within the tolerance of the module's in float64, with NaN and
infinities in the same places. producers.txt has a line for each file: `fused`, `right` if the outputs are right but an
attention was not fused, or the reason why the file is refused. Any other result is a failure; --write writes the table.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from arrays import difference, load

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from table import compare

TABLE = HERE / "producers.txt"


def run(model, case, meta, *options):
    """Runs a file on all sets of inputs. Returns a result of the table."""
    takes = meta["files"][model.name]
    for tensors in meta["sets"]:
        names = [name for i, name in enumerate(tensors["inputs"]) if i not in takes.get("dropped", ())]
        names += meta["weights"] if takes.get("weights") else []
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run(["attn-run", model, *[f"--input={case / name}" for name in names], f"--output-dir={out}", *options],
                                  capture_output=True, text=True)
            if done.returncode:
                lines = done.stderr.strip().splitlines() or ["no message"]
                if done.returncode != 1 or not lines[-1].startswith("attn-run: "):
                    return f"crash: exit status {done.returncode}, {lines[0]}"
                reason = re.sub(f"^{re.escape(str(model))}: |, got '{re.escape(str(model))}'$", "", lines[-1].removeprefix("attn-run: "))
                return "refused: " + re.sub(r"^[\w.]*:?\d+:(\d+:)? ", "", reason)
            for i, name in enumerate(tensors["outputs"]):
                if why := difference(load(f"{out}/{i}.npy"), load(case / name), meta["tolerance"]):
                    return f"wrong: output {i}: {why}"
    return "right"


def check(model):
    meta = json.loads((model.parent / "case.json").read_text())
    result = run(model, model.parent, meta, "--require-fused")
    if result == "right":
        return "fused"
    if re.search("left unfused|expected an attention, got none", result):
        return run(model, model.parent, meta)
    return result


def is_spelled(name, spellings):
    return not spellings or name.partition("/")[2].startswith(tuple(spellings))


spellings = [argument for argument in sys.argv[1:] if argument != "--write"]
models = {}
for case in sorted((HERE / "cases").iterdir()):
    for name in json.loads((case / "case.json").read_text())["files"]:
        if is_spelled(f"{case.name}/{name}", spellings):
            models[f"{case.name}/{name}"] = case / name
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    found = dict(zip(models, pool.map(check, models.values())))
counts = collections.defaultdict(collections.Counter)
for name, result in found.items():
    counts[name.partition("/")[2]][result.partition(":")[0]] += 1
for spelling, results in counts.items():
    print(f"{spelling}: " + ", ".join(f"{count} {result}" for result, count in results.most_common()))

sys.exit(bool(compare(TABLE, found, lambda name: is_spelled(name, spellings), write=sys.argv[1:] != spellings)))
