"""Graphs of aten ops that are written as .pt2 files and evaluated with numpy.

    graph = Graph()
    x = graph.input("x", ["B", 3, 8], "float32")
    graph.results.append(x.linear(w).softmax(-1))
    graph.save("draw.pt2")
    graph.evaluate({"x": array}, {"B": 2})

A size is a number, a symbol or a polynomial over symbols. A tensor has methods like those of a torch tensor. If several
ops compute the same result, the method takes the name of the op as an argument. References are computed in float64;
values beyond the range of float32 become infinite.
"""
import math
import pathlib
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).parent.parent / "frontend/pt2"))
from program import DType, Program  # noqa: E402

LAST = 2**63 - 1  # the end of a slice that goes on to the last element
LARGEST = float(np.finfo(np.float32).max)
erf = np.vectorize(math.erf, otypes=["float64"])


class Size:
    """A polynomial, given by the factor of each product of symbols. A size that is a number is an int, not a Size."""

    def __init__(self, terms):
        self.terms = terms

    @staticmethod
    def symbol(name):
        return Size({(name,): 1})

    @staticmethod
    def of(terms):
        terms = {symbols: factor for symbols, factor in terms.items() if factor}
        return Size(terms) if any(terms) else terms.get((), 0)

    @staticmethod
    def terms_of(value):
        return value.terms if isinstance(value, Size) else {(): value}

    def __add__(self, other):
        sum = dict(self.terms)
        for symbols, factor in Size.terms_of(other).items():
            sum[symbols] = sum.get(symbols, 0) + factor
        return Size.of(sum)

    def __mul__(self, other):
        product = {}
        for a, m in self.terms.items():
            for b, n in Size.terms_of(other).items():
                symbols = tuple(sorted(a + b))
                product[symbols] = product.get(symbols, 0) + m * n
        return Size.of(product)

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other):
        return self + other * -1

    def __eq__(self, other):
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self):
        return hash(frozenset(self.terms.items()))

    def sympy(self):
        name = lambda s: f"Symbol('{s}', positive=True, integer=True)"
        products = [f"Mul({', '.join([f'Integer({n})', *map(name, symbols)])})" if n != 1 or len(symbols) != 1 else
                    name(symbols[0]) for symbols, n in self.terms.items()]
        return products[0] if len(products) == 1 else f"Add({', '.join(products)})"


def symbol_of(size):
    """Returns the name of a size that is a single symbol, or None."""
    symbols = next(iter(size.terms)) if isinstance(size, Size) else ()
    return symbols[0] if len(symbols) == 1 and size == Size.symbol(symbols[0]) else None


def at(value, sizes):
    """Evaluates a size, or a list of sizes, for the values of symbols in `sizes`."""
    if isinstance(value, (list, tuple)):
        return [at(element, sizes) for element in value]
    if isinstance(value, Size):
        return sum(n * math.prod(sizes[s] for s in symbols) for symbols, n in value.terms.items())
    return value


def broadcast(*shapes):
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        for i, n in enumerate(shape, rank - len(shape)):
            assert n == 1 or result[i] == 1 or n == result[i], f"shapes {shapes}"
            result[i] = n if result[i] == 1 else result[i]
    return result


def safe_softmax(x, axis=-1):
    """Computes a softmax in which all probabilities are 0 if no score is above -inf."""
    return np.where((x == -np.inf).all(axis, keepdims=True), 0, softmax(x, axis))


def softmax(x, axis=-1):
    weights = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return weights / weights.sum(axis, keepdims=True)


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + erf(x / math.sqrt(2)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def attend(q, k, v, mask=None, dropout=0.0, causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        k, v = (np.repeat(a, q.shape[-3] // k.shape[-3], -3) for a in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (np.float64(q.shape[-1])**-0.5 if scale is None else scale)
    if causal:
        mask = np.tri(*scores.shape[-2:], dtype=bool)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    return safe_softmax(scores) @ v


def normalised(x, sizes, w=None, b=None, eps=1e-5):
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return y * (1 if w is None else w) + (0 if b is None else b)


class Node:
    """A call of an op. Without a formula, its result has the elements of the first argument, in the same order."""

    def __init__(self, op, formula, arguments, results, is_list):
        self.op, self.formula, self.arguments = op, formula, arguments
        self.results, self.is_list = results, is_list


class Tensor:
    """A value of the graph. Its methods add ops and return their results. A negative dimension counts from the last."""

    def __init__(self, graph, shape, dtype):
        self.graph, self.shape, self.dtype = graph, list(shape), dtype

    @property
    def rank(self):
        return len(self.shape)

    def call(self, op, formula, shape, dtype=None, /, **arguments):
        """Adds a call of the op with this tensor as the argument `self`."""
        return self.graph.call(op, formula, shape, dtype or self.dtype, self=self, **arguments)

    # --- One element at a time ---

    def unary(self, op, formula, dtype=None, **arguments):
        return self.call(op + ".default", formula, self.shape, dtype, **arguments)

    def binary(self, op, formula, other, dtype=None, named="other", overload=".Tensor", **arguments):
        shape = broadcast(self.shape, other.shape) if isinstance(other, Tensor) else self.shape
        if dtype is None:  # torch promotes booleans to integers, and integers to floats
            kinds = [self.dtype, other.dtype if isinstance(other, Tensor) else
                     {bool: "bool", int: "int64", float: "float32"}[type(other)]]
            dtype = next(kind for kind in ("float32", "int64", "bool") if kind in kinds)
        return self.call(op + overload, formula, shape, dtype, **{named: other}, **arguments)

    def __add__(self, other):
        return self.binary("add", np.add, other)

    def __sub__(self, other):
        return self.binary("sub", np.subtract, other)

    def __mul__(self, other):
        return self.binary("mul", np.multiply, other)

    def __truediv__(self, other):
        return self.binary("div", np.divide, other, "float32")

    def __neg__(self):
        return self.unary("neg", np.negative)

    def __and__(self, other):
        return self.binary("bitwise_and", np.bitwise_and, other)

    def __invert__(self):
        return self.unary("bitwise_not", np.invert)

    def rsub(self, other):
        """Returns other - self."""
        return self.binary("rsub", lambda x, y: y - x, other, overload=".Scalar")

    def compare(self, op, other):
        formula = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                   "ge": np.greater_equal}[op]
        overload = ".Tensor" if isinstance(other, Tensor) else ".Scalar"
        return self.binary(op, formula, other, "bool", overload=overload)

    def apply(self, name, **arguments):
        formula = {"exp": np.exp, "tanh": np.tanh, "sigmoid": sigmoid, "relu": lambda x: np.maximum(x, 0),
                   "silu": lambda x: x * sigmoid(x), "gelu": gelu, "sqrt": np.sqrt,
                   "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos, "abs": np.abs}[name]
        return self.unary(name, formula, **arguments)

    def to(self, dtype, op="to.dtype"):
        return self.call(op, lambda x, _: x.astype(dtype), self.shape, dtype, dtype=DType(dtype))

    def masked_fill(self, mask, value):
        return self.call("masked_fill.Scalar", lambda x, m, v: np.where(m, v, x), broadcast(self.shape, mask.shape),
                         None, mask=mask, value=value)

    def where(self, x, y):
        """Selects elements of x or y by this tensor. At least one of x and y is a tensor."""
        overload = {(True, True): "self", (True, False): "ScalarOther", (False, True): "ScalarSelf",
                    (False, False): "Scalar"}[isinstance(x, Tensor), isinstance(y, Tensor)]
        shape = broadcast(self.shape, *(v.shape for v in (x, y) if isinstance(v, Tensor)))
        return self.graph.call("where." + overload, np.where, shape, "float32", condition=self, self=x, other=y)

    def triangle(self, op, diagonal=0):
        return self.unary(op, {"tril": np.tril, "triu": np.triu}[op], diagonal=diagonal)

    def dropout(self):
        return self.graph.call("dropout.default", None, self.shape, self.dtype, input=self, p=0.5, train=False)

    # --- Along dimensions ---

    def reduced(self, dims, keep):
        dims = [d % self.rank for d in dims]
        return [1 if i in dims else n for i, n in enumerate(self.shape) if keep or i not in dims]

    def reduce(self, op, dims, keep=False):
        name, formula = {"sum": ("sum.dim_IntList", np.sum), "mean": ("mean.dim", np.mean),
                         "amax": ("amax.default", lambda x, axis, keepdims: np.max(x, axis, keepdims=keepdims,
                                                                                   initial=-np.inf))}[op]
        return self.call(name, lambda x, dim, keep: formula(x, axis=tuple(dim), keepdims=keep),
                         self.reduced(dims, keep), None, dim=list(dims), keepdim=keep)

    def softmax(self, dim, op="softmax.int"):
        extra = {"half_to_float": False} if op.startswith("_") else {}
        return self.call(op, lambda x, dim, *_: softmax(x, dim), self.shape, None, dim=dim, **extra)

    def cumsum(self, dim):
        return self.call("cumsum.default", np.cumsum, self.shape, None, dim=dim)

    # --- Products ---

    def matmul(self, other, op="matmul.default"):
        named = "mat2" if op in ("mm.default", "bmm.default") else "other"
        a, b = self.shape, other.shape
        return self.call(op, np.matmul, broadcast(a[:-2], b[:-2]) + [a[-2], b[-1]], None, **{named: other})

    def linear(self, weight, bias=None):
        return self.graph.call("linear.default", lambda x, w, b=None: x @ w.T + (0 if b is None else b),
                               self.shape[:-1] + weight.shape[:1], "float32", input=self, weight=weight,
                               **({"bias": bias} if bias else {}))

    # --- Views ---

    def view(self, shape, op="view.default", hole=None):
        """Reshapes the tensor. The dimension `hole`, if given, is written as -1."""
        written = [-1 if i == hole else n for i, n in enumerate(shape)]
        named = "shape" if op == "reshape.default" else "size"
        return self.call(op, None, shape, None, **{named: written})

    def flatten(self, first, last):
        first, last = first % self.rank, last % self.rank
        shape = self.shape[:first] + [math.prod(self.shape[first:last + 1])] + self.shape[last + 1:]
        return self.call("flatten.using_ints", None, shape, None, start_dim=first, end_dim=last)

    def unflatten(self, dim, sizes, hole=None):
        dim %= self.rank
        written = [-1 if i == hole else n for i, n in enumerate(sizes)]
        shape = self.shape[:dim] + list(sizes) + self.shape[dim + 1:]
        return self.call("unflatten.int", None, shape, None, dim=dim, sizes=written)

    def transpose(self, a, b):
        shape = list(self.shape)
        shape[a], shape[b] = shape[b], shape[a]
        return self.call("transpose.int", np.swapaxes, shape, None, dim0=a, dim1=b)

    def permute(self, dims):
        return self.call("permute.default", np.transpose, [self.shape[d] for d in dims], None, dims=list(dims))

    def contiguous(self, op="clone.default"):
        return self.call(op, None, self.shape)

    def unsqueeze(self, dim):
        shape = list(self.shape)
        shape.insert(dim % (self.rank + 1), 1)
        return self.call("unsqueeze.default", None, shape, None, dim=dim)

    def squeeze(self, dim):
        return self.call("squeeze.dim", None, self.reduced([dim], False), None, dim=dim)

    def expand(self, shape):
        written = [-1 if a == b else b for a, b in zip([None] * (len(shape) - self.rank) + self.shape, shape)]
        return self.call("expand.default", lambda x, n: np.broadcast_to(
            x, [x.shape[i - len(n)] if m == -1 else m for i, m in enumerate(n)]), shape, None, size=written)

    def slice(self, dim, start, end, step=1):
        """Slices a dimension. `start` and `end` lie within the dimension."""
        shape = list(self.shape)
        count = (shape[dim] if end == LAST else end) - start
        shape[dim] = count if step == 1 else -(-count // step)
        cut = lambda x, d, a, b, n=1: x[(slice(None),) * (d % x.ndim) + (slice(a, b, n),)]
        return self.call("slice.Tensor", cut, shape, None, dim=dim, start=start, end=end,
                         **({"step": step} if step != 1 else {}))

    def select(self, dim, index):
        return self.call("select.int", lambda x, d, i: np.take(x, i, d), self.reduced([dim], False), None, dim=dim,
                         index=index)

    def flip(self, dims):
        return self.call("flip.default", np.flip, self.shape, None, dims=list(dims))

    def roll(self, shifts, dims):
        return self.call("roll.default", lambda x, s, d: np.roll(x, s, d), self.shape, None, shifts=list(shifts),
                         dims=list(dims))

    def parts(self, sizes, dim, op="split_with_sizes.default"):
        """Splits a dimension into parts with the op of the given name."""
        ends = np.cumsum(sizes)[:-1]
        arguments = {"split_with_sizes.default": {"split_sizes": list(sizes)}, "split.Tensor": {"split_size": sizes[0]},
                     "chunk.default": {"chunks": len(sizes)}, "unbind.int": {}}[op]
        formula = lambda x, *_: np.split(x, ends, dim)
        shapes = [[n if i == dim % self.rank else m for i, m in enumerate(self.shape)] for n in sizes]
        if op == "unbind.int":
            formula = lambda x, _: [np.squeeze(part, dim) for part in np.split(x, ends, dim)]
            shapes = [self.reduced([dim], False) for _ in sizes]
        return self.graph.call_list(op, formula, shapes, self.dtype, self=self, **arguments, dim=dim)

    def repeat_interleave(self, count, dim):
        shape = list(self.shape)
        shape[dim] = shape[dim] * count
        return self.call("repeat_interleave.self_int", lambda x, n, d: np.repeat(x, n, d), shape, None, repeats=count,
                         dim=dim)

    def index_select(self, dim, index):
        shape = list(self.shape)
        shape[dim] = index.shape[0]
        return self.call("index_select.default", lambda x, d, i: np.take(x, i, d), shape, None, dim=dim, index=index)

    def index(self, index):
        """Returns the rows whose numbers are in `index`."""
        return self.call("index.Tensor", lambda x, i: x[i[0]], index.shape + self.shape[1:], None, indices=[index])


class Graph:
    def __init__(self):
        self.nodes, self.inputs, self.weights, self.results = [], {}, {}, []
        self.least, self.most = {}, {}  # the bounds of symbols that the graph needs

    def tensor(self, shape, dtype="float32"):
        return Tensor(self, [Size.symbol(n) if isinstance(n, str) else n for n in shape], dtype)

    def input(self, name, shape, dtype="float32"):
        self.inputs[name] = self.tensor(shape, dtype)
        return self.inputs[name]

    def weight(self, name, array):
        """Returns the parameter of this name. The first call with the name adds it."""
        if name not in self.weights:
            self.weights[name] = self.tensor(array.shape, array.dtype.name), array
        return self.weights[name][0]

    def call(self, op, formula, shape, dtype="float32", /, **arguments):
        result = Tensor(self, shape, dtype)
        self.nodes.append(Node(op, formula, arguments, [result], False))
        return result

    def call_list(self, op, formula, shapes, dtype, /, **arguments):
        results = [Tensor(self, shape, dtype) for shape in shapes]
        self.nodes.append(Node(op, formula, arguments, results, True))
        return results

    # --- Ops of no tensor, or of several ---

    def arange(self, end, dtype="int64"):
        return self.call("arange.default", lambda n, _: np.arange(n).astype(dtype), [end], dtype, end=end,
                         dtype=DType(dtype))

    def full(self, shape, value, dtype="float32"):
        return self.call("full.default", lambda n, v, _: np.full(n, v, dtype), shape, dtype, size=list(shape),
                         fill_value=value, dtype=DType(dtype))

    def cat(self, tensors, dim):
        shape = list(tensors[0].shape)
        for tensor in tensors[1:]:
            shape[dim] = shape[dim] + tensor.shape[dim]
        return self.call("cat.default", np.concatenate, shape, tensors[0].dtype, tensors=tensors, dim=dim)

    def stack(self, tensors, dim):
        shape = list(tensors[0].shape)
        shape.insert(dim % (len(shape) + 1), len(tensors))
        return self.call("stack.default", np.stack, shape, tensors[0].dtype, tensors=tensors, dim=dim)

    def einsum(self, equation, *tensors):
        letters, out = equation.split("->")
        sizes = {letter: n for part, t in zip(letters.split(","), tensors) for letter, n in zip(part, t.shape)}
        return self.call("einsum.default", lambda e, x: np.einsum(e, *x), [sizes[d] for d in out], equation=equation,
                         tensors=list(tensors))

    def attention(self, q, k, v, mask=None, causal=False, scale=None, grouped=False):
        arguments = {"attn_mask": mask, "dropout_p": 0.0, "is_causal": causal, "scale": scale, "enable_gqa": grouped}
        return self.call("scaled_dot_product_attention.default", attend,
                         broadcast(q.shape[:-2], k.shape[:-2] if not grouped else q.shape[:-2]) +
                         [q.shape[-2], v.shape[-1]],
                         query=q, key=k, value=v, **arguments)

    def layer_norm(self, x, w=None, b=None, eps=1e-5):
        return self.call("layer_norm.default", normalised, x.shape, input=x, normalized_shape=x.shape[-1:], weight=w,
                         bias=b, eps=eps)

    def rms_norm(self, x, w, eps=1e-6):
        formula = lambda x, n, w, e: x / np.sqrt((x * x).mean(-1, keepdims=True) + e) * w
        return self.call("rms_norm.default", formula, x.shape, input=x, normalized_shape=x.shape[-1:], weight=w,
                         eps=eps)

    def embedding(self, table, indices):
        return self.call("embedding.default", lambda w, i: w[i], indices.shape + table.shape[1:], weight=table,
                         indices=indices)

    # --- The file ---

    def save(self, path):
        program, values, symbols, computed = Program(), {}, {}, {}
        usual = dict.fromkeys(self.symbols(), 4)
        like = lambda t: np.empty(at(t.shape, usual), t.dtype)
        described = lambda t: [n.sympy() if isinstance(n, Size) else n for n in t.shape]

        def size(value):
            """Adds nodes that compute a Size from sizes of inputs, and returns the result as an argument."""
            if value not in computed:
                sum = None
                for factors, number in value.terms.items():
                    product = number if number != 1 or not factors else None
                    for symbol in factors:
                        if symbol not in symbols:
                            symbols[symbol] = program.size(*next(
                                (values[t], i) for t in self.inputs.values() for i, n in enumerate(t.shape)
                                if symbol_of(n) == symbol))
                        product = symbols[symbol] if product is None else program.arithmetic(
                            "mul", "Mul({a}, {b})", a=product, b=symbols[symbol])
                    sum = product if sum is None else program.arithmetic("add", "Add({a}, {b})", a=sum, b=product)
                computed[value] = sum
            return computed[value]

        def written(value):
            if isinstance(value, (list, tuple)):
                return [written(element) for element in value]
            return values[value] if isinstance(value, Tensor) else size(value) if isinstance(value, Size) else value

        for name, tensor in self.inputs.items():
            values[tensor] = program.input(name, like(tensor), [symbol_of(n) or n for n in tensor.shape])
        for name, (tensor, array) in self.weights.items():
            values[tensor] = program.weight(name, array)
        for line, node in enumerate(self.nodes):
            arguments = {name: written(value) for name, value in node.arguments.items()}
            results = program.node("aten." + node.op, [like(t) for t in node.results], line=line,
                                   symbolic=[described(t) for t in node.results], is_list=node.is_list, **arguments)
            values.update(zip(node.results, results))
        for result in self.results:
            program.output(values[result])
        program.save(path)

    def symbols(self):
        return sorted({symbol_of(n) for t in self.inputs.values() for n in t.shape} - {None})

    # --- Evaluation ---

    def evaluate(self, arrays, sizes, stored=lambda array: array):
        """Computes the results. Replaces each tensor of floats with the tensor that `stored` returns for it."""
        def made(array, dtype):
            if dtype != "float32":
                return np.asarray(array, dtype)
            array = np.asarray(array, np.float64)
            return stored(np.where(np.abs(array) > LARGEST, np.copysign(np.inf, array), array))

        values = {t: made(arrays[name], t.dtype) for name, t in self.inputs.items()}
        values.update({t: made(array, t.dtype) for t, array in self.weights.values()})

        def resolved(value):
            if isinstance(value, (list, tuple)):
                return [resolved(element) for element in value]
            return values[value] if isinstance(value, Tensor) else at(value, sizes)

        for node in self.nodes:
            # The formula gets the arguments in the order of the call.
            arguments = [resolved(value) for value in node.arguments.values()]
            outs = node.formula(*arguments) if node.formula else arguments[0].reshape(
                at(node.results[0].shape, sizes))
            for tensor, out in zip(node.results, outs if node.is_list else [outs]):
                assert list(np.shape(out)) == at(tensor.shape, sizes), f"{node.op}: {np.shape(out)}, not {tensor.shape}"
                values[tensor] = made(out, tensor.dtype)
        return [values[result] for result in self.results]
