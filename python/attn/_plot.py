"""Pictures of masks."""

from __future__ import annotations

import html
import itertools
import os
import pathlib
import re
import tempfile
from collections.abc import Callable
from typing import Any

from attn import _compiler
from attn._kernel import error
from attn._masks import Mask, Trace, write
from attn._source import _to_numpy

MOST_PICTURES = 8
MOST_PAIRS = 1 << 26
SIDE, LEFT, TOP, BOTTOM = 560, 76, 104, 70  # the longer side and the margins in attn-run's pictures, in pixels


class Picture:
    """A drawing of masks: SVG in notebooks, characters when printed."""

    def __init__(self, svg: str, text: str) -> None:
        self.svg, self.text = svg, text

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the image to a file whose name ends in .svg."""
        if pathlib.Path(path).suffix != ".svg":
            raise error(f"save: expected a path that ends in .svg, got '{path}'", "FILE")
        pathlib.Path(path).write_text(self.svg)


class _Panel:
    """The tiles that attn computes for one batch and head, read from attn-run's picture, and the kept pairs."""

    def __init__(self, numpy, title, note, svg, keep):
        self.numpy, self.title, self.note, self.keep = numpy, title, note, keep
        self.skipped = int(re.search(r"(\d+) skipped tiles", svg)[1])
        key_tile = int(title.split()[-1])
        # A boolean tensor is packed into words of 32 keys, and a call tests these before it computes a tile.
        tests_words = "#attn.dense" in note and re.search("attention (per-head|phased)", title) and (
            key_tile % 32 == 0 or keep.shape[1] <= key_tile)
        queries, keys = keep.shape
        self.width, self.height = (max(28.0, SIDE * size / max(queries, keys, 1)) for size in (keys, queries))
        top = float(re.search(r'<rect class="skipped" x="\S+" y="(\S+)"', svg)[1])
        self.tiles = []  # (kind, first query, end of the queries, first key, end of the keys)
        for x, y, w, h in re.findall(r'<rect class="(?:full|partial)" x="(\d+\.\d\d)" y="(\d+\.\d\d)" width="(\S+)" height="(\S+)"/>', svg):
            x, y, w, h = float(x) - LEFT, float(y) - top, float(w), float(h)
            k0, k1 = (round(value * keys / self.width) for value in (x, x + w))
            q0, q1 = (round(value * queries / self.height) for value in (y, y + h))
            tile, is_whole = keep[q0:q1, k0:k1], k1 == min(k0 + key_tile, keys)
            kind = "full" if is_whole and tile.all() else "partial" if tile.any() else "empty"
            if kind == "empty" and tests_words:
                self.skipped += 1
            else:
                self.tiles.append((kind, q0, q1, k0, k1))

    def count(self, kind):
        return sum(tile[0] == kind for tile in self.tiles)

    def counts(self):
        share = 100 * self.skipped / max(1, self.skipped + len(self.tiles))
        empty = f"{self.count('empty')} empty but computed, " if self.count("empty") else ""
        return (f"tiles: {self.count('full')} full, {self.count('partial')} partial, {empty}{self.skipped} skipped "
                f"({share:.1f} %)")

    def _cells(self, width, height):
        """Returns two tables with an element for each rectangle of width x height pairs.

        The first table says whether a pair of the rectangle is kept. The second table has 0 (skipped), 1 (computed) or
        2 (all pairs kept).
        """
        numpy = self.numpy
        computed, full = numpy.zeros(self.keep.shape, bool), numpy.zeros(self.keep.shape, bool)
        for kind, q0, q1, k0, k1 in self.tiles:
            (full if kind == "full" else computed)[q0:q1, k0:k1] = True

        def reduce(op, table):
            for axis, step in ((0, height), (1, width)):
                table = op.reduceat(table, range(0, table.shape[axis], step), axis)
            return table

        kind = numpy.where(reduce(numpy.logical_and, full), 2, reduce(numpy.logical_or, computed | full))
        return reduce(numpy.logical_or, self.keep), kind

    def text(self):
        (queries, keys), lines = self.keep.shape, [self.title, self.note, self.counts()]
        if queries and keys:
            width, height = -(-keys // 80), -(-queries // 48)
            lines.append(f"{'':13}keys 0 to {keys - 1}" + (f", {width} a column" if width > 1 else ""))
            for i, (kept, kinds) in enumerate(zip(*self._cells(width, height))):
                row = "".join("█" if kind == 2 else "▒" if some else "░" if kind else "·" for some, kind in zip(kept, kinds))
                lines.append(f"{'' if i else 'queries':7} {i * height:4} {row}")
        return "\n".join(lines)

    def svg(self, origin):
        (queries, keys), lines = self.keep.shape, []
        top = origin + TOP

        def x(key):
            return LEFT + self.width * key / max(keys, 1)

        def y(query):
            return top + self.height * query / max(queries, 1)

        def rectangle(kind, q0, q1, k0, k1):
            lines.append(f'<rect class="{kind}" x="{x(k0):.2f}" y="{y(q0):.2f}" width="{x(k1) - x(k0):.2f}" '
                         f'height="{y(q1) - y(q0):.2f}"/>')

        def text(kind, x, y, words):
            lines.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{html.escape(words)}</text>')

        def step(size, pixels):  # 1, 2 or 5 times a power of ten, with at least 45 pixels between labels
            return next(step for step in (factor * 10 ** power for power in range(12) for factor in (1, 2, 5))
                        if -(-size // step) <= max(1, pixels // 45))

        text("title", 16, origin + 26, self.title)
        text("tick", 16, origin + 46, self.note)
        rectangle("skipped", 0, queries, 0, keys)
        for tile in self.tiles:
            rectangle(*tile)
        if queries and keys:
            side = -(-max(queries, keys) // 280)  # the number of pairs along a square of at least two pixels
            for i, (kept, kinds) in enumerate(zip(*self._cells(side, side))):
                place = 0
                for is_drawn, run in itertools.groupby(some and kind == 1 for some, kind in zip(kept, kinds)):
                    first, place = place, place + len(list(run))
                    if is_drawn:
                        rectangle("kept", i * side, min((i + 1) * side, queries), first * side, min(place * side, keys))
        for key in range(0, keys, step(keys, self.width)):
            text("tick middle", x(key), top - 7, str(key))
        for query in range(0, queries, step(queries, self.height)):
            text("tick end", LEFT - 8, y(query) + 4, str(query))
        text("axis middle", LEFT + self.width / 2, top - 24, "keys")
        lines.append(f'<text class="axis middle" transform="translate(22 {top + self.height / 2:.1f}) rotate(-90)">queries</text>')
        left, below = 16, y(queries) + 24
        for kind, words in (("full", f"{self.count('full')} full tiles"), ("partial", f"{self.count('partial')} partial tiles"),
                            ("kept", "kept pairs in them"), ("empty", f"{self.count('empty')} empty tiles, not skipped"),
                            ("skipped", f"{self.skipped} skipped tiles")):
            if kind == "empty" and not self.count(kind):
                continue
            lines.append(f'<rect class="{kind}" x="{left:.1f}" y="{below:.1f}" width="14" height="14"/>')
            text("tick", left + 20, below + 11, words)
            left += 32 + 6.2 * len(words)
        return "\n".join(lines)


STYLE = """<style>
  text { font-family: sans-serif; fill: #1a1a1a }
  .title { font-size: 15px; font-weight: bold } .axis { font-size: 14px } .tick { font-size: 12px }
  .middle { text-anchor: middle } .end { text-anchor: end }
  .full { fill: #1f5fa8; stroke: #ffffff; stroke-width: 1 }
  .partial { fill: #cfe0f3; stroke: #ffffff; stroke-width: 1 }
  .empty { fill: #f6dfc4; stroke: #ffffff; stroke-width: 1 }
  .kept { fill: #6fa3d8 } .skipped { fill: #f1f1ee; stroke: #b8b8b4; stroke-width: 1 }
</style>
<rect width="100%" height="100%" fill="#ffffff"/>"""

LEGEND = "█ all pairs kept   ▒ some pair kept, tested   ░ none kept, but computed   · none kept, skipped"


def plot_mask(mask: Callable[..., Any], queries: int, keys: int | None = None, *arrays: Any, heads: int = 1) -> Picture:
    """Draws the tiles in which a mask keeps all pairs, some pairs or no pair, and shows which tiles attn skips.

    `arrays` are the arrays that the mask function reads. attn skips a tile if the causal mask, window or length that it
    recognises in the function hides all pairs of the tile; it computes all other tiles. Batches and heads with the same
    mask share a picture, and at most eight pictures are drawn. The result is an image in notebooks and text when
    printed; its method `save` writes the image.
    """
    import numpy

    of = mask if isinstance(mask, Mask) else Mask(mask)
    keys = queries if keys is None else keys
    if queries * keys > MOST_PAIRS:
        raise error(f"plot_mask: expected at most {MOST_PAIRS} pairs of queries and keys, got {queries} x {keys}")
    trace = Trace(of.function)
    captures = list(trace.captures.values())
    names = ", ".join(captured.name for captured in captures) or "none"
    if len(arrays) < len(captures):
        raise error(f"plot_mask: expected the array '{captures[len(arrays)].name}', which the mask reads, but it is missing; pass "
                    f"the arrays after queries and keys ({names})", "COUNT")
    if len(arrays) > len(captures):
        raise error(f"plot_mask: expected {len(captures)} arrays ({names}), got {len(arrays)}", "COUNT")
    sizes = {"b": 1, "h": heads, "q": queries, "k": keys}
    if any(isinstance(array, numpy.ma.MaskedArray) for array in arrays):
        raise error("plot_mask: expected arrays without a mask, got a masked array; pass x.filled(value) or x.data")
    arrays = [_to_numpy(array).astype("bool" if captured.type == "i1" else "int64") for array, captured in zip(arrays, captures)]
    by_name = {captured.name: array for captured, array in zip(captures, arrays)}
    for captured, places in trace.reads:
        array = by_name[captured.name]
        if array.ndim != len(places):
            raise error(f"plot_mask: expected the array '{captured.name}' to have {len(places)} dimensions ({', '.join(places)}), "
                        f"got {array.ndim}", "RANK")
        if "b" in places:
            sizes["b"] = array.shape[places.index("b")]
    for captured, places in trace.reads:
        if by_name[captured.name].shape != tuple(sizes[place] for place in places):
            expected = ", ".join(f"{sizes[place]} ({place})" for place in places)
            raise error(f"plot_mask: expected the array '{captured.name}' to have the sizes {expected}, got "
                        f"{list(by_name[captured.name].shape)}", "SHAPE")

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "mask.mlir").write_text(write(of, heads, 8))
        inputs = [numpy.zeros((sizes["b"], heads, length, 8), "float32") for length in (queries, keys, keys)]
        options = []
        for i, array in enumerate([*inputs, *arrays]):
            numpy.save(folder / f"{i}.npy", array)
            options.append(f"--input={folder}/{i}.npy")
        _compiler.run("attn-run", [folder / "mask.mlir", *options, f"--explain-mask={folder}/mask.svg"])
        drawn = re.split('(?=<text class="title")', (folder / "mask.svg").read_text())[1:]
    tiles = {}  # attn-run's pictures by batch and head; an index on which the tiles do not depend is 0
    for svg in drawn:
        place = re.search(r"batch \((\d+), (\d+)\)", svg)
        tiles[tuple(map(int, place.groups())) if place else (0, 0)] = svg
    varies = [any(place[axis] for place in tiles) for axis in range(2)]

    def keep(b, h):
        places = (numpy.array([[b]]), numpy.array([[h]]), numpy.arange(queries)[:, None], numpy.arange(keys)[None])
        return numpy.broadcast_to(numpy.asarray(of.function(*places, *arrays), bool), (queries, keys))

    panels, seen, left = [], [], 0
    for b, h in itertools.product(range(sizes["b"]), range(heads)):
        svg, kept = tiles.get((b * varies[0], h * varies[1])), keep(b, h)
        if any(svg is other and numpy.array_equal(kept, before) for other, before in seen):
            continue
        if svg is None or len(panels) == MOST_PICTURES:
            left += 1
            continue
        seen.append((svg, kept))
        title, note = (html.unescape(words) for words in re.findall(r'<text class="(?:title|tick)"[^>]*>([^<]*)</text>', svg)[:2])
        note = note.partition(", batch")[0].partition(", the same")[0]
        note += " (attn skips tiles because of this mask alone)" if note != "mask none" else " (attn skips no tiles)"
        panels.append(_Panel(numpy, title.replace(title.partition(": ")[0], f"{of.__name__}, batch {b}, head {h}"),
                             note, svg, kept))
    more = [f"{left} more pictures are not shown"] if left else []
    height, parts = 0.0, []
    for panel in panels:
        parts.append(panel.svg(height))
        height += TOP + panel.height + BOTTOM
    parts += [f'<text class="tick" x="16" y="{height + 20:.1f}">{words}</text>' for words in more]
    height += 40 * len(more)
    svg = (f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height:.0f}" viewBox="0 0 760 {height:.0f}">\n'
           + "\n".join([STYLE, *parts]) + "\n</svg>\n")
    return Picture(svg, "\n\n".join([panel.text() for panel in panels] + ["\n".join([*more, LEGEND])]))
