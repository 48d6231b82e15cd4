"""Times one runtime in its own process, which run.py starts: worker.py RUNTIME ROW FOLDER CPUS

The process runs on CPUS, such as 0,1, with one thread for each CPU. It prints JSON. The first line has the largest
error, relative to the largest value, and the seconds until the first result. After a failure, the first line has only
the reason. Then, for each number of seconds that it reads from stdin, it repeats the call for this time, and prints a
line with the median time in milliseconds.
"""

import json
import os
import pathlib
import signal
import statistics
import sys
import time

TOLERANCE = 1e-4  # the error of whole models in float32 is about 1e-5
LIMIT = 600  # seconds until the first result
PAUSE = 0.2  # seconds; after a call, threads of ONNX Runtime and OpenBLAS wait in busy loops for up to 0.12 s


def prepare(runtime, row, folder, threads):
    """Returns the call, and a description of its first result."""
    import numpy as np

    from rows import ROWS
    from runtimes import RUNTIMES

    begin = time.perf_counter()
    call, read, notes = RUNTIMES[runtime].run(ROWS[row], folder, threads)
    result = read(call())
    seconds = time.perf_counter() - begin
    expected = np.load(folder / "expected.npy")
    if result.shape != expected.shape:
        raise ValueError(f"expected the shape {expected.shape}, got {result.shape}")
    error = float(np.abs(result - expected).max() / np.abs(expected).max())
    if not error <= TOLERANCE:
        raise ValueError(f"expected an error of at most {TOLERANCE}, got {error:.1e}")
    return call, {"error": error, "first_result_s": seconds, **notes}


def time_calls(call, seconds):
    """The median time. The pause lets the threads of the runtime before this one go to sleep. The first call is not
    counted, because the other runtime used the caches before it.
    """
    time.sleep(PAUSE)
    call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def main(runtime, row, folder, cpus):
    cpus = [int(cpu) for cpu in cpus.split(",")]
    os.sched_setaffinity(0, cpus)  # before the runtime counts CPUs and starts threads
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # text that runtimes print goes to stderr
    signal.alarm(LIMIT)
    try:
        call, first = prepare(runtime, row, folder, len(cpus))
    except Exception as reason:
        lines = str(reason).strip().splitlines()
        reason = f"{type(reason).__name__}: {lines[0] if lines else ''}"
        print(json.dumps({"failed": reason[:200]}), file=output, flush=True)
        return
    signal.alarm(0)
    print(json.dumps(first), file=output, flush=True)
    for line in sys.stdin:
        print(json.dumps(time_calls(call, float(line))), file=output, flush=True)


if __name__ == "__main__":
    runtime, row, folder, cpus = sys.argv[1:]
    main(runtime, row, pathlib.Path(folder), cpus)
