"""Random ops of each class between random views, as .pt2 files."""
import numpy as np

from differential_model import Draw, tokens

OPS = ["elementwise", "broadcast", "sum", "mean", "maximum", "linear", "product", "softmax", "attention", "gather",
       "rows", "concatenation"]
VIEWS = ["none", "flatten", "merge", "split", "transpose", "permute", "unsqueeze", "squeeze", "expand", "slice", "step",
         "select", "chunk", "parts", "concatenation", "flip", "roll", "copy", "repeat", "pad"]


class ViewsDraw(Draw):
    kind = "views"

    def build(self):
        count = self.pick("cases", 1, 2, 3)
        for i in range(count):
            rank = self.pick(f"{i} rank", 2, 3, 4)
            shape = [self.pick(f"{i} size {axis}", 4, 6, 1, 2, 8, 12) for axis in range(rank)]
            axis = self.pick(f"{i} dynamic", None, None, 0, rank - 2)
            if axis is not None:
                shape[axis] = f"N{i}"
            x = self.input(f"x{i}", shape, tokens)
            for place in ("before", "also before"):
                x = self.view(x, f"{i} {place}", i)
            x = self.op(x, f"{i} op", i)
            for place in ("behind", "also behind"):
                x = self.view(x, f"{i} {place}", i)
            self.graph.results.append(x)

    def axis(self, x, n, static=False):
        """Draws a dimension, with `static` one of known size, or returns None."""
        axes = [i for i, size in enumerate(x.shape) if isinstance(size, int) or not static]
        return self.pick(f"{n} axis", *axes) % x.rank if axes else None

    def view(self, x, n, i):
        kind, g = self.pick(n, *VIEWS, *(["none"] * 10 if "also" in n else [])), self.graph
        any, known = (self.axis(x, n, static) if x.rank else None for static in (False, True))
        if kind == "unsqueeze":
            return x.unsqueeze(self.pick(f"{n} at", *range(x.rank + 1)))
        if kind == "none" or any is None:
            return x
        if kind == "flatten":
            return x.view([x.flatten(0, -1).shape[0]], "reshape.default", hole=0)
        if kind == "merge" and x.rank > 1:
            first = self.pick(f"{n} at", *range(x.rank - 1))
            return x.flatten(first, first + 1)
        if kind == "split" and known is not None and x.shape[known] % 2 == 0:
            return x.unflatten(known, [2, x.shape[known] // 2] if self.maybe(f"{n} two", 0.5) else
                               [x.shape[known] // 2, 2])
        if kind == "transpose":
            return x.transpose(any, self.pick(f"{n} other", *range(x.rank)))
        if kind == "permute":
            dims = list(range(x.rank))
            return x.permute(dims[any:] + dims[:any] if self.maybe(f"{n} turned", 0.5) else dims[::-1])
        if kind == "squeeze":
            units = [d for d, size in enumerate(x.shape) if size == 1]
            return x.squeeze(units[0]) if units else x
        if kind == "expand":
            return x.expand([2, *(3 if size == 1 else size for size in x.shape)])
        if kind == "slice" and known is not None:
            size = x.shape[known]
            return x.slice(known, self.pick(f"{n} start", 0, min(1, size), size // 2), size)
        if kind == "step" and known is not None:
            return x.slice(known, self.pick(f"{n} start", 0, min(1, x.shape[known])), x.shape[known],
                           self.pick(f"{n} step", 2, 3))
        if kind == "select" and known is not None and x.shape[known]:
            return x.select(known, self.pick(f"{n} at", 0, x.shape[known] - 1))
        if kind == "chunk" and known is not None and x.shape[known] % 2 == 0 and x.shape[known]:
            parts = x.parts([x.shape[known] // 2] * 2, known, "chunk.default")
            return parts[self.pick(f"{n} part", 0, 1)]
        if kind == "parts" and known is not None and x.shape[known] > 1:
            a, b = x.parts([1, x.shape[known] - 1], known)
            return g.cat([b, a], known) if self.maybe(f"{n} swapped", 0.5) else b
        if kind == "concatenation":
            return g.cat([x, x], any)
        if kind == "flip":
            return x.flip([any])
        if kind == "roll" and self.has_elements(x.shape[any]):
            return x.roll([1], [any])
        if kind == "copy":
            return x.contiguous()
        if kind == "repeat":
            return x.repeat_interleave(2, any)
        if kind == "pad":
            shape = [*x.shape[:-1], x.shape[-1] + 3]
            return x.call("constant_pad_nd.default", lambda a, p, v: np.pad(
                a, [(0, 0)] * (a.ndim - 1) + [tuple(p)], constant_values=v), shape, None, pad=[1, 2], value=0.5)
        return x

    def op(self, x, n, i):
        kind, g = self.pick(n, *OPS), self.graph
        if not x.rank:
            return x * 2.0
        any, last = self.axis(x, n), x.shape[-1]
        last = last if isinstance(last, int) else None
        if kind == "broadcast" and last is not None:
            return x * self.weight(f"{i} scale", [last]) + self.weight(f"{i} shift", [1, last])
        if kind in ("sum", "mean", "maximum"):
            name = "amax" if kind == "maximum" else kind
            size = x.shape[any]
            if name == "amax" and not self.has_elements(size):
                return x
            return x.reduce(name, [any], self.maybe(f"{n} keeps", 0.5))
        if kind == "linear" and last is not None:
            return x.linear(self.weight(f"{i} w", [5, last], last), self.weight(f"{i} b", [5]))
        if kind == "product" and x.rank > 1:
            return x.matmul(x.transpose(-1, -2))
        if kind == "softmax":
            return x.softmax(any)
        if kind == "attention" and x.rank > 1:
            if self.maybe(f"{n} by hand", 0.5):
                return (x.matmul(x.transpose(-1, -2)) * 0.3).softmax(-1).matmul(x)
            return g.attention(x, x, x, scale=0.3)
        if kind == "gather" and isinstance(x.shape[any], int) and x.shape[any]:
            index = np.arange(5) * 7 % x.shape[any]
            return x.index_select(any, self.weight(f"{i} at", None, array=index))
        if kind == "rows" and isinstance(x.shape[0], int) and x.shape[0]:
            index = np.arange(6).reshape(2, 3) * 5 % x.shape[0]
            return x.index(self.weight(f"{i} rows", None, array=index))
        if kind == "concatenation":
            return g.cat([x, x * 2.0, x], any)
        return (x * 2.0).apply("relu") - x

    def has_elements(self, size):
        """Returns whether a dimension has elements. Symbols in its size get the lower bound 1."""
        for symbols in getattr(size, "terms", {}):
            self.graph.least.update(dict.fromkeys(symbols, 1))
        return size != 0
