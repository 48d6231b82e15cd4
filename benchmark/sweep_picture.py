"""sweep_picture.py RESULTS.json PICTURE.svg: draws the shapes that sweep.py measured.

Each dot is a shape: to the right, the shape has more work; lower, attn is faster beside PyTorch's eager mode. The script
needs no package.
"""
import html
import json
import math
import pathlib
import statistics
import sys

KINDS = {"attention": ("attention", "#1f6f4a"), "self_attention": ("hand-written layer", "#b5541c"),
         "encoder": ("encoder layer", "#2c5fa8"), "mlp": ("MLP", "#8a8a8a")}
WIDTH, HEIGHT, LEFT, TOP = 620, 260, 56, 40
STYLE = """  text { font-family: sans-serif; font-size: 13px; fill: #1a1a1a }
  .number { font-size: 11px } .grid { stroke: #dddddd } .even { stroke: #1a1a1a }"""


def draw(results):
    rows = results["rows"]
    low, high = (bound(math.log10(row["gflop"] * 1e9) for row in rows) for bound in (min, max))
    low, high = math.floor(low), math.ceil(high)
    least = math.floor(math.log2(min(row["eager"] for row in rows)))
    most = max(1, math.ceil(math.log2(max(row["eager"] for row in rows))))
    bottom = TOP + HEIGHT
    place = lambda flop, ratio: (LEFT + WIDTH * (math.log10(flop) - low) / (high - low),
                                 bottom - HEIGHT * (math.log2(ratio) - least) / (most - least))
    width, height = LEFT + WIDTH + 30, bottom + 80
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
           f"<style>\n{STYLE}\n</style>", '<rect width="100%" height="100%" fill="#ffffff"/>']
    x = 16
    for name, color in KINDS.values():
        out += [f'<circle cx="{x}" cy="18" r="4" fill="{color}"/>', f'<text x="{x + 9}" y="22">{name}</text>']
        x += 34 + 7 * len(name)
    for power in range(least, most + 1):
        y = place(10**low, 2**power)[1]
        out += [f'<path class="{"grid" if power else "even"}" d="M{LEFT} {y:.1f}h{WIDTH}"/>',
                f'<text class="number" text-anchor="end" x="{LEFT - 6}" y="{y + 4:.1f}">{2**power:g}</text>']
    for power in range(low, high + 1):
        unit, name = (9, "GFLOP") if power >= 9 else (6, "MFLOP") if power >= 6 else (3, "KFLOP")
        x = place(10**power, 1)[0]
        out.append(f'<text class="number" text-anchor="middle" x="{x:.1f}" y="{bottom + 16}">{10**(power - unit)} {name}</text>')
    for row in rows:
        x, y = place(row["gflop"] * 1e9, row["eager"])
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill-opacity="0.7" fill="{KINDS[row["kind"]][1]}"/>')
    mean = statistics.geometric_mean(row["eager"] for row in rows)
    threads = "1 thread" if results["threads"] == 1 else f"{results['threads']} threads"
    for line, text in enumerate((f"Time of attn relative to PyTorch's eager mode, {len(rows)} drawn shapes; geometric mean {mean:.2f}.",
                                 f"{results['cpu']}, {threads}, {results['date']}.")):
        out.append(f'<text x="16" y="{bottom + 44 + 20 * line}">{html.escape(text)}</text>')
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pathlib.Path(sys.argv[2]).write_text(draw(json.loads(pathlib.Path(sys.argv[1]).read_text())))
