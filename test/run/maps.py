"""maps.py [--draws=N] [--seed=S] [--only=I] [--passes] [--keep=DIR]: compares random linalg modules with NumPy.

Each draw makes a module that another producer might write. Its ops have maps with constants, sums of loops, repeated
and missing loops; results in another order of dimensions, results with dimensions of size 1 that are written at index 0,
and results that nothing reads. It also has products by name and by map, convolutions, and softmax and attention in several spellings. The module runs through all
stages, and its results must be close to those of NumPy in float64. A file that is refused needs a message of one line;
the reasons are counted. With --passes, each pass of attn also runs alone on the module, and must not crash.
"""
import argparse
import collections
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np

NEGATIVE = {"-inf": "0xFF800000", "lowest": "-3.40282347E+38"}


class Module:
    def __init__(self, rng):
        self.rng, self.lines, self.arguments, self.values, self.count = rng, [], [], {}, 0
        self.read = set()  # the values that some op reads
        for _ in range(rng.randint(1, 3)):
            self.argument([rng.choice([1, 2, 3, 4, 5]) for _ in range(rng.randint(1, 4))])
        for _ in range(rng.randint(2, 7)):
            rng.choice([self.elementwise, self.elementwise, self.reduction, self.pair, self.view, self.softmax, self.product,
                        self.convolution, self.attention])()
        names = list(self.values)
        self.results = [name for name in names if name not in self.read and name not in self.arguments] or names[-1:]

    # Values.

    def name(self, array):
        self.count += 1
        self.values[f"%v{self.count}"] = array
        return f"%v{self.count}"

    def type(self, array):
        return f"tensor<{''.join(f'{size}x' for size in array.shape)}f32>"

    def emit(self, name, text, *read):
        self.lines.append(f"  {name} = {text}")
        self.read.update(read)

    def argument(self, shape):
        data = np.random.default_rng(self.rng.randrange(1 << 30)).standard_normal(shape).astype(np.float32)
        name = self.name(data.astype(np.float64))
        self.arguments.append(name)
        return name

    def pick(self, rank=None):
        """A value of the module with at least `rank` dimensions."""
        fits = [name for name, array in self.values.items() if array.ndim >= (rank or 0) and array.size <= 4000]
        return self.rng.choice(fits) if fits else self.argument([self.rng.choice([1, 2, 3, 4]) for _ in range(rank)])

    def constant(self, value):
        self.count += 1
        self.lines.append(f"  %c{self.count} = arith.constant {value} : f32")
        return f"%c{self.count}"

    def filled(self, shape, value):
        """A tensor of `shape` that is filled with a constant, or a constant tensor."""
        like = np.empty(shape)
        self.count += 1
        name = f"%f{self.count}"
        if self.rng.random() < 0.2 and like.ndim:
            self.lines.append(f"  {name} = arith.constant dense<{value}> : {self.type(like)}")
        else:
            number = self.constant(value)
            self.lines.append(f"  {name}e = tensor.empty() : {self.type(like)}")
            self.lines.append(f"  {name} = linalg.fill ins({number} : f32) outs({name}e : {self.type(like)}) -> {self.type(like)}")
        return name

    # Ops.

    def generic(self, sizes, inputs, maps, out_map, body, start=None, reductions=()):
        """Adds a generic op. A map is a list of loops, of pairs of loops that are added, and of None for index 0."""
        def text(parts):
            loops = ", ".join(f"d{i}" for i in range(len(sizes)))
            coordinates = ["0" if part is None else " + ".join(f"d{i}" for i in part) if isinstance(part, tuple) else f"d{part}"
                           for part in parts]
            return f"affine_map<({loops}) -> ({', '.join(coordinates)})>"

        shape = [1 if part is None else sizes[part] for part in out_map]
        init = self.filled(shape, start) if start else None
        if init is None:
            self.count += 1
            init = f"%e{self.count}"
            self.lines.append(f"  {init} = tensor.empty() : {self.type(np.empty(shape))}")
        arrays = [self.values[name] for name in inputs]
        kinds = ", ".join('"reduction"' if i in reductions else '"parallel"' for i in range(len(sizes)))
        grid = np.indices(sizes) if sizes else np.zeros((0,))

        def at(array, parts):
            places = tuple(np.zeros(sizes, int) if part is None else sum(grid[i] for i in part) if isinstance(part, tuple) else grid[part]
                           for part in parts)
            return array[places] if places else np.broadcast_to(array, sizes)

        values, scalar = body[1](*[at(array, parts) for array, parts in zip(arrays, maps)]), body[0]
        order = [part for part in out_map if part is not None]
        if reductions:
            values = {"addf": np.sum, "mulf": np.prod, "maximumf": np.max, "minimumf": np.min}[body[2]](values, axis=tuple(reductions))
        kept = [i for i in range(len(sizes)) if i not in reductions]
        values = np.transpose(values, [kept.index(part) for part in order]).reshape(shape)
        name = self.name(values)
        arguments = ", ".join(f"%a{i}: f32" for i in range(len(inputs)))
        operands = f"ins({', '.join(inputs)} : {', '.join(map(self.type, arrays))}) " if inputs else ""
        self.emit(name, f"linalg.generic {{indexing_maps = [{', '.join(map(text, [*maps, out_map]))}], iterator_types = [{kinds}]}} "
                  f"{operands}outs({init} : {self.type(values)}) {{\n  ^bb0({arguments}, %o: f32):\n{scalar}\n  }} -> {self.type(values)}",
                  *inputs)
        return name

    def input_map(self, sizes):
        """Picks or makes a value that can be read over loops of `sizes`, and a map for it."""
        rng, parts, shape = self.rng, [], []
        for loop in rng.sample(range(len(sizes)), rng.randint(0, len(sizes))):
            form = rng.random()
            if form < 0.1 and len(sizes) > 1:
                other = rng.choice([i for i in range(len(sizes)) if i != loop])
                parts.append((loop, other))
                shape.append(sizes[loop] + sizes[other] - 1)
            else:
                parts.append(loop)
                shape.append(sizes[loop])
            if form > 0.9:
                parts.append(loop)
                shape.append(sizes[loop])
            if rng.random() < 0.15:
                parts.append(None)
                shape.append(rng.choice([1, 1, 3]))
        fits = [name for name, array in self.values.items() if list(array.shape) == shape]
        return (rng.choice(fits) if fits else self.argument(shape)), parts

    BODIES = [
        ("    %y = arith.addf %a0, %a1 : f32\n    linalg.yield %y : f32", lambda a, b: a + b),
        ("    %y = arith.mulf %a0, %a1 : f32\n    linalg.yield %y : f32", lambda a, b: a * b),
        ("    %x = arith.subf %a0, %a1 : f32\n    %y = math.tanh %x : f32\n    linalg.yield %y : f32", lambda a, b: np.tanh(a - b)),
        ("    %x = arith.cmpf ogt, %a0, %a1 : f32\n    %y = arith.select %x, %a1, %a0 : f32\n    linalg.yield %y : f32",
         lambda a, b: np.where(a > b, b, a)),
    ]

    def out_map(self, loops):
        parts = self.rng.sample(loops, len(loops)) if self.rng.random() < 0.4 else list(loops)
        while self.rng.random() < 0.25:
            parts.insert(self.rng.randint(0, len(parts)), None)
        return parts

    def elementwise(self):
        sizes = list(self.values[self.pick()].shape)[:4] or [2]
        (a, map_a), (b, map_b) = self.input_map(sizes), self.input_map(sizes)
        self.generic(sizes, [a, b], [map_a, map_b], self.out_map(list(range(len(sizes)))), self.rng.choice(self.BODIES))

    def reduction(self):
        x = self.pick(1)
        sizes = list(self.values[x].shape)
        dims = self.rng.sample(range(len(sizes)), self.rng.choice([1, 1, 1, min(2, len(sizes))]))
        kept = [i for i in range(len(sizes)) if i not in dims]
        op, start = self.rng.choice([("addf", "0.0"), ("addf", "-0.0"), ("mulf", "1.0"), ("maximumf", NEGATIVE["-inf"]),
                                     ("maximumf", NEGATIVE["lowest"]), ("minimumf", "0x7F800000")])
        self.reduce(x, kept if self.rng.random() < 0.5 else [None if i in dims else i for i in range(len(sizes))], dims, op, start)

    def reduce(self, x, out_map, dims, op, start):
        sizes = list(self.values[x].shape)
        order = "%a0, %o" if self.rng.random() < 0.5 else "%o, %a0"
        body = (f"    %y = arith.{op} {order} : f32\n    linalg.yield %y : f32", lambda a: a, op)
        return self.generic(sizes, [x], [list(range(len(sizes)))], out_map, body, start, dims)

    def pair(self):
        """A maximum and its position along the last dimension; nothing reads the position."""
        x = self.pick(1)
        array = self.values[x]
        last, shape = array.ndim - 1, array.shape[:-1]
        loops = ", ".join(f"d{i}" for i in range(array.ndim))
        out = f"affine_map<({loops}) -> ({', '.join(f'd{i}' for i in range(last))})>"
        init = self.filled(shape, self.rng.choice(list(NEGATIVE.values())))
        name = self.name(array.max(-1))
        kinds = ", ".join(['"parallel"'] * last + ['"reduction"'])
        places = f"tensor<{''.join(f'{size}x' for size in shape)}i64>"
        self.lines.append(f"  {name}z = arith.constant 0 : i64\n  {name}e = tensor.empty() : {places}\n"
                          f"  {name}f = linalg.fill ins({name}z : i64) outs({name}e : {places}) -> {places}")
        self.lines.append(
            f"  {name}t:2 = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({loops})>, {out}, {out}], iterator_types = [{kinds}]}} "
            f"ins({x} : {self.type(array)}) outs({init}, {name}f : {self.type(array.max(-1))}, {places}) {{\n"
            f"  ^bb0(%a: f32, %m: f32, %p: i64):\n    %i = linalg.index {last} : index\n    %j = arith.index_cast %i : index to i64\n"
            "    %n = arith.maximumf %a, %m : f32\n    %c = arith.cmpf ogt, %a, %m : f32\n    %q = arith.select %c, %j, %p : i64\n"
            f"    linalg.yield %n, %q : f32, i64\n  }} -> ({self.type(array.max(-1))}, {places})")
        # A cast to the same type gives the first result a name of its own.
        self.emit(name, f"tensor.cast {name}t#0 : {self.type(array.max(-1))} to {self.type(array.max(-1))}", x)

    def view(self):
        x = self.pick(1)
        array = self.values[x]
        form = self.rng.randrange(3)
        if form == 0:
            order = self.rng.sample(range(array.ndim), array.ndim)
            made = array.transpose(order)
            name = self.name(made)
            self.lines.append(f"  {name}e = tensor.empty() : {self.type(made)}")
            self.emit(name, f"linalg.transpose ins({x} : {self.type(array)}) outs({name}e : {self.type(made)}) permutation = {order}", x)
        elif form == 1 and array.ndim > 1:
            axis = self.rng.randrange(array.ndim - 1)
            made = array.reshape([*array.shape[:axis], array.shape[axis] * array.shape[axis + 1], *array.shape[axis + 2:]])
            groups = [[i] for i in range(axis)] + [[axis, axis + 1]] + [[i] for i in range(axis + 2, array.ndim)]
            self.emit(self.name(made), f"tensor.collapse_shape {x} {groups} : {self.type(array)} into {self.type(made)}", x)
        else:
            shape = list(array.shape)
            self.rng.shuffle(shape)
            made = array.reshape(shape)
            name = self.name(made)
            self.lines.append(f"  {name}s = arith.constant dense<{shape}> : tensor<{len(shape)}xi64>")
            self.emit(name, f"tensor.reshape {x}({name}s) : ({self.type(array)}, tensor<{len(shape)}xi64>) -> {self.type(made)}", x)

    def softmax(self, x=None):
        x = x or self.pick(1)
        sizes = list(self.values[x].shape)
        loops, dim = list(range(len(sizes))), self.rng.choice([len(sizes) - 1, len(sizes) - 1, self.rng.randrange(len(sizes))])
        keeps = self.rng.random() < 0.5
        row = [None if i == dim else i for i in loops] if keeps else [i for i in loops if i != dim]
        maxima = self.reduce(x, row, [dim], "maximumf", self.rng.choice(list(NEGATIVE.values())))
        exps = self.generic(sizes, [x, maxima], [loops, row], loops,
                            ("    %x = arith.subf %a0, %a1 : f32\n    %y = math.exp %x : f32\n    linalg.yield %y : f32",
                             lambda a, b: np.exp(a - b)))
        sums = self.reduce(exps, row, [dim], "addf", "0.0")
        if self.rng.random() < 0.5:
            return self.generic(sizes, [exps, sums], [loops, row], loops,
                                ("    %y = arith.divf %a0, %a1 : f32\n    linalg.yield %y : f32", lambda a, b: a / b))
        one = self.constant("1.0")
        shape = list(range(self.values[sums].ndim))
        inverse = self.generic(list(self.values[sums].shape), [sums], [shape], shape,
                               (f"    %y = arith.divf {one}, %a0 : f32\n    linalg.yield %y : f32", lambda a: 1 / a))
        return self.generic(sizes, [exps, inverse], [loops, row], loops,
                            ("    %y = arith.mulf %a0, %a1 : f32\n    linalg.yield %y : f32", lambda a, b: a * b))

    def product(self, a=None, b=None):
        """A batch_matmul of values (batch, m, k) and (batch, k, n), by name or with transposed maps."""
        rng = self.rng
        if a is None:
            batch, m, k, n = (rng.choice([1, 2, 3, 5]) for _ in range(4))
            a, b = self.argument([batch, m, k]), self.argument([batch, k, n])
        x, y = self.values[a], self.values[b]
        batch, m, k = x.shape
        n = y.shape[2]
        if rng.random() < 0.5:
            out = x @ y
            init = self.filled(out.shape, "0.0")
            name = self.name(out)
            self.emit(name, f"linalg.batch_matmul ins({a}, {b} : {self.type(x)}, {self.type(y)}) outs({init} : {self.type(out)}) "
                      f"-> {self.type(out)}", a, b)
            return name
        out_map = [0, 1, 2]
        body = ("    %x = arith.mulf %a0, %a1 : f32\n    %y = arith.addf %o, %x : f32\n    linalg.yield %y : f32", lambda a, b: a * b, "addf")
        return self.generic([batch, m, n, k], [a, b], [[0, 1, 3], [0, 3, 2]], out_map, body, "0.0", [3])

    def convolution(self):
        """A sum of products that reads its image at sums of loops, (n, g, o, y..., c, kernel...) -> (n, g, o, y...)."""
        rng, count = self.rng, self.rng.choice([1, 2])
        batch, groups, kernels, channels = rng.choice([1, 2]), rng.choice([1, 1, 3]), rng.choice([1, 2, 9]), rng.choice([1, 3, 24])
        out, kernel = [rng.choice([1, 3, 17]) for _ in range(count)], [rng.choice([1, 2, 3]) for _ in range(count)]
        sizes, c = [batch, groups, kernels, *out, channels, *kernel], 3 + count
        image, weight, shape = [0, 1, c], [1, 2, c], [batch, groups, channels]
        for i in range(count):
            stride, dilation = rng.choice([1, 1, 2]), rng.choice([1, 1, 2])
            image.append((3 + i,) * stride + (c + 1 + i,) * dilation)
            weight.append(c + 1 + i)
            shape.append(stride * (out[i] - 1) + dilation * (kernel[i] - 1) + 1)
        body = ("    %x = arith.mulf %a0, %a1 : f32\n    %y = arith.addf %o, %x : f32\n    linalg.yield %y : f32", lambda a, b: a * b, "addf")
        inputs = [self.argument(shape), self.argument([groups, kernels, channels, *kernel])]
        self.generic(sizes, inputs, [image, weight], self.out_map(list(range(c))), body, "0.0", list(range(c, c + 1 + count)))

    def attention(self):
        rng = self.rng
        batch, m, n, d = rng.choice([1, 2]), rng.choice([1, 3, 5]), rng.choice([1, 4, 7]), rng.choice([1, 4, 8])
        q, k, v = self.argument([batch, m, d]), self.argument([batch, d, n]), self.argument([batch, n, d])
        self.product(self.softmax(self.product(q, k)), v)

    def text(self):
        self.results = self.results[:4]
        arguments = ", ".join(f"{name}: {self.type(self.values[name])}" for name in self.arguments)
        types = ", ".join(self.type(self.values[name]) for name in self.results)
        body = "\n".join(self.lines)
        return f"func.func @f({arguments}) -> ({types}) {{\n{body}\n  return {', '.join(self.results)} : {types}\n}}\n"


def check(index, folder):
    rng = random.Random(f"{options.seed}:{index}")
    module = Module(rng)
    model = folder / f"{index}.mlir"
    model.write_text(module.text())
    inputs = []
    for i, name in enumerate(module.arguments):
        np.save(folder / f"{i}.npy", module.values[name].astype(np.float32))
        inputs.append(f"--input={folder / f'{i}.npy'}")
    out = folder / "out"
    done = subprocess.run(["attn-run", model, *inputs, f"--output-dir={out}", f"--target={rng.choice(['x86-64', 'native'])}"],
                          capture_output=True, text=True, timeout=120)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        if done.returncode != 1 or len(lines) != 1 or not lines[0].startswith("attn-run: "):
            return "crash", done.stderr[:600]
        return "refused", lines[0].removeprefix(f"attn-run: {model}: ").partition(": ")[2][:90]
    for i, name in enumerate(module.results):
        got, want = np.load(out / f"{i}.npy").astype(np.float64), module.values[name]
        if got.shape != want.shape or not np.allclose(got, want, rtol=1e-4, atol=1e-4 * max(1, abs(want).max(initial=0))):
            return "wrong", f"{name}: error {abs(got - want).max() if got.shape == want.shape else got.shape}"
    if options.passes:
        for name in PASSES:
            done = subprocess.run(["attn-opt", f"--{name}", model, "-o", "/dev/null"], capture_output=True, text=True, timeout=60)
            if done.returncode not in (0, 1):
                return "crash", f"attn-opt --{name}: {done.stderr[:300]}"
    return "right", ""


parser = argparse.ArgumentParser()
parser.add_argument("--draws", type=int, default=100)
parser.add_argument("--seed", default="1")
parser.add_argument("--only", type=int)
parser.add_argument("--passes", action="store_true")
parser.add_argument("--keep", type=pathlib.Path)
options = parser.parse_args()
PASSES = [line.split()[0].lstrip("-") for line in subprocess.run(["attn-opt", "--help-all"], capture_output=True, text=True).stdout.splitlines()
          if line.strip().startswith("--attn-") and "attn-to-" not in line] if options.passes else []
counts, reasons, failed = collections.Counter(), collections.Counter(), 0
with tempfile.TemporaryDirectory() as temporary:
    folder = options.keep or pathlib.Path(temporary)
    folder.mkdir(exist_ok=True)
    for index in [options.only] if options.only is not None else range(options.draws):
        result, detail = check(index, folder)
        counts[result] += 1
        if result == "refused":
            reasons[detail] += 1
        elif result != "right":
            failed += 1
            print(f"draw {index} of seed {options.seed}: {result}: {detail}")
        if not options.keep:
            (folder / f"{index}.mlir").unlink()
print(", ".join(f"{count} {result}" for result, count in counts.most_common()))
for reason, count in reasons.most_common():
    print(f"  {count} refused: {reason}")
sys.exit(failed > 0)
