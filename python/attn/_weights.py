"""Tells whether tensors have changed since a kernel packed them."""

import threading
import weakref

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

_all = weakref.WeakSet()  # the records of all kernels
_lock = threading.Lock()


class Weights:
    """The tensors that a kernel packed last.

    A change in place advances the version of a tensor, and a replaced tensor has another address, because the tensors
    that were packed are kept. Fused optimizers change tensors without advancing their versions, so each step of an
    optimizer is compared with all records.
    """

    def __init__(self):
        self.tensors, self.stamps, self.is_stale = [], [], True
        with _lock:
            _all.add(self)

    def have_changed(self, tensors):
        """Whether `tensors` are others than those that were packed, or have changed since."""
        return self.is_stale or self.stamps != [(tensor.data_ptr(), tensor._version) for tensor in tensors]

    def remember(self, tensors):
        """Records that a kernel has packed `tensors`."""
        self.tensors = [tensor.detach() for tensor in tensors]
        # Tensors made in inference mode do not count their changes, so they are packed at every call.
        self.is_stale = any(tensor.is_inference() for tensor in tensors)
        self.stamps = [] if self.is_stale else [(tensor.data_ptr(), tensor._version) for tensor in tensors]


def _addresses(tensors):
    return {tensor.untyped_storage().data_ptr() for tensor in tensors
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided and not tensor.is_meta}


def forget(tensors):
    """Makes kernels pack again the weights that share memory with one of `tensors`."""
    changed = _addresses(tensors)
    with _lock:
        records = list(_all)
    for record in records:
        if not changed.isdisjoint(_addresses(record.tensors)):
            record.is_stale = True


def _after_step(optimizer, args, kwargs):
    forget([tensor for group in optimizer.param_groups for tensor in group["params"]])


register_optimizer_step_post_hook(_after_step)
