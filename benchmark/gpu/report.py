"""report.py RESULTS.json [--readme README.md]: prints the tables of a run of run.py, and what the variants say about the
main loop. With --readme, it prints nothing and writes the part of README.md between the two comments in MARKERS.

Two explanations of the time of a step fit the measurements so far: exponentials take time of their own beside the
products, so fewer of them help; or a step waits for the copies of keys and values, so more stages help. The variants
decide: a kernel without copies is faster only if it waits for them, and one without exponentials, or with some of them
computed by multiply-adds, only if these take time of their own.
"""
import argparse
import json
import pathlib
import statistics

# A variant counts as faster if its speed relative to the base exceeds one of these numbers plus the spread of the base.
# GAIN is for variants that change a part of the softmax. Without exponentials, the step would be a quarter faster if
# nothing overlapped with them.
GAIN, NO_COPY_GAIN, NO_EXP_GAIN = 1.08, 1.10, 1.25


MARKERS = ("<!-- GPU tables, written by benchmark/gpu/report.py -->", "<!-- end of GPU tables -->")


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


def make_tables(results, kinds):
    """The tables of benchmark/README.md."""
    machine, peaks = results["machine"], [step["found"]["attn"]["peak_gflops"] / 1e3 for step in kinds["attention"]]
    clocks = [step["found"]["attn"]["mhz"] for step in kinds["attention"]]
    right = {kind: sum(found["result"] == "right" for found in kinds[kind][0]["found"].values()) for kind in ("test", "memcheck")}
    lines = [f"{machine['card']}, {results['date']}, driver {machine['driver']}, {min(clocks):.0f} to {max(clocks):.0f} MHz, PyTorch {machine['torch']}, "
             f"cuDNN {machine['cudnn']}: {right['test']} of {len(kinds['test'][0]['found'])} tests are right, and {right['memcheck']} of "
             f"{len(kinds['memcheck'][0]['found'])} under memcheck. Numbers are TFLOP/s; `of peak` is attn's share of the measured peak of wgmma, "
             f"{min(peaks):.0f} to {max(peaks):.0f} TFLOP/s."]

    def table(heads, rows):
        return ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(f"| {' | '.join(row)} |" for row in rows)]

    def row(step, peers):
        found = step["found"]
        own = rate(step, found["attn"]["ms"])
        return [str(step["size"]), "none" if step["mask"] == "full" else step["mask"], str(step["length"]), f"{own:.0f}",
                f"{1e5 * own / found['attn']['peak_gflops']:.0f} %", *(f"{rate(step, found[peer]['ms']):.0f}" for peer in peers)]

    heads, masks = ["head size", "mask", "keys", "attn", "of peak"], ("full", "causal")
    rows = [step for size in (64, 128) for mask in masks for step in kinds["attention"] if (step["size"], step["mask"]) == (size, mask)]
    lines += table([*heads, "cuDNN", "PyTorch's flash kernel"], [row(step, ("cudnn", "flash")) for step in rows])
    lines += table([*heads, "flex_attention"], [row(step, ("flex_attention",)) for step in kinds["attention"] if step["mask"] == "window"])
    lines += table(["decoding, 1 query", "attn, TB/s", "PyTorch's attention, TB/s"], [
        [step["name"], *(f"{step['megabytes'] / step['found'][who]['ms'] / 1e3:.2f}" for who in ("attn", "sdpa"))] for step in kinds["decode"]])
    lines += table(["rows x columns x depth", "attn", "cuBLAS"], [
        [step["name"], *(f"{rate(step, step['found'][who]['ms']):.0f}" for who in ("attn", "cublas"))] for step in kinds["projection"]])
    return "\n".join(lines)


def write_readme(results, kinds, readme):
    before, begin, rest = readme.read_text().partition(MARKERS[0])
    _, end, after = rest.partition(MARKERS[1])
    if not begin or not end:
        raise SystemExit(f"report.py: expected the comments '{MARKERS[0]}' and '{MARKERS[1]}' in {readme}")
    readme.write_text(f"{before}{begin}\n\n{make_tables(results, kinds)}\n\n{end}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--readme", type=pathlib.Path)
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    kinds = {}
    for step in results["steps"]:
        kinds.setdefault(step["kind"], []).append(step)
    if options.readme:
        return write_readme(results, kinds, options.readme)
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
