"""Adds attn as a peer to bench.py, a benchmark that times attention runtimes side by side:

    bench.py --ours benchmark.peers.ours:adapter --peers 'ours|torch_sdpa'

The adapter compiles the module that the benchmark gives to PyTorch, and calls it, as a user would: with
torch.export.save, attnc and the C ABI. attn has mask attributes for windows and for the lengths of padded keys, so the
adapter writes these cases in MLIR with the attributes. $ATTN_BUILD is the build folder, build/release unless set.
$ATTNC_OPTIONS has more options for attnc, such as --compute=bf16.
"""

import ctypes
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np

BUILD = pathlib.Path(os.environ.get("ATTN_BUILD", pathlib.Path(__file__).parents[2] / "build/release"))
ATTNC = [BUILD / "bin/attnc", *shlex.split(os.environ.get("ATTNC_OPTIONS", ""))]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class CallOptions(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_int64),
        ("parallel_for", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),
        ("workers", ctypes.c_int64),
        ("stream", ctypes.c_void_p),
        ("statistics", ctypes.c_void_p),
        ("user_data", ctypes.c_void_p),
        ("skip_checks", ctypes.c_int32),
    ]


CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
BF16 = np.dtype([("bf16", np.uint16)])  # numpy has no bfloat16


def to_numpy(tensor):
    """The elements of a tensor of torch, in its memory."""
    if str(tensor.dtype) != "torch.bfloat16":
        return tensor.numpy()
    return tensor.contiguous().view(getattr(sys.modules["torch"], "int16")).numpy().view(BF16)


def widened(array):
    """The array as f32."""
    if array.dtype != BF16:
        return array.astype(np.float32, copy=False)
    return (array["bf16"].astype(np.uint32) << 16).view(np.float32)


def view(array):
    """The array as a DLTensor, which points into it."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    dtype = array.dtype
    return DLTensor(array.ctypes.data, 1, 0, array.ndim, 4 if dtype == BF16 else CODES[dtype.kind], 8 * dtype.itemsize, 1, shape, None, 0)


def pointers(tensors):
    return (ctypes.POINTER(DLTensor) * len(tensors))(*map(ctypes.pointer, tensors))


class Runtime:
    """The C interface; a status that is not 0 becomes an exception with its message."""

    ON_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)

    def __init__(self):
        self.library = ctypes.CDLL(str(BUILD / "lib/libattn.so"))
        self.message = ""
        self.on_error = self.ON_ERROR(self.remember)
        self.library.attn_set_error_handler(self.on_error)

    def remember(self, status, message, user_data):
        self.message = message.decode()

    def __call__(self, name, *arguments):
        if getattr(self.library, name)(*arguments):
            raise RuntimeError(self.message)

    def create(self, name, *arguments):
        result = ctypes.c_void_p()
        self(name, *arguments, ctypes.byref(result))
        return result


def compile(module, arguments, path):
    """Compiles the module; returns the path of the library, and the weights by name."""
    import torch

    program = torch.export.export(module, arguments)
    torch.export.save(program, path / "layer.pt2")
    subprocess.run([*ATTNC, path / "layer.pt2", "-o", path / "layer.so", "--require-fused"], check=True)
    return str(path / "layer.so"), {name: to_numpy(tensor) for name, tensor in program.state_dict.items()}


def write_masked(w, path):
    """Compiles an attention with a mask attribute; returns the path of the library, and no weights."""
    q, k = (f"tensor<{w.B}x{w.H}x{s}x{w.D}xf32>" for s in (w.Sq, w.nkv))
    lengths = f"tensor<{w.B}xi64>"
    maps = ["q, d", "k, d", "k, e", "q, e"]
    maps = [f"affine_map<(b, h, q, k, d, e) -> (b, h, {m})>" for m in maps]
    argument, capture, mask = "", "", f"#attn.window<left = {w.window - 1}, right = 0>"
    if w.mask == "keypad":
        argument = f', %n: {lengths} {{attn.name = "n"}}'
        capture, mask = f"captures(%n : {lengths})", "#attn.lengths<0>"
        maps.insert(3, "affine_map<(b, h, q, k, d, e) -> (b)>")
    (path / "layer.mlir").write_text(f"""
func.func @forward(%q: {q} {{attn.name = "q"}}, %k: {k} {{attn.name = "k"}}, %v: {k} {{attn.name = "v"}}{argument})
    -> ({q} {{attn.name = "out"}}) {{
  %e = tensor.empty() : {q}
  %o = attn.attention ins(%q, %k, %v : {q}, {k}, {k}) {capture} outs(%e : {q}) mask({mask})
      {{indexing_maps = [{", ".join(maps)}], scale = {w.D ** -0.5:e} : f32}} -> {q}
  return %o : {q}
}}
""")
    subprocess.run([*ATTNC, path / "layer.mlir", "-o", path / "layer.so"], check=True)
    return str(path / "layer.so"), {}


def adapter(w, x, threads):
    bench = sys.modules["__main__"]
    with tempfile.TemporaryDirectory() as folder:
        if w.window or w.mask == "keypad":
            library, state = write_masked(w, pathlib.Path(folder))
            inputs = [x["q"], x["k"], x["v"]] + ([x["lens"].astype(np.int64)] if w.mask == "keypad" else [])
        else:
            module, arguments = bench.torch_model(w, x)
            library, state = compile(module, arguments, pathlib.Path(folder))
            inputs = [to_numpy(a) for a in arguments]
        runtime = Runtime()
        loaded = runtime.create("attn_library_load", library.encode())
    function = runtime.create("attn_function_create", loaded, b"forward", None)

    weights = None
    if state:
        arrays = [np.ascontiguousarray(a) for a in state.values()]
        names = (ctypes.c_char_p * len(state))(*(name.encode() for name in state))
        weights = runtime.create("attn_weights_create", function, names, pointers([view(a) for a in arrays]), len(arrays))

    inputs = [np.ascontiguousarray(a) for a in inputs]
    shape = inputs[0].shape if w.kind != "sdpa" else (w.B, w.H, w.Sq, w.D)
    output = np.empty(shape, {"f16": np.float16, "bf16": BF16}.get(w.dtype, np.float32))
    options = CallOptions(size=ctypes.sizeof(CallOptions))
    if threads > 1:
        options.pool = runtime.create("attn_pool_create", ctypes.c_int64(threads))
        options.parallel_for = ctypes.cast(runtime.library.attn_pool_parallel_for, ctypes.c_void_p)

    ins, outs = [view(a) for a in inputs], [view(output)]
    call = function, weights, pointers(ins), len(ins), pointers(outs), 1, ctypes.byref(options)

    def run():
        runtime("attn_call", *call)
        return output

    run.alive = inputs, output  # tensors are pointers into these
    return run, widened
