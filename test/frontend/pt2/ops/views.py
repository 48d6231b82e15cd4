"""Views and joins."""

import numpy as np

from calls import *

random = np.random.default_rng(18)
for op in ("view", "_unsafe_view"):
    case(op + ".default", lambda x, n: x.reshape(6, 4), self=X3, size=[6, 4])
    case(op + ".default", lambda x, n: x.reshape(2, 2, 6), self=X3, size=[2, -1, 6])
case("_reshape_alias.default", lambda x, n, s: x.reshape(4, 6), self=X3, size=[4, 6], stride=[6, 1])
for sizes in ([24], [-1, 3, 2], [1, 2, 12, 1], [3, 2, 4]):
    case("reshape.default", lambda x, n: x.reshape(n), self=X3, shape=sizes)
case("reshape.default", lambda x, n: x.reshape(1), self=ONE, shape=[1])
case("reshape.default", lambda x, n: x.reshape(()), self=ONE.reshape(1, 1), shape=[])
case("view_as.default", lambda x, y: x.reshape(y.shape), self=X3, other=np.zeros((8, 3), "float32"))
case("reshape_as.default", lambda x, y: x.reshape(y.shape), self=X3, other=np.zeros((2, 12), "float32"))
case("flatten.using_ints", lambda x: x.reshape(-1), self=X3)
case("flatten.using_ints", lambda x, a, b: x.reshape(6, 4), self=X3, start_dim=0, end_dim=-2)
case("flatten.using_ints", lambda x: x.reshape(1), self=ONE)
case("unflatten.int", lambda x, d, n: x.reshape(2, 3, 2, 2), self=X3, dim=-1, sizes=[2, -1])
case("unsqueeze.default", lambda x, d: x[:, None], self=X, dim=1)
case("unsqueeze.default", lambda x, d: x[..., None], self=X, dim=-1)
THIN = X3.reshape(1, 2, 1, 12)
case("squeeze.default", np.squeeze, self=THIN)
case("squeeze.dim", lambda x, d: x[0], self=THIN, dim=0)
case("squeeze.dim", lambda x, d: x, self=THIN, dim=-1)
case("squeeze.dims", lambda x, d: x[0, :, 0], self=THIN, dim=[0, -2, 1])
case("squeeze.dims", lambda x, d: x, self=THIN, dim=[])
for op in ("expand.default", "broadcast_to.default"):
    case(op, lambda x, n: np.broadcast_to(x, (2, 3, 4)), self=COLUMN, size=[2, -1, 4])
    case(op, lambda x, n: np.broadcast_to(x, (3, 4)), self=ROW, size=[3, 4])
case("expand_as.default", lambda x, y: np.broadcast_to(x, y.shape), self=ROW, other=X3)
case("transpose.int", lambda x, a, b: x.swapaxes(a, b), self=X3, dim0=0, dim1=-1)
case("swapdims.default", lambda x, a, b: x.swapaxes(a, b), self=X3, dim0=1, dim1=2)
case("swapaxes.default", lambda x, a, b: x.swapaxes(a, b), self=X3, axis0=-1, axis1=-3)
case("permute.default", lambda x, d: x.transpose(2, 0, 1), self=X3, dims=[2, 0, -2])
case("permute.default", lambda x, d: x.T, self=B, dims=[1, 0])
for op in ("movedim", "moveaxis"):
    case(op + ".int", np.moveaxis, self=X3, source=0, destination=-1)
    case(op + ".intlist", np.moveaxis, self=X3[None], source=[0, -1], destination=[1, 0])
case("t.default", np.transpose, self=X)
case("t.default", np.transpose, self=ROW)
case("numpy_T.default", np.transpose, self=X3)
case("mT.default", lambda x: x.swapaxes(-1, -2), self=X3)
for dim, index in ((0, 1), (1, -1), (-1, 0), (-2, -3)):
    case("select.int", lambda x, d, i: x.take(i, d), self=X3, dim=dim, index=index)
LONG = np.arange(20, dtype="float32").reshape(2, 10)
for start, end, step in ((2, 8, 1), (0, LAST, 1), (-3, LAST, 1), (0, -2, 1), (1, -1, 3), (-100, 5, 2), (8, 100, 1),
                         (5, 5, 1), (7, 3, 1), (None, None, 4), (-6, -2, 2)):
    case("slice.Tensor", lambda x, d, a, b, s: x[:, slice(a, b, s)], self=LONG, dim=-1, start=start, end=end, step=step)
case("slice.Tensor", lambda x: x, self=LONG)
case("slice.Tensor", lambda x, d, a: x[1:], self=I, dim=0, start=1)
case("narrow.default", lambda x, d, a, n: x[:, 2:5], self=LONG, dim=1, start=2, length=3)
case("narrow.default", lambda x, d, a, n: x[:, -4:-1], self=LONG, dim=-1, start=-4, length=3)
for op in ("split.Tensor", "unsafe_split.Tensor"):
    case(op, lambda x, n, d: [x[:, :4], x[:, 4:8], x[:, 8:]], self=LONG, split_size=4, dim=1, many=True)
    case(op, lambda x, n: [x[:1], x[1:]], self=LONG, split_size=1, many=True)
case("split.sizes", lambda x, n, d: [x[:, :2], x[:, 2:9], x[:, 9:]], self=LONG, split_size=[2, 7, 1], dim=-1,
     many=True)
for op in ("split_with_sizes.default", "unsafe_split_with_sizes.default"):
    case(op, lambda x, n, d: [x[:, :2], x[:, 2:2], x[:, 2:]], self=LONG, split_sizes=[2, 0, 8], dim=1, many=True)
for op in ("chunk.default", "unsafe_chunk.default"):
    case(op, lambda x, n, d: [x[:, :4], x[:, 4:8], x[:, 8:]], self=LONG, chunks=3, dim=-1, many=True)
    case(op, lambda x, n, d: [x[:, i:i + 2] for i in range(0, 10, 2)], self=LONG, chunks=6, dim=1, many=True)
case("unbind.int", lambda x: [x[0], x[1]], self=X3, many=True)
case("unbind.int", lambda x, d: [x[:, :, i] for i in range(4)], self=X3, dim=-1, many=True)

NONE = np.zeros((2, 0), "float32")
case("split.Tensor", lambda x, n, d: [x], self=NONE, split_size=3, dim=1, many=True)
case("chunk.default", lambda x, n, d: [x, x], self=NONE, chunks=2, dim=1, many=True)

for name, function in [("view", lambda x, n: x.reshape(n)), ("expand", lambda x, n: np.broadcast_to(x, n))]:
    case(name + "_copy.default", function, self=X3, size=[2, 3, 4])
case("permute_copy.default", lambda x, d: x.transpose(d), self=X3, dims=[2, 0, 1])
case("transpose_copy.int", lambda x, a, b: x.swapaxes(a, b), self=X3, dim0=0, dim1=-1)
case("t_copy.default", np.transpose, self=X)
case("alias_copy.default", lambda x: x, self=X)
case("squeeze_copy.dim", lambda x, d: x[0], self=THIN, dim=0)
case("unsqueeze_copy.default", lambda x, d: x[:, None], self=X, dim=1)
case("select_copy.int", lambda x, d, i: x[:, 1], self=X3, dim=1, index=1)
case("slice_copy.Tensor", lambda x, d, a, b: x[:, 1:3], self=X3, dim=1, start=1, end=3)
case("split_copy.Tensor", lambda x, n, d: [x[:, :4], x[:, 4:8], x[:, 8:]], self=LONG, split_size=4, dim=1, many=True)
case("unbind_copy.int", lambda x: [x[0], x[1]], self=X3, many=True)
for op in ("diagonal", "linalg_diagonal", "diagonal_copy"):
    for offset in (0, 1, -1, 3, -2, 9):
        case(op + ".default", lambda x, o, a, b: np.diagonal(x, o, a, b), self=X3, offset=offset, dim1=-2, dim2=2)
    case(op + ".default", np.diagonal, self=X)


def with_diagonal(x, part, offset=0, a=0, b=1):
    y = np.moveaxis(x.copy(), (a, b), (-2, -1))
    for i in range(part.shape[-1]):
        y[..., i + max(-offset, 0), i + max(offset, 0)] = part[..., i]
    return np.moveaxis(y, (-2, -1), (a, b))


for offset in (0, 2, -1):
    case("diagonal_scatter.default", with_diagonal, self=X3, src=np.diagonal(X3, offset, 1, 2) + np.float32(9),
         offset=offset, dim1=1, dim2=-1)
case("diagonal_scatter.default", with_diagonal, self=I, src=np.arange(3))
for size, step in ((3, 1), (4, 2), (10, 1), (1, 3), (0, 1)):
    case("unfold.default", lambda x, d, n, s: np.stack([x[:, i:i + n] for i in range(0, 11 - n, s)], 1), self=LONG,
         dimension=-1, size=size, step=step)
case("as_strided.default", lambda x, n, s, o: np.stack([x.ravel()[o + i:o + i + 3] for i in (0, 5)]), self=LONG,
     size=[2, 3], stride=[5, 1], storage_offset=4)
case("as_strided.default", lambda x, n, s: x.ravel()[:4], self=I, size=[4], stride=[1])
case("as_strided.default", lambda x, n, s: np.broadcast_to(x.ravel()[:3, None], (3, 2)), self=X, size=[3, 2],
     stride=[1, 0])
PIXELS = random.standard_normal((2, 12, 2, 3)).astype("float32")
case("pixel_shuffle.default", lambda x, r: x.reshape(2, 3, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 4, 6),
     self=PIXELS, upscale_factor=2)
case("pixel_unshuffle.default", lambda x, r: x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2,
                                                                                                             3),
     self=PIXELS.reshape(2, 3, 4, 6), downscale_factor=2)
case("channel_shuffle.default", lambda x, g: x.reshape(2, 3, 4, 2, 3).swapaxes(1, 2).reshape(x.shape), self=PIXELS,
     groups=3)

# ---- Joins ----

for op in ("cat.default", "concat.default"):
    case(op, lambda x: np.concatenate(x), tensors=[X, Y, X])
    case(op, lambda x, d: np.concatenate(x, 1), tensors=[X, COLUMN], dim=-1)
case("cat.default", lambda x, d: np.concatenate(x), tensors=[I, X], dim=0, kind="float32")
case("cat.default", lambda x, d: x[1], tensors=[np.zeros(0, "float32"), X], dim=0)
case("cat.default", lambda x, d: x[0], tensors=[np.zeros(0, "float32"), np.zeros(0, "float32")], dim=0)
case("stack.default", lambda x: np.stack(x), tensors=[X, Y])
case("stack.default", lambda x, d: np.stack(x, -1), tensors=[X, Y, X], dim=-1)
case("stack.default", lambda x, d: np.stack(x), tensors=[ONE, ONE], dim=0)
case("repeat.default", lambda x, n: np.tile(x, n), self=X, repeats=[2, 1, 3])
case("repeat.default", lambda x, n: np.tile(x, n), self=I, repeats=[2, 2])
case("tile.default", lambda x, n: np.tile(x, n), self=X3, dims=[2])
case("tile.default", lambda x, n: np.tile(x, n), self=X, dims=[2, 1, 2])
for op in ("repeat_interleave.self_int", "repeat_interleave.self_Symint"):
    case(op, lambda x, n, d: np.repeat(x, 2, 1), self=X3, repeats=2, dim=-2)
    case(op, lambda x, n: np.repeat(x, 3), self=ROW, repeats=3)
case("roll.default", lambda x, s, d: np.roll(x, 1, 1), self=X3, shifts=[1], dims=[1])
case("roll.default", lambda x, s, d: np.roll(x, (-1, 7), (0, 2)), self=X3, shifts=[-1, 7], dims=[0, -1])
case("roll.default", lambda x, s, d: x, self=X3, shifts=[4], dims=[2])
case("roll.default", np.roll, self=X3, shifts=[5])
case("roll.default", lambda x, s, d: np.roll(x, -1), self=I, shifts=[-1], dims=[])
case("flip.default", lambda x, d: x[::-1, :, ::-1], self=X3, dims=[0, -1])
case("flip.default", lambda x, d: x, self=X3, dims=[])
case("pad.default", lambda x, p: np.pad(x, ((0, 0), (1, 2))), self=X, pad=[1, 2])
case("pad.default", lambda x, p, m, v: np.pad(x, ((2, 0), (1, 0)), constant_values=-inf), self=X, pad=[1, 0, 2, 0],
     mode="constant", value=-inf)
case("pad.default", lambda x, p: np.pad(x[:, 1:], ((0, 0), (0, 2))), self=X, pad=[-1, 2])
case("pad.default", lambda x, *_: np.pad(x, ((0, 0), (1, 1)), constant_values=True), self=B, pad=[1, 1],
     mode="constant", value=2.0)
case("pad.default", lambda x, *_: np.pad(x, ((0, 0), (1, 1)), constant_values=2), self=I, pad=[1, 1], mode="constant",
     value=2.5)
case("constant_pad_nd.default", lambda x, p: x[1:, :-2], self=X, pad=[0, -2, -1, 0])
case("constant_pad_nd.default", lambda x, p, v: np.full((3, 2), 9.0), self=X, pad=[2, -4], value=9)
case("constant_pad_nd.default", lambda x, p: np.pad(x[:, :-1], ((0, 0), (1, 0))), self=X, pad=[1, -1])
case("constant_pad_nd.default", lambda x, p, v: np.pad(x, 1, constant_values=7), self=I, pad=[1, 1, 1, 1], value=7)
case("constant_pad_nd.default", lambda x, p, v: np.pad(x, ((0, 0), (0, 3)), constant_values=1), self=B, pad=[0, 3],
     value=1)
case("diff.default", np.diff, self=X)
case("diff.default", lambda x, n, d: np.diff(x, axis=0), self=I, n=1, dim=0)
case("diff.default", lambda x: x[:, 1:] != x[:, :-1], self=B)
case("diff.default", lambda x, n, d, a, b: np.diff(x, axis=1, prepend=a, append=b), self=X, n=1, dim=-1,
     prepend=COLUMN, append=COLUMN)
for arguments in ({}, {"indexing": "ij"}, {"indexing": "xy"}):
    case("meshgrid.indexing" if arguments else "meshgrid.default",
         lambda x, indexing="ij": np.meshgrid(*x, indexing=indexing), tensors=[ROW, COLUMN[:, 0], Y[0, :2]], many=True,
         **arguments)
V = np.arange(3, dtype="float32")
for parts in ([V, V * 2], [X, X * 2], [X3, X3]):
    case("hstack.default", np.hstack, tensors=parts)
    case("vstack.default", np.vstack, tensors=parts)
    case("row_stack.default", np.vstack, tensors=parts)
    case("dstack.default", np.dstack, tensors=parts)
    case("column_stack.default", np.column_stack, tensors=parts)
case("column_stack.default", np.column_stack, tensors=[np.arange(X.shape[0], dtype="float32"), X])
case("transpose.int", lambda x, *_: x, self=ONE, dim0=0, dim1=-1)
case("movedim.int", lambda x, *_: x, self=ONE, source=0, destination=-1)
case("broadcast_tensors.default", lambda t: np.broadcast_arrays(*t), tensors=[ROW, COLUMN, ONE])
case("tensor_split.sections", lambda x, n, d: np.array_split(x, 3, 1), self=X, sections=3, dim=1)
case("tensor_split.indices", lambda x, i: np.split(x, (1, 1, 2)), self=X, indices=[1, -2, 2])
case("tensor_split.indices", lambda x, i, d: np.split(x, (2, 4), 1), self=I, indices=[2, 9], dim=-1)
for mode, name in [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]:
    case("pad.default", lambda x, p, m, name=name: np.pad(x, ((0, 0), (1, 2), (3, 0)), name), self=X3, pad=[3, 0, 1, 2],
         mode=mode)
    case("pad.default", lambda x, p, m, name=name: np.pad(x, ((0, 0), (1, 1)), name), self=H, pad=[1, 1], mode=mode)
case("pad.default", lambda x, *_: np.pad(x, ((0, 0), (5, 7)), "edge"), self=I, pad=[5, 7], mode="replicate")
case("diag.default", lambda x: np.diag(x), self=ROW)
case("diag.default", lambda x, k: np.diag(x, k), self=X, diagonal=1)
