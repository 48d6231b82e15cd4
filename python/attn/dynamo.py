"""The backend attn of torch.compile: torch.compile(model, backend="attn").

A graph of torch.compile becomes one kernel if attn supports all of its ops and fuses an attention in it. If attn does
not support some ops, the parts with attention that attn supports become kernels. PyTorch's default backend compiles
everything else. `attn.dynamo.reports` says how each graph was compiled, and why.
"""

from __future__ import annotations

import copy
import functools
import logging
import operator

import torch
import torch.nn.functional as F
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

import attn
from attn import _compiler
from attn._compile import compile as compile_module
from attn._compile import compile_text, export
from attn._kernel import error
from attn._source import version

log = logging.getLogger("attn")

#: Lines of text, the latest last. The line for a graph of torch.compile says which parts attn compiled, and why it left
#: the others to PyTorch. The line for a call that a kernel could not compute gives the reason.
reports: list[str] = []


def _report(text):
    reports.append(text)
    log.info(text)


def _first_line(reason):
    return str(reason).splitlines()[0]


def _default(graph, inputs):
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(graph, inputs)


def _size_source(size, tensors):
    """Returns the number of an input and the dimension of this input that has the symbolic size, or None."""
    for i, tensor in tensors:
        for axis, other in enumerate(tensor.shape):
            if isinstance(other, torch.SymInt) and other.node.expr == size.node.expr:
                return i, axis
    return None


class NoAttention(attn.Error):
    """A graph has no attention that attn fuses, so it is left to PyTorch."""


def _encoder_layer(x, width, heads, qkv_weight, qkv_bias, out_weight, out_bias, use_gelu, norm_first, eps, norm_weight1, norm_bias1,
                   norm_weight2, norm_bias2, weight1, bias1, weight2, bias2, mask=None, mask_type=None):
    """Computes the op of nn.TransformerEncoderLayer in inference mode with ops that attn imports.

    An element of `mask` that is not 0 hides pairs. The shape of `mask` is (queries, keys) if mask_type is 0, (batch,
    keys) if mask_type is 1, and (batch, heads, queries, keys) if mask_type is 2.
    """
    kept = None if mask is None else mask == 0
    if mask_type == 1:
        kept = kept[:, None, None, :]

    def attend(x):
        q, k, v = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, heads, width // heads)).permute(2, 0, 3, 1, 4)
        return F.linear(F.scaled_dot_product_attention(q, k, v, kept).transpose(1, 2).flatten(2), out_weight, out_bias)

    def feed(x):
        return F.linear((F.gelu if use_gelu else F.relu)(F.linear(x, weight1, bias1)), weight2, bias2)

    def norm1(x):
        return F.layer_norm(x, (width,), norm_weight1, norm_bias1, eps)

    def norm2(x):
        return F.layer_norm(x, (width,), norm_weight2, norm_bias2, eps)

    if norm_first:
        x = x + attend(norm1(x))
        return x + feed(norm2(x))
    x = norm1(x + attend(x))
    return norm2(x + feed(x))


#: For each op that attn does not import but can decompose, a function that computes it with ops that attn imports.
decompositions = {torch._transformer_encoder_layer_fwd: _encoder_layer,
                  torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer}


class Decomposed(torch.fx.Interpreter):
    """Runs a graph, with the functions of `decompositions` in place of the ops that they compute."""

    def call_function(self, target, args, kwargs):
        return super().call_function(decompositions.get(target, target), args, kwargs)


class Lifted(torch.nn.Module):
    """A module that runs a graph of torch.compile.

    The weights among the graph's inputs are buffers of the module; the other tensors are inputs of the module. Symbolic
    sizes are read from the shapes of these tensors.
    """

    def __init__(self, graph, values, is_weight):
        super().__init__()
        self.graph = graph
        # Where each input of the graph comes from: ("weight", name), ("input", number), ("size", input, axis) or
        # ("constant", value).
        self.places = []
        tensors = [(i, value) for i, value in enumerate(values) if isinstance(value, torch.Tensor) and not is_weight[i]]
        numbers = {i: number for number, (i, _) in enumerate(tensors)}
        self.kept = [i for i, _ in tensors]  # the inputs of the graph that are inputs of the module
        for i, value in enumerate(values):
            if isinstance(value, torch.SymInt):
                source = _size_source(value, tensors)
                if source is None:
                    raise attn.Error(f"an input is the size {value}, which is not a dimension of any input tensor")
                self.places.append(("size", numbers[source[0]], source[1]))
            elif not isinstance(value, torch.Tensor):
                self.places.append(("constant", value))
            elif is_weight[i]:
                self.places.append(("weight", f"weight{i}"))
            else:
                self.places.append(("input", numbers[i]))
        self.dynamic = tuple({axis: torch.export.Dim.AUTO for axis, size in enumerate(tensor.shape)
                              if isinstance(size, torch.SymInt)} for _, tensor in tensors)

    def set_weights(self, values):
        for (kind, *rest), value in zip(self.places, values):
            if kind == "weight":
                self.register_buffer(rest[0], value.detach())

    def forward(self, *inputs):
        values = []
        for kind, *rest in self.places:
            if kind == "weight":
                values.append(getattr(self, rest[0]))
            elif kind == "input":
                values.append(inputs[rest[0]])
            elif kind == "size":
                values.append(inputs[rest[0]].shape[rest[1]])
            else:
                values.append(rest[0])
        if isinstance(self.graph, torch.fx.GraphModule):
            with torch.fx.traceback.preserve_node_meta():  # the lines of the model, for reports
                return Decomposed(self.graph).run(*values)
        return self.graph(*values)


class Graph:
    """A graph that is compiled to a kernel.

    A call takes the inputs of the graph, including the weights. If the kernel does not support the sizes of these
    inputs, or if a buffer that is part of the code has changed, the call runs `graph` in PyTorch.
    """

    def __init__(self, graph, fakes, values, is_weight, options):
        """`fakes` are the inputs with symbolic sizes. `values` are example inputs and the real weights."""
        module = Lifted(graph, fakes, is_weight).eval()
        module.set_weights(values)
        # Use copies as examples: torch.export marks its examples, and guards of torch.compile would depend on these
        # marks.
        examples = tuple(values[i].detach().clone() for i in module.kept)
        dynamic = {"inputs": module.dynamic} if any(module.dynamic) else None
        with torch._guards.tracing(None):  # so that assumptions of torch.export do not become guards of the graph
            self.kernel = compile_module(module, examples, dynamic=dynamic, **options)
        found = self.kernel.report.json
        if not found["fused"] and not (found["unfused"] and options.get("schedule") == "unfused"):
            raise NoAttention("it has no attention that attn fuses")
        self.graph, self.places, self.kept = graph, module.places, module.kept
        self.weights = [i for i, (kind, *_) in enumerate(module.places) if kind == "weight"]
        self.packed = self._versions(values)

    def _versions(self, values):
        return [(values[i].data_ptr(), version(values[i])) for i in self.weights]

    def __call__(self, *values):
        values = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
        versions = self._versions(values)
        try:
            if versions != self.packed:
                self.kernel.load_state_dict({f"weight{i}": values[i] for i in self.weights})
                self.packed = versions
            return self.kernel(*[values[i].contiguous() for i in self.kept])
        except attn.Error as reason:
            if reason.status not in ("SHAPE", "WEIGHTS"):
                raise
            _report(f"left to PyTorch, for this call: {reason}")
            return self.graph(*values)


# Parts of graphs.

_known = {}  # the parts by number, for the op attn::part


class Part:
    """A part of a graph, compiled to a kernel.

    The op attn::part takes the input tensors of the part. The part's other inputs are sizes of these tensors or
    constants.
    """

    def __init__(self, graph, is_tensor):
        self.compiled = graph
        self.tensors = [i for i, tensor in enumerate(is_tensor) if tensor]

    def values(self, tensors):
        values = [None] * len(self.compiled.places)
        for i, tensor in zip(self.tensors, tensors):
            values[i] = tensor
        for i, (kind, *rest) in enumerate(self.compiled.places):
            if kind == "size":
                values[i] = values[self.compiled.kept[rest[0]]].shape[rest[1]]
            elif kind == "constant":
                values[i] = rest[0]
        return values


def _as_list(results):
    return list(results) if isinstance(results, (list, tuple)) else [results]


@torch.library.custom_op("attn::part", mutates_args=())
def _part(number: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    part = _known[number]
    return _as_list(part.compiled(*part.values(tensors)))


@_part.register_fake
def _(number, tensors):
    part = _known[number]
    # The results of kernels are contiguous.
    return [torch.empty(result.shape, dtype=result.dtype, device=result.device)
            for result in _as_list(part.compiled.graph(*part.values(tensors)))]


@functools.cache
def _known_ops():
    """The overloads of ops that attn imports, such as "add.Tensor"."""
    lines = _compiler.run("attn-import", ["--ops"]).splitlines()
    return {line.split("`")[1] for line in lines if line.startswith("| `")}


class Known(OperatorSupportBase):
    """Says which nodes of a graph attn imports. Exporting the graph shows which ops a node consists of."""

    def __init__(self, graph, fakes, values, is_weight):
        module = Lifted(graph, fakes, is_weight).eval()
        module.set_weights(values)
        examples = tuple(values[i].detach().clone() for i in module.kept)
        with torch._guards.tracing(None):
            program, _ = export(module, examples, {}, {"inputs": module.dynamic} if any(module.dynamic) else None)
        self.unknown, self.seen = {}, set()
        for node in program.graph.nodes:
            if node.op != "call_function" or not node.meta.get("from_node"):
                continue
            name = str(node.target)
            origins = set()
            sources = list(node.meta["from_node"])
            while sources:
                source = sources.pop()
                origins.add(source.name)
                sources += source.from_node or []
            self.seen |= origins
            if name.startswith("aten.") and name.removeprefix("aten.") not in _known_ops():
                self.unknown.update(dict.fromkeys(origins, name))

    def is_node_supported(self, modules, node):
        # Kernels of parts take no complex tensors, and return only real tensors.
        values = [part.meta.get("example_value") for part in [node, *node.all_input_nodes]]
        return (node.op in ("call_function", "call_method") and isinstance(values[0], torch.Tensor)
                and not any(isinstance(value, torch.Tensor) and value.is_complex() for value in values)
                and node.name in self.seen and node.name not in self.unknown)


def _example(fake):
    """Returns zeros with the sizes that `fake` had when the graph was traced; for a symbolic size, that size."""
    def hint(size):
        return size.node.hint if isinstance(size, torch.SymInt) else size

    if not isinstance(fake, torch.Tensor):
        return hint(fake)
    return torch.zeros([hint(size) for size in fake.shape], dtype=fake.dtype, device=fake.device)


def _split(graph, fakes, values, is_weight, options):
    """Replaces parts with attention by kernels. Returns the graph, the kernels, and why other parts were left."""
    if any((getattr(node.target, "__module__", None) or "").startswith("torch._functorch") for node in graph.graph.nodes):
        raise error("expected a graph without torch.vmap, a part of which cannot be compiled")
    known = Known(graph, fakes, values, is_weight)
    graph = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))  # because torch.compile reads the graph later
    weights = {node.name: value for node, value, weight in
               zip((node for node in graph.graph.nodes if node.op == "placeholder"), values, is_weight) if weight}
    partitioner = CapabilityBasedPartitioner(graph, known, allows_single_node_partition=True)
    # fuse_partitions() builds the graph again without _dynamo_source, which PyTorch's backend needs for each input.
    sources = {node.name: node._dynamo_source for node in graph.graph.nodes if hasattr(node, "_dynamo_source")}
    graph = partitioner.fuse_partitions(partitioner.propose_partitions(), prefix="attn_part")
    for node in graph.graph.nodes:
        if node.op == "placeholder" and node.name in sources:
            node._dynamo_source = sources[node.name]
    for call in [node for node in graph.graph.nodes if node.op == "call_module" and node.target.startswith("attn_part")]:
        result = next(node for node in graph.get_submodule(call.target).graph.nodes if node.op == "output").args[0]
        if isinstance(result, (list, tuple)):
            for user in call.users:  # operator.getitem
                user.meta["example_value"] = result[user.args[1]].meta["example_value"]
        else:
            call.meta["example_value"] = result.meta["example_value"]
    kernels, left = [], [f"attn does not support {name}" for name in sorted(set(known.unknown.values()))]
    for call in [node for node in graph.graph.nodes if node.op == "call_module" and node.target.startswith("attn_part")]:
        module = graph.get_submodule(call.target)
        part_fakes = [argument.meta["example_value"] if argument.name not in weights else weights[argument.name]
                      for argument in call.args]
        part_weight = [argument.name in weights for argument in call.args]
        part_values = [weights[argument.name] if weight else _example(fake)
                       for argument, weight, fake in zip(call.args, part_weight, part_fakes)]
        is_tensor = [isinstance(fake, torch.Tensor) for fake in part_fakes]
        try:
            part = Part(Graph(module, part_fakes, part_values, part_weight, options), is_tensor)
        except NoAttention:
            continue
        except attn.Error as reason:
            left.append(_first_line(reason))
            continue
        number = len(_known)
        _known[number] = part
        kernels.append(part.compiled.kernel)
        result = next(node for node in module.graph.nodes if node.op == "output").args[0]
        with graph.graph.inserting_before(call):
            tensors = [argument for argument, tensor in zip(call.args, is_tensor) if tensor]
            replaced = graph.graph.call_function(torch.ops.attn.part.default, (number, tensors))
            if not isinstance(result, (list, tuple)):
                replaced = graph.graph.call_function(operator.getitem, (replaced, 0))
                replaced.meta["example_value"] = result.meta["example_value"]
        call.replace_all_uses_with(replaced)
        graph.graph.erase_node(call)
    graph.graph.lint()
    graph.recompile()
    return graph, kernels, left


def _describe(kernels):
    return ", ".join(f"{attention['source']} {attention['schedule']}" for kernel in kernels
                     for attention in kernel.report.attentions)


OPTIONS = ("target", "schedule", "compute")


def _check_options(options, others):
    """Raises an error if torch.compile got options that the backend does not take, or values that attnc refuses."""
    for name in others:
        raise error(f"torch.compile: expected no {name} with the backend attn, got {others[name]!r}")
    for name in options:
        if name not in OPTIONS:
            raise error(f"torch.compile: expected options of the backend attn ({', '.join(OPTIONS)}), got '{name}'", "NAME")
    text = "func.func @none(%x: tensor<1xf32>) -> tensor<1xf32> { return %x : tensor<1xf32> }"
    if options:
        compile_text(text, "options", device="cpu", num_threads=None, **{"target": None, **options})


def backend(graph, inputs, options=None, name=None, **others):
    """Compiles a graph for torch.compile.

    `inputs` are the examples that torch.compile passes. `options` are those of the user: they may contain the
    parameters `target`, `schedule` and `compute` of attn.compile.
    """
    options = options or {}
    _check_options(options, others)
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    fakes = [node.meta.get("example_value", value) for node, value in zip(placeholders, inputs)]
    is_weight = [isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None
                 for value in inputs]
    what = f"graph of {len(graph.graph.nodes)} nodes"
    if torch.is_grad_enabled() and any(isinstance(value, torch.Tensor) and value.requires_grad for value in inputs):
        _report(f"{what}: left to PyTorch, because a gradient is required; call inside torch.inference_mode()")
        return _default(graph, inputs)
    try:
        compiled = Graph(graph, fakes, inputs, is_weight, options)
        _report(f"{what}: compiled as a whole: {_describe([compiled.kernel])}")
        return compiled
    except NoAttention as reason:
        _report(f"{what}: left to PyTorch, because {reason}")
        return _default(graph, inputs)
    except attn.Error as reason:
        whole = _first_line(reason)
    kernels, left = [], []
    try:
        graph, kernels, left = _split(graph, fakes, inputs, is_weight, options)
    except attn.Error as reason:
        left = [_first_line(reason)]
    if kernels:
        _report(f"{what}: compiled in {len(kernels)} parts: {_describe(kernels)}; the rest left to PyTorch, because "
                + "; ".join(left or [whole]))
    else:
        _report(f"{what}: left to PyTorch, because {'; '.join(left or [whole])}")
    return _default(graph, inputs)
