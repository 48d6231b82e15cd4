"""Reads .npy files with the standard library alone, and compares arrays."""
import math
import pathlib
import struct


def load(path):
    """Returns (shape, values) of a .npy file of float32, float16, or bfloat16, whose bits are held as uint16."""
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<H", data[8:10])
    header = eval(data[10:10 + size].decode(), {"__builtins__": {}}, {"False": False, "True": True})
    assert header["descr"] in ("<f4", "<f2", "<u2") and not header["fortran_order"], header
    values, kind = data[10 + size:], "f"
    if header["descr"] == "<f2":
        kind = "e"
    elif header["descr"] == "<u2":
        values = b"".join(b"\0\0" + values[i:i + 2] for i in range(0, len(values), 2))
    return header["shape"], struct.unpack(f"<{math.prod(header['shape'])}{kind}", values)


def difference(got, want, tolerance):
    """Returns a text that says how `got` differs from `want`, or None."""
    if got[0] != want[0]:
        return f"shape {got[0]}, expected {want[0]}"
    finite = [abs(w) for w in want[1] if math.isfinite(w)]
    bound = tolerance["atol"] + tolerance["rtol"] * max(finite, default=0)
    for i, (g, w) in enumerate(zip(got[1], want[1])):
        if math.isnan(w) != math.isnan(g) or (math.isinf(w) and g != w):
            return f"element {i} is {g}, expected {w}"
        if math.isfinite(w) and not abs(g - w) <= bound:
            return f"element {i} is {g}, expected {w} within {bound:.2e}"
    return None
