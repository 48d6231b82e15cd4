"""Kernel.bench: times a kernel, and other runtimes on the same model."""

import statistics
import tempfile
import time

from attn._kernel import error
from attn._report import Table


def _eager(module, args, kwargs, threads):
    return lambda: module(*args, **kwargs)


def _compiled(module, args, kwargs, threads):
    import torch

    compiled = torch.compile(module)
    return lambda: compiled(*args, **kwargs)


def _onnxruntime(module, args, kwargs, threads):
    import onnxruntime
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        torch.onnx.export(module, args, path, kwargs=kwargs, dynamo=True, verbose=False)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    feed = {argument.name: leaf.numpy() for argument, leaf in zip(session.get_inputs(), leaves)}
    return lambda: session.run(None, feed)


PEERS = {"eager": _eager, "compile": _compiled, "onnxruntime": _onnxruntime}


PAUSE = 0.2  # seconds; after a call, threads of ONNX Runtime and OpenBLAS wait in busy loops for up to 0.12 s


def _time(call, seconds):
    """Calls `call` for `seconds`, but at least five times, and returns the times of the calls in milliseconds. First
    pauses, so that the threads of the runtime that was timed before go to sleep, and calls `call` once to wake its own
    threads.
    """
    time.sleep(PAUSE)
    call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begin))
    return times


def _remember_buffers(kernel, module):
    """Returns a function that sets the buffers that calls change to the values that they have now."""
    if not kernel._buffer_names:
        return lambda: None
    import copy

    buffers = {name: copy.deepcopy(array) for name, array in kernel.buffers.items()}
    of_module = {} if module is None else {name: tensor.clone() for name, tensor in module.named_buffers()
                                           if name in kernel._buffer_names}

    def restore():
        kernel.buffers.update(buffers)
        for name, tensor in of_module.items():
            module.get_buffer(name).data.copy_(tensor)

    return restore


def measure(kernel, source, args, kwargs, against, seconds):
    for name in against:
        if name not in PEERS:
            raise error(f"bench: expected names among {', '.join(PEERS)}, got '{name}'", "NAME")
    module = getattr(source, "module", None)
    if against and module is None:
        raise error("bench: expected a kernel that was compiled from a module; against=() times the kernel alone")
    restore = _remember_buffers(kernel, module)
    calls, failures, threads = {"attn": lambda: kernel(*args, **kwargs)}, {}, kernel.num_threads
    torch = None
    if against:
        import torch

        threads, before = threads or torch.get_num_threads(), torch.get_num_threads()
        torch.set_num_threads(threads)
    try:
        for name in against:
            try:
                with torch.inference_mode():
                    calls[name] = PEERS[name](module, args, kwargs, threads)
                    calls[name]()
            except Exception as reason:
                calls.pop(name, None)
                failures[name] = str(reason).strip().splitlines()[0] if str(reason).strip() else repr(reason)
        times = {name: [] for name in calls}
        rounds = 4  # the runtimes take turns, because the speed of a machine changes over time
        for _ in range(rounds):
            for name, call in calls.items():
                if torch:
                    with torch.inference_mode():
                        times[name] += _time(call, seconds / rounds)
                else:
                    times[name] += _time(call, seconds / rounds)
        counts = {}
        kernel.run(tuple(kernel._inputs(args, kwargs)), None, counts)
    finally:
        if torch:
            torch.set_num_threads(before)
        restore()
    medians = {name: statistics.median(of_name) for name, of_name in times.items()}
    rows = [(name, medians[name], medians[name] / medians["attn"]) if name in medians else (name, None, None)
            for name in ("attn", *against)]
    kernel._measured = (medians["attn"], counts)
    table = Table(rows, f"median of calls, {threads or 'all'} threads, level {kernel.level}")
    table.failures = failures
    return table
