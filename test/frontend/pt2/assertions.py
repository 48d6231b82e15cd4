"""assertions.py FOLDER: writes models with assertions on elements, as torch.export writes them, and their inputs.

    dropped.pt2  x + 1 after `assert n.max().item() <= x.shape[1]`, a torch._check and a torch._assert_async of elements
    read.pt2     a model in which n.max().item() is the size of the result
"""
import os
import sys

import numpy as np

from program import Program

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
x, n = np.arange(6, dtype="float32").reshape(2, 3), np.array([2, 3])
np.save(f"{folder}/x.npy", x)
np.save(f"{folder}/n.npy", n)
np.save(f"{folder}/want.npy", x + 1)

program = Program()
argument, lengths = program.input("x", x, [2, "s0"]), program.input("n", n)
most = program.element(program.node("aten.max.default", np.int64(3), self=lengths), "u0")
condition = program.condition("le", a=most, b=program.size(argument, 1))
program.effect("aten._assert_scalar.default", line=7, self=condition, assert_msg="u0 <= s0")
program.effect("aten.sym_constrain_range_for_size.default", line=7, size=most, min=0)
positive = program.node("aten.gt.Scalar", n > 0, self=lengths, other=0)
program.effect("aten._assert_async.msg", line=9, self=program.node("aten.all.default", np.bool_(True), self=positive),
               assert_msg="positive")
program.output(program.node("aten.add.Tensor", x, symbolic=[2, "s0"], self=argument, other=1.0))
program.save(f"{folder}/dropped.pt2")

program = Program()
lengths = program.input("n", n)
most = program.element(program.node("aten.max.default", np.int64(3), self=lengths), "u0")
program.effect("aten._assert_scalar.default", line=7, self=program.condition("le", a=most, b=9), assert_msg="u0 <= 9")
program.output(program.node("aten.arange.default", np.arange(3), symbolic=["u0"], end=most, line=8))
program.save(f"{folder}/read.pt2")
