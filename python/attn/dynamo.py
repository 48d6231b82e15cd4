"""The backend attn of torch.compile: torch.compile(model, backend="attn").

A graph of torch.compile becomes one kernel if attn supports all of its ops and fuses an attention in it. If attn does
not support some ops, the parts with attention that attn supports become kernels. PyTorch compiles everything else. A
graph of which no part becomes a kernel goes to PyTorch unchanged. `attn.dynamo.reports` says how each graph was
compiled, and why.

Parts are formed in the graph as torch.compile made it, which still has ops that write to their arguments. A functional
graph, such as AOTAutograd makes, would be simpler to divide. But it no longer has attention, linear and einsum as
single ops, its results are not those of the graph that will be differentiated, and it appears only after PyTorch has
chosen how to differentiate.
"""

from __future__ import annotations

import collections
import functools
import itertools
import logging
import operator
import threading
import weakref

import torch
import torch.nn.functional as F

import attn
from attn import _compiler
from attn._compile import compile_program, compile_text, export
from attn._effects import Effects, hint, value_of
from attn._kernel import error
from attn._parts import Part, Rest, find_order, find_parts
from attn._weights import Weights

log = logging.getLogger("attn")

#: The last thousand lines of text, the latest last. The line for a graph of torch.compile says which parts attn
#: compiled, and why it left the others to PyTorch. The line for a call that a kernel could not compute gives the reason.
reports: collections.deque[str] = collections.deque(maxlen=1000)


def _report(text):
    reports.append(text)
    log.info(text)


def _first_line(reason):
    return str(reason).splitlines()[0]


# PyTorch, which computes what attn leaves.


def _inductor(graph, inputs):
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(graph, inputs)


def _aot_eager(graph, inputs):
    from torch._dynamo.backends.debugging import aot_eager

    return aot_eager(graph, inputs)


def _eager(graph, inputs):
    return graph.forward


FALLBACKS = {"inductor": _inductor, "aot_eager": _aot_eager, "eager": _eager}


def _has_compiler():
    """Whether PyTorch's default backend finds the C++ compiler that it needs for code for CPUs."""
    from torch._inductor import cpp_builder, exc

    try:
        return bool(cpp_builder.get_cpp_compiler())
    except exc.InvalidCxxCompiler:
        return False


def _fall_back(name, graph, inputs):
    """Compiles `graph` with the backend of PyTorch that the option fallback names."""
    if name == "inductor" and not _has_compiler():
        _report("PyTorch runs ops one by one, because its default backend found no C++ compiler")
        name = "eager"
    return FALLBACKS[name](graph, inputs)


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


def _sum_of_sizes(sizes):
    """Computes torch.sym_sum, which torch.export cannot save."""
    return functools.reduce(operator.add, sizes)


#: For each op that attn does not import but can decompose, a function that computes it with ops that attn imports.
decompositions = {torch.sym_sum: _sum_of_sizes,
                  torch._transformer_encoder_layer_fwd: _encoder_layer,
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

    def __init__(self, graph, fakes, weights):
        """`fakes` are the inputs of the graph when it was traced; `weights` has a tensor for each input that is a weight,
        and otherwise None."""
        super().__init__()
        self.graph = graph
        # Where each input of the graph comes from: ("weight", name), ("input", number), ("size", input, axis) or
        # ("constant", value).
        self.places = []
        tensors = [(i, fake) for i, fake in enumerate(fakes) if isinstance(fake, torch.Tensor) and weights[i] is None]
        numbers = {i: number for number, (i, _) in enumerate(tensors)}
        self.kept = [i for i, _ in tensors]  # the inputs of the graph that are inputs of the module
        for i, fake in enumerate(fakes):
            if isinstance(fake, torch.SymInt):
                source = _size_source(fake, tensors)
                if source is None:
                    raise error(f"an input is the size {fake}, which is not a dimension of any input tensor")
                self.places.append(("size", numbers[source[0]], source[1]))
            elif not isinstance(fake, torch.Tensor):
                self.places.append(("constant", fake))
            elif weights[i] is not None:
                self.places.append(("weight", f"weight{i}"))
                self.register_buffer(f"weight{i}", weights[i].detach())
            else:
                self.places.append(("input", numbers[i]))
        self.dynamic = tuple({axis: torch.export.Dim.AUTO for axis, size in enumerate(tensor.shape)
                              if isinstance(size, torch.SymInt)} for _, tensor in tensors)
        # Zeros of the sizes that the inputs had when the graph was traced. Their strides decide, for example, whether
        # flatten copies.
        self.examples = tuple(torch.empty_strided(*([hint(size) for size in sizes] for sizes in (tensor.shape, tensor.stride())),
                                                  dtype=tensor.dtype, device=tensor.device).zero_() for _, tensor in tensors)

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
        with torch.fx.traceback.preserve_node_meta():  # the lines of the model, for reports
            return Decomposed(self.graph).run(*values)

    def dynamic_shapes(self):
        return {"inputs": self.dynamic} if any(self.dynamic) else None


class Compiled:
    """A part of a graph, compiled to a kernel. A call takes the inputs of the part, including its weights.

    If the kernel refuses the inputs, for example because of their sizes or because an input that the part writes to
    overlaps another one, the call runs the part in PyTorch: a kernel that refuses its inputs has written nothing. A
    weight that is not a parameter, such as a cache, may change often: when it has changed once, the part is compiled
    again, with this tensor as an input.
    """

    def __init__(self, graph, fakes, weights, written, options):
        """`written` has the numbers of the inputs that the part writes to."""
        self.graph, self.fakes, self.written, self.options = graph, fakes, written, options
        self.lock = threading.Lock()
        self._compile(weights)

    def _compile(self, weights):
        tensors = [i for i, fake in enumerate(self.fakes) if isinstance(fake, torch.Tensor)]
        if tensors and all(weights[i] is not None for i in tensors):
            # The results of a kernel are arrays of the package of its first input, so it needs one.
            weights = [None if i == tensors[0] else weight for i, weight in enumerate(weights)]
        module = Lifted(self.graph, self.fakes, weights).eval()
        with torch._guards.tracing(None):  # so that assumptions of torch.export do not become guards of the graph
            program, convention = export(module, module.examples, {}, module.dynamic_shapes(), strided=True)
            kernel = compile_program(module, program, convention, **self.options)
        found = kernel.report.json
        if not found["fused"] and not (found["unfused"] and self.options.get("schedule") == "unfused"):
            raise NoAttention("it has no attention that attn fuses")
        packed = Weights()
        numbers = [i for i, (kind, *_) in enumerate(module.places) if kind == "weight"]
        packed.remember([weights[i] for i in numbers])
        self.places = module.places
        self.kernel = kernel
        # A call reads these together, so another thread must not see only some of them changed.
        self.state = kernel, numbers, packed, module.kept

    def _repack(self, packed, values):
        """Packs the weights again, or compiles again, if a weight that is no parameter has changed."""
        with self.lock:
            kernel, numbers, current, kept = self.state
            given = [values[i] for i in numbers]
            if current is not packed or not packed.have_changed(given):
                return  # another thread has packed the weights or compiled the part
            changed = {i for i, stamp in zip(numbers, packed.stamps) if not isinstance(values[i], torch.nn.Parameter)
                       and stamp != (values[i].data_ptr(), values[i]._version)}
            if not changed:
                kernel.load_state_dict({f"weight{i}": values[i] for i in numbers})
                packed.remember(given)
                return
            try:
                self._compile([value if i in numbers and i not in changed else None for i, value in enumerate(values)])
            except attn.Error as reason:
                self.state = None
                raise error(f"weights have changed, and the part with these weights as inputs does not compile: {reason}") from None

    def __call__(self, values):
        state = self.state
        if state is None:
            return self.graph(*values)
        try:
            kernel, numbers, packed, kept = state
            if self.written and not torch.is_inference_mode_enabled() and any(values[i].is_inference() for i in self.written):
                return self.graph(*values)  # raises the error of PyTorch, which allows such writes only in inference mode
            if numbers and packed.have_changed([values[i] for i in numbers]):
                self._repack(packed, values)
                kernel, numbers, packed, kept = self.state
            return kernel(*[values[i] if i in self.written else values[i].contiguous() for i in kept])
        except attn.Error as reason:
            _report(f"left to PyTorch, for this call: {_first_line(reason)}")
            return self.graph(*values)


# Parts of graphs.

_numbers = itertools.count()
_known = weakref.WeakValueDictionary()  # the parts by number, for the op attn::part


@torch.library.custom_op("attn::part", mutates_args=())
def _part(number: int, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    part = _known[number]
    return list(part.run(tensors))


@_part.register_fake
def _(number, tensors):
    part = _known[number]
    # The results of kernels are contiguous.
    return [torch.empty(result.shape, dtype=result.dtype, device=result.device) for result in part.compute(tensors)]


class Called:
    """A compiled part that the op attn::part calls with its input tensors.

    The part's other inputs are sizes of these tensors or constants.
    """

    def __init__(self, compiled, fakes):
        self.compiled = compiled
        self.places = compiled.places
        self.tensors = [i for i, fake in enumerate(fakes) if isinstance(fake, torch.Tensor)]
        self.number = next(_numbers)
        _known[self.number] = self

    def _values(self, tensors):
        values = [None] * len(self.places)
        for i, tensor in zip(self.tensors, tensors):
            values[i] = tensor
        inputs = [i for i, (kind, *_) in enumerate(self.places) if kind == "input"]
        for i, (kind, *rest) in enumerate(self.places):
            if kind == "size":
                values[i] = values[inputs[rest[0]]].shape[rest[1]]
            elif kind == "constant":
                values[i] = rest[0]
        return values

    def run(self, tensors):
        return self.compiled(self._values(tensors))

    def compute(self, tensors):
        """Computes the part in PyTorch."""
        return self.compiled.graph(*self._values(tensors))


@functools.cache
def _known_ops():
    """The overloads of ops that attn imports, such as "add.Tensor"."""
    lines = _compiler.run("attn-import", ["--ops"]).splitlines()
    return {line.split("`")[1] for line in lines if line.startswith("| `")}


def _is_imported(name):
    """Whether attn imports the op `name`, such as "add.Tensor" or "add_.Tensor", which is add.Tensor in place."""
    op, _, overload = name.partition(".")
    return name in _known_ops() or op.endswith("_") and f"{op[:-1]}.{overload}" in _known_ops()


class Known:
    """Says which nodes of a graph attn imports. Exporting the graph shows which ops a node consists of."""

    def __init__(self, graph, fakes, weights, effects):
        module = Lifted(graph, fakes, weights).eval()
        with torch._guards.tracing(None):
            program, _ = export(module, module.examples, {}, module.dynamic_shapes(), strided=True)
        self.effects = effects
        self.unknown, self.seen, self.ops = {}, set(), {}
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
            for origin in origins:
                self.ops.setdefault(origin, set()).add(name)
            if name.startswith("aten.") and not _is_imported(name.removeprefix("aten.")):
                self.unknown.update(dict.fromkeys(origins, name))

    def __call__(self, node):
        # Kernels of parts take no complex tensors, and return only real tensors.
        tensors = [tensor for part in (node, *node.all_input_nodes) for tensor in torch.utils._pytree.tree_leaves(value_of(part))
                   if isinstance(tensor, torch.Tensor)]
        is_nothing = node in self.effects.shares and not self.effects.ops.get(node)  # such as dropout in evaluation mode
        return (node.op in ("call_function", "call_method") and not any(tensor.is_complex() for tensor in tensors)
                and (node.name in self.seen or is_nothing) and node.name not in self.unknown)

    def may_attend(self, nodes):
        """Whether `nodes` may have an attention: each has an exponential, perhaps in a softmax."""
        return any(word in op for node in nodes for op in self.ops.get(node.name, ()) for word in ("attention", "softmax", "exp"))


def _whole(graph, effects, later, weights, options):
    """Compiles the whole graph to one kernel. Returns a function that computes it, and the kernel.

    The function computes results that are views in PyTorch.
    """
    part, results = Part(graph, list(later), effects), []
    if any(node.op == "get_attr" and effects.exact[node] & effects.changed for node in graph.graph.nodes):
        raise error("expected a graph that does not write to its constants")

    def call(rest, part, inputs):
        for _ in part.outputs:
            with rest.inserting_after(next(node for node in reversed(rest.nodes) if node.op == "placeholder")):
                results.append(rest.placeholder(f"result{len(results)}"))
        return results

    rest = Rest(graph, [part], effects).build(later, call)
    inputs = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    numbers = [inputs.index(node.name) for node in part.inputs]
    written = [i for i, node in enumerate(part.inputs) if effects.exact[node] & effects.changed]
    if not all(value_of(part.inputs[i]).is_contiguous() for i in written):
        raise error("expected a graph that writes only to contiguous inputs")
    # A table is no weight of the kernel, which would copy it.
    part_weights = [None if i in part.tables else weights[number] for i, number in enumerate(numbers)]
    compiled = Compiled(part.finish(), [value_of(node) for node in part.inputs], part_weights, written, options)
    output = next(node for node in rest.graph.nodes if node.op == "output").args[0]
    is_direct = list(output) == results and all(order is None for order in part.orders)
    takes_all = numbers == list(range(len(inputs)))
    finish = rest.forward

    def run(*values):
        results = compiled(values if takes_all else [values[i] for i in numbers])
        return results if is_direct else finish(*values, *results)

    return run, compiled.kernel


def _divide(graph, known, effects, later, weights, options):
    """Replaces parts with attention by kernels.

    Returns the graph, or None if it has no such part, the parts, and why others were left.
    """
    names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    left = [f"attn does not support {name}" for name in sorted(set(known.unknown.values()))]
    left += sorted(set(effects.barriers.values()))
    parts, called = [], {}
    for nodes in find_parts(later, effects, known):
        if known.may_attend(nodes):
            try:
                parts.append(Part(graph, nodes, effects))
            except attn.Error as reason:
                left.append(_first_line(reason))
    Rest(graph, parts, effects)  # finds the outputs of the parts
    for part in parts:
        fakes = [value_of(node) for node in part.inputs]
        part_weights = [weights[names.index(node.name)] if node.op == "placeholder" and i not in part.tables else None
                        for i, node in enumerate(part.inputs)]
        try:
            called[part] = Called(Compiled(part.finish(), fakes, part_weights, (), options), fakes)
        except NoAttention:
            pass
        except attn.Error as reason:
            left.append(_first_line(reason))
    if not called:
        return None, [], left

    def call(graph, part, inputs):
        tensors = [value for value, node in zip(inputs, part.inputs) if isinstance(value_of(node), torch.Tensor)]
        results = graph.call_function(torch.ops.attn.part.default, (called[part].number, tensors))
        return [graph.call_function(operator.getitem, (results, i)) for i in range(len(part.outputs))]

    return Rest(graph, list(called), effects).build(later, call), list(called.values()), left


class Divided:
    """The compiled graph that calls parts. It keeps the parts alive as long as torch.compile keeps the graph."""

    def __init__(self, run, parts):
        self.run, self.parts = run, parts

    def __call__(self, *values):
        return self.run(*values)


def _describe(kernels):
    return ", ".join(f"{attention['source']} {attention['schedule']}" for kernel in kernels
                     for attention in kernel.report.attentions)


OPTIONS = ("target", "schedule", "compute", "fallback")


def _check_options(options, others):
    """Raises an error if torch.compile got options that the backend does not take, or values that attnc refuses."""
    for name in others:
        raise error(f"torch.compile: expected no {name} with the backend attn, got {others[name]!r}")
    for name in options:
        if name not in OPTIONS:
            raise error(f"torch.compile: expected options of the backend attn ({', '.join(OPTIONS)}), got '{name}'", "NAME")
    if options.get("fallback", "inductor") not in FALLBACKS:
        raise error(f"torch.compile: expected the option fallback to be one of {', '.join(FALLBACKS)}, got {options['fallback']!r}")
    text = "func.func @none(%x: tensor<1xf32>) -> tensor<1xf32> { return %x : tensor<1xf32> }"
    of_compiler = {name: value for name, value in options.items() if name != "fallback"}
    if of_compiler:
        compile_text(text, "options", device="cpu", num_threads=None, **{"target": None, **of_compiler})
    return of_compiler


def _regions(graph):
    """The nodes that enter and leave regions of torch.autocast, and those that switch gradients on and off."""
    casts = [node for node in graph.nodes if getattr(node.target, "__name__", "") in ("_enter_autocast", "_exit_autocast")]
    switches = [node for node in graph.nodes if node.target is torch._C._set_grad_enabled]
    return casts, switches


def _why_left(graph, inputs):
    """Why PyTorch computes the whole graph, or None."""
    needs_gradient = any(isinstance(value, torch.Tensor) and value.requires_grad for value in inputs)
    _, switches = _regions(graph.graph)
    if needs_gradient and (torch.is_grad_enabled() or any(node.args[0] for node in switches) and not torch.is_inference_mode_enabled()):
        return "a gradient is required; call inside torch.inference_mode()"
    if not inputs:
        return "it has no inputs"
    if any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
        return "torch.autocast is on"
    if any(getattr(node.target, "__name__", "").startswith("flex_attention") for node in graph.graph.nodes):
        return "it uses flex_attention; write the scores and the softmax, or call scaled_dot_product_attention"
    if any((getattr(node.target, "__module__", None) or "").startswith("torch._functorch") for node in graph.graph.nodes):
        return "it uses torch.vmap or another transform of torch.func"
    return None


def _without_regions(graph):
    """Returns a copy of the graph without the nodes that change nothing: those of torch.autocast if all turn it off, and
    those that switch gradients, which no input requires, unless they leave another state than they found."""
    casts, switches = _regions(graph.graph)
    if any(node.args[2] for node in casts if node.target.__name__ == "_enter_autocast"):
        casts = []
    if switches and switches[-1].args[0] != torch.is_grad_enabled():
        switches = []
    made, copied = {}, torch.fx.Graph()
    for node in graph.graph.nodes:
        if node not in casts and node not in switches:
            made[node] = copied.node_copy(node, made.get)
            if hasattr(node, "_dynamo_source"):
                made[node]._dynamo_source = node._dynamo_source
    result = torch.fx.GraphModule(graph, copied)
    result.meta = dict(graph.meta)
    return result


def _compile(graph, inputs, options):
    """Compiles a graph, or parts of it. Returns a function or a graph, the parts, and a line for the report.

    The result is None if the graph is left to PyTorch.
    """
    reason = _why_left(graph, inputs)
    if reason:
        return None, [], f"left to PyTorch, because {reason}"
    graph = _without_regions(graph)
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for node, value in zip(placeholders, inputs):
        node.meta.setdefault("example_value", value)
    fakes = list(map(value_of, placeholders))
    # Tensors made in inference mode do not count their changes, so that a kernel could not know whether to pack them again.
    is_weight = [(isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None)
                 and not value.is_inference() for value in inputs]
    effects = Effects(graph.graph, is_weight)
    weights = [value if weight and not effects.exact[node] & effects.changed else None
               for node, value, weight in zip(placeholders, inputs, is_weight)]
    later = find_order(graph.graph, effects)
    whole = "; ".join(sorted(set(effects.barriers.values())))
    if not whole:
        try:
            run, kernel = _whole(graph, effects, later, weights, options)
            return run, [], f"compiled as a whole: {_describe([kernel])}"
        except NoAttention as reason:
            return None, [], f"left to PyTorch, because {reason}"
        except attn.Error as reason:
            whole = _first_line(reason)
    known = Known(graph, fakes, weights, effects)
    divided, parts, left = _divide(graph, known, effects, later, weights, options)
    why = "; ".join(dict.fromkeys(left or [whole]))
    if divided is None:
        return None, [], f"left to PyTorch, because {why}"
    return divided, parts, (f"compiled in {len(parts)} parts: {_describe(part.compiled.kernel for part in parts)}; "
                            f"the rest left to PyTorch, because {why}")


def backend(graph, inputs, options=None, name=None, **others):
    """Compiles a graph for torch.compile.

    `inputs` are the examples that torch.compile passes. `options` are those of the user: they may contain the
    parameters `target`, `schedule` and `compute` of attn.compile, and `fallback`, the backend of PyTorch that compiles
    what attn does not: "inductor" (the default), "aot_eager" or "eager".
    """
    options = options or {}
    of_compiler = _check_options(options, others)
    try:
        compiled, parts, line = _compile(graph, inputs, of_compiler)
    except attn.Error as reason:
        compiled, parts, line = None, [], f"left to PyTorch, because {_first_line(reason)}"
    _report(f"graph of {len(graph.graph.nodes)} nodes: {line}")
    fallback = options.get("fallback", "inductor")
    if compiled is None:
        return _fall_back(fallback, graph, inputs)
    return Divided(_fall_back(fallback, compiled, inputs), parts) if parts else compiled
