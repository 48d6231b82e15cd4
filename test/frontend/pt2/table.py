"""table.py DIR: writes models that read and write rows of a table of 5 rows, and indices within, above and below."""
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
