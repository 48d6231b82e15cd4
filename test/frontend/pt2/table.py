"""table.py DIR: an embedding of 5 rows as a file, and indices within it, above it and below it."""
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
for name, last in (("within", 2), ("above", 5), ("below", -1)):
    np.save(folder / f"{name}.npy", np.array([[0, 4, last]], "int64"))
