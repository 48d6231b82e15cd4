"""signature.py FOLDER: writes arrays for calls, and models with nested arguments and results, not all of them tensors.

    nested.pt2   takes a flag, x and None, and returns {"y": x + w, "n": its rows, "none": None, "pair": (2x, 7)}
    named.pt2    an input has the name of a weight
    starred.pt2  forward(self, x, *args, **kw): guards refer to the inputs as L['args'][0] and L['kw']['k']
    strided.pt2  weights that are views of other weights in the file: a transpose, a part and an expanded row
"""
import os
import sys

import numpy as np

from program import Program, tree

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
x = np.arange(6, dtype="float32").reshape(2, 3)


def save(name, program, *wants):
    program.save(f"{folder}/{name}.pt2")
    for i, want in enumerate(wants):
        np.save(f"{folder}/{name}.{i}.npy", np.asarray(want))


np.save(f"{folder}/x.npy", x)

program = Program()
program.constant("flag", True)
argument = program.input("x", x, ["s0", 3])
program.constant("mask", None)
rows = program.size(argument, 0)
program.output(program.node("aten.add.Tensor", x, symbolic=["s0", 3], self=argument, other=program.weight("w", x[0])))
for value in (rows, None, program.node("aten.mul.Tensor", x, symbolic=["s0", 3], self=argument, other=2.0), 7):
    program.output(value)
program.tree, program.names = tree(((0, 0, 0), {})), ["flag", "x", "mask"]
program.output_tree = tree({"y": 0, "n": 0, "none": 0, "pair": (0, 0)})
program.guards = ["L['x'].size()[0] <= 64"]
save("nested", program, x + x[0], np.int64(2), x * 2, np.int64(7))

program = Program()
argument, weight = program.input("mask", x), program.weight("mask", x + 1)
program.output(program.node("aten.mul.Tensor", x, self=argument, other=weight))
save("named", program, x * (x + 1))

program = Program()
tensors = [program.input(name, x, [size, 3]) for name, size in (("x", "s0"), ("args_0", "s1"), ("k", "s2"))]
total = tensors[0]
for other in tensors[1:]:
    total = program.node("aten.add.Tensor", x, symbolic=["s0", 3], self=total, other=other)
program.output(total)
program.tree, program.names = tree(((0, 0), {"k": 0})), ["x", "args_0", "k"]
program.guards = ["L['x'].size()[0] == L['args'][0].size()[0]", "L['args'][0].size()[0] == L['kw']['k'].size()[0]"]
save("starred", program, x * 3)

program = Program()
argument = program.input("x", x)
stored = np.arange(24, dtype="float32")
views = {"turned": ([2, 3], [1, 2], 0), "part": ([2, 3], [6, 2], 7), "row": ([2, 3], [0, 1], 20)}
total, want = argument, x
for name, (shape, strides, offset) in views.items():
    want = want + np.lib.stride_tricks.as_strided(stored[offset:], shape, [4 * stride for stride in strides])
    total = program.node("aten.add.Tensor", x, self=total, other=program.weight(name, x))
    program.weights[name], program.stored[name] = stored, (shape, strides, offset)
# A file may be longer than its tensor, even by less than the size of one element.
want = want + x
total = program.node("aten.add.Tensor", x, self=total, other=program.weight("padded", x))
program.weights["padded"], program.stored["padded"] = np.frombuffer(x.tobytes() + b"!", "uint8"), (x.shape, (3, 1), 0)
program.kinds = {"padded": x}
program.output(total)
save("strided", program, want)
