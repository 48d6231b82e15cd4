"""hostile.py FOLDER: writes a file for each argument that an op does not accept, such as numbers near 2^63.

For every file, attn-import must print the expected error message, within 10 seconds and with at most 2 GiB of memory.
"""

import os
import resource
import subprocess
import sys

import numpy as np

from program import DType, Program

MAX, MIN = 2**63 - 1, -2**63
X, VECTOR, EMPTY = np.zeros((2, 3), "float32"), np.zeros(3, "float32"), np.zeros(0, "float32")
IMAGE, KERNEL = np.zeros((1, 1, 8), "float32"), np.zeros((1, 1, 3), "float32")
COMPLEX = np.zeros((2, 3), "complex64")
CASES = []


def case(message, op, like=X, sizes=None, is_list=False, **arguments):
    """Adds a case. `sizes` are the sizes of the first argument in the file, if no array can have that many elements."""
    CASES.append((message, op, like, sizes, is_list, arguments))


case("expected a size of at least 9223372036854775807, got 3", "select.int", X[:, 0], self=X, dim=1, index=MAX)
case("expected a size of at least 9223372036854775807, got 3", "select.int", X[:, 0], self=X, dim=1, index=MIN)
case("expected 1099511627776 results, got 1", "split.Tensor", [VECTOR], [2**40], True, self=VECTOR, split_size=1)
case("expected 9223372036854775807 results, got 1", "chunk.default", [EMPTY], is_list=True, self=EMPTY, chunks=MAX)
case("expected numbers that int64 can hold, got 1.000000e+300", "arange.start_step", np.zeros(3, "int64"), start=0.0,
     end=1e300, step=1.0, dtype=DType("int64"))
case("expected numbers from 0 to 2147483647 in 'padding', got 4611686018427387904", "conv1d.default", IMAGE,
     input=IMAGE, weight=KERNEL, padding=[2**62])
case("expected numbers from 0 to 2147483647 in 'dilation', got 4611686018427387904", "conv1d.default", IMAGE,
     input=IMAGE, weight=KERNEL, dilation=[2**62])
case("expected at most 16 dimensions, got 10000", "repeat.default", self=X, repeats=[1] * 10000)
case("expected sizes that fit into 64 bits in 'torch.ops.aten.constant_pad_nd.default'", "constant_pad_nd.default", self=X,
     pad=[MIN, 0])
case("expected sizes that fit into 64 bits in 'torch.ops.aten.repeat.default'", "repeat.default", self=X, repeats=[1, MAX])
case("expected real numbers in 'torch.ops.aten.exp.default', got complex ones", "exp.default", COMPLEX, self=COMPLEX)
case("expected real numbers in 'torch.ops.aten.neg_.default', got complex ones", "neg_.default", COMPLEX, self=COMPLEX)
case("expected a real divisor, got a complex one", "div.Tensor", COMPLEX, self=COMPLEX, other=COMPLEX)
case("expected complex numbers, got float32[2, 3]", "view_as_real.default", np.zeros((2, 3, 2), "float32"), self=X)
case("expected complex numbers in 'self' of 'torch.ops.aten.t.default', got real ones", "t.default", COMPLEX.T, self=X)
case("expected a boolean index of float32[2, 3] and values that are the same for each of its elements, got [2] at "
     "dimension 0 and float32[2, 3]", "index_put.default", self=X, indices=[np.zeros(2, bool)], values=X)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    failures = []
    for i, (message, op, like, sizes, is_list, arguments) in enumerate(CASES):
        program = Program()
        for name, value in arguments.items():
            if isinstance(value, list) and isinstance(value[0], np.ndarray):
                arguments[name] = [program.input(f"{name}_{i}", array) for i, array in enumerate(value)]
            elif isinstance(value, np.ndarray):
                arguments[name] = program.input(name, value, sizes)
                sizes = None
        result = program.node("aten." + op, like, is_list=is_list, **arguments)
        program.output(result[0] if isinstance(like, list) else result)
        path = f"{folder}/{i}.pt2"
        program.save(path)
        imported = subprocess.run(["attn-import", path], capture_output=True, text=True, timeout=10)
        expected = f"error: {path}: ops.py:0: {message}\n"
        if imported.returncode != 1 or imported.stderr != expected:
            failures.append(f"{op}: expected {expected}got {imported.stderr or 'no error'}")
    kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if kilobytes > 2 << 20:
        failures.append(f"expected at most 2 GiB, got {kilobytes} KiB")
    print("\n".join(failures) or f"{len(CASES)} refused")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
