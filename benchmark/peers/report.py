"""Writes the table and the plot of the results of run.py:

    report.py results.json [--table FILE.md] [--plot FILE.svg] [--readme README.md]

writes the files that the options name: the table, the plot, and the part of README.md between the two comments in
MARKERS, which has the times only. Without options it writes table.md and speed.svg beside results.json. Needs no package.
"""

import argparse
import html
import json
import math
import pathlib

MARKERS = ("<!-- speed table, written by benchmark/peers/report.py -->", "<!-- end of speed table -->")
TITLES = {"attn": "attn", "pytorch": "PyTorch", "torch.compile": "torch.compile", "flex_attention": "flex_attention",
          "onnxruntime": "ONNX Runtime", "onnxruntime-ops": "ONNX Runtime, own ops", "openvino": "OpenVINO",
          "openblas": "unfused, OpenBLAS"}
COLORS = {"pytorch": "#d55e00", "torch.compile": "#e69f00", "flex_attention": "#cc79a7", "onnxruntime": "#0072b2",
          "onnxruntime-ops": "#56b4e9", "openvino": "#009e73", "openblas": "#767676"}


def find_peers(results):
    """The peers that have a result in some row, in the order of TITLES."""
    found = {result["runtime"] for row in results["rows"] for result in row["results"]}
    return [peer for peer in TITLES if peer in found and peer != "attn"]


def describe(results):
    level = next((result["level"] for row in results["rows"] for result in row["results"] if "level" in result), "")
    names = {"torch": "PyTorch", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "numpy": "NumPy"}
    versions = ", ".join(f"{name} {results['versions'][package]}" for package, name in names.items())
    return f"{', '.join(filter(None, (results['cpu'], level, results['date'])))}; {versions}"


def format_number(number):
    digits = 3 if number < 0.1 else 2 if number < 10 else 1 if number < 100 else 0
    return f"{number:.{digits}f}"


def name_threads(threads):
    return "1 thread" if threads == 1 else f"{threads} threads"


def make_speed_tables(results):
    """The lines of the tables of times, one for each number of threads, and a line for each failure."""
    peers = find_peers(results)
    lines = ["The column attn has milliseconds. The other columns have the time relative to attn's: "
             f"above 1, attn is faster. {describe(results)}."]
    failures = []
    for threads in sorted({row["threads"] for row in results["rows"]}):
        head = [f"{name_threads(threads)}, float32", "attn, ms", *map(TITLES.get, peers)]
        lines += ["", f"| {' | '.join(head)} |", "|---|" + "--:|" * (len(peers) + 1)]
        for row in results["rows"]:
            if row["threads"] != threads:
                continue
            by_name = {result["runtime"]: result for result in row["results"]}
            cells = []
            for name in ("attn", *peers):
                result = by_name.get(name)
                if result and "failed" in result:
                    failures.append(f"* {TITLES[name]}, {row['title']}, {name_threads(threads)}: {result['failed']}")
                cells.append("" if not result else "failed" if "failed" in result
                             else format_number(result["ms" if name == "attn" else "ratio"]))
            lines.append(f"| {row['title']} | " + " | ".join(cells) + " |")
    return lines, failures


def make_table(results):
    lines, failures = make_speed_tables(results)
    lines += make_start_table(results, find_peers(results))
    if failures:
        lines += ["", "Failed:", "", *failures]
    return "\n".join(lines) + "\n"


def make_start_table(results, peers):
    """The lines of the table of whole models that says how long the first result takes; none without such models."""
    models = [row for row in results["rows"] if row["row"].startswith("model/") and row["threads"] == 1]
    if not models:
        return []
    lines = ["", "Seconds until the first result, with exports and compilation, and the most memory that attnc took:", "",
             f"| | {' | '.join(map(TITLES.get, ('attn', *peers)))} | attnc, MB |", "|---|" + "--:|" * (len(peers) + 2)]
    for row in models:
        by_name = {result["runtime"]: result for result in row["results"]}
        seconds = [by_name.get(name, {}).get("first_result_s") for name in ("attn", *peers)]
        cells = ["" if time is None else format_number(time) for time in seconds]
        memory = by_name["attn"].get("compile_mb")
        lines.append(f"| {row['title']} | {' | '.join(cells)} | {f'{memory:.0f}' if memory else ''} |")
    return lines


END = 5  # the axis of the plot ends at 2**END or before
STYLE = """  text { font-family: sans-serif; font-size: 13px; fill: #1a1a1a }
  .number { text-anchor: middle; font-size: 11px } .title { font-weight: bold; text-anchor: middle }
  .grid { stroke: #dddddd } .attn { stroke: #1a1a1a; stroke-width: 1.5 }"""


def make_plot(results):
    """A panel for each number of threads, with a dot at the ratio of each peer in each row. The axis is logarithmic."""
    peers = find_peers(results)
    panels = sorted({row["threads"] for row in results["rows"]})
    titles = list(dict.fromkeys(row["title"] for row in results["rows"]))
    ratios = [result["ratio"] for row in results["rows"] for result in row["results"] if "ratio" in result]
    low, high = math.floor(math.log2(min([1, *ratios]))), min(math.ceil(math.log2(max([2, *ratios]))), END)
    left, top, pitch, panel = 44 + 7 * max(map(len, titles), default=0), 66, 26, 260
    caption = describe(results) + "."
    width, bottom = max(left + (panel + 30) * len(panels), 32 + 7 * len(caption)), top + pitch * len(titles)
    height = bottom + 58

    def place(threads, ratio):
        return left + (panel + 30) * panels.index(threads) + panel * (min(math.log2(ratio), high) - low) / (high - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
           f"<style>\n{STYLE}\n</style>", '<rect width="100%" height="100%" fill="#ffffff"/>']
    x = 16
    for peer in peers:
        out.append(f'<circle cx="{x}" cy="18" r="5" fill="{COLORS[peer]}"/>')
        out.append(f'<text x="{x + 9}" y="22">{TITLES[peer]}</text>')
        x += 30 + 7 * len(TITLES[peer])
    for i, title in enumerate(titles):
        out.append(f'<text x="16" y="{top + pitch * (i + 0.5) + 5:g}">{html.escape(title)}</text>')
    for threads in panels:
        middle = (place(threads, 2**low) + place(threads, 2**high)) / 2
        out.append(f'<text class="title" x="{middle:g}" y="48">{name_threads(threads)}</text>')
        for power in range(low, high + 1):
            x = f"{place(threads, 2**power):.1f}"
            out.append(f'<path class="{"grid" if power else "attn"}" d="M{x} {top}V{bottom}"/>')
            out.append(f'<text class="number" x="{x}" y="{top - 5}">{2**power:g}</text>')
        for row in results["rows"]:
            y = top + pitch * (titles.index(row["title"]) + 0.5)
            for result in row["results"]:
                if row["threads"] == threads and "ratio" in result:
                    x, color = place(threads, result["ratio"]), COLORS[result["runtime"]]
                    out.append(f'<circle cx="{x:.1f}" cy="{y:g}" r="5" fill-opacity="0.85" fill="{color}"/>')
    beyond = f"; dots at {2**END} stand for {2**END} or more" if max(ratios, default=0) > 2**END else ""
    out.append(f'<text x="16" y="{bottom + 24}">'
               f"Time relative to attn's: right of the black line, attn is faster{beyond}.</text>")
    out.append(f'<text x="16" y="{bottom + 44}">{html.escape(caption)}</text>')
    return "\n".join([*out, "</svg>", ""])


def write(results, table, plot):
    table.write_text(make_table(results))
    plot.write_text(make_plot(results))


def write_readme(results, readme):
    text = readme.read_text()
    before, begin, rest = text.partition(MARKERS[0])
    _, end, after = rest.partition(MARKERS[1])
    if not begin or not end:
        raise SystemExit(f"report.py: expected the comments '{MARKERS[0]}' and '{MARKERS[1]}' in {readme}")
    tables = "\n".join(make_speed_tables(results)[0])
    readme.write_text(f"{before}{begin}\n\n{tables}\n\n{end}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    for option in ("--table", "--plot", "--readme"):
        parser.add_argument(option, type=pathlib.Path)
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    if not (options.table or options.plot or options.readme):
        write(results, options.results.with_name("table.md"), options.results.with_name("speed.svg"))
    if options.table:
        options.table.write_text(make_table(results))
    if options.plot:
        options.plot.write_text(make_plot(results))
    if options.readme:
        write_readme(results, options.readme)


if __name__ == "__main__":
    main()
