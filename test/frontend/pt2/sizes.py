"""sizes.py FOLDER: compiles models with computed sizes and with conditions on sizes, and calls them with many sizes.

Results are compared with numpy. A call that violates a condition must return an error with the condition and the sizes.
"""

import itertools
import os
import subprocess
import sys

import numpy as np

from program import DType, Program, symbol

FLOAT = DType("float32")
FAILURES = []


def run(*command):
    return subprocess.run(command, text=True, capture_output=True)


class Model:
    """A program that the first call compiles."""

    def __init__(self, path):
        self.path, self.program, self.library = path, Program(), None

    def input(self, name, sizes):
        return self.program.input(name, np.zeros([n if isinstance(n, int) else 4 for n in sizes], "float32"), sizes)

    def node(self, target, sizes, /, **arguments):
        like = np.zeros([n if isinstance(n, int) else 4 for n in sizes], "float32")
        return self.program.node(target, like, symbolic=sizes, **arguments)

    def compile(self):
        self.program.save(self.path + ".pt2")
        return run("attnc", self.path + ".pt2", "-o", self.path + ".so", "--target=native")

    def call(self, *inputs):
        if not self.library:
            compiled = self.compile()
            if compiled.returncode:
                FAILURES.append(f"{self.path}: {compiled.stderr}")
                return compiled, []
            self.library = self.path + ".so"
        os.makedirs(self.path, exist_ok=True)
        files = []
        for i, array in enumerate(inputs):
            np.save(f"{self.path}/in{i}.npy", array)
            files.append(f"--input={self.path}/in{i}.npy")
        called = run("attn-run", self.library, "--guard", f"--output-dir={self.path}", *files)
        count = 0 if called.returncode else len(self.program.outputs)
        return called, [np.load(f"{self.path}/{i}.npy") for i in range(count)]

    def gives(self, inputs, wanted):
        called, results = self.call(*inputs)
        if called.returncode:
            FAILURES.append(f"{self.path} {[i.shape for i in inputs]}: {called.stderr}")
        for got, want in zip(results, wanted):
            if got.shape != want.shape or not np.array_equal(got, want):
                FAILURES.append(f"{self.path} {[i.shape for i in inputs]}: expected {want.shape} {want}, got {got.shape} {got}")

    def refuses(self, inputs, message):
        called, _ = self.call(*inputs)
        if called.returncode == 0 or message not in called.stderr:
            FAILURES.append(f"{self.path} {[i.shape for i in inputs]}: expected '{message}', got '{called.stderr.strip()}'")

    def does_not_compile(self, message):
        compiled = self.compile()
        if compiled.returncode == 0 or message not in compiled.stderr:
            FAILURES.append(f"{self.path}: expected '{message}', got '{compiled.stderr.strip()}'")


def array(*shape):
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def sum_of(model, guards, first=("a", 3), second=("b", 3), names=("x", "y")):
    """x + y, where guards say that their sizes agree."""
    x, y = model.input(names[0], first), model.input(names[1], second)
    model.program.guards = guards
    model.program.output(model.node("aten.add.Tensor", first, self=x, other=y))


def equal_after_division(model):
    sum_of(model, ["(4*L['y'].size()[0]) == (4*L['x'].size()[0])", "(64*L['x'].size()[0]) % (64*L['y'].size()[0]) == 0",
                   "L['x'].size()[0] % (4*L['y'].size()[0]) != 0"])
    for n in 0, 1, 5:
        model.gives([array(n, 3), array(n, 3)], [array(n, 3) * 2])
    model.refuses([array(2, 3), array(3, 3)],
                  "argument 'y' expected size 2 in dimension 0, as in dimension 0 of 'x', got 3")


def equal_by_a_common_symbol(model):
    """From the guard 64*k.1*k.0 == 64*k.1*q.0, attn concludes that k.0 equals q.0, even if k.1 is 0."""
    q, k = model.input("q", ["a", 3]), model.input("k", ["b", "c"])
    model.program.guards = ["64*L['k'].size()[1]*L['k'].size()[0] == 64*L['k'].size()[1]*L['q'].size()[0]",
                            "(64*L['k'].size()[1]*L['k'].size()[0]) % (64*L['q'].size()[0]) == 0"]
    model.program.output(model.node("aten.cat.default", ["a", f"Add(Integer(3), {symbol('c')})"], tensors=[q, k], dim=1))
    for n, m in (2, 5), (0, 1), (1, 0):
        model.gives([array(n, 3), array(n, m)], [np.concatenate([array(n, 3), array(n, m)], 1)])
    model.refuses([array(2, 3), array(3, 3)], "argument 'k' expected size 2 in dimension 0")


def equal_to_a_number(model):
    sum_of(model, ["L['y'].size()[0] == 2", "L['x'].size()[0] == L['y'].size()[0]"])
    model.gives([array(2, 3), array(2, 3)], [array(2, 3) * 2])
    model.refuses([array(3, 3), array(3, 3)], "argument 'x' expected size 2 in dimension 0, got 3")


def equal_to_a_sum(model):
    """The length of a mask is the sum of the length of the input and the number of tokens before the input."""
    x, past, mask = (model.input(name, [size, 2]) for name, size in (("x", "a"), ("past", "b"), ("mask", "c")))
    model.program.guards = ["L['x'].size()[0] + L['past'].size()[0] == L['mask'].size()[0]"]
    both = [f"Add({symbol('a')}, {symbol('b')})", 2]
    whole = model.node("aten.cat.default", both, tensors=[past, x])
    model.program.output(model.node("aten.add.Tensor", both, self=whole, other=mask))
    for n, m in itertools.product((0, 1, 4), (0, 1, 3)):
        model.gives([array(n, 2), array(m, 2), array(n + m, 2)], [np.concatenate([array(m, 2), array(n, 2)]) + array(n + m, 2)])
    model.refuses([array(2, 2), array(1, 2), array(4, 2)],
                  "forward: expected sizes with mask.0 == past.0 + x.0, got mask.0 = 4, past.0 = 1, x.0 = 2")


def conditions(model):
    x = model.input("x", ["a", "b"])
    model.program.guards = ["L['x'].size()[1] != 64", "L['x'].size()[0] == 3 or L['x'].size()[1] % L['x'].size()[0] == 0",
                            "L['x'].size()[1]*L['x'].size()[0] < 100 and 1 < L['x'].size()[1] <= 70"]
    model.program.output(model.node("aten.mul.Tensor", ["a", "b"], self=x, other=2))
    model.gives([array(3, 7)], [array(3, 7) * 2])
    model.gives([array(4, 8)], [array(4, 8) * 2])
    model.refuses([array(1, 64)], "forward: expected sizes with x.1 != 64, got x.1 = 64")
    model.refuses([array(4, 7)], "forward: expected sizes with x.0 == 3 or x.1 % x.0 == 0, got x.0 = 4, x.1 = 7")
    model.refuses([array(0, 7)], "forward: expected sizes with x.0 == 3 or x.1 % x.0 == 0, got x.0 = 0, x.1 = 7")
    model.refuses([array(3, 50)], "forward: expected sizes with x.1*x.0 < 100, got x.1 = 50, x.0 = 3")
    model.refuses([array(1, 71)], "argument 'x' expected size in [2, 70] in dimension 1, got 71")
    described = run("attn-run", "--describe", model.library).stdout
    for line in "x.0 in [0, 4096]", "only where x.1 != 64":
        if line not in described:
            FAILURES.append(f"{model.path}: expected '{line}' in\n{described}")


def small_sizes(model):
    """The ranges of torch begin at 2, but only guards exclude the sizes 0 and 1."""
    x, y, z = model.input("x", ["a"]), model.input("y", ["b"]), model.input("z", ["c"])
    model.program.guards = ["L['x'].size()[0] != 1", "L['y'].size()[0] > 1",
                            "L['z'].size()[0]*L['x'].size()[0] != L['x'].size()[0]"]
    for value, size in (x, "a"), (y, "b"), (z, "c"):
        model.program.output(model.node("aten.mul.Tensor", [size], self=value, other=2))
    for n, m, k in (5, 2, 0), (2, 3, 2):
        model.gives([array(n), array(m), array(k)], [array(n) * 2, array(m) * 2, array(k) * 2])
    model.refuses([array(1), array(2), array(2)], "forward: expected sizes with x.0 != 1, got x.0 = 1")
    for n in 0, 1:
        model.refuses([array(2), array(n), array(2)],
                      f"argument 'y' expected size in [2, 4096] in dimension 0, got {n}")
    for n, k in (2, 1), (0, 2):
        model.refuses([array(n), array(2), array(k)],
                      f"forward: expected sizes with z.0*x.0 != x.0, got z.0 = {k}, x.0 = {n}")


def beyond_64_bits(model):
    """a*b*c, which exceeds 64 bits, is not less than sums that fit in 64 bits."""
    x, _, _ = (model.input(name, [size, 0]) for name, size in (("x", "a"), ("y", "b"), ("z", "c")))
    for size in "abc":
        model.program.ranges[size] = {"min_val": 1 << 30, "max_val": None}
    a, b, c = (f"L['{name}'].size()[0]" for name in "xyz")
    model.program.guards = [f"{a}*{b}*{c} < 7*{a}*{b} + 7*{a}*{c}"]
    model.program.output(model.node("aten.neg.default", ["a", 0], self=x))
    model.refuses([array(1 << 30, 0)] * 3, "forward: expected sizes with x.0*y.0*z.0 < 7*x.0*y.0 + 7*x.0*z.0, got")


def nested_names(model):
    """forward(x, pair, table, *, options) with pair = (y, z) and table = {"a b": u, 3: v}."""
    leaf = {"type": None, "context": None, "children_spec": []}
    nest = lambda kind, context, *children: {"type": kind, "context": context, "children_spec": list(children)}
    positional = nest("builtins.tuple", "null", leaf, nest("builtins.tuple", "null", leaf, leaf),
                      nest("builtins.dict", '["a b", 3]', leaf, leaf))
    keywords = nest("builtins.dict", '["options"]', nest("builtins.list", "null", leaf))
    model.program.tree, model.program.names = nest("builtins.tuple", "null", positional, keywords), ["x", "pair", "table", "options"]
    names = ["x", "pair_0", "pair_1", "table_a_b", "table_3", "options_0"]
    values = [model.input(name, [f"s{i}"]) for i, name in enumerate(names)]
    model.program.guards = ["L['pair'][1].size()[0] == L['x'].size()[0]", "L['table']['a b'].size()[0] == L['x'].size()[0]",
                            "L['table'][3].size()[0] == L['pair'][1].size()[0]",
                            "L['options'][0].size()[0] == L['table'][3].size()[0]", "L['pair'][0].size()[0] == 1"]
    total = values[0]
    for value in values[2:]:
        total = model.node("aten.add.Tensor", ["s0"], self=total, other=value)
    model.program.output(total)
    model.gives([array(7), array(1), *[array(7)] * 4], [array(7) * 5])
    model.refuses([array(7), array(1), array(7), array(7), array(6), array(7)], "argument 'table_3' expected size 7")


def starred_names(model):
    """forward(*x)"""
    sum_of(model, ["L['x'][0].size()[0] == L['x'][1].size()[0]"], names=("x_0", "x_1"))
    model.gives([array(2, 3), array(2, 3)], [array(2, 3) * 2])
    model.refuses([array(2, 3), array(3, 3)], "argument 'x_1' expected size 2 in dimension 0")


def multiples(model):
    """The sizes of inputs are multiples of a symbol that is not itself the size of an input."""
    s = symbol("s")
    x, y = model.input("x", [3, f"Mul(Integer(2), {s})"]), model.input("y", [f"Add(Mul(Integer(3), {s}), Integer(1))"])
    model.program.ranges["s"] = {"min_val": 2, "max_val": 50}
    model.program.guards = ["((3*L['x'].size()[1]) % 2) == 0", "(((3*L['x'].size()[1]) // 2) + 1) == L['y'].size()[0]",
                            "(L['x'].size()[1] // 2) <= L['x'].size()[1]"]
    flat = model.node("aten.reshape.default", [f"Mul(Integer(6), {s})"], self=x, shape=[-1])
    model.program.output(model.node("aten.cat.default", [f"Add(Mul(Integer(9), {s}), Integer(1))"], tensors=[flat, y]))
    model.program.output(model.node("aten.slice.Tensor", [3, "s"], self=x, dim=1, start=0, end=half(model, x)))
    for n in 0, 1, 5:
        first, second = array(3, 2 * n), array(3 * n + 1)
        model.gives([first, second], [np.concatenate([first.ravel(), second]), first[:, :n]])
    model.refuses([array(3, 5), array(7)], "expected sizes with x.1 == 2*(x.1 // 2), got x.1 = 5")
    model.refuses([array(3, 4), array(8)], "expected sizes with y.0 == 1 + 3*(x.1 // 2), got y.0 = 8, x.1 = 4")
    model.refuses([array(3, 102), array(154)], "argument 'x' expected size in [0, 100] in dimension 1, got 102")


def half(model, x):
    size = model.program.size(x, 1)
    return model.program.arithmetic("floordiv", "FloorDiv({a}, {b})", a=size, b=2)


# Functions of sizes: the text of sympy, the right operand (None: the size of y), and the function in Python.
FUNCTIONS = {
    "_operator.mul": ("Mul({a}, {b})", None, lambda a, b: a * b),
    "_operator.add": ("Add({a}, {b})", 1, lambda a, b: a + b),
    "_operator.sub": ("Add({a}, Mul(Integer(-1), {b}))", -3, lambda a, b: a - b),
    "_operator.floordiv": ("FloorDiv({a}, {b})", 3, lambda a, b: a // b),
    "_operator.mod": ("PythonMod({a}, {b})", 3, lambda a, b: a % b),
    "_operator.pow": ("Pow({a}, {b})", 2, lambda a, b: a**b),
    "torch.sym_max": ("Max({a}, {b})", None, max),
    "torch.sym_min": ("Min({a}, {b})", None, min),
}


def functions(model):
    """Every function of sizes gives the number of elements of a result."""
    x, y = model.input("x", ["a"]), model.input("y", ["b"])
    a, b = model.program.size(x, 0), model.program.size(y, 0)
    for name, (text, right, _) in FUNCTIONS.items():
        size = model.program.arithmetic(name.split(".")[1], text, a=a, b=b if right is None else right)
        sizes = [model.program.symbols[size.name]["as_expr"]["expr_str"]]
        model.program.output(model.node("aten.arange.default", sizes, end=size, dtype=FLOAT))
    for n, m in itertools.product((0, 1, 2, 7), (0, 1, 5)):
        model.gives([array(n), array(m)],
                    [array(compute(n, m if right is None else right)) for _, right, compute in FUNCTIONS.values()])


def numbers_of_sizes(model):
    """Arguments of ops are numbers that the graph computes from sizes, instead of constants."""
    x = model.input("x", ["a"])
    integer = model.program.node("aten.to.dtype", np.zeros(4, "int32"), symbolic=["a"], self=x, dtype=DType("int32"))
    a = model.program.size(x, 0)
    half = model.program.arithmetic("floordiv", "FloorDiv({a}, {b})", a=a, b=2)
    less = model.program.arithmetic("sub", "Add({a}, Mul(Integer(-1), {b}))", a=half, b=5)
    quotient = model.program.real("_operator.truediv", a=a, b=4)
    root = model.program.real("_operator.mul", a=model.program.real("torch.sym_float", a=a), b=quotient)
    root = model.program.real("_operator.pow", a=root, b=0.5)  # of a * a / 4
    inverse = model.program.real("_operator.pow", a=model.program.real("_operator.add", a=root, b=1), b=-1.0)
    negative = model.program.real("_operator.neg", a=model.program.real("torch._sym_sqrt", a=model.program.real(
        "_operator.sub", a=17.0, b=1.0)))
    wants = []

    def output(want, op, kind="float32", **arguments):
        model.program.output(model.program.node(f"aten.{op}", np.zeros(4, kind), symbolic=["a"], **arguments))
        wants.append(lambda n, x: want(n, x).astype(kind))

    output(lambda n, x: x + (n // 2 - 5), "add.Tensor", self=x, other=less)
    output(lambda n, x: x + 3 * n, "add.Tensor", self=x, other=a, alpha=3)
    output(lambda n, x: n // 2 - 5 - x, "rsub.Scalar", self=x, other=less)
    output(lambda n, x: x * n, "mul.Tensor", "int32", self=integer, other=a)
    output(lambda n, x: x // n, "floor_divide.default", "int32", self=integer, other=a)
    output(lambda n, x: x * (n / 4), "mul.Tensor", self=integer, other=quotient)
    output(lambda n, x: x >= n // 2, "ge.Scalar", "bool", self=x, other=half)
    output(lambda n, x: np.where(x >= n // 2, n // 2 - 5, x), "where.ScalarSelf",
           condition=model.program.node("aten.ge.Scalar", np.zeros(4, "bool"), symbolic=["a"], self=x, other=half),
           self=less, other=x)
    output(lambda n, x: np.clip(x, n // 2 - 5, n // 2), "clamp.default", self=x, min=less, max=half)
    output(lambda n, x: np.full(n, n / 2), "full.default", size=[a], fill_value=root)
    output(lambda n, x: np.full(n, n // 2 - 5), "full_like.default", self=x, fill_value=less)
    output(lambda n, x: np.full(n, n // 2), "fill.Scalar", "int32", self=integer, value=half)
    output(lambda n, x: x * -4, "mul.Tensor", self=x, other=negative)
    output(lambda n, x: x * np.float32(1 / (n / 2 + 1)), "mul.Tensor", self=x, other=inverse)
    output(lambda n, x: np.arange(n - 1, -1, -1), "arange.start_step", "int64", end=-1, step=-1,
           start=model.program.arithmetic("sub", "Add({a}, Mul(Integer(-1), {b}))", a=a, b=1))
    output(lambda n, x: np.arange(-n, 0), "arange.start", start=model.program.arithmetic(
        "neg", "Mul(Integer(-1), {a})", a=a), end=0, dtype=FLOAT)
    for n in 1, 2, 9, 16:
        model.gives([array(n)], [want(n, array(n)) for want in wants])
    model.refuses([array(0)], "argument 'x' expected size in [1, 4096] in dimension 0, got 0")


def known_numbers(model):
    """An op that needs a constant as an argument does not accept a number that is computed from a size."""
    x = model.input("x", ["a"])
    factor = model.program.real("torch.sym_float", a=model.program.size(x, 0))
    model.program.output(model.node("aten.leaky_relu.default", ["a"], self=x, negative_slope=factor))
    model.does_not_compile("expected 'negative_slope' of 'torch.ops.aten.leaky_relu.default' to be a number, got 'real_1'")


def parts_of_sizes(model):
    """Parts whose bounds and number of elements depend on other sizes."""
    x, y = model.input("x", ["a", 2]), model.input("y", ["b", 2])
    a, b = model.program.size(x, 0), model.program.size(y, 0)
    back = model.program.arithmetic("neg", "Mul(Integer(-1), {a})", a=b)
    sum_ab = f"Add({symbol('a')}, {symbol('b')})"
    # x[-b:], x[-b], and x in runs of b.
    model.program.output(model.node("aten.slice.Tensor", ["b", 2], self=x, dim=0, start=back))
    model.program.output(model.node("aten.select.int", [2], self=x, dim=0, index=back))
    rest = model.program.arithmetic("sub", "Add({a}, Mul(Integer(-1), {b}))", a=a, b=b)
    rest_of_a = f"Add({symbol('a')}, Mul(Integer(-1), {symbol('b')}))"
    for op, arguments in (("split.Tensor", {"split_size": b}), ("split_with_sizes.default", {"split_sizes": [b, rest]})):
        runs = model.program.node(f"aten.{op}", [np.zeros((4, 2), "float32")] * 2, symbolic=[["b", 2], [rest_of_a, 2]],
                                  is_list=True, self=x, dim=0, **arguments)
        for run in runs:
            model.program.output(run)
    model.program.output(model.node("aten.roll.default", ["a", 2], self=x, shifts=[b], dims=[0]))
    model.program.output(model.node("aten.roll.default", ["a", 2], self=x, shifts=[back], dims=[0]))
    model.program.output(model.node("aten.roll.default", ["a", 2], self=x, shifts=[-1], dims=[0]))
    model.program.output(model.node("aten.constant_pad_nd.default", ["a", 2], self=y, pad=[0, 0, 0, rest], value=7))
    model.program.output(model.node("aten.unfold.default", [f"Add({symbol('a')}, Integer(-1))", 2, 2], self=x, dimension=0,
                                    size=2, step=1))
    values, _ = model.program.node("aten.sort.default", [np.zeros((4, 2), "float32"), np.zeros((4, 2), "int64")], self=x,
                                   symbolic=[["a", 2], ["a", 2]], dim=0, descending=True)
    model.program.output(values)
    for n, m in (5, 3), (4, 2), (2, 1), (6, 5):
        first, second = array(n, 2), array(m, 2)
        padded = np.concatenate([second, np.full((n - m, 2), 7, "float32")])
        pairs = np.stack([first[:-1], first[1:]], 2)
        model.gives([first, second], [first[-m:], first[-m], first[:m], first[m:], first[:m], first[m:], np.roll(first, m, 0),
                                      np.roll(first, -m, 0), np.roll(first, -1, 0), padded, pairs, first[::-1]])
    model.refuses([array(5, 2), array(0, 2)], "argument 'y' expected size in [1, 4096] in dimension 0, got 0")
    model.refuses([array(3, 2), array(4, 2)], "forward: expected a size x.0 + -1*y.0 in [0")
    model.refuses([array(5, 2), array(2, 2)], "forward: expected sizes with x.0 <= 2*y.0, got x.0 = 5, y.0 = 2")


def convolutions(model):
    """Convolutions of images of dynamic size, one of them of patches, which is a single product."""
    x = model.input("x", ["n", 2, "h", "w"])
    h, w = symbol("h"), symbol("w")
    weight = array(3, 2, 2, 2)
    kernel = model.program.weight("kernel", weight)
    sizes = ["n", 3, f"FloorDiv({h}, Integer(2))", f"FloorDiv({w}, Integer(2))"]
    model.program.output(model.node("aten.conv2d.default", sizes, input=x, weight=kernel, stride=[2, 2]))
    sizes = ["n", 3, f"Add({h}, Integer(1))", f"Add({w}, Integer(1))"]
    model.program.output(model.node("aten.conv2d.default", sizes, input=x, weight=kernel, padding=[1, 1]))
    for n, height, width in (1, 2, 2), (2, 5, 4), (0, 3, 3), (3, 7, 9):
        image = array(n, 2, height, width) % 5
        wide = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(2, 3))
        sums = [np.einsum("ncijab,ocab->noij", windows(x), weight).astype("float32") for x in (image, wide)]
        model.gives([image], [sums[0][:, :, ::2, ::2], sums[1]])
    model.refuses([array(1, 2, 1, 4)], "argument 'x' expected size in [2, 4096] in dimension 2, got 1")


def poolings(model):
    """Means over windows, over a whole image and over thirds of an image, and an interpolation to twice the size."""
    x = model.input("x", ["n", 2, "h", "w"])
    h, w = symbol("h"), symbol("w")
    half = ["n", 2, f"FloorDiv({h}, Integer(2))", f"FloorDiv({w}, Integer(2))"]
    model.program.output(model.node("aten.avg_pool2d.default", half, self=x, kernel_size=[2, 2]))
    model.program.output(model.node("aten.adaptive_avg_pool2d.default", ["n", 2, 1, 1], self=x, output_size=[1, 1]))
    model.program.output(model.node("aten.adaptive_avg_pool2d.default", ["n", 2, 3, 1], self=x, output_size=[3, 1]))
    double = ["n", 2, f"Mul(Integer(2), {h})", f"Mul(Integer(2), {w})"]
    model.program.output(model.node("aten.upsample_nearest2d.vec", double, input=x, scale_factors=[2.0, 2.0]))
    for n, height, width in (1, 2, 2), (2, 6, 4), (3, 8, 2), (0, 4, 4):
        image = array(n, 2, height, width)
        pairs = image.reshape(n, 2, height // 2, 2, width // 2, 2).mean((3, 5))
        begins = [i * height // 3 for i in range(3)]
        ends = [-(-(i + 1) * height // 3) for i in range(3)]
        thirds = [image[:, :, b:e].astype("float64").mean((2, 3)) for b, e in zip(begins, ends)]
        model.gives([image], [pairs, image.mean((2, 3), keepdims=True), np.stack(thirds, 2)[..., None].astype("float32"),
                              image.repeat(2, 2).repeat(2, 3)])
    model.refuses([array(1, 2, 1, 2)], "argument 'x' expected size in [2, 4096] in dimension 2, got 1")


def lengths_of_attention(model):
    """torch writes no guards that require equal numbers of keys and values, or equal batch sizes."""
    names = {"query": "a", "key": "b", "value": "c"}
    arguments = {name: model.input(name, [f"n{size}", size, 2]) for name, size in names.items()}
    out = model.node("aten.scaled_dot_product_attention.default", ["na", "a", 2], **arguments, scale=0.0)
    model.program.output(out)
    for n, queries, keys in (2, 3, 4), (1, 1, 1), (3, 5, 2):
        value = array(n, keys, 2)
        want = np.repeat(value.mean(1, keepdims=True), queries, 1)
        model.gives([array(n, queries, 2), array(n, keys, 2), value], [want])
    model.refuses([array(1, 3, 2), array(1, 4, 2), array(1, 5, 2)], "argument 'value' expected size 4 in dimension 1")
    model.refuses([array(1, 3, 2), array(2, 4, 2), array(1, 4, 2)], "argument 'key' expected size 1 in dimension 0")


def multiples_by_guard(model):
    """A guard says that a size is a multiple of 4, so a view in groups of 4 is valid for every accepted size."""
    x = model.input("x", ["a", 2])
    model.program.guards = ["2*L['x'].size()[0] == 8*(L['x'].size()[0] // 4)"]
    quarter = model.program.arithmetic("floordiv", "FloorDiv({a}, {b})", a=model.program.size(x, 0), b=4)
    model.program.output(model.node("aten.view.default", [f"FloorDiv({symbol('a')}, Integer(4))", 4, 2], self=x,
                                    size=[quarter, 4, 2]))
    for n in 0, 4, 12:
        model.gives([array(n, 2)], [array(n, 2).reshape(n // 4, 4, 2)])
    model.refuses([array(6, 2)], "expected sizes with x.0 == 4*(x.0 // 4), got x.0 = 6")


def strides_of_sizes(model):
    """A transposed matrix and the columns after the first, by strides and an offset that depend on sizes."""
    x = model.input("x", ["a", "b"])
    a, b = model.program.size(x, 0), model.program.size(x, 1)
    rest = model.program.arithmetic("sub", "Add({a}, Mul(Integer(-1), {b}))", a=b, b=1)
    model.program.output(model.node("aten.as_strided.default", ["b", "a"], self=x, size=[b, a], stride=[1, b]))
    model.program.output(model.node("aten.as_strided.default", ["a", f"Add({symbol('b')}, Integer(-1))"], self=x,
                                    size=[a, rest], stride=[b, 1], storage_offset=1))
    for n, m in (3, 4), (1, 2), (5, 2):
        model.gives([array(n, m)], [array(n, m).T, array(n, m)[:, 1:]])
    model.refuses([array(3, 1)], "argument 'x' expected size in [2, 4096] in dimension 1, got 1")
    model.refuses([array(0, 3)], "argument 'x' expected size in [1, 4096] in dimension 0, got 0")


def diagonals(model):
    """Diagonals of matrices whose sizes are known only at the call; a write to a diagonal needs an element."""
    x = model.input("x", ["a", "b"])
    a, b = symbol("a"), symbol("b")
    model.program.output(model.node("aten.diagonal.default", [f"Max(Integer(0), Min({a}, Add({b}, Integer(-1))))"], self=x, offset=1))
    model.program.output(model.node("aten.diagonal.default", [f"Min({a}, {b})"], self=x))
    for n, m in (3, 5), (5, 3), (4, 1), (0, 2):
        model.gives([array(n, m)], [array(n, m).diagonal(1), array(n, m).diagonal()])
    model.refuses([array(3, 0)], "argument 'x' expected size in [1, 4096] in dimension 1, got 0")


def slices_that_sizes_limit(model):
    """x[:8] of a length that may be less than 8, and x[3:]."""
    x = model.input("x", ["a", 2])
    s = symbol("a")
    for start, end, sizes in (0, 8, f"Min(Integer(8), {s})"), (3, None, f"Add({s}, Mul(Integer(-1), Min(Integer(3), {s})))"):
        model.program.output(model.node("aten.slice.Tensor", [sizes, 2], self=x, dim=0, start=start, end=end))
    for n in 0, 1, 3, 8, 20:
        model.gives([array(n, 2)], [array(n, 2)[:8], array(n, 2)[3:]])


def add_last_rows(model):
    """x + table[max(64 - len(x), 0):]"""
    x, table = model.input("x", ["a", 2]), model.program.weight("table", array(64, 2))
    rest = model.program.arithmetic("sub", "Add({a}, Mul(Integer(-1), {b}))", a=64, b=model.program.size(x, 0))
    start = model.program.arithmetic("sym_max", "Max({a}, {b})", a=rest, b=0)
    size = f"Add(Integer(64), Mul(Integer(-1), {model.program.symbols[start.name]['as_expr']['expr_str']}))"
    rows = model.node("aten.slice.Tensor", [size, 2], self=table, dim=0, start=start)
    model.program.output(model.node("aten.add.Tensor", ["a", 2], self=x, other=rows))


def decided_by_ranges(model):
    """A slice of the last rows of a table that is longer than any input is valid because of the ranges of sizes."""
    add_last_rows(model)
    model.program.ranges["a"] = {"min_val": 4, "max_val": 48}
    for n in 4, 7, 48:
        model.gives([array(n, 2)], [array(n, 2) + array(64, 2)[-n:]])
    model.refuses([array(49, 2)], "argument 'x' expected size in [4, 48] in dimension 0, got 49")


def limited_by_broadcasting(model):
    """A table that is cut to the length of the input can only be added if it is at least as long."""
    add_last_rows(model)
    for n in 1, 7, 64:
        model.gives([array(n, 2)], [array(n, 2) + array(64, 2)[-n:]])
    model.refuses([array(65, 2)], "argument 'x' expected size in [0, 64] in dimension 0, got 65")


def halves_for_any_size(model):
    """Halves of sizes, rounded up, and a quotient of sizes, whose divisor must not be 0."""
    x, y = model.input("x", ["a", "b"]), model.input("y", ["c"])
    a, b, c = map(symbol, "abc")
    model.program.guards = ["L['x'].size()[0]*L['x'].size()[1] % L['y'].size()[0] == 0"]
    up = f"CeilToInt(IntTrueDiv({a}, Integer(2)))"
    model.program.output(model.node("aten.slice.Tensor", [up, "b"], self=x, dim=0, step=2))
    size = model.program.arithmetic("mul", "Mul({a}, {b})", a=model.program.size(x, 0), b=model.program.size(x, 1))
    quotient = model.program.arithmetic("floordiv", "FloorDiv({a}, {b})", a=size, b=model.program.size(y, 0))
    sizes = [f"FloorDiv(Mul({a}, {b}), {c})"]
    model.program.output(model.node("aten.arange.default", sizes, end=quotient, dtype=FLOAT))
    for n, m, k in (6, 2, 3), (5, 2, 1), (1, 4, 2), (0, 3, 2):
        model.gives([array(n, m), array(k)], [array(n, m)[::2], array(n * m // k)])
    model.refuses([array(3, 3), array(2)], "expected sizes with x.0*x.1 % y.0 == 0, got x.0 = 3, x.1 = 3, y.0 = 2")
    model.refuses([array(3, 3), array(0)], "argument 'y' expected size in [1, 4096] in dimension 0, got 0")


def chain_of_quotients(model):
    """Each size contains the previous size twice, so the formula of the last size contains the first one 2^23 times."""
    inputs = [model.input(f"x{i}", [f"s{i}"]) for i in range(24)]
    names = [f"L['x{i}'].size()[0]" for i in range(24)]
    model.program.guards = [f"{b} == ({a} + 5) // ({a} + 2)" for a, b in itertools.pairwise(names)]
    model.program.output(model.node("aten.neg.default", ["s23"], self=inputs[23]))
    sizes = [4] + [1, 2] * 12
    model.gives([array(n) for n in sizes[:24]], [-array(1)])
    called, _ = model.call(*(array(n) for n in sizes[:23] + [3]))
    if called.returncode == 0 or "got x" not in called.stderr:
        FAILURES.append(f"{model.path}: expected a refusal, got {called.stderr or 'none'}")


def tower_of_powers(model):
    sum_of(model, ["((((L['x'].size()[0]**16)**16)**16)**16)**16 != 7", "L['y'].size()[0] == L['x'].size()[0]"])
    model.does_not_compile("expected conditions on the sizes of inputs, got '((((L['x'].size()[0]**16)**16)**16)**16)**16")


def never(model):
    sum_of(model, ["L['x'].size()[0] > 5000", "L['y'].size()[0] == L['x'].size()[0]"])
    model.does_not_compile("expected a graph that is valid for some sizes, got the condition 'L['x'].size()[0] > 5000'")


def not_understood(model):
    sum_of(model, ["L['x'].stride()[0] == 3", "L['y'].size()[0] == L['x'].size()[0]"])
    model.does_not_compile("expected conditions on the sizes of inputs, got 'L['x'].stride()[0] == 3': export again")


def of_no_input(model):
    sum_of(model, ["L['z'].size()[0] == 3", "L['y'].size()[0] == L['x'].size()[0]"])
    model.does_not_compile("expected conditions on the sizes of inputs, got 'L['z'].size()[0] == 3'")


def two_unknown_symbols(model):
    x = model.input("x", [f"Mul({symbol('s')}, {symbol('t')})"])
    model.program.output(x)
    model.does_not_compile("expected each size of 'x' to be a number or a symbol, or to follow from other inputs, got s*t")


def main(folder):
    os.makedirs(folder, exist_ok=True)
    tests = [equal_after_division, equal_by_a_common_symbol, equal_to_a_number, equal_to_a_sum, conditions,
             small_sizes, beyond_64_bits, nested_names, starred_names, multiples, functions, numbers_of_sizes,
             known_numbers, parts_of_sizes, convolutions, poolings, lengths_of_attention, multiples_by_guard, slices_that_sizes_limit,
             decided_by_ranges, halves_for_any_size, chain_of_quotients, tower_of_powers, never, not_understood, of_no_input,
             two_unknown_symbols]
    for test in tests:
        test(Model(f"{folder}/{test.__name__}"))
    print("\n".join(FAILURES))
    sys.exit(bool(FAILURES))


if __name__ == "__main__":
    main(*sys.argv[1:])
