"""The model that a kernel was compiled from: a file, MLIR text, or a PyTorch module."""

import copy
import hashlib
import json
import pathlib
import re
import sys
import tempfile
import zipfile

from attn import _compiler
from attn._attn import Error
from attn._kernel import error


def _write_safetensors(path, tensors):
    """Writes a safetensors file: the 8-byte length of the header, a header in JSON, and the data."""
    import numpy

    header, place, parts = {}, 0, []
    for name, tensor in tensors.items():
        dtype = str(tensor.dtype).removeprefix("torch.")
        if hasattr(tensor, "detach"):
            torch = sys.modules["torch"]
            tensor = plain(tensor)
            shape, data = list(tensor.shape), tensor.flatten().view(torch.uint8).numpy() if tensor.numel() else b""
        else:
            shape, data = list(tensor.shape), numpy.ascontiguousarray(tensor).reshape(-1).view("uint8")
        short = {"bool": "BOOL", "bfloat16": "BF16"}.get(dtype) or dtype.replace("float", "F").replace("uint", "U").replace("int", "I")
        header[name] = {"dtype": short, "shape": shape, "data_offsets": [place, place + len(data)]}
        parts.append(data)
        place += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for part in parts:
            file.write(part)


class Source:
    """The model of a kernel, and the options with which the model was compiled."""

    def __init__(self, options, name):
        self.options = options
        self.name = name

    # Subclasses define three methods. model_file(folder) returns the path of a file with the model and its current
    # weights. key(file) returns everything on which the code compiled from this file depends, except the options. The
    # third method is remember, below.

    def tensors(self):
        """The parameters, buffers and constants of a module by name; empty for a file."""
        return {}

    def complete(self, tensors, wanted):
        """Returns the weights named in `wanted`, taken from `tensors`, a state_dict."""
        return tensors

    def copy(self):
        """Returns a copy for another kernel, which may have other weights."""
        return copy.copy(self)

    def remember(self, tensors):
        """Records `tensors` as the current weights of the kernel."""
        raise NotImplementedError

    def new_weights(self):
        """The weights that replace those in the file of the model, or None."""
        return None

    def save(self, path):
        if path.suffix != ".so":
            raise error(f"save: expected a path that ends in .so, got '{path}'")
        with tempfile.TemporaryDirectory() as folder:
            model = self.model_file(pathlib.Path(folder))
            _compiler.run("attnc", [model, "-o", path, *self.options], f"attn: compiling {path}")
        if self.new_weights() is not None:
            _write_safetensors(path.with_suffix(".safetensors"), self.new_weights())

    def check(self, kernel, inputs, tolerance):
        import numpy

        kernel.workspace_size(tuple(inputs))  # raises the errors of a call
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            options = [self.model_file(folder), *self.options, *([] if tolerance is None else [f"--tolerance={tolerance}"])]
            if kernel.device != "cpu":
                options.append(f"--device={kernel.device}")
            if self.new_weights() is not None:
                _write_safetensors(folder / "weights.safetensors", self.new_weights())
                options.append(f"--weights={folder}/weights.safetensors")
            for i, array in enumerate(inputs):
                numpy.save(folder / f"in{i}.npy", _to_numpy(array))
                options.append(f"--input={folder}/in{i}.npy")
            try:
                text = _compiler.run("attn-run", [*options, "--reference", f"--output-dir={folder}"],
                                     f"attn: checking {self.name}")
            except Error as reason:
                try:
                    _compiler.run("attn-run", [*options, "--first-difference"], "attn: looking for the first difference")
                except Error as first:
                    raise error(f"{reason}\n{first}", "VALUE") from None
                raise
            # attn-run compiled the model again with the same options, so the kernel must compute the same bits.
            results = kernel.run(tuple(array.clone() if hasattr(array, "clone") else numpy.copy(array) for array in inputs))
            for i, result in enumerate(results):
                if _to_numpy(result).tobytes() != numpy.load(folder / f"{i}.npy").tobytes():
                    raise error(f"check: output {i} of the kernel differs from the one that attn-run computes with the same "
                                "model and options", "VALUE")
        errors = [(float(error), float(largest)) for error, largest in re.findall(r"error (\S+), largest value (\S+)", text)]
        return max((error / largest if largest else error for error, largest in errors), default=0.0)

    def picture(self, kernel, sizes):
        from attn._plot import Picture

        symbols = {symbol.replace(".", "_"): symbol for symbol in kernel._symbols if symbol}
        if symbols.keys() != sizes.keys():
            example = f"picture({', '.join(f'{name}=64' for name in symbols)})"
            got = "got " + (", ".join(sizes) or "none")
            raise error(f"picture: expected the sizes that are not fixed, as in {example}, {got}" if symbols
                        else f"picture: expected no sizes, because all are fixed, {got}", "NAME")
        for name, size in sizes.items():
            if not isinstance(size, int) or size < 1:
                raise error(f"picture: expected {name} of at least 1, got {size!r}")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            # With -o layer.mlir, attnc writes text, which takes less time than a library.
            arguments = [self.model_file(folder), "-o", folder / "layer.mlir", *self.options,
                         *[f"--dim={symbols[name]}={size}" for name, size in sizes.items()]]
            _compiler.run("attnc", [*arguments, f"--explain-mask={folder}/mask.svg"], "attn: drawing")
            text = _compiler.run("attnc", [*arguments, "--explain-mask"])
            return Picture((folder / "mask.svg").read_text(), text.strip())


def _to_numpy(array):
    import numpy

    if hasattr(array, "detach"):
        torch = sys.modules["torch"]
        array = plain(array)
        return array.view(torch.int16).numpy().view("uint16") if array.dtype == torch.bfloat16 else array.numpy()
    return numpy.asarray(array)


class FileSource(Source):
    def __init__(self, options, path):
        super().__init__(options, path.stem)
        self.path = path
        self.loaded = None  # the weights of the last load_state_dict

    def remember(self, tensors):
        self.loaded = dict(tensors)

    def new_weights(self):
        return self.loaded

    def key(self, file):
        return [file.suffix, file.read_bytes()]

    def model_file(self, folder):
        return self.path


class TextSource(FileSource):
    """A model that is MLIR text, such as attn.attention generates."""

    def __init__(self, options, text, name):
        super().__init__(options, pathlib.Path(f"{name}.mlir"))
        self.text = text

    def model_file(self, folder):
        (folder / self.path).write_text(self.text)
        return folder / self.path


class ModuleSource(Source):
    """An exported module, with the tensors of the module itself.

    `versions` has the version counter of each tensor. It shows whether the tensor was changed in place.
    """

    def __init__(self, options, module, program):
        super().__init__(options, type(program.graph_module if module is None else module).__name__)
        self.module, self.program = module, program
        self.persistent = set(program.state_dict if module is None else module.state_dict())
        self.known = {}
        self.changed_by_calls = set()  # the names of the buffers that calls change
        self.tied = {}  # the names of tensors that are one tensor: one name, and the others
        self.in_code = {}  # digests of the buffers and constants whose values may be part of the code
        self.remember({name: tensor for name, tensor in {**program.state_dict, **program.constants}.items()
                       if hasattr(tensor, "shape")})
        first = {}
        for name, tensor in self.known.items():
            place = tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride())
            if tensor.numel() and first.setdefault(place, name) != name:
                self.tied.setdefault(first[place], []).append(name)

    def tensors(self):
        return self.known

    def copy(self):
        other = super().copy()
        other.known, other.versions = dict(self.known), dict(self.versions)
        return other

    def set_roles(self, weights, changed_by_calls):
        """Records the names of the weights and of the buffers that calls change.

        The code may contain the values of all other buffers and constants.
        """
        self.changed_by_calls = set(changed_by_calls)
        parameters = set(self.program.graph_signature.parameters)
        self.in_code = {name: _digest(tensor) for name, tensor in self.known.items()
                        if name not in parameters and name not in weights and name not in changed_by_calls}

    def remember(self, tensors):
        self.known.update(tensors)
        self.versions = {name: version(tensor) for name, tensor in self.known.items()}

    def complete(self, tensors, wanted):
        """Returns the weights `wanted`. Raises an error if `tensors` changes a buffer that is part of the code."""
        for name, tensor in tensors.items():
            if name not in self.known:
                raise error(f"load_state_dict: expected the names of this model's weights, got '{name}'", "NAME")
            if name in self.in_code and _digest(sys.modules["torch"].as_tensor(tensor)) != self.in_code[name]:
                raise error(f"load_state_dict: expected the buffer '{name}' as it was at compile time, because it is part of the"
                            " code; compile again for other values", "WEIGHTS")
        for first, others in self.tied.items():
            for other in others:
                one, two = (tensors.get(name, self.known[name]) for name in (first, other))
                if not _is_one(one, two):
                    raise error(f"expected '{first}' and '{other}' to be one tensor, as at compile time, got two", "WEIGHTS")
        # A state_dict contains no constants, and only persistent buffers.
        kept = {name: tensor for name, tensor in self.known.items() if name not in tensors and name not in self.persistent}
        given = {**kept, **tensors}
        return {name: plain(given[name]) for name in wanted if name in given}

    def model_file(self, folder):
        import torch

        if any(version(tensor) != self.versions[name] for name, tensor in self.known.items()
               if name not in self.changed_by_calls):
            raise error("expected weights that were not changed in place since attn packed them; call "
                        "k.load_state_dict(module.state_dict()) first", "WEIGHTS")
        for name, tensor in self.known.items():
            tensor = torch.as_tensor(tensor).detach().resolve_conj().resolve_neg()  # the file would lack these bits
            if isinstance(self.program.state_dict.get(name), torch.nn.Parameter):
                tensor = torch.nn.Parameter(tensor, requires_grad=False)
            (self.program.state_dict if name in self.program.state_dict else self.program.constants)[name] = tensor
        try:
            torch.export.save(self.program, folder / "model.pt2")
        except Exception as reason:
            raise error(f"torch.export cannot save {self.name}: {reason}", "COMPILE") from reason
        return folder / "model.pt2"

    def key(self, file):
        """Returns the graph, the type, shape and strides of each tensor, and the values of buffers and constants.

        The values of some buffers and constants are compiled into the code. The values of parameters are not, so they
        are not part of the key.
        """
        import torch

        parts = [torch.__version__]
        with zipfile.ZipFile(file) as archive:
            parts += [archive.read(name) for name in archive.namelist() if name.endswith("models/model.json")]
        parameters = set(self.program.graph_signature.parameters)
        for name, tensor in sorted(self.known.items()):
            parts.append((name, str(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride())))
            if name not in parameters:
                parts.append(_bytes(tensor))
        return parts


def _bytes(tensor):
    return plain(tensor).flatten().view(sys.modules["torch"].uint8).numpy().tobytes() if tensor.numel() else b""


def _digest(tensor):
    return str(tensor.dtype), tuple(tensor.shape), hashlib.sha256(_bytes(tensor)).digest()


def _is_one(one, two):
    """Whether both tensors share their memory, or have equal elements."""
    torch = sys.modules["torch"]
    one, two = torch.as_tensor(one), torch.as_tensor(two)
    return one.shape == two.shape and (one.data_ptr() == two.data_ptr() and one.stride() == two.stride() or torch.equal(one, two))


def version(tensor):
    """The number of in-place changes of a tensor; 0 for arrays and inference tensors, which do not count changes."""
    return 0 if not hasattr(tensor, "is_inference") or tensor.is_inference() else tensor._version


def plain(tensor):
    """Returns a tensor on the CPU whose memory has its elements in order: without the conjugate and the negative bit."""
    return tensor.detach().cpu().contiguous().resolve_conj().resolve_neg() if hasattr(tensor, "detach") else tensor


