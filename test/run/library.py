"""Calls compiled libraries through libattn.so, in guarded memory.

Every tensor starts or ends at a guard page, so that an out-of-bounds access faults. Inputs and packed weights are on
read-only pages. The caller chooses the byte pattern that fills the workspace and the outputs before a call.
"""
import ctypes
import mmap

import numpy as np

# The numpy type of each element type. numpy has no bf16: a bf16 is a struct whose only field, "bf16", holds its bits.
DTYPES = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype([("bf16", np.uint16)]),
          "i32": np.dtype(np.int32), "i64": np.dtype(np.int64), "i1": np.dtype(np.bool_)}


def to_element(array, element):
    """Returns numbers as elements of a type, rounded to the nearest one, with ties to even."""
    if element != "bf16":
        return np.asarray(array).astype(DTYPES[element])
    floats = np.ascontiguousarray(array, np.float32)  # of rank 1 or more
    bits = floats.view(np.uint32)
    rounded = np.where(np.isnan(floats), 0x7fc0, (bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return rounded.view(DTYPES["bf16"]).reshape(np.shape(array))


def from_element(array):
    """Returns the numbers of an array of any element type."""
    if array.dtype != DTYPES["bf16"]:
        return array
    bits = np.atleast_1d(array["bf16"]).astype(np.uint32) << 16
    return bits.view(np.float32).reshape(array.shape)


PAGE = mmap.PAGESIZE
LINE = 64  # bytes: the alignment of a workspace and of packed weights
READ, WRITE = 1, 2  # PROT_READ, PROT_WRITE
PRIVATE_ANONYMOUS = 0x22

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class FunctionOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("level", ctypes.c_char_p)]


class CallOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_int64),
                ("parallel_for", ctypes.c_void_p), ("pool", ctypes.c_void_p), ("workers", ctypes.c_int64),
                ("stream", ctypes.c_void_p), ("statistics", ctypes.c_void_p), ("user_data", ctypes.c_void_p),
                ("skip_checks", ctypes.c_int32), ("reserved", ctypes.c_int32)]


class Workspace(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("per_call", ctypes.c_int64), ("per_worker", ctypes.c_int64),
                ("total", ctypes.c_int64)]


ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)


class Allocator(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("allocate", ALLOCATE), ("release", RELEASE),
                ("user_data", ctypes.c_void_p)]


class Pages:
    """A block of `nbytes` between two guard pages. It ends at the second guard page or starts at the first."""

    def __init__(self, nbytes, at_end):
        self.nbytes, self.room = nbytes, -(-nbytes // PAGE) * PAGE
        self.base = libc.mmap(None, self.room + 2 * PAGE, 0, PRIVATE_ANONYMOUS, -1, 0)
        if self.base == ctypes.c_void_p(-1).value:
            raise MemoryError(f"mmap of {nbytes} bytes")
        self.address = self.base + PAGE + (self.room - nbytes if at_end else 0)
        self.protect(READ | WRITE)

    def protect(self, access):
        if self.room and libc.mprotect(self.base + PAGE, self.room, access):
            raise OSError(ctypes.get_errno(), "mprotect")

    def fill(self, byte):
        ctypes.memset(self.address, byte, self.nbytes)

    def bytes(self):
        return ctypes.string_at(self.address, self.nbytes)

    def free(self):
        libc.munmap(self.base, self.room + 2 * PAGE)


class Tensor:
    """A DLTensor whose elements are in Pages. If `data` is given, it fills the pages, which are then read-only."""

    CODES = {"i": 0, "u": 1, "f": 2, "V": 4, "b": 6}  # V: bf16

    def __init__(self, shape, dtype, at_end, data=None):
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.pages = Pages(int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize, at_end)
        if data is not None:
            ctypes.memmove(self.pages.address, np.asarray(data, self.dtype).tobytes(), self.pages.nbytes)
            self.pages.protect(READ)
        self.sizes = (ctypes.c_int64 * len(self.shape))(*self.shape)
        self.view = DLTensor(self.pages.address, 1, 0, len(self.shape), self.CODES[self.dtype.kind],
                             8 * self.dtype.itemsize, 1, self.sizes, None, 0)

    def array(self):
        return np.frombuffer(self.pages.bytes(), self.dtype).reshape(self.shape)


def pointers(tensors):
    return (ctypes.POINTER(DLTensor) * len(tensors))(*(ctypes.pointer(t.view) for t in tensors))


class Error(Exception):
    """The error message of a call that returned a status other than 0."""


class Runtime:
    """libattn.so, with an allocator that allocates Pages. A process may create only one Runtime."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.attn_last_error.restype = ctypes.c_char_p
        self.library.attn_function_level_name.restype = ctypes.c_char_p
        self.library.attn_function_level.restype = ctypes.c_char_p
        self.blocks = {}  # maps the address of each allocated block to its Pages and alignment
        self.allocator = Allocator(ctypes.sizeof(Allocator), ALLOCATE(self.allocate), RELEASE(self.release), None)
        self("attn_set_allocator", ctypes.byref(self.allocator))

    def __call__(self, name, *arguments):
        if getattr(self.library, name)(*arguments):
            raise Error(self.library.attn_last_error().decode())

    def create(self, name, *arguments):
        result = ctypes.c_void_p()
        self(name, *arguments, ctypes.byref(result))
        return result

    def allocate(self, nbytes, alignment, _):
        pages = Pages(-(-nbytes // alignment) * alignment, at_end=True)
        self.blocks[pages.address] = pages, alignment
        return pages.address

    def release(self, address, *_):
        if address:
            self.blocks.pop(address)[0].free()

    def levels(self, library, name):
        """Returns the levels of a function that this CPU can run, the best one first."""
        best = self.create("attn_function_create", library, name, None)
        count = self.library.attn_function_num_levels(best)
        levels = [self.library.attn_function_level_name(best, i) for i in range(count)]
        levels = levels[levels.index(self.library.attn_function_level(best)):]
        self.library.attn_function_release(best)
        return levels

    def function(self, library, name, level):
        options = FunctionOptions(ctypes.sizeof(FunctionOptions), level)
        return self.create("attn_function_create", library, name, ctypes.byref(options))

    def pack(self, function, weights, file=None):
        """Packs weights (arrays by name) into read-only memory, or into `file`, which is then mapped."""
        tensors = [Tensor(a.shape, a.dtype, True, a) for a in weights.values()]
        names = (ctypes.c_char_p * len(tensors))(*(name.encode() for name in weights))
        before = set(self.blocks)
        packed = self.create("attn_weights_create", function, names, pointers(tensors), len(tensors))
        if file is not None:
            self("attn_weights_save", packed, str(file).encode())
            self.library.attn_weights_release(packed)
            packed = self.create("attn_weights_map", function, str(file).encode())
        else:
            data = [self.blocks[a] for a in set(self.blocks) - before]
            # A tensor that another level has packed alike is in memory already, on read-only pages.
            for pages, alignment in data:
                if alignment == LINE:
                    pages.protect(READ)
        for tensor in tensors:
            tensor.pages.free()
        return packed

    def unpack(self, packed):
        """Releases the weights that pack() returned."""
        for pages, _ in self.blocks.values():
            pages.protect(READ | WRITE)
        self.library.attn_weights_release(packed)

    def calls(self, function, weights, inputs, outputs, pool, workers, patterns, at_end):
        """Calls the function once per pattern, a byte that fills outputs and workspace before the call.

        Returns the bytes of all outputs after each call.
        """
        size = Workspace(ctypes.sizeof(Workspace))
        self("attn_workspace_size", function, pointers(inputs), len(inputs), ctypes.c_int64(workers),
             ctypes.byref(size))
        workspace = Pages(size.total, at_end)
        options = CallOptions(ctypes.sizeof(CallOptions), workspace.address, size.total)
        if pool:
            options.pool, options.workers = pool, workers
            options.parallel_for = ctypes.cast(self.library.attn_pool_parallel_for, ctypes.c_void_p)
        results = []
        for pattern in patterns:
            workspace.fill(pattern)
            for tensor in outputs:
                tensor.pages.fill(pattern)
            self("attn_call", function, weights, pointers(inputs), len(inputs), pointers(outputs), len(outputs),
                 ctypes.byref(options))
            results.append([tensor.pages.bytes() for tensor in outputs])
        workspace.free()
        return results
