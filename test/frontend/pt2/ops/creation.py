"""Creation, types and copies."""

import numpy as np

from calls import *

for name, value in [("zeros", 0), ("ones", 1)]:
    case(name + ".default", np.full((2, 3), float(value)), size=[2, 3])
    case(name + ".default", np.full((2,), bool(value)), size=[2], dtype=DType("bool"))
    case(name + "_like.default", np.full((3, 4), float(value)), self=X)
    case(name + "_like.default", np.full((3, 4), value), self=X, dtype=DType("int64"), kind="int64")
    case(f"new_{name}.default", np.full((2,), value), self=J, size=[2])
    case(f"new_{name}.default", np.full((2,), float(value)), self=J, size=[2], dtype=DType("float32"), kind="float32")
case("empty.memory_format", np.zeros((2, 3)), size=[2, 3])
case("empty_permuted.default", np.zeros((2, 3)), size=[2, 3], physical_layout=[1, 0])
case("empty_like.default", np.zeros((3, 4)), self=X)
case("new_empty.default", np.zeros((2,)), self=X, size=[2])
case("full.default", np.full((2, 3), -inf), size=[2, 3], fill_value=-inf)
case("full.default", np.full((2, 3), 7), size=[2, 3], fill_value=7)
case("full.default", np.full((2,), True), size=[2], fill_value=True)
case("full.default", np.full((2,), True), size=[2], fill_value=2, dtype=DType("bool"))
case("full.default", np.full((2,), 2), size=[2], fill_value=2.5, dtype=DType("int64"))
case("full.default", np.full((2,), nan), size=[2], fill_value=nan)
case("full.default", np.array(3.0), size=[], fill_value=3, dtype=DType("float16"), kind="float16")
case("full_like.default", np.full((3, 4), 2.5), self=X, fill_value=2.5)
case("full_like.default", np.full((3, 4), True), self=B, fill_value=1)
case("new_full.default", np.full((2, 2), 9), self=I, size=[2, 2], fill_value=9)
case("fill.Scalar", lambda x, v: np.full(x.shape, v), self=X, value=2, kind="float32")
case("fill.Scalar", lambda x, v: np.full(x.shape, v), self=I, value=2)
case("fill.Tensor", lambda x, v: np.full(x.shape, v), self=X, value=ONE)
case("fill_.Tensor", lambda x, v: np.full(x.shape, float(v)), self=X, value=SEVEN)
case("fill_.Scalar", lambda x, v: np.full(x.shape, True), self=B, value=2)
case("zero.default", lambda x: x * 0, self=X)
case("zero_.default", lambda x: x * 0, self=I)
case("scalar_tensor.default", np.array(2.5), s=2.5)
case("scalar_tensor.default", np.array(3), s=3, dtype=DType("int64"))
case("scalar_tensor.default", np.array(-inf), s=-inf, dtype=DType("float32"))
case("arange.default", np.arange(5), end=5)
case("arange.default", np.arange(5.0), end=5, dtype=DType("float32"))
case("arange.default", np.arange(4.5), end=4.5)
case("arange.start", np.arange(-2, 5), start=-2, end=5)
case("arange.start", np.arange(2, 5).astype("int32"), start=2, end=5, dtype=DType("int32"), kind="int32")
case("arange.start_step", np.arange(1, 10, 3), start=1, end=10, step=3)
case("arange.start_step", np.arange(5, -5, -3), start=5, end=-5, step=-3)
case("arange.start_step", np.arange(0, 1, 0.1), start=0, end=1, step=0.1)
case("arange.start_step", np.arange(0, 8, 2.0), start=0, end=8, step=2, dtype=DType("float32"))
# If the elements are integers, the fractions of the arguments influence only the number of elements.
case("arange.start_step", np.array([1, 3, 5, 7], "int32"), start=1.5, end=9.2, step=2.5, dtype=DType("int32"),
     kind="int32")
case("arange.default", np.arange(4), end=3.7, dtype=DType("int64"))
for steps in (0, 1, 2, 5, 64):
    case("linspace.default", np.linspace(-1, 2.5, steps), start=-1, end=2.5, steps=steps)
case("eye.default", np.eye(3), n=3)
case("eye.m", np.eye(2, 4).astype(int), n=2, m=4, dtype=DType("int64"))
case("eye.m", np.eye(4, 2).astype(bool), n=4, m=2, dtype=DType("bool"))

# ---- Types and copies ----

FLOATS = np.array([0.0, -0.0, 1.9, -1.9, nan, 2.0, 100.5], "float32")
for name in ("alias", "detach", "lift_fresh", "clone", "detach_copy", "lift_fresh_copy", "contiguous"):
    case(name + ".default", lambda x: x, self=X3)
case("detach_.default", lambda x: x, self=X)
case("clone.default", lambda x, f: x, self=I, memory_format=None)
for op in ("to.dtype", "_to_copy.default", "to.dtype_layout"):
    case(op, lambda x, t: x.astype("float16"), self=X, dtype=DType("float16"), kind="float16", ulps=0)
    case(op, lambda x, t: x.astype("int64"), self=X, dtype=DType("int64"), kind="int64")
    case(op, lambda x, t: x != 0, self=FLOATS, dtype=DType("bool"), kind="bool")
    case(op, lambda x, t: x.astype("float64"), self=I, dtype=DType("float32"), kind="float32")
    case(op, lambda x, t: x.astype("int32"), self=U, dtype=DType("int32"), kind="int32")
    case(op, lambda x, t: x, self=X, dtype=DType("float64"), kind="float64", ulps=0)
    case(op, lambda x, t: x.astype("uint8"), self=S, dtype=DType("uint8"), kind="uint8")
    case(op, lambda x, t: x.astype("float64"), self=B, dtype=DType("float32"), kind="float32")
    case(op, lambda x, t: x, self=X, dtype=DType("float32"))
case("to.device", lambda x, d, t: x.astype("int32"), self=X, device="cpu", dtype=DType("int32"), kind="int32")
case("to.prim_Device", lambda x, d, t: x, self=H, device="cpu", dtype=DType("float32"), kind="float32")
case("to.other", lambda x, y: x, self=X, other=D, kind="float64", ulps=0)
case("type_as.default", lambda x, y: x, self=J, other=X, kind="float32")
case("type_as.default", lambda x, y: x, self=X, other=Y)
case("copy.default", lambda x, y: np.broadcast_to(y, x.shape), self=X, src=ROW)
case("copy.default", lambda x, y: y.astype("int64"), self=I, src=X, kind="int64")
case("copy_.default", lambda x, y: y, self=X, src=I, kind="float32")
for rows, columns, offset in [(3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 3, 5), (3, 2, -4), (0, 3, 0)]:
    for name, kept in [("tril", np.tril), ("triu", np.triu)]:
        case(name + "_indices.default", np.stack(np.nonzero(kept(np.ones((rows, columns)), offset))), row=rows,
             col=columns, offset=offset)
case("triu_indices.default", np.array([[0], [1]], "int32"), row=2, col=2, offset=1, dtype=DType("int32"), kind="int32")
