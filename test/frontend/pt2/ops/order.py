"""Sorting and searching."""

import numpy as np

from calls import *

random = np.random.default_rng(20)
REPEATED = np.array([[3, 1, 3, -2, 1], [0, 0, 0, 5, 5]])
MANY = random.standard_normal((3, 65)).astype("float32")


def ordered(x, dim=-1, descending=False, count=None):
    """Sorts elements. Equal elements keep their order; NaN is greater than any number."""
    numbers = np.where(np.isnan(x), 0, x)
    keys = (-numbers, ~np.isnan(x)) if descending else (numbers, np.isnan(x))
    where = np.lexsort(keys, dim)
    where = where if count is None else where.take(range(count), dim)
    return [np.take_along_axis(x, where, dim), where]


for x in (X, HOLES, TIES, np.array([[-0.0, 0.0, -0.0, inf, -inf, nan]], "float32"), MANY, I, REPEATED, S, H):
    kind = [x.dtype.name, "int64"]
    case("sort.default", lambda x: ordered(x), self=x, kind=kind, ulps=0)
    case("sort.default", lambda x, d, e: ordered(x, 0, True), self=x, dim=0, descending=True, kind=kind, ulps=0)
    case("sort.stable", lambda x, s, d, e: ordered(x, -1, True), self=x, stable=True, dim=-1, descending=True,
         kind=kind, ulps=0)
    case("argsort.default", lambda x, d, e: ordered(x, 0)[1], self=x, dim=0, descending=False, kind="int64")
    case("argsort.stable", lambda x, s: ordered(x)[1], self=x, stable=False, kind="int64")
    case("topk.default", lambda x, k: ordered(x, -1, True, 2), self=x, k=2, kind=kind, ulps=0)
    case("topk.default", lambda x, k, d, g, s: ordered(x, 0, False, 1), self=x, k=1, dim=0, largest=False, sorted=True,
         kind=kind, ulps=0)
case("sort.default", lambda x: [x, np.array(0)], self=ONE, kind=["float32", "int64"])
case("topk.default", lambda x, k: [x[:, :0], np.zeros((3, 0))], self=X, k=0, kind=["float32", "int64"])
case("sort.default", lambda x: ordered(x), self=U, kind=["uint8", "int64"])
case("sort.default", lambda x: ordered(x.astype(int)), self=B, kind=["bool", "int64"])
BOUNDS = np.array([-1, 0, 0, 0.5, 2], "float32")
EDGES = np.array([[-inf, -1, -0.5, 0, -0.0], [0.25, 0.5, 2, inf, nan]], "float32")
for right, side in ((False, "left"), (True, "right")):
    case("bucketize.Tensor", lambda x, b, o, r, s=side: np.searchsorted(b, x, s), self=EDGES, boundaries=BOUNDS,
         out_int32=False, right=right, kind="int64")
    case("bucketize.Tensor", lambda x, b, o, r, s=side: np.searchsorted(b, x, s), self=I,
         boundaries=np.array([-5, 0, 3]), out_int32=True, right=right, kind="int32")
    case("searchsorted.Tensor", lambda b, x, o, r, s=side: np.searchsorted(b, x, s), sorted_sequence=BOUNDS, self=X,
         out_int32=False, right=right, kind="int64")
    case("searchsorted.Tensor", lambda b, x, s: np.searchsorted(b, x, s), sorted_sequence=BOUNDS, self=X, side=side,
         kind="int64")
for invert in (False, True):
    case("isin.Tensor_Tensor", lambda x, y, u, i: np.isin(x, y, invert=i), elements=I, test_elements=REPEATED,
         assume_unique=False, invert=invert)
    case("isin.Tensor_Tensor", lambda x, y, u, i: np.isin(x, y, invert=i), elements=EDGES, test_elements=BOUNDS,
         assume_unique=True, invert=invert)
case("isin.Tensor_Tensor", lambda x, y: np.zeros((3, 4), bool), elements=I, test_elements=np.zeros(0, "int64"))
