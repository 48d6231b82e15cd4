"""Runs the Python blocks of a page in order, in the current folder, and compares what they print with the page.

    blocks.py PAGE [HEADING]

A block of Python may be followed by a block of text, its output. The comparison ignores line breaks, the values of
numbers with a decimal point or an exponent, and the ISA level in a table of times. A block whose first line is a
comment with a file name is written to this file. With a heading, only the blocks below the heading run.
"""

import contextlib
import io
import pathlib
import re
import sys
import traceback


def plain(text):
    text = re.sub(r"-?\d+(\.\d+)?e[+-]?\d+|-?\d+\.\d+", "#", text)
    text = re.sub(r"(?m)^(median of calls, .*, level ).*", r"\1#", text)
    return text.split()


page, heading = pathlib.Path(sys.argv[1]).read_text(), " ".join(sys.argv[2:])
start = page.index(f"\n## {heading}\n") if heading else 0
blocks = list(re.finditer(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", page[start:], re.M | re.S))
if not blocks:
    sys.exit(f"{sys.argv[1]}: expected blocks of Python, got none")
sys.path.insert(0, "")
names, failures = {"__name__": "__main__"}, 0
for block in blocks:
    code, expected = block[1], block[2] or ""
    line = page[: start + block.start()].count("\n") + 2
    if file := re.match(r"# (\w+\.py)\n", code):
        pathlib.Path(file[1]).write_text(code)
        continue
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            exec(compile("\n" * (line - 1) + code, sys.argv[1], "exec"), names)
    except Exception:
        traceback.print_exc()
        failures += 1
    if plain(output.getvalue()) != plain(expected):
        print(f"{sys.argv[1]}:{line}: expected\n{expected}got\n{output.getvalue()}")
        failures += 1
print(f"{len(blocks)} blocks, {failures} failures")
sys.exit(failures > 0)
