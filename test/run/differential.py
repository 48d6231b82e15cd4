"""differential.py [--models] [--draws=N] [--seed=S] [--only=I] [--keep=DIR] ...: compares random modules with float64.

A draw is one module: a single attn.attention (differential_op.py), or projections, attentions and sums as linalg text
(differential_module.py). With --models, a draw is a .pt2 file: a model (differential_model.py), or ops between views
(differential_views.py). About half of these files are compiled from the output of attn-import. attnc may reject a model
with an error message of one sentence. Errors, and attentions that were not fused, are counted by reason. If a model
fails, the script prints a command that repeats the failure with as few features as possible.

A module is compiled once for all its ISA levels, and called with several sets of sizes and data, the problems of the
draw. At every level that this CPU supports, a problem is called with two numbers of threads, three times with each, and
with the same weights. Before each call, the outputs and the workspace are filled with different bytes; inputs and
packed weights are on read-only pages. All outputs of a level must have the same bits, and must be within the bound that
bounded.py computes in float64. The calls run in a child process. A draw depends only on the seed and its index, so
--only repeats it.
"""
import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
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
from differential_model import ModelDraw
from differential_module import ModuleDraw
from differential_op import OpDraw
from differential_views import ViewsDraw

TARGETS = ["native", "native", "native", "x86-64", "x86-64,x86-64-v3", "all"]
THREADS = [1, 2, 3, 7]
SCHEDULES = ["per-head", "phased", "whole-scores", "decode", "unfused", "chosen"]
PATTERNS = [0x00, 0xff, 0x55, 0x7f]  # 0xff and 0x7f fill floats with NaN and with 3e38
TIME_LIMIT = 60  # seconds for the calls of a draw
COMPILE_LIMIT = 300  # seconds
CPU_LIMIT = 60  # seconds of CPU time that a compilation may take


def make_draw(seed, index, features=None):
    rng = random.Random(f"{seed}:{index}")
    if options.models:
        draw = (ViewsDraw if rng.random() < 0.2 else ModelDraw)(seed, index, features)
    else:
        draw = (OpDraw if rng.random() < 0.4 else ModuleDraw)(rng)
    draw.schedule = rng.choice(SCHEDULES)
    draw.maps_weights = bool(draw.weights) and rng.random() < 0.3
    draw.target = rng.choice(TARGETS) if options.models else "all"
    if options.target:
        draw.target = options.target
    draw.as_text = options.models and rng.random() < 0.5
    return draw


def run(*command):
    """Returns the output of a command, and its error or "" if it succeeded."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_LIMIT)
    except subprocess.TimeoutExpired:
        return "", f"no end within {COMPILE_LIMIT} s"
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    if seconds > CPU_LIMIT:
        return "", f"no end within {CPU_LIMIT} s, but after {seconds:.0f} s"
    said = (done.stdout + done.stderr).strip()
    return said, f"killed by signal {-done.returncode}" if done.returncode < 0 else said if done.returncode else ""


def compile(draw, folder):
    """Returns the lines of the report, and the error message of attnc or "" if it succeeded."""
    source = draw.write(folder)
    if draw.as_text:
        text, refused = run("attn-import", source)
        if refused:
            return [], refused
        source = source.with_suffix(".mlir")
        source.write_text(text)
    command = ["attnc", source, "-o", folder / "draw.so", f"--target={draw.target}", "--opt-report"]
    if draw.schedule != "chosen":
        command.append(f"--schedule={draw.schedule}")
    said, refused = run(*command)
    return said.splitlines(), refused


def call_all(draw, seed, folder, tell):
    """Runs the problems of a draw. Calls `tell` for each problem that starts, and for each failure."""
    runtime = library.Runtime(options.runtime)
    loaded = runtime.create("attn_library_load", str(folder / "draw.so").encode())
    levels = runtime.levels(loaded, b"forward")
    functions = {level: runtime.function(loaded, b"forward", level) for level in levels}
    weights = {level: runtime.pack(functions[level], draw.weights, folder / "packed" if draw.maps_weights else None)
               for level in levels} if draw.weights else dict.fromkeys(levels)
    pools = {}
    for number in range(options.problems):
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
        types = [library.DTYPES[want.element] for want in expected]
        outputs = [library.Tensor(want.value.shape, dtype, at_end) for want, dtype in zip(expected, types)]
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
                        arrays = [library.from_element(np.frombuffer(data, dtype)).reshape(want.value.shape)
                                  for data, dtype, want in zip(result, types, expected)]
                        reasons = [bounded.difference(*pair) for pair in zip(arrays, expected)]
                        why = next((f"result {i}: {reason}" for i, reason in enumerate(reasons) if reason), None)
                    elif result != first:
                        why = "other bits than those of the first call"
                    if why:
                        tell("wrong", number=number, why=f"{level.decode()}, {count} threads, call {call}: {why}")
        for tensor in tensors + outputs:
            tensor.pages.free()


def in_child(work):
    """Runs `work(tell)` in a child process. Returns its messages as (kind, fields), and the process's error or ""."""
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


def check(seed, index, features=None):
    """Returns the counts and the failures of a draw."""
    draw = make_draw(seed, index, features)
    draw.index = index
    counts = collections.Counter()
    failures, wrong = [], set()
    name = f"--seed={seed} --only={index} ({draw.schedule})"
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        report, refused = compile(draw, folder)
        for line in report:
            for group, mark in (("not fused", "attention left unfused: "), ("extra work", "extra work: ")):
                if mark in line:
                    counts[group, line.split(mark)[-1]] += 1
        if refused:
            return counts, options.problems, [f"{name}: attnc: {refused}"]
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
        wrong.update(range(len(problems) - 1 if problems else 0, options.problems))
    return counts, len(wrong), failures


def check_one(index):
    found = check(options.seed, index, options.features)
    if found[2] and options.models and options.only is None:
        found[2].append(smallest(index))
    return found


def smallest(index):
    """Returns a command line that repeats a failure with as few features as possible."""
    needed = list(make_draw(options.seed, index).decisions)
    share = len(needed)
    while share := share // 2:
        for start in reversed(range(0, len(needed), share)):
            fewer = needed[:start] + needed[start + share:]
            if check(options.seed, index, fewer)[2]:
                needed = fewer
    decisions = make_draw(options.seed, index, needed).decisions
    target = f" --target={options.target} --runtime={options.runtime}" if options.target else ""
    return (f"  --models --seed={options.seed} --only={index}{target} --features='{','.join(decisions)}': " +
            "; ".join(f"{name}: {choice}" for name, choice in decisions.items()))


parser = argparse.ArgumentParser()
parser.add_argument("--draws", type=int, default=40, help="the number of modules")
parser.add_argument("--problems", type=int, default=8, help="the number of problems of a module")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--only", type=int, help="the index of the one draw to run")
parser.add_argument("--models", action="store_true", help="draw .pt2 files instead of linalg text")
parser.add_argument("--features", type=lambda text: text.split(","),
                    help="the decisions that need not be the simplest choice")
parser.add_argument("--first", type=int, default=0, help="the index of the first draw")
parser.add_argument("--keep", type=pathlib.Path, help="the folder in which the files of a single draw are kept")
parser.add_argument("--jobs", type=int, default=1, help="the number of draws that run at once")
parser.add_argument("--target", help="attnc's --target for every module")
parser.add_argument("--runtime", type=pathlib.Path, help="libattn.so; by default the one beside attnc")
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
        for failure in failures[:3] + failures[3:][-1:]:
            print(failure, flush=True)
groups = collections.defaultdict(list)
for (group, name), count in sorted(counts.items()):
    groups[group].append(f"{name} {count}")
for group in ("schedule", "threads", "level", "kind", "hostile data"):
    print(f"{group}: {', '.join(groups[group])}")
for group in ("not fused", "extra work"):
    of_group = [(count, name) for (g, name), count in counts.items() if g == group]
    for count, name in sorted(of_group, reverse=True):
        print(f"{group}, {count} times: {name}")
    print(f"{group}: {sum(count for count, _ in of_group)} in {len(indices)} modules")
print(f"seed {options.seed}, draws {indices[0]} to {indices[-1]}, {time.monotonic() - start:.0f} s")
total = len(indices) * options.problems
print(f"{total - wrong} of {total} problems right")
sys.exit(wrong > 0)
