"""Defines cases that call an op and compare the result with a reference, and data that cases share.

The files in ops/ contain the cases; ops.py runs them. A case has an op, the expected result, and the arguments by their
names in torch's schemas. References are computed in float64. Results that are integers or booleans must be equal.
Floats may differ by `ulps` units in the last place or, if many elements are summed, by a fraction `near` of the largest
element. Many cases share a file, which is compiled once. Complex numbers are passed and compared as pairs.
"""

import inspect
import json
import math
import os
import subprocess

import numpy as np

from program import DType, Program

CASES, GRAPHS = [], []


class Case:
    """One call of an op."""

    def __init__(self, op, want, kind, ulps, near, many, place, arguments):
        self.op, self.want, self.kind, self.place, self.arguments = op, want, kind, place, arguments
        self.ulps, self.near, self.many = ulps, near, many

    def tensors(self):
        """The arrays among the arguments, including those in lists."""
        for value in self.arguments.values():
            yield from (a for a in (value if isinstance(value, list) else [value]) if isinstance(a, np.ndarray))

    def results(self):
        """Returns the expected results of the op, with the expected types."""
        want = self.want
        if callable(want):
            with np.errstate(all="ignore"):
                want = want(*[widened(value) for value in self.arguments.values()])
        wants = want if isinstance(want, (list, tuple)) else [want]
        kinds = self.kind if isinstance(self.kind, (list, tuple)) else [self.kind] * len(wants)
        return [(np.asarray(w), kind or self.kind_of(np.asarray(w))) for w, kind in zip(wants, kinds)]

    def kind_of(self, want):
        """Returns the expected type of a result if the case gives none: that of the first tensor of the same category
        (complex numbers, floats or integers)."""
        if want.dtype == bool:
            return "bool"
        for category, otherwise in ((np.complexfloating, "complex64"), (np.floating, "float32"), (np.integer, "int64")):
            if np.issubdtype(want.dtype, category):
                return next((a.dtype.name for a in self.tensors() if np.issubdtype(a.dtype, category)), otherwise)


def widened(value):
    """Converts floats to float64 and complex numbers to complex128; other values stay unchanged."""
    if isinstance(value, list):
        return [widened(element) for element in value]
    kind = value.dtype.kind if isinstance(value, np.ndarray) else ""
    return value.astype({"f": "float64", "c": "complex128"}[kind]) if kind in ("f", "c") else value


def passed(array):
    """Converts complex numbers to pairs, the form in which callers pass them."""
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], -1)


def place_of(frame):
    """Returns the file of a case, and the line in it."""
    return {"file": os.path.basename(frame.f_code.co_filename), "line": frame.f_lineno}


def case(op, want, kind=None, ulps=2, near=0.0, many=False, **arguments):
    place = place_of(inspect.currentframe().f_back)
    CASES.append(Case(op, want, kind, ulps, near, many, place, arguments))


def graph(function):
    """Registers a function that adds the nodes of a graph to a builder."""
    GRAPHS.append(function)
    return function


random = np.random.default_rng(7)
X = random.standard_normal((3, 4)).astype("float32") * 2
Y = random.standard_normal((3, 4)).astype("float32")
P = np.abs(Y) + np.float32(0.1)
ROW, COLUMN = X[0].copy(), Y[:, :1].copy()
X3 = random.standard_normal((2, 3, 4)).astype("float32")
ONE = np.array(1.5, "float32")  # of rank 0
D = random.standard_normal((3, 4))  # float64
H = random.standard_normal((3, 4)).astype("float16")
B = random.integers(0, 2, (3, 4)).astype(bool)
B2 = random.integers(0, 2, (3, 4)).astype(bool)
I = random.integers(-9, 9, (3, 4))  # int64
I2 = random.integers(-9, 9, (3, 4))
J = random.integers(-9, 9, (3, 4)).astype("int32")
S = random.integers(-100, 100, (3, 4)).astype("int8")
U = random.integers(0, 255, (3, 4)).astype("uint8")
SEVEN = np.array(7)  # int64 of rank 0
inf, nan = math.inf, math.nan
LAST = 9223372036854775807
SPECIAL = np.array([nan, inf, -inf, 0.0, -0.0, 1e-40, -1e-40, 1.4e-45, 1.2e-38, 3e38, -3e38, 1, -1, 0.5, -0.5, 1.5,
                    2.5, -2.5, 1e-4, -1e-4, 3, 10, -10, 50, -50, 8388609, 0.99999994, -0.99999994], "float32")
ORDINARY = np.concatenate([np.linspace(-20, 20, 41), np.geomspace(1e-6, 80, 23), -np.geomspace(1e-6, 80, 23)])
ALL = np.concatenate([SPECIAL, ORDINARY.astype("float32")])
HOLES = np.array([[1, nan, 3], [-inf, inf, nan], [2, 2, 1], [0, -0.0, -1]], "float32")
TIES = np.array([[1, 3, 3], [2, 2, 1], [nan, 5, nan], [-1, -1, -1]], "float32")

IMAGE = random.standard_normal((2, 6, 3, 5)).astype("float32")
SIX, SIX2 = (random.standard_normal(6).astype("float32") for _ in range(2))


def softmax(x, dim, *_):
    e = np.exp(x - np.max(x, dim, keepdims=True))
    return e / np.sum(e, dim, keepdims=True)


def target_of(op):
    return op if op.startswith("transformers.") else "aten." + op


class Builder:
    """Adds nodes to a program, and computes their references."""

    def __init__(self, program, inputs):
        self.program, self.inputs, self.wanted = program, inputs, []

    def input(self, array, sizes=None):
        self.inputs.append(array)
        return self.program.input(f"x{len(self.program.inputs)}", array, sizes)

    def call(self, op, like, /, **arguments):
        place = place_of(inspect.currentframe().f_back)
        return self.program.node(target_of(op), like, **place, **arguments)

    def output(self, value, want, near=0.0):
        self.program.output(value)
        place = place_of(inspect.currentframe().f_back)
        self.wanted.append((Case("graph", want, None, 1, near, False, place, {}), want, want.dtype.name))


def run(*command):
    return subprocess.run(command, text=True, capture_output=True)


class File:
    """A .pt2 file with the graph of several cases."""

    def __init__(self, path, cases, graphs):
        self.path, self.inputs, self.wanted, self.failures = path, [], [], []
        program = self.program = Program()
        seen = {}
        for one in cases:
            self.add(one, seen)
        for function in graphs:
            builder = Builder(program, self.inputs)
            function(builder)
            self.wanted += builder.wanted
        program.save(path + ".pt2")

    def tensor(self, array, name, seen):
        """Returns the input for an array, one for all cases that share it. An argument named weight is a weight."""
        key = id(array), name == "weight"
        if key not in seen and name == "weight":
            seen[key] = self.program.weight(f"w{len(self.program.inputs)}", array), array
        elif key not in seen:
            seen[key] = self.program.input(f"x{len(self.program.inputs)}", array), array
            self.inputs.append(array)
        return seen[key][0]

    def add(self, one, seen):
        arguments = {}
        for name, value in one.arguments.items():
            if isinstance(value, np.ndarray):
                arguments[name] = self.tensor(value, name, seen)
            elif isinstance(value, list) and any(isinstance(element, np.ndarray) for element in value):
                arguments[name] = [None if a is None else self.tensor(a, name, seen) for a in value]
            else:
                arguments[name] = value
        in_place = one.op.split(".")[0].endswith("_") and (not one.op.startswith("__") or one.op.startswith("__i"))
        if in_place:
            arguments["self"] = self.program.node("aten.clone.default", one.arguments["self"], **one.place,
                                                  self=arguments["self"])
        wants = one.results()
        likes = [np.empty(want.shape, kind) for want, kind in wants]
        results = self.program.node(target_of(one.op), likes, **one.place, is_list=one.many, **arguments)
        for result, (want, kind) in zip(results, wants):
            # An op that works in place changes its argument.
            self.program.output(arguments["self"] if in_place else result)
            self.wanted.append((one, want, kind))

    def check(self):
        """Compiles the file and compares results at every ISA level; returns the number of comparisons."""
        library = self.path + ".so"
        compiled = run("attnc", self.path + ".pt2", "-o", library)
        if compiled.returncode != 0:
            self.failures.append(compiled.stderr.strip())
            return 0
        inputs = []
        for i, array in enumerate(self.inputs):
            np.save(f"{self.path}.{i}.npy", passed(array))
            inputs.append(f"--input={self.path}.{i}.npy")
        # The reference must know each op that attn-import writes; the outputs of ops are compared with numpy below.
        evaluated = run("attn-run", self.path + ".pt2", "--reference", "--target=x86-64", *inputs)
        if "that the reference implements" in evaluated.stderr:
            self.failures.append(f"{self.path}.pt2: {evaluated.stderr.strip()}")
        # The best level that this machine supports comes first.
        function = json.loads(run("attn-run", "--describe", "--json", library).stdout)["functions"][0]
        names = [level["level"] for level in function["levels"]]
        names = names[names.index(function["level"]):]
        count = 0
        for level in names:
            folder = f"{self.path}.{level}"
            os.makedirs(folder, exist_ok=True)
            called = run("attn-run", library, f"--level={level}", "--guard", f"--output-dir={folder}", *inputs)
            if called.returncode != 0:
                self.failures.append(f"{library} on {level}: {called.stderr.strip()}")
                continue
            for i, (one, want, kind) in enumerate(self.wanted):
                self.compare(np.load(f"{folder}/{i}.npy"), one, want, kind, level)
                count += 1
        return count

    def compare(self, got, one, want, kind, level):
        complaint = difference(got, want, kind, one.ulps, one.near)
        if complaint:
            arguments = {k: v for k, v in one.arguments.items() if not isinstance(v, (np.ndarray, list))}
            place = "{file}:{line}".format(**one.place)
            self.failures.append(f"{place}: {one.op} {arguments or ''} on {level}: {complaint}")


def difference(got, want, kind, ulps, near):
    """Returns a description of what is wrong with a result, or an empty string."""
    if np.dtype(kind).kind == "c":
        kind, want = {"complex64": "float32", "complex128": "float64"}[kind], passed(want)
    if got.dtype.name != kind or got.shape != want.shape:
        return f"expected {kind}{list(want.shape)}, got {got.dtype.name}{list(got.shape)}"
    with np.errstate(all="ignore"):
        if got.dtype.kind != "f":
            wrong = got != want.astype(kind)
        else:
            rounded = want.astype(kind)
            finite = np.abs(want[np.isfinite(want)])
            allowed = ulps * np.spacing(np.abs(rounded)).astype("float64") + near * finite.max(initial=0)
            same = (got == rounded) | (np.isnan(got) & np.isnan(want))
            # NaN and infinities are never close to a number.
            wrong = ~same & ~(np.abs(got.astype("float64") - want) <= np.where(np.isfinite(rounded), allowed, 0))
    if not wrong.any():
        return ""
    at = np.argwhere(wrong)[0]
    return (f"{wrong.sum()} of {wrong.size} elements differ, at {list(at)} expected {want[tuple(at)]!r}, "
            f"got {got[tuple(at)]!r}")
