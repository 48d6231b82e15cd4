"""Checks that a buffer that holds a band of a matrix becomes a formula, and any other buffer a weight: bands.py FOLDER

A band has one value in adjacent diagonals of a matrix, and another value elsewhere. Each model adds a buffer to an
input. The sum must equal that of numpy. The buffer must be a weight of the library if and only if it is not a band. An
attention whose mask is a slice of a band must get the expected mask attribute.
"""

import json
import os
import subprocess
import sys

import numpy as np

from program import DType, Program

random = np.random.default_rng(3)
ONES = np.ones((5, 7))


def band(lower, upper):
    """Ones where row - lower <= column <= row + upper."""
    return np.tril(np.triu(ONES, -lower), upper)


# name: (values, whether the buffer becomes a formula)
BUFFERS = {
    "lower triangle": (np.tril(ONES), True),
    "lower triangle, less": (np.tril(ONES, -1), True),
    "lower triangle, more": (np.tril(ONES, 2), True),
    "lower triangle, all but the corner": (np.tril(ONES, 5), True),
    "upper triangle": (np.triu(ONES), True),
    "upper triangle, less": (np.triu(ONES, 1), True),
    "upper triangle, more": (np.triu(ONES, -2), True),
    "tall": (np.tril(ONES.T, 1), True),
    "window": (band(2, 0), True),
    "window of both sides": (band(1, 2), True),
    "diagonal": (band(0, 0), True),
    "infinities above the diagonal": (np.where(np.tril(ONES) > 0, 0, -np.inf).astype("float32"), True),
    "a NaN below the diagonal": (np.where(np.tril(ONES) > 0, np.nan, -0.0).astype("float32"), True),
    "large integers": (np.where(np.triu(ONES) > 0, 2**62 + 1, -(2**63)), True),
    "booleans": (np.tril(ONES) > 0, True),
    "bytes": (np.tril(np.full((4, 4), 255, "uint8")), True),
    "halves": (np.tril(np.full((4, 4), 1.5, "float16")), True),
    "units in front": (np.tril(ONES).reshape(1, 1, 5, 7), True),
    "one value": (ONES, False),
    "one row": (ONES[:1], False),
    "one column": (ONES[:, :1], False),
    "two matrices": (np.tril(np.ones((2, 5, 7))), False),
    "one element changed": (np.tril(ONES) - np.eye(5, 7, -3) * (np.arange(7) == 1), False),
    "a triangle with a hole": (np.tril(ONES) - np.eye(5, 7), True),
    "three values": (np.tril(ONES) + np.eye(5, 7), False),
    "no rows": (np.ones((0, 7)), False),
    "random": (random.standard_normal((5, 7)), False),
}


def compile(program, name, folder):
    path = os.path.join(folder, name.replace(" ", "-").replace(",", ""))
    program.save(path + ".pt2")
    subprocess.run(["attnc", path + ".pt2", "-o", path + ".so", f"--opt-report={path}.txt"], check=True)
    return path


def weights(path):
    with open(path + ".json") as file:
        return [weight["name"] for weight in json.load(file)["functions"][0]["weights"]]


def check_values(name, values, is_formula, folder):
    if values.dtype == "float64":
        values = values.astype("float32")
    x = (random.standard_normal(values.shape) * 4).astype(values.dtype)
    program = Program()
    table = program.buffer("table", values)
    wide = np.empty(values.shape, "float32" if values.dtype in ("float16", "float32") else "int64")
    argument = program.input("x", x)
    converted = [program.node("aten.to.dtype", wide, self=value, dtype=DType(wide.dtype.name)) for value in (table, argument)]
    program.output(program.node("aten.add.Tensor", wide, self=converted[0], other=converted[1]))
    path = compile(program, name, folder)
    np.save(path + ".x.npy", x)
    with np.errstate(all="ignore"):
        np.save(path + ".out.npy", values.astype(wide.dtype) + x.astype(wide.dtype))
    assert (weights(path) == []) == is_formula, f"{name}: got weights {weights(path)}"
    subprocess.run(["attn-run", path + ".so", f"--input={path}.x.npy", f"--expect={path}.out.npy", "--tolerance=0"],
                   check=True, stdout=subprocess.DEVNULL)


def check_mask(name, values, first, expected, folder):
    """Checks an attention whose mask is the rows of a buffer from `first` on; an element 0 hides a key."""
    tokens, size = 6, 8
    x = random.standard_normal((2, tokens, size)).astype("float32")
    program = Program()
    table, argument = program.buffer("table", values), program.input("x", x)
    scores = np.empty((2, tokens, tokens), "float32")
    part = np.empty((tokens, tokens), values.dtype)
    turned = program.node("aten.transpose.int", np.empty((2, size, tokens), "float32"), self=argument, dim0=1, dim1=2)
    product = program.node("aten.matmul.default", scores, self=argument, other=turned)
    rows = program.node("aten.slice.Tensor", np.empty((tokens, values.shape[1]), values.dtype), self=table, dim=0, start=first,
                        end=first + tokens)
    square = program.node("aten.slice.Tensor", part, self=rows, dim=1, start=0, end=tokens)
    hidden = program.node("aten.eq.Scalar", part > 0, self=square, other=0)
    masked = program.node("aten.masked_fill.Scalar", scores, self=product, mask=hidden, value=float("-inf"))
    shares = program.node("aten.softmax.int", scores, self=masked, dim=-1)
    program.output(program.node("aten.matmul.default", x, self=shares, other=argument))
    path = compile(program, name, folder)
    with open(path + ".txt") as report:
        assert f"mask {expected}" in report.read(), f"{name}: expected {expected} in {path}.txt"
    wide = x.astype("float64")
    kept = values[first:first + tokens, :tokens] != 0
    weight = np.where(kept, np.exp(wide @ wide.transpose(0, 2, 1)), 0)
    np.save(path + ".x.npy", x)
    np.save(path + ".out.npy", (weight / weight.sum(-1, keepdims=True) @ wide).astype("float32"))
    subprocess.run(["attn-run", path + ".so", f"--input={path}.x.npy", f"--expect={path}.out.npy"], check=True,
                   stdout=subprocess.DEVNULL)


def check_literals(folder):
    """Checks that a number in the code of the model is not a weight, but a list of numbers is one."""
    program = Program()
    x = random.standard_normal((2, 3)).astype("float32")
    argument = program.input("x", x)
    half = program.literal("half", np.array(0.5, "float32"))
    row = program.literal("row", np.array([1, 2, 3], "float32"))
    product = program.node("aten.mul.Tensor", x, self=argument, other=half)
    program.output(program.node("aten.add.Tensor", x, self=product, other=row))
    path = compile(program, "literals", folder)
    assert weights(path) == ["row"], f"got weights {weights(path)}"
    np.save(path + ".x.npy", x)
    np.save(path + ".out.npy", x / 2 + np.array([1, 2, 3], "float32"))
    subprocess.run(["attn-run", path + ".so", f"--input={path}.x.npy", f"--expect={path}.out.npy"], check=True,
                   stdout=subprocess.DEVNULL)


def check_state(folder):
    """Checks that a buffer to which the graph writes, here through a view, does not become a formula."""
    program = Program()
    table, argument = program.buffer("state", np.eye(4, dtype="float32")), program.input("x", np.ones(4, "float32"))
    row = program.node("aten.select.int", np.empty(4, "float32"), self=table, dim=0, index=1)
    program.node("aten.add_.Tensor", np.empty(4, "float32"), self=row, other=argument)
    program.output(program.node("aten.sum.dim_IntList", np.empty(4, "float32"), self=table, dim=[0]))
    program.save(f"{folder}/state.pt2")
    np.save(f"{folder}/sum.npy", np.full(4, 2, "float32"))
    np.save(f"{folder}/left.npy", np.eye(4, dtype="float32") + np.outer(np.eye(4)[1], np.ones(4)).astype("float32"))
    for name, array in ("ones", np.ones(4, "float32")), ("eye", np.eye(4, dtype="float32")):
        np.save(f"{folder}/{name}.npy", array)
    subprocess.run(["attn-run", f"{folder}/state.pt2", f"--input={folder}/ones.npy", f"--input={folder}/eye.npy",
                    f"--expect={folder}/sum.npy", f"--expect={folder}/left.npy"], check=True, stdout=subprocess.DEVNULL)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for name, (values, is_formula) in BUFFERS.items():
        check_values(name, values, is_formula, folder)
    check_state(folder)
    check_literals(folder)
    square = np.ones((16, 16), "float32")
    check_mask("causal", np.tril(square), 0, "#attn.causal", folder)
    check_mask("causal of a later part", np.tril(square), 3, "#attn.causal<offset = 3>", folder)
    check_mask("booleans as a mask", np.tril(square) > 0, 0, "#attn.causal", folder)
    check_mask("a window as a mask", np.tril(np.triu(square, -2)), 0, "#attn.window<left = 2, right = 0>", folder)


if __name__ == "__main__":
    main(sys.argv[1])
