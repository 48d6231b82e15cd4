"""hostile_npy.py FOLDER: writes .npy files that are malformed, or whose data do not match their headers."""
import pathlib
import struct
import sys

folder = pathlib.Path(sys.argv[1])


def write(name, descr="'<f4'", order="False", shape="(2, 14, 64)", data=bytes(7168)):
    shape = f"'shape': {shape}, " if shape else ""
    header = f"{{'descr': {descr}, 'fortran_order': {order}, {shape}}}\n".encode()
    (folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


(folder / "text.npy").write_bytes(b"1, 2, 3")
(folder / "no-header.npy").write_bytes(b"\x93NUMPY\x02\x00\xff\xff")
(folder / "long-header.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff{'d'")
write("big-endian.npy", descr="'>f4'")
write("fortran.npy", order="True")
write("no-shape.npy", shape="")
write("negative.npy", shape="(2, -14, 64)")
write("overflow.npy", shape="(4294967296, 4294967296, 64)")
write("short.npy", data=bytes(7164))
write("integers.npy", descr="'<i4'")
write("rank.npy", shape="(1792,)")
