"""What each node of a graph of torch.compile writes, and with which values it shares memory.

PyTorch functions do not say what they do to memory. So a node is run with fake tensors of the sizes that it had when
the graph was traced, and the ops that it dispatches are recorded: the schema of an op names the arguments that the op
writes. The values that torch.compile computed while it traced the graph say which values share memory.
"""

import math
import operator

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from attn._kernel import error

#: The memory of all inputs that are not weights. They count as one, because later calls may pass tensors that overlap.
INPUTS = "inputs"


class Recorder(TorchDispatchMode):
    """Records the memory that ops write, whether an op is random, and whether an op changes the shape of an argument."""

    def __init__(self):
        super().__init__()
        self.arguments = set()  # the identities of the tensors that the node takes
        self.written, self.is_random, self.reshapes, self.names = set(), False, False, []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.names.append(str(op))
        is_random = torch.Tag.nondeterministic_seeded in op.tags
        self.reshapes |= torch.Tag.inplace_view in op.tags and id(args[0]) in self.arguments
        for i, argument in enumerate(op._schema.arguments):
            if argument.alias_info and argument.alias_info.is_write:
                given = args[i] if i < len(args) else kwargs.get(argument.name)
                self.written.update(map(_memory, _tensors(given)))
            elif argument.name == "dropout_p":
                is_random &= (args[i] if i < len(args) else kwargs.get(argument.name, 0)) != 0
        self.is_random |= is_random
        return op(*args, **kwargs)


def _tensors(value):
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _memory(tensor):
    return tensor.untyped_storage()._cdata


def hint(size):
    """The number that `size` was when the graph was traced."""
    if not isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return size
    if size.node.has_hint():
        return size.node.hint
    if isinstance(size, torch.SymFloat):
        return 1.0  # a number that the graph reads from a tensor; it decides nothing about memory
    raise error(f"expected sizes that depend on sizes of inputs alone, got {size}")


def value_of(node):
    return node.meta.get("example_value")


def is_tensor(node):
    return isinstance(value_of(node), torch.Tensor)


def _holds_sizes_only(value):
    """Whether `value` consists of numbers, dtypes and devices, which an op cannot change."""
    kinds = (int, float, bool, str, torch.SymInt, torch.SymFloat, torch.SymBool, torch.dtype, torch.device, torch.layout,
             torch.memory_format, slice, type(Ellipsis))
    return value is not None and all(isinstance(leaf, kinds) for leaf in tree_leaves(value))


SIZE_FUNCTIONS = {getattr, int, float, bool, len, min, max, tuple, list, slice, torch.Size,
                  *(function for module in (operator, math) for function in vars(module).values() if callable(function)),
                  *(getattr(torch, name) for name in dir(torch) if name.startswith("sym_"))}
SIZE_METHODS = {"size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "is_contiguous",
                "is_floating_point", "is_complex", "element_size"}


def has_no_effect(node):
    """Whether `node` is a call that computes nothing: a check of sizes, or a note for PyTorch's statistics of use."""
    name = getattr(node.target, "__name__", str(node.target))
    return node.op == "call_function" and (name.startswith("_check") or name == "_log_api_usage_once") and value_of(node) is None


def is_size(node):
    """Whether `node` computes numbers from the sizes of tensors and from other numbers, and reads no elements."""
    known = node.target in SIZE_FUNCTIONS if node.op == "call_function" else node.op == "call_method" and node.target in SIZE_METHODS
    return known and _holds_sizes_only(value_of(node))


class Effects:
    """The effects of the nodes of a graph.

    `barriers` maps each node that other nodes must not pass to the reason, `writes` each node to the memory that it
    writes, `memory` each node to the memory of its value, and `exact` to this memory, too, but each input counts
    separately. `changed` is the memory that some node writes, where each input counts separately. A node is in `shares`
    if all tensors of its value lie in memory that existed before: it computes a view, or returns an argument. A node is
    in `constants` if its value depends on weights alone.
    """

    def __init__(self, graph, is_weight):
        """`is_weight` says for each input of the graph whether it is a weight."""
        self.barriers, self.writes, self.memory, self.exact, self.ops = {}, {}, {}, {}, {}
        self.shares, self.changed = set(), set()
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self.constants = {node for node, weight in zip(placeholders, is_weight) if weight}
        self.inputs = {}  # the memory of the inputs
        self.creators = {}  # for memory that the graph allocates: the node that does
        self.fakes = FakeTensorMode(allow_non_fake_inputs=False)
        autocasts = []
        for node, weight in zip(placeholders, is_weight):
            for tensor in _tensors(value_of(node)):
                self._check(tensor)
                if not weight:
                    self.inputs[_memory(tensor)] = INPUTS
        for node in graph.nodes:
            if isinstance(node.target, torch._ops.HigherOrderOperator):  # its results may share memory with its arguments
                for tensor in [tensor for part in (node, *node.all_input_nodes) for tensor in _tensors(value_of(part))]:
                    self.inputs[_memory(tensor)] = INPUTS
        for node in graph.nodes:
            if node.op != "placeholder" and self.constants.issuperset(node.all_input_nodes):
                self.constants.add(node)
            value = value_of(node)
            for tensor in _tensors(value):
                self._check(tensor)
            self.exact[node] = set(map(_memory, _tensors(value)))
            self.memory[node] = {self.inputs.get(_memory(tensor), _memory(tensor)) for tensor in _tensors(value)}
            if node.op in ("placeholder", "get_attr", "output"):
                for memory in self.memory[node]:
                    self.creators.setdefault(memory, node)
                continue
            if is_size(node) or has_no_effect(node):
                continue
            name = getattr(node.target, "__name__", str(node.target))
            if name == "_enter_autocast":
                autocasts.append(node)
            self._observe(node, name)
            if autocasts:
                self.barriers[node] = "torch.autocast is on"
            if name == "_exit_autocast":
                autocasts = [entered for entered in autocasts if entered not in node.args]
            if self.memory[node] and self.memory[node] <= self.creators.keys():
                self.shares.add(node)
            for memory in self.memory[node]:
                self.creators.setdefault(memory, node)

    def _check(self, tensor):
        if tensor.layout != torch.strided or type(tensor) not in (torch.Tensor, torch.nn.Parameter, FakeTensor):
            raise error(f"expected a graph of dense tensors, got one of {type(tensor).__name__} of layout {tensor.layout}")

    def _copy(self, tensor):
        return torch.empty_strided([hint(size) for size in tensor.shape], [hint(stride) for stride in tensor.stride()],
                                   dtype=tensor.dtype, device=tensor.device)

    def _observe(self, node, name):
        """Runs `node` with new fake tensors."""
        recorder = Recorder()
        originals = {}  # for the memory of each copy: the memory of the value that it stands for
        if isinstance(node.target, torch._ops.HigherOrderOperator) or node.op == "call_module":
            self.barriers[node] = f"the graph calls {name}"
            return
        if not self.memory[node] and not any(map(self.memory.get, node.all_input_nodes)):
            # It may enter a region, for example of torch.autocast, so it is not run.
            self.barriers[node] = f"the effects of {name} are unknown"
            return

        def stand_in(part):
            if not isinstance(part, torch.fx.Node):
                return part

            def copy(value):
                if not isinstance(value, torch.Tensor):
                    return hint(value)
                made = self._copy(value)
                recorder.arguments.add(id(made))
                originals[_memory(made)] = _memory(value)
                return made

            return tree_map(copy, value_of(part))

        try:
            with torch.no_grad(), self.fakes:
                args, kwargs = torch.fx.node.map_aggregate((node.args, node.kwargs), stand_in)
                with recorder:
                    if node.op == "call_method":
                        getattr(args[0], node.target)(*args[1:], **kwargs)
                    else:
                        node.target(*args, **kwargs)
        except DataDependentOutputException:
            pass  # a number read from a tensor
        except Exception as reason:
            self.barriers[node] = f"the effects of {name} are unknown: {str(reason).splitlines()[0] if str(reason) else reason!r}"
            return
        if recorder.reshapes:
            raise error(f"expected a graph that does not change the shape of a tensor in place, got {name}")
        self.ops[node] = recorder.names
        written = {originals[memory] for memory in recorder.written if memory in originals}
        self.changed |= written
        self.writes[node] = {self.inputs.get(memory, memory) for memory in written}
        if recorder.is_random:
            self.barriers[node] = f"{name} is random"
        elif not recorder.names and not self.memory[node]:
            self.barriers[node] = f"the effects of {name} are unknown"
