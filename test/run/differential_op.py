"""One attn.attention with random sizes, layouts, mask and score region, and its reference, the formula in Ops.td."""
import math

import numpy as np

import bounded
import library
from bounded import Bounded

SIZES = [2, 3, 5, 7, 13, 16, 17, 31, 47, 48, 49, 64, 65, 95, 96, 97, 129, 193]
HEAD_SIZES = [*range(2, 21), 32, 48, 63, 64, 72]
MULTIPLY_ADDS = 400_000  # the most multiply-adds of a problem
FILL = -1e9
HALVES = ["f16", "bf16"]


class Operand:
    """An operand of the op; `dims` is its indexing map."""

    def __init__(self, name, element, dims, draw):
        self.name, self.element, self.dims, self.draw = name, element, dims, draw

    def type(self, sizes, dynamic):
        extents = ["?" if d in dynamic else str(sizes[d]) for d in self.dims]
        return f"tensor<{'x'.join([*extents, self.element])}>"

    def array(self, sizes):
        shape = [sizes[d] for d in self.dims]
        return library.to_element(np.asarray(self.draw(shape)).reshape(shape), self.element)


class OpDraw:
    weights = {}

    def __init__(self, rng):
        self.rng = rng
        self.grouped = rng.random() < 0.2
        self.batch = ["b", "h", "g"] if self.grouped else ["b", "h"]
        self.sizes = self.draw_sizes({})
        self.dynamic = {d for d in ["q", "k", *self.batch] if rng.random() < (0.5 if d in "qk" else 0.2)}
        self.returns_probabilities = rng.random() < 0.2
        self.region = rng.choice(["", "", "bias", "fill", "alibi"])
        self.fill_keys = rng.randint(0, self.sizes["k"])
        self.fill_side = rng.choice(["sge", "slt"])
        self.empty_row = rng.choice(["zero", "nan"])
        usual = max(self.sizes["d"], 1)**-0.5
        self.scale = float(np.float32(rng.choice([1.0, 1.0, 0.25, 0.25, *[usual] * 6, *[128.0] * 4, -usual, 2.0**66])))
        # The types of query, key, value, sink, output and probabilities: f32, one of half precision, or any.
        kind = rng.choice(["f32", "f32", "f32", *HALVES, "mixed"])
        self.elements = [rng.choice(["f32", *HALVES]) if kind == "mixed" else kind for _ in range(6)]
        self.has_halves = any(element in HALVES for element in self.elements)
        if self.has_halves and self.scale == 2.0**66:
            self.scale = 0.25  # f16 cannot represent the data for a huge scale
        self.captures, self.sink = [], None
        self.layout_and_operands()
        self.mask, self.kept = self.draw_mask()
        if rng.random() < 0.2:
            self.sink = Operand("sink", self.elements[3], rng.choice([["h"], ["h"], ["b", "q"], []]), self.draw_sink)
        names = ["empty row " + self.empty_row, self.region or "no region", *self.mask_kinds]
        names += ["grouped heads"] * self.grouped + ["returned weights"] * self.returns_probabilities
        names += ["sink"] * bool(self.sink)
        names += [f"{kind} elements"]
        names += [f"{'dynamic' if self.dynamic else 'static'} sizes"]
        self.kinds = ["op"] + [f"op: {name}" for name in names]

    def draw_sizes(self, fixed):
        """Draws sizes, except those in `fixed`. Most dimensions often have size 1."""
        rng = self.rng
        one = lambda share, other: 1 if rng.random() < share else other()
        zero = lambda sizes: lambda: 0 if rng.random() < 0.04 else rng.choice(sizes)
        while True:
            sizes = {"b": one(0.4, lambda: rng.randint(0 if fixed else 1, 3)), "h": one(0.3, lambda: rng.randint(1, 4)),
                     "g": rng.randint(1, 3) if self.grouped else 1, "q": one(0.2, zero(SIZES)),
                     "k": one(0.15, zero(SIZES)), "d": one(0.15, zero(HEAD_SIZES))}
            if self.grouped and rng.random() < 0.4:
                sizes["q"] = 1  # the groups become queries
            elif rng.random() < 0.3:
                sizes["k"] = sizes["q"]
            sizes["e"] = one(0.3, lambda: rng.choice(HEAD_SIZES)) if rng.random() < 0.4 else max(sizes["d"], 1)
            sizes.update(fixed)
            pairs = math.prod(sizes[d] for d in "bhgqk")
            if pairs * (sizes["d"] + sizes["e"]) <= MULTIPLY_ADDS:
                return sizes

    def layout_and_operands(self):
        rng, batch = self.rng, self.batch
        layout = lambda heads, row, column: ([heads[0], row, *heads[1:], column] if rng.random() < 0.3
                                             else [*heads, row, column])
        self.operands = [Operand("q", self.elements[0], layout(batch, "q", "d"), None),
                         Operand("k", self.elements[1], layout(batch[:2], "k", "d"), None),
                         Operand("v", self.elements[2], layout(batch[:2], "k", "e"), None)]
        self.out_dims = layout(batch, "q", "e")
        if self.region == "bias":
            self.bias = self.capture("f32", rng.choice([["h", "q", "k"], ["q", "k"]]), self.normal)[1]

    def normal(self, shape):
        return self.numpy.standard_normal(shape)

    def draw_sink(self, shape):
        return np.where(self.numpy.random(shape) < 0.1, -math.inf, 4 * self.normal(shape))

    def capture(self, element, dims, draw):
        self.captures.append(Operand(f"c{len(self.captures)}", element, dims, draw))
        return len(self.captures) - 1, self.captures[-1]

    def draw_mask(self):
        """Returns the text of the attribute, or "", and a function of coordinates and captures that gives the kept
        pairs."""
        self.mask_kinds = self.rng.sample(["causal", "window", "lengths", "dense"], self.rng.choice([0, 1, 1, 1, 2]))
        chosen = [getattr(self, f"draw_{kind}")() for kind in self.mask_kinds]

        def kept(q, k, captured):
            live = np.ones(np.broadcast_shapes(q.shape, k.shape), bool)
            for _, test in chosen:
                live = live & test(q, k, captured)
            return live

        texts = [text for text, _ in chosen]
        return (f"#attn.and<[{', '.join(texts)}]>" if len(texts) > 1 else "".join(texts)), kept

    def draw_causal(self):
        n = self.rng.choice([0, 0, 1, 3, 50, -1, -20, self.sizes["k"] - self.sizes["q"]])
        return f"#attn.causal<offset = {n}>", lambda q, k, _: k <= q + n

    def draw_window(self):
        left, right, n = self.rng.choice([0, 1, 5, 40]), self.rng.choice([0, 0, 1, 33]), self.rng.choice([0, 0, 4, -7])
        return (f"#attn.window<left = {left}, right = {right}, offset = {n}>",
                lambda q, k, _: (q + n - left <= k) & (k <= q + n + right))

    def draw_lengths(self):
        dims = self.rng.choice([["b"], ["b"], ["b", "h"], ["b", "q"]])

        def draw(shape):
            n = self.now["k"]
            lengths = self.numpy.integers(0, n + 1, shape)
            return np.where(self.numpy.random(shape) < 0.5, lengths, self.numpy.choice([0, n], shape))

        i, lengths = self.capture("i32", dims, draw)
        return f"#attn.lengths<{i}>", lambda q, k, captured: k < captured[lengths.name]

    def draw_dense(self):
        element = self.rng.choice(["i1", "i64"])
        dims = self.rng.choice([["q", "k"], ["b", "q", "k"], ["b", "k"]])
        share = self.rng.choice([0.05, 0.5, 0.95])
        other = 1 if element == "i1" else self.rng.choice([1, -3, 1 << 40])
        i, mask = self.capture(element, dims, lambda shape: np.where(self.numpy.random(shape) < share, other, 0))
        zero = self.rng.random() < 0.5
        return (f"#attn.dense<{i}{', keeps = zero' * zero}>",
                lambda q, k, captured: (captured[mask.name] == 0) == zero)

    def write(self, folder):
        (folder / "draw.mlir").write_text(self.text())
        return folder / "draw.mlir"

    def text(self):
        sizes, dynamic = self.sizes, self.dynamic
        names = ", ".join([*self.batch, "q", "k", "d", "e"])
        outs = [Operand(name, element, dims, None) for (name, dims), element in zip(self.outs(), self.elements[4:])]
        maps = ", ".join(f"affine_map<({names}) -> ({', '.join(t.dims)})>" for t in self.inputs() + outs)
        dims = lambda dims: ", ".join(f'"{d}"' if d in dynamic else '""' for d in dims)
        type = lambda t: t.type(sizes, dynamic)
        named = lambda t: f'{type(t)} {{attn.name = "{t.name}", attn.dims = [{dims(t.dims)}]}}'
        arguments = ",\n    ".join(f"%{t.name}: {named(t)}" for t in self.inputs())
        symbols = ", ".join(f'#attn.symbol<"{d}", 0 to 4096>' for d in sorted(dynamic))
        lines = [f"func.func @forward({arguments})",
                 f"    -> ({', '.join(map(named, outs))}) attributes {{attn.symbols = [{symbols}]}} {{"]
        for d in sorted(dynamic):
            t = next(t for t in self.inputs() if d in t.dims)
            lines += [f"  %axis_{d} = arith.constant {t.dims.index(d)} : index",
                      f"  %size_{d} = tensor.dim %{t.name}, %axis_{d} : {type(t)}"]
        for t in outs:
            lines += [f"  %init_{t.name} = tensor.empty({', '.join(f'%size_{d}' for d in t.dims if d in dynamic)})"
                      f" : {type(t)}"]
        inits, types = ", ".join(f"%init_{t.name}" for t in outs), ", ".join(map(type, outs))
        results = ", ".join(f"%o#{i}" for i in range(len(outs)))
        captures = ""
        if self.captures:
            captures = (f" captures({', '.join('%' + c.name for c in self.captures)} : "
                        f"{', '.join(map(type, self.captures))})")
        sink = f" sink(%sink : {type(self.sink)})" if self.sink else ""
        mask = f" mask({self.mask})" if self.mask else ""
        lines += [f"  %o:{len(outs)} = attn.attention ins(%q, %k, %v : {', '.join(map(type, self.operands))})"
                  f"{captures}{sink} outs({inits} : {types}){mask}",
                  f"    {{indexing_maps = [{maps}],",
                  f"     scale = {self.scale:.9e} : f32, empty_row = #attn.empty_row<{self.empty_row}>}}"
                  f"{self.region_text()} -> {types}",
                  f"  return {results} : {types}", "}", ""]
        return "\n".join(lines)

    def region_text(self):
        if not self.region:
            return ""
        arguments = [f"%{d}i: index" for d in [*self.batch, "q", "k"]] + ["%s: f32"]
        arguments += [f"%x{i}: {c.element}" for i, c in enumerate(self.captures)]
        body = {
            "bias": ["%y = arith.addf %s, %x0 : f32"],
            "fill": [f"%n = arith.constant {self.fill_keys} : index", f"%fill = arith.constant {FILL:.1e} : f32",
                     f"%c = arith.cmpi {self.fill_side}, %ki, %n : index", "%y = arith.select %c, %fill, %s : f32"],
            "alibi": ["%slope = arith.constant 6.250000e-02 : f32", "%d = arith.subi %ki, %qi : index",
                      "%i = arith.index_cast %d : index to i32", "%f = arith.sitofp %i : i32 to f32",
                      "%t = arith.mulf %f, %slope : f32", "%y = arith.addf %s, %t : f32"],
        }[self.region]
        return "\n    score {\n    ^bb0(" + ", ".join(arguments) + "):\n" + "".join(
            f"      {line}\n" for line in [*body, "attn.yield %y : f32"]) + "    }"

    def outs(self):
        """Returns the names and dimensions of the results."""
        return [("out", self.out_dims)] + [("weights", [*self.batch, "q", "k"])] * self.returns_probabilities

    def inputs(self):
        return [*self.operands, *self.captures, *([self.sink] if self.sink else [])]

    def hostile_kinds(self):
        """Returns the kinds of data for this scale and region. The exponents of the data cancel a huge scale."""
        if self.scale == 2.0**66:
            return ["tiny keys", "tiny keys, huge queries"]
        exact = ["exact", "exact", "exact duplicates"]
        if abs(self.scale) > 1:
            return ["plain", *exact]
        # A probability may be 0 in f32 and not in the formula, for example with a fill. Its product with an infinite
        # value is NaN, as in any online softmax, so infinite values are used only with moderate scores.
        kinds = ["plain", "plain", *exact, "duplicates", "near duplicates", "climbing", "nan", "nan value", "inf key"]
        if self.sizes["d"] and not self.has_halves:
            kinds += ["one greatest", "all least", "mixed extremes", "equal 1e8"]
        return kinds + ["inf value"] * (self.region != "fill")

    def problem(self, numpy_rng):
        """Returns (hostile kind, sizes, inputs, expected results) of one call."""
        self.numpy = numpy_rng
        self.now = n = self.draw_sizes({d: size for d, size in self.sizes.items() if d not in self.dynamic})
        if self.dynamic and self.rng.random() < 0.15:
            n[self.rng.choice(sorted(self.dynamic))] = self.rng.choice([0, 1])
        hostile = self.rng.choice(self.hostile_kinds())
        batch = self.batch
        canonical = [[*batch, "q", "d"], [*batch[:2], "k", "d"], [*batch[:2], "k", "e"]]
        arrays = self.draw_data(hostile, *([n[d] for d in dims] for dims in canonical))
        arrays = [library.to_element(a, operand.element) for a, operand in zip(arrays, self.operands)]
        inputs = [np.ascontiguousarray(a.transpose([dims.index(d) for d in operand.dims]))
                  for a, dims, operand in zip(arrays, canonical, self.operands)]
        arrays = [library.from_element(a).astype(np.float32) for a in arrays]
        inputs += [capture.array(n) for capture in self.captures]
        inputs += [self.sink.array(n)] if self.sink else []
        if hostile == "nan" and self.region == "bias":
            self.spoil(inputs[3], [math.nan], 0.02)
        return hostile, n, inputs, self.reference(n, arrays, dict(zip([c.name for c in self.inputs()[3:]], map(library.from_element, inputs[3:]))))

    def spoil(self, array, values, share):
        where = self.numpy.random(array.shape) < share
        array[where] = self.numpy.choice(values, int(where.sum()))

    def draw_data(self, hostile, *shapes):
        integers = lambda shape: self.numpy.integers(-8, 9, shape).astype(np.float32)
        q, k, v = (self.numpy.standard_normal(shape).astype(np.float32) for shape in shapes)
        share = 0.1 / max(q.shape[-1], 1)
        keys = k.shape[2]
        if hostile.startswith("exact"):  # scores up to about 1e6 that are exact in f32
            power = 1.0 if abs(self.scale) > 1 else 2.0**self.numpy.integers(0, 8)
            q, k = integers(q.shape) * power, integers(k.shape) * power
        if hostile.startswith("tiny keys"):  # scores are integers, or integers times 2**32
            q = integers(q.shape) * 2.0**(66 if hostile.endswith("queries") else 34)
            k = integers(k.shape) * 2.0**-100
        if "duplicates" in hostile and keys > 1:
            k = k[:, :, np.arange(keys) % self.numpy.integers(1, keys)]
        if hostile == "near duplicates":
            k = k + np.where(self.numpy.random(k.shape) < 0.1, np.spacing(k), 0)
        if hostile == "climbing":  # scores begin near 0, and some later ones are far above all earlier ones
            k = k * 6 * np.arange(keys, dtype=np.float32)[:, None] / max(keys, 1)
        if hostile in ("one greatest", "all least", "mixed extremes", "equal 1e8"):
            # A key has one element that may not be 0. 1.5 * 2**127 is near the largest float, and has few bits.
            q, k, most = np.zeros(q.shape), np.zeros(k.shape), 1.5 * 2.0**127
            q[..., 0] = 1
            k[..., 0] = {"all least": -most, "equal 1e8": 1e8}.get(hostile, 0)
            if hostile == "one greatest" and keys:
                k[:, :, self.numpy.integers(keys), 0] = most
            if hostile == "mixed extremes":
                k[..., 0] = self.numpy.choice([-most, 0, 2.0**120, most], k.shape[:-1])
        if hostile == "nan":
            self.spoil(k, [math.nan], share)
        if hostile in ("nan", "nan value"):
            self.spoil(v, [math.nan], 0.02)
        if hostile == "inf value":
            self.spoil(v, [math.inf, -math.inf], 0.02)
        if hostile == "inf key":
            self.spoil(k, [math.inf, -math.inf], share)
        return [a.astype(np.float32) for a in (q, k, v)]

    def reference(self, n, arrays, captured):
        q, k, v = (Bounded(a) for a in arrays)
        batch, heads = "".join(self.batch), "".join(self.batch[:2])
        pairs = batch + "qk"

        def at(name):  # the values of a captured operand at the pairs
            dims = next(c.dims for c in self.inputs() if c.name == name)
            return captured[name].reshape([n[d] if d in dims else 1 for d in pairs])

        at_pairs = {c.name: at(c.name) for c in self.captures}
        row, column = np.arange(n["q"])[:, None], np.arange(n["k"])[None, :]
        scores = bounded.scaled(bounded.contract(f"{batch}qd,{heads}kd->{pairs}", q, k), self.scale)
        if self.region == "bias":
            scores = bounded.add(scores, Bounded(at_pairs[self.bias.name]))
        if self.region == "fill":
            filled = np.broadcast_to((column >= self.fill_keys) == (self.fill_side == "sge"), scores.value.shape)
            scores = Bounded(np.where(filled, FILL, scores.value), np.where(filled, 0, scores.error))
        if self.region == "alibi":
            scores = bounded.add(scores, Bounded((column - row) / 16))
        scores = bounded.masked(scores, self.kept(row, column, at_pairs))
        empty_row = math.nan if self.empty_row == "nan" else 0.0
        if self.sink:
            column = np.broadcast_to(at("sink"), [n[d] for d in batch + "q"] + [1])
            p = bounded.softmax(bounded.beside(scores, column), empty_row).map(lambda a: a[..., :-1])
        else:
            p = bounded.softmax(scores, empty_row)
        weighing = f"{pairs},{heads}ke->{batch}qe"
        out = bounded.average(weighing, p, v)
        if self.elements[:3] == ["bf16"] * 3:  # the code may round probabilities to bf16
            known = np.where(np.isfinite(v.value), np.abs(v.value), 0)
            weights = np.where(np.isfinite(p.value), p.value, 0)
            out.error = out.error + bounded.ROUNDINGS["bf16"][0] * np.einsum(weighing, weights, known)
        order = [(batch + "qe").index(d) for d in self.out_dims]
        results = [out.map(lambda a: a.transpose(order)), p][:len(self.outs())]
        return [bounded.to_element(result, element) for result, element in zip(results, self.elements[4:])]
