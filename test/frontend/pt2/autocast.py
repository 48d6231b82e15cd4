"""autocast.py FILE: writes a model that computes a sum in a block with autocast on."""
import sys

import numpy as np

from program import Program

x = np.zeros((2, 3), "float32")
program = Program()
total, = program.block("wrap_with_autocast", lambda inner, y: [inner.node("aten.add.Tensor", x, self=y, other=1.0, line=7)],
                       program.input("x", x), autocast=True)
program.nodes[-1]["metadata"] = {}  # torch.export stores no line for a block
program.output(total)
program.save(sys.argv[1])
