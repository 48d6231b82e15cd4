"""run.py [--tests] [--benchmarks]: tests and measures attn's code on this machine's GPU.

The script runs in the folder that prepare.py made.

Tests compare the results of the GPU with those of the CPU. Benchmarks print TFLOP/s and the share of the measured peak
of wgmma or mma.sync. If PyTorch is installed, they also print the TFLOP/s of PyTorch's attention with cuDNN and with
its flash kernel.
"""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
CALL = FOLDER / "attn-call"


def call(library, dims, *options, wrapper=()):
    command = [*wrapper, CALL, FOLDER / "libraries" / library, *(f"--dim={name}={size}" for name, size in dims.items()), *options]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:  # A kernel that waits for a barrier forever does not end.
        return subprocess.CompletedProcess(command, 1, "", "no end after 60 s")


def run_test(test, sanitizer):
    with tempfile.TemporaryDirectory() as outputs:
        result = call(test["library"], test["dims"], f"--output-dir={outputs}")
        if result.returncode == 0:
            expected = [f"--expect={path}" for path in sorted(pathlib.Path(outputs).glob("*.npy"))]
            result = call(test["library"], test["dims"], "--device=cuda", f"--tolerance={test['tolerance']}", *expected)
        if result.returncode == 0 and sanitizer:
            result = call(test["library"], test["dims"], "--device=cuda",
                          wrapper=(sanitizer, "--tool=memcheck", "--error-exitcode=1"))
    return result


def run_tests(tests):
    sanitizer = shutil.which("compute-sanitizer")
    failures = others = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() // 2 or 1) as pool:
        results = list(pool.map(run_test, tests, [sanitizer] * len(tests)))
    for test, result in zip(tests, results):
        if "expected a GPU that runs one of" in result.stderr:
            others += 1
            continue
        failures += result.returncode != 0
        print(f"{test['library']:45}", "right" if result.returncode == 0 else f"WRONG: {result.stdout[-300:]} {result.stderr.strip()}", flush=True)
    print(f"{len(tests) - failures - others} right, {failures} wrong, {others} for other GPUs"
          + ("" if sanitizer else "; no compute-sanitizer here"))
    return failures


def flops(row):
    pairs = row["length"] ** 2 / (2 if row["causal"] else 1)
    return 4 * row["batch"] * row["heads"] * pairs * row["size"]


def torch_rates(row):
    """The TFLOP/s of PyTorch's attention with cuDNN and with its flash kernel; empty if PyTorch is not installed."""
    try:
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        return {}
    shape = (row["batch"], row["heads"], row["length"], row["size"])
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    rates = {}
    for name in ("CUDNN_ATTENTION", "FLASH_ATTENTION"):
        try:
            with sdpa_kernel(getattr(SDPBackend, name)):
                def attend():
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=row["causal"], scale=0.2)
                for _ in range(5):
                    attend()
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                times = []
                for _ in range(20):
                    start.record()
                    attend()
                    end.record()
                    end.synchronize()
                    times.append(start.elapsed_time(end))
                rates[name.split("_")[0].lower()] = flops(row) / sorted(times)[len(times) // 2] / 1e9
        except RuntimeError as error:
            print("#", name, str(error).splitlines()[0])
    return rates


def run_benchmarks(rows):
    for row in rows:
        dims = {"q.0": row["batch"], "q.1": row["heads"], "q.2": row["length"], "k.2": row["length"]}
        result = call(row["library"], dims, "--device=cuda", "--benchmark=0.5", "--json", f"--gflop={flops(row) / 1e9}")
        title = f"{row['batch']:3} x {row['heads']:3} x {row['length']:6} x {row['size']:4} {'causal' if row['causal'] else 'full':7}"
        if result.returncode:
            print(title, "FAILED:", result.stderr.strip(), flush=True)
            continue
        measured = json.loads(result.stdout)
        rate = flops(row) / measured["median_ms"] / 1e9
        share = 100 * rate * 1e3 / measured["peak_gflops"]
        others = "".join(f"  {name} {other:6.1f} (attn {rate / other:.2f} of it)" for name, other in torch_rates(row).items())
        print(f"{title} {measured['median_ms']:8.3f} ms {rate:6.1f} TFLOP/s {share:5.1f} % of the peak{others}", flush=True)


plan = json.loads((FOLDER / "plan.json").read_text())
chosen = sys.argv[1:] or ["--tests", "--benchmarks"]
failed = run_tests(plan["tests"]) if "--tests" in chosen else 0
if "--benchmarks" in chosen:
    run_benchmarks(plan["benchmarks"])
sys.exit(failed > 0)
