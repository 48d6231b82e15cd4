"""Kernel.as_module: a kernel in place of a layer of a model."""

import copy
import warnings

import torch

from attn._kernel import error
from attn._source import version


class Compiled(torch.nn.Module):
    """Calls a kernel in place of `layer`. The module has the parameters and buffers of the layer, with the same names.

    If a gradient is required or the layer is in training mode, the module calls the layer and warns once. After a
    weight was changed in place or replaced, the next call packs the weights again.
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
        self._packed = None
        self._has_warned = False
        self._update()

    def _versions(self):
        state = [*self.layer.named_parameters(), *self.layer.named_buffers()]
        return [(id(tensor), tensor.data_ptr(), version(tensor)) for name, tensor in state
                if name not in self._kernel._buffer_names]

    def train(self, mode=True):
        self.layer.train(mode)
        self.training = mode
        return self

    def _update(self):
        versions = self._versions()
        if (versions, self._kernel._loads) != self._packed:
            # A state_dict contains only persistent buffers.
            buffers = {name: tensor for name, tensor in self.layer.named_buffers() if name in self._kernel._source.tensors()}
            self._kernel.load_state_dict({**buffers, **self.layer.state_dict()})
            self._packed = versions, self._kernel._loads
        if self._kernel._buffer_names:  # so that calls change the layer's own buffers
            buffers = dict(self.layer.named_buffers())
            self._kernel.buffers.update((name, buffers[name]) for name in self._kernel._buffer_names)

    def _wants_gradient(self, args, kwargs):
        if not torch.is_grad_enabled():
            return False
        tensors = [*torch.utils._pytree.tree_leaves((args, kwargs)), *self.layer.parameters()]
        return any(isinstance(tensor, torch.Tensor) and tensor.requires_grad for tensor in tensors)

    def forward(self, *args, **kwargs):
        wants_gradient = self._wants_gradient(args, kwargs)
        if wants_gradient or self.layer.training:
            if not self._has_warned:
                reason = "a gradient is required; attn computes none (call inside torch.inference_mode())" if wants_gradient \
                    else "it is in training mode (call eval())"
                warnings.warn(f"attn: {type(self.layer).__name__} runs in PyTorch, because {reason}", stacklevel=2)
                self._has_warned = True
            return self.layer(*args, **kwargs)
        return self._run(args, kwargs)

    @torch.compiler.disable  # torch.compile calls the kernel between two graphs
    def _run(self, args, kwargs):
        self._update()
        return self._kernel(*args, copy=self._copies_arguments, **kwargs) if self._copies_arguments else self._kernel(*args, **kwargs)

    def __deepcopy__(self, memo):
        """Returns a module for a copy of the layer. The kernels of both modules share code, but not weights."""
        return memo.setdefault(id(self), Compiled(self._kernel._clone(), copy.deepcopy(self.layer, memo), self._copies_arguments))

    def __reduce_ex__(self, protocol):
        raise error("a module from as_module cannot be pickled, because a kernel is code for this machine; save its state_dict(), and "
                    "call as_module again after loading")
