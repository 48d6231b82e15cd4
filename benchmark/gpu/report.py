"""report.py RESULTS.json: prints the tables of a run of run.py, and what the variants say about the main loop.

Two explanations of the time of a step fit the measurements so far: exponentials take time of their own beside the
products, so fewer of them help; or a step waits for the copies of keys and values, so more stages help. The variants
decide: a kernel without copies is faster only if it waits for them, and one without exponentials, or with some of them
computed by multiply-adds, only if these take time of their own.
"""
import json
import pathlib
import statistics
import sys

# A variant counts as faster if its speed relative to the base exceeds one of these numbers plus the spread of the base.
# GAIN is for variants that change a part of the softmax. Without exponentials, the step would be a quarter faster if
# nothing overlapped with them.
GAIN, NO_COPY_GAIN, NO_EXP_GAIN = 1.08, 1.10, 1.25


def rate(step, ms):
    return step["gflop"] / ms


def print_rows(steps):
    for step in steps:
        own = step["found"]["attn"]
        if "error" in own:
            print(f"| {step['name']} | {own['error']} |")
            continue
        cells = [f"{own['ms']:.4f} ms", f"{rate(step, own['ms']):.1f} TFLOP/s", f"{100 * step['gflop'] * 1e3 / own['ms'] / own['peak_gflops']:.1f} % of the peak"]
        if "megabytes" in step:
            cells[1:] = [f"{step['megabytes'] / own['ms'] / 1e3:.2f} TB/s"]
        if "mhz" in own:
            cells.append(f"{own['mhz']:.0f} MHz, {own['watts']:.0f} W")
        for peer, found in step["found"].items():
            if peer != "attn":
                cells.append(f"{peer}: {found['error']}" if "error" in found else f"{peer} {found['ms']:.4f} ms, attn at {found['ms'] / own['ms']:.2f} of its speed")
        print(f"| {step['name']} | {' | '.join(cells)} |")


def gains(step):
    """The speed of each variant relative to the base, and the spread of the base."""
    times = {name: [record["ms"] for record in records if "ms" in record] for name, records in step["found"].items()}
    base = times.get("base")
    if not base:
        return {}, 0
    return {name: statistics.median(base) / statistics.median(found) for name, found in times.items() if found}, max(base) / min(base) - 1


def explain(steps):
    for step in steps:
        found, spread = gains(step)
        if not found:
            print(f"{step['name']}: the base was not measured: {step['found'].get('base', [{}])[0].get('error', '')}")
            continue
        print(f"{step['name']}: " + ", ".join(f"{name} {gain:.3f}" for name, gain in found.items()) + f"; spread of the base {100 * spread:.1f} %")
        for name, records in step["found"].items():
            if records and "error" in records[0]:
                print(f"  {name}: {records[0]['error']}")
        if missing := {"no-copy", "no-exp", "poly3"} - found.keys():
            print(f"  no verdict, because these were not measured: {', '.join(sorted(missing))}")
            continue
        waits = found["no-copy"] > NO_COPY_GAIN + spread
        computes = found["no-exp"] > NO_EXP_GAIN + spread and found["poly3"] > GAIN + spread
        print({(True, False): "  the step waits for copies: more stages or a shorter softmax help",
               (False, True): "  exponentials take time of their own: compute a share of them by multiply-adds",
               (True, True): "  the step waits for copies, and exponentials take time of their own",
               (False, False): "  neither copies nor exponentials: look at the clock and the power, and at no-scores and no-values"}[waits, computes])
        if found.get("no-max", 1) > GAIN + spread:
            print("  the maxima take time of their own: the chain of a warpgroup bounds the step")


def main():
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    kinds = {}
    for step in results["steps"]:
        kinds.setdefault(step["kind"], []).append(step)
    print(", ".join(f"{name} {value}" for name, value in results["machine"].items()))
    for kind, title in (("attention", "Attention"), ("decode", "Decode"), ("projection", "Projections")):
        if kind in kinds:
            print(f"\n{title}\n")
            print_rows(kinds[kind])
    if "variants" in kinds:
        print("\nVariants, speed relative to the base\n")
        explain(kinds["variants"])
    if "cpu" in kinds:
        print("\nCPU\n")
        for step in kinds["cpu"]:
            print(f"| {step['name']} | " + " | ".join(f"{key} {value}" for key, value in step["found"].items()) + " |")
    for kind, title in (("test", "Tests"), ("memcheck", "Tests under memcheck")):
        for step in kinds.get(kind, ()):
            counts = {}
            for name, found in step["found"].items():
                counts.setdefault(found["result"], []).append(name)
            print(f"\n{title}: " + ", ".join(f"{len(names)} {result}" for result, names in counts.items()))
            for name in counts.get("WRONG", ()):
                print(f"WRONG: {name}: {step['found'][name]['error']}")
    seconds = {kind: sum(step["seconds"] for step in steps) for kind, steps in kinds.items()}
    print("\n" + ", ".join(f"{kind} {value / 60:.1f} min" for kind, value in seconds.items()) + f"; {results['left']} steps left")


main()
