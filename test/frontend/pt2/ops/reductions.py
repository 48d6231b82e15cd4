"""Sums, extrema and other reductions."""

import numpy as np

from calls import *

for name, function in [("sum", np.sum), ("mean", np.mean)]:
    overload = ".dim_IntList" if name == "sum" else ".dim"
    case(name + ".default", function, self=X3, near=1e-6)
    case(name + ".default", function, self=ONE)
    case(name + overload, lambda x, dim, f=function: f(x, axis=-1), self=X3, dim=[-1], near=1e-6)
    case(name + overload, lambda x, dim, keep, f=function: f(x, axis=(0, 2), keepdims=True), self=X3, dim=[-1, 0],
         keepdim=True, near=1e-6)
    case(name + overload, lambda x, dim, f=function: f(x), self=X3, dim=None, near=1e-6)
    case(name + overload, lambda x, dim, f=function: f(x), self=X3, dim=[], near=1e-6)
    case(name + overload, lambda x, dim, dtype, f=function: f(x, axis=1), self=I, dim=[1], dtype=DType("float32"),
         kind="float32")
    case(name + overload, lambda x, dim, keep, f=function: f(x, 1), self=H, dim=[1], keepdim=False, ulps=1)
    case(name + overload, lambda x, dim, f=function: f(x, 1), self=HOLES, dim=[1], near=1e-6)
case("sum.default", np.sum, self=I)
case("sum.dim_IntList", lambda x, dim: x, self=ONE, dim=[-1])
case("sum.dim_IntList", lambda x, dim: np.zeros(3), self=np.zeros((0, 3), "float32"), dim=[0])
case("mean.dim", lambda x, dim: np.full(3, nan), self=np.zeros((0, 3), "float32"), dim=[0])
case("sum.default", np.sum, self=B, kind="int64")
case("sum.dim_IntList", lambda x, dim: np.sum(x, 0), self=U, dim=[0], kind="int64")
case("sum.default", lambda x, dtype: np.sum(x.astype(int)), self=S, dtype=DType("int32"), kind="int32")
for name, root in [("var", lambda x: x), ("std", np.sqrt)]:
    case(name + ".default", lambda x, f=root: f(np.var(x, ddof=1)), self=X3, near=1e-6)
    case(name + ".default", lambda x, _, f=root: f(np.var(x)), self=X3, unbiased=False, near=1e-6)
    case(name + ".dim", lambda x, dim, f=root: f(np.var(x, -1, ddof=1)), self=X3, dim=[-1], near=1e-6)
    case(name + ".dim", lambda x, dim, u, keep, f=root: f(np.var(x, (0, 1), keepdims=True)), self=X3, dim=[0, 1],
         unbiased=False, keepdim=True, near=1e-6)
    case(name + ".correction", lambda x, dim, c, f=root: f(np.var(x, 1, ddof=2)), self=X3, dim=[1], correction=2,
         near=1e-6)
    case(name + ".correction", lambda x, dim, c, keep, f=root: f(np.var(x, 2, ddof=0.5, keepdims=True)), self=X3,
         dim=[-1], correction=0.5, keepdim=True, near=1e-6)
    case(name + ".correction", lambda x, dim, c, f=root: f(np.var(x, ddof=1)), self=X3, dim=None, correction=None,
         near=1e-6)
    case(name + ".correction", lambda x, dim, c: np.full(2, inf), self=np.array([[1, 2], [3, 5]], "float32"), dim=[1],
         correction=2)
for name, function in [("max", np.max), ("min", np.min)]:
    where = np.argmax if name == "max" else np.argmin
    for dim in ([0], [-1], [0, 2], []):
        axes = tuple(dim) or None
        case(f"a{name}.default", lambda x, dim, f=function, a=axes: f(x, axis=a), self=X3, dim=dim)
    case(f"a{name}.default", lambda x, dim, keep, f=function: f(x, axis=1, keepdims=True), self=I, dim=[1],
         keepdim=True)
    case(f"a{name}.default", lambda x, dim, f=function: f(x, axis=1), self=HOLES, dim=[1])
    case(name + ".default", function, self=X3)
    case(name + ".default", function, self=S)
    for x in (X, TIES, HOLES, I):
        case(name + ".dim", lambda x, dim, f=function, w=where: [f(x, 1), w(x, 1)], self=x, dim=-1,
             kind=[x.dtype.name, "int64"])
    case(name + ".dim", lambda x, dim, keep, f=function, w=where: [f(x, 0)[None], w(x, 0)[None]], self=X3, dim=0,
         keepdim=True, kind=["float32", "int64"])
    for x in (X, TIES, HOLES, I):
        case(f"arg{name}.default", lambda x, f=where: f(x), self=x, kind="int64")
        case(f"arg{name}.default", lambda x, dim, f=where: f(x, dim), self=x, dim=-2, kind="int64")
    case(f"arg{name}.default", lambda x, dim, keep, f=where: f(x, 1)[:, None], self=X3, dim=1, keepdim=True,
         kind="int64")
    case(f"arg{name}.default", lambda x, dim, keep, f=where: f(x).reshape(1, 1), self=X, dim=None, keepdim=True,
         kind="int64")
for name, function in [("any", np.any), ("all", np.all)]:
    for x in (B, X, I, np.zeros((2, 3), bool), HOLES):
        case(name + ".default", function, self=x)
        case(name + ".dim", lambda x, dim, f=function: f(x, 1), self=x, dim=-1)
    case(name + ".dim", lambda x, dim, keep, f=function: f(x, 0, keepdims=True), self=B, dim=0, keepdim=True)
    case(name + ".dims", lambda x, dim, keep, f=function: f(x, (0, 1), keepdims=True), self=B, dim=[0, -1],
         keepdim=True)
    case(name + ".dims", lambda x, dim, f=function: f(x), self=B, dim=None)
    case(name + ".dims", lambda x, dim: x, self=B, dim=[])
case("cumsum.default", lambda x, dim: np.cumsum(x, 1), self=X3, dim=1, near=1e-6)
case("cumsum.default", lambda x, dim: np.cumsum(x, -1), self=X3, dim=-1, near=1e-6)
case("cumsum.default", lambda x, dim: np.cumsum(x, 0), self=I, dim=0)
case("cumsum.default", lambda x, dim: np.cumsum(x, 1), self=B, dim=1, kind="int64")
case("cumsum.default", lambda x, dim, dtype: np.cumsum(x, 1), self=J, dim=1, dtype=DType("float32"), kind="float32")
case("cumsum_.default", lambda x, dim: np.cumsum(x, 0), self=X, dim=0, near=1e-6)
case("cumprod.default", lambda x, dim: np.cumprod(x, 1), self=X3, dim=1, near=1e-6)
case("cumprod.default", lambda x, dim: np.cumprod(x, 0), self=I, dim=0)
case("prod.default", np.prod, self=X, near=1e-6)
case("prod.default", np.prod, self=I)
case("prod.dim_int", lambda x, d, k: np.prod(x, 1, keepdims=True), self=X3, dim=-2, keepdim=True, near=1e-6)
case("prod.dim_int", lambda x, d: np.prod(x, 1), self=B, dim=1, kind="int64")
for x in (X3 * 30, np.float32([[[-inf, -inf], [inf, 1]], [[nan, 1], [-inf, 2]]])):
    case("logsumexp.default", lambda x, d: np.logaddexp.reduce(x, 2), self=x, dim=[-1], near=1e-6)
case("logsumexp.default", lambda x, d, k: np.log(np.exp(x).sum((0, 1), keepdims=True)), self=X3, dim=[0, 1],
     keepdim=True, near=1e-6)
for name, root in [("var_mean", lambda x: x), ("std_mean", np.sqrt)]:
    case(name + ".correction", lambda x, d, c, k, f=root: [f(np.var(x, 1, ddof=c, keepdims=True)),
                                                           x.mean(1, keepdims=True)], self=X3, dim=[1], correction=2,
         keepdim=True, near=1e-6)
    case(name + ".dim", lambda x, d, u, f=root: [f(np.var(x, (0, 2))), x.mean((0, 2))], self=X3, dim=[0, 2],
         unbiased=False, near=1e-6)
for order in (0, 1, 2, 2.0, 3, 0.5, -1, inf, -inf):
    case("linalg_vector_norm.default", lambda x, p: np.linalg.norm(x.ravel(), p), self=X3, ord=order, ulps=16)
    case("linalg_vector_norm.default", lambda x, p, dim, keep: np.linalg.norm(x, p, axis=1, keepdims=True), self=X,
         ord=order, dim=[-1], keepdim=True, ulps=16)
case("linalg_vector_norm.default", lambda x, p, dim, keep, dtype: np.linalg.norm(x, axis=0), self=X, ord=2, dim=[0],
     keepdim=False, dtype=DType("float64"), kind="float64")


def log_softmax(x, dim, *_):
    return x - np.max(x, dim, keepdims=True) - np.log(np.sum(np.exp(x - np.max(x, dim, keepdims=True)), dim,
                                                              keepdims=True))


MASKED = np.where(B, X, -inf).astype("float32")
MASKED[:, 0] = 1
for name, function in [("softmax", softmax), ("log_softmax", log_softmax)]:
    for dim in (-1, 0, 1):
        case(name + ".int", function, self=X3 * 8, dim=dim, ulps=16, near=2e-7)
    case(name + ".int", function, self=MASKED, dim=-1, near=4e-7)
    case(name + ".int", function, self=I, dim=1, dtype=DType("float32"), kind="float32", near=1e-6)
    case(name + ".int", function, self=H, dim=-1, dtype=DType("float32"), kind="float32", near=1e-6)
    case(name + ".int", function, self=H, dim=-1, dtype=None, ulps=1)
    case(f"_{name}.default", function, self=X3, dim=1, half_to_float=False, near=4e-7)
def cosine(x, y, dim=1, eps=1e-8):
    x, y = np.broadcast_arrays(x.astype("float64"), y)
    length = lambda z: np.maximum(np.sqrt((z * z).sum(dim)), eps)
    return (x * y).sum(dim) / length(x) / length(y)


case("cosine_similarity.default", cosine, x1=X, x2=X[::-1].copy(), ulps=32)
case("cosine_similarity.default", cosine, x1=X3[:, :, None].copy(), x2=X3[:, None].copy(), dim=-1, ulps=64)
case("cosine_similarity.default", lambda x, y, d, e: cosine(x, y, d, e), x1=X * 0, x2=X, dim=0, eps=0.5, ulps=32)
case("linalg_norm.default", lambda x: np.linalg.norm(x.ravel()), self=X3, ulps=4)
case("linalg_norm.default", lambda x, p, d: np.linalg.norm(x, axis=(0, 1)), self=X3, ord=None, dim=[0, 1], ulps=4)
case("linalg_norm.default", lambda x, p, d: np.linalg.norm(x, 1, axis=1), self=X3, ord=1, dim=[1], ulps=4)
case("sum.default", lambda x, d: x.any(), self=B, dtype=DType("bool"))
case("sum.dim_IntList", lambda x, *_: x.any(0), self=B, dim=[0], keepdim=False, dtype=DType("bool"))
# torch accepts dimension 0 of a tensor of rank 0.
same = lambda x, *_: x
for dim in (0, -1):
    case("sum.dim_IntList", same, self=ONE, dim=[dim])
    case("mean.dim", same, self=ONE, dim=[dim], keepdim=True)
    case("cumsum.default", same, self=ONE, dim=dim)
    case("softmax.int", lambda x, d: 1.0, self=ONE, dim=dim)
    case("log_softmax.int", lambda x, d: 0.0, self=ONE, dim=dim)
    case("argmax.default", lambda x, d: 0, self=ONE, dim=dim)
    case("max.dim", lambda x, d: [x, 0], self=ONE, dim=dim)
    case("min.dim", lambda x, d, k: [x, 0], self=ONE, dim=dim, keepdim=True)
case("count_nonzero.default", np.count_nonzero, self=HOLES)
case("count_nonzero.default", lambda x, d: np.count_nonzero(x, 1), self=I, dim=-1)
case("count_nonzero.dim_IntList", lambda x, d: np.count_nonzero(x, (0, 2)), self=X3 > 0, dim=[0, 2])
# The rounding error of a sum of many elements must be far smaller than with a single f32 accumulator.
MANY = (random.standard_normal((3, 50000)) + 3).astype("float32")
case("mean.dim", lambda x, dim: x.mean(1), self=MANY, dim=[1], near=1e-7)
case("sum.default", lambda x: x.sum(), self=MANY, near=1e-7)
case("var.correction", lambda x, dim, c: x.var(1, ddof=1), self=MANY, dim=[1], correction=1, near=1e-6)


def histogram(x, bins, low, high):
    return np.histogram(x[(x >= low) & (x <= high)], bins, (low, high))[0]


case("histc.default", histogram, kind="float32", self=np.array([0, 3, 1, 1, 2, 3, 0.5, -1, 4, nan], "float32"), bins=4, min=0, max=3)
case("histc.default", histogram, kind="float32", self=X3, bins=5, min=-1.0, max=1.5)
case("cumsum.default", lambda x, dim, t: np.trunc(x).astype("int32").cumsum(1), kind="int32", self=3 * X, dim=1,
     dtype=DType("int32"))
