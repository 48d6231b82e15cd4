"""run.py [--seconds N] [--only KIND]: tests and measures attn's code on this machine, in the folder that prepare.py made.

The steps run in order. No step but the first starts after N seconds (540 unless given). After each step, the script
writes all results to results.json, so a run that is cut off keeps them; report.py prints its tables. Times are those of
the GPU, for attn and for PyTorch. A short call is repeated until the calls take 2 ms, because a launch takes the CPU
several microseconds. Beside each time are the clock and the power of the GPU while it was busy. Tests compare the results
of the GPU with those of the CPU; the last step runs them under memcheck, if compute-sanitizer is installed. If Nsight
Compute is installed, its pages on the kernels are in profile-*.txt.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent
SAMPLE_MS = 2
UNTIL = float("inf")  # the time after which no process runs much longer
try:
    import torch
    HAS_TORCH = torch.cuda.is_available()
except ImportError:
    HAS_TORCH = False


def call(step, *options, library=None, timeout=60, wrapper=()):
    dims = [f"--dim={name}={size}" for name, size in step["dims"].items()]
    command = [*wrapper, FOLDER / "attn-call", FOLDER / "libraries" / (library or step["library"]), *dims, *options]
    timeout = max(5, min(timeout, UNTIL - time.monotonic()))
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:  # A kernel that waits for a barrier forever does not end.
        return subprocess.CompletedProcess(command, 1, "", f"no end after {timeout:.0f} s")


def query(fields):
    """What nvidia-smi says, or none."""
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=20)
        return done.stdout.splitlines()[0].split(", ") if done.returncode == 0 else None
    except (FileNotFoundError, subprocess.TimeoutExpired, IndexError):
        return None


def machine():
    said = query("name,driver_version,power.limit,clocks.max.sm")
    found = dict(zip(("card", "driver", "watts_limit", "mhz_limit"), said or ()))
    found |= {"cpu": platform.processor(), "cores": os.cpu_count()}
    try:
        found["cpu"] = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    if HAS_TORCH:
        found |= {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}
    return found


class Clock:
    """Samples the clock in MHz and the power in W while a block runs. The values are those of the busiest quarter."""

    def __enter__(self):
        self.found = {}
        try:
            self.process = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "-lms", "20"],
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except FileNotFoundError:
            self.process = None
        return self

    def __exit__(self, *_):
        if not self.process:
            return
        self.process.terminate()
        samples = []
        for line in self.process.communicate()[0].splitlines():
            try:
                mhz, watts = map(float, line.split(","))
                samples.append((watts, mhz))
            except ValueError:
                continue
        busy = sorted(samples)[-max(1, len(samples) // 4):]
        if busy:
            self.found = {"mhz": statistics.median(mhz for _, mhz in busy), "watts": statistics.median(watts for watts, _ in busy)}


def measure(step, seconds, library=None):
    """The time of a call on the GPU, or an error."""
    with Clock() as clock:
        done = call(step, "--device=cuda", f"--benchmark={seconds}", "--json", f"--gflop={step['gflop']}", library=library)
    if done.returncode:
        return {"error": done.stderr.strip()[-300:]}
    said = json.loads(done.stdout)
    return {"ms": said["median_ms"], "least_ms": said["min_ms"], "peak_gflops": said["peak_gflops"], **clock.found}


def measure_torch(function, seconds):
    """The time of a call of `function`, in the same way."""
    for _ in range(3):
        function()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    calls, times, until = 1, [], time.monotonic() + seconds
    with Clock() as clock:
        while time.monotonic() < until or len(times) < 3:
            start.record()
            for _ in range(calls):
                function()
            end.record()
            end.synchronize()
            ms = start.elapsed_time(end)
            if calls == 1 and ms < SAMPLE_MS:
                calls = int(min(SAMPLE_MS / max(ms, 1e-3), 1000)) + 1
                continue
            times.append(ms / calls)
    return {"ms": statistics.median(times), "least_ms": min(times), **clock.found}


def peers_of_attention(step):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention
    q, k, v = (torch.randn((step["batch"], step["heads"], step["length"], step["size"]), device="cuda", dtype=torch.bfloat16) for _ in range(3))
    if step["mask"] == "window":
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i - j < 1024), None, None, step["length"], step["length"], device="cuda")
        compiled = torch.compile(flex_attention)
        yield "flex_attention", lambda: compiled(q, k, v, scale=0.2, block_mask=mask)
        return
    for name in ("CUDNN_ATTENTION", "FLASH_ATTENTION"):
        def attend(backend=getattr(SDPBackend, name)):
            with sdpa_kernel(backend):
                scaled_dot_product_attention(q, k, v, is_causal=step["mask"] == "causal", scale=0.2)
        yield name.split("_")[0].lower(), attend


def peers_of_decode(step):
    from torch.nn.functional import scaled_dot_product_attention
    q = torch.randn((1, 32, 1, 128), device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn((1, 8, step["keys"], 128), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    yield "sdpa", lambda: scaled_dot_product_attention(q, k, v, scale=0.2, enable_gqa=True)


def peers_of_projection(step):
    m, n, k = step["shape"]
    x, w = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (n, k)))
    yield "cublas", lambda: torch.nn.functional.linear(x, w)


PEERS = {"attention": peers_of_attention, "decode": peers_of_decode, "projection": peers_of_projection}


def run_row(step, seconds):
    found = {"attn": measure(step, seconds)}
    if HAS_TORCH:
        try:
            for name, function in PEERS[step["kind"]](step):
                try:
                    found[name] = measure_torch(function, seconds)
                except Exception as reason:  # PyTorch may raise any exception
                    found[name] = {"error": str(reason).splitlines()[0][:300] if str(reason) else type(reason).__name__}
        except Exception as reason:
            found["peers"] = {"error": str(reason).splitlines()[0][:300] if str(reason) else type(reason).__name__}
    return found


def at_once(function, items):
    """Calls the function for all items, several at a time. The driver compiles a kernel at its first call."""
    with concurrent.futures.ThreadPoolExecutor(min(os.cpu_count() or 1, 12)) as pool:
        return list(pool.map(function, items))


def run_variants(step, seconds):
    """Each round measures all variants, one after the other, so that a drift of the clock concerns all. Variants that
    compute the attention must first have the results of the base on a small shape."""
    found = {name: [] for name in step["libraries"]}
    small = {"dims": {"q.0": 1, "q.1": 1, "q.2": 66, "k.2": 260}}
    with tempfile.TemporaryDirectory() as outputs:
        done = call(small, "--device=cuda", f"--output-dir={outputs}", library=step["libraries"]["base"], timeout=20)
        if done.returncode:
            return {"base": [{"error": f"WRONG: {done.stderr.strip()[-300:]}"}]}

        def check(name):
            expected = [f"--expect={outputs}/0.npy", "--tolerance=2e-2"] if name in step["right"] else []
            done = call(small, "--device=cuda", *expected, library=step["libraries"][name], timeout=20)
            if done.returncode and expected:
                found[name].append({"error": f"WRONG results: {(done.stdout + done.stderr).strip()[-200:]}"})
        at_once(check, step["libraries"])
    for _ in range(step["rounds"]):
        for name, library in step["libraries"].items():
            if not found[name] or "ms" in found[name][-1]:
                found[name].append(measure(step, seconds, library))
    return found


def run_profile(step, seconds):
    profiler = shutil.which("ncu")
    if not profiler:
        return {"result": "Nsight Compute is not installed"}
    report = FOLDER / f"profile-{step['name']}"
    done = call(step, "--device=cuda", wrapper=(profiler, "--set=full", "--import-source=no", "--clock-control=none", "--launch-count=1", "-f", f"--export={report}"))
    for page in ("details", "source"):
        with open(f"{report}-{page}.txt", "w") as text:
            subprocess.run(["timeout", "60", profiler, f"--import={report}.ncu-rep", f"--page={page}", "--csv"], stdout=text, stderr=subprocess.STDOUT)
    return {"result": "profiled"} if done.returncode == 0 else {"error": (done.stdout[-200:] + done.stderr[-200:]).strip()}


def explain(done):
    """The result of a test."""
    if "expected a GPU that runs one of" in done.stderr:
        return {"result": "for another GPU"}
    if done.stderr.startswith("no end after") and time.monotonic() > UNTIL:
        return {"result": "not run, because the time is over"}
    return {"result": "right"} if done.returncode == 0 else {"result": "WRONG", "error": (done.stdout[-200:] + done.stderr[-200:]).strip()}


def run_tests(step, seconds):
    def test(case):
        with tempfile.TemporaryDirectory() as outputs:
            done = call(case, f"--output-dir={outputs}", timeout=20)
            if done.returncode == 0:
                expected = [f"--expect={path}" for path in sorted(pathlib.Path(outputs).glob("*.npy"))]
                done = call(case, "--device=cuda", f"--tolerance={case['tolerance']}", *expected, timeout=20)
        return explain(done)
    return dict(zip((case["name"] for case in step["cases"]), at_once(test, step["cases"])))


def run_memcheck(step, seconds):
    sanitizer = shutil.which("compute-sanitizer")
    if not sanitizer:
        return {}
    check = lambda case: explain(call(case, "--device=cuda", wrapper=(sanitizer, "--tool=memcheck", "--error-exitcode=1")))
    return dict(zip((case["name"] for case in step["cases"]), at_once(check, step["cases"])))


def run_cpu(step, seconds):
    if step["workers"] > (os.cpu_count() or 1):
        return {"result": f"this machine has {os.cpu_count()} cores"}
    done = call(step, f"--threads={step['workers']}", f"--benchmark={seconds}", "--json")
    if done.returncode:
        return {"error": done.stderr.strip()[-300:]}
    return {key: value for key, value in json.loads(done.stdout).items() if key in ("median_ms", "min_ms", "level", "peak_gflops")}


RUN = {"variants": run_variants, "profile": run_profile, "test": run_tests, "memcheck": run_memcheck, "cpu": run_cpu, **dict.fromkeys(PEERS, run_row)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--sample", type=float, default=0.15, help="the seconds for which each time is measured")
    parser.add_argument("--only", choices=sorted(RUN))
    options = parser.parse_args()
    steps = [step for step in json.loads((FOLDER / "plan.json").read_text()) if options.only in (None, step["kind"])]
    global UNTIL
    start = time.monotonic()
    UNTIL = start + options.seconds
    results = {"date": datetime.date.today().isoformat(), "machine": machine(), "steps": [], "left": len(steps)}
    for step in steps:
        if results["steps"] and time.monotonic() > UNTIL:
            print(f"{options.seconds:.0f} s are over; {results['left']} steps are left")
            break
        began = time.monotonic()
        found = RUN[step["kind"]](step, options.sample)
        results["left"] -= 1
        results["steps"].append({**step, "found": found, "seconds": round(time.monotonic() - began, 2)})
        partial = FOLDER / "results.json.part"
        partial.write_text(json.dumps(results, indent=1))
        partial.replace(FOLDER / "results.json")
        print(f"{step['kind']} {step['name']}: {results['steps'][-1]['seconds']} s", flush=True)
    wrong = [step["name"] for step in results["steps"] if "WRONG" in json.dumps(step["found"])]
    print(f"{len(results['steps'])} steps, {len(wrong)} wrong results {' '.join(wrong)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
