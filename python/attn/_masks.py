"""Attention with a mask that a Python function describes."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

from attn._kernel import Kernel, error

COORDINATES = ("b", "h", "q", "k")


OUTER_ARRAY = ("mask: expected each array to be a further parameter of the function, such as table in `def mask(b, h, q, k, table)`, "
               "which the function reads as table[q, k]; got an index into another array or list")

OPERATORS = "+ - * // % abs, comparisons and & | ^ ~"

# The operator of Python that replaces each function of NumPy. `numpy.int64(3) < k`, for example, calls numpy.less.
UFUNCS = {"absolute": abs, "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "floor_divide": operator.floordiv,
          "remainder": operator.mod, "negative": operator.neg, "less": operator.lt, "less_equal": operator.le,
          "greater": operator.gt, "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne,
          "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "invert": operator.invert,
          "logical_and": operator.and_, "logical_or": operator.or_, "logical_not": operator.invert}


def _refuse(what):
    def refuse(*arguments, **options):
        raise error(f"mask: expected {OPERATORS}, got {what}")

    return refuse


def _plain(operand):
    """Returns a number of NumPy or PyTorch as a number of Python, and any other operand unchanged."""
    is_number = type(operand).__module__ in ("numpy", "torch") and not getattr(operand, "shape", True)
    return operand.item() if is_number else operand


class Value:
    """A number or a condition in a mask function that is being traced: the SSA value `name` of the MLIR type `type`."""

    __hash__ = None

    def __init__(self, trace, name, type):
        self.trace, self.name, self.type = trace, name, type
        self.inside = None  # the operand, if this is an absolute value

    def __bool__(self):
        raise error("mask: expected conditions joined by & | ~, and no `if`, `and`, `or`, `not` or chained comparison: the "
                    "function is traced once for all pairs")

    def __index__(self):
        raise error(OUTER_ARRAY)

    def __int__(self):
        raise error("mask: expected a function that works for all pairs at once, got one that converts a "
                    "number to int or float, or iterates over it; the function is traced once")

    __float__ = __round__ = __iter__ = __int__

    def __array_ufunc__(self, function, method, *operands, **options):
        of = UFUNCS.get(function.__name__)
        if of is None or method != "__call__" or options:
            _refuse(f"numpy.{function.__name__}")()
        return of(*map(_plain, operands))

    def __array_function__(self, function, types, arguments, options):
        _refuse(f"numpy.{function.__name__}")()

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        name = getattr(function, "__name__", str(function))
        if name == "__getitem__":
            raise error(OUTER_ARRAY)
        _refuse(f"torch's {name}")()

    def _binary(self, other, op, swap=False, type="i64"):
        left, right = self.trace.value(self, type), self.trace.value(other, type)
        if swap:
            left, right = right, left
        return self.trace.emit(f"{op} {left}, {right} : {type}", "i1" if op.startswith("arith.cmpi") else type)

    def _divide(self, other, op):
        other = _plain(other)
        if not isinstance(other, int) or isinstance(other, bool) or other <= 0:
            got = "one that depends on the pair" if isinstance(other, (Value, Captured)) else repr(other)
            raise error(f"mask: expected a positive whole number to divide by, got {got}")
        if op == "//":
            return self._binary(other, "arith.floordivsi")
        # In Python, % by a positive number never gives a negative number; remsi may.
        return (self._binary(other, "arith.remsi") + other)._binary(other, "arith.remsi")

    def __add__(self, other): return self._binary(other, "arith.addi")
    def __radd__(self, other): return self._binary(other, "arith.addi", swap=True)
    def __sub__(self, other): return self._binary(other, "arith.subi")
    def __rsub__(self, other): return self._binary(other, "arith.subi", swap=True)
    def __mul__(self, other): return self._binary(other, "arith.muli")
    __rmul__ = __mul__
    def __floordiv__(self, other): return self._divide(other, "//")
    def __mod__(self, other): return self._divide(other, "%")
    def __rfloordiv__(self, other): return self._divide(self, "//")
    def __rmod__(self, other): return self._divide(self, "%")
    __truediv__ = __rtruediv__ = _refuse("/; use // for whole numbers")
    __pow__ = __rpow__ = _refuse("**")
    __lshift__ = __rlshift__ = _refuse("<<; use * with a power of 2")
    __rshift__ = __rrshift__ = _refuse(">>; use // with a power of 2")
    def __neg__(self): return 0 - self
    def __abs__(self):
        value = self._binary(-self, "arith.maxsi")
        value.inside = self
        return value

    def _at_most(self, other, op):
        if self.inside is None:
            return self._binary(other, op)
        # Write |x| <= n as two comparisons, which attn recognises as a window.
        return self.inside._binary(other, op) & (-self.inside)._binary(other, op)

    def __lt__(self, other): return self._at_most(other, "arith.cmpi slt,")
    def __le__(self, other): return self._at_most(other, "arith.cmpi sle,")
    def __gt__(self, other): return self._binary(other, "arith.cmpi sgt,")
    def __ge__(self, other): return self._binary(other, "arith.cmpi sge,")
    def __eq__(self, other): return self._binary(other, "arith.cmpi eq,")
    def __ne__(self, other): return self._binary(other, "arith.cmpi ne,")
    def __and__(self, other): return self._binary(other, "arith.andi", type="i1")
    __rand__ = __and__
    def __or__(self, other): return self._binary(other, "arith.ori", type="i1")
    __ror__ = __or__
    def __xor__(self, other): return self._binary(other, "arith.xori", type="i1")
    __rxor__ = __xor__
    def __invert__(self): return self._binary(True, "arith.xori", type="i1")


class Captured:
    """An array that a mask function reads, such as `lengths[b]`."""

    def __init__(self, trace, name, type):
        self.trace, self.name, self.type, self.rank = trace, name, type, None

    def __getitem__(self, places):
        places = places if isinstance(places, tuple) else (places,)
        names = [next((name for name, value in self.trace.coordinates.items() if value is place), None) for place in places]
        if None in names or len(set(names)) != len(names):
            raise error(f"mask: expected the indices of the array '{self.name}' to be different coordinates among b, "
                        f"h, q and k, as in {self.name}[b, k]")
        if self.rank not in (None, names):
            self.trace.check_rank(self, names)
        self.rank = names
        return self.trace.read(self, names)

    def _lacks_index(self, *other):
        raise error(f"mask: expected indices of the array '{self.name}', such as {self.name}[b] or {self.name}[b, k], got the array "
                    "without indices")

    __hash__ = __array_ufunc__ = None
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = __neg__ = __abs__ = _lacks_index
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _lacks_index
    __invert__ = __bool__ = __int__ = __index__ = __iter__ = _lacks_index


class Trace:
    """The score region of attn.attention. It yields the score of a pair that the mask keeps, and -inf for others."""

    def __init__(self, function):
        self.lines, self.reads, self.count = [], [], 0
        self.coordinates = {name: self.emit(f"arith.index_cast %i{name} : index to i64", "i64") for name in COORDINATES}
        self.captures = {parameter.name: Captured(self, parameter.name, "i1" if parameter.annotation in (bool, "bool") else "i64")
                         for parameter in list(inspect.signature(function).parameters.values())[4:]}
        try:
            kept = self.value(function(*self.coordinates.values(), *self.captures.values()), "i1")
        except IndexError as reason:  # from NumPy or PyTorch
            raise error(OUTER_ARRAY) from reason
        for capture in self.captures.values():
            if capture.rank is None:
                raise error(f"mask: expected the function to read the array '{capture.name}', but it does not")
        self.emit("arith.constant 0xFF800000 : f32", "f32")
        self.lines += [f"%r = arith.select {kept}, %s, %{self.count - 1} : f32", "attn.yield %r : f32"]

    def emit(self, op, type):
        self.lines.append(f"%{self.count} = {op}")
        self.count += 1
        return Value(self, f"%{self.count - 1}", type)

    def value(self, operand, wanted):
        operand = _plain(operand)
        if isinstance(operand, Captured):
            operand._lacks_index()
        if isinstance(operand, bool) and wanted == "i1":
            return self.emit(f"arith.constant {str(operand).lower()}", "i1").name
        if isinstance(operand, int) and not isinstance(operand, bool) and wanted == "i64":
            return self.emit(f"arith.constant {operand} : i64", "i64").name
        if not isinstance(operand, Value) or operand.type != wanted:
            what = {"i1": "a condition", "i64": "a whole number"}
            got = what[operand.type] if isinstance(operand, Value) else repr(operand)
            if hasattr(operand, "shape"):
                got = "an array that is not a parameter of the function"
            raise error(f"mask: expected {what[wanted]}, got {got}")
        return operand.name

    def check_rank(self, captured, names):
        if len(captured.rank) != len(names):
            raise error(f"mask: expected {len(captured.rank)} indices of '{captured.name}', as in its first use, got "
                        f"{len(names)}")

    def read(self, captured, names):
        name = f"%c{len(self.reads)}"
        self.reads.append((captured, names))
        return Value(self, name, captured.type)


class Mask:
    """A mask, which attn.mask makes from a function."""

    def __init__(self, function):
        names = list(inspect.signature(function).parameters)
        if tuple(names[:4]) != COORDINATES:
            raise error(f"mask: expected a function of b, h, q and k, and the arrays that it reads, got one of {', '.join(names)}")
        for parameter in list(inspect.signature(function).parameters.values())[4:]:
            if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or parameter.default is not parameter.empty:
                raise error(f"mask: expected parameters without default values for the arrays, got '{parameter}'; a number can be a "
                            "variable outside the function")
        self.function = function
        name = getattr(function, "__name__", "mask")
        self.__name__ = name if name.isidentifier() else "mask"
        self.__doc__ = function.__doc__

    def __call__(self, b: Any, h: Any, q: Any, k: Any, *arrays: Any) -> Any:
        """Whether query q attends to key k, for numbers or arrays of numbers."""
        return self.function(b, h, q, k, *arrays)


def mask(function: Callable[..., Any]) -> Mask:
    """Makes a mask from a function that says which keys a query attends to.

        @attn.mask
        def window(b, h, q, k):
            return (k <= q) & (q - k < 128)

        @attn.mask
        def documents(b, h, q, k, ids):      # calls take the array `ids` too
            return ids[b, q] == ids[b, k]

    The function is traced once, with symbols for the batch, the head, the query and the key. It may use + - * // % abs,
    comparisons, & | ^ ~, and arrays, indexed with one or more of b, h, q and k. The elements of arrays are int64, or
    bool if the parameter is annotated with bool. For causal masks, windows and lengths, attn skips the tiles in which
    the mask keeps no pair.
    """
    return Mask(function)


TYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


LAYOUTS = ("bhsd", "bshd")


def write(of, heads, head_size, key_heads=None, value_size=None, scale=None, dtype="float32", layout="bhsd", key_layout=None,
          softcap=None):
    """Returns an attention as MLIR text.

    `layout` is the layout of the queries and the result; `key_layout` is the layout of the keys and values.
    """
    key_layout = key_layout or layout
    if dtype not in TYPES:
        raise error(f"attention: expected dtype among {', '.join(TYPES)}, got '{dtype}'")
    if layout not in LAYOUTS or key_layout not in LAYOUTS:
        raise error(f"attention: expected layout among {', '.join(LAYOUTS)}, got '{layout}'")
    key_heads, value_size = key_heads or heads, value_size or head_size
    if scale is not None and not math.isfinite(scale):
        raise error(f"attention: expected a finite scale, got {scale!r}")
    for name, size in (("heads", heads), ("head_size", head_size), ("key_heads", key_heads), ("value_size", value_size)):
        if not isinstance(size, int) or size < 1:
            raise error(f"attention: expected {name} of at least 1, got {size!r}")
    if heads % key_heads:
        raise error(f"attention: expected heads that key_heads divides, got {heads} and {key_heads}")
    if softcap is not None and not float(softcap) > 0:
        raise error(f"attention: expected a softcap above 0, got {softcap!r}")
    t, group = TYPES[dtype], heads // key_heads
    scale = head_size ** -0.5 if scale is None else float(scale)

    def tensor(*sizes, of=t):
        return f"tensor<{'x'.join(map(str, sizes))}x{of}>"

    # With groups, several heads of queries read one head of keys: h = key head * group + g.
    dims = "b, h, g, q, k, d, e" if group > 1 else "b, h, q, k, d, e"
    g, head = (", g", f"{key_heads}x{group}") if group > 1 else ("", str(heads))

    def at(*names):
        return f"affine_map<({dims}) -> ({', '.join(names)})>"

    trace = Trace(of.function) if of else None
    body = trace.lines if trace else ["attn.yield %s : f32"]
    if softcap is not None:
        capped = [f"%cap = arith.constant {float(softcap):.9e} : f32", "%divided = arith.divf %s, %cap : f32",
                  "%bounded = math.tanh %divided : f32", "%capped = arith.mulf %bounded, %cap : f32"]
        body = capped + [line.replace("%s ", "%capped ").replace("%s,", "%capped,") for line in body]
    arguments, captures, maps = "", "", ""
    if trace:
        if group > 1 and any("h" in names for _, names in trace.reads):
            raise error("attention: expected arrays that are not indexed with h, because several query heads share a "
                        "key head")
        types = {name: tensor(*["?"] * len(captured.rank), of=captured.type) for name, captured in trace.captures.items()}
        # The number of heads is fixed; all other sizes of the arrays are dynamic.
        for name, captured in trace.captures.items():
            types[name] = tensor(*[heads if place == "h" else "?" for place in captured.rank], of=captured.type)
        arguments = "".join(f', %{name}_: {type} {{attn.name = "{name}"}}' for name, type in types.items())
        if trace.reads:
            captures = (f"captures({', '.join(f'%{captured.name}_' for captured, _ in trace.reads)} : "
                        f"{', '.join(types[captured.name] for captured, _ in trace.reads)})")
            maps = "".join(at(*names) + ", " for _, names in trace.reads)

    def order(layout, batch, head, length, last):
        return [batch, head, length, last] if layout == "bhsd" else [batch, length, head, last]

    q, o = (tensor(*order(layout, "?", heads, "?", size)) for size in (head_size, value_size))
    k, v = (tensor(*order(key_layout, "?", key_heads, "?", size)) for size in (head_size, value_size))
    grouped_q, grouped_o = (tensor(*order(layout, "?", head, "?", size)) for size in (head_size, value_size))
    # The reassociation that splits the heads into key heads and groups.
    groups = "[[0], [1, 2], [3], [4]]" if layout == "bhsd" else "[[0], [1], [2, 3], [4]]"
    axis = 2 if layout == "bhsd" else 1
    lines = ["%zero = arith.constant 0 : index", f"%axis = arith.constant {axis} : index",
             f"%batch = tensor.dim %q, %zero : {q}", f"%length = tensor.dim %q, %axis : {q}"]
    query = "%q"
    if group > 1:
        sizes = f"{key_heads}, {group}, %length" if layout == "bhsd" else f"%length, {key_heads}, {group}"
        lines.append(f"%grouped = tensor.expand_shape %q {groups} output_shape [%batch, {sizes}, {head_size}] : {q} into {grouped_q}")
        query = "%grouped"
    lines.append(f"%empty = tensor.empty(%batch, %length) : {grouped_o}")
    region = ""
    if trace or softcap is not None:
        inputs = "".join(f", %c{i}: {captured.type}" for i, (captured, _) in enumerate(trace.reads if trace else []))
        coordinates = "%ib: index, %ih: index, %iq: index, %ik: index"
        if group > 1:
            coordinates = "%ib: index, %key_head: index, %ig: index, %iq: index, %ik: index"
            body = [f"%group = arith.constant {group} : index", "%first = arith.muli %key_head, %group : index",
                    "%ih = arith.addi %first, %ig : index", *body]
        region = f"score {{\n    ^bb0({coordinates}, %s: f32{inputs}):\n      " + "\n      ".join(body) + "\n    }"
    lines.append(f"%o = attn.attention ins({query}, %k, %v : {grouped_q}, {k}, {v}) {captures} outs(%empty : {grouped_o}) "
                 f"{{indexing_maps = [{at(*order(layout, 'b', 'h' + g, 'q', 'd'))}, {at(*order(key_layout, 'b', 'h', 'k', 'd'))}, "
                 f"{at(*order(key_layout, 'b', 'h', 'k', 'e'))}, {maps}{at(*order(layout, 'b', 'h' + g, 'q', 'e'))}], scale = {scale:.9e} : f32}} {region} -> {grouped_o}")
    result = "%o"
    if group > 1:
        lines.append(f"%merged = tensor.collapse_shape %o {groups} : {grouped_o} into {o}")
        result = "%merged"
    lines.append(f"return {result} : {o}")
    return (f'func.func @attention(%q: {q} {{attn.name = "q"}}, %k: {k} {{attn.name = "k"}}, %v: {v} {{attn.name = "v"}}'
            f'{arguments}) -> ({o} {{attn.name = "out"}}) {{\n  ' + "\n  ".join(lines) + "\n}\n")


def attention(*, heads: int, head_size: int, mask: Callable[..., Any] | None = None, key_heads: int | None = None,
              value_size: int | None = None, scale: float | None = None, dtype: str = "float32", layout: str = "bhsd",
              softcap: float | None = None, target: str | None = None, device: Any = "cpu", num_threads: int | None = None) -> Kernel:
    """Compiles softmax(scale * Q K^T) V over the pairs that `mask` keeps, and returns an attn.Kernel k(q, k, v, *arrays).

    Q is (batch, heads, queries, head_size), K (batch, key_heads, keys, head_size), V (batch, key_heads, keys,
    value_size), and the result (batch, heads, queries, value_size); batch, queries and keys may change from call to
    call. `mask` is a mask from attn.mask, or a function for attn.mask. The arrays that the function reads are arguments
    of the call, in the order of the function's parameters. A query that attends to no key gives zeros.
    With `softcap`, each scaled score s becomes softcap * tanh(s / softcap) before the mask.
    `key_heads` must divide `heads`; its default is `heads`. By default, `value_size` is head_size, and `scale` is
    1 / sqrt(head_size). `dtype` is float32, float16 or bfloat16. With layout "bshd", Q, K, V and the result are (batch,
    length, heads, size).
    """
    from attn._compile import compile_text

    of = mask if mask is None or isinstance(mask, Mask) else Mask(mask)
    text = write(of, heads, head_size, key_heads, value_size, scale, dtype, layout, softcap=softcap)
    return compile_text(text, of.__name__ if of else "attention", target=target, device=device, num_threads=num_threads)
