"""differential.py [--draws=N] [--seed=S] [--only=I] [--keep=DIR] ...: random modules against float64.

A draw is one module: a single attn.attention (differential_op.py) or projections, attentions and sums as linalg text
(differential_module.py). It is compiled once for all levels, and called with several sets of sizes and data. Each such
problem is checked at every level that this CPU runs: three calls at each of two thread counts on one set of weights,
with other bytes in the outputs and the workspace before each call, inputs and packed weights on read-only pages. All
outputs of a level are the same to the bit, and within the bound of bounded.py of formulas in float64. The calls run in
a child process. A draw depends on the seed and its index alone, so --only repeats it.
"""
import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

import bounded
import library
from differential_module import ModuleDraw
from differential_op import OpDraw

PROBLEMS = 8  # of a draw
THREADS = [1, 2, 3, 7]
SCHEDULES = ["per-head", "phased", "whole-scores", "unfused", "chosen"]
PATTERNS = [0x00, 0xff, 0x55, 0x7f]  # 0xff and 0x7f fill floats with NaN and with 3e38
TIME_LIMIT = 60  # seconds for the calls of a draw


def make_draw(seed, index):
    rng = random.Random(f"{seed}:{index}")
    draw = (OpDraw if rng.random() < 0.4 else ModuleDraw)(rng)
    draw.schedule = rng.choice(SCHEDULES)
    draw.maps_weights = bool(draw.weights) and rng.random() < 0.3
    return draw


def compile(draw, folder):
    """Why attnc refuses, or ""."""
    source = folder / "draw.mlir"
    source.write_text(draw.text())
    command = ["attnc", source, "-o", folder / "draw.so", "--target=all"]
    if draw.schedule != "chosen":
        command.append(f"--schedule={draw.schedule}")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "no end within 120 s"
    if done.returncode < 0:
        return f"killed by signal {-done.returncode}"
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def call_all(draw, seed, folder, tell):
    """The problems of a draw; `tell` is given what is about to be called and what went wrong."""
    runtime = library.Runtime(options.runtime)
    loaded = runtime.create("attn_library_load", str(folder / "draw.so").encode())
    levels = runtime.levels(loaded, b"forward")
    functions = {level: runtime.function(loaded, b"forward", level) for level in levels}
    weights = {level: runtime.pack(functions[level], draw.weights, folder / "packed" if draw.maps_weights else None)
               for level in levels} if draw.weights else dict.fromkeys(levels)
    pools = {}
    for number in range(PROBLEMS):
        hostile, sizes, inputs, expected = draw.problem(np.random.default_rng([seed, draw.index, number]))
        threads = sorted(draw.rng.sample(THREADS, 2))
        at_end = draw.rng.random() < 0.7
        tell("problem", number=number, hostile=hostile, sizes=sizes, threads=threads,
             levels=[level.decode() for level in levels])
        if options.keep:
            for i, array in enumerate(inputs):
                np.save(folder / f"{number}.{i}.npy", array)
            for i, want in enumerate(expected):
                np.save(folder / f"{number}.want.{i}.npy", want.value.astype(np.float32))
        tensors = [library.Tensor(a.shape, a.dtype, at_end, a) for a in inputs]
        outputs = [library.Tensor(want.value.shape, np.float32, at_end) for want in expected]
        for level in levels:
            first = None
            for count in threads:
                tell("at", number=number, level=level.decode(), threads=count)
                if count > 1 and count not in pools:
                    pools[count] = runtime.create("attn_pool_create", library.ctypes.c_int64(count))
                try:
                    results = runtime.calls(functions[level], weights[level], tensors, outputs, pools.get(count), count,
                                            draw.rng.sample(PATTERNS, 3), at_end)
                except library.Error as error:
                    tell("wrong", number=number, why=f"{level.decode()}, {count} threads: {error}")
                    continue
                for call, result in enumerate(results):
                    why = None
                    if first is None:
                        first = result
                        arrays = [np.frombuffer(data, np.float32).reshape(want.value.shape)
                                  for data, want in zip(result, expected)]
                        reasons = [bounded.difference(*pair) for pair in zip(arrays, expected)]
                        why = next((f"result {i}: {reason}" for i, reason in enumerate(reasons) if reason), None)
                    elif result != first:
                        why = "other bits than the first call"
                    if why:
                        tell("wrong", number=number, why=f"{level.decode()}, {count} threads, call {call}: {why}")
        for tensor in tensors + outputs:
            tensor.pages.free()


def in_child(work):
    """What `work(tell)` told, as (kind, fields), and how the child process ended: "" where it did well."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        tell = lambda kind, **fields: os.write(writer, json.dumps([kind, fields]).encode() + b"\n")
        try:
            np.seterr(all="ignore")
            work(tell)
        except BaseException:
            tell("error", why=traceback.format_exc())
        os._exit(0)
    os.close(writer)
    said, end, late = b"", time.monotonic() + TIME_LIMIT, False
    while not late:
        ready, _, _ = select.select([reader], [], [], max(end - time.monotonic(), 0))
        part = os.read(reader, 1 << 16) if ready else b""
        said += part
        late = not ready
        if ready and not part:
            break
    os.close(reader)
    if late:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    told = [json.loads(line) for line in said.decode().splitlines()]
    if late:
        return told, f"no end within {TIME_LIMIT} s"
    return told, f"killed by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else ""


def check(seed, index):
    """The counts and the failures of a draw."""
    draw = make_draw(seed, index)
    draw.index = index
    counts = collections.Counter()
    failures, wrong = [], set()
    name = f"--seed={seed} --only={index} ({draw.schedule})"
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        refused = compile(draw, folder)
        if refused:
            counts["", "refused"] += 1
            return counts, PROBLEMS, [f"{name}: attnc: {refused}"]
        told, end = in_child(lambda tell: call_all(draw, seed, folder, tell))
    problems, last = {}, "before the first call"
    for kind, fields in told:
        if kind == "problem":
            problems[fields["number"]] = fields
            counts.update([("schedule", draw.schedule), ("hostile data", fields["hostile"]),
                           ("threads", "{} and {}".format(*fields["threads"]))])
            counts.update(("level", level) for level in fields["levels"])
            counts.update(("kind", kind) for kind in draw.kinds)
        elif kind == "at":
            last = "at {level}, {threads} threads, problem {number}".format(**fields)
        elif kind == "wrong":
            number = fields["number"]
            sizes = " ".join(f"{d}={n}" for d, n in problems[number]["sizes"].items())
            if number not in wrong:
                failures.append(f"{name}: problem {number} ({sizes}; {problems[number]['hostile']}): {fields['why']}")
            wrong.add(number)
        else:
            end = fields["why"]
    if end:
        failures.append(f"{name}: {end} {last}")
        wrong.update(range(len(problems) - 1 if problems else 0, PROBLEMS))
    return counts, len(wrong), failures


def check_one(index):
    return check(options.seed, index)


parser = argparse.ArgumentParser()
parser.add_argument("--draws", type=int, default=40, help=f"modules, each called with {PROBLEMS} problems")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--only", type=int, help="the index of the one draw to run")
parser.add_argument("--first", type=int, default=0, help="the index of the first draw")
parser.add_argument("--keep", type=pathlib.Path, help="where the files of a single draw stay")
parser.add_argument("--jobs", type=int, default=1, help="draws at once")
parser.add_argument("--runtime", type=pathlib.Path, help="libattn.so; beside attnc unless given")
options = parser.parse_args()
if options.keep and options.only is None and options.draws > 1:
    parser.error("expected --only beside --keep")
if not options.runtime:
    attnc = shutil.which("attnc") or parser.error("expected attnc on PATH")
    options.runtime = pathlib.Path(attnc).parent / "../lib/libattn.so"
if options.keep:
    options.keep.mkdir(parents=True, exist_ok=True)

start = time.monotonic()
indices = range(options.first, options.first + options.draws) if options.only is None else [options.only]
counts, wrong = collections.Counter(), 0
with multiprocessing.get_context("fork").Pool(options.jobs) as workers:
    for found, wrong_here, failures in workers.imap(check_one, indices):
        counts.update(found)
        wrong += wrong_here
        for failure in failures[:3]:
            print(failure, flush=True)
groups = collections.defaultdict(list)
for (group, name), count in sorted(counts.items()):
    groups[group].append(f"{name} {count}")
for group in ("schedule", "threads", "level", "kind", "hostile data"):
    print(f"{group}: {', '.join(groups[group])}")
print(f"refused: {counts['', 'refused']} of {len(indices)} modules")
print(f"seed {options.seed}, draws {indices[0]} to {indices[-1]}, {time.monotonic() - start:.0f} s")
total = len(indices) * PROBLEMS
print(f"{total - wrong} of {total} problems right")
sys.exit(wrong > 0)
