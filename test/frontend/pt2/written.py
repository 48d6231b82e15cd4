"""written.py FILE: writes a model whose graph writes to a view of a parameter."""
import sys

import numpy as np

from program import Program

x = np.zeros((2, 3), "float32")
program = Program()
argument, weight = program.input("x", x), program.weight("w", x)
part = program.node("aten.select.int", x[0], self=weight, dim=0, index=0)
program.node("aten.fill_.Scalar", x[0], self=part, value=1, line=7)
program.output(program.node("aten.add.Tensor", x, self=argument, other=weight))
program.save(sys.argv[1])
