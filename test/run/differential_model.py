"""Random models with features of real models, as .pt2 files.

ModelDraw combines the parts of users' models: normalisation, projections, splitting into heads, rotations, caches,
masks, biases, and softmax written in many ways. Every decision has a name and a simplest choice, and depends only on
the seed, the draw and its name. So a failure can be reduced by setting one decision after another to its simplest
choice.
"""
import random
import re

import numpy as np

from bounded import Bounded
from differential_graph import LARGEST, LAST, Graph, at, symbol_of

SIZES = [3, 1, 2, 5, 7, 8, 13, 16, 17, 31, 33]
POSITIONS = 64  # the length of tables of positions; no sequence is longer
NOISE = 2.0**-22  # the error that an op may add to an element, relative to the element
SAMPLES = 4


class Draw:
    """The decisions, the inputs and the graph of a draw. Subclasses build the graph."""

    def __init__(self, seed, index, features=None):
        self.seed, self.index = seed, index
        self.features = features  # the decisions that need not be the simplest choice; None: all
        self.rng = random.Random(f"{seed}:{index}")
        self.decisions, self.graph, self.inputs = {}, Graph(), {}
        self.build()
        self.weights = {name: array for name, (_, array) in self.graph.weights.items()}
        self.dynamic = self.graph.symbols()
        texts = {f"{re.sub('^[0-9l]+b? ?', '', name)}: {choice}" for name, choice in self.decisions.items()
                 if isinstance(choice, str)}
        self.kinds = [self.kind, *sorted(texts)]

    def pick(self, name, *options):
        """Chooses one of the options. The first option is the simplest."""
        choice = random.Random(f"{self.seed}:{self.index}:{name}").choice(options)
        if choice == options[0] or self.features is not None and name not in self.features:
            return options[0]
        self.decisions[name] = choice
        return choice

    def maybe(self, name, share):
        """Returns True for a share of the draws. False is the simplest choice."""
        chosen = random.Random(f"{self.seed}:{self.index}:{name}").random() < share
        if chosen and (self.features is None or name in self.features):
            self.decisions[name] = True
        return name in self.decisions

    def input(self, name, shape, draw, dtype="float32"):
        """Adds an input. `draw(numpy_rng, shape, hostile)` makes an array for it."""
        self.inputs[name] = draw
        return self.graph.input(name, [symbol_of(n) or n for n in shape], dtype)

    def weight(self, name, shape, fan=1, array=None):
        if array is None:
            rng = np.random.default_rng(list(f"{self.seed}:{self.index}:{name}".encode()))
            array = (rng.standard_normal(shape) / max(fan, 1)**0.5).astype("float32")
        return self.graph.weight(name, array)

    # --- The interface of a draw ---

    def write(self, folder):
        self.graph.save(folder / "draw.pt2")
        return folder / "draw.pt2"

    def now(self):
        """Draws a number for each symbol."""
        sizes = {}
        for symbol in self.dynamic:
            least, most = self.graph.least.get(symbol, 0), self.graph.most.get(symbol, 40)
            few = [0, 1, 1, 2, 3] if symbol == "B" else [0, 1, 1, 2]
            usual = [2, 3] if symbol == "B" else SIZES
            sizes[symbol] = min(max(self.rng.choice(few if self.rng.random() < 0.3 else usual), least), most)
        return sizes

    def problem(self, numpy_rng):
        """Returns (hostile kind, sizes, inputs, expected results) of one call."""
        hostile, arrays = self.rng.choice(["plain", "plain", "large", "duplicates", "nan"]), {}
        self.sizes = sizes = self.now()
        for name, tensor in self.graph.inputs.items():
            arrays[name] = np.asarray(self.inputs[name](numpy_rng, at(tensor.shape, sizes), hostile), tensor.dtype)
        return hostile, sizes, list(arrays.values()), self.reference(arrays, sizes, numpy_rng)

    def reference(self, arrays, sizes, rng):
        """Computes the results of the graph in float64, and bounds on the errors of results in float32.

        The bounds come from samples, in which every tensor is rounded to float32 and, except in the first sample, gets
        a small random error. If a result is NaN, the graph is evaluated twice more, with random numbers in place of
        NaN. If both evaluations give the same number, a mask hides the NaN, and compiled code may return this number or
        NaN.
        """
        spoilt = []  # for each tensor, in the order of computation, which elements are NaN in float64

        def seen(array):
            spoilt.append(np.isnan(array))
            return array

        def filling(change=lambda array: array):
            places = iter(spoilt)
            return lambda array: change(
                np.where(np.isnan(array) & next(places), rng.standard_normal(array.shape), array))

        def noisy(noise):
            return filling(lambda array: (array * (1 + noise * rng.uniform(-1, 1, array.shape)))
                           .astype("float32").astype("float64"))

        wanted = self.graph.evaluate(arrays, sizes, seen)
        spoiled = any(np.isnan(value).any() for value in wanted)
        if spoiled:
            pairs = list(zip(*(self.graph.evaluate(arrays, sizes, filling()) for _ in range(2))))
        samples = list(zip(*(self.graph.evaluate(arrays, sizes, noisy(noise)) for noise in [0] + [NOISE] * SAMPLES)))
        results = []
        for i, value in enumerate(wanted):
            or_nan = None
            if spoiled:
                a, b = pairs[i]
                or_nan = np.isnan(value) & (a == b)
                value = np.where(or_nan, b, value)
            spread = [np.abs(sample - value) for sample in samples[i]]
            said = np.isfinite(spread).all(0) | ~np.isfinite(value)
            results.append(Bounded(value, 16 * np.max(spread, 0), said=said, or_nan=or_nan))
        return results


def tokens(rng, shape, hostile):
    a = rng.standard_normal(shape)
    count = shape[-2] if len(shape) > 1 else 0
    if hostile == "large":
        a *= 10.0**rng.integers(1, 4)
    if hostile == "duplicates" and count > 1:
        a = np.take(a, np.arange(count) % rng.integers(1, count), axis=-2)
    if hostile == "nan" and count:
        a[..., rng.integers(count):, :] = np.nan
    return a


def numbers_below(count):
    return lambda rng, shape, hostile: rng.integers(0, count, shape)


def kept(rng, shape, hostile):
    """Returns a mask that keeps some leading elements of the last dimension, perhaps none, or arbitrary elements."""
    if rng.random() < 0.3:
        return rng.random(shape) < rng.choice([0.1, 0.5, 0.9])
    lengths = rng.integers(0 if rng.random() < 0.3 else min(1, shape[-1]), shape[-1] + 1, shape[:-1])
    return np.arange(shape[-1]) < lengths[..., None]


def addend(rng, shape, hostile):
    return np.where(rng.random(shape) < rng.choice([0, 0.3, 0.9]), -np.inf, rng.standard_normal(shape))


class ModelDraw(Draw):
    kind = "model"

    def build(self):
        g = self.graph
        self.H, self.D = self.pick("heads", 2, 1, 3, 4), self.pick("head size", 4, 1, 2, 3, 5, 8, 16)
        self.E = self.D
        self.C = self.H * self.D if self.maybe("width of heads", 0.5) else self.pick("width", 6, 1, 5, 12, 16)
        self.shifted = 0  # the number of windows of an image whose tokens were shifted
        self.B, self.S, self.T = self.size("B", [2, 1, 3]), self.size("S", SIZES), self.size("T", SIZES)
        x = self.first()
        for i in range(self.pick("layers", 1, 1, 1, 2)):
            x = self.layer(x, f"l{i}")
        end = self.pick("end", "all", "all", "mean", "first token", "normalised")
        if end == "mean":
            x = x.reduce("mean", [-2])
        if end == "first token" and self.at_least(x.shape[-2], 1):
            x = x.select(-2, 0)
        if end == "normalised":
            x = self.norm(x, "end")
        g.results.insert(0, x)

    def size(self, name, options):
        fixed = self.pick(name, *options)
        return name if self.maybe(f"dynamic {name}", 0.3) else fixed

    def at_least(self, size, least):
        """Returns whether a size is at least `least`. A symbol gets this lower bound."""
        symbol = symbol_of(size)
        if symbol:
            self.graph.least[symbol] = max(least, self.graph.least.get(symbol, 0))
        return bool(symbol) or isinstance(size, int) and size >= least

    def at_most(self, size, most):
        symbol = symbol_of(size)
        if symbol:
            self.graph.most[symbol] = min(most, self.graph.most.get(symbol, most))
        return bool(symbol) or isinstance(size, int) and size <= most

    # --- Around attention ---

    def first(self):
        """Returns the first tensor of tokens, (b, s, c) or (s, c)."""
        kind = self.pick("input", "tokens", "tokens", "tokens", "no batch", "image", "channels first", "ids")
        if kind == "no batch":
            return self.input("x", [self.S, self.C], tokens)
        if kind == "image":
            return self.input("x", [self.B, self.S, 3, self.C], tokens).flatten(1, 2)
        if kind == "channels first":
            return self.input("x", [self.B, self.C, 2, self.S], tokens).flatten(2, 3).transpose(1, 2)
        if kind == "ids":
            ids = self.input("ids", [self.B, self.S], numbers_below(11), "int64")
            x = self.graph.embedding(self.weight("words", [11, self.C]), ids)
            how = self.pick("positions", "none", "slice", "arange")
            if how != "none" and self.at_most(x.shape[1], POSITIONS):
                table = self.weight("positions", [POSITIONS, self.C])
                x = x + (table.slice(0, 0, x.shape[1]) if how == "slice" else
                         self.graph.embedding(table, self.graph.arange(x.shape[1])))
            return x
        return self.input("x", [self.B, self.S, self.C], tokens)

    def norm(self, x, n):
        kind = self.pick(f"{n} norm", "none", "none", "layer", "layer without weights", "rms", "rms by hand",
                         "layer by hand")
        if kind == "none":
            return x
        w = self.weight(f"{n}_norm_w", x.shape[-1:])
        if kind == "layer":
            return self.graph.layer_norm(x, w, self.weight(f"{n}_norm_b", x.shape[-1:]))
        if kind == "layer without weights":
            return self.graph.layer_norm(x)
        if kind == "rms":
            return self.graph.rms_norm(x, w)
        if kind == "rms by hand":
            return w * (x * ((x * x).reduce("mean", [-1], True) + 1e-6).apply("rsqrt"))
        centred = x - x.reduce("mean", [-1], True)
        return centred / ((centred * centred).reduce("mean", [-1], True) + 1e-5).apply("sqrt") * w

    def linear(self, x, width, n, bias=None):
        w = self.weight(f"{n}_w", [width, x.shape[-1]], x.shape[-1])
        bias = self.maybe(f"{n} bias", 0.5) if bias is None else bias
        b = self.weight(f"{n}_b", [width]) if bias else None
        kind = self.pick(f"{n} linear", "linear", "linear", "linear", "matmul", "einsum")
        if kind == "linear":
            return x.linear(w, b)
        w = self.weight(f"{n}_wt", [x.shape[-1], width], x.shape[-1])
        batch = "b" * (x.rank - 2)
        y = x.matmul(w) if kind == "matmul" else self.graph.einsum(f"{batch}sc,co->{batch}so", x, w)
        return y + b if b else y

    def mlp(self, x, n):
        kind = self.pick(f"{n} mlp", "none", "none", "gelu", "relu", "silu gate", "gelu by tanh")
        if kind == "none":
            return x
        y = self.linear(self.norm(x, f"{n} mlp"), 2 * self.C, f"{n}_up")
        if kind == "silu gate":
            y = y.apply("silu") * self.linear(x, 2 * self.C, f"{n}_gate")
        else:
            y = y.apply("gelu", approximate="tanh") if kind == "gelu by tanh" else y.apply(kind)
        return x + self.linear(y, x.shape[-1], f"{n}_down")

    def layer(self, x, n):
        self.batched, y = True, None
        kind = self.pick(f"{n} attends to", "itself", "itself", "itself", "memory", "its first token",
                         "learned queries", "windows")
        if kind == "memory":
            shape = [*([self.B] if x.rank == 3 else []), self.T, self.pick("memory width", self.C, 7, 3)]
            y = self.graph.inputs.get("memory") or self.input("memory", shape, tokens)
        if kind == "its first token" and self.at_least(x.shape[-2], 1):
            y, x = self.norm(x, n), x.slice(x.rank - 2, 0, 1)
        if kind == "learned queries":
            queries = self.weight(f"{n}_queries", [1] * (x.rank - 2) + [3, self.C])
            y, x = self.norm(x, n), queries.expand([*x.shape[:-2], 3, self.C])
        if kind == "windows" and x.rank == 3 and isinstance(x.shape[1], int) and x.shape[1] % 4 == 0:
            return self.windows(x, n)
        source = self.norm(x, n)
        out = self.attention(source, source if y is None else y, n)
        return self.after(x, out, n)

    def after(self, x, out, n):
        if x.shape[-1] != out.shape[-1] or self.maybe(f"{n} output projection", 0.7):
            out = self.linear(out, x.shape[-1], f"{n}_o")
        if self.maybe(f"{n} dropout behind", 0.2):
            out = out.dropout()
        if self.maybe(f"{n} residual", 0.5):
            out = x + out if self.maybe(f"{n} residual first", 0.5) else out + x
        return self.mlp(out, n)

    def windows(self, x, n):
        """Adds attention as in Swin: in windows of 4 tokens, from an image of two rows."""
        B, S, C = x.shape
        shift = self.maybe(f"{n} shifted", 0.5)
        image = x.view([B, 2, S // 2, C])
        if shift:
            image = image.roll([-1, -1], [1, 2])
        parts = image.view([B, 1, 2, S // 4, 2, C]).permute([0, 1, 3, 2, 4, 5])
        parts = parts.contiguous().view([B * (S // 4), 4, C])
        self.batched = False
        self.shifted = S // 4 if shift else 0
        out = self.attention(self.norm(parts, n), None, n)
        self.shifted = 0
        back = out.view([B, 1, S // 4, 2, 2, out.shape[-1]]).permute([0, 1, 3, 2, 4, 5]).contiguous()
        back = back.view([B, 2, S // 2, out.shape[-1]])
        if shift:
            back = back.roll([1, 1], [1, 2])
        return self.after(x, back.view([B, S, out.shape[-1]]), n)

    # --- Heads ---

    def attention(self, x, y, n):
        y = x if y is None else y
        g = self.graph
        q, k, v = self.heads(x, y, n)
        if self.maybe(f"{n} query and key normalised", 0.15):
            q, k = (g.rms_norm(a, self.weight(f"{n}_{m}_norm", [self.D])) if self.maybe(f"{n} by rms", 0.5) else
                    g.layer_norm(a, self.weight(f"{n}_{m}_norm", [self.D])) for a, m in ((q, "q"), (k, "k")))
        turn = self.pick(f"{n} rotation", "none", "none", "half", "interleaved", "partial")
        if turn != "none" and self.D % 2 == 0 and self.at_most(q.shape[-2], POSITIONS) and \
                self.at_most(k.shape[-2], POSITIONS):
            q, k = (self.rotated(a, turn, n) for a in (q, k))
        self.past = 0
        if self.batched and self.maybe(f"{n} cache", 0.15):
            self.past = self.size("P", [4, 1, 9])
            past = [self.input(f"{n}_past_{m}", [*a.shape[:-3], a.shape[-3], self.past, a.shape[-1]], tokens)
                    for m, a in (("k", k), ("v", v))]
            self.past = past[0].shape[-2]
            k, v = (g.cat([a, b], -2) for a, b in zip(past, (k, v)))
            if self.maybe(f"{n} cache returned", 0.7):
                g.results += [k, v]
        out = self.product(q, k, v, n)
        if self.maybe(f"{n} second query", 0.08):
            other = self.split(self.linear(x, self.H * self.D, f"{n}_q2"), self.H, f"{n} q2")
            out = out + self.product(other, k, v, f"{n}b")
        return self.merge(out, n)

    def heads(self, x, y, n):
        """Returns query (.., h, s, d), key (.., h, t, d) and value (.., h, t, e)."""
        H, D = self.H, self.D
        kv = self.kv_heads = self.pick(f"{n} key heads", H, H, 1, *([2] if H == 4 else []))
        options = ["three linears", "three linears", "head weights"]
        if x is y:
            options += ["split", "chunked", "unbound", "selected", "packed by head", "query is key"]
        else:
            options += ["packed keys and values"]
        way = self.pick(f"{n} projections", *options, "value is key", "no projection")
        batch = "b" * (x.rank - 2)
        if way == "no projection" and H * D == x.shape[-1] == y.shape[-1] and kv == H:
            k = self.split(y, H, f"{n} k")
            return self.split(x, H, f"{n} q"), k, k
        if way == "head weights":
            project = lambda a, count, m: self.graph.einsum(
                f"{batch}sc,hdc->{batch}hsd", a, self.weight(f"{n}_{m}_hw", [count, D, a.shape[-1]], a.shape[-1]))
            return project(x, H, "q"), project(y, kv, "k"), project(y, kv, "v")
        if way == "split" or way in ("chunked", "unbound", "selected", "packed by head") and kv != H:
            packed = self.linear(x, (H + 2 * kv) * D, f"{n}_qkv")
            parts = packed.parts([H * D, kv * D, kv * D], -1)
            return [self.split(part, heads, f"{n} {m}") for part, heads, m in zip(parts, (H, kv, kv), "qkv")]
        if way == "chunked":
            parts = self.linear(x, 3 * H * D, f"{n}_qkv").parts([H * D] * 3, -1, "chunk.default")
            return [self.split(part, H, f"{n} {m}") for part, m in zip(parts, "qkv")]
        if way in ("unbound", "selected"):
            packed = self.linear(x, 3 * H * D, f"{n}_qkv").view([*x.shape[:-1], 3, H, D])
            r = x.rank - 2
            packed = packed.permute([r + 1, *range(r), r + 2, r, r + 3])
            return packed.parts([1] * 3, 0, "unbind.int") if way == "unbound" else [packed.select(0, i) for i in
                                                                                   range(3)]
        if way == "packed by head":
            packed = self.linear(x, 3 * H * D, f"{n}_qkv").view([*x.shape[:-1], H, 3 * D])
            return packed.transpose(-2, -3).parts([D] * 3, -1, "chunk.default")
        if way == "packed keys and values":
            packed = self.linear(y, 2 * kv * D, f"{n}_kv").view([*y.shape[:-1], 2, kv, D])
            r = y.rank - 2
            k, v = packed.permute([r + 1, *range(r), r + 2, r, r + 3]).parts([1] * 2, 0, "unbind.int")
            return self.split(self.linear(x, H * D, f"{n}_q"), H, f"{n} q"), k, v
        q = self.linear(x, H * D, f"{n}_q")
        if way == "query is key" and kv == H:
            k = q
        else:
            k = self.linear(y, kv * D, f"{n}_k")
        k = self.split(k, kv, f"{n} k")
        v = k if way == "value is key" else self.split(self.linear(y, kv * D, f"{n}_v"), kv, f"{n} v")
        return self.split(q, H, f"{n} q"), k, v

    def split(self, x, heads, n):
        """Reshapes (.., s, h * d) to (.., h, s, d)."""
        shape, r = [*x.shape[:-1], heads, x.shape[-1] // heads], x.rank - 2
        how = self.pick(f"{n} split", "view", "view", "reshape", "unflatten", "permute", "chunks stacked", "-1")
        if how == "chunks stacked" and heads > 1:
            return self.graph.stack(x.parts([shape[-1]] * heads, -1, "chunk.default"), r)
        if how == "unflatten":
            return x.unflatten(-1, shape[-2:], hole=1).transpose(r, r + 1)
        if how == "permute":
            return x.view(shape).permute([*range(r), r + 1, r, r + 2])
        if how == "-1":
            return x.view(shape, hole=r + 2).transpose(-2, -3)
        return x.view(shape, "reshape.default" if how == "reshape" else "view.default").transpose(r, r + 1)

    def merge(self, x, n):
        """Reshapes (.., h, s, d) to (.., s, h * d)."""
        how = self.pick(f"{n} merge", "view", "view", "reshape", "flatten", "permute", "unbound", "projected")
        r, shape = x.rank - 3, [*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1]]
        if how == "projected":
            batch = "b" * r
            w = self.weight(f"{n}_merge_w", [x.shape[-3], x.shape[-1], self.C], x.shape[-3] * x.shape[-1])
            return self.graph.einsum(f"{batch}hsd,hdc->{batch}sc", x, w)
        if how == "unbound":
            return self.graph.cat(x.parts([1] * x.shape[-3], r, "unbind.int"), -1)
        if how == "permute":
            return x.permute([*range(r), r + 1, r, r + 2]).contiguous().view(shape, hole=r + 1)
        x = x.transpose(r, r + 1)
        if how == "flatten":
            return x.flatten(-2, -1)
        return x.view(shape, "reshape.default") if how == "reshape" else x.contiguous().view(shape)

    def rotated(self, x, kind, n):
        """Applies rotary embeddings of the positions along the second to last dimension."""
        g, D = self.graph, self.D
        width = D // 2 if kind == "partial" and D % 4 == 0 else D
        angles = np.outer(np.arange(POSITIONS), 100.0**(-np.arange(0, width, 2) / width))
        tables = []
        for name, function in (("cos", np.cos), ("sin", np.sin)):
            table = function(np.repeat(angles, 2, 1) if kind == "interleaved" else np.tile(angles, 2))
            tables.append(self.weight(f"{name} {kind}", None, array=table.astype("float32")).slice(0, 0, x.shape[-2]))
        cos, sin = tables
        part, rest = (x, None) if width == D else x.parts([width, D - width], -1)
        if kind == "interleaved":
            pairs = part.view([*part.shape[:-1], width // 2, 2])
            even, odd = pairs.parts([1, 1], -1, "unbind.int")
            other = g.stack([-odd, even], -1).flatten(-2, -1)
        else:
            first, second = (part.slice(part.rank - 1, 0, width // 2), part.slice(part.rank - 1, width // 2, LAST))
            second.shape[-1] = width // 2
            other = g.cat([-second, first], -1)
        turned = part * cos + other * sin
        return turned if rest is None else g.cat([turned, rest], -1)

    # --- Scores ---

    def product(self, q, k, v, n):
        """Returns the result of one attention, (.., h, s, e)."""
        g, core = self.graph, self.pick(f"{n} core", "matmul", "matmul", "sdpa", "sdpa", "einsum", "bmm", "baddbmm",
                                        "token by token")
        self.shape = [*q.shape[:-2], q.shape[-2], k.shape[-2]]
        if core == "bmm" and len(self.shape) == 3:
            core = "matmul"
        grouped = False
        if self.kv_heads != self.H:
            how = self.pick(f"{n} groups", "repeated", "expanded", "by sdpa", "broadcast")
            if how == "by sdpa" and core == "sdpa":
                grouped = True
            elif how == "expanded":
                k, v = (self.expanded(a) for a in (k, v))
            elif how != "broadcast" or self.kv_heads != 1 or core not in ("matmul", "sdpa"):
                k, v = (a.repeat_interleave(self.H // self.kv_heads, a.rank - 3) for a in (k, v))
        if core == "sdpa":
            out = self.by_sdpa(q, k, v, grouped, n)
        else:
            p = self.weights_of(q, k, core, n)
            if self.maybe(f"{n} weights returned", 0.12):
                g.results.append(p.reduce("mean", [-3]) if self.maybe(f"{n} weights averaged", 0.5) else p)
            batch = "b" * (q.rank - 3)
            if core in ("bmm", "baddbmm") and q.rank == 4:
                flat = lambda a: a.view([a.shape[0] * a.shape[1], *a.shape[2:]], "reshape.default")
                out = flat(p).matmul(flat(v), "bmm.default").view([*p.shape[:-1], v.shape[-1]])
            elif core == "einsum":
                out = g.einsum(f"{batch}hst,{batch}hte->{batch}hse", p, v)
            elif core == "token by token":
                out = g.einsum(f"{batch}hst,{batch}hte->{batch}she", p, v).transpose(-2, -3)
            else:
                out = p.matmul(v)
        return out

    def expanded(self, a):
        """Repeats the keys for each group of query heads by expand and reshape."""
        count, shape = self.H // self.kv_heads, a.shape
        wide = a.unsqueeze(-3).expand([*shape[:-2], count, *shape[-2:]])
        return wide.view([*shape[:-3], self.H, *shape[-2:]], "reshape.default")

    def by_sdpa(self, q, k, v, grouped, n):
        scale = self.pick(f"{n} sdpa scale", None, None, 0.25, 1.0, 0.7)
        causal = not self.past and self.maybe(f"{n} is_causal", 0.2)
        keeps, addends = ([], []) if causal else self.masks(n)
        bias = None if causal else self.bias(n)
        addends += [bias] if bias else []
        mask = None
        for keep in keeps:
            mask = keep if mask is None else mask & keep
        if mask and addends:
            addends.append(self.as_addend(mask, n))
        for add in addends:
            mask = add if add is addends[0] else mask + add
        if mask and mask.rank < 2:
            mask = mask.unsqueeze(0)
        return self.graph.attention(q, k, v, mask, causal, scale, grouped)

    def weights_of(self, q, k, core, n):
        g, scale = self.graph, self.pick(f"{n} scale", self.D**-0.5, self.D**-0.5, 0.25, 1.7)
        where = self.pick(f"{n} scaled", "scores", "divided", "query", "key", "both", "none")
        if where in ("query", "both"):
            q = q * (scale if where == "query" else scale**0.5)
        if where in ("key", "both"):
            k = k * (scale if where == "key" else scale**0.5)
        batch = "b" * (q.rank - 3)
        if core in ("bmm", "baddbmm") and q.rank == 4:
            flat = lambda a: a.view([a.shape[0] * a.shape[1], *a.shape[2:]], "reshape.default")
            a, b = flat(q), flat(k).transpose(1, 2)
            if core == "baddbmm":
                start = g.full([1, 1, 1], 0.0)
                scores = g.call("baddbmm.default", lambda c, a, b, beta, alpha: alpha * (a @ b),
                                [a.shape[0], a.shape[1], b.shape[2]], self=start, batch1=a, batch2=b, beta=0,
                                alpha=0.5)
            else:
                scores = a.matmul(b, "bmm.default")
            scores = scores.view(self.shape)
        elif core in ("einsum", "token by token"):
            if core == "token by token":
                scores = g.einsum(f"{batch}shd,{batch}thd->{batch}hst", q.transpose(-2, -3), k.transpose(-2, -3))
            else:
                scores = g.einsum(f"{batch}hsd,{batch}htd->{batch}hst", q, k)
        else:
            turned = self.pick(f"{n} key turned", "transpose", "permute")
            kt = k.transpose(-2, -1) if turned == "transpose" else k.permute(
                [*range(k.rank - 2), k.rank - 1, k.rank - 2])
            scores = q.matmul(kt)
        if where == "scores":
            scores = scores * scale
        if where == "divided":
            scores = scores / (1 / scale)
        if self.maybe(f"{n} softcap", 0.1):
            scores = (scores / 5.0).apply("tanh") * 5.0
        p = self.softmax_with_sink(self.masked(scores, n), n)
        return p.dropout() if self.maybe(f"{n} dropout", 0.3) else p

    def softmax_with_sink(self, scores, n):
        """Computes a softmax with an additional score in each row, whose weight is dropped."""
        kind = self.pick(f"{n} sink", "none", "none", "none", "none", "none", "of heads", "zeros", "padding")
        if kind == "none":
            return self.softmax(scores, n)
        first, keys, rows = self.maybe(f"{n} sink first", 0.5), scores.shape[-1], scores.shape[:-1]
        if kind == "padding":
            scores = scores.call("constant_pad_nd.default", lambda x, ends: np.pad(x, [(0, 0)] * (x.ndim - 1) + [ends]),
                                 [*rows, keys + 1], pad=[1, 0] if first else [0, 1])
        else:
            sink = (self.weight(f"{n}_sink", [self.shape[-3], 1, 1]).expand([*rows, 1]) if kind == "of heads"
                    else self.graph.full([*rows, 1], 0.0))
            scores = self.graph.cat([sink, scores] if first else [scores, sink], -1)
        p = self.softmax(scores, n)
        return p.slice(-1, 1, LAST) if first else p.slice(-1, 0, keys)

    def softmax(self, scores, n):
        how = self.pick(f"{n} softmax", "softmax", "softmax", "_softmax", "by hand", "by hand without a maximum",
                        "safe", "last dimension by number")
        if how == "_softmax":
            return scores.softmax(-1, "_softmax.default")
        if how == "last dimension by number":
            return scores.softmax(scores.rank - 1)
        if how.startswith("by hand"):
            if how == "by hand" and self.at_least(scores.shape[-1], 1):
                scores = scores - scores.reduce("amax", [-1], True)
            e = scores.apply("exp")
            return e / e.reduce("sum", [-1], True)
        p = scores.softmax(-1)
        if how == "safe":  # torch decomposes scaled_dot_product_attention in this way
            live = scores.compare("eq", -np.inf).unary("logical_not", np.logical_not)
            live = live.call("any.dim", lambda x, d, keep: x.any(d, keepdims=keep), live.reduced([-1], True), None,
                             dim=-1, keepdim=True)
            zero = p.unary("full_like", lambda x, v: np.full(x.shape, float(v)), fill_value=0)
            p = live.unary("logical_not", np.logical_not).where(zero, p)
        return p

    # --- Masks, in which True keeps a pair ---

    def masked(self, scores, n):
        bias = self.bias(n)
        late = self.maybe(f"{n} bias behind the mask", 0.3)
        if bias and not late:
            scores = scores + bias
        keeps, addends = self.masks(n)
        for i, keep in enumerate(keeps):
            how = self.pick(f"{n} mask {i} applied", "masked_fill", "where", "where a tensor", "added")
            fill = self.pick(f"{n} mask {i} fill", -np.inf, -np.inf, -1e9, -1e4, -LARGEST)
            if how == "masked_fill":
                hidden = ~keep if self.maybe(f"{n} mask {i} inverted", 0.5) else keep.unary(
                    "logical_not", np.logical_not)
                scores = scores.masked_fill(hidden, fill)
            elif how == "added":
                scores = scores + self.as_addend(keep, f"{n} {i}")
            else:
                scores = keep.where(scores, fill if how == "where" else self.graph.full([], fill))
        for add in addends:
            scores = add + scores if self.maybe(f"{n} mask first", 0.3) else scores + add
        if bias and late:
            scores = scores + bias
        if self.shifted:
            B, H, N, _ = scores.shape
            groups = self.weight(f"{n}_shift", None, array=np.where(np.arange(self.shifted * N * N).reshape(
                self.shifted, N, N) % 5 == 3, -100, 0).astype("float32"))
            whole = scores.view([self.whole_batch(), self.shifted, H, N, N])
            scores = (whole + groups.unsqueeze(1).unsqueeze(0)).view([B, H, N, N])
        return scores

    def whole_batch(self):
        return self.graph.inputs["x" if "x" in self.graph.inputs else "ids"].shape[0]

    def as_addend(self, keep, n):
        how = self.pick(f"{n} addend", "filled zeros", "one minus", "where")
        fill = self.pick(f"{n} addend fill", -np.inf, -1e4, -1e9, -LARGEST)
        if how == "one minus":  # the fill is finite, because an infinite fill times 0 is NaN
            return keep.to("float32").rsub(1.0) * (fill if np.isfinite(fill) else -1e4)
        if how == "where":
            return keep.where(0.0, fill)
        return self.graph.full(keep.shape, 0.0).masked_fill(~keep, fill)

    def masks(self, n):
        """Returns boolean masks, and masks to add, for scores (.., h, s, t)."""
        kinds = ["none", "none", "causal", "window", "table", "causal and padding"]
        if self.batched:
            kinds += ["padding", "lengths", "dense", "additive", "padding and window", "dense and lengths"]
        keeps, addends = [], []
        for kind in self.pick(f"{n} mask", *kinds).split(" and "):
            if kind == "none" or kind in ("padding", "lengths") and not self.batched:
                continue
            made = getattr(self, kind)(n)
            (addends if made.dtype == "float32" else keeps).append(made)
        return keeps, addends

    def coordinates(self):
        """Returns the positions of queries, as (s, 1), and of keys, as (t)."""
        g, (S, T) = self.graph, self.shape[-2:]
        rows = g.arange(S).unsqueeze(-1)
        if isinstance(self.past, int) and not self.past:
            return rows, g.arange(T)
        past = self.past if isinstance(self.past, int) else T - S
        return rows + g.full([], 0, "int64") + (past if isinstance(past, int) else 0), g.arange(T)

    def causal(self, n):
        g, (S, T) = self.graph, self.shape[-2:]
        how = self.pick(f"{n} causal", "compared", "tril", "triu", "infinite", "table")
        static_past = isinstance(self.past, int)
        if how == "table" and self.at_most(S, POSITIONS) and self.at_most(T, POSITIONS) and static_past:
            rank = len(self.shape)
            table = np.tri(POSITIONS, dtype=bool).reshape([1] * (rank - 2) + [POSITIONS, POSITIONS])
            table = self.weight(f"causal of rank {rank}", None, array=table)
            if self.at_most(S, POSITIONS - self.past):
                return table.slice(rank - 2, self.past, S + self.past).slice(rank - 1, 0, T)
        if how == "tril" and static_past:
            return g.full([S, T], True, "bool").triangle("tril", self.past)
        if how == "triu" and static_past:
            return ~g.full([S, T], 1, "int64").triangle("triu", self.past + 1).to("bool")
        if how == "infinite" and static_past:
            return g.full([S, T], -np.inf).triangle("triu", self.past + 1)
        rows, columns = self.coordinates()
        return columns.compare("le", rows)

    def window(self, n):
        rows, columns = self.coordinates()
        width = self.pick(f"{n} width", 2, 0, 1, 5, 20)
        apart = rows - columns
        if self.maybe(f"{n} window of both sides", 0.5):
            return apart.apply("abs").compare("le", width)
        return columns.compare("le", rows) & apart.compare("lt", width + 1)

    def at_heads(self, mask, n):
        """Reshapes (b, t) or (t) to (b, 1, 1, t) or (1, 1, t)."""
        how = self.pick(f"{n} mask at heads", "unsqueeze", "view", "expanded")
        if how == "view":
            return mask.view([*mask.shape[:-1], 1, 1, mask.shape[-1]])
        mask = mask.unsqueeze(-2).unsqueeze(-2)
        return mask.expand([*mask.shape[:-2], self.shape[-2], mask.shape[-1]]) if how == "expanded" else mask

    def of_keys(self, n, kind, draw):
        """Adds an input with one element per key. Returns None if the number of keys cannot be a size of an input."""
        shape = [*self.shape[:-3], self.shape[-1]]
        return self.input(f"{n}_keep", shape, draw, kind) if self.inputs_only(shape) else None

    def padding(self, n):
        how = self.pick(f"{n} padding", "bool", "int64", "float32", "hidden", "equals 0", "one minus")
        kind = {"bool": "bool", "hidden": "bool", "float32": "float32", "one minus": "float32"}.get(how, "int64")
        keep = self.of_keys(n, kind, kept)
        if keep is None:
            return self.lengths(n)
        if how == "one minus":
            return self.at_heads(keep, n).rsub(1.0) * self.pick(f"{n} padding fill", -1e4, -1e9, -LARGEST)
        if how == "hidden":
            keep = ~keep
        if how == "float32":
            keep = keep.compare("gt", 0.5)
        if how == "int64":
            keep = keep.to("bool")
        if how == "equals 0":
            keep = keep.compare("eq", 0).unary("logical_not", np.logical_not)
        return self.at_heads(keep, n)

    def lengths(self, n):
        T = self.shape[-1]
        draw = lambda rng, shape, hostile: rng.integers(0, at(T, self.sizes) + 1, shape)
        lengths = self.input(f"{n}_lengths", self.shape[:-3], draw, "int64")
        return self.at_heads(self.graph.arange(T).compare("lt", lengths.unsqueeze(-1)), n)

    def pairs(self, n):
        """Draws the shape of a mask of pairs."""
        shape = self.pick(f"{n} pairs", "st", "bst", "bhst", "b1t")
        (S, T), batch = self.shape[-2:], self.shape[:-3]
        return {"st": [S, T], "bst": [*batch, 1, S, T], "bhst": self.shape, "b1t": [*batch, 1, 1, T]}[shape]

    def dense(self, n):
        shape = self.pairs(n)
        return self.input(f"{n}_dense", shape, kept, "bool") if self.inputs_only(shape) else self.causal(n)

    def additive(self, n):
        shape = self.pairs(n)
        return self.input(f"{n}_add", shape, addend) if self.inputs_only(shape) else self.causal(n)

    @staticmethod
    def inputs_only(shape):
        """Returns whether an input may have this shape."""
        return all(isinstance(size, int) or symbol_of(size) for size in shape)

    def table(self, n):
        """Returns a mask that is a boolean parameter."""
        if not all(isinstance(size, int) for size in self.shape[-2:]):
            return self.causal(n)
        S, T = self.shape[-2:]
        return self.weight(f"{n}_table", None, array=(np.arange(S * T).reshape(S, T) * 7) % 5 < 4)

    def bias(self, n):
        g, (H, S, T) = self.graph, self.shape[-3:]
        kind = self.pick(f"{n} score bias", "none", "none", "none", "parameter", "of heads", "alibi", "relative")
        if kind == "parameter" and isinstance(S, int) and isinstance(T, int):
            with_batch = len(self.shape) > 3 and self.maybe(f"{n} bias with batch", 0.5)
            return self.weight(f"{n}_bias", [1, H, S, T] if with_batch else [H, S, T])
        if kind == "of heads":
            return self.weight(f"{n}_bias_h", [H, 1, 1])
        rows, columns = self.coordinates()
        if kind == "alibi":
            slopes = self.weight(f"{n}_slopes", None, array=(2.0**-np.arange(1, H + 1)).astype("float32"))
            apart = columns - rows
            if self.maybe(f"{n} alibi of both sides", 0.3):
                apart = -apart.apply("abs")
            return slopes.unsqueeze(-1).unsqueeze(-1) * apart.to("float32")
        if kind == "relative" and self.at_most(S, POSITIONS) and self.at_most(T, POSITIONS):
            far = (columns - rows).call("clamp.default", lambda x, a, b: np.clip(x, a, b), [S, T], None, min=-8, max=8)
            table = self.weight(f"{n}_relative", [17, H])
            how = self.pick(f"{n} relative gathered", "embedding", "index")
            rows = g.embedding(table, far + 8) if how == "embedding" else table.index(far + 8)
            return rows.permute([2, 0, 1])
        return None
