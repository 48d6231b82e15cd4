"""differential.py [--draws=N] [--seed=S] [--only=I] [--keep=DIR]: random attentions against float64.

A draw is one attn.attention with random sizes, layouts, mask, score region and hostile values. It is compiled once for
all levels; each level that this CPU runs is forced, with 1 and 3 workers: outputs within tolerance of the formula in
Ops.td, NaN and infinities in the same places, and the same bits whatever the workers. A draw depends on the seed and
its index alone, so --only repeats it.
"""
import argparse, array, itertools, math, pathlib, random, struct, subprocess, sys, tempfile

LEVELS = ["x86-64", "x86-64-v3", "x86-64-v4"]
LEVELS_RUN = set()  # those of this CPU
SIZES = [0, 1, 2, 3, 5, 7, 13, 16, 17, 31, 47, 48, 49, 64, 65, 95, 96, 97, 129, 193]
HEAD_SIZES = [*range(21), 32, 48, 63, 64, 72]
MULTIPLY_ADDS = 400_000  # of a draw: the reference is plain Python
FILL = -1e9
DESCR = {"f32": ("<f4", "f"), "i32": ("<i4", "i"), "i64": ("<i8", "q"), "i1": ("|b1", "b")}


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


class Tensor:
    """Values at named dimensions; `dims` is the operand's indexing map."""

    def __init__(self, name, element, dims, sizes, dynamic, fill):
        self.name, self.element, self.dims = name, element, dims
        self.shape = [sizes[d] for d in dims]
        self.strides = {d: math.prod(self.shape[i + 1:]) for i, d in enumerate(dims)}
        extents = ["?" if d in dynamic else str(sizes[d]) for d in dims]
        self.type = f"tensor<{'x'.join([*extents, element])}>"
        self.values = [fill() for _ in range(math.prod(self.shape))]

    def at(self, point, **more):
        return self.values[self.offset(point, **more)]

    def offset(self, point, **more):
        return sum(s * (more[d] if d in more else point[d]) for d, s in self.strides.items())

    def save(self, path):
        descr, code = DESCR[self.element]
        shape = "".join(f"{n}, " for n in self.shape)
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}".encode()
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header
                         + array.array(code, self.values).tobytes())


def load(path):
    """(shape, values) of a float32 .npy file."""
    data = path.read_bytes()
    (size,) = struct.unpack("<H", data[8:10])
    header = eval(data[10:10 + size].decode(), {"__builtins__": {}}, {"False": False, "True": True})
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    values = array.array("f")
    values.frombytes(data[10 + size:])
    return list(header["shape"]), values


class Draw:
    def __init__(self, seed, index):
        self.rng = rng = random.Random(f"{seed}:{index}")
        self.grouped = rng.random() < 0.2
        self.batch = ["b", "h", "g"] if self.grouped else ["b", "h"]
        self.sizes = self.draw_sizes()
        self.dynamic = {d for d in ["q", "k", *self.batch] if rng.random() < (0.5 if d in "qk" else 0.2)}
        self.returns_weights = rng.random() < 0.2
        self.hostile = rng.choice(["", "", "", "nan", "nan-value", "inf-value", "inf-key", "large",
                                   "climbing"])
        self.region = rng.choice(["", "", "bias", "fill", "alibi"])
        self.fill_keys = rng.randint(0, self.sizes["k"])
        self.fill_side = rng.choice(["sge", "slt"])
        # Where a weight is 0 in f32 but not in the formula (a fill, large scores), an infinite value times it is
        # NaN, as in every online softmax, so infinite values go with moderate scores alone.
        if self.hostile == "inf-value" and self.region == "fill":
            self.hostile = "nan-value"
        self.empty_row = rng.choice(["zero", "nan"])
        self.schedule = rng.choice(["per-head", "phased", "whole-scores", "unfused"])
        usual = max(self.sizes["d"], 1) ** -0.5
        self.scale = f32({"large": 128.0, "climbing": usual}.get(self.hostile) or rng.choice([1.0, 0.25, usual]))
        self.captures = []
        self.draw_operands()
        self.mask, self.kept = self.draw_mask()

    def draw_sizes(self):
        rng = self.rng
        while True:
            sizes = {"b": rng.randint(1, 3), "h": rng.randint(1, 3), "g": rng.randint(1, 3) if self.grouped else 1,
                     "q": rng.choice(SIZES), "k": rng.choice(SIZES), "d": rng.choice(HEAD_SIZES)}
            if self.grouped and rng.random() < 0.4:
                sizes["q"] = 1  # the groups become queries
            elif rng.random() < 0.3:
                sizes["k"] = sizes["q"]
            sizes["e"] = rng.choice(HEAD_SIZES[1:]) if rng.random() < 0.3 else max(sizes["d"], 1)
            pairs = math.prod(sizes[d] for d in "bhgqk")
            if pairs * (sizes["d"] + sizes["e"]) <= MULTIPLY_ADDS:
                return sizes

    def tensor(self, name, element, dims, fill):
        return Tensor(name, element, dims, self.sizes, self.dynamic, fill)

    def capture(self, element, dims, fill):
        self.captures.append(self.tensor(f"c{len(self.captures)}", element, dims, fill))
        return len(self.captures) - 1, self.captures[-1]

    def spoil(self, tensor, values, share):
        for i in range(len(tensor.values)):
            if self.rng.random() < share:
                tensor.values[i] = self.rng.choice(values)

    def draw_operands(self):
        rng, batch = self.rng, self.batch
        # Small integers times a power of two: large scores that are exact in f32.
        normal = lambda: f32(rng.gauss(0, 1))
        entry = (lambda: float(rng.randint(-8, 8))) if self.hostile == "large" else normal
        layout = lambda heads, row, column: ([heads[0], row, *heads[1:], column] if rng.random() < 0.3
                                             else [*heads, row, column])
        self.query = self.tensor("q", "f32", layout(batch, "q", "d"), entry)
        self.key = self.tensor("k", "f32", layout(batch[:2], "k", "d"), entry)
        self.value = self.tensor("v", "f32", layout(batch[:2], "k", "e"), normal)
        self.out_dims = layout(batch, "q", "e")
        key_share = 0.1 / max(self.sizes["d"], 1)
        if self.hostile == "nan":
            self.spoil(self.key, [math.nan], key_share)
        if self.hostile in ("nan", "nan-value"):
            self.spoil(self.value, [math.nan], 0.02)
        if self.hostile == "inf-value":
            self.spoil(self.value, [math.inf, -math.inf], 0.02)
        if self.hostile == "inf-key":
            self.spoil(self.key, [math.inf, -math.inf], key_share)
        if self.hostile == "climbing":  # from scores near 0 to some that are far above what came before
            stride, count = self.key.strides["k"], self.sizes["k"]
            self.key.values = [f32(x * 6 * (i // stride % count) / count) for i, x in enumerate(self.key.values)]
        if self.region == "bias":
            _, self.bias = self.capture("f32", rng.choice([["h", "q", "k"], ["q", "k"]]), normal)
            if self.hostile == "nan":
                self.spoil(self.bias, [math.nan], 0.02)

    def draw_mask(self):
        """The attribute's text, or "", and whether it keeps a pair."""
        kinds = self.rng.choice([0, 1, 1, 1, 2])
        chosen = [getattr(self, f"draw_{kind}")()
                  for kind in self.rng.sample(["causal", "window", "lengths", "dense"], kinds)]
        kept = lambda p: all(test(p) for _, test in chosen)
        texts = [text for text, _ in chosen]
        return (f"#attn.and<[{', '.join(texts)}]>" if len(texts) > 1 else "".join(texts)), kept

    def draw_causal(self):
        n = self.rng.choice([0, 0, 1, 3, 50, -1, -20, self.sizes["k"] - self.sizes["q"]])
        return f"#attn.causal<offset = {n}>", lambda p: p["k"] <= p["q"] + n

    def draw_window(self):
        left, right, n = self.rng.choice([0, 1, 5, 40]), self.rng.choice([0, 0, 1, 33]), self.rng.choice([0, 0, 4, -7])
        return (f"#attn.window<left = {left}, right = {right}, offset = {n}>",
                lambda p: p["q"] + n - left <= p["k"] <= p["q"] + n + right)

    def draw_lengths(self):
        n = self.sizes["k"]
        dims = self.rng.choice([["b"], ["b"], ["b", "h"], ["b", "q"]])
        i, lengths = self.capture("i32", dims, lambda: self.rng.choice([0, n, self.rng.randint(0, n)]))
        return f"#attn.lengths<{i}>", lambda p: p["k"] < lengths.at(p)

    def draw_dense(self):
        element = self.rng.choice(["i1", "i64"])
        dims = self.rng.choice([["q", "k"], ["b", "q", "k"], ["b", "k"]])
        share = self.rng.choice([0.05, 0.5, 0.95])
        other = 1 if element == "i1" else self.rng.choice([1, -3, 1 << 40])
        i, mask = self.capture(element, dims, lambda: other if self.rng.random() < share else 0)
        zero = self.rng.random() < 0.5
        return f"#attn.dense<{i}{', keeps = zero' * zero}>", lambda p: (mask.at(p) == 0) == zero

    def text(self):
        names = ", ".join([*self.batch, "q", "k", "d", "e"])
        maps = ", ".join(f"affine_map<({names}) -> ({', '.join(dims)})>"
                         for dims in [t.dims for t in self.inputs()] + [dims for _, dims in self.outs()])
        dims = lambda dims: ", ".join(f'"{d}"' if d in self.dynamic else '""' for d in dims)
        named = lambda t: f'{t.type} {{attn.name = "{t.name}", attn.dims = [{dims(t.dims)}]}}'
        outs = [Tensor(name, "f32", dims, self.sizes, self.dynamic, float) for name, dims in self.outs()]
        arguments = ",\n    ".join(f"%{t.name}: {named(t)}" for t in self.inputs())
        symbols = ", ".join(f'#attn.symbol<"{d}", 0 to 4096>' for d in sorted(self.dynamic))
        lines = [f"func.func @forward({arguments})",
                 f"    -> ({', '.join(map(named, outs))}) attributes {{attn.symbols = [{symbols}]}} {{"]
        for d in sorted(self.dynamic):
            t = next(t for t in self.inputs() if d in t.dims)
            lines += [f"  %axis_{d} = arith.constant {t.dims.index(d)} : index",
                      f"  %size_{d} = tensor.dim %{t.name}, %axis_{d} : {t.type}"]
        for t in outs:
            lines += [f"  %init_{t.name} = tensor.empty({', '.join(f'%size_{d}' for d in t.dims if d in self.dynamic)})"
                      f" : {t.type}"]
        inits, types = ", ".join(f"%init_{t.name}" for t in outs), ", ".join(t.type for t in outs)
        results = ", ".join(f"%o#{i}" for i in range(len(outs)))
        captures = ""
        if self.captures:
            captures = (f" captures({', '.join('%' + c.name for c in self.captures)} : "
                        f"{', '.join(c.type for c in self.captures)})")
        mask = f" mask({self.mask})" if self.mask else ""
        lines += [f"  %o:{len(outs)} = attn.attention ins(%q, %k, %v : {self.query.type}, {self.key.type}, {self.value.type})"
                  f"{captures} outs({inits} : {types}){mask}",
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
        """Names and dimensions of the results."""
        return [("out", self.out_dims)] + [("weights", [*self.batch, "q", "k"])] * self.returns_weights

    def inputs(self):
        return [self.query, self.key, self.value, *self.captures]

    def score(self, p, s):
        if self.region == "bias":
            return s + self.bias.at(p)
        if self.region == "fill":
            return FILL if (p["k"] >= self.fill_keys) == (self.fill_side == "sge") else s
        return s + (p["k"] - p["q"]) / 16 if self.region == "alibi" else s

    def reference(self):
        """The formula in Ops.td; a weight of a finite score is never 0 there."""
        n = self.sizes
        out = Tensor("out", "f32", self.out_dims, n, (), float)
        weights_out = Tensor("weights", "f32", [*self.batch, "q", "k"], n, (), float)
        for point in itertools.product(*(range(n[d]) for d in [*self.batch, "q"])):
            p = dict(zip([*self.batch, "q"], point))
            scores, start = {}, self.query.offset(p, d=0)
            row = self.query.values[start:start + n["d"]]
            for k in range(n["k"]):
                p["k"] = k
                if self.kept(p):
                    start = self.key.offset(p, d=0)
                    dot = sum(map(float.__mul__, row, self.key.values[start:start + n["d"]]), 0.0)
                    scores[k] = self.score(p, self.scale * dot)
            weights, result = {}, [0.0] * n["e"]
            if all(s == -math.inf for s in scores.values()):
                empty = math.nan if self.empty_row == "nan" else 0.0
                weights = dict.fromkeys(range(n["k"]), empty)
                result = [empty if n["k"] else 0.0] * n["e"]
            elif any(math.isnan(s) or s == math.inf for s in scores.values()):
                # Of the others nothing is said.
                weights = {k: None if scores.get(k, -math.inf) == -math.inf else math.nan for k in range(n["k"])}
                result = [math.nan] * n["e"]
            else:
                greatest = max(scores.values())
                weights = {k: max(math.exp(s - greatest), 1e-300) for k, s in scores.items() if s > -math.inf}
                total = sum(weights.values())
                for k, w in weights.items():
                    p["k"] = k
                    weights[k] = w / total
                    at = self.value.offset(p, e=0)
                    result = [r + w / total * v for r, v in zip(result, self.value.values[at:at + n["e"]])]
            start = out.offset(p, e=0)
            out.values[start:start + n["e"]] = result
            for k, w in weights.items():
                weights_out.values[weights_out.offset(p, k=k)] = w
        return [out, weights_out][:len(self.outs())]

    def summary(self):
        sizes = " ".join(f"{d}={n}" for d, n in self.sizes.items())
        return f"{sizes} {self.mask or 'no mask'} {self.region} {self.hostile} {self.schedule}"


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    return done.returncode, (done.stdout + done.stderr).strip()


def difference(got, want, rtol):
    """Why `got` is not `want`, or None."""
    if got[0] != want.shape:
        return f"shape {got[0]}, expected {want.shape}"
    pairs = [(i, g, w) for i, (g, w) in enumerate(zip(got[1], want.values)) if w is not None]
    bound = rtol * max((abs(w) for _, _, w in pairs if math.isfinite(w)), default=0) + 1e-6
    for i, g, w in pairs:
        if math.isnan(w) != math.isnan(g) or (math.isinf(w) and g != w):
            return f"element {i} is {g}, expected {w}"
        if math.isfinite(w) and not abs(g - w) <= bound:
            return f"element {i} is {g}, expected {w} within {bound:.2e}"
    return None


def check(draw, folder):
    source, library = folder / "draw.mlir", folder / "draw.so"
    source.write_text(draw.text())
    status, said = run("attnc", source, "-o", library, "--target=all", f"--schedule={draw.schedule}")
    if status:
        return [f"attnc: {said}"]
    inputs = []
    for tensor in draw.inputs():
        tensor.save(folder / f"{tensor.name}.npy")
        inputs.append(f"--input={folder / tensor.name}.npy")
    want, problems = draw.reference(), []
    for level in LEVELS:
        first = None
        for workers in (1, 3):
            where = f"{level}, {workers} workers"
            out = folder / "out"
            status, said = run("attn-run", library, *inputs, "--guard", "--output-dir", out, f"--level={level}", f"--threads={workers}")
            if status and "a level that this CPU runs" in said:
                continue
            LEVELS_RUN.add(level)
            if status:
                problems.append(f"{where}: exit {status}: {said}")
                continue
            got = [(out / f"{i}.npy").read_bytes() for i in range(len(want))]
            if first is not None and got != first:
                problems.append(f"{where}: other bits than with 1 worker")
            first = first or got
            for i, tensor in enumerate(want):
                why = difference(load(out / f"{i}.npy"), tensor, 5e-3 if draw.hostile == "large" else 2e-5)
                if why:
                    problems.append(f"{where}: {tensor.name}: {why}")
    return problems


parser = argparse.ArgumentParser()
parser.add_argument("--draws", type=int, default=40)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--only", type=int, help="the index of the one draw to run; its text is printed")
parser.add_argument("--keep", type=pathlib.Path, help="where the files of the last draw stay")
options = parser.parse_args()
indices = range(options.draws) if options.only is None else [options.only]
failed = 0
print(f"seed {options.seed}", flush=True)
with tempfile.TemporaryDirectory() as temporary:
    folder = options.keep or pathlib.Path(temporary)
    folder.mkdir(parents=True, exist_ok=True)
    for index in indices:
        draw = Draw(options.seed, index)
        if options.only is not None:
            print(draw.text())
        problems = check(draw, folder)
        failed += bool(problems)
        for problem in problems[:3]:
            print(f"--seed={options.seed} --only={index} ({draw.summary()}): {problem}", flush=True)
print(f"levels: {' '.join(sorted(LEVELS_RUN))}")
print(f"{len(indices) - failed} of {len(indices)} draws right")
sys.exit(failed > 0)
