"""attn.compile: compiles models to kernels."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from attn import _compiler
from attn._compiler import clear_cache
from attn._attn import Error
from attn._kernel import Convention, Kernel, error
from attn._source import FileSource, ModuleSource, TextSource, plain


def _dimensions(dynamic, convention):
    """Returns the dynamic_shapes of all arguments for torch.export."""
    import torch

    symbols = {}

    def convert(value):
        if isinstance(value, str):
            if not value.isidentifier():
                raise error(f"dynamic: expected names of sizes that are identifiers, got '{value}'", "NAME")
            return symbols.setdefault(value, torch.export.Dim(value))
        if isinstance(value, dict):
            return {key: convert(part) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(map(convert, value))
        return value

    names = list(convention.signature.bind(*convention.args, **convention.kwargs).arguments)
    for name in dynamic:
        if name not in names:
            raise error(f"dynamic: expected names of arguments ({', '.join(names)}), got '{name}'", "NAME")
    return {name: convert(dynamic.get(name)) for name in names}


def export(module, args, kwargs, dynamic):
    import torch

    training = [name or "the module" for name, part in module.named_modules() if part.training]
    if training:
        raise error(f"expected a module in evaluation mode, got {training[0]} in training mode; call module.eval() first")
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_meta:
            raise error(f"expected weights with elements, got '{name}' on the device meta", "DEVICE")
    convention = Convention(module.forward, args, kwargs)
    # torch.export takes arguments that are one tensor for one argument. A kernel takes contiguous arrays.
    example_args, example_kwargs = torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda tensor: tensor.detach().clone(memory_format=torch.contiguous_format),
        (convention.args, convention.kwargs))
    shapes = _dimensions(dynamic, convention) if dynamic else None
    try:
        with torch.no_grad():
            program = torch.export.export(module, example_args, example_kwargs, dynamic_shapes=shapes)
    except Exception as reason:
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
    torch = sys.modules["torch"]
    try:
        return "sm_90a" if torch.cuda.get_device_capability(device) == (9, 0) else "sm_80"
    except (RuntimeError, AssertionError) as reason:
        raise error(f"cannot use the device '{device}': {str(reason).splitlines()[0]}", "DEVICE") from None


def compile(model: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *,
            dynamic: Mapping[str, Any] | None = None, target: str | None = None, compute: str | None = None,
            schedule: str | None = None, require_fused: bool = False, device: Any = None, num_threads: int | None = None,
            cache: bool = True) -> Kernel:
    """Compiles `model` and returns an attn.Kernel.

    `model` is an nn.Module in evaluation mode with example arguments `args` and `kwargs`, which torch.export traces; or
    a torch.export.ExportedProgram; or the path of a file that ends in .pt2 or .mlir.

    `dynamic` names the sizes that may change from call to call, by argument and dimension, such as
    {"x": {0: "B", 1: "S"}}. Sizes with the same name are equal. All other sizes are those of the example.
    `target` is a list of ISA levels and GPUs, such as "x86-64-v3,sm_90a"; by default the CPU of this machine
    ("native"), and the GPU that holds the example.
    With compute="bf16", the factors of matrix products of f32 are rounded to bf16. `schedule` names one way of
    computing an attention, for all attentions of the model. With `require_fused`, an attention that is not fused is an
    error. `num_threads` sets k.num_threads.
    With cache=False, the model is compiled even if the cache has the library for this graph, target and compiler.
    """
    kwargs = kwargs or {}
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
            module = model
        else:
            raise error(f"compile: expected a module, an exported program or a path, got an object of type {type(model).__name__}")
        path = None
        if device is None:
            devices = {str(tensor.device) for tensor in program.state_dict.values()}
            devices |= {str(leaf.device) for leaf in torch.utils._pytree.tree_leaves(program.example_inputs)
                        if isinstance(leaf, torch.Tensor)}
            device = next((name for name in devices if name.startswith("cuda")), "cpu")
    options = _options(_target(target, device), compute, schedule, require_fused)
    source = FileSource(options, path) if path else ModuleSource(options, module, program)
    kernel = _build(source, device, num_threads, cache)
    if path:
        if kernel.signature["weights"]:
            kernel._load_weights(pathlib.Path(kernel.path).with_suffix(".safetensors"))
    else:
        kernel._convention = convention
        if convention and not convention.is_plain(len(kernel._names)):
            kernel._is_plain = False
        # An input that the module writes to is not a buffer.
        kernel._buffer_names = [name for name in kernel._buffer_names if name in program.graph_signature.buffers]
        weights = [argument["name"] for argument in kernel.signature["weights"]]
        source.set_roles(weights, kernel._buffer_names)
        kernel.buffers  # copies the module's buffers as they are now
        if weights:
            kernel._set_weights({name: plain(source.tensors()[name]) for name in weights})
    return kernel


def compile_text(text, name, *, target, device, num_threads):
    """Compiles a model that is MLIR text."""
    return _build(TextSource(_options(_target(target, device)), text, name), device, num_threads)


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
                raise error(str(reason).removeprefix(f"{file}: "), reason.status) from None  # the user does not know the file
            if source.tensors():
                (folder / "layer.safetensors").unlink(missing_ok=True)  # the tensors are in memory

        key = [*source.key(file), source.options, _compiler.identity(),
               _compiler.cpu() if "native" in source.options[0] else "", "" if cache else uuid.uuid4().hex]
        place = _compiler.cached(key, fill)
        try:
            kernel = Kernel(place / "layer.so", device=device)
        except Error as reason:  # a damaged entry of the cache
            if reason.status != "LIBRARY":
                raise
            shutil.rmtree(place, ignore_errors=True)
            place = _compiler.cached(key, fill)
            kernel = Kernel(place / "layer.so", device=device)
    kernel.num_threads = num_threads
    kernel._source = source
    kernel._report_json = json.loads((place / "report.json").read_text())
    return kernel
