"""The runtimes that are measured.

Each function run_... takes (row, folder, threads); export.py has written the files in `folder`. It returns a function
without arguments, which is the call to measure; a function that makes a NumPy array of the call's result; and a
dictionary of notes for the results. RUNTIMES has the name of each runtime, and the rows that it can run.
"""

import dataclasses
import math
import resource

import numpy as np

from rows import WINDOW, Attention


def load_inputs(folder):
    return [np.load(file) for file in sorted(folder.glob("input*.npy"))]


def run_attn(row, folder, threads):
    """Calls attn as a user does: with attn.attention for windows and padding, and with attn.compile for other rows."""
    import attn
    import torch

    masks = {"window": lambda b, h, q, k: (q - k <= WINDOW) & (k - q <= WINDOW),
             "padding": lambda b, h, q, k, lengths: k < lengths[b]}
    mask = masks.get(getattr(row, "mask", ""))
    if mask:
        kernel = attn.attention(heads=row.heads, key_heads=row.key_heads, head_size=row.size, mask=mask,
                                num_threads=threads)
        inputs = tuple(map(torch.from_numpy, row.inputs()))
    else:
        module, inputs = row.build()
        kernel = attn.compile(module.eval(), inputs, num_threads=threads)
    # The process has started no other program than attnc.
    megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return lambda: kernel(*inputs), np.asarray, {"level": kernel.level, "compile_mb": megabytes}


def load_module(row, threads):
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    module, inputs = row.build()
    return module.eval(), inputs


def run_pytorch(row, folder, threads):
    """Calls the module in PyTorch. The modules of attentions call scaled_dot_product_attention."""
    module, inputs = load_module(row, threads)
    return lambda: module(*inputs), np.asarray, {}


def run_torch_compile(row, folder, threads):
    """Uses torch.compile with freezing, which packs the weights before the calls, as attn does."""
    import torch
    import torch._inductor.config

    torch._inductor.config.freezing = True
    module, inputs = load_module(row, threads)
    compiled = torch.compile(module)
    return lambda: compiled(*inputs), np.asarray, {}


def run_flex_attention(row, folder, threads):
    """Uses flex_attention of PyTorch, whose mask is a function, and which skips blocks that the mask hides."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    _, (q, k, v, *_) = load_module(row, threads)
    lengths = [torch.from_numpy(array) for array in row.inputs()[3:]]
    masks = {"causal": lambda b, h, q, k: k <= q, "window": lambda b, h, q, k: (q - k).abs() <= WINDOW,
             "padding": lambda b, h, q, k: k < lengths[0][b]}
    batch = row.batch if lengths else None
    block_mask = create_block_mask(masks[row.mask], batch, None, row.queries, row.keys, device="cpu")
    compiled = torch.compile(flex_attention)
    return lambda: compiled(q, k, v, block_mask=block_mask), np.asarray, {}


def check_export(file):
    failure = file.with_name(f"{file.name}.failed")
    if failure.exists():
        raise RuntimeError(failure.read_text())
    return file


def run_onnx(model, inputs, threads):
    """Runs a model. Inputs are bound once, and results stay in ONNX Runtime's memory, so calls copy no tensors."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for argument, array in zip(session.get_inputs(), inputs, strict=True):
        binding.bind_cpu_input(argument.name, np.ascontiguousarray(array))
    for result in session.get_outputs():
        binding.bind_output(result.name)
    return lambda: session.run_with_iobinding(binding), lambda _: binding.get_outputs()[0].numpy(), {}


def run_onnxruntime(row, folder, threads):
    """The module as torch.onnx.export writes it, with ONNX's op Attention."""
    return run_onnx(check_export(folder / "model.onnx"), load_inputs(folder), threads)


def run_onnxruntime_ops(row, folder, threads):
    """A graph of one op of ONNX Runtime itself, with inputs in the layout of this op, (batch, length, heads * size)."""
    from onnx import TensorProto, helper

    def flat(array):
        return array.transpose(0, 2, 1, 3).reshape(row.batch, array.shape[2], -1)

    q, k, v, *lengths = row.inputs()
    arrays = {"q": flat(q), "k": flat(k), "v": flat(v)}
    if row.key_heads != row.heads:  # the last key and value are new; the others are in a cache, with room for the last
        arrays = {"q": flat(q), "k": flat(k[:, :, -1:]), "v": flat(v[:, :, -1:]), "past_k": k, "past_v": v,
                  "last": np.full(row.batch, row.keys - 1, np.int32), "total": np.int32(row.keys)}
        node = helper.make_node("GroupQueryAttention", list(arrays), ["out", "new_k", "new_v"], domain="com.microsoft",
                                num_heads=row.heads, kv_num_heads=row.key_heads)
    else:
        names = ["q", "k", "v"]
        if lengths:
            arrays["padding"] = row.kept(*lengths)[:, 0, 0].astype(np.int32)
            names += ["", "padding"]
        if row.mask == "window":
            arrays["bias"] = np.where(row.kept(), 0, np.finfo(np.float32).min).astype(np.float32)[None, None]
            names += ["", "", "bias"]
        node = helper.make_node("MultiHeadAttention", names, ["out"], domain="com.microsoft", num_heads=row.heads,
                                unidirectional=int(row.mask == "causal"))
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in arrays.items()]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in node.output]
    graph = helper.make_graph([node], "attention", inputs, outputs)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    call, read, notes = run_onnx(model.SerializeToString(), arrays.values(), threads)
    shape = row.batch, row.queries, row.heads, row.size
    return call, lambda result: read(result).reshape(shape).transpose(0, 2, 1, 3), notes


def run_openvino(row, folder, threads):
    """The module as openvino.convert_model reads it, in float32: on some CPUs the default is bfloat16."""
    import openvino

    options = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    model = openvino.Core().compile_model(str(check_export(folder / "model.xml")), "CPU", options)
    request, inputs = model.create_infer_request(), load_inputs(folder)
    for i, array in enumerate(inputs):
        request.set_input_tensor(i, openvino.Tensor(array, shared_memory=True))

    def call():
        request.infer()
        return inputs  # keeps the arrays alive, because the tensors of the request point to them

    return call, lambda _: np.array(request.get_output_tensor(0).data), {}


def run_openblas(row, folder, threads):
    """The formula in NumPy, op by op, with all scores in memory. The OpenBLAS in NumPy's wheels computes the products
    with all threads; the other ops use one thread.
    """
    q, k, v, *lengths = row.inputs()
    kept = row.kept(*lengths)
    # Queries that share a head of keys are rows of one product.
    q = q.reshape(row.batch, row.key_heads, -1, row.size)
    scale = np.float32(1 / math.sqrt(row.size))

    def call():
        scores = q @ k.swapaxes(-1, -2)
        scores *= scale
        if kept is not None:
            np.copyto(scores, -np.inf, where=~kept)
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        return scores @ v

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    notes = {"blas": f"{blas['name']} {blas['version']}"}
    return call, lambda out: out.reshape(row.batch, row.heads, row.queries, row.size), notes


def is_attention(row):
    return isinstance(row, Attention)


@dataclasses.dataclass
class Runtime:
    run: object
    can_run: object = lambda row: True


RUNTIMES = {
    "attn": Runtime(run_attn),
    "pytorch": Runtime(run_pytorch),
    "torch.compile": Runtime(run_torch_compile),
    "flex_attention": Runtime(run_flex_attention, lambda row: is_attention(row) and row.mask != ""),
    "onnxruntime": Runtime(run_onnxruntime),
    "onnxruntime-ops": Runtime(run_onnxruntime_ops, is_attention),
    "openvino": Runtime(run_openvino),
    "openblas": Runtime(run_openblas, is_attention),
}
