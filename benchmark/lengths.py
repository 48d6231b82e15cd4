"""lengths.py RESULTS.json PLOT.svg: draws the share of the FMA peak that attention reaches at each length.

RESULTS.json is what attn-bench-attention wrote with --benchmark_out. The plot has a panel for attention without a mask
and a panel for causal attention. Each panel has a line for attn and a line for the unfused computation with OpenBLAS.
The script needs no package.
"""

import html
import json
import math
import pathlib
import re
import sys

ROW = re.compile(r"(plain|causal)_b\d+_h\d+_s(\d+)_d64/(attn|openblas)/")
PANELS = {"plain": "without a mask", "causal": "causal"}
LINES = {"attn": ("attn", "#1f6f4a"), "openblas": ("unfused, OpenBLAS", "#b5541c")}
WIDTH, HEIGHT, LEFT, TOP, GAP = 330, 220, 56, 66, 50
STYLE = """  text { font-family: sans-serif; font-size: 13px; fill: #1a1a1a }
  .number { font-size: 11px } .title { font-weight: bold; text-anchor: middle } .grid { stroke: #dddddd }
  polyline { fill: none; stroke-width: 2 }"""


def read(results):
    """The share of the peak by panel, line and length."""
    shares = {panel: {line: {} for line in LINES} for panel in PANELS}
    for row in results["benchmarks"]:
        match = ROW.match(row["name"])
        if match and not row.get("error_occurred"):
            shares[match[1]][match[3]][int(match[2])] = row["peak%"]
    return shares


def draw(shares, caption):
    lengths = sorted({length for lines in shares.values() for points in lines.values() for length in points})
    low, high = math.log2(lengths[0]), math.log2(lengths[-1])
    width, bottom = LEFT + (WIDTH + GAP) * len(PANELS), TOP + HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + 76}" viewBox="0 0 {width} {bottom + 76}">',
           f"<style>\n{STYLE}\n</style>", '<rect width="100%" height="100%" fill="#ffffff"/>']
    x = 16
    for name, color in LINES.values():
        out += [f'<path stroke="{color}" stroke-width="3" d="M{x} 18h18"/>', f'<text x="{x + 24}" y="22">{name}</text>']
        x += 50 + 7 * len(name)
    for number, (panel, title) in enumerate(PANELS.items()):
        left = LEFT + (WIDTH + GAP) * number
        place = lambda length, share: (left + WIDTH * (math.log2(length) - low) / (high - low), bottom - HEIGHT * share / 100)
        out.append(f'<text class="title" x="{left + WIDTH / 2:g}" y="48">{title}</text>')
        for share in range(0, 101, 20):
            y = place(lengths[0], share)[1]
            out += [f'<path class="grid" d="M{left} {y:g}h{WIDTH}"/>',
                    f'<text class="number" text-anchor="end" x="{left - 6}" y="{y + 4:g}">{share} %</text>']
        for power in range(math.ceil(low), math.floor(high) + 1, 2):
            x = place(2**power, 0)[0]
            out.append(f'<text class="number" text-anchor="middle" x="{x:.1f}" y="{bottom + 16}">{2**power}</text>')
        for line, (_, color) in LINES.items():
            points = [place(length, share) for length, share in sorted(shares[panel][line].items())]
            out.append(f'<polyline stroke="{color}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
    out += [f'<text x="16" y="{bottom + 40}">Share of the FMA peak of one core, against the number of tokens; heads of 64.</text>',
            f'<text x="16" y="{bottom + 60}">{html.escape(caption)}</text>']
    return "\n".join([*out, "</svg>", ""])


def find_cpu():
    names = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    family = re.findall(r"cpu family\s*: (\d+)\nmodel\s*: (\d+)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{names[0]}, family {family[0][0]}, model {family[0][1]}" if names and family else "CPU of this machine"


def main(source, plot):
    results = json.loads(pathlib.Path(source).read_text())
    pathlib.Path(plot).write_text(draw(read(results), f"{find_cpu()}, {results['context']['date'][:10]}."))


if __name__ == "__main__":
    main(*sys.argv[1:])
