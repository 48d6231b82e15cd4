"""Graphs of several nodes.

Views of numpy share elements as views of torch do, so each graph is written twice, once for numpy and once for torch.
"""

import numpy as np

from calls import *

@graph
def column_filled(b):
    """x = x.clone(); x[:, 1].fill_(0)"""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    part = b.call("select.int", y[:, 1], self=x, dim=1, index=1)
    b.call("fill_.Scalar", y[:, 1], self=part, value=0)
    y[:, 1] = 0
    b.output(x, y)
    b.output(b.call("mul.Tensor", y, self=x, other=2.0), y * 2)


@graph
def slices_written(b):
    """x[1:, ::2] += 10, x.t()[-1] = 5, x.view(12)[3:6].neg_(): each op reads elements that the previous ops wrote."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    turned = b.call("t.default", y.T, self=x)
    flat = b.call("view.default", y.reshape(12), self=x, size=[12])
    rows = b.call("slice.Tensor", y[1:], self=x, dim=0, start=1, end=LAST)
    some = b.call("slice.Tensor", y[1:, ::2], self=rows, dim=1, start=0, end=LAST, step=2)
    b.call("add_.Tensor", y[1:, ::2], self=some, other=10)
    y[1:, ::2] += 10
    last = b.call("select.int", y.T[-1], self=turned, dim=0, index=-1)
    b.call("fill_.Scalar", y.T[-1], self=last, value=5)
    y.T[-1] = 5
    run = b.call("slice.Tensor", y.reshape(12)[3:6], self=flat, dim=0, start=3, end=6)
    b.call("neg_.default", y.reshape(12)[3:6], self=run)
    y.reshape(12)[3:6] *= -1
    for value, want in ((x, y), (turned, y.T), (some, y[1:, ::2])):
        b.output(value, want.copy())


@graph
def view_written(b):
    """x.view(12)[3:6].neg_(), whose result is the view."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    flat = b.call("view.default", y.reshape(12), self=x, size=[12])
    run = b.call("slice.Tensor", y.reshape(12)[3:6], self=flat, dim=0, start=3, end=6)
    b.call("neg_.default", y.reshape(12)[3:6], self=run)
    y.reshape(12)[3:6] *= -1
    b.output(flat, y.reshape(12))


@graph
def before_and_after(b):
    """Values that were computed from x before a write keep their elements, and so does a copy."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    before = b.call("add.Tensor", y, self=x, other=1.0)
    copied = b.call("clone.default", y, self=x)
    b.call("mul_.Tensor", y, self=x, other=3.0)
    b.output(before, y + 1)
    b.output(copied, y.copy())
    b.output(x, y * 3)


@graph
def parts_copied(b):
    """a, b = x.chunk(2, -1); a.copy_(b); x.unsqueeze(1).permute(2, 0, 1)[0].zero_()"""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    left, right = b.program.node("aten.chunk.default", [y[:, :2], y[:, 2:]], is_list=True, self=x, chunks=2, dim=-1)
    b.call("copy_.default", y[:, :2], self=left, src=right)
    y[:, :2] = y[:, 2:]
    wide = b.call("unsqueeze.default", y[:, None], self=x, dim=1)
    moved = b.call("permute.default", y[:, None].transpose(2, 0, 1), self=wide, dims=[2, 0, 1])
    first = b.call("select.int", y[:, None].transpose(2, 0, 1)[0], self=moved, dim=0, index=0)
    b.call("zero_.default", y[:, None].transpose(2, 0, 1)[0], self=first)
    y[:, 0] = 0
    b.output(x, y)
    b.output(right, y[:, 2:].copy())


@graph
def masked_in_place(b):
    """x[0].masked_fill_(x[0] > 0, -1), and zeros(4, 4)[1:3].add_(x[0])"""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    row = b.call("select.int", y[0], self=x, dim=0, index=0)
    mask = b.call("gt.Scalar", y[0] > 0, self=row, other=0)
    b.call("masked_fill_.Scalar", y[0], self=row, mask=mask, value=-1)
    y[0][y[0] > 0] = -1
    b.output(x, y)
    zeros = np.zeros((4, 4), "float32")
    grid = b.call("zeros.default", zeros, size=[4, 4])
    narrow = b.call("narrow.default", zeros[1:3], self=grid, dim=0, start=1, length=2)
    b.call("add_.Tensor", zeros[1:3], self=narrow, other=row)
    zeros[1:3] += y[0]
    b.output(grid, zeros)


@graph
def contiguous_view(b):
    """contiguous() and reshape() of a contiguous tensor are the tensor itself."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    same = b.call("contiguous.default", y, self=x)
    flat = b.call("reshape.default", y.reshape(-1), self=same, shape=[-1])
    b.call("add_.Scalar", y.reshape(-1), self=flat, other=1.0)
    b.output(x, y + 1)
    turned = b.call("t.default", y.T, self=x)
    copied = b.call("contiguous.default", np.ascontiguousarray(y.T), self=turned)
    b.output(copied, np.ascontiguousarray((y + 1).T))


@graph
def diagonal_copied(b):
    """diag() of a matrix shares no elements with it."""
    y = np.arange(9, dtype="float32").reshape(3, 3)
    x = b.call("clone.default", y, self=b.input(y.copy()))
    diagonal = b.call("diag.default", np.diag(y).copy(), self=x)
    b.call("add_.Scalar", y, self=x, other=10.0)
    b.output(diagonal, np.diag(y).copy())
    b.output(x, y + 10)


@graph
def dropout_in_place(b):
    """The argument of dropout_ has a different name from that of dropout."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    b.output(b.call("dropout_.default", y, self=x, p=0.5, train=False), y)


@graph
def reshaped_parts(b):
    """A reshape of a tensor that is not contiguous is a view if the strides allow that, and otherwise a copy."""
    y = np.arange(24, dtype="float32").reshape(2, 3, 4)
    x = b.call("clone.default", y, self=b.input(y.copy()))
    rows = b.call("slice.Tensor", y[:, 1:], self=x, dim=1, start=1, end=LAST)
    view = np.lib.stride_tricks.as_strided(y[:, 1:], (2, 8), (48, 4))
    flat = b.call("reshape.default", view, self=rows, shape=[2, 8])
    b.call("add_.Scalar", view, self=flat, other=100.0)
    view += 100
    b.output(x, y.copy())
    columns = b.call("slice.Tensor", y[..., 1:], self=x, dim=2, start=1, end=LAST)
    copy = y[..., 1:].reshape(2, 9)
    copied = b.call("reshape.default", copy, self=columns, shape=[2, 9])
    part = b.call("slice.Tensor", copy[:, 2:5], self=copied, dim=1, start=2, end=5)
    b.call("neg_.default", copy[:, 2:5], self=part)
    copy[:, 2:5] *= -1
    b.output(copied, copy)
    b.output(columns, y[..., 1:].copy())


@graph
def without_gradients(b):
    """with no_grad(): part = x[0]; part.add_(1); both = x * 2. Then part.mul_(3) changes x again, but not `both`."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))

    def body(inner, x):
        part = inner.node("aten.select.int", y[0], self=x, dim=0, index=0)
        inner.node("aten.add_.Tensor", y[0], self=part, other=1.0)
        return part, inner.node("aten.mul.Tensor", y, self=x, other=2.0), x

    part, both, same = b.program.block("wrap_with_set_grad_enabled", body, x)
    y[0] += 1
    doubled = y * 2
    b.call("mul_.Tensor", y[0], self=part, other=3.0)
    y[0] *= 3
    for value, want in ((x, y), (both, doubled), (same, y)):
        b.output(b.call("neg.default", want, self=value), -want)


@graph
def blocks_in_blocks(b):
    """A block inside a block, with autocast disabled: both blocks may use the same names."""
    x = b.input(X)

    def inside(inner, x):
        return inner.node("aten.add.Tensor", X, self=x, other=1.0),

    def outside(inner, x):
        plus, = inner.block("wrap_with_autocast", inside, x)
        return inner.node("aten.mul.Tensor", X, self=plus, other=2.0), plus

    product, plus = b.program.block("wrap_with_set_grad_enabled", outside, x)
    wide = X.astype("float64")
    b.output(product, ((wide + 1) * 2).astype("float32"))
    b.output(plus, (wide + 1).astype("float32"))


@graph
def shared_by_what_copies_nothing(b):
    """dropout(x), an expanded row, a grid and an einsum of one operand share elements with x, so that later writes to x
    change them."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    same = b.call("dropout.default", y, input=x, p=0.5, train=False)
    row = b.call("select.int", y[0], self=x, dim=0, index=0)
    wide = b.call("expand.default", np.broadcast_to(y[0], (2, 4)), self=row, size=[2, 4])
    turned = b.call("einsum.default", y.T, equation="ij->ji", tensors=[x])
    grids = b.program.node("aten.meshgrid.indexing", [np.empty((4, 3), "float32"), np.empty((4, 3), "float32")], is_list=True,
                           tensors=[row, b.input(Y[:, 0].copy())], indexing="ij")
    b.call("add_.Tensor", y, self=same, other=1.0)
    y += 1
    wants = (x, y), (wide, np.broadcast_to(y[0], (2, 4))), (turned, y.T), (grids[0], np.broadcast_to(y[0][:, None], (4, 3)))
    for value, want in wants:
        b.output(b.call("neg.default", np.ascontiguousarray(want), self=value), -want)


@graph
def copied_to_another_layout(b):
    """x.contiguous(memory_format=...) copies if the result has another order of elements in memory than x."""
    y = X.copy()
    x = b.call("clone.default", y, self=b.input(X))
    other = b.call("contiguous.default", np.asfortranarray(y), self=x)
    same = b.call("contiguous.default", y, self=x)
    b.call("add_.Tensor", np.asfortranarray(y), self=other, other=1.0)
    b.call("mul_.Tensor", y, self=same, other=2.0)
    b.output(b.call("neg.default", y, self=x), -y * 2)
    b.output(b.call("neg.default", y, self=other), -(y + np.float32(1)))


@graph
def unread_results(b):
    """Results that only gradients would need are not computed."""
    none = np.zeros(0, "float32")
    weight, mean = (v[:, None, None].astype("float64") for v in (SIX, SIX2))
    want = ((IMAGE - mean) / np.sqrt(np.abs(weight) + 1e-3) * weight + mean).astype("float32")
    first, *_ = b.call("_native_batch_norm_legit_no_training.default", [want, none, none], input=b.input(IMAGE),
                       weight=b.input(SIX), bias=b.input(SIX2), running_mean=b.input(SIX2),
                       running_var=b.input(np.abs(SIX)), momentum=0.1, eps=1e-3)
    b.output(first, want, near=1e-6)


@graph
def strides_of_a_view(b):
    """as_strided reads the memory in which a view lies, whatever the strides of the view are."""
    x = b.call("clone.default", X, self=b.input(X))
    turned = b.call("transpose.int", X.T, self=x, dim0=0, dim1=1)
    want = np.stack([X.ravel()[2:5], X.ravel()[6:9]])
    b.output(b.call("as_strided.default", want, self=turned, size=[2, 3], stride=[4, 1], storage_offset=2), want)


@graph
def rows_written(b):
    """cache[:, 1:3] = new, by indices that the graph computes; views of the cache have the new elements."""
    y = X3.copy()
    x = b.call("clone.default", y, self=b.input(X3))
    turned = b.call("transpose.int", y.swapaxes(0, 1), self=x, dim0=0, dim1=1)
    at = b.call("arange.start", np.arange(1, 3), start=1, end=3)
    new = b.input(np.ascontiguousarray(X3[:, :2] * 10))
    b.call("index_copy_.default", y, self=x, dim=1, index=at, source=new)
    y[:, 1:] = X3[:, :2] * 10
    row = b.call("select.int", y[0], self=x, dim=0, index=0)
    b.call("index_put_.default", y[0], self=row, indices=[b.input(np.array([2]))], values=b.input(ROW))
    y[0, 2] = ROW
    b.output(x, y.copy())
    b.output(turned, y.swapaxes(0, 1).copy())


@graph
def diagonal_written(b):
    y = X3.copy()
    x = b.call("clone.default", y, self=b.input(X3))
    part = b.call("diagonal.default", np.diagonal(y, 1, 1, 2), self=x, offset=1, dim1=1, dim2=2)
    b.call("fill_.Scalar", np.diagonal(y, 1, 1, 2), self=part, value=5)
    for i in range(3):
        y[:, i, i + 1] = 5
    b.output(x, y)


@graph
def asserted(b):
    x = b.input(X)
    b.call("_assert_tensor_metadata.default", [], a=x, size=None, stride=None, dtype=DType("float32"))
    b.call("_assert_tensor_metadata.default", [], a=x, size=[3, 4], stride=[4, 1], dtype=None)
    b.output(x, X)


@graph
def dynamic(b):
    """Ops on x (s0, 3, s1), whose sizes s0 and s1 are known only at the call."""
    array = random.standard_normal((4, 3, 5)).astype("float32")
    x = b.input(array, ["s0", 3, "s1"])
    rows, columns = b.program.size(x, 0), b.program.size(x, -1)
    turned = b.call("transpose.int", array.swapaxes(0, 2), self=x, dim0=0, dim1=2, symbolic=["s1", 3, "s0"])
    b.output(turned, array.swapaxes(0, 2).copy())
    whole = b.call("ones.default", np.ones((5, 4), "float32"), size=[columns, rows], symbolic=["s1", "s0"])
    b.output(whole, np.ones((5, 4), "float32"))
    b.output(b.call("arange.default", np.arange(5), end=columns, symbolic=["s1"]), np.arange(5))
    both = b.program.arithmetic("add", "Add({a}, {b})", a=rows, b=columns)
    again = b.program.arithmetic("sub", "Add({a}, Mul(Integer(-1), {b}))", a=both, b=rows)
    twice = b.program.arithmetic("mul", "Mul({a}, {b})", a=again, b=2)
    less = b.program.arithmetic("neg", "Mul(Integer(-1), {a})", a=again)
    same = b.program.arithmetic("add", "Add({a}, {b})", a=twice, b=less)
    b.output(b.call("arange.default", np.arange(5), end=same, symbolic=["s1"]), np.arange(5))
    part = b.call("select.int", array[:, 1], self=x, dim=1, index=-2, symbolic=["s0", "s1"])
    b.output(b.call("softmax.int", array[:, 1], self=part, dim=-1, symbolic=["s0", "s1"]),
             softmax(array[:, 1].astype("float64"), -1).astype("float32"), near=1e-6)
    b.output(b.call("mean.dim", array.mean((0, 2)), self=x, dim=[0, 2]),
             array.astype("float64").mean((0, 2)).astype("float32"), near=1e-6)
    b.output(b.call("flip.default", array, self=x, dims=[0, 2], symbolic=["s0", 3, "s1"]), array[::-1, :, ::-1].copy())
    grown = b.call("expand.default", array, self=b.call("slice.Tensor", array[:, :1], self=x, dim=1, start=0, end=1,
                                                        symbolic=["s0", 1, "s1"]),
                   size=[rows, 3, columns], symbolic=["s0", 3, "s1"])
    b.output(grown, np.repeat(array[:, :1], 3, 1))


@graph
def dynamic_rows(b):
    """Writes at a number of indices that is known only at the call, and other ops on as many rows."""
    rows, at = random.standard_normal((4, 6)).astype("float32"), np.array([2, 0, 2, 4])
    x, index = b.input(rows, ["s0", 6]), b.input(at, ["s0"])
    table = random.standard_normal((5, 6)).astype("float32")
    want = table.astype("float64")
    np.add.at(want, at, rows)
    added = b.call("index_add.default", table, self=b.input(table), dim=0, index=index, source=x)
    b.output(added, want.astype("float32"), near=1e-6)
    wide = b.call("expand.default", np.broadcast_to(at[:, None], (4, 6)), size=[-1, 6], symbolic=["s0", 6],
                  self=b.call("unsqueeze.default", at[:, None], self=index, dim=1, symbolic=["s0", 1]))
    scattered = b.call("scatter_add.default", table, self=b.input(table), dim=0, index=wide, src=x)
    b.output(scattered, want.astype("float32"), near=1e-6)
    b.output(b.call("one_hot.default", np.eye(5, dtype=int)[at], self=index, num_classes=5, symbolic=["s0", 5]),
             np.eye(5, dtype=int)[at])
    two = b.input(np.array([2]))
    b.output(b.call("isin.Tensor_Tensor", at == 2, elements=index, test_elements=two, symbolic=["s0"]), at == 2)
    b.output(b.call("cumprod.default", rows, self=x, dim=0, symbolic=["s0", 6]),
             np.cumprod(rows.astype("float64"), 0).astype("float32"), near=1e-6)
    first = b.program.node("aten.topk.default", [rows[:, :2], at[:, None] + [[0, 0]]], self=x, k=2,
                           symbolic=[["s0", 2], ["s0", 2]])
    b.output(first[0], -np.sort(-rows, 1)[:, :2])


@graph
def dynamic_image(b):
    """A group norm and a product of complex numbers over sizes that are known only at the call."""
    image = random.standard_normal((2, 6, 4, 5)).astype("float32")
    x = b.input(image, [2, 6, "s0", "s1"])
    parts = image.astype("float64").reshape(2, 3, -1)
    want = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    b.output(b.call("group_norm.default", image, input=x, num_groups=3, symbolic=[2, 6, "s0", "s1"]),
             want.reshape(image.shape).astype("float32"), near=1e-6)
    pairs = random.standard_normal((4, 5, 2)).astype("float32")
    z = pairs[..., 0] + 1j * pairs[..., 1]
    turned = b.call("view_as_complex.default", z, self=b.input(pairs, ["s0", "s1", 2]), symbolic=["s0", "s1"])
    square = b.call("mul.Tensor", z, self=turned, other=turned, symbolic=["s0", "s1"])
    b.output(b.call("view_as_real.default", pairs, self=square, symbolic=["s0", "s1", 2]),
             passed((z.astype("complex128")**2).astype("complex64")), near=1e-6)


def attend(x, keep):
    """Computes the attention of x to itself in float64; a row without a key is 0."""
    e = np.where(keep, np.exp(x @ x.T / 2), 0)
    return e / np.where(e.any(1, keepdims=True), e.sum(1, keepdims=True), 1) @ x


@graph
def positions_at_limits(b):
    """Attention to the keys up to a position that the graph computes by sums that wrap in 32 bits or in 64 bits."""
    rows = random.standard_normal((6, 4)).astype("float32")
    x = b.input(rows[None, None])
    for kind in "int32", "int64":
        limits = np.iinfo(kind)
        array = np.array([limits.max, limits.max - 2, 0, -3, limits.min, limits.min + 4], kind)[:, None]
        position, keys = b.input(array), np.arange(6)
        k = b.call("arange.default", keys, end=6)
        for alone in True, False:
            with np.errstate(over="ignore"):
                moved = array + np.array(2, kind)
                keep = keys <= moved if alone else moved - keys >= 0
            later = b.call("add.Tensor", moved, self=position, other=2)
            mask = (b.call("le.Tensor", keep, self=k, other=later) if alone else
                    b.call("ge.Scalar", keep, self=b.call("sub.Tensor", moved - keys, self=later, other=k), other=0))
            out = b.call("scaled_dot_product_attention.default", rows[None, None], query=x, key=x, value=x, attn_mask=mask)
            b.output(out, attend(rows.astype("float64"), keep)[None, None].astype("float32"), near=1e-6)
