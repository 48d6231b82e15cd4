"""Kernel.as_module: a kernel in place of a layer of a model."""

import copy
import operator
import warnings

import torch

from attn._attn import Error
from attn._kernel import error
from attn._parts import order_of
from attn._weights import Weights


def _switches_gradients_on(program):
    """Whether an exported program has a region under torch.enable_grad()."""
    names = ("wrap_with_set_grad_enabled", "_set_grad_enabled")
    return any(node.op == "call_function" and getattr(node.target, "__name__", "") in names and node.args[0] is True
               for graph in program.graph_module.modules() if isinstance(graph, torch.fx.GraphModule) for node in graph.graph.nodes)


def _find_orders(program):
    """For each tensor that an exported program returns: the order in which its elements are stored (order_of).

    Raises an error if results share memory with each other or with what the program takes, because those of a kernel do
    not.
    """
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    inputs = [values[spec.arg.name] for spec in program.graph_signature.input_specs]
    seen = {tensor.untyped_storage()._cdata for tensor in inputs if isinstance(tensor, torch.Tensor)}
    orders = []
    for spec in program.graph_signature.output_specs:
        tensor = values.get(getattr(spec.arg, "name", None))
        if spec.kind.name == "USER_OUTPUT" and isinstance(tensor, torch.Tensor):
            if tensor.untyped_storage()._cdata in seen:
                raise error("its results share memory with its arguments, with its weights or with each other")
            seen.add(tensor.untyped_storage()._cdata)
            orders.append(order_of(tensor))
    return orders


class Compiled(torch.nn.Module):
    """Calls a kernel in place of `layer`. The module has the parameters and buffers of the layer, with the same names.

    After a weight was changed in place or replaced, the next call packs the weights again. If the kernel would not
    compute what the layer computes, for example because a gradient is required, the module calls the layer, and warns
    once for each reason.
    """

    def __init__(self, kernel, layer, copies_arguments):
        super().__init__()
        if kernel._convention is None:
            raise error("as_module: expected a kernel that was compiled from a module")
        # The module shares these dictionaries with the layer, so that a state_dict has the layer's names, and .to() and
        # .load_state_dict() change the layer.
        self._parameters, self._buffers, self._modules = layer._parameters, layer._buffers, layer._modules
        self._non_persistent_buffers_set = layer._non_persistent_buffers_set
        object.__setattr__(self, "layer", layer)  # without making the layer a submodule
        self.training = layer.training
        self._kernel = kernel
        self._copies_arguments = copies_arguments
        self._writes = any(given.get("in_out") for given in kernel.signature["inputs"])
        self._weights, self._packed = Weights(), []
        self._loads = None  # the number of kernel.load_state_dict after which the kernel has the weights of this layer
        self._unfit = None  # why the kernel cannot use the present weights
        self._warned = set()
        self._switches_gradients_on = _switches_gradients_on(kernel._source.program)
        self._orders, self._never = [], None  # the second: why the kernel can never take the layer's place
        if not kernel.signature["inputs"]:
            self._never = "it takes no tensors, whose package would be that of the results"
        try:
            self._orders = _find_orders(kernel._source.program)
        except Error as reason:
            self._never = str(reason)
        self._list_parts()
        self._kinds = list(map(type, self._parts))
        self._hooks = self._find_hooks()
        if not layer.training:
            self._update()
            if self._unfit:
                raise error(self._unfit, "WEIGHTS")

    # The parts of the layer.

    def _list_parts(self):
        """Lists the layer's modules, and where their tensors are, so that a call finds these without a search."""
        self._parts = list(self.layer.modules())
        self._children = self._find_children()
        written = set(self._kernel._buffer_names)
        self._places = []  # pairs of a dictionary with the tensors of a module, and a name in it
        for prefix, part in self.layer.named_modules():
            for tensors in (part._parameters, part._buffers):
                self._places += [(tensors, name) for name in tensors if f"{prefix}.{name}".lstrip(".") not in written]

    def _find_children(self):
        return [child for part in self._parts for child in part._modules.values()]

    def _find_hooks(self):
        return [hook for part in self._parts for hooks in (part._forward_hooks, part._forward_pre_hooks) for hook in hooks]

    def _tensors(self):
        return [tensor for tensors, name in self._places if (tensor := tensors.get(name)) is not None]

    def train(self, mode=True):
        self.layer.train(mode)
        self.training = mode
        return self

    def _update(self):
        """Packs the weights again if they have changed."""
        tensors = self._tensors()
        # Another tensor may have the memory of the one that was packed, for example as its transpose.
        if self._loads == self._kernel._loads and len(tensors) == len(self._packed) \
                and all(map(operator.is_, tensors, self._packed)) and not self._weights.have_changed(tensors):
            return
        # A state_dict contains only persistent buffers.
        buffers = {name: tensor for name, tensor in self.layer.named_buffers() if name in self._kernel._source.tensors()}
        self._unfit = None
        try:
            self._kernel.load_state_dict({**buffers, **self.layer.state_dict()})
        except Error as reason:
            self._unfit = str(reason)
        self._weights.remember(tensors)
        self._packed = tensors
        self._loads = self._kernel._loads

    # Calls.

    def _why_not(self, args, kwargs):
        """Why the kernel would not compute what the layer computes, or None."""
        if self._never:
            return self._never
        if self._find_children() != self._children:
            self._list_parts()
        if any(part.training for part in self._parts):
            return "it is in training mode (call eval())"
        if self._find_hooks() != self._hooks or torch.nn.modules.module._has_any_global_hook():
            return "hooks were added or removed"
        if list(map(type, self._parts)) != self._kinds or any("forward" in part.__dict__ for part in self._parts):
            return "a module in it was replaced by one of another kind"
        tensors = [*torch.utils._pytree.tree_leaves((args, kwargs)), *self._tensors()]
        if (torch.is_grad_enabled() or self._switches_gradients_on and not torch.is_inference_mode_enabled()) \
                and any(isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in tensors):
            return "a gradient is required; attn computes none (call inside torch.inference_mode())"
        if self._writes and not torch.is_inference_mode_enabled() \
                and any(isinstance(tensor, torch.Tensor) and tensor.is_inference() for tensor in tensors):
            return "it may write to a tensor of inference mode"
        if any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
            return "torch.autocast is on"
        if torch.autograd.forward_ad._current_level >= 0 or torch._C._functorch.peek_interpreter_stack() is not None:
            return "a transform such as torch.func.jvp differentiates or maps it"
        if torch._C._len_torch_dispatch_stack():
            return "a mode of PyTorch observes its ops"
        return None

    @torch.compiler.disable  # torch.compile calls the kernel between two graphs
    def forward(self, *args, **kwargs):
        reason = self._why_not(args, kwargs)
        if reason is None:
            self._update()
            reason = self._unfit
        if reason is None:
            try:
                return self._call_kernel(*args, **kwargs)
            except Error as failure:  # the call has written nothing
                if failure.status not in ("OVERLAP", "STRIDE") or not self._writes:
                    raise
                reason = "it writes to memory that is shared or not contiguous"
        if reason not in self._warned:
            warnings.warn(f"attn: {type(self.layer).__name__} runs in PyTorch, because {reason}", stacklevel=2)
            self._warned.add(reason)
        return self.layer(*args, **kwargs)

    def _call_kernel(self, *args, **kwargs):
        kernel = self._kernel
        if kernel._buffer_names:  # so that calls change the layer's own buffers
            buffers = dict(self.layer.named_buffers())
            kernel.buffers.update((name, buffers[name]) for name in kernel._buffer_names)
        result = kernel(*args, copy=True, **kwargs) if self._copies_arguments else kernel(*args, **kwargs)
        return self._restride(result) if any(self._orders) else result

    def _restride(self, result):
        """Returns the results with the strides that those of the layer have. The kernel's results are contiguous."""
        leaves, spec = torch.utils._pytree.tree_flatten(result)
        orders = iter(self._orders)
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor) and (order := next(orders)):
                leaves[i] = torch.empty_permuted(leaf.shape, order, dtype=leaf.dtype, device=leaf.device).copy_(leaf)
        return torch.utils._pytree.tree_unflatten(leaves, spec)

    def __deepcopy__(self, memo):
        """Returns a module for a copy of the layer. The kernels of both modules share code, but not weights."""
        return memo.setdefault(id(self), Compiled(self._kernel._clone(), copy.deepcopy(self.layer, memo), self._copies_arguments))

    def __reduce_ex__(self, protocol):
        raise error("a module from as_module cannot be pickled, because a kernel is code for this machine; save its state_dict(), and "
                    "call as_module again after loading")
