"""sweep.py [--seed N] [--count N] [--threads N] [--only KIND] [--out FILE.json]: looks for shapes at which attn is slow.

Draws shapes of attentions and layers, compiles each for this machine, and times it beside PyTorch's eager mode, in turns.
Two numbers describe a shape: attn's time relative to PyTorch's, and relative to attn's own time for the next larger
shape, whose lengths are multiples of 32. The second number finds shapes whose tail is slow. The script lists
all shapes with a number above its limit, 1.3 and 1.5, after a second measurement, and exits with 1 if there are any.

It also lists the attentions whose time is largest relative to the time that the compiler predicted: 60 of them, with
this ratio relative to the median of all attentions. Such a shape may have got a plan that is not the best one.
sweep_picture.py draws the results. The script needs the environment of benchmark/peers/setup, or any other with PyTorch, and attn's Python package on PYTHONPATH.
"""
import argparse
import json
import random
import statistics
import sys
import time

import attn
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from lengths import find_cpu

LIMIT_OF_EAGER, LIMIT_OF_LARGER = 1.3, 1.5
ROUNDS, SECONDS = 5, 0.02  # a ratio is the median of the rounds; a round repeats each call for this time
MOST_GFLOP = 4
WORST_PREDICTED = 60


class Attention(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def forward(self, q, k, v, mask=None):
        return scaled_dot_product_attention(q, k, v, mask, is_causal=self.causal)


class SelfAttention(nn.Module):
    """Projections and attention as people write them by hand."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.heads, self.causal = heads, causal

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (layer(x).view(batch, length, self.heads, -1).transpose(1, 2) for layer in (self.query, self.key, self.value))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width))


def larger(length):
    return length + 32 - length % 32


def draw_length(draw):
    return draw.choice((draw.randint(1, 64), draw.randint(65, 300), draw.choice((128, 197, 256, 384, 512, 577, 1024))))


def attention(draw):
    batch, heads, size = draw.choice((1, 1, 2, 4)), draw.choice((1, 2, 4, 8, 12)), draw.choice((16, 32, 40, 64, 80, 96, 128))
    queries, mask = draw_length(draw), draw.choice(("none", "causal", "boolean"))
    keys = queries if mask == "causal" else draw_length(draw)

    def make(queries, keys):
        tensors = [torch.randn(batch, heads, length, size) for length in (queries, keys, keys)]
        if mask == "boolean":
            tensors.append(torch.ones(queries, keys, dtype=torch.bool).tril(keys - 1))
        return Attention(mask == "causal"), tuple(tensors)

    return (f"{batch} x {heads} heads of {size}, {queries} queries, {keys} keys, mask {mask}",
            4 * batch * heads * queries * keys * size, lambda: make(queries, keys), lambda: make(larger(queries), larger(keys)))


def draw_layer(draw):
    heads, size = draw.choice((1, 2, 4, 8, 12)), draw.choice((16, 32, 40, 64, 96))
    return draw.choice((1, 2, 4)), draw_length(draw), heads, heads * size


def self_attention(draw):
    batch, length, heads, width = draw_layer(draw)
    causal = draw.random() < 0.5
    make = lambda length: (SelfAttention(width, heads, causal), (torch.randn(batch, length, width),))
    return (f"{batch} x {length} tokens, {heads} heads, width {width}{', causal' if causal else ''}",
            batch * (8 * length * width**2 + 4 * length**2 * width), lambda: make(length), lambda: make(larger(length)))


def encoder(draw):
    batch, length, heads, width = draw_layer(draw)
    first, activation = draw.random() < 0.5, draw.choice(("relu", "gelu"))
    make = lambda length: (nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True, norm_first=first, activation=activation),
                           (torch.randn(batch, length, width),))
    return (f"{batch} x {length} tokens, {heads} heads, width {width}, {activation}{', norm first' if first else ''}",
            batch * (24 * length * width**2 + 4 * length**2 * width), lambda: make(length), lambda: make(larger(length)))


def mlp(draw):
    rows, width, inner = draw_length(draw), draw.choice((48, 64, 100, 192, 384, 512, 768)), draw.choice((64, 256, 1000, 1536, 3072))
    make = lambda rows: (nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width)), (torch.randn(rows, width),))
    return f"{rows} rows, width {width}, inner width {inner}", 4 * rows * width * inner, lambda: make(rows), lambda: make(larger(rows))


KINDS = {function.__name__: function for function in (attention, self_attention, encoder, mlp)}


def compile(made, threads):
    torch.manual_seed(0)
    module, inputs = made()
    module.eval()
    kernel = attn.compile(module, inputs, num_threads=threads)
    return module, inputs, kernel


def time_of(call):
    call()
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def compare(call, other):
    """The time of `call` relative to that of `other`: the median of rounds, each of which times both."""
    return statistics.median(time_of(call) / time_of(other) for _ in range(ROUNDS))


def measure(made, made_larger, threads):
    module, inputs, kernel = compile(made, threads)
    _, more, kernel_larger = compile(made_larger, threads)
    call, call_larger = lambda: kernel(*inputs), lambda: kernel_larger(*more)
    expected, result = module(*inputs), torch.as_tensor(call())
    error = float((result - expected).abs().max() / expected.abs().max())
    if not error < 1e-4:
        raise SystemExit(f"sweep.py: expected an error of at most 1e-4, got {error:.1e}")
    found = {}
    for name, other, limit in (("eager", lambda: module(*inputs), LIMIT_OF_EAGER), ("larger", call_larger, LIMIT_OF_LARGER)):
        found[name] = compare(call, other)
        if found[name] > limit:
            found[name] = min(found[name], compare(call, other))
    # The first prediction of an attention is that of its plan. Products outside attention are not predicted.
    mcycles = sum(attention["predictions"][0]["mcycles"] for attention in kernel.report.attentions)
    return {**found, "ms": 1e3 * time_of(call), "mcycles": mcycles}


def print_predicted(rows):
    rows = [row for row in rows if row["kind"] == "attention" and row["mcycles"] > 0]
    if not rows:
        return
    typical = statistics.median(row["ms"] / row["mcycles"] for row in rows)
    ratio = lambda row: row["ms"] / row["mcycles"] / typical
    print("measured over predicted time, relative to the median:")
    for row in sorted(rows, key=ratio, reverse=True)[:WORST_PREDICTED]:
        print(f"  {ratio(row):.2f}  {row['shape']}: {row['ms']:.3f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--out", default="sweep.json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    draw, rows = random.Random(options.seed), []
    while len(rows) < options.count:
        kind = options.only or draw.choice(list(KINDS))
        text, flop, made, made_larger = KINDS[kind](draw)
        if flop > MOST_GFLOP * 1e9:
            continue
        rows.append({"kind": kind, "shape": text, "gflop": flop / 1e9, **measure(made, made_larger, options.threads)})
        with open(options.out, "w") as file:
            json.dump({"cpu": find_cpu(), "date": time.strftime("%Y-%m-%d"), "threads": options.threads, "seed": options.seed,
                       "rows": rows}, file, indent=0)
    slow = [row for row in rows if row["eager"] > LIMIT_OF_EAGER or row["larger"] > LIMIT_OF_LARGER]
    for row in sorted(slow, key=lambda row: -max(row["eager"] / LIMIT_OF_EAGER, row["larger"] / LIMIT_OF_LARGER)):
        print(f"{row['kind']}, {row['shape']}: {row['ms']:.3f} ms, {row['eager']:.2f} of eager, {row['larger']:.2f} of the next larger")
    print_predicted(rows)
    for kind in sorted({row["kind"] for row in rows}):
        ratios = [row["eager"] for row in rows if row["kind"] == kind]
        print(f"{kind}: {len(ratios)} shapes, geometric mean {statistics.geometric_mean(ratios):.2f} of eager, worst {max(ratios):.2f}")
    print(f"{len(rows)} shapes, {len(slow)} above a limit")
    return bool(slow)


if __name__ == "__main__":
    sys.exit(main())
