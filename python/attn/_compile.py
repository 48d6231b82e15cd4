"""attn.compile: compiles models to kernels."""

from __future__ import annotations

import json
import os
import pathlib
import re
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from attn import _compiler
from attn._compiler import clear_cache
from attn._attn import Error
from attn._kernel import Convention, Kernel, describe, error, why_no_array
from attn._source import FileSource, ModuleSource, TextSource, plain


def _dimensions(dynamic, convention):
    """Returns the dynamic_shapes of all arguments for torch.export."""
    import torch

    arguments = convention.signature.bind(*convention.args, **convention.kwargs).arguments
    if not isinstance(dynamic, Mapping):
        raise error(f"dynamic: expected a dictionary with the sizes that may change, such as {{'{next(iter(arguments), 'x')}': "
                    f"{{0: 'B'}}}}, got {dynamic!r}")
    for name in dynamic:
        if name not in arguments:
            raise error(f"dynamic: expected names of arguments ({', '.join(arguments)}), got '{name}'", "NAME")
    ranges = {}  # the least and the greatest size of each name that has a range

    def is_range(value):
        return isinstance(value, tuple) and len(value) > 0 and isinstance(value[0], str)

    def find_ranges(value):
        for key, part in value.items() if isinstance(value, Mapping) else enumerate(value if type(value) in (list, tuple) else ()):
            if isinstance(value, Mapping) and isinstance(key, int) and is_range(part):
                name, least, most = part if len(part) == 3 else (part[0], None, None)
                if not (type(least) is type(most) is int and 0 <= least <= most and most >= 2):
                    raise error(f"dynamic: expected a name and the least and greatest size, such as ('{name}', 2, 256), got {part}")
                if ranges.setdefault(name, (least, most)) != (least, most):
                    raise error(f"dynamic: expected one range of '{name}', got {ranges[name]} and {(least, most)}")
            else:
                find_ranges(part)

    symbols = {}

    def symbol(name):
        if not name.isidentifier():
            raise error(f"dynamic: expected names of sizes that are identifiers, got '{name}'", "NAME")
        if name not in symbols:
            least, most = ranges.get(name, (None, None))
            symbols[name] = torch.export.Dim(name, min=least, max=most)
        return symbols[name]

    def convert(value, given, name):
        if isinstance(value, Mapping) and isinstance(given, torch.Tensor):
            dimensions = {}
            for axis, size in value.items():
                if not isinstance(axis, int) or not -given.ndim <= axis < given.ndim:
                    raise error(f"dynamic: expected dimensions of the argument '{name}' from 0 to {given.ndim - 1}, because its "
                                f"rank is {given.ndim}, got {axis!r}", "RANK")
                size = size[0] if is_range(size) else size
                least, most = ranges.get(size if isinstance(size, str) else None, (0, given.shape[axis]))
                if not least <= given.shape[axis] <= most:
                    raise error(f"dynamic: expected '{size}' from {least} to {most}, got {given.shape[axis]} in dimension {axis} "
                                f"of the argument '{name}'", "SHAPE")
                if isinstance(size, str) and given.shape[axis] < 2:
                    raise error(f"dynamic: expected an example with at least 2 as '{size}', because torch.export takes 0 and 1 for fixed "
                                f"sizes, got {given.shape[axis]} in dimension {axis} of the argument '{name}'", "SHAPE")
                dimensions[axis % given.ndim] = symbol(size) if isinstance(size, str) else size
            return dimensions
        if isinstance(value, str):
            return symbol(value)
        if isinstance(value, Mapping):
            parts = given if isinstance(given, Mapping) else {}
            return {key: convert(part, parts.get(key), f"{name}[{key!r}]") for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            parts = given if isinstance(given, (list, tuple)) and len(given) == len(value) else [None] * len(value)
            return type(value)(convert(part, of, f"{name}[{i}]") for i, (part, of) in enumerate(zip(value, parts)))
        return value

    find_ranges(dynamic)
    return {name: convert(dynamic.get(name), given, name) for name, given in arguments.items()}


def _allowed_ranges(message):
    """The ranges for `dynamic` that follow from an error message of torch.export, as text; empty if there are none."""
    found = []
    for name, least, most in re.findall(r"^  (\w+) = Dim\('\w+'(?:, min=(\d+))?(?:, max=(\d+))?\)$", message, re.M):
        found.append([name, int(least or 2), int(most or 1 << 20)])
    for name, most in re.findall(r"of (\w+) = \S+ in the specified range (?:\d+ <= )?\w+ <= (\d+) satisfy", message):
        if name not in [other for other, *_ in found]:
            found.append([name, 2, int(most)])
    for one in found:
        # torch.export may assume, for example for a slice, that a size is not the greatest allowed one. The range then
        # leaves out the greatest size.
        if re.search(rf"of {one[0]} = .* generated guard .* != {one[2]}\.", message):
            one[2] -= 1
    return ", ".join(f"('{name}', {least}, {most})" for name, least, most in found)


def _refuse_dropout(program):
    """Raises an error if the program has a dropout that is on although the module is in evaluation mode."""
    for node in program.graph.nodes:
        if "dropout" in str(node.target) and len(node.args) == 3 and node.args[2] is True:
            lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
            place = f"{pathlib.Path(lines[-1][0]).name}:{lines[-1][1]}: " if lines else ""
            raise error(f"{place}expected a dropout that is off in evaluation mode, got one that is always on; F.dropout needs "
                        "training=self.training", "COMPILE")


def export(module, args, kwargs, dynamic, strided=False):
    """Exports `module` for compile_program. Returns the program and how to call it.

    A kernel takes contiguous arrays, so the program is that for contiguous arguments. With `strided`, it is that for
    arguments with the strides of the examples, which decide, for example, whether flatten copies.
    """
    import torch

    if isinstance(module, torch.jit.ScriptModule):
        raise error("compile: expected a module of Python, got one of torch.jit; compile the module from which it was made")
    training = [name or "the module" for name, part in module.named_modules() if part.training]
    if training:
        raise error(f"expected a module in evaluation mode, got {training[0]} in training mode; call module.eval() first")
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_meta:
            raise error(f"expected weights with elements, got '{name}' on the device meta", "DEVICE")
    if any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
        raise error("compile: expected torch.autocast to be off, because a kernel computes in the types of the module; convert the "
                    "module, for example with module.bfloat16(), or use compute=\"bf16\"")
    convention = Convention(module.forward, args, kwargs)
    for name, tensor in convention.arrays():
        if why := why_no_array(tensor):
            raise error(f"compile: expected the example argument '{name}' in memory, got {why}", "DEVICE")
    # Copy the examples, because torch.export merges arguments that are the same tensor.
    memory_format = torch.preserve_format if strided else torch.contiguous_format
    example_args, example_kwargs = torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda tensor: tensor.detach().clone(memory_format=memory_format), (convention.args, convention.kwargs))
    shapes = _dimensions(dynamic, convention) if dynamic else None
    try:
        with torch.no_grad():
            program = torch.export.export(module, example_args, example_kwargs, dynamic_shapes=shapes)
    except Exception as reason:
        allowed = _allowed_ranges(str(reason))
        if dynamic and allowed:
            raise error(f"torch.export cannot export {type(module).__name__} for all sizes; write the sizes that it supports in "
                        f"`dynamic`, as {allowed} in place of the name", "COMPILE") from reason
        raise error(f"torch.export cannot export {type(module).__name__}: {reason}", "COMPILE") from reason
    convention.set_results(program)
    return program, convention


def _options(target, compute=None, schedule=None, require_fused=False):
    options = [f"--target={target}"]
    if compute:
        options.append(f"--compute={compute}")
    if schedule:
        options.append(f"--schedule={schedule}")
    if require_fused:
        options.append("--require-fused")
    return options


def _cuda_level(device):
    try:
        import torch
    except ImportError:
        raise error(f"compile: expected PyTorch, to find the GPU of the device '{device}'; install it, or pass a target such as "
                    "'native,sm_90a'", "DEVICE") from None
    try:
        return "sm_90a" if torch.cuda.get_device_capability(device) == (9, 0) else "sm_80"
    except (RuntimeError, AssertionError) as reason:
        raise error(f"cannot use the device '{device}': {str(reason).splitlines()[0]}", "DEVICE") from None


def compile(model: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
            dynamic: Mapping[str, Any] | None = None, target: str | None = None, compute: str | None = None,
            schedule: str | None = None, require_fused: bool = False, device: Any = None, num_threads: int | None = None,
            cache: bool = True) -> Kernel:
    """Compiles `model` and returns an attn.Kernel.

    `model` is an nn.Module in evaluation mode, which torch.export traces with the example arguments `args` and
    `kwargs`; or a torch.export.ExportedProgram; or the path of a .pt2 or .mlir file.

    `dynamic` names the sizes that may change from call to call, by argument and dimension, such as
    {"x": {0: "B", 1: "S"}}. Sizes with the same name must be equal. A tuple such as ("S", 2, 256) in place of a name
    also gives the least and the greatest size; a torch.export.Dim is allowed too. All other sizes are those of the
    example.
    `target` is a list of ISA levels and GPUs, such as "x86-64-v3,sm_90a". The default is the CPU of this machine
    ("native") and, if `device` is a GPU, this GPU. `device` is the device of calls, such as "cuda:1"; the default is
    the GPU of the weights or of the example arguments, if they are on one, and otherwise the CPU.
    With compute="bf16", the factors of matrix products of f32 are rounded to bf16. `schedule` selects a schedule
    (docs/rationale.md), such as "phased", for all attentions of the model. With `require_fused`, an attention that is
    not fused is an error. `num_threads` sets the attribute num_threads of the kernel.
    With cache=False, the model is compiled even if the cache has the library for this graph, target and compiler.
    """
    kwargs = {} if kwargs is None else kwargs
    if not isinstance(args, (tuple, list)):
        raise error(f"compile: expected a tuple of example arguments, such as (x,), got {describe(args)}")
    if not isinstance(kwargs, Mapping):
        raise error(f"compile: expected a dictionary of example keyword arguments, got {describe(kwargs)}")
    if dynamic and not (sys.modules.get("torch") and isinstance(model, sys.modules["torch"].nn.Module)):
        raise error("compile: expected `dynamic` with a module only; an exported program or a file has its own dynamic "
                    "sizes")
    if isinstance(model, (str, os.PathLike)):
        path = pathlib.Path(model)
        if path.suffix == ".onnx":
            raise error("compile: expected a file that ends in .pt2 or .mlir, got .onnx, which attn does not read yet", "FILE")
        if path.suffix not in (".pt2", ".mlir"):
            raise error(f"compile: expected a file that ends in .pt2 or .mlir, got '{path}'", "FILE")
        if not path.exists():
            raise error(f"compile: cannot read '{path}': no such file", "FILE")
        device = device or "cpu"
    else:
        torch = sys.modules.get("torch")
        if torch and isinstance(model, torch.export.ExportedProgram):
            module, program, convention = None, model, None
            tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(program.example_inputs) if isinstance(leaf, torch.Tensor)]
            if len(set(map(id, tensors))) < len(tensors):
                raise error("compile: expected a program that was exported with a different tensor for each argument, got one "
                            "tensor for several, which torch.export takes for one argument; export again with copies "
                            "(x.clone())")
        elif torch and isinstance(model, torch.nn.Module):
            program, convention = export(model, tuple(args), kwargs, dynamic)
            _refuse_dropout(program)
            module = model
        else:
            raise error(f"compile: expected a module, an exported program or a path, got an object of type {type(model).__name__}")
        return compile_program(module, program, convention, target=target, compute=compute, schedule=schedule,
                               require_fused=require_fused, device=device, num_threads=num_threads, cache=cache)
    options = _options(_target(target, device), compute, schedule, require_fused)
    kernel = _build(FileSource(options, path), device, num_threads, cache)
    if kernel.signature["weights"]:
        kernel._load_weights(pathlib.Path(kernel.path).with_suffix(".safetensors"))
    return kernel


def compile_program(module, program, convention, *, target=None, compute=None, schedule=None, require_fused=False, device=None,
                    num_threads=None, cache=True):
    """Compiles an exported program. `module` and `convention` are those of export(), or None."""
    import torch

    if device is None:
        devices = {str(tensor.device) for tensor in program.state_dict.values()}
        devices |= {str(leaf.device) for leaf in torch.utils._pytree.tree_leaves(program.example_inputs)
                    if isinstance(leaf, torch.Tensor)}
        device = next((name for name in devices if name.startswith("cuda")), "cpu")
    options = _options(_target(target, device), compute, schedule, require_fused)
    source = ModuleSource(options, module, program)
    kernel = _build(source, device, num_threads, cache)
    kernel._convention = convention
    if convention and not convention.is_plain(len(kernel._names)):
        kernel._is_plain = False
    # An input that the module writes to is not a buffer.
    kernel._buffer_names = [name for name in kernel._buffer_names if name in program.graph_signature.buffers]
    weights = [argument["name"] for argument in kernel.signature["weights"]]
    source.set_roles(weights, kernel._buffer_names)
    kernel.buffers  # copies the present values of the module's buffers
    if weights:
        kernel._set_weights({name: plain(source.tensors()[name]) for name in weights})
    return kernel


def compile_text(text, name, *, target, device, num_threads, compute=None, schedule=None):
    """Compiles a model from MLIR text."""
    return _build(TextSource(_options(_target(target, device), compute, schedule), text, name), device, num_threads)


def _target(target, device):
    if target is not None:
        return target
    return "native" + ("," + _cuda_level(device) if str(device).startswith("cuda") else "")


def _build(source, device, num_threads, cache=True):
    """Compiles `source`, or finds its library in the cache, and returns the kernel, without weights."""
    with tempfile.TemporaryDirectory() as temporary:
        file = source.model_file(pathlib.Path(temporary))

        def fill(folder):
            try:
                _compiler.run("attnc", [file, "-o", folder / "layer.so", f"--opt-report={folder}/report.json", *source.options],
                              f"attn: compiling {source.name}")
            except Error as reason:
                if not file.is_relative_to(temporary):
                    raise
                raise error(str(reason).removeprefix(f"{file}: "), reason.status) from None  # the file is temporary
            if source.tensors():
                (folder / "layer.safetensors").unlink(missing_ok=True)  # the kernel packs the module's tensors

        key = [*source.key(file), source.options, _compiler.identity(),
               _compiler.cpu() if "native" in source.options[0] else "", "" if cache else uuid.uuid4().hex]
        place = _compiler.cached(key, fill)
        kernel = Kernel(place / "layer.so", device=device)
    kernel.num_threads = num_threads
    kernel._source = source
    kernel._report_json = json.loads((place / "report.json").read_text())
    return kernel
