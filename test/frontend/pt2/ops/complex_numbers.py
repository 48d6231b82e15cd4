"""Complex numbers, which callers pass and receive as pairs."""

import numpy as np

from calls import *

random = np.random.default_rng(19)


def draw(*sizes, kind="complex64"):
    return (random.standard_normal(sizes) + 1j * random.standard_normal(sizes)).astype(kind)


Z, Z2, Z3, ZROW, ZD = draw(3, 4), draw(3, 4), draw(2, 3, 4), draw(4), draw(3, 4, kind="complex128")
PAIRS = random.standard_normal((2, 3, 2)).astype("float32")
ODD = np.array([complex(inf, 1), complex(nan, -0.0), complex(-0.0, -inf), complex(3e38, 1e-40)], "complex64")
case("view_as_complex.default", lambda x: x[..., 0] + 1j * x[..., 1], self=PAIRS)
case("view_as_complex.default", lambda x: x[..., 0] + 1j * x[..., 1], self=PAIRS.astype("float64"), kind="complex128")
for z in (Z, ODD, ZD):
    part = "float64" if z is ZD else "float32"
    case("view_as_real.default", passed, self=z, kind=part, ulps=0)
    case("real.default", np.real, self=z, kind=part, ulps=0)
    case("imag.default", np.imag, self=z, kind=part, ulps=0)
    for op in ("conj", "_conj", "conj_physical", "_conj_physical"):
        case(op + ".default", np.conj, self=z, ulps=0)
case("complex.default", lambda x, y: x + 1j * y, real=X, imag=ROW, kind="complex64")
case("polar.default", lambda r, a: r * np.exp(1j * a), abs=P, angle=X, kind="complex64")
case("polar.default", lambda r, a: r * np.exp(1j * a), abs=ONE, angle=X3 * 100, kind="complex64")
for op, function in [("mul", np.multiply), ("add", np.add), ("sub", np.subtract)]:
    case(op + ".Tensor", function, self=Z, other=Z2, near=2e-7)
    case(op + ".Tensor", function, self=Z3, other=ZROW, near=2e-7)
    case(op + ".Tensor", function, self=Z, other=X)
    case(op + ".Tensor", function, self=COLUMN, other=ZROW)
    case(op + ".Tensor", function, self=Z, other=B, kind="complex64")
    case(op + ".Tensor", function, self=ZD, other=X, near=1e-15)
    case(op + ".Tensor", function, self=ZD, other=Z, kind="complex128", near=1e-15)
    case(op + ".Scalar", function, self=Z, other=2.5)
    case(op + ".Tensor", function, self=Z, other=3)
case("div.Tensor", np.divide, self=Z, other=P)
case("div.Scalar", np.divide, self=Z, other=4)
# Ops that move elements move both parts of a number.
for op in ("alias", "clone", "contiguous", "detach", "lift_fresh_copy"):
    case(op + ".default", lambda z: z, self=ODD, ulps=0)
case("neg.default", np.negative, self=ODD, ulps=0)
case("sum.default", np.sum, self=Z3, near=1e-6)
case("sum.dim_IntList", lambda z, d: z.sum(1), self=Z3, dim=[1], near=1e-6)
for op in ("view", "_unsafe_view"):
    case(op + ".default", lambda z, n: z.reshape(1, 3, 1, 4), self=Z, size=[1, 3, 1, -1])
case("_reshape_alias.default", lambda z, n, s: z.reshape(4, 3), self=Z, size=[4, 3], stride=[3, 1])
case("to.dtype", lambda z, t: z, self=Z, dtype=DType("complex64"))
case("_to_copy.default", lambda z, t: z, self=Z, dtype=DType("complex64"))
case("reshape.default", lambda z, n: z.reshape(n), self=Z3, shape=[4, 6])
case("flatten.using_ints", lambda z, a: z.reshape(2, 12), self=Z3, start_dim=1)
case("unflatten.int", lambda z, d, n: z.reshape(2, 3, 2, 2), self=Z3, dim=-1, sizes=[2, 2])
case("unsqueeze.default", lambda z, d: z[:, None], self=Z, dim=1)
case("squeeze.default", lambda z: z[:, 0], self=Z[:, None])
case("squeeze.dim", lambda z, d: z[:, 0], self=Z[:, None], dim=1)
case("squeeze.dims", lambda z, d: z[:, 0], self=Z[:, None], dim=[1])
case("expand.default", lambda z, n: np.broadcast_to(z, (2, 3, 4)), self=ZROW, size=[2, 3, 4])
case("broadcast_to.default", lambda z, n: np.broadcast_to(z, (2, 4)), self=ZROW, size=[2, 4])
case("transpose.int", lambda z, a, b: z.swapaxes(a, b), self=Z3, dim0=0, dim1=-1)
case("swapdims.default", lambda z, a, b: z.swapaxes(a, b), self=Z3, dim0=0, dim1=1)
case("swapaxes.default", lambda z, a, b: z.swapaxes(a, b), self=Z3, axis0=2, axis1=1)
case("permute.default", lambda z, d: z.transpose(d), self=Z3, dims=[2, 0, 1])
case("movedim.int", np.moveaxis, self=Z3, source=0, destination=-1)
case("movedim.intlist", np.moveaxis, self=Z3, source=[0, 1], destination=[1, 2])
case("t.default", np.transpose, self=Z)
case("select.int", lambda z, d, i: z[..., -1], self=Z3, dim=-1, index=-1)
case("slice.Tensor", lambda z, d, a, b, s: z[:, 1:4:2], self=Z, dim=1, start=1, end=4, step=2)
case("narrow.default", lambda z, d, a, n: z[1:], self=Z, dim=0, start=1, length=2)
case("split.Tensor", lambda z, n: [z[:2], z[2:]], self=Z, split_size=2, many=True)
case("split_with_sizes.default", lambda z, n, d: [z[:, :1], z[:, 1:]], self=Z, split_sizes=[1, 3], dim=-1, many=True)
case("chunk.default", lambda z, n, d: [z[:, :2], z[:, 2:]], self=Z, chunks=2, dim=-1, many=True)
case("unbind.int", lambda z: list(z), self=Z, many=True)
for op in ("cat", "concat"):
    case(op + ".default", lambda z, d: np.concatenate(z, 1), tensors=[Z, Z2], dim=-1)
case("stack.default", lambda z, d: np.stack(z, 1), tensors=[Z, Z2], dim=1)
case("repeat.default", lambda z, n: np.tile(z, n), self=Z, repeats=[2, 1])
case("tile.default", lambda z, n: np.tile(z, n), self=Z, dims=[2])
case("repeat_interleave.self_int", lambda z, n, d: np.repeat(z, 2, -1), self=Z, repeats=2, dim=-1)
case("roll.default", lambda z, s, d: np.roll(z, 1, 1), self=Z, shifts=[1], dims=[1])
case("flip.default", lambda z, d: z[:, ::-1], self=Z, dims=[1])
AT = np.array([2, 0, 2])
case("index_select.default", lambda z, d, i: z[i], self=Z, dim=0, index=AT)
case("index.Tensor", lambda z, i: z[i[0]], self=Z, indices=[AT])
case("gather.default", lambda z, d, i: np.take_along_axis(z, i, 0), self=Z, dim=0, index=np.array([[1, 0, 2, 2]]))


@graph
def rotary(b):
    """Rotates queries by a table of angles, as in Llama's code; the table is a weight of complex numbers."""
    x = random.standard_normal((2, 5, 4, 8)).astype("float32")
    table = np.exp(1j * random.standard_normal((7, 4))).astype("complex64")
    pairs = x.reshape(2, 5, 4, 4, 2)
    z = pairs[..., 0] + 1j * pairs[..., 1]
    split = b.call("view.default", pairs, self=b.input(x), size=[2, 5, 4, -1, 2])
    angles = b.call("slice.Tensor", table[1:6], self=b.program.weight("freqs_cis", table), dim=0, start=1, end=6)
    angles = b.call("view.default", table[1:6, None][None], self=angles, size=[1, 5, 1, 4])
    z = (z * table[1:6, None]).astype("complex64")
    turned = b.call("mul.Tensor", z, self=b.call("view_as_complex.default", z, self=split), other=angles)
    real = b.call("view_as_real.default", passed(z), self=turned)
    b.output(b.call("flatten.using_ints", x, self=real, start_dim=3), passed(z).reshape(x.shape), near=2e-7)
