"""npy.py FILE DTYPE SHAPE VALUE...: writes an array of a type and shape, such as '<f4' 4x8, that repeats the values."""
import itertools
import math
import struct
import sys

path, dtype, text, values = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
letter, number = {"<f4": ("f", float), "<f8": ("d", float), "<i4": ("i", int), "<i8": ("q", int), "|b1": ("B", int), "|i1": ("b", int)}[dtype]
shape = [int(size) for size in text.split("x")]
header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({''.join(f'{size}, ' for size in shape)}), }}\n"
count = math.prod(shape)
with open(path, "wb") as out:
    out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    out.write(struct.pack(f"<{count}{letter}", *map(number, itertools.islice(itertools.cycle(values), count))))
