"""table.py FOLDER: writes models that read and write rows of a table, and arrays of indices in and out of its range."""
import pathlib
import sys

import numpy as np

from program import Program

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
indices = np.array([[0, 4, 2]], "int64")
table = np.arange(10, dtype="float32").reshape(5, 2)
program = Program()
index = program.input("ids", indices)
rows = program.node("aten.embedding.default", table[indices], weight=program.weight("table", table), indices=index)
program.output(rows)
program.save(folder / "table.pt2")
np.save(folder / "want.npy", table[indices])

program = Program()
index = program.input("ids", indices[0])
rows = program.node("aten.index_fill.int_Scalar", table, self=program.weight("table", table), dim=0, index=index,
                    value=7)
program.output(rows)
program.save(folder / "filled.pt2")
for name, last in (("within", 2), ("above", 5), ("below", -1)):
    np.save(folder / f"{name}.npy", np.array([[0, 4, last]], "int64"))
    np.save(folder / f"{name}-row.npy", np.array([0, 4, last], "int64"))
table[[0, 4, 2]] = 7
np.save(folder / "filled.npy", table)

# A table of positions, which the model reads at torch.arange(S) + 1.
program = Program()
ids = program.input("ids", np.zeros((2, 4), "int64"), [2, "s0"])
length = program.size(ids, 1)
positions = program.node("aten.arange.default", np.arange(4), symbolic=["s0"], end=length)
positions = program.node("aten.add.Tensor", np.arange(4), symbolic=["s0"], self=positions, other=1)
rows = program.node("aten.embedding.default", table[np.arange(1, 5)], symbolic=["s0", 2], weight=program.weight("table", table),
                    indices=positions)
program.output(rows)
program.save(folder / "positions.pt2")
