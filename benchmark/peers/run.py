"""Times attn beside the runtimes that people use today:

    run.py --out FOLDER [--rows REGEX] [--peers REGEX] [--threads 1,2] [--seconds S]

writes results.json, table.md and speed.svg to FOLDER. It needs an environment that `setup` made, and attn, either in
build/release or in the folders that PYTHONPATH and ATTN_BIN name. ../README.md describes the rows, the peers and the
table.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import report
from rows import ROWS
from runtimes import RUNTIMES

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build/release"
ROUNDS = 3  # a peer is timed this often, and attn before and after each time, because the speed of a machine drifts


def environment(folder, threads):
    """The environment variables of a process that has its caches in `folder`, the folder of a row."""
    paths = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    return {"ATTN_BIN": str(BUILD / "bin"), **os.environ,
            "PYTHONPATH": os.pathsep.join([*paths, str(BUILD / "python")]),
            "ATTN_CACHE": str(folder / "attn"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
            "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}


class Failure(Exception):
    pass


class Worker:
    """A process of worker.py. `first` is its first line of output, which describes the first result."""

    def __init__(self, runtime, row, folder, cpus):
        command = [sys.executable, HERE / "worker.py", runtime, row, folder, ",".join(map(str, cpus))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, env=environment(folder, len(cpus)))
        self.first = self._read()
        if "failed" in self.first:
            self.close()
            raise Failure(self.first["failed"])

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"the process ended with status {self.process.wait()}")
        return json.loads(line)

    def time(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return self._read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def compare(attn, peer, seconds):
    """Times attn and the peer in turn. Returns attn's times, the peer's times, and their ratios to attn's."""
    attn_times, times = [attn.time(seconds)], []
    for _ in range(ROUNDS):
        times.append(peer.time(seconds))
        attn_times.append(attn.time(seconds))
    ratios = [2 * time / (before + after) for time, before, after in zip(times, attn_times, attn_times[1:])]
    return attn_times, times, ratios


def measure(name, folder, cpus, peers, seconds):
    """The results of a row: a dictionary for attn and for each peer. If attn fails, the peers are not timed."""
    results, attn_times = [{"runtime": runtime} for runtime in ("attn", *peers)], []
    try:
        attn = Worker("attn", name, folder, cpus)
    except Failure as reason:
        results[0]["failed"] = str(reason)
        return results[:1]
    for result in results[1:]:
        try:
            peer = Worker(result["runtime"], name, folder, cpus)
            more, times, ratios = compare(attn, peer, seconds / ROUNDS)
            peer.close()
        except Failure as reason:
            result["failed"] = str(reason)
            continue
        attn_times += more
        result.update(peer.first, ms=statistics.median(times), ratio=statistics.median(ratios))
    results[0].update(attn.first, ms=statistics.median(attn_times or [attn.time(seconds)]))
    attn.close()
    return results


def describe_machine():
    """The CPU as Linux names it, and the load before the benchmark."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    facts = dict(re.split(r"\s*:\s?", line, maxsplit=1) for line in lines)
    return {"cpu": f"{facts['model name'].strip()}, family {facts['cpu family']}, model {facts['model']}",
            "cpus": len(os.sched_getaffinity(0)), "load_average": os.getloadavg()[0]}


def versions():
    command = [sys.executable, "-c", "import attn; print(attn.__version__)"]
    attn = subprocess.run(command, env=environment(HERE, 1), capture_output=True, text=True)
    if attn.returncode:
        sys.exit(f"run.py: expected the Python package attn in {BUILD}/python, or where PYTHONPATH says")
    packages = (HERE / "requirements.txt").read_text().split()
    return {"attn": attn.stdout.strip(), **{package: importlib.metadata.version(package) for package in packages}}


def show(name, threads, result):
    if "failed" in result:
        what = f"failed: {result['failed']}"
    else:
        what = (f"{result['ms']:9.3f} ms {result.get('ratio', 1):7.2f} x attn   error {result['error']:.1e}   "
                f"first result after {result['first_result_s']:.1f} s")
    print(f"{name:20} {threads} {result['runtime']:15} {what}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rows", default="attention/|layer/",
                        help="rows whose name matches; by default no whole models")
    parser.add_argument("--peers", default="", help="peers whose name matches; by default all")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=1, help="how long each peer is timed in each row")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cpus = sorted(os.sched_getaffinity(0))
    thread_counts = [int(threads) for threads in options.threads.split(",")]
    if max(thread_counts) > len(cpus):
        parser.error(f"expected at most {len(cpus)} threads, one on each CPU, got {max(thread_counts)}")
    results = {"date": datetime.date.today().isoformat(), **describe_machine(), "seconds": options.seconds,
               "versions": versions(), "rows": []}
    for name, row in ROWS.items():
        if not re.search(options.rows, name):
            continue
        peers = [peer for peer, runtime in RUNTIMES.items()
                 if peer != "attn" and runtime.can_run(row) and re.search(options.peers, peer)]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            export = [sys.executable, HERE / "export.py", name, folder]
            exported = subprocess.run(export, capture_output=True, text=True)
            if exported.returncode:
                sys.exit(f"{exported.stderr}run.py: export.py failed for {name}")
            for threads in thread_counts:
                measured = measure(name, folder, cpus[:threads], peers, options.seconds)
                for result in measured:
                    show(name, threads, result)
                results["rows"].append({"row": name, "title": row.title, "threads": threads, "results": measured})
                (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    report.write(results, options.out / "table.md", options.out / "speed.svg")


if __name__ == "__main__":
    main()
