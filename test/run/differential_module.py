"""Random modules as linalg text: projections, heads, masks, softmax, sums, and one to three attentions.

Graph writes each operation and its formula. ModuleDraw combines operations at random; weights are arguments with
`attn.weight`. Every dimension is often 1.
"""
import math

import numpy as np

import bounded
from bounded import Bounded

SIZES = [2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 48, 65, 97]
HEAD_SIZES = [2, 3, 4, 5, 7, 8, 12, 16, 17, 24]
MULTIPLY_ADDS = 400_000  # the most multiply-adds of a problem
DTYPES = {"f32": np.float32, "i1": np.bool_}


class Value:
    """A tensor of the function; `shape` contains numbers, and names of dynamic sizes."""

    def __init__(self, name, shape, element="f32"):
        self.name, self.shape, self.element = name, list(shape), element

    @property
    def type(self):
        return f"tensor<{'x'.join([*('?' if isinstance(d, str) else str(d) for d in self.shape), self.element])}>"


def affine(dims, results):
    return f"affine_map<({', '.join(dims)}) -> ({', '.join(results)})>"


class Graph:
    """The text of a function, and a formula for each of its operations."""

    def __init__(self, rng):
        self.rng, self.lines, self.steps, self.arguments = rng, [], [], []

    def fresh(self, shape, element="f32"):
        return Value(f"%{len(self.steps)}", shape, element)

    def argument(self, name, shape, element="f32", weight=False):
        value = Value(f"%{name}", shape, element)
        self.arguments.append((value, weight))
        return value

    def emit(self, result, text, formula, *operands):
        self.lines.append(f"{result.name} = {text}" if text else "")
        self.steps.append((result.name, formula, [o.name for o in operands]))
        return result

    def empty(self, shape, element="f32"):
        value = Value(f"%e{len(self.lines)}", shape, element)
        sizes = ", ".join(f"%size_{d}" for d in shape if isinstance(d, str))
        self.lines.append(f"{value.name} = tensor.empty({sizes}) : {value.type}")
        return value

    def contract(self, spec, a, b, init=None):
        """Adds a product in the notation of einsum; the sums start from `init`, or from zero without it."""
        (left, right), out = spec.split("->")[0].split(","), spec.split("->")[1]
        sizes = dict(zip(left + right, a.shape + b.shape))
        shape, dims = [sizes[d] for d in out], sorted(sizes)
        maps = ", ".join(affine(dims, letters) for letters in (left, right, out))
        outs = init
        if init is None:
            empty = self.empty(shape)
            outs = Value(f"%f{len(self.lines)}", shape)
            self.lines.append(f"{outs.name} = linalg.fill ins(%zero : f32) outs({empty.name} : {empty.type}) "
                              f"-> {empty.type}")
        named = {"sc,co->so": "matmul", "st,te->se": "matmul", "bsc,bcd->bsd": "batch_matmul",
                 "bst,bte->bse": "batch_matmul", "bsd,bdt->bst": "batch_matmul"}.get(spec)
        operation = f"contract indexing_maps = [{maps}]"
        if named and self.rng.random() < 0.5:
            operation = named
        text = (f"linalg.{operation} ins({a.name}, {b.name} : {a.type}, {b.type}) "
                f"outs({outs.name} : {outs.type}) -> {outs.type}")
        formula = lambda x, y, *start: (bounded.average if x.live is not None and not start else bounded.contract)(
            spec, x, y, *start)
        return self.emit(self.fresh(shape), text, formula, a, b, *([init] if init else []))

    def pointwise(self, shape, operands, body, formula):
        """Adds a linalg.generic. An operand is a pair: a value and its map, whose results are letters of abcde or 0."""
        dims = "abcde"[:len(shape)]
        maps = ", ".join([affine(dims, letters) for _, letters in operands] + [affine(dims, dims)])
        empty = self.empty(shape)
        arguments = ", ".join([f"%x{i}: {v.element}" for i, (v, _) in enumerate(operands)] + ["%o: f32"])
        kinds = ", ".join(['"parallel"'] * len(shape))
        text = (f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}\n"
                f"      ins({', '.join(v.name for v, _ in operands)} : {', '.join(v.type for v, _ in operands)}) "
                f"outs({empty.name} : {empty.type}) {{\n  ^bb0({arguments}):\n"
                + "".join(f"    {line}\n" for line in body) + f"  }} -> {empty.type}")

        def aligned(x, letters):
            axes = tuple(i for i, d in enumerate(letters) if d == "0")
            kept = [d for d in letters if d != "0"]
            assert kept == sorted(kept)
            place = lambda a: np.squeeze(a, axes)[tuple(slice(None) if d in kept else None for d in dims)]
            return x.map(place) if isinstance(x, Bounded) else place(x)

        return self.emit(self.fresh(shape), text,
                         lambda *xs: formula(*(aligned(x, letters) for x, (_, letters) in zip(xs, operands))),
                         *(v for v, _ in operands))

    def add(self, a, b, letters=None):
        """Adds a + b, in which b is read at the coordinates `letters`."""
        whole = "abcde"[:len(a.shape)]
        if letters is None and a.shape == b.shape:
            empty = self.empty(a.shape)
            return self.emit(self.fresh(a.shape), f"linalg.add ins({a.name}, {b.name} : {a.type}, {b.type}) "
                             f"outs({empty.name} : {empty.type}) -> {empty.type}", bounded.add, a, b)
        return self.pointwise(a.shape, [(a, whole), (b, letters or whole)],
                              ["%y = arith.addf %x0, %x1 : f32", "linalg.yield %y : f32"], self.sum)

    @staticmethod
    def sum(a, b):
        shape = np.broadcast_shapes(a.value.shape, b.value.shape)
        a = a.map(lambda part: np.broadcast_to(part, shape))
        return bounded.add(a, b)

    def scale(self, a, factor, divide=False):
        operation, constant = ("divf", 1 / factor) if divide else ("mulf", factor)
        constant = float(np.float32(constant))
        exact = 1 / constant if divide else constant
        return self.pointwise(a.shape, [(a, "abcde"[:len(a.shape)])],
                              [f"%c = arith.constant {constant:.9e} : f32", f"%y = arith.{operation} %x0, %c : f32",
                               "linalg.yield %y : f32"], lambda x: bounded.scaled(x, exact))

    def broadcast(self, a, shape, axes):
        """Repeats `a` along `axes` of the result."""
        empty = self.empty(shape)
        at = tuple(None if i in axes else slice(None) for i in range(len(shape)))
        dims = ", ".join(map(str, axes))

        def formula(x, sizes):
            whole = [sizes.get(d, d) for d in shape]
            return x.map(lambda part: np.broadcast_to(part[at], whole))

        text = f"linalg.broadcast ins({a.name} : {a.type}) outs({empty.name} : {empty.type}) dimensions = [{dims}]"
        return self.emit(self.fresh(shape), text, formula, a, Value("sizes", []))

    def transpose(self, a, permutation):
        shape = [a.shape[i] for i in permutation]
        empty = self.empty(shape)
        text = (f"linalg.transpose ins({a.name} : {a.type}) outs({empty.name} : {empty.type}) "
                f"permutation = {list(permutation)}")
        return self.emit(self.fresh(shape), text, lambda x: x.map(lambda part: part.transpose(permutation)), a)

    @staticmethod
    def groups(rank, first, count):
        """Returns the reassociation that merges the dimensions [first, first + count) of the longer shape."""
        groups = [[i] for i in range(first)] + [list(range(first, first + count))]
        return str(groups + [[i + first + count] for i in range(rank - first - count)])

    def expand(self, a, axis, sizes):
        shape = a.shape[:axis] + sizes + a.shape[axis + 1:]
        output = ", ".join(f"%size_{d}" if isinstance(d, str) else str(d) for d in shape)
        result = self.fresh(shape)
        return self.emit(result, f"tensor.expand_shape {a.name} {self.groups(len(shape), axis, len(sizes))} "
                         f"output_shape [{output}] : {a.type} into {result.type}",
                         lambda x: x.map(lambda p: p.reshape(*p.shape[:axis], *sizes, *p.shape[axis + 1:])), a)

    def collapse(self, a, axis, count=2):
        shape = a.shape[:axis] + [math.prod(a.shape[axis:axis + count])] + a.shape[axis + count:]
        result = self.fresh(shape)
        product = lambda s: (*s[:axis], math.prod(s[axis:axis + count]), *s[axis + count:])
        return self.emit(result, f"tensor.collapse_shape {a.name} {self.groups(len(a.shape), axis, count)} : "
                         f"{a.type} into {result.type}", lambda x: x.map(lambda p: p.reshape(product(p.shape))), a)

    def slice(self, a, axis, start, size, drop=False):
        """Slices `size` elements of an axis from `start` on. With `drop`, the axis, of size 1, is dropped."""
        text = lambda s: ", ".join(f"%size_{d}" if isinstance(d, str) else str(d) for d in s)
        sizes = [size if i == axis else d for i, d in enumerate(a.shape)]
        offsets = [start if i == axis else 0 for i in range(len(sizes))]
        result = self.fresh(sizes[:axis] + sizes[axis + 1:] if drop else sizes)
        at = (slice(None),) * axis + (start if drop else slice(start, start + size),)
        return self.emit(result, f"tensor.extract_slice {a.name}{offsets} [{text(sizes)}] {[1] * len(sizes)} : "
                         f"{a.type} to {result.type}", lambda x: x.map(lambda part: part[at]), a)

    def softmax(self, a):
        empty = self.empty(a.shape)
        return self.emit(self.fresh(a.shape), f"linalg.softmax dimension({len(a.shape) - 1}) ins({a.name} : {a.type}) "
                         f"outs({empty.name} : {empty.type}) -> {empty.type}",
                         lambda x: bounded.softmax(x, math.nan), a)

    def causal(self, scores, offset):
        """Fills scores with -inf where k > q + offset."""
        whole = "abcde"[:len(scores.shape)]
        body = [f"%q = linalg.index {len(whole) - 2} : index", f"%k = linalg.index {len(whole) - 1} : index",
                f"%n = arith.constant {offset} : index", "%l = arith.addi %q, %n : index",
                "%c = arith.cmpi sgt, %k, %l : index", "%i = arith.constant 0xFF800000 : f32",
                "%y = arith.select %c, %i, %x0 : f32", "linalg.yield %y : f32"]

        def formula(x):
            queries, keys = x.value.shape[-2:]
            return bounded.masked(x, np.arange(keys)[None] <= np.arange(queries)[:, None] + offset)

        return self.pointwise(scores.shape, [(scores, whole)], body, formula)

    def causal_addend(self, shape, offset):
        """Returns a tensor of -inf where k > q + offset, and of 0 elsewhere."""
        body = ["%q = linalg.index 0 : index", "%k = linalg.index 1 : index",
                f"%n = arith.constant {offset} : index", "%l = arith.addi %q, %n : index",
                "%c = arith.cmpi sgt, %k, %l : index", "%i = arith.constant 0xFF800000 : f32",
                "%z = arith.constant 0.0 : f32", "%y = arith.select %c, %i, %z : f32", "linalg.yield %y : f32"]

        def formula(sizes):
            queries, keys = (sizes.get(d, d) for d in shape)
            return Bounded(np.where(np.arange(keys)[None] <= np.arange(queries)[:, None] + offset, 0, -np.inf))

        dims = "ab"
        empty = self.empty(shape)
        kinds = '["parallel", "parallel"]'
        text = (f"linalg.generic {{indexing_maps = [{affine(dims, dims)}], iterator_types = {kinds}}} "
                f"outs({empty.name} : {empty.type}) {{\n  ^bb0(%o: f32):\n"
                + "".join(f"    {line}\n" for line in body) + f"  }} -> {empty.type}")
        return self.emit(self.fresh(shape), text, formula, Value("sizes", []))

    def dense(self, scores, mask, letters):
        """Fills scores with -inf where a boolean mask does not keep the pair."""
        whole = "abcde"[:len(scores.shape)]
        body = ["%i = arith.constant 0xFF800000 : f32", "%y = arith.select %x1, %x0, %i : f32", "linalg.yield %y : f32"]
        return self.pointwise(scores.shape, [(scores, whole), (mask, letters)], body, bounded.masked)

    def text(self, results, ranges):
        dims = lambda v: ", ".join(f'"{d}"' if isinstance(d, str) else '""' for d in v.shape)
        attributes = lambda v, name, weight=False: (f'{{attn.name = "{name}", attn.dims = [{dims(v)}]'
                                                    f'{", attn.weight" * weight}}}')
        arguments = ",\n    ".join(f"{v.name}: {v.type} {attributes(v, v.name[1:], w)}" for v, w in self.arguments)
        types = ",\n        ".join(f"{v.type} {attributes(v, f'out{i}')}" for i, v in enumerate(results))
        symbols = ", ".join(f'#attn.symbol<"{d}", 0 to 4096>' for d in sorted(ranges))
        lines = [f"func.func @forward({arguments})", f"    -> ({types}) attributes {{attn.symbols = [{symbols}]}} {{",
                 "  %zero = arith.constant 0.0 : f32"]
        for d in sorted(ranges):
            v = next(v for v, _ in self.arguments if d in v.shape)
            lines += [f"  %axis_{d} = arith.constant {v.shape.index(d)} : index",
                      f"  %size_{d} = tensor.dim {v.name}, %axis_{d} : {v.type}"]
        lines += [f"  {line}" for line in self.lines]
        lines += [f"  return {', '.join(v.name for v in results)} : {', '.join(v.type for v in results)}", "}", ""]
        return "\n".join(lines)

    def evaluate(self, results, arrays, sizes):
        """Computes the results for arrays, which are given by the names of arguments."""
        known = {"%" + name: a if a.dtype == bool else Bounded(a) for name, a in arrays.items()}
        known["sizes"] = sizes
        for name, formula, operands in self.steps:
            known[name] = formula(*(known[o] for o in operands))
        return [known[v.name] for v in results]


class ModuleDraw:
    def __init__(self, rng):
        self.rng, self.graph, self.found, self.hides = rng, Graph(rng), set(), True
        self.inputs, self.weights = {}, {}  # by name: the shape and element type of an input; the array of a weight
        numpy_rng = np.random.default_rng(rng.getrandbits(64))
        self.exact = rng.random() < 0.4
        self.draw_weight = lambda shape, fan: ((numpy_rng.integers(-1, 2, shape) if self.exact else
                                                numpy_rng.standard_normal(shape) / max(fan, 1)**0.5).astype(np.float32))
        self.draw_sizes()
        self.shares = rng.random() < 0.25
        self.build()
        self.kinds = ["module"] + [f"module: {kind}" for kind in sorted(self.found)]

    def maybe(self, share, kind=None):
        """Draws True with the given probability, and counts it as `kind`."""
        chosen = self.rng.random() < share
        if chosen and kind:
            self.found.add(kind)
        return chosen

    def pick(self, *options):
        chosen = self.rng.choice(options)
        self.found.add(chosen)
        return chosen

    def size(self, share, sizes):
        return 1 if self.rng.random() < share else self.rng.choice(sizes)

    def draw_sizes(self):
        rng = self.rng
        while True:
            self.B, self.S = self.size(0.45, [2, 2, 3]), self.size(0.25, SIZES)
            self.T = self.size(0.25, SIZES)
            self.H, self.D = self.size(0.35, [2, 3, 4]), self.size(0.25, HEAD_SIZES)
            self.E = self.D if rng.random() < 0.75 else self.size(0.5, HEAD_SIZES)
            self.C = self.H * self.E if rng.random() < 0.7 else self.size(0.3, [2, 3, 8, 15, 16, 20, 33])
            most = max(self.S, self.T)
            if self.B * self.H * self.S * most * (self.D + self.E) <= MULTIPLY_ADDS:
                break
        self.static = {"B": self.B, "S": self.S, "T": self.T}
        self.dynamic = {d for d in "BST" if rng.random() < 0.3}
        if rng.random() < 0.3:
            self.dynamic = set()
        for d in self.dynamic:
            setattr(self, d, d)

    def input(self, name, shape, element="f32"):
        self.inputs[name] = shape, element
        return self.graph.argument(name, shape, element)

    def weight(self, name, shape, fan=1):
        if self.shares:
            same = [v for v, is_weight in self.graph.arguments if is_weight and v.shape == list(shape)]
            if same and self.maybe(0.5, "shared weights"):
                return self.rng.choice(same)
        self.weights[name] = self.draw_weight(shape, fan)
        return self.graph.argument(name, shape, weight=True)

    #--- Parts ------------------------------------------------------------------------------------------------------

    def linear(self, x, out, name):
        """Projects (..., C) to (..., out)."""
        g, inner, tokens = self.graph, x.shape[-1], "bs"[-(len(x.shape) - 1):]
        shape = [*x.shape[:-1], out]
        is_static = all(isinstance(d, int) for d in shape)
        transposed = self.maybe(0.5)
        w = self.weight(f"{name}_w", [inner, out] if transposed else [out, inner], inner)
        spec = f"{tokens}c,{'co' if transposed else 'oc'}->{tokens}o"
        bias = self.pick("no bias", "no bias", "bias added", "bias added", "bias as init",
                         *["weight as init", "whole bias"] * is_static)
        if bias == "weight as init":
            return g.contract(spec, x, w, self.weight(f"{name}_i", shape))
        init = None
        if bias == "bias as init":
            init = g.broadcast(self.weight(f"{name}_b", [out]), shape, list(range(len(shape) - 1)))
        y = g.contract(spec, x, w, init)
        letters = "abc"[:len(shape)]
        if bias == "bias added":
            y = g.add(y, self.weight(f"{name}_b", [out]), letters[-1])
        if bias == "whole bias":
            y = g.add(y, self.weight(f"{name}_b", shape))
        return y

    def split(self, x, heads, width):
        """Splits (b, s, h * d) into heads. Returns the tensor and the letters of its dimensions."""
        g, batch = self.graph, "b" if len(x.shape) == 3 else ""
        x = g.expand(x, len(batch) + 1, [heads, width])
        if self.maybe(0.6, "heads transposed"):
            at = len(batch)
            return g.transpose(x, [*range(at), at + 1, at, at + 2]), batch + "hsd"
        return x, batch + "shd"

    def positions(self, x, name):
        """Returns x, perhaps plus a parameter for each position."""
        g, letters = self.graph, "abc"[:len(x.shape)]
        kinds = ["no positions", "no positions", "position (C)"]
        if isinstance(x.shape[-2], int):
            kinds += ["position (S, C)"] + ["position (1, S, C)"] * (len(x.shape) == 3)
        kind = self.pick(*kinds)
        if kind == "position (C)":
            return g.add(x, self.weight(name, x.shape[-1:]), letters[-1])
        if kind == "position (S, C)":
            return g.add(x, self.weight(name, x.shape[-2:]), letters[-2:])
        if kind == "position (1, S, C)":
            return g.add(x, self.weight(name, [1, *x.shape[-2:]]), "0" + letters[-2:])
        return x

    def heads(self, x, y, name):
        """Returns query, key and value with the letters of their dimensions."""
        H, D, E, g = self.H, self.D, self.E, self.graph
        batch = "b" if len(x.shape) == 3 else ""
        ways = ["separate"] * 3 + ["shared query and key", "key is value", "all one", "head weights", "one key head"]
        if x is y:
            ways += ["packed"] * 3
        if H == 1 and x.shape[-1] == D == y.shape[-1] == E:
            ways += ["inputs themselves"]
        way = self.pick(*ways)
        rename = lambda split: (split[0], split[1].replace("s", "t"))
        if way == "inputs themselves":
            headless = lambda letter: batch + letter + "d"
            return (x, headless("s")), (y, headless("t")), (y, headless("t"))
        if way == "head weights":  # the result of each product has a dimension of heads
            def project(source, letter, width, kind):
                order = self.rng.choice([f"h{letter}d", f"{letter}hd"])
                w = self.weight(f"{name}_{kind}_w", [H, width, source.shape[-1]], source.shape[-1])
                p = g.contract(f"{batch}{letter}c,hdc->{batch}{order}", source, w)
                if self.maybe(0.5, "head bias"):
                    at = "abcd"[:len(p.shape)]
                    heads = at[len(batch) + order.index("h")] + at[-1]
                    p = g.add(p, self.weight(f"{name}_{kind}_b", [H, width]), heads)
                return p, batch + order
            return project(x, "s", D, "q"), project(y, "t", D, "k"), project(y, "t", E, "v")
        if way == "one key head":
            key, value = self.linear(y, D, f"{name}_k"), self.linear(y, E, f"{name}_v")
            return self.split(self.linear(x, H * D, f"{name}_q"), H, D), (key, batch + "td"), (value, batch + "td")
        if way == "packed":
            return self.packed(x, name, batch)
        E = D if way in ("key is value", "all one") else E
        if way == "shared query and key" and x is y or way == "all one" and x is y:
            q = k = self.linear(x, H * D, f"{name}_qk")
        else:
            q, k = self.linear(x, H * D, f"{name}_q"), self.linear(y, H * D, f"{name}_k")
        v = k if way in ("key is value", "all one") else self.linear(y, H * E, f"{name}_v")
        query = self.split(q, H, D)
        key = rename(query if k is q and self.maybe(0.5) else self.split(k, H, D))
        value = key if v is k and self.maybe(0.5) else rename(self.split(v, H, E))
        return query, key, value

    def packed(self, x, name, batch):
        """Projects query, key and value with one weight of (3 * C, C)."""
        H, D, g, at = self.H, self.D, self.graph, len(batch)
        way = self.pick("packed and reshaped", "packed and sliced", "packed weight sliced")
        if way == "packed weight sliced":
            w = self.weight(f"{name}_w", [3 * H * D, x.shape[-1]], x.shape[-1])
            parts = [g.contract(f"{batch}sc,oc->{batch}so", x, g.slice(w, 0, i * H * D, H * D)) for i in range(3)]
        else:
            y = self.linear(x, 3 * H * D, name)
            if way == "packed and reshaped":
                y = g.expand(y, at + 1, [3, H, D])
                order = self.rng.choice(["3hs", "h3s", "s3h"])
                y = g.transpose(y, [*range(at), *(at + "s3h".index(c) for c in order), at + 3])
                parts = [g.slice(y, at + order.index("3"), i, 1, drop=True) for i in range(3)]
                letters = batch + order.replace("3", "") + "d"
                return (parts[0], letters), (parts[1], letters.replace("s", "t")), (parts[2], letters.replace("s", "t"))
            parts = [g.slice(y, at + 1, i * H * D, H * D) for i in range(3)]
        q, k, v = (self.split(part, H, D) for part in parts)
        return q, (k[0], k[1].replace("s", "t")), (v[0], v[1].replace("s", "t"))

    def mask(self, scores, name, in_a_row):
        """Adds random masks to the scores (b, h, s, t)."""
        g, whole = self.graph, "abcde"[:len(scores.shape)]
        size = dict(zip(whole, scores.shape))
        q, k = whole[-2:]
        kinds = self.rng.sample(["causal", "causal", "dense", "additive", "added causal"],
                                self.rng.choice([0, 0, 1, 1, 1, 2]))
        # Results are not specified if an added mask should hide NaN, or if a tensor is added after a fill. Rows without
        # a key are NaN, so an attention that reads the result of another attention has no added causal mask.
        if in_a_row:
            kinds = sorted(set(kinds) - {"added causal"})
        self.hides &= "additive" not in kinds[1:] and "added causal" not in kinds
        for kind in kinds:
            self.found.add(f"{kind} mask")
            batched = [whole[0] + k, whole[0] + q + k, whole] if len(whole) > 2 else []
            letters = self.rng.choice([q + k, q + k, k, *batched])
            shape = [size[d] for d in letters]
            if len(letters) < len(whole) and self.maybe(0.3):  # adds dimensions of size 1, as in (1, 1, S, T)
                shape = [size[d] if d in letters else 1 for d in whole]
                letters = "".join(d if d in letters else "0" for d in whole)
            if kind == "causal":
                scores = g.causal(scores, self.rng.choice([0, 0, 0, 1, 2, -1, 5]))
            elif kind == "added causal":
                addend = g.causal_addend([size[q], size[k]], self.rng.choice([0, 0, 1, -1]))
                scores = g.add(scores, addend, q + k)
            elif kind == "dense":
                scores = g.dense(scores, self.input(f"{name}_keep", shape, "i1"), letters)
            elif self.maybe(0.3, "added weight") and all(isinstance(d, int) for d in shape):
                scores = g.add(scores, self.weight(f"{name}_bias", shape), letters)
            else:
                scores = g.add(scores, self.input(f"{name}_add", shape), letters)
        return scores

    def attend(self, x, y, name, in_a_row):
        """Adds one attention with the projections around it; the result is (b, s, c)."""
        g = self.graph
        (q, ql), (k, kl), (v, vl) = self.heads(x, y, name)
        vl = vl.replace("d", "e")
        batch, head = "b" * ("b" in ql), "h" * ("h" in ql)
        scale = self.D**-0.5 if self.maybe(0.6, "usual scale") else self.rng.choice([1.0, 0.5, 2.0, 64.0, 128.0])
        if scale > 2 and not self.exact:
            scale = 0.125
        where = self.pick("scale on query", "scale on scores", "scores divided", "scale on key", "scale on both",
                          "no scale")
        if where in ("scale on query", "scale on both"):
            q = g.scale(q, scale if where == "scale on query" else scale**0.5)
        if where in ("scale on key", "scale on both"):
            k = g.scale(k, scale if where == "scale on key" else scale**0.5)
        if self.maybe(0.3, "key transposed"):
            permutation = [*range(len(kl) - 2), len(kl) - 1, len(kl) - 2]
            k, kl = g.transpose(k, permutation), "".join(kl[i] for i in permutation)
        pairs = batch + head + "st"
        scores = g.contract(f"{ql},{kl}->{pairs}", q, k)
        if where in ("scale on scores", "scores divided"):
            scores = g.scale(scores, scale, divide=where == "scores divided")
        p = g.softmax(self.mask(scores, name, in_a_row))
        if self.maybe(0.12, "probabilities returned"):
            self.results.append(p)
        together = head and self.maybe(0.3, "output written token by token")
        out = g.contract(f"{pairs},{vl}->{batch}{'sh' if together else head + 's'}e", p, v)
        if head:
            at = len(batch)
            if not together:
                out = g.transpose(out, [*range(at), at + 1, at, at + 2])
            out = g.collapse(out, at + 1)
        if self.maybe(0.7, "output projection"):
            out = self.linear(out, x.shape[-1] if self.maybe(0.7) else self.size(0.4, [2, 5, 16, 31]), f"{name}_o")
        if out.shape == x.shape and self.maybe(0.5, "residual"):
            out = g.add(out, x) if self.maybe(0.5) else g.add(x, out)
        return self.positions(out, f"{name}_after") if self.maybe(0.2) else out

    def build(self):
        batched = self.maybe(0.85) or self.B != 1
        batch = [self.B] if batched else []
        if not batched:
            self.found.add("no batch")
        self.results = []
        first = x = self.input("x", [*batch, self.S, self.C])
        x = self.positions(x, "pos")
        count = self.rng.choice([1] * 7 + [2] * 2 + [3])
        self.found.add(f"{count} attentions" if count > 1 else "1 attention")
        cross = self.maybe(0.3, "other keys")
        y = self.input("memory", [*batch, self.T, self.C if self.maybe(0.6) else 7]) if cross else None
        chained = self.maybe(0.6) and not self.exact  # after a softmax, values are not exact
        outs = []
        for i in range(count):
            source = outs[-1] if outs and chained else x
            outs.append(self.attend(source, source if y is None else y, f"l{i}", source is not x))
        if count > 1:
            self.found.add("attentions in a row" if chained else "attentions of one input")
        self.results[:0] = outs if not chained or self.maybe(0.2) else outs[-1:]
        self.extra_results(first)
        self.dynamic = {d for d in self.dynamic if any(d in shape for shape, _ in self.inputs.values())}
        self.found.add("dynamic sizes" if self.dynamic else "static sizes")

    def extra_results(self, x):
        """Adds results that share memory: the same value twice, an argument, a weight, or views of these."""
        g = self.graph
        if self.maybe(0.08, "result twice"):
            self.results.append(self.results[0])
        if self.maybe(0.06, "argument returned"):
            self.results.append(x)
        if self.maybe(0.06, "view of an argument returned"):
            self.results.append(g.expand(x, len(x.shape) - 1, [1, x.shape[-1]]))
        if self.maybe(0.06, "view of a result returned"):
            r = self.results[0]
            self.results.append(g.expand(r, len(r.shape) - 1, [r.shape[-1], 1]))
        weights = [v for v, is_weight in g.arguments if is_weight]
        if weights and self.maybe(0.08, "weight returned"):
            self.results.append(self.rng.choice(weights))
        if weights and self.maybe(0.08, "sum of weights"):
            w = self.rng.choice(weights)
            self.results.append(g.add(w, w))
        if weights and self.maybe(0.06, "transposed weight returned"):
            w = self.rng.choice(weights)
            self.results.append(g.transpose(w, list(range(len(w.shape)))[::-1]))

    #--- The interface of a draw ------------------------------------------------------------------------------------

    def write(self, folder):
        (folder / "draw.mlir").write_text(self.graph.text(self.results, self.dynamic))
        return folder / "draw.mlir"

    def problem(self, numpy_rng):
        """Returns (hostile kind, sizes, inputs, expected results) of one call."""
        rng = self.rng
        while True:
            sizes = dict(self.static)
            for d in self.dynamic:
                sizes[d] = rng.choice([0, 1, 1, 1]) if rng.random() < 0.3 else rng.choice([2, 3] if d == "B" else SIZES)
            most = max(sizes["S"], sizes["T"])
            if sizes["B"] * self.H * sizes["S"] * most * (self.D + self.E) <= MULTIPLY_ADDS:
                break
        kinds = ["exact", "exact duplicates"] if self.exact else ["plain", "duplicates", "near duplicates", "large"]
        masked = "dense mask" in self.found or "causal mask" in self.found
        hostile = rng.choice(kinds + ["nan"] * (masked and self.hides))
        arrays = {}
        for name, (shape, element) in self.inputs.items():
            shape = [sizes.get(d, d) for d in shape]
            if element == "i1":
                arrays[name] = numpy_rng.random(shape) < rng.choice([0.1, 0.5, 0.9])
            elif name in ("x", "memory"):
                arrays[name] = self.draw_tokens(hostile, shape, numpy_rng)
            else:
                arrays[name] = self.draw_addend(hostile, shape, numpy_rng)
        arrays = {name: a if a.dtype == bool else a.astype(np.float32) for name, a in arrays.items()}
        expected = self.graph.evaluate(self.results, {**arrays, **self.weights}, sizes)
        return hostile, {**sizes, "H": self.H, "D": self.D, "E": self.E, "C": self.C}, list(arrays.values()), expected

    def draw_tokens(self, hostile, shape, numpy_rng):
        tokens = shape[-2]
        a = numpy_rng.standard_normal(shape)
        if self.exact:
            a = numpy_rng.integers(-3, 4, shape).astype(float)
        if hostile == "large":
            a *= 10.0**numpy_rng.integers(1, 3)
        if "duplicates" in hostile and tokens > 1:
            a = np.take(a, np.arange(tokens) % numpy_rng.integers(1, tokens), axis=-2)
        if hostile == "near duplicates":
            a = a + np.where(numpy_rng.random(shape) < 0.1, np.spacing(a.astype(np.float32)), 0)
        if hostile == "nan" and tokens:
            where = np.zeros(shape[:-1], bool)
            where[..., numpy_rng.integers(tokens):] = numpy_rng.random() < 0.8
            a[where] = np.nan
        return a

    def draw_addend(self, hostile, shape, numpy_rng):
        a = numpy_rng.integers(-4, 5, shape).astype(float) if self.exact else numpy_rng.standard_normal(shape)
        share = 0 if hostile == "nan" else self.rng.choice([0, 0, 0.3])
        return np.where(numpy_rng.random(shape) < share, -np.inf, a)
