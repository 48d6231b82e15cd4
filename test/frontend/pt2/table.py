"""table.py FOLDER: writes models that read and write rows of a table, and arrays of indices in and out of its range.

Each array in a file NAME-MODEL.npy holds the indices of a call of MODEL.pt2; `within` are in range.
"""
import pathlib
import sys

import numpy as np

from program import DType, Program

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
table = np.arange(10, dtype="float32").reshape(5, 2)


def model(name, build, indices, symbolic=None):
    """Writes a model whose result is build(program, index, table), a node and its value, for the argument `ids`."""
    program = Program()
    ids = program.input("ids", indices, symbolic)
    node, want = build(program, ids, program.weight("table", table))
    program.output(node)
    program.save(folder / f"{name}.pt2")
    np.save(folder / f"{name}.want.npy", want)


def calls(name, **indices):
    for case, values in indices.items():
        np.save(folder / f"{name}.{case}.npy", values)


def embedding(program, ids, weight):
    return program.node("aten.embedding.default", table[indices], weight=weight, indices=ids), table[indices]


indices = np.array([[0, 4, 2]])
model("embedding", embedding, indices)
calls("embedding", within=indices, above=np.array([[0, 4, 5]]), below=np.array([[0, 4, -1]]))

# An index of table[i] and of a write counts from the end if it is negative.
row = np.array([0, 4, -5])
filled = table.copy()
filled[row] = 7
model("index", lambda p, i, w: (p.node("aten.index.Tensor", table[row], self=w, indices=[i]), table[row]), row)
model("filled", lambda p, i, w: (p.node("aten.index_fill.int_Scalar", table, self=w, dim=0, index=i, value=7), filled), row)
model("put", lambda p, i, w: (p.node("aten.index_put.default", table, self=w, indices=[i], values=p.weight("seven", np.float32([7]))),
                              filled), row)
for name in "index", "filled", "put":
    calls(name, within=row, above=np.array([0, 4, 5]), below=np.array([0, 4, -6]))


# table[ids - 1], where ids are the numbers of tokens.
def last(program, ids, weight):
    before = program.node("aten.sub.Tensor", row, self=ids, other=1)
    return program.node("aten.index.Tensor", table[row], self=weight, indices=[before]), table[row]


model("last", last, row + 1)
calls("last", within=row + 1, above=np.array([0, 4, 6]), below=np.array([0, 4, -5]))


# table[ids.long()] of bytes, which cannot be negative.
def byte(program, ids, weight):
    wide = program.node("aten._to_copy.default", row, self=ids, dtype=DType("int64"))
    return program.node("aten.index.Tensor", table[[0, 4, 2]], self=weight, indices=[wide]), table[[0, 4, 2]]


model("byte", byte, np.array([0, 4, 2], "uint8"))
calls("byte", within=np.array([0, 4, 2], "uint8"), above=np.array([0, 4, 255], "uint8"))

# x[:, ids] of an argument with an unknown number of columns.
program = Program()
x, ids = program.input("x", np.zeros((2, 4), "float32"), [2, "s0"]), program.input("ids", row[:2])
program.output(program.node("aten.index.Tensor", np.zeros((2, 2), "float32"), self=x, indices=[None, ids]))
program.save(folder / "columns.pt2")
x = np.arange(8, dtype="float32").reshape(2, 4)
np.save(folder / "columns.x.npy", x)
np.save(folder / "columns.want.npy", x[:, [3, -4]].copy("C"))
calls("columns", within=np.array([3, -4]), above=np.array([3, 4]), below=np.array([3, -5]))

# table[ids[:2]] reads only two of three indices, so no bound may apply to all of them.
model("slice", lambda p, i, w: (p.node("aten.index.Tensor", table[:2], line=9, self=w, indices=[
    p.node("aten.slice.Tensor", row[:2], self=i, dim=0, start=0, end=2)]), table[:2]), row)
calls("slice", within=np.array([0, 1, 9]))

# A buffer of indices that lie outside the table.
program = Program()
x, ids = program.input("x", table), program.buffer("ids", np.array([0, 5]))
program.output(program.node("aten.index.Tensor", table[:2], line=9, self=x, indices=[ids]))
program.save(folder / "buffer.pt2")
