"""run_cases.py PREFIX...: runs the .pt2 files of the cases in test/producers/cases whose names have one of these
prefixes.

A case runs through a shared library of all levels, at each ISA level that this CPU supports, with 1, 2 and 7
workers. Outputs must be within the case's tolerance of float64 outputs, with NaN and infinities in the same places,
and must have the same bits for any number of workers. No workspace may grow with the square of a sequence length,
unless probabilities are an output. The report must not list extra work, such as copies, unused results or
recomputation. Models are exports of attention modules by torch 2.15; the expected outputs come from running the
module in float64.
"""
import json, pathlib, re, subprocess, sys, tempfile

from levels import RUN, TARGETS

PRODUCERS = pathlib.Path(__file__).resolve().parent.parent / "producers"
sys.path.insert(0, str(PRODUCERS))
from arrays import difference, load


def quadratic_workspace(manifest):
    """Returns the workspace formula of a level if it has a product of two sequence dimensions, or None.

    In all cases, sequence dimensions are the symbols among the last two dimensions of an input.
    """
    for function in json.loads(manifest.read_text())["functions"]:
        sequence = {dim for tensor in function["inputs"] for dim in tensor["shape"][-2:] if isinstance(dim, str)}
        for level in function["levels"]:
            for term in re.split(r" \+ |, ", level["workspace"]):
                if sum(factor in sequence for factor in re.split(r"[* ]", term)) > 1:
                    return level["workspace"]
    return None


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


def check(case, folder):
    library = folder / f"{case.name}.so"
    status, said = run("attnc", case / "model.pt2", "-o", library, TARGETS, "--require-fused", "--opt-report")
    if status:
        return [said]
    meta, problems = json.loads((case / "case.json").read_text()), [l for l in said.splitlines() if "extra work: " in l]
    manifest = json.loads(library.with_suffix(".json").read_text())
    levels = [level["level"] for level in manifest["functions"][0]["levels"]]
    workspace = quadratic_workspace(library.with_suffix(".json"))
    if workspace and len(meta["sets"][0]["outputs"]) == 1:
        problems.append(f"workspace '{workspace}' holds all scores at once")
    for number, tensors in enumerate(meta["sets"]):
        inputs = [f"--input={case / name}" for name in tensors["inputs"]]
        for level in levels:
            first = None
            for workers in (1, 2, 7):
                where = f"set {number}, {level}, {workers} workers"
                out = folder / "out"
                status, said = run(*RUN, library, *inputs, "--guard", "--output-dir", out, f"--level={level}", f"--threads={workers}")
                if status and "a level that this CPU runs" in said:
                    continue
                if status:
                    problems.append(f"{where}: {said}")
                    continue
                got = [(out / f"{i}.npy").read_bytes() for i in range(len(tensors["outputs"]))]
                if first is not None and got != first:
                    problems.append(f"{where}: other bits than those with 1 worker")
                first = first or got
                for i, name in enumerate(tensors["outputs"]):
                    why = difference(load(out / f"{i}.npy"), load(case / name), meta["tolerance"])
                    if why:
                        problems.append(f"{where}, output {i}: {why}")
    return problems


cases = [c for c in sorted((PRODUCERS / "cases").iterdir()) if c.name.startswith(tuple(sys.argv[1:]))]
failed = 0
with tempfile.TemporaryDirectory() as folder:
    for case in cases:
        problems = check(case, pathlib.Path(folder))
        failed += bool(problems)
        for problem in problems[:4]:
            print(f"{case.name}: {problem}")
print(f"{len(cases) - failed} of {len(cases)} cases right")
sys.exit(failed > 0 or not cases)
