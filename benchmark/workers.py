"""workers.py [--rows REGEX] [--level LEVEL] [--dim NAME=N] [FILE ...]: how many times as fast attn can be with more threads.

Prints a line for each FILE, which attn-run must be able to call, and for each row of peers/rows.py whose name contains
REGEX. A line has the milliseconds of all tasks on one thread, the number of loops over tasks, the tasks of the loop with the
fewest tasks, and a bound for each number of threads. The bound comes from the measured times of the tasks
(attn-run --task-times): no loop is faster than its longest task, or than all of its tasks divided evenly. Barriers, memory
and caches that threads share make a call slower than that. --rows needs the environment of peers/setup.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def export(row, folder):
    """Exports a row of the peers' benchmark; returns the path of the file."""
    import torch

    module, inputs = row.build()
    path = folder / "row.pt2"
    with torch.no_grad():
        torch.export.save(torch.export.export(module.eval(), inputs), path)
    return path


def find_rows(pattern):
    sys.path.insert(0, str(HERE / "peers"))
    from rows import ROWS

    return {name: row for name, row in ROWS.items() if re.search(pattern, name)}


def measure(path, options):
    command = ["attn-run", path, "--task-times", "--json", *(f"--dim={dim}" for dim in options.dim)]
    if options.level:
        command.append(f"--level={options.level}")
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(run.returncode)
    return json.loads(run.stdout)


def print_line(name, figures):
    tasks, bounds = figures["loop_tasks"], figures["speedup_bounds"]
    cells = [name, f"{figures['loops_ms']:.4g}", str(len(tasks)), str(min(tasks, default=0)),
             *(f"{bound:.1f}" for bound in bounds.values())]
    print("|", " | ".join(cells), "|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--rows", metavar="REGEX")
    parser.add_argument("--level")
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=N", help="the size of a dynamic dimension")
    options = parser.parse_args()
    if not options.files and options.rows is None:
        parser.error("expected a file or --rows, got neither")
    print("| | ms | loops | fewest tasks |", " | ".join(f"{2 ** i} threads" for i in range(1, 7)), "|")
    print("|---|" + "--:|" * 9)
    for path in options.files:
        print_line(path, measure(path, options))
    for name, row in (find_rows(options.rows) if options.rows is not None else {}).items():
        with tempfile.TemporaryDirectory() as folder:
            print_line(name, measure(export(row, pathlib.Path(folder)), options))


if __name__ == "__main__":
    main()
