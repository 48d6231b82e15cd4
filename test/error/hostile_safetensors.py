"""hostile_safetensors.py FOLDER: writes .safetensors files with wrong headers for one weight w."""
import json
import pathlib
import struct
import sys

folder = pathlib.Path(sys.argv[1])


def write(name, header):
    text = json.dumps(header).encode()
    (folder / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(16))


write("array", [])
write("missing", {"w": {"dtype": "F32", "shape": [4]}})
write("dtype", {"w": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}})
write("sizes", {"w": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}})
write("outside", {"w": {"dtype": "F32", "shape": [4], "data_offsets": [8, 24]}})
