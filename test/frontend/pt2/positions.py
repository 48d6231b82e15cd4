"""positions.py FOLDER: writes models that read a table of 5 rows at positions that follow from the length of the input.

    NAME.pt2         table[positions] of ids[2, length]
    embed-NAME.pt2   the same with aten.embedding
"""
import pathlib
import sys

import numpy as np

from program import DType, Program

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
table = np.arange(10, dtype="float32").reshape(5, 2)
row, pair = np.arange(4), np.zeros((2, 4), "int64")


class Graph(Program):
    """Adds ops whose results have the sizes [length] or, with two=True, [2, length]."""

    def call(self, op, like=row, /, *, two=False, **arguments):
        return self.node(f"aten.{op}", pair.astype(like.dtype) if two else like, symbolic=[2, "s0"] if two else ["s0"], **arguments)

    def arange(self, length):
        return self.call("arange.default", end=length)


def plus(graph, ids, length):
    return graph.call("add.Tensor", self=graph.arange(length), other=1)


def flipped(graph, ids, length):
    last = graph.arithmetic("sub", "Add({a}, Mul(Integer(-1), {b}))", a=length, b=1)
    return graph.call("rsub.Scalar", self=graph.arange(length), other=last)


def reversed_(graph, ids, length):
    return graph.call("flip.default", self=graph.arange(length), dims=[0])


def sliced(graph, ids, length):
    whole = graph.node("aten.arange.default", np.arange(64), end=64)
    return graph.call("slice.Tensor", self=whole, dim=0, start=0, end=length)


def narrow(graph, ids, length):
    return graph.call("_to_copy.default", row.astype("int32"), self=graph.arange(length), dtype=DType("int32"))


def before(graph, ids, length):
    return graph.call("sub.Tensor", self=graph.arange(length), other=5)


def count(graph, ids, length):
    """The number of tokens up to each token, where 1 is not a token."""
    mask = graph.call("ne.Scalar", row.astype(bool), two=True, self=ids, other=1)
    sums = graph.call("cumsum.default", two=True, self=mask, dim=1)
    return graph.call("clamp.default", two=True, self=graph.call("sub.Tensor", two=True, self=sums, other=1), min=0)


def chosen(graph, ids, length):
    """arange(length), with 0 in place of positions that are not in the table."""
    positions = graph.arange(length)
    inside = graph.call("lt.Scalar", row.astype(bool), self=positions, other=5)
    return graph.call("where.ScalarOther", self=positions, condition=inside, other=0)


def greatest(graph, ids, length):
    return graph.node("aten.argmax.default", np.zeros(2, "int64"), self=graph.node(
        "aten.slice.Tensor", np.zeros((2, 2), "int64"), self=ids, dim=1, start=0, end=2), dim=1)


def behind(graph, ids, length):
    return graph.node("aten.arange.start", np.arange(5, 7), start=5, end=7)


for build in plus, flipped, reversed_, sliced, narrow, before, count, chosen, greatest, behind:
    for op in "index", "embedding":
        graph = Graph()
        ids = graph.input("ids", pair, [2, "s0"])
        positions = build(graph, ids, graph.size(ids, 1))
        weight = graph.weight("table", table)
        sizes = {count: [2, "s0", 2], greatest: [2, 2], behind: [2, 2]}.get(build, ["s0", 2])
        like = np.zeros([2 if size == 2 else 4 for size in sizes], "float32")
        if op == "index":
            graph.output(graph.node("aten.index.Tensor", like, symbolic=sizes, line=9, self=weight, indices=[positions]))
        else:
            graph.output(graph.node("aten.embedding.default", like, symbolic=sizes, line=9, weight=weight, indices=positions))
        graph.save(folder / f"{'embed-' if op == 'embedding' else ''}{build.__name__.strip('_')}.pt2")
