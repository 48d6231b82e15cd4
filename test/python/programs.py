"""programs.py [--seed=N] [--count=M] [--first=I] [--only=KIND] [--jobs=J] ...: checks that torch.compile with the
backend attn, and as_module, never change what a program computes.

programs_source.py writes random programs: models with writes, views, buffers, caches, regions and graph breaks, and
calls with other sizes, types and weights. programs_oracle.py runs each program in eager PyTorch, in float64 and with
attn. Results, arguments, weights and buffers must be equal: integers, booleans, types, shapes, strides and shared
storage exactly; floats up to four times the error of eager PyTorch against float64. What PyTorch's own backend
aot_eager changes, attn may change in the same way.

If a program fails, its text is printed. `--file=PATH` checks a text again; `--shrink` first removes every line that the
failure does not need.
"""
import argparse
import collections
import multiprocessing
import os
import pathlib
import re
import sys
import time
import traceback
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
import logging

import torch

import programs_oracle as oracle
import programs_source as source

#: The kinds of differences. A failure with several is named after the first of them in this list.
WORST = [
    "values", "nan", "integers", "exception", "structure", "shape", "dtype", "requires_grad", "storage", "identity",
    "strides"
]
CPU_LIMIT = 60  # seconds of CPU time for a program
TIME_LIMIT = 300  # seconds for a program; less would be too little on a machine with other work
PROGRAMS_OF_WORKER = 60  # a new process then takes over, because libraries of kernels stay loaded


def set_up():
    torch.set_num_threads(1)
    torch._inductor.config.fallback_random = True
    torch._inductor.config.compile_threads = 1
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")


def seconds():
    """The CPU time of this process and of its children, such as attnc."""
    return sum(os.times()[:4])


def work(pipe):
    """Checks the programs that come through a pipe, until None comes."""
    set_up()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # attnc says how long it takes
    while (job := pipe.recv()) is not None:
        text, name, backend = job
        start = seconds()
        try:
            found = oracle.check(text, name, backend)
        except oracle.Broken:
            found = {"error": traceback.format_exc(), "broken": True}
        except Exception:
            found = {"error": traceback.format_exc()}
        found["seconds"] = seconds() - start
        pipe.send(found)


class Worker:
    """A child process that checks one program at a time."""

    context = multiprocessing.get_context("fork")

    def __init__(self):
        self.process = None

    def start(self):
        if self.process is not None and self.done < PROGRAMS_OF_WORKER:
            return
        self.stop()
        self.pipe, other = self.context.Pipe()
        self.process = self.context.Process(target=work, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.done = 0

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None

    def give(self, text, name, backend):
        self.start()
        self.job = text, name, backend
        self.pipe.send((text, name, backend))
        self.start_cpu, self.end = self.cpu(), time.monotonic() + TIME_LIMIT
        self.done += 1

    def cpu(self):
        """The CPU time of the process and of its children that have ended."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def take(self):
        """Returns what came of the program, or None if the worker is still at it."""
        try:
            if self.pipe.poll():
                found = self.pipe.recv()
                if found.get("broken"):
                    self.stop()
                    if "error" in found and self.job[2] != "aot_eager":  # aot_eager may break the process too
                        other = Worker()
                        other.give(*self.job[:2], "aot_eager")
                        while (theirs := other.take()) is None:
                            time.sleep(0.05)
                        other.stop()
                        if theirs.get("broken"):
                            return {
                                "counts": {"other": 1}, "found": [], "reports": [], "refused": [], "raised": None,
                                "seconds": found["seconds"]
                            }
                return found
        except EOFError:
            self.process.join()
            code = self.process.exitcode
            self.stop()
            return {"error": f"killed by signal {-code}" if code < 0 else f"exit status {code}"}
        cpu = self.cpu() - self.start_cpu
        if cpu > CPU_LIMIT or time.monotonic() > self.end:
            self.stop()
            return {"error": f"timeout: no end within {CPU_LIMIT} s of CPU time, or {TIME_LIMIT} s", "seconds": cpu}
        return None


def check_all(jobs, count):
    """Yields (key, what came of it) for each job (key, text, name, backend), in order."""
    workers = {Worker(): None for _ in range(count)}
    waiting, done, at = iter(jobs), {}, 0
    order = []
    more = True
    while more or any(key is not None for key in workers.values()):
        for worker, key in workers.items():
            if key is not None and (found := worker.take()) is not None:
                done[key] = found
                workers[worker] = None
            if workers[worker] is None and more:
                job = next(waiting, None)
                more = job is not None
                if more:
                    order.append(job[0])
                    workers[worker] = job[0]
                    worker.give(*job[1:])
        while at < len(order) and order[at] in done:
            yield order[at], done.pop(order[at])
            at += 1
        multiprocessing.connection.wait([worker.pipe for worker, key in workers.items() if key is not None], 0.5)
    for worker in workers:
        worker.stop()


def failure(found):
    """Returns the kind of failure, or None."""
    if "error" in found:
        return found["error"].strip().splitlines()[-1][:200]
    return min((difference.what for difference in found["found"]), key=WORST.index, default=None)


def describe(found):
    lines = []
    if "error" in found:
        return found["error"]
    for difference in sorted(found["found"], key=lambda difference: WORST.index(difference.what))[:6]:
        lines.append(f"  record {difference.step}, {difference.path}: {difference.what}: {difference.detail}")
    if len(found["found"]) > 6:
        lines.append(f"  ... and {len(found['found']) - 6} more differences")
    lines += ["  attn: " + report for report in found["reports"]]
    lines += ["  as_module: " + reason for reason in found["refused"]]
    return "\n".join(lines)


# Shrinking.


def blocks(lines):
    """Yields (first, last) of each line with the lines below it that have a greater depth, the largest blocks first."""
    def depth(line):
        return len(line) - len(line.lstrip())

    found = []
    for i, line in enumerate(lines):
        if line.strip():
            j = i + 1
            while j < len(lines) and (not lines[j].strip() or depth(lines[j]) > depth(line)):
                j += 1
            found.append((i, j))
    return sorted(found, key=lambda block: block[0] - block[1])


def smaller(lines):
    """Yields versions of a text with one block less, one block without its first line, or a shorter expression."""
    for i, j in blocks(lines):
        yield lines[:i] + lines[j:]
        if j > i + 1 and lines[i].strip().startswith(("with ", "if ")):
            yield lines[:i] + [line[4:] for line in lines[i + 1:j]] + lines[j:]
    for i, line in enumerate(lines):
        if match := re.match(r"( +\w+) = (.*)$", line):
            for name in dict.fromkeys(re.findall(r"\b(?:[vqkrx]\d+|x|y)\b", match[2])):
                if match[2] != name:
                    yield lines[:i] + [f"{match[1]} = {name}"] + lines[i + 1:]


def shrink(text, kind, backend):
    """Removes lines as long as the failure stays the same. Returns the text, and what came of it."""
    worker, last = Worker(), None

    def fails(lines):
        nonlocal last
        try:
            compile("\n".join(lines), "program", "exec")
        except SyntaxError:
            return False
        worker.give("\n".join(lines) + "\n", "shrink", backend)
        while (found := worker.take()) is None:
            time.sleep(0.01)
        if failure(found) != kind:
            return False
        last = found
        return True

    lines, changed = text.rstrip().splitlines(), True
    while changed:
        changed, at = False, 0
        while at < len(candidates := list(smaller(lines))):
            if fails(candidates[at]):
                lines, changed = candidates[at], True  # the same place now has another candidate
            else:
                at += 1
    worker.stop()
    return "\n".join(lines) + "\n", last


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20, help="the number of programs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--only", choices=source.KINDS, help="the kind of all programs")
    parser.add_argument("--jobs", "-j", type=int, default=1, help="the number of programs that run at once")
    parser.add_argument("--fallback",
                        choices=["aot_eager", "eager", "inductor"],
                        help="what compiles the rest of all programs")
    parser.add_argument("--backend", default="attn", help="another backend of torch.compile, to test this test")
    parser.add_argument("--show", action="store_true", help="print the text of each program")
    parser.add_argument("--shrink", action="store_true", help="remove the lines that a failure does not need")
    parser.add_argument("--file", type=pathlib.Path, action="append", help="check the program in this file")
    parser.add_argument("--verbose", "-v", action="store_true", help="print one line for each program")
    options = parser.parse_args()

    def jobs():
        for path in options.file or ():
            yield str(path), path.read_text(), path.stem, options.backend
        for i in range(options.first, options.first + options.count) if not options.file else ():
            kind, text, used = source.make(options.seed, i, options.only)
            statements.update(used)
            kinds[kind] += 1
            if options.fallback:
                text = f"# fallback: {options.fallback}\n" + text.partition("\n")[2]
            texts[i] = text
            yield i, text, f"program_{options.seed}_{i}", options.backend

    statements, kinds, counts, classes = (collections.Counter() for _ in range(4))
    texts, start, cpu, total, wrong, most = {}, time.monotonic(), 0, 0, 0, (0, None)
    for key, found in check_all(jobs(), options.jobs):
        total += 1
        cpu += found.get("seconds", 0)
        counts.update(found.get("counts", {}))
        most = max(most, (found.get("seconds", 0), str(key)))
        kind = failure(found)
        text = texts.pop(key, None) or pathlib.Path(key).read_text()
        if options.show:
            print(text)
        if options.verbose or options.file:
            print(f"program {key}: {kind or 'right'}, {found.get('seconds', TIME_LIMIT):.1f} s",
                  dict(found.get("counts", {})))
            if found.get("raised"):
                print("  eager raised", found["raised"][:300])
            if not kind and options.file:
                print(describe(found))
        if kind:
            wrong += 1
            classes[kind] += 1
            if options.shrink:
                text, smallest = shrink(text, kind, options.backend)
                found = smallest or found
            print(f"--- program {key} of seed {options.seed}: {kind}\n{describe(found)}\n{text}", flush=True)
    print("statements:", ", ".join(f"{name} {count}" for name, count in sorted(statements.items())))
    print("kinds:", ", ".join(f"{name} {count}" for name, count in sorted(kinds.items())))
    print("differences:", ", ".join(f"{name} {count}" for name, count in classes.most_common()) or "none")
    print(
        f"{time.monotonic() - start:.0f} s; {cpu / max(total, 1):.2f} s of CPU time for a program, "
        f"at most {most[0]:.1f} s, for program {most[1]}"
    )
    names = {
        "calls": "calls", "graphs": "graphs", "whole": "compiled as a whole", "parts": "in parts",
        "left": "left to PyTorch", "attentions": "attentions", "layers": "layers of as_module",
        "refused": "layers refused", "raised": "programs where eager raised", "no_float64": "without a float64 run",
        "other": "compared with aot_eager", "notes": "other reports"
    }
    print("counts: " + ", ".join(f"{name} {counts[key]}" for key, name in names.items()))
    print(f"{total - wrong} of {total} programs right")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
