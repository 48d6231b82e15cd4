"""Calls the ops of groups at every ISA level that this machine supports, and compares the results with numpy:

    ops.py FOLDER GROUP...

A group is a file in ops/; see calls.py. Without a group, the script calls no op, and fails if `attn-import --ops`
lists an op that has no case.
"""

import concurrent.futures
import importlib
import inspect
import os
import pathlib
import sys

from calls import CASES, GRAPHS, File, run
from program import Program
from sizes import FUNCTIONS, numbers_of_sizes

CASES_PER_FILE = 40
# Ops that attn-import does not accept in any form.
REFUSED = {"native_dropout.default"}
HERE = pathlib.Path(__file__).resolve().parent / "ops"
GROUPS = sorted(path.stem for path in HERE.glob("*.py"))


def load(groups):
    """Adds the cases and the graphs of groups."""
    sys.path.insert(0, str(HERE))
    for group in groups:
        importlib.import_module(group)


def files(folder):
    """Yields the files: cases in groups of CASES_PER_FILE, then each graph of several nodes in a file of its own."""
    for i, first in enumerate(range(0, len(CASES), CASES_PER_FILE)):
        yield f"{folder}/{i:02}", CASES[first:first + CASES_PER_FILE], []
    for function in GRAPHS:
        yield f"{folder}/{function.__name__}", [], [function]


def alone(path, cases):
    """Compiles each case of a file separately, because the whole file does not compile, and yields the failures."""
    for i, one in enumerate(cases):
        file = File(f"{path}-{i}", [one], [])
        file.check()
        yield from file.failures


def check(path, cases, graphs):
    file = File(path, cases, graphs)
    count = file.check()
    if count == 0 and len(cases) > 1:
        file.failures = list(alone(path, cases)) or file.failures
    return count, file.failures


def uncovered():
    table = [line.split("`")[1] for line in run("attn-import", "--ops").stdout.splitlines() if line.startswith("| `")]
    graphs = "".join(map(inspect.getsource, [*GRAPHS, Program.size, numbers_of_sizes])).replace('arithmetic("', '"_operator.')
    have = {one.op for one in CASES} | REFUSED | set(FUNCTIONS)
    # Some ops have only an in-place form.
    have |= {op.replace("_.", ".") for op in have if op.startswith(("fill_diagonal_", "floor_divide_"))}
    return table, [op for op in table if op not in have and op + '"' not in graphs]


def main(folder, *groups):
    load(groups or GROUPS)
    failures, results = [], []
    if groups:
        os.makedirs(folder, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda file: check(*file), files(folder)))
        failures = [failure for _, some in results for failure in some]
    else:
        table, missing = uncovered()
        failures = [f"expected a case of '{op}'" for op in missing]
        print(f"{len(table)} ops")
    for failure in failures:
        print(failure)
    print(f"{len(CASES)} cases and {len(GRAPHS)} graphs in {len(results)} files, "
          f"{sum(count for count, _ in results)} results compared, {len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
