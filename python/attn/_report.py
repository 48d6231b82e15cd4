"""The report on a compiled model, as text and as HTML."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attn._plot import Picture

ROWS = [("source", "line"), ("schedule", "schedule"), ("mask", "mask"), ("skipped_share", "tiles skipped"),
        ("query", "query from"), ("key", "key from"), ("value", "value from")]


def _skipped(attention):
    """The share of tiles that calls skip, worded as in the text of the report."""
    share, at_call = attention.get("skipped_share"), attention.get("skipped_at_call")
    if share is None:
        return ""
    return "known at the call" if at_call and not share else f"{100 * share:.1f} %" + " or more" * bool(at_call)


class Report:
    """The report of a kernel: text when printed, a table in notebooks, and a dictionary in `json` (docs/report.md)."""

    def __init__(self, kernel):
        self.kernel = kernel
        #: The report that attnc wrote; None for a kernel from attn.load.
        self.json: dict[str, Any] | None = kernel._report_json

    @property
    def attentions(self) -> list[dict[str, Any]]:
        """The attentions of the function at the kernel's level, a list of dictionaries."""
        for level in (self.json or {}).get("levels", []):
            if level["level"] == self.kernel.level:
                return [attention for function in level["functions"] if function["function"] == self.kernel.name
                        for attention in function.get("attentions", [])]
        return []

    def __str__(self) -> str:
        text = self.kernel._report_text or "no attention found"
        lines = [f"[{self.kernel.level}] {line}" for line in text.splitlines()]
        lines += [f"[{self.kernel.level}] {line}" for line in [self._measured()] if line]
        for kind, what in (("not_raised", "not fused"), ("extra_work", "extra work"), ("slow_loops", "slow loop"),
                           ("unchecked", "not checked")):
            lines += [f"{item['source']}: {what}: {item['reason']}" for item in (self.json or {}).get(kind, [])]
        return "\n".join(lines)

    __repr__ = __str__

    def _measured(self) -> str:
        """The median time of a call in the last Kernel.bench, and the numbers of tiles, as text."""
        if not self.kernel._measured:
            return ""
        ms, statistics = self.kernel._measured
        tiles = f", {statistics['tiles_run']} tiles run, {statistics['tiles_skipped']} skipped" if statistics["tiles_run"] else ""
        return f"measured: {ms:.4g} ms a call{tiles}"

    def picture(self, **sizes: int) -> Picture:
        """A picture of the tiles that each attention computes, and of the tiles that it skips because of its mask.

        `sizes` has a value for each size that is not fixed. The name of a size has "_" in place of ".": x_1=64 for x.1.
        """
        return self.kernel._need_source("picture").picture(self.kernel, sizes)

    def _repr_html_(self) -> str:
        def cell(value):
            return f"<td>{html.escape(str(value))}</td>"

        kernel = self.kernel
        head = "".join(f"<th>{title}</th>" for _, title in [*ROWS, ("", "predicted Mcycles")])
        body = ""
        for attention in self.attentions:
            predicted = ", ".join(f"{p['schedule']} {p['mcycles']:.3g}" for p in attention["predictions"])
            shown = {**attention, "skipped_share": _skipped(attention)}
            body += "<tr>" + "".join(cell(shown.get(key, "")) for key, _ in ROWS) + cell(predicted) + "</tr>"
        left = "".join(f"<li>{html.escape(item['source'])}: {html.escape(item['reason'])}</li>"
                       for kind in ("not_raised", "extra_work", "slow_loops", "unchecked") for item in (self.json or {}).get(kind, []))
        table = f"<table><tr>{head}</tr>{body}</table>" if body else "<p>no attention found</p>"
        return (f"<p><b>{html.escape(kernel.name)}</b> at level {kernel.level}</p>"
                f"{table}<p>{self._measured()}</p>" + (f"<p>Not fused, slow or not checked:</p><ul>{left}</ul>" if left else "")
                + self._picture_if_fixed())

    def _picture_if_fixed(self):
        if any(attention.get("mask") for attention in self.attentions) and not self.kernel.signature["symbols"]:
            if self.kernel._source:
                return self.picture().svg
        return ""


class Table:
    """The times of several runtimes, in milliseconds: text when printed, a table in notebooks."""

    def __init__(self, rows, title):
        #: A list of (name, median ms, ratio to attn); the time and the ratio are None if the runtime failed.
        self.rows: list[tuple[str, float | None, float | None]] = rows
        self.title = title
        #: The message of each runtime that failed, by name.
        self.failures: dict[str, str] = {}

    def __getitem__(self, name: str) -> float | None:
        """The median time of a runtime in milliseconds."""
        return next(ms for row, ms, _ in self.rows if row == name)

    def __str__(self) -> str:
        lines = [self.title]
        for name, ms, ratio in self.rows:
            lines.append(f"{name:12} {ms:10.4f} ms {ratio:6.2f} x attn" if ms is not None
                         else f"{name:12} failed: {self.failures[name]}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{html.escape(name)}</td>"
                       + (f"<td>{ms:.4f}</td><td>{ratio:.2f}</td>" if ms is not None
                          else f"<td colspan=2>failed: {html.escape(self.failures[name])}</td>") + "</tr>"
                       for name, ms, ratio in self.rows)
        return f"<p>{html.escape(self.title)}</p><table><tr><th></th><th>median ms</th><th>x attn</th></tr>{rows}</table>"
