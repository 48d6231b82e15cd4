"""autocast.py FILE around|inside: writes a model that was exported with autocast on, or that turns it on in a block."""
import sys

import numpy as np

from program import Program

x = np.zeros((2, 3), "float32")
program = Program()
argument = program.input("x", x)
if sys.argv[2] == "inside":
    total, = program.block("wrap_with_autocast", lambda inner, y: [inner.node("aten.add.Tensor", x, self=y, other=1.0, line=7)],
                           argument, autocast=True)
    program.nodes[-1]["metadata"] = {}  # torch.export stores no line for a block
else:
    weight = program.weight("w", np.zeros((4, 3), "float32"))
    total = program.node("aten.linear.default", np.zeros((2, 4), "float16"), input=argument, weight=weight, line=9)
program.output(total)
program.save(sys.argv[1])
