"""Runs a program of programs.py in eager PyTorch, in float64 and with attn, and compares what the runs compute.

A program is Python text with a function `run()`. The text uses these names, which a run defines:

    compiled(f, **options)   f itself, or torch.compile(f, backend="attn", **options)
    as_module(layer, args, kwargs, **options)
                             the layer itself, or attn.compile(layer, args, kwargs, ...).as_module(layer)
    call(f, *args, **kwargs) calls f, and then records everything that is watched, the arguments and all results so far
    watch(name=value, ...)   values that each later record contains: modules, tensors, lists and dictionaries
    look()                   makes a record without a call
    init(module, seed)       sets the parameters of a module, and returns it
    randn, randint, randbool, positive    tensors of random numbers: randn(2, 3, seed=4)
    loss(results)            the sum of all results that require a gradient, for backward()
    scribble(results)        changes the floats of all results in place
    refresh(module)          attn.refresh(module)

A run returns its records. Each record is a list of items: one for each tensor, number and exception.
"""
import collections
import contextlib
import pathlib
import re
import tempfile
import types

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import attn
import attn.dynamo

#: The error that a float may have beyond four times eager's error, relative to the largest element of the tensor (or to
#: 1 if all are smaller). It is 16 roundings of float32. Eager's error may be accidentally 0, for example if a tensor
#: has one element. An element of a half type may be rounded to the other neighbour, which is one rounding.
FLOOR = {torch.float32: 16 * 2.0**-23, torch.float64: 2.0**-40, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}


class Broken(Exception):
    """PyTorch does not work in this process any more: some of its errors leave a fake mode on."""


class Item:
    """One tensor, number or exception of a record."""
    def __init__(self, path, kind, value=None):
        self.path, self.kind, self.value = path, kind, value


class Double(TorchDispatchMode):
    """Makes random numbers of float64 programs equal to those of float32 programs."""

    RANDOM = {torch.ops.aten.rand_like, torch.ops.aten.randn_like, torch.ops.aten.rand, torch.ops.aten.randn}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.overloadpacket in self.RANDOM:
            return func(*args, **{**kwargs, "dtype": torch.float32}).double()
        return func(*args, **kwargs)


def in_double(text):
    """Returns the text of a program with float64 in place of all other floating-point types."""
    return re.sub(r"torch\.(float16|bfloat16|float32)\b", "torch.float64", text)


_moved = False  # whether the run is one of "moved", see Run

# The functions that programs use.


def _generator(seed):
    return torch.Generator().manual_seed(seed)


def _rounded(values, generator):
    """Returns float32 values in the type of the run. In a moved run, each value is moved up or down by a rounding."""
    values = values.to(torch.get_default_dtype())
    if _moved:
        values *= 1 + (torch.randint(0, 2, values.shape, generator=generator) * 2 - 1) * 2.0**-24
    return values


def randn(*shape, seed):
    generator = _generator(seed)
    return _rounded(torch.randn(shape, generator=generator, dtype=torch.float32), generator)


def positive(*shape, seed):
    return randn(*shape, seed=seed).abs() + 0.5


def randint(low, high, *shape, seed):
    return torch.randint(low, high, shape, generator=_generator(seed))


def randbool(*shape, seed):
    """Random booleans. The first of each row is True, so that a row of a mask has a key."""
    found = torch.rand(shape, generator=_generator(seed), dtype=torch.float32) < 0.6
    found[..., 0] = True
    return found


def init(module, seed):
    generator = _generator(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            values = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
            if parameter.ndim > 1:
                values *= parameter.shape[-1]**-0.5
            elif "norm" in name and name.endswith("weight"):
                values = 1 + 0.1 * values
            else:
                values *= 0.1
            parameter.copy_(_rounded(values, torch.Generator().manual_seed(1)))
    return module


def loss(results):
    leaves = torch.utils._pytree.tree_leaves(results)
    return torch.zeros((), requires_grad=True) + sum(
        (leaf * (i + 1)).sum()
        for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.requires_grad)


def scribble(results):
    """Changes the floats of all results in place."""
    with torch.inference_mode():
        for leaf in torch.utils._pytree.tree_leaves(results):
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
                leaf.mul_(0.5)


class Run:
    """One run of a program.

    `kind` is "python" (nothing is compiled), "double" (nothing is compiled, and floats are of float64), "moved" (like
    "double", with other roundings of the random numbers), "attn" or another backend of torch.compile.
    """
    def __init__(self, kind, fallback="aot_eager"):
        self.kind, self.fallback = kind, fallback
        self.watched, self.results, self.records = {}, [], []
        self.calls, self.refused, self.kernels = 0, [], 0
        self.raised = 0

    def compiled(self, function, **options):
        if self.kind in ("python", "double", "moved"):
            return function
        if self.kind == "attn" and "fallback" in attn.dynamo.OPTIONS:
            options["options"] = {"fallback": self.fallback}
        return torch.compile(function, backend=self.kind, **options)

    def as_module(self, layer, args, kwargs=None, *, dynamic=None, copy=False):
        if self.kind != "attn":
            return layer
        try:
            kernel = attn.compile(layer, args, kwargs, dynamic=dynamic)
        except attn.Error as reason:
            self.refused.append(str(reason).splitlines()[0])
            return layer
        self.kernels += 1
        return kernel.as_module(layer, copy=copy)

    def watch(self, **values):
        self.watched.update(values)

    def call(self, function, *args, **kwargs):
        torch.manual_seed(1000 + self.calls)
        number = self.calls
        self.calls += 1
        arguments = {f"argument {key} of call {number}": value for key, value in [*enumerate(args), *kwargs.items()]}
        try:
            result = function(*args, **kwargs)
        except Exception as reason:
            self.raised += 1
            self.look(arguments, error=reason)
            return None
        self.results.append((f"result of call {number}", result))
        self.look(arguments)
        return result

    def look(self, arguments=None, error=None):
        items, tensors = [], []
        if error is not None:
            items.append(Item("call", "exception", f"{type(error).__name__}: {error}"))
        for path, value in [*self.watched.items(), *(arguments or {}).items(), *self.results]:
            self._walk(path, value, items, tensors)
        self.records.append(items)

    def _walk(self, path, value, items, tensors):
        if isinstance(value, torch.Tensor):
            items.append(self._tensor(path, value, tensors))
        elif isinstance(value, torch.nn.Module):
            for name, tensor in [
                    *value.named_parameters(remove_duplicate=False), *value.named_buffers(remove_duplicate=False)
            ]:
                items.append(self._tensor(f"{path}.{name}", tensor, tensors))
                if tensor.grad is not None:
                    items.append(self._tensor(f"{path}.{name}.grad", tensor.grad, tensors))
            for name, part in sorted(value.__dict__.items()):
                if name.startswith("kept"):  # attributes of a module that are not buffers
                    self._walk(f"{path}.{name}", part, items, tensors)
        elif isinstance(value, (list, tuple, dict)):
            items.append(Item(path, "structure", (type(value).__name__, len(value))))
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                self._walk(f"{path}[{key!r}]", part, items, tensors)
        elif isinstance(value, float):
            items.append(Item(path, "float", value))
        else:
            items.append(
                Item(path, "constant", value if isinstance(value,
                                                           (int, str, bool, type(None))) else type(value).__name__))

    def _tensor(self, path, tensor, tensors):
        item = Item(path, "tensor", tensor.detach().clone())
        item.dtype, item.shape = tensor.dtype, tuple(tensor.shape)
        item.stride = tuple(stride for stride, size in zip(tensor.stride(), tensor.shape)
                            if size > 1) if tensor.numel() else ()
        item.requires_grad = tensor.requires_grad
        storage = tensor.untyped_storage()
        item.where = storage.data_ptr() if storage.nbytes() else (id(tensor),), tensor.data_ptr()
        item.same = next((other.path for other, kept in tensors if kept is tensor), path)
        first = next((other for other, _ in tensors if other.where[0] == item.where[0]), item)
        item.storage = first.path, item.where[1] - first.where[1]
        tensors.append((item, tensor))
        return item


@contextlib.contextmanager
def _fallback(kind):
    """Makes attn leave graphs to the backend `kind`, if attn has no option for this."""
    if "fallback" in attn.dynamo.OPTIONS or kind == "inductor":
        yield
        return
    before = attn.dynamo._default
    attn.dynamo._default = torch._dynamo.lookup_backend(kind)
    try:
        yield
    finally:
        attn.dynamo._default = before


def execute(text, name, kind, fallback="aot_eager"):
    """Runs a program once. Returns the Run, which has the records."""
    global _moved
    run = Run(kind, fallback)
    double = kind in ("double", "moved")
    _moved = kind == "moved"
    folder = pathlib.Path(tempfile.gettempdir()) / "attn-programs"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}{'_double' * double}.py"  # a file, because Dynamo and reports read the lines of a program
    text = in_double(text) if double else text
    if not path.exists() or path.read_text() != text:  # another process may run the same program
        path.write_text(text)
    module = types.ModuleType("program")
    module.__dict__.update(compiled=run.compiled,
                           as_module=run.as_module,
                           call=run.call,
                           watch=run.watch,
                           look=run.look,
                           init=init,
                           randn=randn,
                           randint=randint,
                           randbool=randbool,
                           positive=positive,
                           loss=loss,
                           scribble=scribble,
                           refresh=attn.refresh if kind == "attn" else lambda module: None,
                           __file__=str(path))
    torch._dynamo.reset()
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    torch.manual_seed(0)
    try:
        with _fallback(fallback), Double() if double and "rand" in text else contextlib.nullcontext():
            try:
                exec(compile(text, str(path), "exec"), module.__dict__)
                module.run()
            except Exception as reason:
                run.look(error=reason)
                run.raised += 1
            else:
                run.look()
        if torch.ones(2).add(1).tolist() != [2, 2]:
            raise Broken(kind)
    except RuntimeError as reason:
        raise Broken(kind) from reason
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
    return run


# Comparing.

Difference = collections.namedtuple("Difference", "step path what detail")


def _allowed(expected, exact, moved, coarse):
    """Returns the largest error that a float tensor may have against `exact`."""
    kind = torch.bfloat16 if coarse else expected.dtype
    finite = expected.isfinite() & exact.isfinite()
    if not finite.any():
        return 0.0
    error = (expected.double() - exact.double())[finite].abs().max().item()
    if moved is not None:
        error = max(error, (moved - exact.double())[finite].abs().nan_to_num().max().item())
    scale = max(1.0, exact.double()[finite].abs().max().item())
    return 4 * error + FLOOR.get(kind, FLOOR[torch.float32]) * scale


def _value(got, expected, exact, moved, coarse):
    """Says how a tensor differs from eager's, or returns None. `exact` is the tensor of the float64 run, or None."""
    got, expected = got.value, expected.value
    known = exact is not None and exact.kind == "tensor" and exact.shape == tuple(expected.shape)
    exact = exact.value if known else expected
    moved = moved.value.double(
    ) if known and moved is not None and moved.shape == exact.shape and moved.value.is_floating_point() else None
    if got.is_complex() or expected.is_complex():
        got, expected, exact = (torch.view_as_real(t.resolve_conj().to(torch.complex128))
                                for t in (got, expected, exact))
    if not expected.is_floating_point():
        if torch.equal(got, expected) or not exact.is_floating_point() and not torch.equal(exact, expected):
            return None  # if float64 gives other integers, a rounding decides them
        wrong = (got != expected).sum().item()
        return "integers", f"{wrong} of {got.numel()} elements differ: {_few(got)} in place of {_few(expected)}"
    if not torch.equal(got.isnan(), expected.isnan()) or not torch.equal(got.isinf(), expected.isinf()):
        return "nan", f"NaN or infinity at other places: {_few(got)} in place of {_few(expected)}"
    finite = got.isfinite()
    if torch.equal(got[finite], expected[finite]):
        return None
    close = exact.isfinite() & finite
    error = (got.double() - exact.double())[close].abs().max().item() if close.any() else 0.0
    # Without a float64 run, a float64 tensor may have been converted from a float32 result.
    allowed = _allowed(expected, exact, moved, coarse) if known else 100 * _allowed(expected.float(), exact, moved, coarse)
    if error <= allowed:
        return None
    wrong = ((got.double() - exact.double()).abs() > allowed)
    return "values", (f"error {error:.3g}, allowed {allowed:.3g}, in {wrong.sum().item()} of {got.numel()} elements; "
                      f"{_few(got[wrong])} in place of {_few(exact[wrong])}")


def _few(tensor):
    values = tensor.flatten()[:4].tolist()
    return "[" + ", ".join(f"{v:.6g}" if isinstance(v, float) else str(v)
                           for v in values) + (", ..." if tensor.numel() > 4 else "") + "]"


def _item(got, expected, exact, moved, coarse):
    """Yields (what, detail) for each way in which an item differs from eager's."""
    if got.kind != expected.kind:
        yield "structure", f"{got.kind} {got.value} in place of {expected.kind} {expected.value}"
    elif got.kind == "float":
        error = abs(got.value - expected.value)
        reference = exact.value if exact is not None and exact.kind == "float" else expected.value
        if error > 4 * abs(expected.value - reference) + 2e-6 * max(1, abs(expected.value)):
            yield "values", f"{got.value} in place of {expected.value}"
    elif got.kind == "exception":
        pass  # any exception will do
    elif got.kind != "tensor":
        if got.value != expected.value or type(got.value) is not type(expected.value):
            if exact is None or exact.value == expected.value:
                yield "structure", f"{got.value!r} in place of {expected.value!r}"
    else:
        if got.dtype != expected.dtype:
            yield "dtype", f"{got.dtype} in place of {expected.dtype}"
        if got.shape != expected.shape:
            yield "shape", f"{got.shape} in place of {expected.shape}"
        if got.dtype == expected.dtype and got.shape == expected.shape:
            if found := _value(got, expected, exact, moved, coarse):
                yield found
            if got.stride != expected.stride:
                yield "strides", f"{got.stride} in place of {expected.stride}, of the sizes above 1 of {got.shape}"
        if got.same != expected.same:
            yield "identity", f"the same tensor as {got.same!r}, in place of {expected.same!r}"
        if got.storage != expected.storage:
            yield "storage", "shares storage with {!r} at byte {}, in place of {!r} at byte {}".format(
                *got.storage, *expected.storage)
        if got.requires_grad != expected.requires_grad:
            yield "requires_grad", f"{got.requires_grad} in place of {expected.requires_grad}"


def differences(got, expected, exact, coarse, moved=()):
    """Returns the differences between the records of two runs.

    `exact` has the records of the run in float64, and `moved`, if it is given, those of a moved run.
    """
    found = []
    for step, (mine, theirs) in enumerate(zip(got, expected)):
        raised = [next((item.value for item in record if item.kind == "exception"), None) for record in (mine, theirs)]
        if (raised[0] is None) != (raised[1] is None):
            found.append(
                Difference(step, "call", "exception",
                           f"{raised[0] or 'none'} in place of {raised[1] or 'none'}"[:1500]))
            return found
        reference = {item.path: item for item in exact[step]} if step < len(exact) else {}
        other = {item.path: item for item in moved[step]} if step < len(moved) else {}
        if [item.path for item in mine] != [item.path for item in theirs]:
            pair = next((pair for pair in zip(mine, theirs) if pair[0].path != pair[1].path), (mine[-1], theirs[-1]))
            found.append(Difference(step, pair[1].path, "structure", f"{pair[0].path} in place of {pair[1].path}"))
            return found
        for item, want in zip(mine, theirs):
            found += [
                Difference(step, item.path, what, detail)
                for what, detail in _item(item, want, reference.get(item.path), other.get(item.path), coarse)
            ]
    if len(got) != len(expected):
        found.append(
            Difference(min(len(got), len(expected)), "run", "structure",
                       f"{len(got)} records in place of {len(expected)}"))
    return found


def check(text, name, backend="attn"):
    """Runs a program in all ways. Returns a dictionary with the counts, the differences and the reports of attn."""
    fallback = (re.match(r"# fallback: (\w+)", text) or [None, "aot_eager"])[1]
    coarse = "bfloat16" in text or "float16" in text
    eager = execute(text, name, "python")
    double = execute(text, name, "double")
    exact = []  # the records of the run in float64, up to a call that raises an error only in one of the runs
    for mine, theirs in zip(double.records, eager.records):
        if [item.path for item in mine] != [item.path for item in theirs]:
            break
        exact.append(mine)
    attn.dynamo.reports.clear()
    mine = execute(text, name, backend, fallback)
    reports = list(attn.dynamo.reports)
    found, moved = differences(mine.records, eager.records, exact, coarse), ()
    if any(difference.what == "values" for difference in found):
        # Eager's error may be small by accident, for example if two large scores of a softmax are almost equal. So the
        # program runs again with inputs that differ by a rounding; the change of its results is allowed as an error.
        moved = execute(text, name, "moved").records
        found = differences(mine.records, eager.records, exact, coarse, moved)
    if "as_module" in text and "MultiheadAttention" in text:
        # Outside of torch.export, nn.MultiheadAttention calls one op, whose results have other strides.
        found = [difference for difference in found if difference.what != "strides"]
    other = []
    broken = False
    if found:  # what PyTorch's own compilers change, attn may change too
        for kind in dict.fromkeys(["aot_eager", fallback]):
            try:
                theirs = execute(text, name, kind)
            except Broken:
                broken = True
                break
            left = {(d.step, d.path, d.what) for d in differences(mine.records, theirs.records, exact, coarse, moved)}
            other += [d for d in found if (d.step, d.path, d.what) not in left]
            found = [d for d in found if (d.step, d.path, d.what) in left]
    counts = collections.Counter(calls=mine.calls,
                                 raised=eager.raised > 0,
                                 refused=len(mine.refused),
                                 layers=mine.kernels,
                                 other=bool(other) and not found,
                                 no_float64=len(exact) < len(eager.records))
    for report in reports:
        if not report.startswith("graph of "):
            counts["notes"] += 1
            continue
        counts["graphs"] += 1
        if match := re.search(r"compiled (as a whole|in \d+ parts?): ([^;]*)", report):
            counts["whole" if match[1] == "as a whole" else "parts"] += 1
            counts["attentions"] += match[2].count(", ") + 1
        else:
            counts["left"] += 1
    return {
        "counts": counts, "found": found, "other": other, "reports": reports, "refused": mine.refused, "broken": broken,
        "raised": next((item.value for record in eager.records for item in record if item.kind == "exception"), None)
    }
