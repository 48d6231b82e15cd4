"""Reads and writes at indices."""

import numpy as np

from calls import *

AT, AT32 = np.array([[2, 0, 1, 1], [0, 0, 2, 2]]), np.array([2, 0, 0, 1, 2], "int32")
case("embedding.default", lambda w, i: w[i], weight=X, indices=AT)
case("embedding.default", lambda w, i, p, s, r: w[i], weight=X, indices=AT32, padding_idx=0, scale_grad_by_freq=False,
     sparse=False)
case("index_select.default", lambda x, d, i: x[:, i], self=X3, dim=1, index=AT32)
case("index_select.default", lambda x, d, i: x[..., i], self=X3, dim=-1, index=np.array([3, 3, 0]))
COUNTS = np.array([2, 0, 3])
case("repeat_interleave.self_Tensor", lambda x, n, d, s: np.repeat(x, n, 0), self=X, repeats=COUNTS[:X.shape[0]], dim=0,
     output_size=int(COUNTS[:X.shape[0]].sum()))
case("repeat_interleave.self_Tensor", lambda x, n, d, s: np.repeat(x, n, -1), self=X3, repeats=np.array([2]), dim=-1,
     output_size=2 * X3.shape[-1])
case("repeat_interleave.self_Tensor", lambda x, n, s: np.repeat(x, n), self=np.float32([1, 2, 3]), repeats=COUNTS, output_size=5)
case("repeat_interleave.self_Tensor", lambda x, n, s: np.repeat(x, n), self=np.float32([1, 2, 3]), repeats=np.array([0, 0, 0]),
     output_size=0)
case("repeat_interleave.Tensor", lambda n, s: np.repeat(np.arange(3), n), repeats=COUNTS, output_size=5)
case("gather.default", lambda x, d, i: np.take_along_axis(x[:2], i, 1), self=X, dim=1, index=AT)
case("gather.default", lambda x, d, i: np.take_along_axis(x, i, 0), self=X, dim=-2, index=AT)
case("gather.default", lambda x, d, i: np.take_along_axis(x, i, 0), self=B, dim=0, index=AT)
case("one_hot.default", lambda x, n: np.eye(n, dtype=int)[x], self=AT, num_classes=4, kind="int64")
case("one_hot.default", lambda x, n: np.eye(n, dtype=int)[x], self=np.array(2), num_classes=3)
NEGATIVE, PAIR = np.array([-1, 0, -3, 2]), np.array([[1], [-2]])
case("index.Tensor", lambda x, i: x[i[0]], self=X, indices=[NEGATIVE])
case("index.Tensor", lambda x, i: x[i[0], i[1]], self=X, indices=[NEGATIVE, NEGATIVE])
case("index.Tensor", lambda x, i: x[:, i[1]], self=X3, indices=[None, NEGATIVE])
case("index.Tensor", lambda x, i: x[PAIR, :, NEGATIVE], self=X3, indices=[PAIR, None, NEGATIVE])
case("index.Tensor", lambda x, i: x[:, PAIR, NEGATIVE], self=X3, indices=[None, PAIR, NEGATIVE])
case("index.Tensor", lambda x, i: x[:, i[1]], self=I, indices=[None, AT32.astype("int64")])
case("_unsafe_index.Tensor", lambda x, i: x[i[0]], self=X, indices=[NEGATIVE])


def put(x, indices, values, accumulate=False):
    """Computes x[indices...] = values, where the last of several values for an element counts, or
    x[indices...] += values, where all of them count."""
    x = x.copy()
    at = tuple(slice(None) if index is None else index for index in indices)
    if accumulate:
        np.add.at(x, at, values)
    else:
        x[at] = values
    return x


def copied(x, dim, index, source):
    return put(x, [None] * (dim % x.ndim) + [np.atleast_1d(index)], source)


def sliced(x, source, dim=0, start=None, end=None, step=1):
    x = x.copy()
    x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)] = source
    return x


def selected(x, source, dim, index):
    x = x.copy()
    x[(slice(None),) * dim + (index,)] = source
    return x


ROWS, POINTS = np.array([2, 0]), np.array([[1], [0]])
case("index_copy.default", copied, self=X, dim=0, index=ROWS, source=Y[:2])
case("index_copy.default", copied, self=X3, dim=-1, index=np.array([3]), source=X3[..., :1])
case("index_copy.default", copied, self=X3, dim=1, index=np.array(2), source=X3[:, :1])
case("index_copy.default", copied, self=I, dim=0, index=np.array([1, 1, 1], "int32"), source=I2)
case("index_copy.default", copied, self=X3, dim=1, index=np.zeros(0, "int64"), source=X3[:, :0])
case("index_put.default", put, self=X, indices=[ROWS], values=Y[:2])
case("index_put.default", put, self=X, indices=[ROWS], values=ONE)
case("index_put.default", put, self=X3, indices=[None, ROWS], values=X3[:, 1:] * 2)
case("index_put.default", put, self=X3, indices=[ROWS[1:], None, ROWS], values=COLUMN.T[:, :1])
case("index_put.default", put, self=X3, indices=[POINTS, None, ROWS], values=X.reshape(2, 2, 3))
case("index_put.default", put, self=X3, indices=[None, POINTS, ROWS], values=X.ravel()[:8].reshape(2, 2, 2))
case("index_put.default", put, self=B, indices=[AT[0], AT[0]], values=B[0])
case("index_put.default", put, self=X, indices=[AT[0], AT[0]], values=Y[0], accumulate=True)
case("index_put.default", put, self=I, indices=[AT[0]], values=I2[:1], accumulate=True)
case("index_put.default", put, self=H, indices=[AT[0]], values=H[:1], accumulate=True, ulps=1)
case("index_put.default", lambda x, i, v, a: x | np.isin(np.arange(3), i[0])[:, None], self=B, indices=[AT[0]],
     values=np.ones((1, 4), bool), accumulate=True)
case("_unsafe_index_put.default", put, self=X3, indices=[None, ROWS], values=X3[:, 1:] * 2)
case("index_put_.default", put, self=X, indices=[ROWS], values=Y[:2])
# The same values are written at all elements where a boolean index is true.
case("index_put.default", lambda x, i, v: np.where(i[0], v, x), self=X, indices=[B], values=ONE)
case("index_put.default", lambda x, i, v: np.where(i[0][:, None], v, x), self=I, indices=[B[:, 0]],
     values=np.array([4]))
case("index_put.default", lambda x, i, v: np.where(i[0][:, None], v, x), self=X, indices=[B[:, 0]], values=ROW)
case("index_put.default", lambda x, i, v: np.where(i[0][:, :, None], v, x), self=X3, indices=[B[:2, :3]],
     values=ROW[None])
case("index_put.default", lambda x, i, v: np.where(i[1][:, None], v, x), self=X3, indices=[None, B[:, 0]],
     values=X3[:, :1] + 9)
case("index_put.default", lambda x, i, v: np.where(i[2], v, x), self=X3, indices=[None, None, B[0]],
     values=X3[0, :, :1])
case("index_put_.default", lambda x, i, v, a: x + v * i[0], self=X, indices=[B], values=ONE, accumulate=True)


def added(x, dim, index, source, alpha=1):
    return put(x, [None] * (dim % x.ndim) + [index], alpha * source, accumulate=True)


def filled(x, dim, index, value):
    return put(x, [None] * (dim % x.ndim) + [np.atleast_1d(index)], value)


MANY = np.concatenate([X, Y[:2]])
case("index_add.default", added, self=X, dim=0, index=AT32, source=MANY, near=1e-6)
case("index_add.default", added, self=X, dim=0, index=AT32, source=MANY, alpha=2.5, near=1e-6)
case("index_add_.default", added, self=I, dim=1, index=np.array([0, 3, 0]), source=I2[:, :3], alpha=-1)
case("index_add.default", lambda x, *_: x, self=X, dim=-1, index=np.zeros(0, "int64"), source=X[:, :0])
case("index_fill.int_Scalar", filled, self=X3, dim=1, index=ROWS, value=-inf)
case("index_fill.int_Scalar", filled, self=J, dim=-2, index=np.array(2), value=5)
case("index_fill.int_Scalar", filled, self=B, dim=0, index=ROWS, value=2)
case("index_fill_.int_Tensor", filled, self=X3, dim=2, index=AT32, value=ONE)
case("index_fill.int_Tensor", filled, self=X, dim=0, index=AT32, value=SEVEN)


def scattered(x, dim, index, source, function=lambda old, new: new):
    """Writes one element of the source after the other."""
    x, source = x.copy(), np.broadcast_to(source, index.shape) if np.ndim(source) == 0 else source
    for at in np.ndindex(*index.shape):
        to = at[:dim % x.ndim] + (index[at],) + at[dim % x.ndim + 1:]
        x[to] = function(x[to], source[at])
    return x


COLUMNS = np.array([[3, 0, 3], [1, 1, 2]])
for op in ("scatter", "scatter_"):
    case(op + ".src", scattered, self=X, dim=0, index=AT, src=Y)
    case(op + ".value", scattered, self=X, dim=-2, index=AT, value=-inf)
case("scatter.src", scattered, self=I, dim=-1, index=COLUMNS, src=I2)
case("scatter.src", scattered, self=X3, dim=1, index=AT[None, :, :3], src=X3 * 10)
case("scatter.src", lambda x, *_: x, self=X, dim=1, index=AT[:, :0], src=Y)
case("scatter.value", scattered, self=np.zeros_like(X3), dim=2, index=np.array([[[1], [3], [0]], [[2], [2], [3]]]),
     value=1)
case("scatter.value", scattered, self=B, dim=1, index=AT[:, :2], value=True)
case("scatter.value", scattered, self=ROW, dim=0, index=np.array([3, 1]), value=7)
for op in ("scatter_add", "scatter_add_"):
    case(op + ".default", lambda *x: scattered(*x, np.add), self=X, dim=0, index=AT, src=Y, near=1e-6)
case("scatter_add.default", lambda *x: scattered(*x, np.add), self=J, dim=1,
     index=np.array([[3, 0, 3, 3], [1, 1, 2, 1]]), src=J)
case("scatter_add.default", lambda *x: scattered(*x, np.logical_or), self=B, dim=0, index=AT, src=B2)

case("slice_scatter.default", sliced, self=X, src=Y[:2], dim=0, start=1)
case("slice_scatter.default", sliced, self=X, src=Y[:, ::2], dim=-1, start=0, end=LAST, step=2)
case("slice_scatter.default", sliced, self=X, src=Y[:, :1], dim=1, start=-3, end=-2)
case("slice_scatter.default", sliced, self=X, src=Y[:0], dim=0, start=5, end=7)
case("slice_scatter.default", sliced, self=I, src=I2)
case("select_scatter.default", selected, self=X, src=ROW, dim=0, index=-1)
case("select_scatter.default", selected, self=X3, src=X3[:, 0], dim=1, index=2)
case("take_along_dim.default", lambda x, i, d: np.take_along_axis(x, i, d), self=X, indices=np.argsort(X, 1), dim=-1)
case("take_along_dim.default", lambda x, i, d: np.take_along_axis(x, np.broadcast_to(i, (1, X.shape[1])), 0), self=X,
     indices=np.array([[1]]), dim=0)
case("take_along_dim.default", lambda x, i, d: np.take_along_axis(x, i % x.shape[d], d), self=X,
     indices=np.array([[-1, 9, -9, 2]]), dim=0)
case("take_along_dim.default", lambda x, i: x.reshape(-1)[i.reshape(-1)], self=X, indices=np.array([[5, 0], [2, 2]]))


@graph
def columns_of_indices(b):
    """first[ids[:, 0]] + second[ids[:, 1]]. The tables have different numbers of rows, so neither bounds all of ids."""
    ids = np.array([[1, 40], [4, 2]])
    first, second = np.arange(10, dtype="float32").reshape(5, 2), np.arange(100, dtype="float32").reshape(50, 2)
    x = b.input(ids)
    rows = [b.call("embedding.default", table[ids[:, i]], weight=b.input(table),
                   indices=b.call("select.int", ids[:, i], self=x, dim=1, index=i))
            for i, table in enumerate((first, second))]
    want = first[ids[:, 0]] + second[ids[:, 1]]
    b.output(b.call("add.Tensor", want, self=rows[0], other=rows[1]), want)
case("index_select.default", lambda x, *_: x, self=ONE, dim=0, index=np.array([0]))
case("gather.default", lambda x, *_: x, self=ONE, dim=-1, index=np.array(0))
