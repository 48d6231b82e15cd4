"""Kernels: compiled functions that Python can call."""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attn import _attn

if TYPE_CHECKING:
    import torch

    from attn._report import Report, Table


def error(message, status="USAGE"):
    made = _attn.Error(message)
    made.status = status
    return made


def _leaves(value):
    """The leaves of an argument: its parts that are not lists, tuples, dictionaries or other pytrees of PyTorch."""
    torch = sys.modules.get("torch")
    if torch:
        # None is a leaf, as in the inputs of an exported program.
        return torch.utils._pytree.tree_leaves(value)
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in _leaves(part)]
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in _leaves(part)]
    return [value]


def is_constant(leaf):
    return leaf is None or isinstance(leaf, (bool, int, float, complex, str))


def why_no_array(value):
    """The reason why a call cannot take `value`, which is not a constant; None if no reason is known."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if numpy and isinstance(value, numpy.ndarray):
        if value.dtype.kind not in "biufcV" or value.dtype.names:  # the types of ml_dtypes have the kind V
            return f"an array of type {value.dtype}"
        return None if value.dtype.isnative else "an array in another byte order; pass copy=True"
    if not (torch and isinstance(value, torch.Tensor)):
        return None
    if value.is_meta:
        return "a tensor on the device meta, which has no elements"
    if value.layout != torch.strided or value.is_nested:
        return f"a tensor of layout {value.layout}; call x.to_dense()" if not value.is_nested else "a nested tensor"
    return f"a tensor of type {value.dtype}; call x.dequantize()" if value.is_quantized else None


def _order(value, like):
    """Returns `value` with the entries of its dictionaries in the order of the dictionaries in `like`."""
    if isinstance(value, dict) and isinstance(like, dict) and value.keys() == like.keys():
        ordered = {key: _order(value[key], like[key]) for key in like}
        return ordered if type(value) is dict else type(value)(ordered)
    if type(value) in (list, tuple) and type(value) is type(like) and len(value) == len(like):
        return type(value)(map(_order, value, like))
    return value


def _is_same(value, other):
    """Whether two values are equal constants, or lists or tuples of equal constants. NaN equals NaN here."""
    if type(value) is type(other) and isinstance(value, (list, tuple)):
        return len(value) == len(other) and all(map(_is_same, value, other))
    return value is other or type(value) is type(other) and is_constant(value) and repr(value) == repr(other)


def describe(value):
    """Describes `value` in a message: a constant by its value, another object by its kind."""
    if is_constant(value):
        return repr(value)
    if type(value) in (list, tuple, dict):
        return {list: "a list", tuple: "a tuple", dict: "a dictionary"}[type(value)]
    return "an array" if hasattr(value, "shape") else f"an object of type {type(value).__name__}"


ARRAY = object()  # stands for an array in a list of constants


class Convention:
    """Converts the arguments of a module to the inputs of its kernel, and the kernel's outputs to the module's results.

    A leaf of the arguments that is None, a number or a string is a constant: calls must pass the value that it had at
    compile time.
    """

    def __init__(self, forward, args, kwargs):
        self.signature = inspect.signature(forward)
        self.args, self.kwargs = tuple(args), dict(kwargs)
        self.values = self.bind(args, kwargs)
        # torch.export gets these arguments; all others keep their defaults.
        self.given = [*self.bind(args, {}, partial=True), *kwargs]
        self.parts = {}  # for each argument: the names of its leaves, their values (or ARRAY), and its structure
        for name in self.given:
            paths, spec = sys.modules["torch"].utils._pytree.tree_flatten_with_path(self.values[name])
            self.parts[name] = ([name + sys.modules["torch"].utils._pytree.keystr(path) for path, _ in paths],
                                [leaf if is_constant(leaf) else ARRAY for _, leaf in paths], spec)
        self.out_spec = None  # the structure of the results in torch.export, for outputs()

    def arrays(self):
        """Yields the arrays among the leaves of the example arguments, as pairs of a name and an array."""
        for name, (names, constants, _) in self.parts.items():
            leaves = sys.modules["torch"].utils._pytree.tree_leaves(self.values[name])
            yield from ((part, leaf) for part, leaf, constant in zip(names, leaves, constants) if constant is ARRAY)

    def set_results(self, program):
        """Reads the structure and the kinds of the results from an exported program."""
        self.out_spec = program.call_spec.out_spec
        results = [spec.arg for spec in program.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"]
        # The program has no output for a result that is None or a string, and an output of rank 0 for a number.
        values = {node.name: node.meta.get("val") for node in program.graph.nodes}

        def kind(arg):
            if type(arg).__name__ != "TensorArgument":
                return "number"
            return "complex" if values[arg.name].is_complex() else "tensor"

        self.results = [("constant", arg.value) if hasattr(arg, "value") else (kind(arg), None) for arg in results]

    def bind(self, args, kwargs, partial=False):
        """Returns the arguments by name. Missing arguments get their default values, unless `partial` is true."""
        try:
            bound = (self.signature.bind_partial if partial else self.signature.bind)(*args, **kwargs)
        except TypeError as reason:
            raise error(f"expected the arguments of forward{self.signature}: {reason}", "COUNT") from None
        if not partial:
            bound.apply_defaults()
        values = dict(bound.arguments)
        for parameter in self.signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                values.update(values.pop(parameter.name, {}))
        return values

    def is_plain(self, count):
        """Whether `count` positional arrays are the inputs in this order, and the only output is the result."""
        arrays = [object() for _ in range(count)]
        try:
            return self.inputs(arrays, {}) == arrays and self.results == [("tensor", None)]
        except _attn.Error:
            return False

    def _need(self, name, expected, values):
        """Raises the error that the argument `name` is not `expected`, which is its value at compile time or ARRAY."""
        what = "an array or a tensor" if expected is ARRAY else f"{expected!r}, the value at compile time"
        got = f"got {describe(values[name])}" if name in values else "but it is missing"
        raise error(f"argument '{name}': expected {what}, {got}", "NULL" if expected is ARRAY else "VALUE")

    def inputs(self, args, kwargs):
        values = self.bind(args, kwargs)
        for name in values:
            if name not in self.values:
                raise error(f"argument '{name}': expected no such argument, as at compile time, got {describe(values[name])}",
                            "VALUE")
            if name not in self.parts and not _is_same(values[name], self.values[name]):
                self._need(name, self.values[name], values)
        inputs = []
        for name, (names, constants, expected) in self.parts.items():
            if name not in values:
                self._need(name, constants[0] if expected.is_leaf() else ARRAY, values)
            leaves, spec = sys.modules["torch"].utils._pytree.tree_flatten(values[name])
            if spec != expected:  # the keys of dictionaries may have another order
                leaves, spec = sys.modules["torch"].utils._pytree.tree_flatten(_order(values[name], self.values[name]))
            if spec != expected:
                if expected.is_leaf():
                    self._need(name, constants[0], values)
                what = f"{len(names)} parts, as at compile time, got {len(leaves)}" if len(leaves) != len(names) \
                    else "the structure that it had at compile time"
                raise error(f"argument '{name}': expected {what}", "COUNT")
            for part, leaf, constant in zip(names, leaves, constants):
                if is_constant(leaf) == (constant is ARRAY) or constant is not ARRAY and not _is_same(leaf, constant):
                    self._need(part, constant, {part: leaf})
                if constant is ARRAY:
                    inputs.append(leaf)
        return inputs

    def outputs(self, outputs):
        outputs = iter(outputs)
        leaves = []
        for kind, value in self.results:
            if kind == "constant":
                if isinstance(value, (bool, int, float)):
                    next(outputs)  # this output has the same value
                leaves.append(value)
            else:
                output = next(outputs)
                if kind == "complex":  # the kernel returns pairs of real numbers
                    output = sys.modules["torch"].view_as_complex(output)
                leaves.append(output.item() if kind == "number" else output)
        return sys.modules["torch"].utils._pytree.tree_unflatten(leaves, self.out_spec)


def _nest(names, arrays):
    """Nests arrays by name: "out" is one array; "out.0" and "out.1" form a tuple, and "out.y" is in a dictionary."""
    if names == ["out"]:
        return arrays[0]
    tree = {}
    for name, array in zip(names, arrays):
        *path, last = name.split(".")[1:]
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = array

    def convert(node):
        if not isinstance(node, dict):
            return node
        if all(key.isdigit() for key in node):  # a result that is None has no array
            return tuple(convert(node.get(str(i))) for i in range(max(map(int, node)) + 1))
        return {key: convert(part) for key, part in node.items()}

    return convert(tree)


NUMPY_TYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "i1": "bool", "i8": "int8", "i16": "int16",
               "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
               "bf16": "bfloat16"}


def _convert(array, dtype):
    """Returns `array` as a contiguous array of type `dtype`: the array itself, or a copy."""
    name = NUMPY_TYPES[dtype]
    torch = sys.modules.get("torch")
    if torch and isinstance(array, torch.Tensor):
        if array.is_complex():  # a kernel takes pairs of real numbers
            array = torch.view_as_real(array.resolve_conj())
        return array.to(getattr(torch, name)).contiguous()
    numpy = sys.modules.get("numpy")
    if hasattr(array, "__array_namespace__") and not (numpy and isinstance(array, numpy.ndarray)):
        space = array.__array_namespace__()
        return space.asarray(array, dtype=getattr(space, name))
    import numpy

    if name == "bfloat16":
        from ml_dtypes import bfloat16 as name
    return numpy.require(array, name, "CA")  # contiguous and aligned


class Buffers(dict):
    """The buffers of a kernel by name; no other names can be added."""

    def __init__(self, names):
        self.names = names

    def __setitem__(self, name, array):
        if name not in self.names:
            raise error(f"k.buffers: expected a name among {', '.join(self.names) or 'none'}, got '{name}'", "NAME")
        super().__setitem__(name, array)

    def update(self, *arrays, **more):
        for name, array in dict(*arrays, **more).items():
            self[name] = array


def _parse_device(device):
    """Returns DLPack's device type and the device number for a name such as "cpu", "cuda" or "cuda:1"."""
    kind, _, number = str(device).partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdigit()):
        raise error(f"expected the device cpu, cuda or cuda:<number>, got '{device}'")
    return {"cpu": 1, "cuda": 2}[kind], int(number or 0)


class Kernel(_attn.Function):
    """A compiled function. `k(x, mask)` calls it; attn.compile, attn.attention and attn.load make kernels.

    Inputs are tensors of PyTorch, or arrays of NumPy or of any package that supports DLPack. Results are arrays of the
    package of the first input. A call converts and copies nothing: an input of another type, or one that is not
    contiguous, is an error, unless the call has `copy=True`. Several threads may call a kernel at once, unless the
    kernel has buffers; a call releases Python's global interpreter lock.
    """

    path: str
    #: The description of the library. `signature` is its part for this function: arguments, weights, symbols, levels.
    manifest: dict[str, Any]
    signature: dict[str, Any]

    def __new__(cls, path: str | os.PathLike[str], *, entry: str | None = None, level: str | None = None,
                device: Any = "cpu") -> Kernel:
        library = _attn.Library(path)
        manifest = json.loads(library.manifest)
        functions = {function["name"]: function for function in manifest["functions"]}
        entry = entry or next(iter(functions))
        self = super().__new__(cls, library, entry, level, *_parse_device(device))
        self._library = library
        self.path = str(path)
        self.device = str(device)
        self.manifest = manifest
        self.signature = functions.get(entry)
        self._names = [argument["name"] for argument in self.signature["inputs"]]
        self._symbols = [symbol["name"] for symbol in self.signature["symbols"]]
        self._buffer_names = [argument["name"] for argument in self.signature["inputs"] if argument.get("in_out")]
        self._convention = None  # the Convention of the module, if the kernel was compiled from one
        self._source = None  # the model from which the kernel was compiled
        self._report_json = None  # the report that attnc wrote
        self._measured = None  # the milliseconds and the statistics of a call, from bench()
        self._buffers = None  # created when they are first needed
        self._loads = 0  # how many times load_state_dict was called
        return self

    def __init__(self, *args, **kwargs):
        pass

    def _clone(self):
        """Returns another kernel that runs the same code, with its own buffers. Its weights are not set yet."""
        clone = _attn.Function.__new__(type(self), self._library, self.name, self.level, *_parse_device(self.device))
        clone.__dict__.update(self.__dict__, _buffers=None, _source=self._source and self._source.copy())
        clone.num_threads = self.num_threads
        if self._convention and not self._convention.is_plain(len(self._names)):
            clone._is_plain = False
        return clone

    # Calls.

    def _inputs(self, args, kwargs):
        """Returns the inputs in the order of the signature. For a buffer that is not given, takes the kernel's own."""
        if self._convention:
            inputs = iter(self._convention.inputs(args, kwargs))
            return [self._buffer(name) if name in self._buffer_names else next(inputs) for name in self._names]
        leaves = []
        for value in args:
            parts = _leaves(value)
            if isinstance(value, (list, tuple)) and any(isinstance(part, (bool, int, float)) for part in parts):
                name = self._names[min(len(leaves), len(self._names) - 1)]
                raise error(f"{self.name}: argument '{name}' expected an array or a tensor, got {describe(value)}", "NULL")
            leaves += parts
        names = [name for name in self._names if name not in self._buffer_names]
        if len(leaves) == len(self._names):
            names = self._names
        named = dict(zip(names, leaves))
        for name, value in kwargs.items():
            if name not in self._names or name in named:
                raise error(f"{self.name}: expected inputs {', '.join(names)}, got '{name}'" + " twice" * (name in named),
                            "NAME")
            named[name] = value
        if len(leaves) > len(names) or not set(names) <= set(named):
            raise error(f"{self.name}: expected {len(names)} inputs ({', '.join(names)}), got {len(leaves) + len(kwargs)}",
                        "COUNT")
        return [named[name] if name in named else self._buffer(name) for name in self._names]

    def _call(self, *args, out=None, copy=False, **kwargs):
        inputs = self._inputs(args, kwargs)
        for argument, array in zip(self.signature["inputs"], inputs):
            if is_constant(array):
                raise error(f"{self.name}: argument '{argument['name']}' expected an array, got {array!r}", "NULL")
        outputs = None if out is None else tuple(_leaves(out))
        try:
            if copy:
                inputs = [array if argument.get("in_out") else _convert(array, argument["dtype"])
                          for argument, array in zip(self.signature["inputs"], inputs)]
            results = self.run(tuple(inputs), outputs)
        except (RuntimeError, AttributeError, TypeError, ValueError) as reason:
            if not isinstance(reason, _attn.Error):
                self._explain(inputs, reason)
            raise
        if out is not None:
            return out
        if self._convention and self._convention.out_spec is not None:
            return self._convention.outputs(list(results))
        return _nest([argument["name"] for argument in self.signature["outputs"]], results)

    def _explain(self, inputs, reason):
        """If an input caused `reason`, an error of the package of this input, raises an error that names the input."""
        for argument, array in zip(self.signature["inputs"], inputs):
            if why := why_no_array(array):
                raise error(f"{self.name}: argument '{argument['name']}' expected an array of numbers in memory, got {why}", "DEVICE") from reason
        if inputs and isinstance(reason, AttributeError) and "from_dlpack" in str(reason):
            raise error(f"{self.name}: argument '{self._names[0]}' expected an array of a package with from_dlpack, which is needed for "
                        f"the results, got {describe(inputs[0])}; pass numpy.from_dlpack(x)", "DTYPE") from reason

    # Buffers.

    @property
    def buffers(self) -> dict[str, Any]:
        """The buffers that calls read and write, such as the caches of a decoder, by name.

        At first they have the values of the module's buffers at compile time, or zeros if the kernel was made from a
        file. To decode another sequence, put other arrays into this dictionary.
        """
        if self._buffers is None:
            self._buffers = Buffers(self._buffer_names)
            for argument in self.signature["inputs"]:
                if argument["name"] in self._buffer_names:
                    self._buffers[argument["name"]] = self._first_buffer(argument)
        return self._buffers

    def _buffer(self, name):
        if name not in self.buffers:
            raise error(f"{self.name}: expected k.buffers to have '{name}', but it does not", "NAME")
        return self.buffers[name]

    def _first_buffer(self, argument):
        tensors = self._source.tensors() if self._source else {}
        if argument["name"] in tensors:
            with sys.modules["torch"].inference_mode(False):  # because the copy may be changed outside inference mode
                return tensors[argument["name"]].detach().clone()
        if any(isinstance(size, str) for size in argument["shape"]):
            raise error(f"{self.name}: expected k.buffers['{argument['name']}'], an array, because its sizes are not fixed",
                        "NULL")
        import numpy

        return _convert(numpy.zeros(argument["shape"]), argument["dtype"])

    # Weights.

    def load_state_dict(self, tensors: Mapping[str, Any]) -> None:
        """Replaces all weights without compiling. Calls that are already running use the old weights.

        `tensors` has an array for each weight, as the module's state_dict() does. A name that is missing or unknown, a
        wrong shape or a wrong type is an error, and the old weights stay.
        """
        wanted = [argument["name"] for argument in self.signature["weights"]]
        if not hasattr(tensors, "items"):
            raise error(f"load_state_dict: expected a dictionary of arrays, got an object of type {type(tensors).__name__}")
        tensors = {name: tensor.detach() if hasattr(tensor, "detach") else tensor for name, tensor in tensors.items()}
        if self._source:
            tensors = self._source.complete(tensors, wanted)
        if wanted or tensors:
            self._set_weights(tensors)
        self._loads += 1
        if self._source:
            self._source.remember(tensors)

    # Descriptions.

    def __reduce_ex__(self, protocol):
        raise error("a kernel cannot be copied or pickled; k.save(path) and attn.load(path) make another one")

    def __repr__(self) -> str:
        def show(arguments):
            return ", ".join(f"{argument['name']}: {argument['dtype']}[{', '.join(map(str, argument['shape']))}]"
                             for argument in arguments)

        weights = self.signature["weights"]
        lines = [f"{self.name}({show(self.signature['inputs'])}) -> {show(self.signature['outputs'])}",
                 f"  level {self.level}, {len(weights)} weights"]
        for symbol in self.signature["symbols"]:
            if symbol["name"] and symbol.get("max") != symbol.get("min"):
                lines.append(f"  {symbol['min']} <= {symbol['name']} <= {symbol['max']}")
        return "\n".join(lines + ["  " + line for line in self._report_text.splitlines()])

    @property
    def report(self) -> Report:
        """How each attention was compiled, and why parts of the model were not fused. Notebooks show a table."""
        from attn._report import Report

        return Report(self)

    # Methods that need the model from which the kernel was compiled.

    def _need_source(self, method):
        if not self._source:
            raise error(f"{method}: expected a kernel from attn.compile, because one from attn.load has no model")
        return self._source

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the library `path`, which ends in .so, and beside it a C header, a manifest and the weights.

        C and C++ programs link or load the library; attn.load loads it in Python. Saving compiles the model again,
        because the names in the library and in its header come from the name of the file.
        """
        self._need_source("save").save(pathlib.Path(path))

    def check(self, *args: Any, tolerance: float | None = None, **kwargs: Any) -> float:
        """Compares a call with the result of the model, computed in float64 op by op, and returns the largest error.

        An error is relative to the largest value of its output. If an error is above `tolerance`, raises attn.Error,
        whose message names the first stage of the compiler after which the results differ, if one is found. By default,
        `tolerance` is 1e-2 for outputs of f16 and bf16, and otherwise 1e-5. The check is much slower than a call: it
        may take minutes for a large model.
        """
        return self._need_source("check").check(self, self._inputs(args, kwargs), tolerance)

    def bench(self, *args: Any, against: Sequence[str] = ("eager",), seconds: float = 1.0, **kwargs: Any) -> Table:
        """Times the kernel and the runtimes in `against`: "eager", "compile" (torch.compile) and "onnxruntime".

        The kernel and the runtimes take turns, with the same number of threads, for `seconds` and at least 20 calls
        each. Returns a table of the median times in milliseconds, and of the ratio of each time to the kernel's.
        """
        from attn import _bench

        return _bench.measure(self, self._need_source("bench"), args, kwargs, against, seconds)

    def as_module(self, layer: torch.nn.Module, *, copy: bool = False) -> torch.nn.Module:
        """Returns a module that calls the kernel in place of `layer`, from which the kernel was compiled.

        The kernel gets the present weights of the layer. With `copy`, calls convert arguments of another type, and those
        that are not contiguous. If a gradient is required or the layer is in training mode, the module calls the layer
        and warns once.
        """
        from attn import _module

        return _module.Compiled(self, layer, copy)


def refresh(model: torch.nn.Module) -> None:
    """Makes the kernels of torch.compile and as_module pack the weights of `model` again at their next call.

    It is needed only after changes that PyTorch does not notice: through `.data`, through an array of NumPy that shares
    memory with a weight, or by code in C.
    """
    from attn import _weights

    _weights.forget([*model.parameters(), *model.buffers()])


def load(path: str | os.PathLike[str], *, entry: str | None = None, level: str | None = None, device: Any = "cpu",
         num_threads: int | None = None, weights: Mapping[str, Any] | str | os.PathLike[str] | None = None) -> Kernel:
    """Loads the library `path` that attnc or Kernel.save wrote, and its weights. Needs no compiler and no PyTorch.

    Loading a library runs its code: load only libraries that you trust. `entry` names the function; the default is the
    first one. `level` names an ISA level or GPU of the library; the default is the best one that `device` supports.
    `weights` is a dictionary of arrays or the path of a safetensors file. By default, the weights come from the library
    or, if it contains none, from the safetensors file beside it.
    """
    if not os.path.exists(path):
        raise error(f"load: cannot read '{path}': no such file", "FILE")
    kernel = Kernel(os.path.abspath(path), entry=entry, level=level, device=device)
    kernel.num_threads = num_threads
    if isinstance(weights, dict):
        kernel.load_state_dict(weights)
    elif weights is not None:
        kernel._load_weights(weights)
    elif kernel.signature["weights"]:
        beside = pathlib.Path(path).with_suffix(".safetensors")
        try:
            kernel._use_embedded_weights()
        except _attn.Error:
            if not beside.exists():
                raise error(f"load: expected weights in the library or in '{beside}', found neither; pass weights=", "WEIGHTS"
                            ) from None
            kernel._load_weights(beside)
    return kernel
